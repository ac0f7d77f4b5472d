# SPDX-License-Identifier: Apache-2.0

"""The ledger in Placement is exact, whatever Nova does with guests.

Its inventories are published as ``nfv-sched-ledger`` does it, from the ports
that Nova has bound; what is used of them is what the scheduler claimed.
"""

import collections
import threading
import time
from unittest import mock

import fixtures
from nova.scheduler.client import report
from nova.scheduler import manager
from nova.scheduler import utils
from oslo_messaging import rpc
from oslo_utils import uuidutils

from nfv_sched.ledger import publisher
from nfv_sched.limits import names
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import network


class LedgerTestCase(network.NetworkCloudTestCase):
    """Two hosts; each has 6 ports for guests, and rules for as many."""

    hosts = ('host1', 'host2')
    limits = {'vswitch_ports_per_node': 10, 'security_rules_per_node': 24}

    def used(self, host):
        usages = self._get_provider_usages(self.provider(host))
        return usages[names.PORTS], usages[names.RULES]

    def capacity(self, host):
        inventory = self._get_provider_inventory(
            self.provider(host))[names.PORTS]
        return inventory['total'] - inventory['reserved']

    def assertExact(self, **held):
        """Assert that ledgers have what hosts have, and what is held there."""
        for host in self.hosts:
            ports, rules = self.on_host(host)
            more = held.get(host, 0)
            self.assertEqual(
                (ports + more, rules + more * network.DEFAULT_RULES),
                self.used(host), host)

    def assertEmpty(self):
        self.delete_all()
        for host in self.hosts:
            self.assertEqual((0, 0), self.on_host(host))
            self.assertEqual((0, 0), self.used(host))
            self.assertEqual(6, self.capacity(host))

    def claim_by_hand(self, host, ports):
        """Claim what another scheduler would; returns the consumer."""
        consumer = uuidutils.generate_uuid()
        answer = self.placement.put(f'/allocations/{consumer}', {
            'allocations': {self.provider(host): {
                'resources': {
                    names.PORTS: ports,
                    names.RULES: ports * network.DEFAULT_RULES}}},
            'consumer_generation': None,
            'project_id': self.neutron.tenant_id,
            'user_id': self.neutron.tenant_id}, version='1.28')
        self.assertEqual(204, answer.status, answer.body)
        return consumer


