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
"""What is free on a host once some of its servers have left."""

import dataclasses

from nfv_sched.simulator import layout
from nfv_sched.simulator import restore_hosts
from nfv_sched.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests.unit.advice import clouds

GONE = 'd0000000-0000-4000-8000-000000000000'
OTHER = 'e0000000-0000-4000-8000-000000000000'


class PoolsTest(base.TestCase):

    def free(self, *servers):
        """Number of free devices by NUMA node, without some servers."""
        host = clouds.host('one', devices=(
            clouds.device(1, 0, status='allocated', server=GONE),
            clouds.device(2, 1, status='allocated', server=OTHER),
            clouds.device(3, 1)))
        cloud = clouds.cloud(host)
        group, = layout.cloud(cloud).groups
        with start.started(cloud):
            pools = restore_hosts.pools_without(
                host, group, frozenset(servers),
                restore_hosts.common_tags(cloud))
        found = {0: 0, 1: 0}
        for pool in pools:
            found[pool['numa_node']] += pool['count']
        return found

    def test_pools(self):
        self.assertEqual({0: 0, 1: 1}, self.free())
        self.assertEqual({0: 1, 1: 1}, self.free(GONE))
        self.assertEqual({0: 1, 1: 2}, self.free(GONE, OTHER))

    def test_pf_of_a_vf_that_is_claimed(self):
        """Nova cannot claim the PF while the server is being built."""
        for vf, pf in (('claimed', 'unclaimable'),
                       ('allocated', 'unavailable')):
            parent = dataclasses.replace(
                clouds.device(1, 0, status=pf), kind='type-PF',
                address='0000:01:00.0', tags={})
            host = clouds.host('one', devices=(parent, clouds.device(
                1, 0, status=vf, server=GONE, parent=parent.address)))
            cloud = clouds.cloud(host)
            group, = layout.cloud(cloud).groups
            with start.started(cloud):
                self.assertEqual([2, 0], [
                    sum(pool['count'] for pool in restore_hosts.pools_without(
                        dataclasses.replace(host, devices=tuple(
                            dataclasses.replace(device, tags={
                                'address': device.address})
                            for device in host.devices)),
                        group, frozenset(servers), {}))
                    for servers in ((GONE,), ())])
