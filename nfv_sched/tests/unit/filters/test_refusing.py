# SPDX-License-Identifier: Apache-2.0
"""Each filter refuses by the rule that it is named after.

Whichever filters are enabled, in whatever order: what an operator reads in
Nova's log is the filter whose rule has nothing left.
"""

import contextlib
import copy
import dataclasses
import functools
import itertools
import logging
import random
import re

import fixtures
from nova import exception
from nova.scheduler import filters as nova_filters
from nova.scheduler.filters import numa_topology_filter

from nfv_sched import filters
from nfv_sched.fit import rules
from nfv_sched.tests import base
from nfv_sched.tests import outcomes
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.weights import pci_numa_affinity as pci_weigher
from nfv_sched.weights import shared_vcpu as shared_weigher
from nfv_sched.weights import vswitch_numa_affinity as vswitch_weigher

TOPOLOGY = 'NFVTopologyFilter'
VSWITCH = 'VSwitchNUMAAffinityFilter'
PCI = 'PCINUMAAffinityFilter'
PLACE = 'PlaceNUMAAffinityFilter'
SHARED = 'SharedVCPUFilter'
THREADS = 'CPUThreadPolicyFilter'
STOCK = 'NUMATopologyFilter'

OURS = tuple(rules.filters())

NEAR = f'{outcomes.AT}osd'
AWAY = f'{outcomes.AWAY_FROM}osd'

MAPPED = (TOPOLOGY, VSWITCH)
THREADED = (THREADS, TOPOLOGY)


# With more, all orders are too many.  No request concerns more.
_AT_ONCE = 5


def around(names):
    """These filters, and some that have nothing to do with the request."""
    names = set(names)
    for name in OURS:
        if len(names) < _AT_ONCE:
            names.add(name)
    return tuple(name for name in OURS if name in names)


def subsets(names):
    """All subsets in all orders."""
    for count in range(1, len(names) + 1):
        yield from itertools.permutations(names, count)


def orders(most=720):
    """All orders of our filters; of more than six some."""
    found = list(itertools.permutations(OURS))
    return random.Random(0).sample(found, min(most, len(found)))


def turns(names):
    """All orders in which each follows the same one."""
    return [names[place:] + names[:place] for place in range(len(names))]


def host(name='host1', nodes=2, threads=1, usage=(), pinned=(),
         switch=(1,), node_labels=True, devices=None, osd=(1,)):
    """A host with eight CPUs on each NUMA node, and much room.

    The switch, the PCI devices and OSDs are on node 1, where Nova by itself
    would not go first.

    :param usage: how much of the shared CPUs is used, by node
    :param pinned: dedicated CPUs that are taken, by node
    :param devices: free VFs of each node, by node
    """
    topology = clouds.host_topology(
        nodes, 8, switch=switch, node_labels=node_labels,
        physnets={'nfv_osd': osd}, threads=threads, shared=4)
    for cell, used in zip(topology.cells, usage):
        cell.cpu_usage = used
    for cell, taken in zip(topology.cells, pinned):
        cell.pinned_cpus = set(sorted(cell.pcpuset)[:taken])
    state = strategies.host_state(topology, cpu_ratio=100.0, name=name)
    state.pci_stats = clouds.pci_stats(
        topology, {1: 1} if devices is None else devices)
    return state


def request(vswitch='strict', pci='strict', shared=True, node=None,
            threads=None, cells=1, policy='legacy', near=None, away=None,
            more=None):
    """A request with a vCPU on shared CPUs and two on dedicated ones.

    :param pci: how near its only PCI device must be; None for no device
    :param shared: whether it names that vCPU, for which shared CPUs are
        kept; all are dedicated if it does not
    :param node: where guest node 0 must be
    :param policy: Nova's NUMA policy of the device
    :param near: whether it must be where OSDs are, or rather is
    :param away: whether it must be where no OSDs are, or rather is
    :param more: more extra specs
    """
    extra_specs = dict(more or {})
    if shared:
        extra_specs.update({
            'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0',
            'nfv:shared_vcpu': '0'})
    if threads is not None:
        extra_specs.update({
            'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': threads})
    if pci is not None:
        extra_specs['nfv:pci_numa_affinity'] = pci
    for key, value in ((NEAR, near), (AWAY, away)):
        if value is not None:
            extra_specs[key] = value
    spec = clouds.spec(
        vswitch, cells=cells, extra_specs=extra_specs,
        nodes=None if node is None else {0: node},
        devices=[] if pci is None else [clouds.pci_request(1, policy)])
    for cell in spec.numa_topology.cells:
        if shared:
            first = 3 * cell.id
            cell.cpuset, cell.pcpuset = {first}, {first + 1, first + 2}
            cell.cpu_policy = 'mixed'
        if threads is not None:
            cell.cpu_thread_policy = threads
    return spec


