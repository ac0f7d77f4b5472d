# SPDX-License-Identifier: Apache-2.0
"""Hosts of the same shape are decided about once, and come out the same.

Hosts that differ in little are decided about in one request, and each by
itself in a request of its own.
"""

import collections

import fixtures
import hypothesis
from hypothesis import strategies as st

from nfv_sched.base import reasons
from nfv_sched.filters import all_filters
from nfv_sched.fit.numa import decide
from nfv_sched.fit.numa import shape
from nfv_sched.scheduler import notes
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests.unit import clouds
from nfv_sched.weights import all_weighers

_AFFINITY = st.sampled_from((None, 'strict', 'prefer'))
_PROVIDERS = ('a', 'b', 'c')


@st.composite
def hosts(draw, nodes, numbered):
    """One host; most are alike in most.

    :param numbered: whether Placement knows the devices
    """
    node = st.integers(0, nodes - 1)
    devices = {
        index: draw(st.sampled_from((3, 3, 2, 1, 0)))
        for index in range(nodes)}
    return {
        'free': {index: draw(st.sampled_from((4, 4, 3, 2, 1)))
                 for index in range(nodes)},
        'devices': devices,
        'providers': draw(st.permutations(_PROVIDERS[:nodes]))
        if numbered else (),
        'switch': draw(st.sampled_from(((0,), (0,), (1,), (0, 1), None))),
        'node_labels': draw(st.integers(0, 4)) != 1,
        'physnets': {'net': draw(st.sampled_from(((0,), (1,), (0, 1))))},
        'places': draw(st.sampled_from(((), (0,), (1,)))),
        'reversed': draw(st.integers(0, 5)) == 1,
        'socket': draw(node),
        'usage': draw(st.sampled_from((
            (5, 5, 5), (5, 5, 5), (0, 2, 5), (0, 0, 0)))),
        'ratio': draw(st.sampled_from((16.0, 16.0, 2.0, 4.0))),
    }


@st.composite
def requests(draw, nodes):
    specs = {}
    for key in ('nfv:vswitch_numa_affinity', 'nfv:pci_numa_affinity',
                'nfv:numa_affinity.osd', 'nfv:numa_anti_affinity.osd'):
        value = draw(_AFFINITY) if draw(st.booleans()) else None
        if value and not (key.endswith('.osd') and any(
                other.endswith('.osd') for other in specs)):
            specs[key] = value
    cells = draw(st.sampled_from((1, 1, 2)))
    vcpus = draw(st.sampled_from((1, 2, 3)))
    if cells == 1 and vcpus > 1 and draw(st.booleans()):
        specs.update({'nfv:shared_vcpu': '0', 'hw:cpu_policy': 'mixed'})
    return {
        'cells': cells, 'vcpus': vcpus,
        'extra_specs': specs,
        'nodes': draw(st.sampled_from(({}, {}, {0: 0}, {0: 1}))),
        'network': draw(st.sampled_from((None, 'net'))),
        'policies': draw(st.lists(st.sampled_from(
            ('legacy', 'required', 'preferred', 'socket')), max_size=2)),
        'counts': draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
    }


@st.composite
def cases(draw):
    nodes = draw(st.sampled_from((2, 2, 3)))
    numbered = draw(st.booleans())
    first = draw(hosts(nodes, numbered))
    names = draw(st.lists(st.sampled_from(sorted(first)), min_size=1,
                          max_size=2, unique=True))
    return nodes, draw(requests(nodes)), [first] + [
        {**first, **{name: host[name] for name in names}}
        for host in draw(st.lists(
            hosts(nodes, numbered), min_size=3, max_size=8))]


