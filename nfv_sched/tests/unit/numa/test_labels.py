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
"""What the claim does with labels."""

import itertools

from nova import objects

from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class HeldLabelsTest(base.EnforcementTestCase):
    """Labels that are there whether the host as it is needs them or not."""

    def test_mapping_of_a_single_guest_node(self):
        # The network holds the guest on the node already.
        host = clouds.host(physnets={'physnet0': [0]})
        spec = clouds.spec(nodes={0: 0}, network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual({'nfv_node0'}, self.labels(host))
        # One node: there is nowhere else to go.
        host = clouds.host(nodes=1, switch=None)
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(nodes={0: 0})))
        self.assertEqual({'nfv_node0'}, self.labels(host))

    def test_strict(self):
        for topology in ({'physnets': {'physnet0': [1]}},
                         {'switch': (0, 1), 'physnets': {'physnet0': [0, 1]}},
                         {'nodes': 1, 'switch': (0,),
                          'physnets': {'physnet0': [0]}}):
            host = clouds.host(**topology)
            spec = clouds.spec('strict', network=clouds.network('physnet0'))
            self.assertEqual(['host1'], self.passing([host], spec))
            self.assertEqual({clouds.VSWITCH}, self.labels(host))

    def test_strict_and_mapped(self):
        host = clouds.host(physnets={'physnet0': [1]})
        spec = clouds.spec('strict', nodes={0: 1},
                           network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual({clouds.VSWITCH, 'nfv_node1'}, self.labels(host))

    def test_the_host_has_changed_since(self):
        host = clouds.host(physnets={'physnet0': [1]})
        spec = clouds.spec('strict', network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        host.numa_topology = clouds.host_topology(
            physnets={'physnet0': [0, 1]})
        self.assertEqual(([1], []), self.claimed(host, spec))

    def test_a_host_that_does_not_declare_them(self):
        host = clouds.host(switch=None, node_labels=False,
                           physnets={'physnet0': [1]})
        spec = clouds.spec('strict', network=clouds.network('physnet0'))
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(set(), self.labels(host))


class IsolateTest(base.EnforcementTestCase):
    """Guests with several NUMA nodes whose vCPUs want cores of their own."""

    def spec(self, vcpus, vswitch):
        numbers = iter(range(sum(vcpus)))
        return strategies.request_spec(
            objects.InstanceNUMATopology(cells=[
                objects.InstanceNUMACell(
                    id=cell, cpuset=set(), memory=512,
                    pcpuset={next(numbers) for _ in range(count)},
                    cpu_policy='dedicated', cpu_thread_policy='isolate')
                for cell, count in enumerate(vcpus)]),
            None, {'nfv:vswitch_numa_affinity': vswitch} if vswitch else {})

    def test_strict(self):
        for nodes, switch, vcpus, passes in (
                (4, (0, 2), (2, 2), False), (4, (0, 1, 2), (1, 1, 1), False),
                (4, (0, 1, 2, 3), (2, 2), True), (3, (0, 2), (2, 2), True),
                (2, (0, 1), (2, 1), True), (3, (0, 1, 2), (1, 2), True),
                (5, (0, 1, 2, 3, 4), (1, 2), True),
                (3, (0, 1), (1, 2), False), (3, (0, 1, 2), (1, 1, 2), False)):
            host = clouds.host(nodes=nodes, switch=switch)
            spec = self.spec(vcpus, 'strict')
            if not passes:
                self.assertIn('pins no CPUs of other NUMA nodes',
                              self.refusal([host], spec))
                continue
            self.assertEqual(['host1'], self.passing([host], spec))
            placed, _devices = self.claimed(host, spec)
            self.assertLessEqual(set(placed), set(switch))

    def test_a_preference_costs_no_host(self):
        for nodes, switch, vcpus in itertools.product(
                (2, 3, 4, 5), ((0,), (0, 1), (1,)),
                ((2, 2), (1, 2), (1, 1, 2), (2, 1, 1))):
            if len(vcpus) > nodes:
                continue
            host = clouds.host(nodes=nodes, switch=switch)
            self.assertEqual(['host1'], self.passing(
                [host], self.spec(vcpus, 'prefer')))
            # More than one label may lead the claim astray.
            if nodes > 3 or len(set(vcpus)) > 1 and nodes > len(vcpus):
                self.assertLess(len(self.labels(host)), 2)
