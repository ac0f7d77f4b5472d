# SPDX-License-Identifier: Apache-2.0
"""Nothing raises: hostile flavors and images, hosts with odd data.

The one exception that may leave a filter is ``NoValidHost``, with a reason
that fits into a fault.  A host with odd data is the affair of that host: the
others of the list are judged as if it were not there.
"""

import copy
import re

import hypothesis
from hypothesis import strategies as st
from nova import exception
from nova import objects
from nova.pci import stats
from nova.scheduler import filters as nova_filters
from nova.scheduler import weights as nova_weights

from nfv_sched.base import reasons
from nfv_sched.filters import all_filters
from nfv_sched.limits import names
from nfv_sched.scheduler import notes
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies
from nfv_sched.tests.unit.limits import snapshots
from nfv_sched.weights import all_weighers

KEYS = (
    'nfv:vswitch_numa_affinity', 'hw:wrs:vswitch_numa_affinity',
    'nfv:pci_numa_affinity', 'hw:wrs:pci_numa_affinity', 'nfv:shared_vcpu',
    'hw:wrs:shared_vcpu', 'nfv:numa_node.0', 'nfv:numa_node.1',
    'hw:numa_node.0', 'nfv:numa_node.', 'nfv:numa_node.x', 'hw:cpu_policy',
    'hw:cpu_dedicated_mask', 'hw:cpu_thread_policy',
    'hw:pci_numa_affinity_policy', 'hw:numa_nodes', 'hw:mem_page_size',
    'hw:emulator_threads_policy', 'pci_passthrough:alias',
    'trait:HW_CPU_HYPERTHREADING', 'nfv:vswitch')
TEXTS = ('strict', 'prefer', 'preferred', 'dedicated', 'mixed', 'shared',
         'require', 'required', 'isolate', 'legacy', 'socket', '0', '1', '2',
         '-1', '^0', '^1', '0-3', '', ' ', '9' * 400, '1e400', 'nan',
         '\u0661', '\u00b2', '\U0001f4a5', '\x00', 'None', 'STRICT')
VALUES = st.one_of(
    st.sampled_from(TEXTS), st.sampled_from(TEXTS), st.text(max_size=20))
# A RequestSpec loads extra specs as text. Other things get in by other doors.
ODD_VALUES = st.one_of(
    VALUES, st.none(), st.booleans(), st.integers(),
    st.floats(), st.lists(st.integers(), max_size=2),
    st.just({'strict': 'strict'}), st.binary(max_size=4))
PROPERTIES = {
    'hw_cpu_policy': ('dedicated', 'shared', 'mixed'),
    'hw_cpu_thread_policy': ('isolate', 'require', 'prefer'),
    'hw_pci_numa_affinity_policy': (
        'required', 'legacy', 'preferred', 'socket'),
    'hw_numa_nodes': (0, 1, 2, 2 ** 40),
}


@st.composite
def extra_specs(draw):
    values = draw(st.sampled_from((VALUES, VALUES, ODD_VALUES)))
    keys = st.one_of(st.sampled_from(KEYS), st.sampled_from(KEYS),
                     st.text(max_size=12))
    return draw(st.dictionaries(keys, values, max_size=6))


@st.composite
def properties(draw):
    return {name: draw(st.sampled_from(values))
            for name, values in PROPERTIES.items()
            if draw(st.integers(0, 3)) == 1}


def _spoil(draw, values, fields):
    """Take away a field of a Nova object, or give it an odd value."""
    name = draw(st.sampled_from(sorted(fields)))
    if draw(st.integers(0, 3)):
        values[f'_obj_{name}'] = copy.deepcopy(
            draw(st.sampled_from(fields[name])))
    else:
        values.pop(f'_obj_{name}', None)


@st.composite
def odd_requests(draw, pools):
    """PCI requests, some of which no release of Nova would write."""
    requests = draw(strategies.pci_requests(
        pools, min_requests=draw(st.integers(0, 1))))
    for request in requests:
        if draw(st.integers(0, 3)) == 1:
            _spoil(draw, vars(request), {
                'count': (0, -1, 10 ** 9), 'request_id': (None,), 'spec': (
                    [], [{}],
                    [{'physical_network': None}, {'vendor_id': ''}],
                    [{draw(st.text(max_size=5)): draw(st.text(max_size=5))}],
                    [{'rp_uuids': ',,'}], [{'numa_node': '0', 'count': '1'}])})
    return requests


