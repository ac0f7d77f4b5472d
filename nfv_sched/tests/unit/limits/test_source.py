# SPDX-License-Identifier: Apache-2.0
"""The snapshot that is at hand: in the background, in time, in every process.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import fixtures

from nfv_sched.ledger import neutron
from nfv_sched.limits import reservations
from nfv_sched.tests.unit.limits import base
from nfv_sched.tests.unit.limits import neutron_api

UNREACHABLE = 'Neutron cannot be read'
WORKERS_MODULE = 'nfv_sched.tests.workers'
BACK = 'Neutron can be read again'


class SnapshotSourceTest(base.NeutronTestCase):
    """A source in one process."""

    def setUp(self):
        super().setUp()
        self.api.ports = [neutron_api.port(host='h')]

    def add_port(self):
        """One more port, in a way that a request under way survives."""
        self.api.ports = self.api.ports + [neutron_api.port(host='h')]

    def wait_for_ports(self, source, number):
        """Wait until the source knows of so many ports on the host."""
        return self.wait_for(
            lambda: source.get().host('h').guest_ports == number)

    def test_starts_on_first_use(self):
        """Nothing happens before somebody asks."""
        threads = threading.active_count()
        source = self.source()
        time.sleep(0.3)
        self.assertEqual([], self.api.requests)
        self.assertEqual(threads, threading.active_count())
        self.assertEqual(1, source.get().host('h').guest_ports)

    def test_refreshes_by_itself(self):
        """New ports appear without anybody waiting for them."""
        source = self.source()
        first = source.get()
        self.add_port()
        self.wait_for_ports(source, 2)
        self.assertEqual(1, first.host('h').guest_ports)
        self.assertLess(first.taken, source.get().taken)
        self.assertTrue(source.is_fresh(source.get()))

    def test_no_reading_while_asked(self):
        """However often it is asked, Neutron is read once an interval."""
        self.flags(neutron_refresh_interval=60.0)
        source = self.source()
        snapshot = source.get()
        for _ in range(1000):
            self.assertIs(snapshot, source.get())
        self.assertEqual(1, len(self.api.asked('ports')))

    def test_one_refresh_at_a_time(self):
        """Many threads that ask at once start one reading."""
        current, most = [], []

        def slow(handler, query, body):
            current.append(1)
            most.append(len(current))
            time.sleep(0.1)
            current.pop()
            return True

        self.api.faults['ports'] = slow
        source = self.source()
        begin = threading.Barrier(20)
        snapshots = []

        def ask():
            begin.wait()
            for _ in range(5):
                snapshots.append(source.get())
                time.sleep(0.05)

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(100, len(snapshots))
        self.assertNotIn(None, snapshots)
        self.assertEqual({1}, set(most))
        self.assertEqual(1, len([
            thread for thread in threading.enumerate()
            if thread.name == 'nfv-sched-neutron']))

    def test_first_wait_is_bounded(self):
        """A request does not hang because Neutron does."""
        self.flags(neutron_first_fetch_timeout=0.3)
        answer = threading.Event()
        self.addCleanup(answer.set)

        def hang(handler, query, body):
            answer.wait(30)
            return True

        self.api.faults['ports'] = hang
        source = self.source()
        begin = time.monotonic()
        self.assertIsNone(source.get())
        self.assertTrue(0.29 <= time.monotonic() - begin < 5)
        begin = time.monotonic()
        for _ in range(100):
            self.assertIsNone(source.get())
        self.assertLess(time.monotonic() - begin, 0.25)
        answer.set()
        self.wait_for(source.get)

    def test_no_wait_for_what_has_failed(self):
        """A refused connection is known at once."""
        self.api.stop()
        source = self.source()
        begin = time.monotonic()
        self.assertIsNone(source.get())
        self.assertLess(time.monotonic() - begin, 10)
        self.assertFalse(source.is_fresh(None))

    def test_outage(self):
        """The old figures stay, the log says it once, and all comes back."""
        source = self.source()
        source.get()
        failures = [
            lambda handler, query, body: handler.reply({}, 500),
            lambda handler, query, body: handler.reply(b'{"ports": [{'),
            lambda handler, query, body: setattr(
                handler, 'close_connection', True)]
        tried = []

        def fail(handler, query, body):
            tried.append(1)
            failures[len(tried) % 3](handler, query, body)

        self.api.faults['security-group-rules'] = fail
        self.add_port()
        self.wait_for(lambda: len(tried) >= 7)
        snapshot = source.get()
        self.assertEqual(1, snapshot.host('h').guest_ports)
        self.assertEqual(1, self.log.output.count(UNREACHABLE))
        self.assertNotIn(BACK, self.log.output)
        self.api.faults = {}
        self.wait_for_ports(source, 2)
        self.wait_for(lambda: BACK in self.log.output)
        self.add_port()
        self.wait_for_ports(source, 3)
        self.assertEqual(1, self.log.output.count(BACK))
        self.assertNotIn('Traceback', self.log.output)
        # The next outage is told again.
        self.api.faults['ports'] = fail
        self.wait_for(lambda: self.log.output.count(UNREACHABLE) == 2)

    def test_server_that_goes_and_comes(self):
        """Connections that were open before are no trouble."""
        source = self.source()
        source.get()
        self.api.stop()
        self.wait_for(lambda: UNREACHABLE in self.log.output)
        self.add_port()
        self.api.start()
        self.wait_for_ports(source, 2)

    def test_neutron_that_moves(self):
        """After a failure the address is looked up anew."""
        self.configure_keystone(
            region_name='RegionOne', valid_interfaces='internal')
        source = self.source()
        source.get()
        other = neutron_api.NeutronAPI()
        other.ports = [neutron_api.port(host='h') for _ in range(9)]
        other.start()
        self.addCleanup(other.stop)
        self.api.catalog_url = other.url
        self.api.missing = {'ports'}
        self.wait_for_ports(source, 9)

    def test_slow_server(self):
        """Requests that take too long are given up, and tried again."""
        source = self.source()
        source.get()
        self.flags(neutron_request_timeout=0.2)
        self.api.faults['ports'] = lambda *args: time.sleep(1)
        self.wait_for(lambda: UNREACHABLE in self.log.output)
        self.api.faults = {}
        self.flags(neutron_request_timeout=20.0)
        self.add_port()
        self.wait_for_ports(source, 2)

    def test_stale(self):
        """Old figures are still given, but are not fresh; one line says so."""
        source = self.source()
        source.get()
        self.flags(max_snapshot_age=0.5)
        self.api.stop()
        self.wait_for(lambda: not source.is_fresh(source.get()))
        self.wait_for(lambda: 'stale_snapshot_policy=allow' in
                      self.log.output)
        time.sleep(0.5)
        self.assertEqual(1, source.get().host('h').guest_ports)
        self.assertEqual(1, self.log.output.count('stale_snapshot_policy'))
        self.api.start()
        self.wait_for(lambda: source.is_fresh(source.get()))
        # The next time is told again.
        self.api.stop()
        self.wait_for(lambda: self.log.output.count(
            'stale_snapshot_policy') == 2)

    def test_never_there(self):
        """With no figures at all the first line names the policy."""
        self.flags(stale_snapshot_policy='deny')
        self.api.stop()
        source = self.source()
        self.assertIsNone(source.get())
        self.wait_for(lambda: source.refresher().failures >= 3)
        self.assertEqual(1, self.log.output.count(UNREACHABLE))
        self.assertEqual(
            1, self.log.output.count('stale_snapshot_policy=deny'))

    def test_read_too_seldom(self):
        """Figures that must become stale are worth a line."""
        self.flags(max_snapshot_age=1.0, neutron_refresh_interval=60.0)
        self.source().get()
        self.wait_for(lambda: 'Neutron is read every 60 s' in
                      self.log.output)

    def test_read_too_slowly(self):
        """Much time is spent reading, because figures must stay fresh."""
        self.flags(max_snapshot_age=4.0)

        def slow(handler, query, body):
            time.sleep(0.4)
            return True

        self.api.faults['ports'] = slow
        source = self.source()
        source.get()
        self.wait_for(lambda: len(self.api.asked('ports')) >= 3)
        self.assertEqual(1, self.log.output.count('raise max_snapshot_age'))
        self.assertNotIn('stale_snapshot_policy', self.log.output)
        self.assertTrue(source.is_fresh(source.get()))

    def test_pauses(self):
        """Each failure doubles the pause, up to the interval."""
        self.flags(neutron_refresh_interval=60.0)
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ledger.neutron.NeutronRefresher.FIRST_PAUSE', 1.0))
        self.useFixture(fixtures.MonkeyPatch(
            'random.uniform', lambda low, high: 1.0))
        refresher = neutron.NeutronRefresher(neutron.CONF,
                                             reservations.Memory())
        pauses = []
        for refresher.failures in range(9):
            pauses.append(refresher.pause(2.0))
        self.assertEqual([58, 1, 2, 4, 8, 16, 32, 60, 60], pauses)
        refresher.failures = 10 ** 6
        self.assertEqual(60, refresher.pause(2.0))
        # A twentieth of the time is spent reading, unless figures get old.
        refresher.failures = 0
        self.assertEqual(57, refresher.pause(3.0))
        self.assertAlmostEqual(95, refresher.pause(5.0))
        for took in (8.0, 50.0, 100.0):
            self.assertEqual(150, refresher.pause(took))
        self.assertEqual(200, refresher.pause(200.0))

    def test_thread_that_ends(self):
        """Whatever ends the thread, the next call starts another."""
        source = self.source()
        source.get()

        def end(reader, previous):
            raise SystemExit

        with fixtures.MonkeyPatch(
                'nfv_sched.ledger.neutron.Reader.read', end):
            thread, = [thread for thread in threading.enumerate()
                       if thread.name == neutron.NeutronRefresher.name]
            self.wait_for(lambda: not thread.is_alive())
        self.add_port()
        self.wait_for_ports(source, 2)

    def test_defect(self):
        """An error of this program is told with its traceback."""
        with fixtures.MonkeyPatch(
                'nfv_sched.limits.usage.SnapshotBuilder', None):
            source = self.source()
            self.assertIsNone(source.get())
            self.wait_for(lambda: 'Traceback' in self.log.output)
            self.wait_for(lambda: source.refresher().failures >= 2)
        self.wait_for(source.get)
        self.assertEqual(1, self.log.output.count(UNREACHABLE))

    def test_stop(self):
        """The thread ends, and a new one can start."""
        source = self.source()
        source.get()
        source.stop()
        self.assertNotIn('nfv-sched-neutron', [
            thread.name for thread in threading.enumerate()])
        self.add_port()
        self.assertEqual(2, source.get().host('h').guest_ports)

    def test_unchanged_ports_are_kept(self):
        """Each snapshot shares with the one before what is the same."""
        source = self.source()
        first = source.get()
        self.add_port()
        self.wait_for_ports(source, 2)
        port = self.api.ports[0]['id']
        self.assertIs(first.ports[port], source.get().ports[port])


class ForkTest(base.NeutronTestCase):
    """A source that was used before ``nova-scheduler`` forks its workers."""

    WORKERS = 2

    def _in_child(self, source, pipe):
        """What a worker does; its last line goes to the parent."""
        begin = time.monotonic()
        snapshot = source.get()
        os.write(pipe, json.dumps(
            {'ports': len(snapshot.ports),
             'own': snapshot.taken >= begin,
             'threads': [thread.name for thread in threading.enumerate()
                         if thread is not threading.current_thread()],
             }).encode() + b'\n')
        deadline = time.monotonic() + 30
        while len(source.get().ports) == len(snapshot.ports):
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
        os.write(pipe, json.dumps(
            {'ports': len(source.get().ports)}).encode() + b'\n')

    def _fork(self, source):
        """Fork as oslo.service does.

        :returns: the pipe on which the child reports
        """
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                signal.alarm(60)  # a child that hangs must not stay
                os.close(reader)
                self._in_child(source, writer)
            finally:
                os._exit(0)
        os.close(writer)
        self.addCleanup(os.waitpid, pid, 0)
        return os.fdopen(reader)

    def _assert_live(self, source):
        """Each of several children reads Neutron itself, again and again."""
        children = [self._fork(source) for _ in range(self.WORKERS)]
        for child in children:
            self.addCleanup(child.close)
            self.assertEqual(
                {'ports': 1, 'own': True, 'threads': ['nfv-sched-neutron']},
                json.loads(child.readline()))
        self.api.ports = self.api.ports + [neutron_api.port(host='h')]
        for child in children:
            self.assertEqual({'ports': 2}, json.loads(child.readline()))

    def setUp(self):
        super().setUp()
        self.api.ports = [neutron_api.port(host='h')]

    def test_unused_before(self):
        """The ordinary case: filters are made before the fork."""
        self._assert_live(self.source())

    def test_used_before(self):
        """The thread of the parent is not there in the children."""
        source = self.source()
        source.get()
        self._assert_live(source)
        # The parent goes on by itself.
        self.wait_for(lambda: len(source.get().ports) == 2)

    def test_locked_before(self):
        """What is locked when the process forks stays locked in the child."""
        source = self.source()
        source.get()
        with source.refresher().lock:
            self._assert_live(source)

    def test_reading_before(self):
        """The fork comes in the middle of a reading."""
        reading, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def hang(handler, query, body):
            if not reading.is_set():
                reading.set()
                go_on.wait(60)
            return True

        self.flags(neutron_first_fetch_timeout=0.1)
        self.api.faults['ports'] = hang
        source = self.source()
        self.assertIsNone(source.get())
        self.assertTrue(reading.wait(20))
        self.flags(neutron_first_fetch_timeout=20.0)
        self._assert_live(source)
        go_on.set()
        self.wait_for(source.get)

    def test_oslo_service(self):
        """The launcher that Nova uses starts the workers."""
        process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m', WORKERS_MODULE,
             self.nova_conf], stdout=subprocess.PIPE, text=True)
        # One that hangs is ended, and the test then finds no line to read.
        watchdog = threading.Timer(60, process.kill)
        self.addCleanup(watchdog.cancel)
        watchdog.start()
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.terminate)
        pids = set()
        for _ in range(self.WORKERS):
            pid, ports = json.loads(process.stdout.readline())
            self.assertEqual(1, ports)
            pids.add(pid)
        self.assertEqual(self.WORKERS, len(pids - {process.pid}))
        self.api.ports = self.api.ports + [neutron_api.port(host='h')]
        self.assertEqual(
            {(pid, 2) for pid in pids},
            {tuple(json.loads(process.stdout.readline())) for _ in pids})