def fresh(state):
    """A host that no filter has met, as another was made."""
    again = copy.copy(state)
    again.limits = dict(state.limits)
    again.allocation_candidates = list(state.allocation_candidates)
    return again


@dataclasses.dataclass(frozen=True)
class Row:
    """A host that breaks one rule of a request.

    :ivar owners: filters that may refuse it, the first that is enabled does
    :ivar host: how it differs from one that keeps all rules
    :ivar asked: how the request differs from one that has all
    :ivar policy: how the reason begins
    :ivar always: the rule counts also if none of these is enabled
    """

    owners: tuple[str, ...]
    host: dict
    asked: dict
    policy: str
    always: bool = False

    @property
    def concerned(self) -> set[str]:
        """The filters that look at the hosts of such a request."""
        asked = {'vswitch': 'strict', 'pci': 'strict', 'shared': True,
                 'node': None, 'threads': None, 'near': None, 'away': None,
                 **self.asked}
        found = {TOPOLOGY}
        if asked['vswitch'] is not None or asked['node'] is not None:
            found.add(VSWITCH)
        if asked['pci'] is not None:
            found.add(PCI)
        if asked['near'] is not None or asked['away'] is not None:
            found.add(PLACE)
        if asked['shared']:
            found.add(SHARED)
        if asked['threads'] is not None:
            found.add(THREADS)
        return found.union(*(
            cls.filters[:1] for cls in rules.classes()
            if not set(cls.keys).isdisjoint(asked.get('more', ()))))

    @property
    def looked_at(self) -> tuple[str, ...]:
        return around(self.concerned)

    def refusing(self, enabled) -> str | None:
        """The filter that must refuse, None if the host passes."""
        owner = next((name for name in self.owners if name in enabled), None)
        for name in enabled:
            if name not in self.concerned:
                continue
            elif owner is None:
                if self.always:
                    return name
            elif name == owner:
                return name
        return None