class LifeTest(LedgerTestCase):
    def test_migrations(self):
        server = self.guest(nics=2, host='host1')
        self.assertExact()
        self.guests(3)
        self.assertExact()
        self.cold_migrate(server)
        # The migration holds the source until somebody decides.
        self.assertEqual('host2', self.host(server))
        self.assertExact(host1=2)
        self._confirm_resize(server)
        self.assertExact()
        self.cold_migrate(server)
        self.assertExact(host2=2)
        self._revert_resize(server)
        self.assertEqual('host2', self.host(server))
        self.assertExact()
        self.live_migrate(server)
        self.assertEqual('host1', self.host(server))
        self.assertExact()
        self.publish()
        self.assertEqual([6, 6], list(map(self.capacity, self.hosts)))
        self.assertEmpty()

    def test_evacuation_and_shelving(self):
        server = self.guest(nics=2, host='host1')
        self._shelve_server(server)
        self.assertExact()
        self.assertEqual((0, 0), self.used('host1'))
        self._unshelve_server(server)
        self.assertExact()
        source = self.host(server)
        failed = self.computes[source]
        failed.stop()
        self.admin_api.put_service_force_down(failed.service_ref.uuid, True)
        self.evacuate(server)
        self.assertNotEqual(source, self.host(server))
        # Nobody knows what a failed host still does.
        self.assertExact(**{source: 2})
        failed.start()
        self.admin_api.put_service_force_down(failed.service_ref.uuid, False)
        self.assertExact()
        self.assertEmpty()

    def test_resize_to_the_same_host(self):
        self.flags(allow_resize_to_same_host=True)
        self.admin_api.put_service(
            self.computes['host2'].service_ref.uuid, {'status': 'disabled'})
        larger = self.flavor_with({}, vcpus=2, memory_mb=128)
        server = self.guest(nics=2)
        with self.row('with room to spare'):
            self.resize(server, larger)
            # As with CPUs, both the old and the new one count.
            self.assertExact(host1=2)
            self._confirm_resize(server)
            self.assertExact()
        self.guest(nics=3)
        with self.row('without'):
            self.resize(server, self.small)
            self.assertEqual('host1', self.host(server))
            # Only the old one counts, and is given up later ...
            self.assertExact()
            self._revert_resize(server)
            self.assertExact()
            self.resize(server, self.small)
            self._confirm_resize(server)
            self.assertExact(host1=-2)
            # ... so that the next round reserves what it has.
            self.publish()
            self.assertEqual(4, self.capacity('host1'))
            self.refused('vSwitch ports: 2 needed', nics=2)
            self.guest()
        self.delete_all()
        self.publish()
        self.assertEmpty()

    def test_neutron_shows_nothing(self):
        """That is believed if Nova has deleted the servers, too."""
        server = self.guest(nics=2, host='host1')
        self.guest(nics=3, host='host1')
        self.delete_all([server['id']])
        self.publish()
        before = self.capacity('host1'), self.used('host1')
        fixture, self.neutron_api.fixture = self.neutron_api.fixture, None
        self.assertIn('no port of a server', str(self.assertRaises(
            publisher.RoundError, self.publisher.round)))
        self.assertEqual(
            before, (self.capacity('host1'), self.used('host1')))
        other = publisher.Publisher()
        self.addCleanup(other.close)
        self.assertIn('no port of a server', str(self.assertRaises(
            publisher.RoundError, other.round)))
        self.neutron_api.fixture = fixture
        self.delete_all()
        self.publish()
        self.assertEmpty()

    def test_interfaces(self):
        """What is attached later counts from the next round on."""
        server = self.guest(nics=2, host='host1')
        attachment = self.api.attach_interface(server['id'], {
            'interfaceAttachment': {'net_id': base.TUNNELED}}).body
        self.assertEqual((3, 12), self.on_host('host1'))
        self.assertExact(host1=-1)
        self.publish()
        self.assertEqual(5, self.capacity('host1'))
        self.refused('vSwitch ports: 4 needed, ', nics=4, host='host1')
        self.api.detach_interface(
            server['id'],
            attachment['interfaceAttachment']['port_id'])
        self.publish()
        self.assertEqual(6, self.capacity('host1'))
        self.guest(nics=4, host='host1')
        self.assertExact()
        self.assertEmpty()


class AttributionTest(LedgerTestCase):
    """Whose a port is says Nova, not the port."""

    hosts = ('host1',)

    def rounds(self, count=1):
        for _ in range(count):
            done = self.publisher.round()
            self.assertFalse(done.failed, done)

    def ports(self, server):
        return [port for port in self.neutron_api.fixture_ports()
                if port.get('device_id') == server['id']]

    def test_neutron_answers_late(self):
        """Ports are bound before Nova has noted whose they are."""
        update = self.neutron.update_port
        capacities = []

        def late(*args, **kwargs):
            answer = update(*args, **kwargs)
            self.rounds()
            capacities.append(self.capacity('host1'))
            return answer

        with mock.patch.object(self.neutron, 'update_port', late):
            server = self.guest(nics=2)
        # Of the second port's round the first one is none any more.
        self.assertEqual([5, 5], capacities)
        self.rounds()
        self.assertEqual(6, self.capacity('host1'))
        self.assertExact()
        with mock.patch.object(self.neutron, 'update_port', late):
            self.api.attach_interface(server['id'], {
                'interfaceAttachment': {'net_id': base.TUNNELED}})
        self.rounds()
        self.assertEqual(5, self.capacity('host1'))
        self.assertExact(host1=-1)

    def test_renamed(self):
        """By their project, before any publisher has seen them."""
        server = self.guest(nics=3)
        ports = self.ports(server)
        for port, (owner, device) in zip(ports, (
                ('compute:nova', uuidutils.generate_uuid()), ('', ''),
                ('network:dhcp', 'dhcp1'))):
            port.update(device_owner=owner, device_id=device)
        for _ in range(2):
            self.publish()
            self.assertEqual(6, self.capacity('host1'))
            self.assertExact()
        self.rounds(4)
        self.assertExact()
        # One is detached, and given back.
        self.api.detach_interface(server['id'], ports[2]['id'])
        self.rounds(4)
        self.assertEqual((2, 8), self.used('host1'))
        self.assertEqual(6, self.capacity('host1'))
        # What Nova does not find when the server is deleted stays bound, and
        # counts once.
        ports[1].update(device_owner='compute:nova', device_id=server['id'])
        self.delete_all([server['id']])
        self.rounds()
        self.assertEqual((0, 0), self.used('host1'))
        self.assertEqual(5, self.capacity('host1'))
        # Nobody's claim covers it.
        building = self.guest(nics=2)
        ports[0]['device_id'] = building['id']
        for _ in range(2):
            self.publish()
            self.assertEqual((5, (2, 8)), (
                self.capacity('host1'), self.used('host1')))
        self.refused('vSwitch ports: 4 needed', nics=4)
        self.guest(nics=3)


