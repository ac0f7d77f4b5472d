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
"""What becomes of a guest on a host."""

import itertools

from nova import objects
from nova.virt import hardware

from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestNovaSearch(base.FilterTestCase):
    """Where Nova's search over permutations would break a promise."""

    def test_labels_that_lead_to_stale_pins(self):
        # Labels on nodes 1 and 3 of an empty host make Nova choose node 3
        # with the pins of node 2, which cannot be recorded.
        self.flags(expose_reasons='none')
        two = clouds.guest(cells=2)
        for switch in itertools.combinations(range(4), 2):
            host = clouds.host(nodes=4, switch=switch)
            spec = clouds.spec('strict', cells=2)
            if not self.passing([host], spec):
                continue
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            placed = hardware.numa_fit_instance_to_host(
                strategies.clone(host.numa_topology), two.obj_clone(),
                provider_mapping=None, limits=limits)
            self.assertEqual(set(switch), {c.id for c in placed.cells})
            hardware.numa_usage_from_instance_numa(
                host.numa_topology, placed)

    def test_claims_that_would_take_long(self):
        # Nova would go through millions of permutations to get to the last
        # nodes of the host.
        for last, passed in ((4, ['host1']), (16, [])):
            self.flags(expose_reasons='none')
            host = clouds.host(nodes=16, switch=tuple(range(last - 4, last)))
            self.assertEqual(passed, self.passing(
                [host], clouds.spec('strict', cells=4, vcpus=1)))

    def test_prefer_never_costs_a_host(self):
        for nodes, cells in ((4, 2), (8, 4), (16, 6)):
            for switch in ((1, 3), tuple(range(nodes - cells, nodes))):
                self.assertEqual(['host1'], self.passing(
                    [clouds.host(nodes=nodes, switch=switch)],
                    clouds.spec('prefer', cells=cells)))

    def test_prefer_where_nova_mistakes_the_guest_nodes(self):
        # No host node has room for the third guest node; Nova's search takes
        # another one for it.
        guest = clouds.guest(cells=3)
        for cell, cpus in zip(guest.cells, ({0, 1}, {2}, {3, 4, 5, 6})):
            cell.pcpuset = cpus
        free = {node: 3 for node in range(3)}
        prefer = {'nfv:vswitch_numa_affinity': 'prefer'}
        for enabled, specs in (
                ([self.stock], {}), ([self.topology], {}),
                ([self.topology, self.vswitch], prefer),
                ([self.vswitch], prefer)):
            host = clouds.host(nodes=3, free=free)
            spec = strategies.request_spec(guest.obj_clone(), None, specs)
            self.assertEqual(['host1'], self.passing([host], spec, enabled))
            self.assertEqual(3, len(self.node_of(host, guest.obj_clone())))

    def test_unlike_guest_nodes_may_be_taken_for_each_other(self):
        guest = clouds.guest(cells=2)
        guest.cells[1].pcpuset = {2}
        host = clouds.host(nodes=3, switch=(0, 1), node_labels=False)
        for specs in ({'nfv:vswitch_numa_affinity': 'strict'},
                      {'nfv:numa_node.1': '0'}):
            self.refusal([host], strategies.request_spec(guest, None, specs))

    def test_large_pages_of_several_sizes(self):
        # Node 0 has 4 KiB and 2 MiB pages, node 1 only 2 MiB: "large" fits
        # node 1 once Nova has narrowed it to 2 MiB on node 0.
        topology = clouds.host_topology(switch=(0,))
        pages = [objects.NUMAPagesTopology(
            size_kb=size, total=1024, used=0, reserved=0)
            for size in (4, 2048)]
        topology.cells[0].mempages = pages
        topology.cells[1].mempages = pages[1:]
        guest = clouds.guest()
        guest.cells[0].pagesize = -2
        for specs in ({'nfv:vswitch_numa_affinity': 'strict'},
                      {'nfv:numa_node.0': '0'}):
            host = strategies.host_state(strategies.clone(topology))
            self.assertEqual(['host1'], self.passing(
                [host], strategies.request_spec(guest, None, specs)))
            self.assertTrue(
                host.limits['numa_topology'].network_metadata.physnets)
