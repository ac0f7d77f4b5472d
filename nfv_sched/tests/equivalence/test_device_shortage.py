# SPDX-License-Identifier: Apache-2.0
"""Refusals of PCI devices against a search through all sets of requests.

Of each generated host and server that Nova's filters or its claim refuse for
devices alone, the requests that are named cannot be served, and each smaller
set of requests can: by ``PciDeviceStats.support_requests`` and
``consume_requests`` on every choice of NUMA nodes.
"""

import itertools

import hypothesis
from hypothesis import strategies as st
from nova import objects
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from oslo_utils import uuidutils

from nfv_sched.base import device_shortage
from nfv_sched.base.device_shortage import MissKind
from nfv_sched.base.device_shortage import ShortageKind
from nfv_sched.filters import nfv_topology
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import pci_shortage
from nfv_sched.fit.numa import topology
from nfv_sched.tests import cards
from nfv_sched.tests.equivalence import claims
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds

NETWORKS = ('data', 'lan')
POLICIES = ('required', 'preferred', 'legacy', 'socket')


@st.composite
def of_host(draw):
    found = []
    for _ in range(draw(st.sampled_from((1, 2, 3, 3, 4)))):
        tags = {}
        if draw(st.integers(0, 5)):
            tags['physical_network'] = draw(st.sampled_from(
                (NETWORKS[0],) * 5 + NETWORKS[1:]))
        if draw(st.integers(0, 3)) == 0:
            tags['trusted'] = draw(st.sampled_from(('true', 'false')))
        kind = draw(st.sampled_from(('type-PF',) * 4 + ('type-PCI',)))
        found.append(cards.Card(
            draw(st.sampled_from((0, 0, 1, 1, None))), kind,
            draw(st.integers(1, 3)) if kind == 'type-PF' else 0,
            draw(st.sampled_from((0, 0, 0, 1))) if kind == 'type-PF' else 0,
            draw(st.integers(0, 3)) > 0, tags))
    return found


@st.composite
def requests_of(draw):
    """PCI requests of aliases and ports, some of them alike."""
    found = []
    shared = draw(st.booleans())
    policy = draw(st.sampled_from(POLICIES))
    for number in range(draw(st.integers(1, 4))):
        if found and draw(st.integers(0, 2)) == 0:
            spec, name = dict(found[-1].spec[0]), found[-1].alias_name
            name = name and f'nic{number}'
        elif draw(st.booleans()):
            name = None
            spec = {'physical_network': draw(st.sampled_from(
                (NETWORKS[0],) * 7 + NETWORKS[1:])),
                'remote_managed': 'False'}
            if draw(st.integers(0, 3)) == 0:
                spec['dev_type'] = 'type-PF'
            if draw(st.integers(0, 5)) == 0:
                spec['trusted'] = 'True'
        else:
            name = f'nic{number}'
            spec = dict(draw(st.sampled_from((
                {'vendor_id': '8086', 'dev_type': 'type-PF'},
                {'vendor_id': '8086', 'product_id': '1515'},
                {'product_id': '1572', 'dev_type': 'type-PCI'},
                {'vendor_id': '8086', 'product_id': '1572'},
                {'vendor_id': '8086', 'product_id': '1515',
                 'dev_type': 'type-VF'}))))
        found.append(objects.InstancePCIRequest(
            count=draw(st.sampled_from((1, 1, 1, 2))) if name else 1,
            numa_policy=policy if shared else draw(st.sampled_from(POLICIES)),
            alias_name=name, request_id=uuidutils.generate_uuid(),
            spec=[spec]))
    return found


