# SPDX-License-Identifier: Apache-2.0
"""What the filters of ports and rules have in common."""

import gc
import time
import weakref

import fixtures
from nova import exception
from nova import objects

from nfv_sched.filters import network as network_filter
from nfv_sched.filters import nfv_topology
from nfv_sched.filters import pci_numa_affinity
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.limits import demand as network_demand
from nfv_sched.limits import reservations
from nfv_sched.scheduler import contention
from nfv_sched.scheduler import notes
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import network
from nfv_sched.tests.unit.limits import snapshots

UUIDS = network.UUIDS
PORTS = network.PORTS
RULES = network.RULES


class TestPlaced(network.NetworkTestCase):
    """What was placed and Neutron does not show yet."""

    def setUp(self):
        super().setUp()
        self.source = self.neutron({'number': 4})

    def select(self, host, spec, number=1):
        """What Nova does when it has claimed, at the end of a request."""
        for _ in range(number):
            host.consume_from_request(spec)
        return objects.Selection.from_host_state(host)

    def test_next_request(self):
        """The next request knows what the last one took."""
        host, spec = self.host(), self.spec(3)
        self.passing([host], spec)
        self.select(host, spec)
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
            self.refused([self.host()], self.spec(2, instance=UUIDS[1])))

    def test_not_chosen(self):
        """Hosts that passed and were not chosen, and alternates, are free."""
        host, spec = self.host(), self.spec(4)
        self.passing([host], spec)
        objects.Selection.from_host_state(host)
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(4, instance=UUIDS[1])))

    def test_until_neutron_shows_it(self):
        """Nothing counts twice."""
        host, spec = self.host(), self.spec(3)
        self.passing([host], spec)
        self.select(host, spec)
        self.source.value = snapshots.snapshot(
            [{}] * 4 + [{'instance': UUIDS[0]}] * 3)
        self.assertEqual(['host1'], self.passing(
            [self.host()], self.spec(1, instance=UUIDS[1])))
        self.assertEqual([], self.passing(
            [self.host()], self.spec(2, instance=UUIDS[1]), index=1))

    def test_multi_create(self):
        """Within a request, what it has placed already counts."""
        host, spec = self.host(), self.spec(2)
        for index in range(2):
            spec.instance_uuid = UUIDS[index]
            self.assertEqual(['host1'], self.passing(
                [host], spec, index=index))
            host.consume_from_request(spec)
            self.assertEqual((2 * index + 2, 0), self.unseen())
        self.assertEqual({UUIDS[0], UUIDS[1]},
                         set(self.recent.servers_on('host1')))
        spec.instance_uuid = UUIDS[2]
        self.assertEqual([], self.passing([host], spec, index=2))
        # Nova undoes the whole request.
        self.assertEqual((0, 0), self.unseen())

    def test_last_pass(self):
        """Nova filters once more for the last server, after placing it."""
        host, spec = self.host(), self.spec(2)
        for index in range(2):
            spec.instance_uuid = UUIDS[index]
            self.passing([host], spec, index=index)
            host.consume_from_request(spec)
        self.passing([host], spec, index=1)
        objects.Selection.from_host_state(host)
        self.assertEqual({UUIDS[0], UUIDS[1]},
                         set(self.recent.servers_on('host1')))

    def unseen(self):
        return self.recent.unseen(self.sources.figures.get(), 'host1')

    def test_with_steering(self):
        """Limits with labels notice it too, in whatever order."""
        for number, filters in enumerate((
            [PORTS, nfv_topology.NFVTopologyFilter(),
             vswitch_numa_affinity.VSwitchNUMAAffinityFilter()],
            [nfv_topology.NFVTopologyFilter(),
             vswitch_numa_affinity.VSwitchNUMAAffinityFilter(), PORTS],
        )):
            host = self.host('host%d' % number)
            spec = clouds.spec('strict')
            notes.note_of(spec).sources = self.sources
            spec.requested_networks = objects.NetworkRequestList(objects=[
                objects.NetworkRequest(network_id='net')])
            spec.instance_uuid = UUIDS[number]
            self.assertEqual([host.host], self.passing(
                [host], spec, *filters))
            selection = self.select(host, spec)
            self.assertEqual({UUIDS[number]},
                             set(self.recent.servers_on(host.host)))
            self.assertIn('nfv_vswitch', selection.limits.numa_topology
                          .network_metadata.physnets)


