#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

import dataclasses

from nfv_sched.advice import bound
from nfv_sched.advice import by_api
from nfv_sched.advice import capacity
from nfv_sched.cmd import source
from nfv_sched.simulator import examples
from nfv_sched.tests import base
from nfv_sched.tests.unit.advice import clouds


class BoundsTest(base.TestCase):

    def test_as_placement_says(self):
        """By the API it is what the whole cloud has, host by host."""
        for name in ('all-policies', 'carrier-grade', 'hyper-converged',
                     'platform/aggregates', 'platform/evacuate'):
            cloud = source.load(str(examples.find()[name]))
            found = bound.bounds(clouds.by_api(cloud), cloud.flavors)
            wanted = capacity.capacities(cloud, cloud.flavors)
            for most, whole in zip(found, wanted, strict=True):
                with self.subTest(example=name, flavor=whole.flavor.name):
                    self.assertEqual(
                        {host: each.placement
                         for host, each in whole.hosts.items()}, most.hosts)
                    self.assertEqual(whole.placement, most.most)
                    self.assertGreaterEqual(most.most, whole.fits)

    def test_hosts(self):
        cloud = clouds.by_api(clouds.cloud(
            clouds.host('one'), clouds.host('two', clouds.node(0, range(6))),
            clouds.host('off', traits=('COMPUTE_STATUS_DISABLED',))))
        done = []
        found, = bound.bounds(
            cloud, [clouds.flavor(4)],
            update=lambda *numbers: done.append(numbers))
        self.assertEqual({'one': 4, 'two': 0, 'off': 0}, found.hosts)
        self.assertEqual((4, 1), (found.most, found.with_room))
        self.assertEqual(0, found.within(['two']).most)
        self.assertEqual([(0, 1), (1, 1)], done)
        found, = bound.bounds(cloud, [clouds.flavor(4)], hosts=['two'])
        self.assertEqual({'two': 0}, found.hosts)

    def test_devices_are_left_out(self):
        """No alias is known; without that Nova would refuse the flavor."""
        cloud = clouds.by_api(clouds.cloud(clouds.host('one')))
        asking = clouds.flavor(4)
        asking = dataclasses.replace(asking, extra_specs={
            **asking.extra_specs, by_api.ALIAS: 'nic:1'})
        found, = bound.bounds(cloud, [asking])
        self.assertEqual((4, None), (found.most, found.error))

    def test_refused(self):
        cloud = clouds.by_api(clouds.cloud(clouds.host('one')))
        found, = bound.bounds(cloud, [clouds.flavor(
            4, hw__cpu_policy='none')])
        self.assertEqual({'one': 0}, found.hosts)
        self.assertIn('none', found.error)