def _odd_pool(draw, pool):
    match draw(st.integers(0, 9)):
        case 0 | 1:
            # Spoilt before, it may have nothing left.
            pool.pop(draw(st.sampled_from([*sorted(pool), 'count'])), None)
        case 2:
            pool.clear()
        case _:
            name, value = draw(st.sampled_from([
                (name, value) for name, values in ODD_POOL.items()
                for value in values]))
            pool[name] = copy.copy(value)


def _odd_cell(draw, topology):
    cell = draw(st.sampled_from(topology.cells))
    match draw(st.integers(0, 12)):
        case 0:
            topology.cells.append(objects.NUMACell(id=99))
        case 1:
            topology.cells.append(cell)
        case 2:
            cell.cpuset = set()
            cell.pcpuset = set()
        case _:
            _spoil(draw, vars(cell), {**ODD_CELL, 'mempages': [
                [objects.NUMAPagesTopology(
                    size_kb=size, total=-1, used=5, reserved=0)]
                for size in (0, -4, 4)]})


def _odd_state(draw, state):
    pci_stats = stats.PciDeviceStats(None)
    pci_stats.pools = draw(st.sampled_from((None, [None, 'text'])))
    aggregate = objects.Aggregate(
        id=1, uuid=strategies.provider('aggregate'), hosts=['host1'],
        metadata={name: draw(st.sampled_from(
            ('', 'x', 'nan', 'inf', '-1', '0', '1e999', '\u0661')))
            for name in AGGREGATE_KEYS})
    name, values = draw(st.sampled_from((
        ('numa_topology', (
            None, objects.NUMATopology(cells=[]), 'text', 5)),
        ('cpu_allocation_ratio', RATIOS), ('ram_allocation_ratio', RATIOS),
        ('allocation_candidates', CANDIDATES),
        ('pci_stats', (None, 'text', pci_stats)),
        ('aggregates', (None, [None], 'text', [aggregate])))))
    setattr(state, name, copy.deepcopy(draw(st.sampled_from(values))))


ODD_POOL = {
    'count': (None, -3, '2', 10 ** 30),
    'numa_node': ('0', -1, 2 ** 70, 1.5, True, (0,), [0]),
    'rp_uuid': (None, 5, '', 'x'),
    'dev_type': (None, 'type-\u0661', 3),
    'physical_network': (None, 1, ''),
    'remote_managed': (None, 'maybe', 1)}
ODD_CELL = {
    'id': (99,), 'cpuset': (set(),), 'pcpuset': (set(),), 'memory': (-1024,),
    'siblings': ([], [set(), {0}]), 'pinned_cpus': ({1000, -1},),
    'cpu_usage': (-9, 10 ** 30), 'memory_usage': (-9, 10 ** 30),
    'socket': (None, -5, 2 ** 65),
    'network_metadata': (None, objects.NetworkMetadata())}
CANDIDATES = [[], None, [{}], [{'mappings': None}], [None], ['text'],
              [{'mappings': {'': []}}], [{'mappings': {7: [None]}}],
              [{'mappings': ['x']}]]
CANDIDATES += [
    [{'allocations': {}, 'mappings': {
        '00000000-0000-0000-0000-000000000001-0': providers}}]
    for providers in ([], None, [None], [7], 'text')]
RATIOS = (None, 0.0, -1.0, float('nan'), float('inf'), '4.0', 'text')
AGGREGATE_KEYS = (
    'shared_vcpus_per_core', 'vswitch_numa_affinity_weight_multiplier',
    'pci_numa_affinity_weight_multiplier', 'shared_vcpu_weight_multiplier',
    'vswitch_ports_per_node', 'vswitch_physical_ports', 'vnics_per_guest',
    'security_rules_per_node', 'router_weight_multiplier',
    'numa_fragmentation_weight_multiplier')
