# SPDX-License-Identifier: Apache-2.0
"""What Neutron is asked for a request, and what is assumed if it is late."""

from concurrent import futures
import threading
import time

import fixtures

from nfv_sched.ledger import neutron
from nfv_sched.limits import demand
from nfv_sched.nova import scheduler
from nfv_sched.tests.unit.limits import base
from nfv_sched.tests.unit.limits import neutron_api

NIC = demand.RequestedNIC
LOOKUP_THREAD = 'nfv-sched-lookup'
USUAL = ['networks', 'security-groups', 'security-group-rules']


class LookupTest(base.NeutronTestCase):

    def setUp(self):
        super().setUp()
        self.flags(neutron_lookup_timeout=20.0)
        self.default = neutron_api.group('p')
        self.api.groups = [self.default]
        self.api.rules = [neutron_api.rule(self.default['id'])]
        self.api.networks = [{'id': 'net', 'port_security_enabled': True}]
        self.lookups = neutron.Lookups()
        self.addCleanup(self.lookups.close)

    def demand(self, *nics, groups=(), project='p', server=None):
        """What a server takes, with 99 rules for a port that is not known."""
        interfaces = demand.Interfaces(
            nics or (NIC('net'),), groups, project, server)
        interfaces.use(self.lookups.look_up(interfaces.lacking()))
        return demand.of_request(interfaces, 0, 0, 0, 99)

    def rules(self, *nics, **kwargs):
        return self.demand(*nics, **kwargs).rules

    def group(self, rules, project='p', name='other'):
        """A security group with so many rules."""
        group = neutron_api.group(project, name)
        self.api.groups = self.api.groups + [group]
        self.api.rules = self.api.rules + [
            neutron_api.rule(group['id']) for _ in range(rules)]
        return group['id']

    def port(self, *groups, **kwargs):
        port = neutron_api.port(groups=groups, **{
            'owner': '', 'device': '', **kwargs})
        self.api.ports = self.api.ports + [port]
        return port['id']

    def asked(self):
        """Which resources were asked for since."""
        asked = [resource for resource, _query in self.api.requests]
        self.api.requests.clear()
        return asked

    def test_groups(self):
        """They alone are asked for; those that do not show have no rules."""
        self.assertEqual(1, self.rules())
        self.assertEqual(USUAL, self.asked())
        group = self.group(20)
        self.assertEqual(20, self.rules(groups=[group]))
        self.assertEqual(
            [['security_group_id', [group]]],
            [[name, query[name]] for resource, query in self.api.requests
             for name in query.keys() & neutron_api.FILTERS
             if resource.endswith('rules')])
        self.assertEqual(42, self.rules(
            NIC('net'), NIC('auto'), groups=[group, 'default', 'hidden']))
        self.asked()
        self.assertEqual(0, self.demand(NIC('none')).vswitch_ports)
        self.assertEqual([], self.asked())

    def test_ports(self):
        group = self.group(20)
        port = self.port(group, self.default['id'])
        beside = self.port(group, vnic_type='direct')
        found = self.demand(NIC(port=port), NIC(port=beside))
        self.assertEqual((1, 21), (found.vswitch_ports, found.rules))
        self.assertEqual(['ports', 'security-group-rules'], self.asked())

    def test_ports_of_a_server(self):
        """Those of its project count, whatever the request names."""
        of_server = {'owner': 'compute:nova', 'device': 'vm', 'host': 'h'}
        group = self.group(20)
        for project in ('p', 'p', 'other'):
            self.port(group, project=project, **of_server)
        found = self.demand(NIC('net'), server='vm')
        self.assertEqual((2, 40), (found.vswitch_ports, found.rules))
        self.assertEqual(1, self.demand(server='other').vswitch_ports)

    def test_networks(self):
        self.api.networks.append(
            {'id': 'open', 'port_security_enabled': False})
        self.api.networks.append({'id': 'safe'})
        self.assertEqual(0, self.rules(NIC('open')))
        self.assertEqual(1, self.rules(NIC('safe'), NIC('open')))
        self.assertEqual(1, self.rules(NIC('gone')))

    def test_default_group(self):
        """It is there, or comes with the first port."""
        self.group(6, 'p2', 'default')
        self.assertEqual(12, self.rules(
            NIC('net'), NIC('net'), groups=['default'], project='p2'))
        self.assertEqual(4, self.rules(project='p3'))
        self.api.missing.clear()
        self.api.default_rules = [
            {'id': str(number), 'used_in_default_sg': number != 3}
            for number in range(6)]
        self.assertEqual(5, self.rules(project='p4'))

    def test_burst(self):
        """Of servers that need the same one asks, but for their ports."""
        with futures.ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: self.rules(), range(40)))
        self.assertEqual([1] * 40, found)
        self.assertEqual(USUAL, self.asked())
        port = NIC(port=self.port(self.default['id']))
        for _ in range(2):
            self.assertEqual(1, self.rules(port))
            self.assertEqual(['ports', 'security-group-rules'], self.asked())
        self.lookups.KEPT = 0.0
        for _ in range(2):
            self.rules(NIC('other'))
            self.assertEqual(USUAL, self.asked())

    def test_never(self):
        self.flags(neutron_lookup_timeout=0.0)
        self.assertEqual(99, self.rules())
        self.assertEqual([], self.asked())

    def test_failure(self):
        """The most is assumed, nobody waits for a while, and it ends."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ledger.neutron.Lookups.FIRST_PAUSE', 0.5))
        self.api.faults['security-group-rules'] = (
            lambda handler, query, body: handler.reply({}, 500))
        for _ in range(5):
            self.assertEqual(99, self.rules())
        self.assertEqual(USUAL, self.asked())
        self.assertEqual(1, self.log.output.count('cannot be asked'))
        self.assertNotIn('Traceback', self.log.output)
        self.api.faults = {}
        self.wait_for(lambda: self.rules() == 1)
        self.assertEqual(0, self.lookups.failures)

    def test_defect(self):
        """Also if it is not Neutron that fails."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.limits.usage.Supplement', None))
        self.assertEqual(99, self.rules(groups=[self.group(1)]))
        self.assertEqual(1, self.log.output.count('cannot be asked'))
        self.assertIn('Traceback', self.log.output)

    def test_late(self):
        """A request waits so long and no longer, whatever hangs."""
        self.flags(neutron_lookup_timeout=0.3)
        answer = threading.Event()
        self.addCleanup(answer.set)
        self.api.faults['security-group-rules'] = (
            lambda handler, query, body: answer.wait(10))
        begin = time.monotonic()
        self.assertEqual(99, self.rules())
        self.assertTrue(0.29 < time.monotonic() - begin < 2)
        begin = time.monotonic()
        for _ in range(100):
            self.assertEqual(99, self.rules())
        self.assertLess(time.monotonic() - begin, 3)

    def test_many_at_once(self):
        """Few connections are open."""
        current, most = [], []

        def slow(handler, query, body):
            current.append(1)
            most.append(len(current))
            time.sleep(0.05)
            current.pop()
            return True

        self.api.faults['security-group-rules'] = slow
        groups = [self.group(number) for number in (1, 2, 3)]
        found = []
        threads = [threading.Thread(target=lambda group=group: found.append(
            self.rules(groups=[group]))) for group in groups * 5]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted([1, 2, 3] * 5), sorted(found))
        self.assertLessEqual(max(most), neutron.Lookups.THREADS)

    def test_bounded(self):
        """What one request may ask for."""
        self.assertEqual(99, self.rules(
            groups=[self.group(1) for _ in range(60)]))

    def test_close(self):
        """Nothing is left running."""
        self.rules()
        self.wait_for(lambda: self.lookups.readers)
        self.lookups.close()
        self.assertEqual([], self.lookups.readers)
        # A thread that is done may take a moment to end.
        self.wait_for(lambda: LOOKUP_THREAD not in [
            thread.name for thread in threading.enumerate()])


