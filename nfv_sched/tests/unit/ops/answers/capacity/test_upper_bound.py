# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.ops.answers.capacity import upper_bound
from nfv_sched.ops.cloud import api_only
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.commands import source
from nfv_sched.ops.model.counting import capacity
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import small_clouds


class BoundsTest(base.TestCase):

    def test_as_placement_says(self):
        """By the API it is what the whole cloud has, host by host."""
        for name in ('all-policies', 'carrier-grade', 'hyper-converged',
                     'platform/aggregates', 'platform/evacuate'):
            cloud = source.load(str(examples.find()[name]))
            found = upper_bound.bounds(small_clouds.by_api(cloud),
                                       cloud.flavors)
            wanted = capacity.capacities(cloud, cloud.flavors)
            for most, whole in zip(found, wanted, strict=True):
                with self.subTest(example=name, flavor=whole.flavor.name):
                    self.assertEqual(
                        {host: each.placement
                         for host, each in whole.hosts.items()}, most.hosts)
                    self.assertEqual(whole.placement, most.most)
                    self.assertGreaterEqual(most.most, whole.fits)

    def test_hosts(self):
        cloud = small_clouds.by_api(small_clouds.cloud(
            small_clouds.host('one'),
            small_clouds.host('two', small_clouds.node(0, range(6))),
            small_clouds.host('off', traits=('COMPUTE_STATUS_DISABLED',))))
        done = []
        found, = upper_bound.bounds(
            cloud, [small_clouds.flavor(4)],
            update=lambda *numbers: done.append(numbers))
        self.assertEqual({'one': 4, 'two': 0, 'off': 0}, found.hosts)
        self.assertEqual((4, 1), (found.most, found.with_room))
        self.assertEqual(0, found.within(['two']).most)
        self.assertEqual([(0, 1), (1, 1)], done)
        found, = upper_bound.bounds(cloud, [small_clouds.flavor(4)],
                                    hosts=['two'])
        self.assertEqual({'two': 0}, found.hosts)

    def test_devices_are_left_out(self):
        """No alias is known; without that Nova would refuse the flavor."""
        cloud = small_clouds.by_api(
            small_clouds.cloud(small_clouds.host('one')))
        asking = small_clouds.flavor(4)
        asking = dataclasses.replace(asking, extra_specs={
            **asking.extra_specs, api_only.ALIAS: 'nic:1'})
        found, = upper_bound.bounds(cloud, [asking])
        self.assertEqual((4, None), (found.most, found.error))

    def test_refused(self):
        cloud = small_clouds.by_api(
            small_clouds.cloud(small_clouds.host('one')))
        found, = upper_bound.bounds(cloud, [small_clouds.flavor(
            4, hw__cpu_policy='none')])
        self.assertEqual({'one': 0}, found.hosts)
        self.assertIn('none', found.error)