ROWS = {
    'no room at all': Row(
        (TOPOLOGY,), dict(pinned=(4, 4)), {}, 'NUMA topology: ',
        always=True),
    'too few NUMA nodes': Row(
        (TOPOLOGY,), {}, dict(cells=3), 'NUMA topology: ',
        always=True),
    'no device at all': Row(
        (TOPOLOGY,), dict(devices={1: 0}), {},
        '', always=True),  # named after the key, if that counts
    'mapped to a node that is not there': Row(
        MAPPED, {}, dict(node=5), 'nfv:numa_node.0=5: ', always=True),
    'mapped to a full node': Row(
        MAPPED, dict(pinned=(0, 4)), dict(node=1, vswitch=None, pci=None),
        'nfv:numa_node.0=1: ', always=True),
    'mapped beside the device': Row(
        MAPPED, {}, dict(node=0), 'nfv:numa_node.0=0', always=True),
    'mapped and no labels': Row(
        MAPPED, dict(switch=None, node_labels=False),
        dict(node=1, vswitch=None, pci=None, shared=False),
        'nfv:numa_node.0=1: labels nfv_node0, nfv_node1, ... needed',
        always=True),
    'full where the switch is': Row(
        (VSWITCH,), dict(pinned=(0, 4)), dict(pci=None),
        'nfv:vswitch_numa_affinity=strict: '),
    'no switch declared': Row(
        (VSWITCH,), dict(switch=None), {},
        'nfv:vswitch_numa_affinity=strict: a host that declares'),
    'one node with the switch for two': Row(
        (VSWITCH,), {}, dict(cells=2),
        'nfv:vswitch_numa_affinity=strict: 2 host NUMA nodes'),
    'switch apart from the mapped node': Row(
        (VSWITCH,), dict(switch=(0,)), dict(node=1),
        'nfv:vswitch_numa_affinity=strict: the virtual switch on host NUMA '
        'node 1 needed'),
    'switch apart from what Nova wants near': Row(
        (VSWITCH,), dict(switch=(0,)), {},
        'nfv:vswitch_numa_affinity=strict: '),
    'on some nodes with the switch and no labels': Row(
        (VSWITCH,), dict(nodes=3, switch=(0, 1), node_labels=False),
        dict(cells=2, pci=None, shared=False),
        'nfv:vswitch_numa_affinity=strict: labels nfv_node0, '),
    'no room beside the device': Row(
        (PCI,), dict(pinned=(0, 4)), dict(policy='preferred', vswitch=None),
        'nfv:pci_numa_affinity=strict: '),
    'another device could be taken': Row(
        (PCI,), dict(devices={0: 1, 1: 1}), dict(policy='preferred'),
        'nfv:pci_numa_affinity=strict: '
        'hw:pci_numa_affinity_policy=required needed'),
    'full where the place is': Row(
        (PLACE,), dict(pinned=(0, 4)),
        dict(near='strict', vswitch=None, pci=None), f'{NEAR}=strict: '),
    'no place declared': Row(
        (PLACE,), dict(osd=()), dict(near='strict'),
        f'{NEAR}=strict: a host that declares'),
    'one node with the place for two': Row(
        (PLACE,), {}, dict(near='strict', cells=2, vswitch=None),
        f'{NEAR}=strict: 2 host NUMA nodes'),
    'place apart from the mapped node': Row(
        (PLACE,), dict(osd=(0,)), dict(near='strict', node=1),
        f'{NEAR}=strict: host NUMA node 1 with osd needed'),
    'place apart from what Nova wants near': Row(
        (PLACE,), dict(osd=(0,)), dict(near='strict', vswitch=None),
        f'{NEAR}=strict: '),
    'on some nodes with the place and no labels': Row(
        (PLACE,), dict(nodes=3, osd=(0, 1), node_labels=False),
        dict(near='strict', cells=2, vswitch=None, pci=None, shared=False),
        f'{NEAR}=strict: labels nfv_node0, '),
    'the place is everywhere': Row(
        (PLACE,), dict(osd=(0, 1)), dict(away='strict'),
        f'{AWAY}=strict: 1 host NUMA node without osd needed'),
    'full where the place is not': Row(
        (PLACE,), dict(osd=(0,), pinned=(0, 4)),
        dict(away='strict', vswitch=None, pci=None), f'{AWAY}=strict: '),
    'mapped to the place': Row(
        (PLACE,), dict(osd=(0,)),
        dict(away='strict', node=0, vswitch=None, pci=None),
        f'{AWAY}=strict: host NUMA node 0 without osd needed'),
    'what Nova wants near is at the place': Row(
        (PLACE,), {}, dict(away='strict', vswitch=None), f'{AWAY}=strict: '),
    'away from the place and no labels': Row(
        (PLACE,), dict(switch=None, osd=(0,), node_labels=False),
        dict(away='strict', vswitch=None, pci=None, shared=False),
        f'{AWAY}=strict: labels nfv_node0, '),
    'shared CPUs full': Row(
        (SHARED,), dict(usage=(64, 64)), {},
        'nfv:shared_vcpu=0: capacity for 1 on the shared CPUs'),
    'require, and no siblings': Row(
        THREADED, {}, dict(threads='require', shared=False),
        'hw:cpu_thread_policy=require: ', always=True),
    'isolate, and siblings': Row(
        THREADED, dict(threads=2), dict(threads='isolate', shared=False),
        'hw:cpu_thread_policy=isolate: ', always=True),
    'several wrongs, of which the first counts': Row(
        THREADED, dict(pinned=(4, 4), switch=None, devices={}),
        dict(threads='require', shared=False, node=5),
        'hw:cpu_thread_policy=require: ', always=True),
}