class DoubtsTest(base.NeutronTestCase):
    """Complete answers that lack most of what there was."""

    def setUp(self):
        super().setUp()
        self.ports = [neutron_api.port(host='h', groups=['g'])
                      for _ in range(5)]
        self.api.ports = self.ports
        self.api.rules = [neutron_api.rule('g')]

    def test_reader(self):
        """It takes several readings, and time; a new reader counts on."""
        self.flags(max_snapshot_age=4.0)
        doubts = base.TrustingCheck()
        first = neutron.Reader(doubts=doubts).read()
        ports, self.api.ports = self.api.ports, []

        def doubted():
            return 'no port of a server' in str(self.assertRaises(
                neutron.ImplausibleError,
                neutron.Reader(doubts=doubts).read, first))

        self.assertTrue(doubted())
        time.sleep(2.1)
        self.assertTrue(doubted())
        self.assertEqual(
            {}, dict(neutron.Reader(doubts=doubts).read(first).ports))
        self.assertIn('is believed', self.log.output)
        # However many there are, and not counting those before a sound one.
        self.flags(max_snapshot_age=3600.0)
        for _ in range(5):
            self.assertTrue(doubted())
        self.api.ports = ports
        neutron.Reader(doubts=doubts).read(first)
        self.flags(max_snapshot_age=4.0)
        time.sleep(2.1)
        self.api.ports = []
        self.assertTrue(doubted())
        doubts.is_trusting = True
        neutron.Reader(doubts=doubts).read(first)
        # With nothing to compare there is nothing to doubt.
        neutron.read_snapshot()

    def test_deleted_servers(self):
        """Nova knows whether the servers of missing ports are deleted."""
        deleted = set()
        self.useFixture(fixtures.MockPatchObject(
            scheduler, 'deleted_servers', deleted.intersection))
        doubts = neutron.ReadingCheck()
        first = neutron.Reader(doubts=doubts).read()
        self.api.ports = []
        for _ in range(3):
            self.assertRaises(neutron.ImplausibleError,
                              neutron.Reader(doubts=doubts).read, first)
        deleted.update(first.instances)
        neutron.Reader(doubts=doubts).read(first)
        # Servers say nothing about rules that are missing alone.
        self.api.ports, self.api.rules = self.ports, []
        self.assertRaises(neutron.ImplausibleError,
                          neutron.Reader(doubts=doubts).read, first)

    def test_first_reading(self):
        """Nova knows whether servers have ports."""
        connected = self.useFixture(fixtures.MockPatchObject(
            scheduler, 'has_connected_servers', return_value=True)).mock
        doubts = neutron.ReadingCheck()
        neutron.Reader(doubts=doubts).read()
        self.api.ports = []
        for _ in range(3):
            self.assertRaises(neutron.ImplausibleError,
                              neutron.Reader(doubts=doubts).read)
        connected.return_value = False
        neutron.Reader(doubts=doubts).read()