class FullTest(LedgerTestCase):
    def test_taken_by_others(self):
        """Other schedulers place guests of which Neutron knows nothing."""
        server = self.guest(host='host1')
        others = [self.claim_by_hand('host1', 4),
                  self.claim_by_hand('host2', 6)]
        self.refused('vSwitch ports: 2 needed, best host: 1 of 10 free '
                     '(2 hosts)', nics=2)
        self.assertEqual('host1', self.host(self.guest()))
        full = ('vSwitch ports: 1 needed, best host: 0 of 10 free (2 hosts)')
        self.refused(full)
        # A guest of ours goes, then one of theirs, and the next one gets in at
        # once, without a round in between.
        self.delete_all([server['id']])
        self.assertEqual('host1', self.host(self.guest()))
        self.refused(full)
        self.release(others[1])
        self.assertEqual('host2', self.host(self.guest(nics=6)))
        self.refused(full)
        self.release(others[0])
        self.assertExact()
        self.assertEmpty()

    def test_nobody_is_asked(self):
        """What Nova has asked Placement is enough."""
        self.guest(host='host1')
        self.claim_by_hand('host2', 6)
        # Nova has a way of its own to Placement, and the publisher's is gone.
        self.placement_api.stop()
        self.assertEqual('host1', self.host(self.guest(nics=5)))
        self.refused('vSwitch ports: 1 needed, ')
        self.assertExact(host2=6)


class SlowTest(LedgerTestCase):
    """Placement takes its time, and others place guests meanwhile."""

    hosts = tuple(f'host{number}' for number in range(1, 7))

    def setUp(self):
        super().setUp()
        self.meanwhile = lambda: None
        self.tried = 0
        ask = report.SchedulerReportClient.get_allocation_candidates
        put = report.SchedulerReportClient.claim_resources

        def answer(*args, **kwargs):
            found = ask(*args, **kwargs)
            self.meanwhile()
            return found

        def claim(*args, **kwargs):
            self.tried += 1
            return put(*args, **kwargs)

        for name, function in (('get_allocation_candidates', answer),
                               ('claim_resources', claim)):
            self.useFixture(fixtures.MonkeyPatch(
                'nova.scheduler.client.report.SchedulerReportClient.' + name,
                function))

    def test_full_hosts_are_not_tried(self):
        """However late the answer, it says that they are full."""
        for host in self.hosts:
            self.claim_by_hand(host, 6)
        self.meanwhile = lambda: time.sleep(3)
        self.refused('vSwitch ports: 1 needed, best host: 0 of 10 free '
                     '(6 hosts)')
        self.assertEqual(0, self.tried)

    def test_hosts_that_fill_meanwhile(self):
        """Those alone are tried in vain."""
        def fill():
            for host in self.hosts[:2]:
                self.claim_by_hand(host, 6)

        self.meanwhile = fill
        self.assertIn(self.host(self.guest()), self.hosts[2:])
        self.assertLessEqual(self.tried, 3)