class _Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class RefusingTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='none')
        self.handler = nova_filters.HostFilterHandler()
        self.filters = {cls.__name__: cls() for cls in (
            *filters.all_filters(), numa_topology_filter.NUMATopologyFilter)}
        self.nova, self.ours = _Lines(), _Lines()
        self.useFixture(fixtures.FakeLogger('nova.virt.hardware'))
        for handler, name in ((self.nova, 'nova.filters'),
                              (self.ours, 'nfv_sched.scheduler.refusals')):
            self.useFixture(fixtures.LogHandler(
                handler, name, level=logging.INFO))
            # There are thousands of lines.
            self.useFixture(fixtures.MockPatchObject(
                logging.getLogger(name), 'propagate', False))

    def run_filters(self, hosts, spec, enabled, index=0):
        self.nova.lines.clear()
        self.ours.lines.clear()
        self.flags(enabled_filters=list(enabled), group='filter_scheduler')
        return [state.host for state in self.handler.get_filtered_objects(
            [self.filters[name] for name in enabled], hosts, spec, index)]

    @staticmethod
    @contextlib.contextmanager
    def named(title, enabled):
        try:
            yield
        except AssertionError as exc:
            raise AssertionError(
                f'{title}, {", ".join(enabled)}: {exc}') from exc

    def removed(self):
        """Hosts that each filter removed, as Nova's log says."""
        text, = [line for line in self.nova.lines
                 if line.startswith('Filtering removed all hosts')]
        return {name: int(start) - int(end) for name, start, end in re.findall(
            r'(\w+): \(start: (\d+), end: (\d+)\)', text)}

    def assertRefusedBy(self, name, enabled):
        """Both Nova's log and our own name a filter, and no other."""
        self.assertIn(f'Filter {name} returned 0 hosts', self.nova.lines)
        self.assertEqual(
            {known: int(known == name)
             for known in enabled[:enabled.index(name) + 1]}, self.removed())
        line, = self.ours.lines
        self.assertTrue(line.startswith(
            f'{name} refused the last host for server '), line)


class TestTable(RefusingTestCase):

    def test_the_host_passes_without_the_wrong(self):
        """So that it is that one wrong for which the rows are refused."""
        asked = [dict(), dict(node=1), dict(policy='required')]
        asked += [dict(threads=policy, shared=False, node=1)
                  for policy in ('isolate', 'require')]
        asked += [dict(near='strict'), dict(away='strict'),
                  dict(away='strict', node=1)]
        for case in asked:
            state = host(threads=2 if case.get('threads') == 'require' else 1,
                         osd=(0,) if case.get('away') else (1,))
            spec = request(**case)
            for enabled in subsets(Row((), {}, case, '').looked_at):
                self.assertEqual(['host1'], self.run_filters(
                    [fresh(state)], copy.copy(spec), enabled), (case, enabled))

    def test_any_subset_in_any_order(self):
        refused = {}
        for title, row in ROWS.items():
            state, spec = host(**row.host), request(**row.asked)
            for enabled in subsets(row.looked_at):
                passed = self.run_filters(
                    [fresh(state)], copy.copy(spec), enabled)
                name = row.refusing(enabled)
                with self.named(title, enabled):
                    if set(row.owners) <= set(enabled):
                        self.assertEqual(row.owners[0], name)
                    if row.always and row.concerned & set(enabled):
                        self.assertIsNotNone(name)
                    self.assertEqual([] if name else ['host1'], passed)
                    if name is not None:
                        self.assertRefusedBy(name, enabled)
                        if row.policy:
                            self.assertIn(f': {row.policy}',
                                          self.ours.lines[0])
                refused.setdefault(title, set()).add(name)
        for title, row in ROWS.items():
            self.assertLessEqual(set(row.owners), refused[title], title)

    def test_what_tenants_read(self):
        """The reason is of the same filter, and told by it."""
        self.flags(expose_reasons='summary')
        for title, row in ROWS.items():
            for enabled in (*turns(OURS), *turns(OURS[::-1])):
                error = self.assertRaises(
                    exception.NoValidHost, self.run_filters,
                    [host(**row.host)], request(**row.asked), enabled)
                with self.named(title, enabled):
                    self.assertIn(row.policy, str(error))
                    line, = self.ours.lines
                    self.assertTrue(line.startswith(
                        f'{row.owners[0]} refused the last host for server '),
                        line)

    def test_among_other_hosts(self):
        asked = dict(policy='preferred', node=1, near='strict')
        wrongs = {
            TOPOLOGY: [dict(pinned=(4, 4)), dict(nodes=1, switch=(0,))],
            VSWITCH: [dict(switch=None), dict(switch=(0,))],
            PCI: [dict(devices={0: 1, 1: 1})],
            PLACE: [dict(osd=()), dict(osd=(0,))],
            SHARED: [dict(usage=(64, 64)),
                     dict(usage=(64, 64), switch=None)]}
        for enabled in itertools.permutations(wrongs):
            hosts = [
                host(f'host{number}', **wrong) for number, wrong in enumerate(
                    itertools.chain.from_iterable(wrongs.values()))]
            self.assertEqual(
                [], self.run_filters(hosts, request(**asked), enabled))
            self.assertEqual(
                {name: len(wrongs[name]) for name in enabled},
                self.removed())

    def test_requests_that_no_host_can_take(self):
        """No rule has nothing left: the first filter says so."""
        for enabled in orders():
            self.run_filters(
                [host()], request(more={'nfv:no_such': '1'}), enabled)
            self.assertRefusedBy(enabled[0], enabled)

    def test_later_servers_of_a_request(self):
        """The switch's node is full then, and nobody may raise."""
        self.flags(expose_reasons='summary')
        for enabled in orders():
            state, spec = host(pinned=(0, 2)), request(pci=None)
            self.assertEqual(
                ['host1'], self.run_filters([state], spec, enabled))
            place(state, spec)
            self.assertEqual(
                [], self.run_filters([state], spec, enabled, 1))
            self.assertRefusedBy(VSWITCH, enabled)


