# SPDX-License-Identifier: Apache-2.0
"""What is younger than the figures, and is asked for in time or assumed."""

import threading
import time

import fixtures

from nfv_sched.ledger import neutron
from nfv_sched.limits import demand
from nfv_sched.tests.unit.limits import base
from nfv_sched.tests.unit.limits import neutron_api

NIC = demand.RequestedNIC
LOOKUP_THREAD = 'nfv-sched-lookup'


class LookupTest(base.NeutronTestCase):
    """A source that has read Neutron once, and what came after that."""

    def setUp(self):
        super().setUp()
        self.flags(neutron_refresh_interval=3600.0, max_snapshot_age=9000.0)
        self.known = neutron_api.group('p')
        self.api.groups = [self.known]
        self.api.rules = [neutron_api.rule(self.known['id'])]
        self.api.networks = [{'id': 'net', 'port_security_enabled': True}]
        self.figures = self.source()
        self.snapshot = self.figures.get()
        self.api.requests.clear()

    def rules(self, *nics, groups=(), project='p'):
        """Rules that a guest takes, 99 for a port if that is not known."""
        interfaces = demand.Interfaces(
            nics or (NIC('net'),), groups, project, self.snapshot)
        self.figures.look_up(self.snapshot, interfaces)
        return demand.of_request(interfaces, 0, 0, 0, 99).rules

    def new_group(self, rules, project='p', name='new'):
        """A security group that is not among the figures."""
        group = neutron_api.group(project, name)
        self.api.groups = self.api.groups + [group]
        self.api.rules = self.api.rules + [
            neutron_api.rule(group['id']) for _ in range(rules)]
        return group['id']

    def new_port(self, *groups, **kwargs):
        """A port that is not among the figures."""
        port = neutron_api.port(owner='', device='', groups=groups, **kwargs)
        self.api.ports = self.api.ports + [port]
        return port['id']

    def asked(self):
        """Which resources were asked for since."""
        asked = [resource for resource, _query in self.api.requests]
        self.api.requests.clear()
        return asked

    def test_nothing_lacking(self):
        """The ordinary request costs Neutron nothing."""
        self.assertEqual(1, self.rules())
        self.assertEqual(3, self.rules(NIC('net'), NIC('auto'), NIC('net'),
                                       groups=[self.known['id']]))
        self.assertEqual([], self.asked())

    def test_new_group(self):
        """It is asked for alone, and once."""
        group = self.new_group(20)
        self.assertEqual(20, self.rules(groups=[group]))
        self.assertEqual(
            [['security_group_id', [group]]],
            [[name, query[name]] for resource, query in self.api.requests
             for name in query.keys() & neutron_api.FILTERS])
        self.assertEqual(['security-group-rules'], self.asked())
        self.assertEqual(42, self.rules(
            NIC('net'), NIC('net'), groups=[group, 'default']))
        self.assertEqual([], self.asked())
        empty = self.new_group(0)
        for _ in range(2):
            self.assertEqual(20, self.rules(groups=[group, empty]))
        self.assertEqual(['security-group-rules', 'security-groups'],
                         self.asked())
        # Neutron says nothing of a group that it hides.
        self.assertEqual(99, self.rules(groups=['hidden']))

    def test_new_port(self):
        group = self.new_group(20)
        port = self.new_port(group, self.known['id'])
        beside = self.new_port(group, vnic_type='direct')
        for _ in range(2):
            self.assertEqual(21, self.rules(
                NIC(port=port), NIC(port=beside)))
        self.assertEqual(['ports', 'security-group-rules'], self.asked())

    def test_new_network(self):
        self.api.networks.append(
            {'id': 'open', 'port_security_enabled': False})
        self.api.networks.append({'id': 'safe'})
        self.assertEqual(0, self.rules(NIC('open')))
        self.assertEqual(1, self.rules(NIC('safe'), NIC('open')))
        self.assertEqual(1, self.rules(NIC('gone')))

    def test_new_project(self):
        """Its group is there, or comes with the first port."""
        self.new_group(6, 'p2', 'default')
        self.assertEqual(12, self.rules(
            NIC('net'), NIC('net'), groups=['default'], project='p2'))
        self.assertEqual(4, self.rules(project='p3'))
        self.api.missing.clear()
        self.api.default_rules = [
            {'id': str(number), 'used_in_default_sg': number != 3}
            for number in range(6)]
        self.assertEqual(5, self.rules(project='p4'))
        self.assertEqual(4, self.rules(project='p3'))

    def test_next_reading(self):
        """What was found is for the figures that lacked it."""
        group = self.new_group(3)
        self.assertEqual(3, self.rules(groups=[group]))
        self.api.rules = self.api.rules + [neutron_api.rule(group)]
        self.assertEqual(3, self.rules(groups=[group]))
        self.snapshot = self.figures.renew(time.monotonic(), 20.0)
        self.api.requests.clear()
        self.assertEqual(4, self.rules(groups=[group]))
        self.assertEqual([], self.asked())

    def test_never(self):
        self.flags(neutron_lookup_timeout=0.0)
        self.assertEqual(99, self.rules(groups=[self.new_group(20)]))
        self.assertEqual([], self.asked())

    def test_failure(self):
        """The most is assumed, nobody waits for a while, and it ends."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ledger.neutron.Lookups.FIRST_PAUSE', 0.5))
        group = self.new_group(20)
        self.api.faults['security-group-rules'] = (
            lambda handler, query, body: handler.reply({}, 500))
        for _ in range(5):
            self.assertEqual(99, self.rules(groups=[group]))
        self.assertEqual(['security-group-rules'], self.asked())
        self.assertEqual(1, self.log.output.count('cannot be asked'))
        self.assertNotIn('Traceback', self.log.output)
        self.api.faults = {}
        self.wait_for(lambda: self.rules(groups=[group]) == 20)

    def test_late(self):
        """A request waits so long and no longer, whatever hangs."""
        self.flags(neutron_lookup_timeout=0.3)
        group, answer = self.new_group(20), threading.Event()
        self.addCleanup(answer.set)
        self.api.faults['security-group-rules'] = (
            lambda handler, query, body: answer.wait(10))
        begin = time.monotonic()
        self.assertEqual(99, self.rules(groups=[group]))
        self.assertTrue(0.29 < time.monotonic() - begin < 2)
        begin = time.monotonic()
        for _ in range(100):
            self.assertEqual(99, self.rules(groups=[group]))
        self.assertLess(time.monotonic() - begin, 3)

    def test_many_at_once(self):
        """They share what is found; few connections are open."""
        current, most = [], []

        def slow(handler, query, body):
            current.append(1)
            most.append(len(current))
            time.sleep(0.05)
            current.pop()
            return True

        self.flags(neutron_lookup_timeout=20.0)
        self.api.faults['security-group-rules'] = slow
        groups = [self.new_group(number) for number in (1, 2, 3)]
        found = []
        threads = [threading.Thread(target=lambda group=group: found.append(
            self.rules(groups=[group]))) for group in groups * 10]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted([1, 2, 3] * 10), sorted(found))
        self.assertLessEqual(max(most), neutron.Lookups.THREADS)
        self.assertLessEqual(len(most), 8)

    def test_bounded(self):
        """Neither the questions of one request nor what is kept."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ledger.neutron.Lookups.KEPT', 60))
        groups = [self.new_group(1) for _ in range(120)]
        self.assertEqual(99, self.rules(groups=groups))
        for group in groups:
            self.assertEqual(1, self.rules(groups=[group]))
        lookups = self.figures.refresher().lookups
        self.assertLessEqual(lookups.kept(), 60)

    def test_stop(self):
        """Nothing is left running."""
        self.rules(groups=[self.new_group(1)])
        lookups = self.figures.refresher().lookups
        self.wait_for(lambda: lookups.readers)
        self.figures.stop()
        self.assertEqual([], lookups.readers)
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
        doubts = neutron.ReadingCheck()
        doubts.forget()  # for the first reading, and no other
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
        doubts.forget()
        neutron.Reader(doubts=doubts).read(first)
        # With nothing to compare there is nothing to doubt.
        neutron.read_snapshot()

    def test_deleted_servers(self):
        """Nova knows whether the servers of missing ports are deleted."""
        deleted = set()
        doubts = neutron.ReadingCheck(deleted=deleted.intersection)
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
        connected = [True]
        doubts = neutron.ReadingCheck(connected=lambda servers: connected[0])
        neutron.Reader(doubts=doubts).read()
        self.api.ports = []
        for _ in range(3):
            self.assertRaises(neutron.ImplausibleError,
                              neutron.Reader(doubts=doubts).read)
        connected[0] = False
        neutron.Reader(doubts=doubts).read()

    def test_source(self):
        """The figures stay as they are and grow old; one line says so."""
        self.flags(max_snapshot_age=60.0)
        source = self.source()
        first = source.get()
        self.api.ports = []
        self.wait_for(lambda: source.refresher().failures >= 5)
        self.assertIs(first, source.get())
        text = 'What Neutron shows is not believed'
        self.assertEqual(1, self.log.output.count(text))
        self.assertNotIn('Traceback', self.log.output)
        self.flags(max_snapshot_age=2.0)
        self.wait_for(lambda: source.get().ports == {})
        # The thread says so after it has set the new figures.
        self.wait_for(lambda: 'Neutron can be read again' in self.log.output)

    def test_first_reading_of_a_source(self):
        """It goes on trying, and one line says why there are no figures."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.nova.scheduler.has_connected_servers',
            lambda servers: True))
        self.api.ports = []
        source = self.source()
        self.assertIsNone(source.get())
        self.wait_for(lambda: source.refresher().failures >= 2)
        self.assertEqual(1, self.log.output.count(
            'is not believed, and there are no figures yet: no port of a'))
        self.assertNotIn('Traceback', self.log.output)
        self.api.ports = self.ports
        self.wait_for(lambda: source.get() is not None)

    def test_telling_fails(self):
        """That ends no thread."""
        def fail(refresher, exc):
            raise ValueError('nothing to tell')

        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ledger.neutron.NeutronRefresher.failed', fail))
        self.api.ports = [neutron_api.port(host=['h'])]
        source = self.source()
        self.assertIsNone(source.get())
        self.wait_for(lambda: source.refresher().failures >= 2)
        self.api.ports = self.ports
        self.wait_for(lambda: source.get() is not None)

    def test_source_that_forgets(self):
        source = self.source()
        source.get()
        source.forget()
        self.api.ports = []
        self.wait_for(lambda: not source.get().ports)