class TestContested(network.NetworkTestCase):
    """Requests that are decided at the same time."""

    def setUp(self):
        super().setUp()
        # Room for three ports.
        self.source = self.neutron(
            {'number': 5}, {'number': 5, 'host': 'host2'})

    def hosts(self, *names):
        return [self.host(name, uuid=UUIDS[6]) for name in names]

    def claim(self, hosts, spec):
        """What Nova does with hosts that are left, until one is claimed.

        :returns: name of the host, None if Nova finds no candidates
        :raises nova.exception.NoValidHost: then, if there is a reason of ours
        """
        for host in hosts:
            if not host.allocation_candidates:
                continue
            self.assertIn('allocations', host.allocation_candidates[0])
            host.consume_from_request(spec)
            return host.host
        network_filter.explain_lost_host(spec)
        return None

    def place_other(self, ports):
        """A server that our filters have not seen comes to host1."""
        self.recent.add('host1', UUIDS[3], network_demand.NetworkDemand(
            vswitch_ports=ports))

    def requests(self, number, ports, *names, **kwargs):
        """Requests that have all passed the filters."""
        found = []
        for index in range(number):
            spec = self.spec(ports, instance=UUIDS[index], **kwargs)
            hosts = self.hosts(*names)
            self.assertEqual(list(names), self.passing(hosts, spec))
            found.append((hosts, spec))
        return found

    def test_taken(self):
        """Each takes its part, and who finds none is told why."""
        first, second, third = self.requests(3, 2, 'host1', 'host2')
        self.assertEqual('host1', self.claim(*first))
        self.assertEqual('host2', self.claim(*second))
        error = self.assertRaises(
            exception.NoValidHost, self.claim, *third)
        self.assertEqual(
            'vSwitch ports: 2 needed, best host: 1 of 10 free (2 hosts)',
            error.kwargs['reason'])
        self.assertIn(UUIDS[2], self.log.output)

    def test_rules(self):
        """The reason names what is missing."""
        self.flags(security_rules_per_node=80)
        self.neutron({'number': 5, 'groups': ['a']}, rules={'a': 10})
        first, second = self.requests(2, 2, 'host1', groups=['a'])
        self.flags(vswitch_ports_per_node=0)
        self.assertEqual('host1', self.claim(*first))
        error = self.assertRaises(
            exception.NoValidHost, self.claim, *second)
        self.assertEqual(
            'vSwitch ports: 2 needed, 1 of 10 free (1 host)',
            error.kwargs['reason'])
        self.recent.clear()
        first, second = self.requests(2, 2, 'host1', groups=['a'])
        self.assertEqual('host1', self.claim(*first))
        error = self.assertRaises(
            exception.NoValidHost, self.claim, *second)
        self.assertEqual(
            'security-group rules: 20 needed, 10 of 80 free (1 host)',
            error.kwargs['reason'])

    def test_silent(self):
        """Where tenants read no reasons, Nova goes on by itself."""
        self.flags(expose_reasons='none')
        first, second = self.requests(2, 2, 'host1')
        self.claim(*first)
        self.assertIsNone(self.claim(*second))

    def test_later_server(self):
        """A later server of a request does not raise: claims were made."""
        hosts, spec = self.hosts('host1'), self.spec(2)
        self.passing(hosts, spec, index=0)
        self.place_other(1)
        self.assertEqual('host1', self.claim(hosts, spec))
        spec.instance_uuid = UUIDS[1]
        self.assertEqual([], self.passing(hosts, spec, index=1))

    def test_gone_for_a_later_server(self):
        """Nova is left to give back the claims that it has made."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        self.passing(hosts, spec, index=0)
        self.assertEqual('host1', self.claim(hosts, spec))
        spec.instance_uuid = UUIDS[1]
        self.assertEqual(['host1'], self.passing(hosts, spec, index=1))
        self.place_other(2)
        self.assertIsNone(self.claim(hosts, spec))
        self.assertEqual({UUIDS[3]}, set(self.recent.servers_on('host1')))

    def test_placed_past_us(self):
        """Another filter may replace the candidates: its servers count."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        self.passing(hosts, spec, index=0)
        hosts[0].allocation_candidates = list(hosts[0].allocation_candidates)
        self.assertEqual('host1', self.claim(hosts, spec))
        spec.instance_uuid = UUIDS[1]
        self.assertEqual(['host1'], self.passing(hosts, spec, index=1))
        self.place_other(2)
        self.assertIsNone(self.claim(hosts, spec))

    def test_candidates_dropped(self):
        """Our filters that drop candidates keep the claim with them."""
        host = clouds.host(devices={0: 1, 1: 1})
        host.uuid, host.aggregates = UUIDS[6], []
        spec = clouds.spec(
            'strict', devices=[clouds.pci_request(1)], extra_specs={
                'nfv:pci_numa_affinity': 'strict'})
        request_id = spec.pci_requests.requests[0].request_id
        for number, pool in enumerate(host.pci_stats.pools):
            pool['rp_uuid'] = UUIDS[number]
        host.allocation_candidates = [
            {'allocations': {}, 'number': number,
             'mappings': {f'{request_id}-0': [UUIDS[number]]}}
            for number in range(2)]
        notes.note_of(spec).sources = self.sources
        spec.requested_networks = objects.NetworkRequestList(objects=[
            objects.NetworkRequest(network_id='net')])
        spec.instance_uuid = UUIDS[0]
        self.assertEqual(['host1'], self.passing(
            [host], spec, PORTS, nfv_topology.NFVTopologyFilter(),
            vswitch_numa_affinity.VSwitchNUMAAffinityFilter(),
            pci_numa_affinity.PCINUMAAffinityFilter()))
        self.assertEqual(
            [1], [candidate['number'] for candidate in list(
                host.allocation_candidates)])
        self.assertTrue(host.allocation_candidates)
        self.assertEqual({UUIDS[0]}, set(self.recent.servers_on('host1')))

    def test_lost_claim(self):
        """A host where Nova's claim failed is given back."""
        (hosts, spec), = self.requests(1, 2, 'host1', 'host2')
        self.assertTrue(hosts[0].allocation_candidates)
        self.assertEqual({UUIDS[0]}, set(self.recent.servers_on('host1')))
        self.assertTrue(hosts[1].allocation_candidates)
        self.assertNotIn('host1', self.recent.hosts())
        self.assertEqual({UUIDS[0]}, set(self.recent.servers_on('host2')))

    def test_alternates(self):
        """Alternates take nothing."""
        (hosts, spec), = self.requests(1, 2, 'host1', 'host2')
        self.claim(hosts, spec)
        self.assertTrue(hosts[1].allocation_candidates)
        self.assertEqual(['host1'], list(self.recent.hosts()))

    def test_alternates_of_a_changed_request(self):
        """Alternates take nothing if the request was read anew either."""
        (hosts, spec), = self.requests(1, 2, 'host1', 'host2')
        self.claim(hosts, spec)
        spec.flavor = objects.Flavor(name='other', extra_specs={})
        self.assertEqual(['host1', 'host2'], self.passing(hosts, spec))
        self.assertTrue(hosts[1].allocation_candidates)
        self.assertEqual(['host1'], list(self.recent.hosts()))

    def test_again(self):
        """A server that is asked for once more does not stand in its way."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.claim(hosts, spec)
        objects.Selection.from_host_state(hosts[0])
        self.assertEqual(['host1'], self.passing(
            self.hosts('host1'), self.spec(2)))

    def test_long_multi_create(self):
        """A request keeps what it took while it goes on."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        now, step = time.monotonic(), 0.8 * reservations.TAKE_SECONDS
        for index in range(3):
            spec.instance_uuid = UUIDS[index]
            with fixtures.MonkeyPatch(
                    'time.monotonic', lambda: now + step * index):
                self.assertEqual(['host1'], self.passing(
                    hosts, spec, index=index))
                self.assertEqual('host1', self.claim(hosts, spec))
        with fixtures.MonkeyPatch(
                'time.monotonic', lambda: now + 2.1 * step):
            self.assertEqual([], self.passing(
                self.hosts('host1'), self.spec(1, instance=UUIDS[4]),
                index=None))

    def test_hosts_go_with_their_request(self):
        """Nothing of ours keeps a HostState alive."""
        gc.disable()
        self.addCleanup(gc.enable)
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.claim(hosts, spec)
        gone = weakref.ref(hosts[0])
        hosts.clear()
        del spec
        self.assertIsNone(gone())

    def test_not_placed(self):
        """What Nova does not place after all ends by itself."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.assertTrue(hosts[0].allocation_candidates)
        now = time.monotonic()
        self.useFixture(fixtures.MonkeyPatch(
            'time.monotonic', lambda: now + reservations.TAKE_SECONDS + 1))
        self.assertEqual(['host1'], self.passing(
            self.hosts('host1'), self.spec(3, instance=UUIDS[1])))

    def test_request_ends(self):
        """What a request took and did not get ends with it."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.assertTrue(hosts[0].allocation_candidates)
        other = self.spec(2, instance=UUIDS[1])
        self.assertEqual([], self.passing(
            self.hosts('host1'), other, index=1))
        hosts.clear()
        gc.collect()
        self.assertEqual(['host1'], self.passing(
            self.hosts('host1'), other, index=1))

    def test_placed_stays_without_its_request(self):
        """What a request got does not end with it."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.claim(hosts, spec)
        objects.Selection.from_host_state(hosts[0])
        hosts.clear()
        gc.collect()
        self.assertEqual([], self.passing(
            self.hosts('host1'), self.spec(2, instance=UUIDS[1]), index=1))

    def test_placed_stays(self):
        """What Nova places does not end with that."""
        (hosts, spec), = self.requests(1, 2, 'host1')
        self.claim(hosts, spec)
        objects.Selection.from_host_state(hosts[0])
        now = time.monotonic()
        self.useFixture(fixtures.MonkeyPatch(
            'time.monotonic', lambda: now + reservations.TAKE_SECONDS + 1))
        self.assertEqual([], self.passing(
            self.hosts('host1'), self.spec(2, instance=UUIDS[1]), index=1))

    def test_multi_create(self):
        """Servers of one request count once each."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        for index in range(3):
            spec.instance_uuid = UUIDS[index]
            self.assertEqual(['host1'], self.passing(
                hosts, spec, index=index))
            self.assertEqual('host1', self.claim(hosts, spec))
        spec.instance_uuid = UUIDS[3]
        self.assertEqual([], self.passing(hosts, spec, index=3))

    def test_failed_multi_create(self):
        """A request that fails keeps nothing; Nova gives all back."""
        hosts, spec = self.hosts('host1'), self.spec(2)
        self.assertEqual(['host1'], self.passing(hosts, spec))
        self.assertEqual('host1', self.claim(hosts, spec))
        self.assertEqual({UUIDS[0]}, set(self.recent.servers_on('host1')))
        spec.instance_uuid = UUIDS[1]
        self.assertEqual([], self.passing(hosts, spec, index=1))
        self.assertEqual([], list(self.recent.hosts()))

    def test_last_pass_without_hosts(self):
        """Without alternates the servers of a request stay all the same."""
        hosts, spec = self.hosts('host1'), self.spec(1)
        for index in range(3):
            spec.instance_uuid = UUIDS[index]
            self.passing(hosts, spec, index=index)
            self.claim(hosts, spec)
        # The last server's own room does not stand in its way.
        self.assertEqual(['host1'], self.passing(hosts, spec, index=2))
        contention.release(notes.note_of(spec))
        self.assertEqual(set(UUIDS[:3]), set(self.recent.servers_on('host1')))

    def test_other_filters(self):
        """A look at the candidates by our own filters takes nothing."""
        host = self.host()
        spec = clouds.spec('strict')
        notes.note_of(spec).sources = self.sources
        spec.requested_networks = objects.NetworkRequestList(objects=[
            objects.NetworkRequest(network_id='net')])
        self.assertEqual(['host1'], self.passing(
            [host], spec, PORTS, nfv_topology.NFVTopologyFilter(),
            vswitch_numa_affinity.VSwitchNUMAAffinityFilter(), RULES))
        self.assertEqual([], list(self.recent.hosts()))