def place(state, spec):
    """Nova puts a server on the host and comes to the next one."""
    spec.instance_uuid = '6a0ae9d2-1d5e-4d2c-9c54-5c0f0b1b3a55'
    state.consume_from_request(spec)


class TestTwoRules(RefusingTestCase):
    """Each alone has something left; the later one finds nothing."""

    def test_the_later_one_refuses(self):
        self.flags(strict_enforcement='predicted')
        for pair, made, asked in (
                ((VSWITCH, PCI), dict(switch=(0,)), dict(policy='preferred')),
                ((VSWITCH, PLACE), dict(switch=(0,)),
                 dict(near='strict', pci=None)),
                ((VSWITCH, PLACE), {}, dict(away='strict', pci=None)),
                ((PCI, PLACE), dict(osd=(0,)), dict(
                    near='strict', policy='preferred', vswitch=None)),
                ((PCI, PLACE), {}, dict(
                    away='strict', policy='preferred', vswitch=None))):
            state, spec = host(**made), request(**asked)
            for enabled in subsets(Row(pair, made, asked, '').looked_at):
                passed = self.run_filters(
                    [fresh(state)], copy.copy(spec), enabled)
                both = [name for name in enabled if name in pair]
                with self.named(str(asked), enabled):
                    self.assertEqual(
                        [] if len(both) == 2 else ['host1'], passed)
                    if len(both) == 2:
                        self.assertRefusedBy(both[1], enabled)


def without(enabled):
    return [name for name in enabled if name != VSWITCH]


class TestSeveralTries(RefusingTestCase):
    """A host that is tried in several ways; the one that comes furthest."""

    def test_several_allocation_candidates(self):
        """One of them has room for Nova, but not near the switch."""
        spec = request(shared=False)
        devices, = spec.pci_requests.requests
        full = host(switch=(0,), pinned=(4, 0), devices={0: 1, 1: 1})
        for pool in full.pci_stats.pools:
            pool['rp_uuid'] = strategies.provider(pool['numa_node'])
        candidates = [
            {'allocations': {}, 'mappings': {
                f'{devices.request_id}-0': [strategies.provider(number)]}}
            for number in range(2)]
        for enabled in orders():
            for first in (0, 1):
                state = fresh(full)
                state.allocation_candidates = [
                    candidates[first], candidates[1 - first]]
                self.assertEqual(['host1'], self.run_filters(
                    [fresh(state)], copy.copy(spec), without(enabled)))
                self.assertEqual([], self.run_filters(
                    [state], copy.copy(spec), enabled))
                with self.named(f'candidate {first} first', enabled):
                    self.assertRefusedBy(VSWITCH, enabled)

    def test_tunnel_that_may_not_be_used(self):
        """Nova says so of every move; without it there is room."""
        def spec():
            return clouds.spec('strict', move=True,
                               network=clouds.network(tunneled=True))

        for enabled in orders():
            state = clouds.host(switch=(0,), tunnel=(0,), free={0: 1})
            self.assertEqual(['host1'], self.run_filters(
                [fresh(state)], spec(), without(enabled)))
            self.assertEqual([], self.run_filters([state], spec(), enabled))
            with self.named('tunnel', enabled):
                self.assertRefusedBy(VSWITCH, enabled)


