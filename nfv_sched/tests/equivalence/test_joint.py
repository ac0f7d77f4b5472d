# SPDX-License-Identifier: Apache-2.0
"""All policies at once, against a brute-force oracle and Nova's own claim.

Whatever combination of policies a request has and whatever filters are
enabled, in whatever order:

* a host that they accept has an assignment that satisfies everything, and the
  claim made with what they left on the host never breaks a strict policy,
  neither on the host as it is nor with other guests on it;
* a host that they refuse has no such assignment, or the claim could not be
  held to it;
* what is merely preferred costs no host, and comes true where it can.
"""

import itertools

import hypothesis
from nova import exception
from nova import objects
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter

from nfv_sched.filters import all_filters
from nfv_sched.tests.equivalence import claims
from nfv_sched.tests.equivalence import joint
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests.unit import clouds
from nfv_sched.weights import all_weighers


class JointTestCase(test_stock.EquivalenceTestCase):
    enforcement = 'claim'

    def setUp(self):
        super().setUp()
        self.filters = {cls.__name__: cls() for cls in all_filters()}
        self.filters[joint.STOCK] = (
            numa_topology_filter.NUMATopologyFilter())
        self.passthrough = pci_passthrough_filter.PciPassthroughFilter()
        self.weighers = {cls.__name__: cls() for cls in all_weighers()}
        self.seen = dict.fromkeys((
            'run', 'accepted', 'refused', 'refused though possible',
            'strict accepted', 'claimed later', 'devices', 'several nodes',
            'shared vCPU', 'preferred and got', 'preferred by Nova',
            'at a place', 'away from a place', 'places preferred',
            'at and away'), 0)

    def configure(self, case):
        self.flags(shared_vcpus_per_core=case.data['per_core'],
                   strict_enforcement=self.enforcement)
        self.flags('compute', packing_host_numa_cells_allocation_strategy=(
            case.data['packing']))

    def enabled(self, case):
        return [self.filters[name] for name in case.data['enabled']] + [
            self.passthrough]

    def verdict(self, case, filters):
        """Enable and run filters in order; return state, spec and verdict."""
        self.flags('filter_scheduler', enabled_filters=[
            type(each).__name__ for each in filters])
        state, spec = case.state(), case.spec()
        return state, spec, all(
            each.host_passes(state, spec) for each in filters)

    def left(self, state):
        """What the filters have left on a host, to compare."""
        limits = state.limits.get('numa_topology')
        if limits is not None:
            metadata = (limits.network_metadata
                        if 'network_metadata' in limits else None)
            limits = (limits.cpu_allocation_ratio,
                      limits.ram_allocation_ratio,
                      sorted(metadata.physnets) if metadata else [],
                      bool(metadata and metadata.tunneled))
        return limits, [each['number'] for each in
                        state.allocation_candidates]

    def claim(self, case, usage, limits, candidate, record=True):
        return claims.claim(
            case.host(usage), case.guest, limits,
            case.pools(usage, candidate), case.requests, candidate, record)

    def run_cases(self):
        @test_stock.SETTINGS
        @hypothesis.given(data=joint.cases())
        def check(data):
            self.check_case(data)

        check()
        print('joint, %s: %s' % (type(self).__name__, self.seen))

    def check_case(self, data):
        try:
            case = joint.Case(data)
        except exception.NovaException:
            # Nova's API would not accept such a flavor.
            return
        self.seen['run'] += 1
        self.configure(case)
        oracle = joint.Oracle(case)
        filters = self.enabled(case)
        state, spec, accepted = self.verdict(case, filters)
        self.check_order(case, filters, state, accepted)
        if oracle.contradiction():
            self.seen['at and away'] += oracle.at_and_away()
            if joint.SHARED in data['enabled'] or oracle.at_and_away():
                self.assertFalse(accepted)
            return
        if accepted:
            self.seen['accepted'] += 1
            self.check_accepted(case, oracle, state, spec)
        else:
            self.seen['refused'] += 1
            self.check_refused(case, oracle)

    def check_order(self, case, filters, state, accepted):
        turned = filters[1:] + filters[:1]
        for other in (filters[::-1], turned, turned[::-1]):
            again, _spec, verdict = self.verdict(case, other)
            self.assertEqual(accepted, verdict)
            if accepted:
                self.assertEqual(self.left(state), self.left(again))

    def check_accepted(self, case, oracle, state, spec):
        raise NotImplementedError()

    def check_refused(self, case, oracle):
        raise NotImplementedError()

    # -- what Nova would do

    def stock_accepts(self, case, oracle):
        """Whether Nova's own filters pass the host.

        A guest with a shared vCPU has a lower allocation ratio.
        """
        state, spec = case.state(), case.spec()
        for cell in case.host(case.data['now']).cells:
            cap = oracle.cap(cell)
            if cap is not None and cell.cpuset:
                state.cpu_allocation_ratio = min(
                    state.cpu_allocation_ratio, cap / len(cell.cpuset))
        return self.filters[joint.STOCK].host_passes(state, spec) and \
            self.passthrough.host_passes(state, spec)

    def limits(self, case, oracle, labels):
        """The limits that a scheduler could send with these labels."""
        ratio = case.data['cpu_ratio']
        for cell in case.host(case.data['now']).cells:
            cap = oracle.cap(cell)
            if cap is not None and cell.cpuset:
                ratio = min(ratio, cap / len(cell.cpuset))
        physnets, tunneled = set(labels), False
        if case.network is not None:
            physnets |= case.network.physnets
            tunneled = case.network.tunneled
        return objects.NUMATopologyLimits(
            cpu_allocation_ratio=ratio, ram_allocation_ratio=1.5,
            network_metadata=objects.NetworkMetadata(
                physnets=physnets, tunneled=tunneled))

    def label_sets(self, case, oracle, nodes):
        """Labels of the host that may lead a claim to these host nodes.

        Those that say where something is, of the switch and of the places
        where the guest must be, and the names of the nodes.
        """
        where = {place.label for place in oracle.places
                 if place.strict and not place.away and place.label}
        if case.data['labels'] in ('nodes', 'vswitch'):
            where.add(joint.SWITCH_LABEL)
        found = [labels for count in range(len(where) + 1)
                 for labels in itertools.combinations(sorted(where), count)]
        if case.data['labels'] == 'nodes':
            found.append(tuple('nfv_node%d' % node for node in nodes))
        return found

    def held(self, case, oracle, labels, candidate):
        """Whether labels hold a guest with one NUMA node to what is asked.

        In whatever state the host is; plain but sure.
        """
        nodes = set(range(case.nodes))
        for label in labels:
            name = label.removeprefix('nfv_')
            if label == joint.SWITCH_LABEL:
                nodes &= set(case.data['switch'])
            elif name in joint.PLACES:
                nodes &= set(case.data['places'][name])
            else:
                nodes &= {int(label.removeprefix('nfv_node'))}
        return all(oracle.keeps((node,)) and
                   oracle.holds(candidate, {node}) for node in nodes)