class TestShape(test_stock.EquivalenceTestCase):

    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='none', shared_vcpus_per_core=3)
        affinity = [cls for cls in all_filters()
                    if 'Limit' not in cls.__name__]
        self.filters = [cls() for cls in affinity]
        self.flags('filter_scheduler', enabled_filters=[
            cls.__name__ for cls in affinity])
        self.weighers = [cls() for cls in all_weighers()
                         if 'NUMA' in cls.__name__]
        self.counts = True

    @staticmethod
    def spec(data):
        made = [clouds.pci_request(count, policy) for policy, count in zip(
            data['policies'], data['counts'])]
        for number, each in enumerate(made):
            each.request_id = f'{number}' * 8 + '-1-1-1-1'
        spec = clouds.spec(
            cells=data['cells'], vcpus=data['vcpus'],
            extra_specs=data['extra_specs'], nodes=data['nodes'],
            network=data['network'] and clouds.network(data['network']),
            devices=made)
        if 'nfv:shared_vcpu' in data['extra_specs']:
            cell, = spec.numa_topology.cells
            cell.cpuset, cell.cpu_policy = {0}, 'mixed'
            cell.pcpuset = cell.pcpuset - {0}
        return spec

    @staticmethod
    def host(number, nodes, data, request_data):
        state = clouds.host(
            f'host{number}', data['devices'], nodes=nodes,
            free=data['free'], switch=data['switch'],
            node_labels=data['node_labels'], physnets=data['physnets'])
        cells = state.numa_topology.cells
        state.cpu_allocation_ratio = data['ratio']
        for cell in cells:
            cell.socket = cell.id if data['socket'] else 0
            cell.cpuset = {100 + cell.id}
            cell.cpu_usage = data['usage'][cell.id]
            if cell.id in data['places']:
                cell.network_metadata.physnets.add('nfv_osd')
        if data['reversed']:
            state.numa_topology.cells = cells[::-1]
        if data['providers']:
            for pool, provider in zip(
                    state.pci_stats.pools, data['providers']):
                pool['rp_uuid'] = provider + f'{number}'
            mappings = {'': ['root']}
            for index, count in enumerate(
                    request_data['counts'][:len(request_data['policies'])]):
                for each in range(count):
                    mappings[f'{index}' * 8 + f'-1-1-1-1-{each}'] = [
                        data['providers'][0] + f'{number}']
            state.allocation_candidates = [
                {'allocations': {}, 'mappings': mappings}]
        return state

    def outcomes(self, states, spec):
        """What becomes of the hosts of one request, by name."""
        note = notes.note_of(spec)
        found = {state.host: [] for state in states}
        for each in self.filters:
            states = list(each.filter_all(states, spec))
            self.counts = False
            for host, reason in note.rejected:
                found[host] += [type(each).__name__,
                                str(reasons.resolve(reason))]
            note.rejected, self.counts = [], True
        for state in states:
            limits = state.limits.get('numa_topology')
            metadata = limits and 'network_metadata' in limits and (
                limits.network_metadata)
            found[state.host].append(
                sorted(metadata.physnets) if metadata else [])
            for weigher in self.weighers:
                found[state.host] += clouds.weigh(weigher, spec, state)
        return found

    def test_shape(self):
        seen = collections.Counter()
        phase = ''
        original, work_out = shape.host_shape, decide.decide

        def of(*args):
            key = original(*args)
            seen['no shape' if key is None else 'shape'] += 1
            return key

        def count(*args):
            if self.counts:
                seen[f'decided {phase}'] += 1
            return work_out(*args)

        @test_stock.SETTINGS
        @hypothesis.given(data=cases())
        def check(data):
            nonlocal phase
            nodes, asked, described = data

            def states():
                return [self.host(number, nodes, host, asked)
                        for number, host in enumerate(described)]

            phase = 'together'
            together = self.outcomes(states(), self.spec(asked))
            phase = 'alone'
            alone: dict = {}
            for state in states():
                alone.update(self.outcomes([state], self.spec(asked)))
            self.assertEqual(alone, together)
            for outcome in together.values():
                seen['passed' if isinstance(outcome[0], list)
                     else 'refused'] += 1

        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.fit.numa.shape.host_shape', of))
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.fit.numa.decide.decide', count))
        check()
        print('shapes: %s' % dict(seen))
        # Otherwise little was shared.
        self.assertLess(
            seen['decided together'], 0.9 * seen['decided alone'])
        for what in 'passed', 'refused', 'shape':
            self.assert_seen(seen[what], test_stock.CASES, what)