class TestBesideStock(RefusingTestCase):
    """Nova's NUMATopologyFilter would write over labels."""

    def passes(self, asked, enabled):
        return bool(self.run_filters(
            [host()], request(**asked), enabled))

    def test_refuses(self):
        device = dict(vswitch=None, pci=None, shared=False)
        for enabled, asked in (
                ((TOPOLOGY, VSWITCH, STOCK), {}),
                ((STOCK, VSWITCH), {}),
                ((VSWITCH, STOCK), dict(device, vswitch='prefer')),
                ((STOCK, SHARED), dict(device, shared=True)),
                ((TOPOLOGY, STOCK), dict(device, node=1)),
                ((THREADS, STOCK), dict(device, node=1, threads='require'))):
            self.assertFalse(self.passes(asked, enabled), (enabled, asked))
            self.assertRefusedBy(
                next(name for name in enabled if name != STOCK), enabled)
            self.assertIn('NUMATopologyFilter: must not be enabled',
                          self.ours.lines[-1])

    def test_passes_what_needs_no_labels(self):
        plain = dict(vswitch=None, pci=None, shared=False)
        for enabled, asked in (
                ((TOPOLOGY, VSWITCH, STOCK), plain),
                ((THREADS, STOCK), dict(plain, threads='isolate')),
                # No filter keeps its policy.
                ((THREADS, STOCK), dict(
                    plain, threads='isolate', vswitch='strict'))):
            self.assertTrue(self.passes(asked, enabled), (enabled, asked))

    def test_in_shadow(self):
        self.flags(shadow=[TOPOLOGY, VSWITCH])
        for enabled in ((TOPOLOGY, VSWITCH, STOCK), (STOCK, VSWITCH)):
            self.assertTrue(self.passes({}, enabled), enabled)
        self.flags(shadow=[TOPOLOGY])
        self.assertFalse(self.passes({}, (TOPOLOGY, VSWITCH, STOCK)))


class TestLimits(RefusingTestCase):
    """What the claim is told does not depend on the order."""

    def limits(self, state):
        return (state.limits['numa_topology'].obj_to_primitive(),
                [candidate['mappings']
                 for candidate in state.allocation_candidates])

    def test_same_with_hosts_that_are_left_to_others(self):
        """A host on its way to the filter that refuses it is not in it."""
        good, spec = host('good'), request()
        wrong = [host(title, **row.host) for title, row in ROWS.items()
                 if not row.asked]
        for enabled in orders():
            hosts = [fresh(state) for state in (good, *wrong)]
            self.assertEqual(
                ['good'], self.run_filters(hosts, copy.copy(spec), enabled))
            alone = fresh(good)
            self.run_filters([alone], copy.copy(spec), enabled)
            self.assertEqual(self.limits(alone), self.limits(hosts[0]))
            for state in hosts[1:]:
                self.assertNotIn('numa_topology', state.limits)


class TestWeighersAlone(RefusingTestCase):
    """A weigher whose filter is not enabled ranks, and does no more."""

    def course(self, make, spec, weigher):
        """Place two servers; return hosts that passed and their limits."""
        hosts, found = [make('one'), make('two')], []
        for index in range(2):
            passed = self.run_filters(hosts, spec, (TOPOLOGY,), index)
            left = [state for state in hosts if state.host in passed]
            if weigher is not None:
                clouds.weigh(weigher, spec, *left)
            found.append((passed, [
                state.limits['numa_topology'].obj_to_primitive()
                for state in left]))
            if left:
                place(left[0], spec)
        return found

    def test_second_server_is_treated_like_the_first(self):
        for weigher, broken, asked in (
                (vswitch_weigher.VSwitchNUMAAffinityWeigher(), {},
                 dict(vswitch='prefer', pci=None)),
                (pci_weigher.PCINUMAAffinityWeigher(),
                 dict(devices={0: 1, 1: 2}),
                 dict(vswitch=None, pci='prefer', policy='preferred')),
                (shared_weigher.SharedVCPUWeigher(), {}, dict(pci=None)),
                (shared_weigher.SharedVCPUWeigher(), dict(usage=(64, 64)),
                 dict(pci=None))):
            make = functools.partial(host, **broken)
            without = self.course(make, request(**asked), None)
            self.assertEqual(
                without, self.course(make, request(**asked), weigher),
                (type(weigher).__name__, broken, asked))
            self.assertEqual(['one', 'two'], without[1][0])
