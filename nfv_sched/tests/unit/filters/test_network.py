# SPDX-License-Identifier: Apache-2.0
"""Claims of ports and rules in Placement."""

import gc
import weakref

from nova import objects

from nfv_sched.filters import nfv_topology
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.ledger import reader
from nfv_sched.limits import names as ledger_names
from nfv_sched.scheduler import notes
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import network
from nfv_sched.tests.unit.limits import snapshots

UUIDS = network.UUIDS
PORTS = network.PORTS


class TestLedger(network.NetworkTestCase):
    """Claims in Placement."""

    def setUp(self):
        super().setUp()
        self.flags(security_rules_per_node=100)
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
        notes.placement_answered(spec, self.summaries)
        return spec

    def claimed(self, host):
        """What each candidate claims in the ledger."""
        return [candidate['allocations'].get(self.provider)
                for candidate in host.allocation_candidates]

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
        """A host without a ledger is accepted, and nothing is claimed."""
        self.ledgers()
        self.neutron({'number': 18, 'host': 'host2'})
        host = self.host('host2')
        self.assertEqual(['host2'], self.passing([host], self.spec()))
        self.assertEqual([None], self.claimed(host))

    def test_not_published_yet(self):
        """Without its trait a provider is none of the ledger."""
        self.ledgers(ports=0)
        self.summaries[self.provider]['traits'].clear()
        self.neutron()
        host = self.host()
        self.assertEqual(['host1'], self.passing([host], self.spec()))
        self.assertEqual([None], self.claimed(host))

    def test_no_room(self):
        """The ledger knows what other schedulers have placed.

        What it lacks cannot be claimed, too much leaves nothing, and a limit
        that was lowered holds before the ledger has it.  The service may keep
        one that this process does not have.
        """
        self.neutron(rules={'a': 5})
        low = {'vswitch_ports_per_node': '3'}
        for limit, room, request, metadata, text in (
                (10, None, (), None, '1 needed, 0 of 10 free'),
                (10, -3, (), None, '1 needed, 0 of 10 free'),
                (10, 1, (2,), None, '2 needed, 1 of 10 free'),
                (10, 2, (2,), low, '2 needed, 1 of 3 free'),
                (0, 1, (2,), None, '2 needed, 1 free')):
            self.flags(vswitch_ports_per_node=limit)
            self.ledgers(ports=room or 0)
            if room is None:
                del self.summaries[self.provider]['resources'][
                    ledger_names.PORTS]
            self.assertEqual(
                f'vSwitch ports: {text} (1 host)', self.refused(
                    [self.host(metadata=metadata)], self.spec(*request)))
        self.ledgers(rules=9)
        self.assertEqual(
            'security-group rules: 10 needed, 9 of 100 free (1 host)',
            self.refused([self.host()], self.spec(2, ['a'])))

    def test_not_handed_over(self):
        """If Nova says nothing, hosts are accepted; the log is told once."""
        self.neutron({'number': 16})
        reader.MISSING_LOGGED.clear()
        for number in range(2):
            host, spec = self.host(), super().spec(2, instance=UUIDS[number])
            notes.placement_answered(spec, None)
            self.assertTrue(PORTS.host_passes(host, spec))
            self.assertEqual([None], self.claimed(host))
        self.assertEqual(1, self.log.output.count('Nova does not hand over'))

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
        self.ledgers(ports=5)
        self.neutron()
        host, spec = self.host(), self.spec(2)
        for index in range(2):
            spec.instance_uuid = UUIDS[index]
            self.assertEqual(['host1'], self.passing(
                [host], spec, index=index))
            host.consume_from_request(spec)
        # As Nova looks for alternates, for the last one again.
        self.assertEqual(['host1'], self.passing([host], spec, index=1))
        spec.instance_uuid = UUIDS[2]
        self.assertEqual([], self.passing([host], spec, index=2))

    def test_with_steering(self):
        """Labels and claims are kept together, in whatever order."""
        self.ledgers()
        self.neutron()
        policies = [nfv_topology.NFVTopologyFilter(),
                    vswitch_numa_affinity.VSwitchNUMAAffinityFilter()]
        for filters in ([PORTS, *policies], [*policies, PORTS]):
            host, spec = self.host(), clouds.spec('strict')
            spec.requested_networks = objects.NetworkRequestList(objects=[
                objects.NetworkRequest(network_id='net')])
            spec.instance_uuid = UUIDS[0]
            notes.note_of(spec).use(self.lookups)
            notes.placement_answered(spec, self.summaries)
            self.assertEqual(['host1'], self.passing([host], spec, *filters))
            self.assertEqual([{'resources': {ledger_names.PORTS: 1}}],
                             self.claimed(host))
            self.assertIn('nfv_vswitch', host.limits['numa_topology']
                          .network_metadata.physnets)

    def test_hosts_go_with_their_request(self):
        """Nothing of ours keeps a HostState alive."""
        gc.disable()
        self.addCleanup(gc.enable)
        self.ledgers()
        self.neutron()
        host, spec = self.host(), self.spec()
        self.assertEqual(['host1'], self.passing([host], spec))
        host.consume_from_request(spec)
        gone = weakref.ref(host)
        del host, spec
        self.assertIsNone(gone())
