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
"""Nothing raises: hostile flavors and images, hosts with odd data.

The one exception that may leave a filter is ``NoValidHost``, with a reason
that fits into a fault.
"""

import logging

import hypothesis
from hypothesis import strategies as st
from nova import exception
from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler import weights as nova_weights

from nfv_sched.filters import all_filters
from nfv_sched import reasons
from nfv_sched.tests import base
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies
from nfv_sched.weights import all_weighers

KEYS = (
    'nfv:vswitch_numa_affinity', 'hw:wrs:vswitch_numa_affinity',
    'nfv:pci_numa_affinity', 'hw:wrs:pci_numa_affinity', 'nfv:shared_vcpu',
    'hw:wrs:shared_vcpu', 'nfv:numa_node.0', 'nfv:numa_node.1',
    'hw:numa_node.0', 'nfv:numa_node.', 'nfv:numa_node.x', 'hw:cpu_policy',
    'hw:cpu_thread_policy', 'hw:pci_numa_affinity_policy', 'hw:numa_nodes')
VALUES = st.one_of(
    st.sampled_from(('strict', 'prefer', 'dedicated', 'require', 'required',
                     '0', '1', '2', '-1', '', '9' * 400, '\u0661', 'None')),
    st.text(max_size=20))


@st.composite
def extra_specs(draw):
    return draw(st.dictionaries(
        st.one_of(st.sampled_from(KEYS), st.text(max_size=12)), VALUES,
        max_size=6))


@st.composite
def odd_host_states(draw):
    """A HostState of which something is missing or strange."""
    topology = draw(strategies.host_topologies(max_cells=4))
    state = strategies.host_state(topology, 4.0, 1.5)
    for _ in range(draw(st.integers(0, 2))):
        cell = draw(st.sampled_from(topology.cells))
        match draw(st.integers(0, 11)):
            case 0:
                state.numa_topology = None
            case 1:
                state.numa_topology = objects.NUMATopology(cells=[])
            case 2:
                state.cpu_allocation_ratio = None
            case 3:
                state.allocation_candidates = []
            case 4:
                state.allocation_candidates = [{}]
            case 5:
                cell.siblings = []
            case 6:
                cell.mempages = [objects.NUMAPagesTopology(
                    size_kb=draw(st.sampled_from((0, -4, 4))), total=-1,
                    used=5, reserved=0)]
            case 7:
                cell.network_metadata = objects.NetworkMetadata()
            case 8:
                cell.pinned_cpus = {1000, -1}
            case 9:
                topology.cells.append(objects.NUMACell(id=99))
            case 10:
                state.numa_topology = 'text'
            case 11:
                cell.memory = -1024
                cell.siblings = [set(), {0}]
    return state


class TestHostile(base.TestCase):

    def setUp(self):
        super().setUp()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.filters = [cls() for cls in all_filters()]
        self.weighers = [cls() for cls in all_weighers()]

    def test_nothing_raises(self):
        seen = {'run': 0, 'reasons': 0, 'passed': 0}
        handler = nova_filters.HostFilterHandler()

        @test_stock.SETTINGS
        @hypothesis.given(
            hosts=st.lists(odd_host_states(), min_size=1, max_size=3),
            guest=st.one_of(st.none(),
                            strategies.guest_topologies(max_cells=3)),
            specs=extra_specs(), network=strategies.network_metadata(),
            properties=st.dictionaries(
                st.just('hw_cpu_policy'),
                st.sampled_from(('dedicated', 'shared')), max_size=1),
            expose=st.sampled_from(('summary', 'hosts', 'none')))
        def check(hosts, guest, specs, network, properties, expose):
            seen['run'] += 1
            self.flags(expose_reasons=expose)
            spec = strategies.request_spec(
                guest, network, specs, properties)
            try:
                passed = handler.get_filtered_objects(
                    self.filters, hosts, spec, 0)
            except exception.NoValidHost as error:
                seen['reasons'] += 1
                self.assertLessEqual(len(str(error).encode()), 255)
                self.assertNotEqual('none', expose)
                if expose == 'summary':
                    self.assertNotIn('host1', str(error))
                return
            seen['passed'] += bool(passed)
            nova_weights.HostWeightHandler().get_weighed_objects(
                self.weighers, passed * 2, spec)

        check()
        print('hostile input: %s' % seen)
        self.assertGreater(seen['reasons'], 0)
        self.assertGreater(seen['passed'], 0)
        self.assertLess(reasons.MAX_BYTES, 255)
