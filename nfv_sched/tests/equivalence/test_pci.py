# SPDX-License-Identifier: Apache-2.0
"""PCI devices: the filters against Nova's own on generated hosts.

``NFVTopologyFilter`` takes the place of ``NUMATopologyFilter`` beside
``PciPassthroughFilter``.  For requests without any key of ours both pairs
must accept the same hosts and leave the same allocation candidates, and the
claim on the compute node must find the devices.

Nova copies all pools of a host for each arrangement of the guest's cells.
Cases with more than ``MAX_PERMUTATIONS`` of them are skipped, and counted.
"""

import itertools
from unittest import mock

import fixtures
import hypothesis
from hypothesis import strategies as st
from nova import exception
from nova import objects
from nova.pci import stats
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from nova.virt import hardware

from nfv_sched.filters import nfv_topology
from nfv_sched.fit.numa import evaluation
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import topology
from nfv_sched.ops.simulator import scheduler
from nfv_sched.tests.equivalence import claims
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies

MAX_PERMUTATIONS = 400
MAX_SETS = 8
NODE_LABELS = tuple('nfv_node%d' % node for node in range(4))


@st.composite
def clouds(draw):
    """Draw a host with PCI devices, a guest that asks for some, candidates."""
    labels = NODE_LABELS if draw(st.integers(0, 2)) == 0 else ()
    host = draw(strategies.host_topologies(max_cells=6, labels=labels))
    for cell in host.cells:
        if labels and 'network_metadata' in cell:
            # A label means one host node.
            cell.network_metadata.physnets -= set(NODE_LABELS)
            cell.network_metadata.physnets.add('nfv_node%d' % cell.id)
    for cell in host.cells[1:]:
        if draw(st.integers(0, 2)) == 1:
            # Full: devices there are of no use to most guests.
            cell.pinned_cpus = set(cell.pcpuset)
            cell.cpu_usage = 100
    if draw(st.booleans()):
        shift = draw(st.sampled_from((1, 4)))
        for cell in host.cells:
            cell.socket = (None if draw(st.integers(0, 19)) == 0
                           else cell.id // shift)
    guest = draw(st.one_of(
        *[strategies.guest_topologies(max_cells=3)] * 5, st.none()))
    nodes = tuple(cell.id for cell in host.cells)
    pools = draw(strategies.pci_pools(
        nodes, in_placement=draw(st.integers(0, 3)) != 1))
    requests = draw(strategies.pci_requests(pools))
    candidates = draw(strategies.pci_candidates(
        requests, pools, strategies.ROOT))
    if draw(st.integers(0, 19)) == 0:
        pools = None
    return host, guest, pools, requests, candidates


class TestPCIEquivalence(test_stock.EquivalenceTestCase):
    """With PCI devices too, the drop-in accepts what Nova's filter accepts."""

    def _accepts(self, filters, state, spec):
        try:
            return all(each.host_passes(state, spec) for each in filters)
        except ValueError:
            # A host cell with CPUs for pinning and no siblings at all makes
            # Nova fail the whole request.
            return False

    def test_endless_searches(self):
        """The simulator refuses a host exactly where Nova's search is long."""
        seen = dict.fromkeys(('run', 'endless', 'long but found'), 0)
        most = 3
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.fit.numa.evaluation.MAX_CLAIM_TRIES', most))
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.fit.numa.evaluation.many_permutations',
            evaluation.many_permutations.__wrapped__))
        tried = []

        def permutations(cells, count):
            tried.append(0)
            for each in itertools.permutations(cells, count):
                yield each
                tried[-1] += 1

        @test_stock.SETTINGS
        @hypothesis.given(cloud=clouds(),
                          network=strategies.network_metadata())
        def check(cloud, network):
            host, guest, pools, requests, candidates = cloud
            if guest is None or test_stock.permutations(
                    host, guest) > MAX_PERMUTATIONS:
                return
            tried.clear()
            state, twin = (strategies.host_state(
                strategies.clone(host), 4.0, 1.5, candidates=candidates[:1],
                pools=pools) for _ in range(2))
            with mock.patch.object(hardware, 'itertools', mock.Mock(
                    wraps=itertools, permutations=permutations)):
                if not self._accepts(
                        [numa_topology_filter.NUMATopologyFilter()], state,
                        strategies.request_spec(guest, network, pci=requests)):
                    tried.append(test_stock.permutations(host, guest))
            seen['run'] += 1
            endless = max(tried) > most
            seen['endless'] += endless
            seen['long but found'] += not endless and test_stock.permutations(
                host, guest) > most
            self.assertEqual(endless, scheduler.too_many_arrangements(
                twin, strategies.request_spec(guest, network, pci=requests)))

        check()
        print('endless: %(run)d searches, %(endless)d endless, '
              '%(long but found)d not, of many permutations' % seen)
        self.assert_seen(seen['long but found'], seen['run'] // 50)

    def test_same_hosts_same_candidates_and_the_claim(self):
        seen = dict.fromkeys(
            ('run', 'skipped', 'accepted', 'refused for PCI', 'mapped',
             'dropped', 'claimed', 'devices'), 0)

        @test_stock.SETTINGS
        @hypothesis.given(
            cloud=clouds(), network=strategies.network_metadata(),
            pci_first=st.booleans(), native=st.booleans(),
            packing=st.sampled_from((False, False, True)))
        def check(cloud, network, pci_first, native, packing):
            host, guest, pools, requests, candidates = cloud
            if guest is not None and test_stock.permutations(
                    host, guest) * len(candidates) > MAX_PERMUTATIONS:
                seen['skipped'] += 1
                return
            seen['run'] += 1
            self.flags('compute',
                       packing_host_numa_cells_allocation_strategy=packing)
            policies = {request.numa_policy for request in requests}
            specs = {}
            if native and len(policies) == 1 and None not in policies:
                specs['hw:pci_numa_affinity_policy'] = min(policies)
            verdicts = []
            states = []
            for numa in (numa_topology_filter.NUMATopologyFilter(),
                         nfv_topology.NFVTopologyFilter()):
                state = strategies.host_state(
                    strategies.clone(host), 4.0, 1.5, candidates=candidates,
                    pools=pools)
                filters = [numa, pci_passthrough_filter.PciPassthroughFilter()]
                if pci_first:
                    filters.reverse()
                verdicts.append(self._accepts(
                    filters, state, strategies.request_spec(
                        guest, network, specs, pci=requests)))
                states.append(state)
            stock, ours = states
            self.assertEqual(*verdicts)
            if not verdicts[0]:
                plain = strategies.host_state(
                    strategies.clone(host), 4.0, 1.5)
                seen['refused for PCI'] += self._accepts(
                    [nfv_topology.NFVTopologyFilter()], plain,
                    strategies.request_spec(guest, network))
                return
            seen['accepted'] += 1
            left, mine = ([each['number'] for each in
                           state.allocation_candidates] for state in states)
            if 'preferred' in policies:
                left, mine = sorted(left), sorted(mine)
            self.assertEqual(left, mine)
            seen['mapped'] += any(
                len(each['mappings']) > 1 for each in candidates)
            seen['dropped'] += len(left) < len(candidates)
            claimed = claims.claim(
                host, guest, ours.limits.get('numa_topology'), pools,
                requests, ours.allocation_candidates[0],
                record=False)
            if len(candidates) == 1:
                self.assertIsNotNone(claimed)
            if claimed is not None:
                seen['claimed'] += 1
                seen['devices'] += len(claimed.devices)

        check()
        print('PCI equivalence: %s' % seen)
        cases = test_stock.CASES
        self.assertGreater(seen['run'], cases // 2)
        self.assert_seen(seen['accepted'], cases // 20)
        self.assert_seen(seen['refused for PCI'], cases // 20)
        self.assert_seen(seen['mapped'], cases // 100)
        self.assertGreaterEqual(seen['dropped'], cases // 500)
        self.assert_seen(seen['claimed'], cases // 20)
        self.assert_seen(seen['devices'], cases // 20)


class TestDevices(test_stock.EquivalenceTestCase):
    """``fit.numa.pci`` gives Nova's answers, for every set of nodes."""

    def _nova(self, pci_stats, requests, mapping, nodes):
        """What Nova takes: (devices on these nodes, all), None if nothing."""
        cells = [objects.InstanceNUMACell(id=node) for node in nodes]
        supported = pci_stats.support_requests(requests, mapping, cells)
        after = stats.PciDeviceStats(pci_stats.numa_topology)
        after.pools = [dict(pool) for pool in pci_stats.pools]
        try:
            after.apply_requests(requests, mapping, cells)
        except exception.PciDeviceRequestFailed:
            self.assertFalse(supported)
            return None
        self.assertTrue(supported)
        left = {pool['address']: pool['count'] for pool in after.pools}
        taken = [(pool, pool['count'] - left.get(pool['address'], 0))
                 for pool in pci_stats.pools]
        one_node = len(pci_stats.numa_topology.cells) == 1
        return (sum(count for pool, count in taken
                    if one_node or pool['numa_node'] in nodes),
                sum(count for _pool, count in taken))

    def test_every_set_of_nodes(self):
        seen = dict.fromkeys(
            ('run', 'served', 'served in part near', 'fewer than asked',
             'not served'), 0)

        @test_stock.SETTINGS
        @hypothesis.given(cloud=clouds())
        def check(cloud):
            host, _guest, pools, requests, candidates = cloud
            if pools is None:
                return
            seen['run'] += 1
            view = topology.host_topology(host)
            known = pci.HostDevices(
                strategies.pci_stats(host, pools).pools,
                pci.demands(requests), view)
            pci_stats = strategies.pci_stats(host, pools)
            asked = sum(request.count for request in requests)
            sets = [chosen for size in (1, 2)
                    for chosen in itertools.combinations(
                        range(len(host.cells)), size)][:MAX_SETS]
            for candidate, chosen in itertools.product(candidates, sets):
                mapping = candidate['mappings']
                expected = self._nova(
                    pci_stats, requests, mapping,
                    [host.cells[position].id for position in chosen])
                devices = pci.CandidateDevices(known, mapping)
                mask = sum(1 << position for position in chosen)
                served = devices.serve(mask)
                self.assertEqual(
                    expected, served and (served.local, served.total))
                self.assertEqual(
                    expected is not None, devices.accepts(mask))
                # Nova may hand out fewer devices than were asked for.
                self.assertEqual(expected == (asked, asked),
                                 devices.keeps_local(mask))
                if expected is None:
                    seen['not served'] += 1
                else:
                    seen['served'] += 1
                    seen['fewer than asked'] += expected[1] < asked
                    seen['served in part near'] += (
                        0 < expected[0] < expected[1])

        check()
        print('PCI devices: %s' % seen)
        cases = test_stock.CASES
        self.assertGreater(seen['run'], cases // 2)
        self.assert_seen(seen['served'], cases // 2)
        self.assert_seen(seen['not served'], cases // 2)
        self.assert_seen(seen['served in part near'], cases // 100)