class TestStrict(JointTestCase):
    """Strict policies, with a claim that cannot end otherwise."""

    def test_joint(self):
        self.run_cases()
        cases = test_stock.CASES
        self.assertGreater(self.seen['run'], cases // 2)
        self.assert_seen(self.seen['strict accepted'], cases // 100)
        self.assert_seen(self.seen['claimed later'], cases // 20)
        self.assert_seen(self.seen['several nodes'], cases // 50)
        self.assert_seen(self.seen['devices'], cases // 20)
        self.assertGreaterEqual(self.seen['shared vCPU'], cases // 500)
        # These are rare.
        if cases >= 2000:
            self.assert_seen(
                self.seen['refused though possible'], cases // 500)
            self.assert_seen(self.seen['at and away'], cases // 500)
            self.assert_seen(self.seen['at a place'], cases // 500)
            self.assert_seen(self.seen['away from a place'], cases // 500)

    def check_accepted(self, case, oracle, state, spec):
        data = case.data
        limits = state.limits.get('numa_topology')
        candidate = state.allocation_candidates[0]
        if case.guest is not None:
            self.assertTrue(
                oracle.assignments(data['now'], candidate) or
                not oracle.strict and self.stock_accepts(case, oracle),
                'no assignment satisfies everything')
        if oracle.strict:
            self.seen['strict accepted'] += 1
        if oracle.shared_vcpu is not None:
            self.seen['shared vCPU'] += 1
        labelled = limits is not None and 'network_metadata' in limits and \
            any(label.startswith('nfv_')
                for label in limits.network_metadata.physnets)
        claimed = self.claim(case, data['now'], limits, candidate,
                             record=labelled)
        if oracle.strict or len(case.candidates()) == 1:
            self.assertIsNotNone(claimed, 'the claim fails')
        for usage in [data['now']] + (
                data['later'] if self.enforcement == 'claim' else []):
            claimed = self.claim(case, usage, limits, candidate)
            if claimed is None:
                continue
            self.assertIsNone(oracle.broken(claimed, usage))
            if usage is not data['now']:
                self.seen['claimed later'] += 1
            self.seen['devices'] += len(claimed.devices)
            for place in oracle.places:
                if place.strict and place.label:
                    self.seen['away from a place' if place.away
                              else 'at a place'] += 1
            self.seen['several nodes'] += len(claimed.nodes) > 1

    def check_refused(self, case, oracle):
        data = case.data
        if case.guest is None:
            self.check_floating(case, oracle)
            return
        candidates = case.candidates()
        possible = [(nodes, candidate) for candidate in candidates
                    for nodes in oracle.assignments(data['now'], candidate)]
        if not possible:
            return
        if not self.stock_accepts(case, oracle):
            # Nova's own search, or the shared CPUs of unlike host nodes.
            return
        self.assertTrue(oracle.strict, 'a preference cost a host')
        self.seen['refused though possible'] += 1
        for nodes, candidate in possible:
            for labels in self.label_sets(case, oracle, nodes):
                if len(nodes) > 1 and not self.several_held(
                        case, oracle, labels, nodes, candidate):
                    continue
                if len(nodes) == 1 and self.enforcement == 'claim' and \
                        not self.held(case, oracle, labels, candidate):
                    continue
                claimed = self.claim(
                    case, data['now'], self.limits(case, oracle, labels),
                    candidate)
                self.assertFalse(
                    claimed and not oracle.broken(claimed, data['now']),
                    'refused, but labels %s and candidate %s would do: %s' % (
                        labels, candidate['number'], claimed))

    def several_held(self, case, oracle, labels, nodes, candidate):
        """The same for several guest NUMA nodes, where it is plain.

        Like guest cells on a host with at most one node to spare: Nova finds
        every set of nodes, and the label of each node enforces it.
        """
        cells = case.guest.cells
        alike = len({(len(cell.cpuset), len(cell.pcpuset), cell.memory)
                     for cell in cells}) == 1
        return (
            case.data['labels'] == 'nodes' and alike and
            not case.guest.emulator_threads_isolated and
            case.nodes - len(cells) <= 1 and not oracle.node_map and
            set(labels) == {'nfv_node%d' % node for node in nodes} and
            oracle.holds(candidate, set(nodes)))

    def check_floating(self, case, oracle):
        """A guest without NUMA topology was refused."""
        if not self.stock_accepts(case, oracle):
            return
        self.assertTrue(oracle.strict, 'a preference cost a host')
        if case.nodes == 1:
            self.assertFalse(
                oracle.keeps((0,)) and (
                    oracle.vswitch != 'strict' or 0 in oracle.switch),
                'refused, but the host is one NUMA node')
        else:
            self.assertTrue(
                oracle.needs_topology,
                'refused, but the host has no such place')


class TestPredicted(TestStrict):
    """The same where a prediction of the claim is enough."""

    enforcement = 'predicted'

    def test_joint(self):
        self.run_cases()
        cases = test_stock.CASES
        self.assertGreater(self.seen['run'], cases // 2)
        self.assert_seen(self.seen['strict accepted'], cases // 50)
        self.assertGreaterEqual(
            self.seen['refused though possible'], cases // 1000)


class TestPreferred(JointTestCase):
    """What is preferred comes true where it can, and is weighed."""

    def test_joint(self):
        self.run_cases()
        cases = test_stock.CASES
        self.assertGreater(self.seen['run'], cases // 2)
        if cases >= 2000:
            self.assert_seen(self.seen['preferred and got'], cases // 500)
        self.assertGreaterEqual(
            self.seen['preferred by Nova'], cases // 5000)
        self.assertGreaterEqual(
            self.seen['places preferred'], cases // 500)

    def check_refused(self, case, oracle):
        """Seen to by :class:`TestStrict`."""

    def check_accepted(self, case, oracle, state, spec):
        data = case.data
        if case.guest is None:
            return
        candidate = state.allocation_candidates[0]
        limits = state.limits.get('numa_topology')
        claimed = self.claim(case, data['now'], limits, candidate,
                             record=False)
        if claimed is None:
            return
        self.check_weights(case, oracle, state, spec, claimed)
        if not any(key.startswith('nfv:') for key in case.specs):
            # Nova's own preference ranks, and does not steer the claim.
            self.assertFalse(limits is not None and any(
                label.startswith('nfv_') for label in self.left(state)[0][2]))
            self.seen['preferred by Nova'] += oracle.pci == 'prefer'
            return
        wanted = (oracle.pci == 'prefer', bool(
            oracle.vswitch == 'prefer' and oracle.switch))
        places = oracle.at_places(claimed)
        if not any(wanted) and not places or len(case.guest.cells) > 1 or \
                data['labels'] != 'nodes' or \
                oracle.strict and self.enforcement == 'claim' and \
                oracle.pci == 'strict':
            return
        found = self.score(oracle, claimed, wanted)
        best = (0, 0)
        for node, each in itertools.product(
                range(case.nodes), case.candidates()):
            if not oracle.keeps((node,)):
                continue
            other = self.claim(
                case, data['now'], self.limits(
                    case, oracle, ['nfv_node%d' % node]), each)
            if other is not None and not oracle.broken(other, data['now']):
                best = max(best, self.score(oracle, other, wanted))
        self.assertGreaterEqual(found, best)
        self.seen['preferred and got'] += best > (0, 0)
        self.seen['places preferred'] += bool(places) and best > (0, 0)

    def score(self, oracle, claimed, wanted):
        """Both come first, then the switch, then the devices.

        With places as many as can be come true.
        """
        local, switch = (value if wish else 0.0 for value, wish in zip(
            oracle.locality(claimed), wanted))
        places = oracle.at_places(claimed)
        if places:
            return sum(value == 1 for value in (local, switch, *places)), 0
        return local + switch, switch

    def check_weights(self, case, oracle, state, spec, claimed):
        got = oracle.locality(claimed)
        weights = {
            name: clouds.weigh(weigher, spec, state)[0]
            for name, weigher in self.weighers.items()}
        for weight in weights.values():
            self.assertGreaterEqual(weight, 0.0)
            self.assertLessEqual(weight, 1.0)
        if oracle.pci == 'prefer':
            self.assertAlmostEqual(
                got[0], weights['PCINUMAAffinityWeigher'])
        if oracle.vswitch == 'prefer':
            self.assertAlmostEqual(
                got[1], weights['VSwitchNUMAAffinityWeigher'])
        places = oracle.at_places(claimed)
        if places:
            self.assertAlmostEqual(
                sum(places) / len(places),
                weights['PlaceNUMAAffinityWeigher'])
        if oracle.shared_vcpu is not None:
            self.assertLess(weights['SharedVCPUWeigher'], 1.0)