SNAPSHOTS = (
    None,
    snapshots.snapshot(),
    snapshots.snapshot(
        [{'host': 'host0', 'groups': ['g']}] * 249, rules={'g': 60},
        default_groups={'p': 'g'}))

_LEDGER = names.provider_uuid(strategies.ROOT)
#: What Placement has answered; None if Nova does not hand it over.
SUMMARIES = (
    snapshots.summaries({strategies.ROOT: {
        names.PORTS: 3, names.RULES: 300,
        names.ROUTERS: names.UNLIMITED - 7 - 251}}),
    snapshots.summaries({strategies.ROOT: {names.PORTS: -3}}),
    {}, None, *({_LEDGER: odd} for odd in (
        None, 'text', {'resources': None, 'traits': [names.TRAIT]},
        {'resources': {names.PORTS: {'capacity': 'x', 'used': None}},
         'traits': [names.TRAIT]},
        {'resources': {}, 'traits': None})))


@st.composite
def networks(draw):
    odd = st.sampled_from((None, '', 'none', 'auto', 'port0', '\u0661', 7))
    asked = objects.NetworkRequestList()
    asked._obj_objects = draw(st.lists(st.one_of(
        st.sampled_from((None, 'text', objects.NetworkRequest())),
        st.builds(_network, odd, odd, odd)), max_size=10))
    groups = objects.SecurityGroupList()
    groups._obj_objects = draw(st.lists(st.one_of(
        st.sampled_from((None, 'text', objects.SecurityGroup())),
        st.builds(_group, odd, odd)), max_size=3))
    return {
        '_obj_requested_networks': draw(
            st.sampled_from((asked, asked, None, 'text'))),
        '_obj_security_groups': draw(
            st.sampled_from((groups, groups, None, 7))),
        '_obj_project_id': draw(st.sampled_from(('p', None, 7)))}


def _network(network, port, request):
    asked = objects.NetworkRequest()
    asked._obj_network_id = network
    asked._obj_port_id = port
    asked._obj_pci_request_id = request
    return asked


def _group(uuid, name):
    group = objects.SecurityGroup()
    group._obj_uuid = uuid
    group._obj_name = name
    return group


@st.composite
def sound_hosts(draw):
    topology = draw(strategies.host_topologies(
        max_cells=3, labels=('nfv_vswitch', 'nfv_node0', 'nfv_node1')))
    pools = draw(strategies.pci_pools(
        tuple(cell.id for cell in topology.cells), max_pools=3))
    return topology, pools


@st.composite
def clouds(draw):
    """Draw PCI requests, and [(host state, whether it is odd)]."""
    hosts = draw(st.lists(sound_hosts(), min_size=1, max_size=2))
    requests = draw(odd_requests([pool for _, pools in hosts
                                  for pool in pools]))
    try:
        hash(tuple(request.request_id for request in requests))
        mappable = all(request.request_id and 'spec' in request and
                       'count' in request and request.count < 100
                       for request in requests)
    except TypeError:
        mappable = False
    states = []
    for number, (topology, pools) in enumerate(hosts):
        candidates = 1
        if mappable and draw(st.booleans()):
            candidates = draw(strategies.pci_candidates(
                requests, pools, strategies.ROOT))
        state = strategies.host_state(
            topology, 4.0, 1.5, name='host%d' % number, pools=pools,
            candidates=candidates)
        odd = False
        for _ in range(draw(st.sampled_from((1, 2, 0, 0)))):
            odd = True
            what = draw(st.integers(0, 3))
            if what == 0 and isinstance(state.numa_topology,
                                        objects.NUMATopology) and \
                    state.numa_topology.cells:
                _odd_cell(draw, state.numa_topology)
            elif what == 1 and isinstance(
                    getattr(state.pci_stats, 'pools', None), list) and \
                    state.pci_stats.pools and isinstance(
                        state.pci_stats.pools[0], dict):
                _odd_pool(draw, draw(st.sampled_from(state.pci_stats.pools)))
            else:
                _odd_state(draw, state)
        states.append((state, odd))
    return requests, states


