# SPDX-License-Identifier: Apache-2.0
"""Claims of ports and rules in Placement."""

from nova import exception

from nfv_sched.filters import network as network_filter
from nfv_sched.ledger import reader
from nfv_sched.limits import names as ledger_names
from nfv_sched.scheduler import contention
from nfv_sched.scheduler import figures
from nfv_sched.scheduler import notes
from nfv_sched.tests.unit.filters import network
from nfv_sched.tests.unit.limits import snapshots

UUIDS = network.UUIDS
PORTS = network.PORTS


class TestLedger(network.NetworkTestCase):
    """Claims in Placement."""

    def setUp(self):
        super().setUp()
        self.flags(ledger='placement', security_rules_per_node=100)
        self.provider = ledger_names.provider_uuid(UUIDS[5])
        self.summaries = {}

    def ledgers(self, ports=100, rules=1000, **others):
        """From now on Placement says what the ledger of host1 has left."""
        self.summaries = snapshots.summaries({
            UUIDS[5]: {ledger_names.PORTS: ports,
                       ledger_names.RULES: rules}}, **others)

    def spec(self, *args, **kwargs):
        """A request for which Placement was asked."""
        spec = super().spec(*args, **kwargs)
        figures.placement_asked(spec)
        figures.placement_answered(spec, self.summaries)
        return spec

    def claimed(self, host):
        """What each candidate claims in the ledger."""
        return [candidate['allocations'].get(self.provider)
                for candidate in host.allocation_candidates]

    def place(self, ports=1, instance=UUIDS[1]):
        """Nova places another guest on host1, through these filters."""
        spec, host = self.spec(ports, instance=instance), self.host()
        self.assertEqual(['host1'], self.passing([host], spec, PORTS))
        self.assertTrue(host.allocation_candidates)
        host.consume_from_request(spec)

    def test_claimed(self):
        """All candidates claim what the guest takes, once."""
        self.ledgers()
        self.neutron({'number': 3, 'groups': ['a']}, rules={'a': 5})
        host = self.host()
        host.allocation_candidates = [
            {'allocations': {UUIDS[5]: {'resources': {'VCPU': 1}}},
             'mappings': {'': [UUIDS[5]]}} for _ in range(2)]
        spec = self.spec(2, ['a'])
        for _ in range(2):
            self.assertEqual(['host1'], self.passing([host], spec))
            self.assertEqual([{'resources': {
                'CUSTOM_NFV_VSWITCH_PORT': 2,
                'CUSTOM_NFV_SECURITY_RULE': 10}}] * 2, self.claimed(host))
        self.assertEqual({'VCPU': 1}, host.allocation_candidates[0][
            'allocations'][UUIDS[5]]['resources'])

    def test_not_published(self):
        """A host without a ledger is judged by Neutron alone."""
        self.ledgers()
        self.neutron({'number': 8, 'host': 'host2'})
        host, full = (self.host(uuid=UUIDS[6]),
                      self.host('host2', uuid=UUIDS[7]))
        self.assertEqual(['host1'], self.passing([host, full], self.spec()))
        self.assertEqual([None], self.claimed(host))

    def test_not_published_yet(self):
        """Without its trait a provider is none of the ledger."""
        self.ledgers(ports=0)
        self.summaries[self.provider]['traits'].clear()
        self.neutron()
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual([None], self.claimed(host))

    def test_no_inventory(self):
        """What the ledger of a host does not have cannot be claimed there."""
        self.ledgers()
        del self.summaries[self.provider]['resources'][ledger_names.PORTS]
        self.neutron()
        self.assertEqual('vSwitch ports: 1 needed, 0 of 10 free (1 host)',
                         self.refused([self.host()], self.spec()))

    def test_no_ledger_wanted(self):
        """Without the option nothing is claimed."""
        self.flags(ledger='none')
        self.ledgers(ports=0)
        self.neutron()
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual([None], self.claimed(host))

    def test_not_handed_over(self):
        """If Nova says nothing, Neutron decides, and the log is told once."""
        self.neutron({'number': 6})
        reader.MISSING_LOGGED.clear()
        for number in range(2):
            host = self.host()
            spec = super().spec(2, instance=UUIDS[number])
            self.assertEqual(['host1'], self.passing([host], spec))
            self.assertEqual([None], self.claimed(host))
        self.assertEqual(1, self.log.output.count('Nova does not hand over'))
        self.assertEqual(
            'vSwitch ports: 3 needed, 2 of 10 free (1 host)',
            self.refused([self.host()], super().spec(3)))

    def test_full_by_others(self):
        """The ledger knows what other schedulers have placed."""
        self.ledgers(ports=1)
        self.neutron()
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
            self.refused([self.host()], self.spec(2)))
        self.ledgers(rules=9)
        self.neutron(rules={'a': 5})
        self.assertEqual(
            'security-group rules: 10 needed, 9 of 100 free (1 host)',
            self.refused([self.host()], self.spec(2, ['a'])))

    def test_more_than_there_is(self):
        """A host that carries too much has nothing left, not less."""
        self.ledgers(ports=-3)
        self.neutron()
        self.assertEqual('vSwitch ports: 1 needed, 0 of 10 free (1 host)',
                         self.refused([self.host()], self.spec()))

    def test_limit_of_the_ledger_alone(self):
        """The service may keep a limit that this process does not have."""
        self.flags(vswitch_ports_per_node=0)
        self.ledgers(ports=1)
        self.neutron()
        self.assertEqual('vSwitch ports: 2 needed, 1 free (1 host)',
                         self.refused([self.host()], self.spec(2)))

    def test_another_host(self):
        """One full host does not matter where there are others."""
        self.ledgers(ports=0)
        self.neutron()
        self.assertEqual(['host2'], self.passing(
            [self.host(), self.host('host2', uuid=UUIDS[6])], self.spec()))

    def test_deleted_meanwhile(self):
        """What Neutron still shows refuses no host that has room."""
        self.ledgers(ports=1)
        self.neutron({'number': 8})
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual({'resources': {ledger_names.PORTS: 1}},
                         self.claimed(host)[0])
        self.assertTrue(host.allocation_candidates)

    def test_limit_too_low_for_the_guest(self):
        """A limit that was lowered holds before the ledger has it."""
        self.ledgers(ports=2)
        self.neutron()
        host = self.host(metadata={'vswitch_ports_per_node': '3'})
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 3 free (1 host)',
            self.refused([host], self.spec(2)))

    def test_same_host(self):
        """A guest that stays is not refused, nor counted beyond the room."""
        self.ledgers(ports=1)
        self.neutron({'number': 2, 'instance': UUIDS[0]}, {'number': 6})
        host = self.host()
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(2, move=True)))
        self.assertEqual([None], self.claimed(host))
        self.neutron({'number': 2, 'instance': UUIDS[0]}, {'number': 4})
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(2, move=True)))
        # Placement would refuse it.
        self.assertEqual([None], self.claimed(host))
        self.assertTrue(host.allocation_candidates)
        self.ledgers()
        self.assertEqual(['host1'], self.passing(
            [host], self.spec(2, move=True)))
        self.assertEqual([{'resources': {ledger_names.PORTS: 2}}],
                         self.claimed(host))

    def test_multi_create(self):
        """What a request has placed itself its summaries do not have."""
        for shown in 0, 8:
            with self.subTest(shown=shown):
                self.recent.clear()
                self.ledgers(ports=5)
                self.neutron({'number': shown})
                host, spec = self.host(), self.spec(2)
                for index in range(2):
                    spec.instance_uuid = UUIDS[index]
                    self.assertEqual(['host1'], self.passing(
                        [host], spec, index=index))
                    self.assertTrue(host.allocation_candidates)
                    host.consume_from_request(spec)
                # As Nova looks for alternates, for the last one again.
                self.assertEqual(['host1'], self.passing(
                    [host], spec, index=1))
                spec.instance_uuid = UUIDS[2]
                self.assertEqual([], self.passing([host], spec, index=2))

    def test_placed_since(self):
        """What this process has placed since the answer is not in it."""
        self.neutron({'number': 8})  # some of which are gone
        self.ledgers(ports=3)
        late = self.spec(2)
        self.place(2)
        self.assertEqual('vSwitch ports: 2 needed, 1 of 10 free (1 host)',
                         self.refused([self.host()], late))

    def test_placed_before(self):
        """What was placed before Placement was asked counts once."""
        self.neutron({'number': 8})
        self.ledgers(ports=2)
        self.place(2)
        self.ledgers(ports=2, used=9)  # another has gone
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(2)))

    def test_placed_while_placement_was_asked(self):
        """It may be in the answer or not: what Neutron shows decides."""
        for shown, passing in ((4, ['host1']), (6, [])):
            with self.subTest(shown=shown):
                self.recent.clear()
                self.neutron({'number': shown})
                self.ledgers(ports=3)
                spec = super().spec(2)
                figures.placement_asked(spec)
                self.place(2)
                figures.placement_answered(spec, self.summaries)
                self.assertEqual(passing, self.passing(
                    [self.host()], spec, index=None))

    def test_placement_decides_what_nobody_knows(self):
        """Without figures from Neutron a host is rather tried than refused."""
        self.show(None)
        self.ledgers(ports=3)
        spec = super().spec(2)
        figures.placement_asked(spec)
        self.place(2)
        figures.placement_answered(spec, self.summaries)
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], spec, PORTS))
        self.assertTrue(host.allocation_candidates)
        self.ledgers(ports=1)
        self.assertEqual('vSwitch ports: 2 needed, 1 of 10 free (1 host)',
                         self.refused([self.host()], self.spec(2), PORTS))

    def test_at_the_same_time(self):
        """Each takes its part of what the ledger has left, or is told."""
        for shown in 0, 8, None:
            with self.subTest(shown=shown):
                self.recent.clear()
                if shown is None:
                    self.show(None)
                else:
                    self.neutron({'number': shown})
                self.ledgers(ports=5)
                requests = []
                for number in range(3):
                    spec = self.spec(2, instance=UUIDS[number])
                    host = self.host()
                    self.assertEqual(['host1'], self.passing(
                        [host], spec, PORTS))
                    requests.append((host, spec))
                for host, spec in requests[:2]:
                    self.assertTrue(host.allocation_candidates)
                host, spec = requests[2]
                self.assertFalse(host.allocation_candidates)
                error = self.assertRaises(
                    exception.NoValidHost, network_filter.explain_lost_host,
                    spec)
                self.assertEqual(
                    'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
                    error.kwargs['reason'])

    def test_claim_lost(self):
        """What Placement has refused is given back."""
        self.neutron({'number': 8})
        self.ledgers(ports=2)
        spec, host = self.spec(2), self.host()
        other = self.spec(2, instance=UUIDS[1])
        self.passing([host], spec)
        self.assertTrue(host.allocation_candidates)
        self.assertEqual([], self.passing([self.host()], other, index=None))
        contention.release(notes.note_of(spec))
        self.assertEqual(['host1'], self.passing(
            [self.host()], other, index=None))

    def test_stale(self):
        """Without figures ports are claimed all the same."""
        self.ledgers()
        self.neutron({'number': 50}, age=1000)
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual([{'resources': {ledger_names.PORTS: 1}}],
                         self.claimed(host))