class TestDeviceShortage(test_stock.EquivalenceTestCase):

    def _served(self, host, of_cards, requests, choices):
        """Whether Nova serves requests, on any of these sets of NUMA nodes."""
        for nodes in choices:
            cells = None if nodes is None else [
                objects.InstanceNUMACell(id=node) for node in nodes]
            made = cards.pci_stats(host, of_cards)
            if cards.as_scheduled(made).support_requests(
                    requests, None, cells) and cards.claims(
                        made, requests, cells):
                return True
        return False

    def test_the_fewest_requests(self):
        seen = dict.fromkeys(
            ('run', 'refused', 'of several', 'misses', *ShortageKind), 0)

        @test_stock.SETTINGS
        @hypothesis.given(
            of_cards=of_host(), requests=requests_of(),
            sockets=st.sampled_from(((0, 1), (0, 0), (None, None))),
            masks=st.sampled_from((
                None, (0b11,), (0b11,), (0b01,), (0b11, 0b11))))
        def check(of_cards, requests, sockets, masks):
            seen['run'] += 1
            host = clouds.host_topology()
            for cell, socket in zip(host.cells, sockets):
                cell.socket = socket
            choices = [None] if masks is None else [
                nodes for nodes in itertools.permutations(
                    range(2), len(masks)) if all(
                        mask >> node & 1
                        for mask, node in zip(masks, nodes))]
            made = cards.as_scheduled(cards.pci_stats(host, of_cards))
            devices = pci.CandidateDevices(pci.HostDevices(
                made.pools, pci.demands(requests),
                topology.host_topology(host)), None)
            found = pci_shortage.find(devices, masks)
            refused = not self._served(host, of_cards, requests, choices)
            self.assertEqual(refused, found is not None)
            if found is None:
                return
            seen['refused'] += 1
            seen[found.kind] += 1
            seen['of several'] += len(found.needs) > 1
            seen['misses'] += bool(found.misses)
            self._check_fewest(host, of_cards, requests, choices, found)
            self._check_free(host, of_cards, requests, found)
            for miss in found.misses:
                self._check_miss(devices, made.pools, miss)

        check()
        print('device shortages: %s' % seen)
        cases = test_stock.CASES
        self.assert_seen(seen['refused'], cases // 4)
        self.assert_seen(seen['of several'], cases // 50)
        for kind in ShortageKind:
            if kind is not ShortageKind.GRANTED:
                # Fewer than 1,000 cases need not draw the rarest.
                self.assert_seen(seen[kind], cases // 2000 - 1, kind)

    def test_no_claim_fails_for_a_card(self):
        """Hosts that Nova's filters accept are refused if the claim fails."""
        seen = dict.fromkeys(('run', 'accepted', 'refused for a card'), 0)

        @test_stock.SETTINGS
        @hypothesis.given(of_cards=of_host(), requests=requests_of(),
                          guest=st.sampled_from((None, 1, 1, 2)))
        def check(of_cards, requests, guest):
            seen['run'] += 1
            guest = guest and clouds.guest(cells=guest)
            verdicts = []
            for numa in (numa_topology_filter.NUMATopologyFilter(),
                         nfv_topology.NFVTopologyFilter()):
                host = clouds.host()
                made = cards.pci_stats(host.numa_topology, of_cards)
                host.pci_stats = cards.as_scheduled(made)
                spec = strategies.request_spec(guest, pci=requests)
                verdicts.append(all(
                    each.host_passes(host, spec) for each in (
                        numa,
                        pci_passthrough_filter.PciPassthroughFilter())))
            stock, ours = verdicts
            claimed = stock and self._claimed(
                host, guest, made, requests)
            self.assertEqual(claimed, ours)
            seen['accepted'] += ours
            seen['refused for a card'] += stock and not ours

        check()
        print('cards: %s' % seen)
        self.assert_seen(seen['accepted'], test_stock.CASES // 10)
        self.assert_seen(seen['refused for a card'], test_stock.CASES // 200)

    @staticmethod
    def _claimed(host, guest, made, requests):
        cells = None
        if guest is not None:
            limits = objects.NUMATopologyLimits(
                cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0)
            cells = claims.numa_fit(
                strategies.clone(host.numa_topology), strategies.clone(guest),
                limits, requests, cards.as_scheduled(made)).cells
        return cards.claims(made, requests, cells)

    def _check_fewest(self, host, of_cards, requests, choices, found):
        """They are real requests, and there is no smaller set."""
        size = len(found.needs)
        sets = [each for each in itertools.combinations(requests, size)
                if [(request.count, request.alias_name or '')
                    for request in each] == [
                        (need.count, need.alias) for need in found.needs]]
        self.assertTrue(any(not self._served(
            host, of_cards, list(each), choices) for each in sets))
        for fewer in range(size):
            for each in itertools.combinations(requests, fewer):
                self.assertTrue(self._served(
                    host, of_cards, list(each), choices))

    def _check_free(self, host, of_cards, requests, found):
        self.assertLess(found.free, found.needed)
        anywhere = self._served(host, of_cards, requests, [None])
        if found.kind is not ShortageKind.NUMA and len(
                found.needs) == len(requests):
            # They do not fit the host, or one NUMA node has one card.
            self.assertTrue(
                not anywhere or found.kind is ShortageKind.ONE_CARD)
        self.assertEqual(found.kind is ShortageKind.NUMA,
                         bool(found.policies))
        self.assertTrue(device_shortage.free_text(found))

    def _check_miss(self, devices, pools, miss):
        """So many free devices get served once they have the property."""
        self.assertLessEqual(miss.count, sum(pool['count'] for pool in pools))
        names = {MissKind.TYPE: 'dev_type',
                 MissKind.PHYSICAL_NETWORK: 'physical_network',
                 MissKind.TRUSTED: 'trusted'}
        name = names.get(miss.kind)
        if name is None:
            return
        count = 0
        for pool in pools:
            changed = {**pool, name: miss.wanted}
            count += pool['count'] * any(
                not (demand.matches(pool) and demand.usable(pool))
                and demand.matches(changed) and demand.usable(changed)
                for demand in devices.devices.wanted)
        self.assertLessEqual(miss.count, count)