class TestHostile(test_stock.EquivalenceTestCase):

    def setUp(self):
        super().setUp()
        self.filters = [cls() for cls in all_filters()]
        self.weighers = [cls() for cls in all_weighers()]
        self.lookups = snapshots.Lookups()
        self.summaries = None

    def _spec(self, guest, network, specs, properties, requests, asked):
        spec = strategies.request_spec(guest, network)
        vars(spec).update(asked)
        # As text where a flavor is read from the database, but as they are
        # for whoever makes a Flavor by hand.
        spec.flavor._obj_extra_specs = dict(specs)
        spec.image.properties = objects.ImageMetaProps(**properties)
        spec.pci_requests._obj_requests = copy.deepcopy(requests)
        notes.note_of(spec).use(self.lookups)
        notes.placement_answered(spec, self.summaries)
        return spec

    def test_nothing_raises(self):
        seen = {'run': 0, 'reasons': 0, 'passed': 0, 'odd passed': 0,
                'sound passed': 0, 'alone': 0}
        handler = nova_filters.HostFilterHandler()

        @test_stock.SETTINGS
        @hypothesis.given(
            cloud=clouds(),
            guest=st.one_of(strategies.guest_topologies(max_cells=3),
                            strategies.guest_topologies(max_cells=2),
                            st.none()),
            specs=extra_specs(), network=strategies.network_metadata(),
            properties=properties(),
            expose=st.sampled_from(
                ('policy', 'summary', 'hosts', 'none')),
            reverse=st.booleans(), asked=networks(),
            snapshot=st.integers(0, len(SNAPSHOTS) - 1),
            answer=st.integers(0, len(SUMMARIES) - 1))
        def check(cloud, guest, specs, network, properties, expose, reverse,
                  asked, snapshot, answer):
            seen['run'] += 1
            self.flags(expose_reasons=expose)
            self.lookups.value = SNAPSHOTS[snapshot]
            self.summaries = SUMMARIES[answer]
            requests, states = cloud
            filters = self.filters[::-1] if reverse else self.filters
            alone = []
            for state, odd in states:
                if not odd:
                    # What becomes of it without the others.
                    spec = self._spec(
                        guest, network, specs, properties, requests, asked)
                    twin = copy.deepcopy(state)
                    try:
                        if handler.get_filtered_objects(
                                filters, [twin], spec, 0):
                            alone.append(state.host)
                    except exception.NoValidHost:
                        seen['alone'] += 1
            spec = self._spec(
                guest, network, specs, properties, requests, asked)
            try:
                passed = handler.get_filtered_objects(
                    filters, [state for state, _odd in states], spec, 0)
            except exception.NoValidHost as error:
                seen['reasons'] += 1
                self.assertEqual([], alone)
                self.assertLessEqual(len(str(error).encode()), 255)
                self.assertNotEqual('none', expose)
                # What the tenant has said itself is no secret.
                own = repr((specs, properties))
                said = set()
                if expose == 'policy':
                    # "1 free VF" is what the server needs, "1 VF free" what
                    # a host has.
                    said.update(re.findall(
                        r'\d+ hosts?\)|best host|free(?: \(|[,;]|$)| s old',
                        str(error)))
                if expose in ('policy', 'summary'):
                    said.update(state.host for state, _odd in states
                                if state.host in str(error))
                self.assertEqual(
                    [], [text for text in said if text not in own], error)
                return
            passed = list(passed or ())
            odd = {state.host for state, odd in states if odd}
            self.assertEqual(alone, [state.host for state in passed
                                     if state.host not in odd])
            seen['passed'] += bool(passed)
            seen['sound passed'] += len(alone)
            seen['odd passed'] += len(passed) - len(alone)
            nova_weights.HostWeightHandler().get_weighed_objects(
                self.weighers, passed * 2, spec)

        check()
        print('hostile input: %s' % seen)
        self.assert_seen(seen['reasons'], test_stock.CASES // 20)
        self.assert_seen(seen['sound passed'], test_stock.CASES // 20)
        self.assert_seen(seen['odd passed'], test_stock.CASES // 20)
        self.assertLess(reasons.MAX_BYTES, 255)