class RaceTest(LedgerTestCase):
    """Two schedulers, 50 requests at once, room for 30 of them."""

    hosts = ('host1', 'host2', 'host3')
    limits = {**LedgerTestCase.limits, 'vswitch_ports_per_node': 20,
              'security_rules_per_node': 1000}

    def configure(self):
        super().configure()
        self.flags(cpu_allocation_ratio=16.0)

    def spec(self):
        """What a real boot asks of the scheduler."""
        specs = []
        decide = self.scheduler.manager._schedule

        def record(context, spec, *args, **kwargs):
            specs.append(spec.obj_clone())
            return decide(context, spec, *args, **kwargs)

        with mock.patch.object(self.scheduler.manager, '_schedule', record):
            self.delete_all([self.guest()['id']])
        return specs[0]

    def race(self, spec, schedulers, count=50):
        """Schedule that many guests at once.

        :returns: host of each that was placed by its UUID, the reasons of the
            others in the same way, and those of whom Placement has refused a
            claim
        """
        placed, reasons, lost, wrong = {}, {}, set(), []
        gate = threading.Barrier(count)
        claim_resources = utils.claim_resources

        def claim(context, client, spec, instance, *args, **kwargs):
            claimed = claim_resources(
                context, client, spec, instance, *args, **kwargs)
            if not claimed:
                lost.add(instance)
            return claimed

        def schedule(number):
            request = spec.obj_clone()
            request.instance_uuid = uuidutils.generate_uuid()
            gate.wait()
            try:
                selections = schedulers[
                    number % len(schedulers)].select_destinations(
                        self.ctxt.elevated(), spec_obj=request,
                        instance_uuids=[request.instance_uuid],
                        return_objects=True, return_alternates=True)
                placed[request.instance_uuid] = (
                    selections[0][0].service_host)
            except rpc.ExpectedException as exc:
                reasons[request.instance_uuid] = str(exc.exc_info[1])
            except Exception as exc:
                wrong.append(exc)

        threads = [threading.Thread(target=schedule, args=(number,))
                   for number in range(count)]
        with mock.patch.object(utils, 'claim_resources', claim):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual([], wrong)
        return placed, reasons, lost

    def assert_full(self, reasons, lost):
        # Nova says no more than that there are not enough hosts to who has
        # lost a race for Placement, or met a conflict of generations.
        self.assertLessEqual(
            {reason for instance, reason in reasons.items()
             if instance not in lost},
            {'No valid host was found. vSwitch ports: 1 needed, best host: '
             '0 of 20 free (3 hosts)'})

    def test_fifty_guests(self):
        for host in self.hosts:
            # With 4 physical ports, 10 are left.
            self.bind(host, 6)
        self.publish()
        spec = self.spec()
        schedulers = [self.scheduler.manager, manager.SchedulerManager()]
        placed, reasons, lost = self.race(spec, schedulers)
        self.assertEqual((30, 20), (len(placed), len(reasons)),
                         collections.Counter(reasons.values()))
        self.assertEqual(dict.fromkeys(self.hosts, 10),
                         collections.Counter(placed.values()))
        self.assert_full(reasons, lost)
        for host in self.hosts:
            self.assertEqual((10, 40), self.used(host))
            self.assertEqual(10, self.capacity(host))
        late, reasons, _ = self.race(spec, schedulers, 4)
        self.assertEqual({}, late)
        for reason in reasons.values():
            self.assertIn('vSwitch ports: 1 needed, best host: ', reason)
        for consumer in placed:
            self.release(consumer)
        for host in self.hosts:
            self.assertEqual((0, 0), self.used(host))

    def test_behind_others(self):
        """Another process has left one place on each host."""
        for host in self.hosts:
            self.bind(host, 6)
        self.publish()
        spec = self.spec()
        others = [self.claim_by_hand(host, 9) for host in self.hosts]
        placed, reasons, lost = self.race(
            spec, [self.scheduler.manager], 12)
        self.assertEqual(sorted(self.hosts), sorted(placed.values()))
        self.assertEqual(9, len(reasons))
        self.assert_full(reasons, lost)
        for consumer in [*placed, *others]:
            self.release(consumer)
        for host in self.hosts:
            self.assertEqual((0, 0), self.used(host))
