# SPDX-License-Identifier: Apache-2.0
"""The bed itself: what its command says, and what it must never do."""

import ipaddress
import json
import os
import pathlib
import subprocess
import sys

import fixtures
import openstack
import psutil
import testtools

from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import cloud
from nfv_sched.tests.live.bed import configuration
from nfv_sched.tests.live.bed import errors
from nfv_sched.tests.live.bed import layout
from nfv_sched.tests.live.bed import ports
from nfv_sched.tests.live.bed import processes


def _names(path: pathlib.Path) -> dict[str, str]:
    """Pinned versions by the normal name of a package."""
    lines = path.read_text().splitlines()
    pairs = (line.split('==') for line in lines if '==' in line)
    return {name.lower().replace('_', '-').replace('.', '-'): version
            for name, version in pairs}


class CommandTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.bed = base.the_bed()

    def command(self, *arguments, status=0):
        """Run the command on the bed, and return what it prints."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m',
             'nfv_sched.tests.live.bed', *arguments],
            env={**os.environ, 'NFV_SCHED_LIVE': str(self.bed.directory)},
            cwd=layout.SOURCE, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.assertEqual(status, done.returncode, done.stdout)
        return done.stdout

    def test_second_up(self):
        before = self.bed.services['mariadb'].pid
        self.assertIn('is running', self.command('up'))
        self.assertEqual(before, self.bed.services['mariadb'].pid)

    def test_status(self):
        status = json.loads(self.command('status', '--format', 'json'))
        self.assertEqual(
            set(self.bed.services),
            {row['service'] for row in status['services']
             if row['state'] == 'running' and row['pss_mib'] >= 0})
        for service in self.bed.services:
            self.assertIn(service, self.command('status'))

    def test_environment(self):
        exported = {}
        for line in self.command('env', '--tenant').splitlines():
            name, value = line.removeprefix('export ').split('=', 1)
            exported[name] = value.strip("'")
        for name, value in exported.items():
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        with openstack.connect(cloud='envvars') as connection:
            self.assertEqual(
                base.connection(tenant=True).current_project_id,
                connection.current_project_id)

    def test_logs(self):
        self.assertIn('uWSGI', self.command('logs', 'keystone', '-n', '10000'))
        self.assertIn('There is no log of nothing; there are agents',
                      self.command('logs', 'nothing', status=1))

    def test_listens_on_loopback_only(self):
        addresses = {
            (connection.laddr.ip, connection.laddr.port)
            for service in self.bed.services.values() for pid in service.pids
            for connection in psutil.Process(pid).net_connections()
            if connection.status == psutil.CONN_LISTEN}
        # Watcher runs for its own tests only.
        self.assertLessEqual(
            {port for name, port in self.bed.layout.ports.items()
             if name != 'watcher'},
            {port for _, port in addresses})
        for address, port in addresses:
            self.assertTrue(
                ipaddress.ip_address(
                    address.removeprefix('::ffff:')).is_loopback,
                f'{address} {port}')

    def test_workers_of_the_schedulers(self):
        for service in self.bed.schedulers:
            self.assertEqual(configuration.SCHEDULER_WORKERS,
                             len(service.worker_pids))


class ProcessTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        for name in ('log', 'run'):
            (self.directory / name).mkdir()

    def service(self, script, **kwargs):
        """A service of the shell."""
        service = processes.Service(
            'sleeper', ['/bin/sh', '-c', script], {'PATH': os.defpath},
            self.directory, **kwargs)
        self.addCleanup(service.kill)
        return service

    def test_life(self):
        service = self.service('sleep 1000 & sleep 1000')
        self.assertEqual('stopped', service.state)
        service.start()
        self.assertEqual('running', service.state)
        self.assertRaises(errors.BedError, service.start)
        # A process that waits for its child's exec() is not frozen if the
        # child is.
        self.assertTrue(processes.wait(lambda: [
            psutil.Process(pid).name() for pid in service.pids
        ].count('sleep') == 2, 10))
        service.freeze()
        self.assertEqual('frozen', service.state)
        service.thaw()
        self.assertEqual('running', service.state)
        pids = service.pids
        service.stop()
        self.assertEqual('stopped', service.state)
        for pid in pids:
            self.assertIsNone(processes.start_of(pid))

    def test_known_to_others(self):
        service = self.service('sleep 1000')
        service.start()
        self.assertEqual(service.pid, self.service('').pid)

    def test_recycled_pid(self):
        """A process that has got the number of a dead one is left alone."""
        victim = subprocess.Popen(['sleep', '1000'], start_new_session=True)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        boot, ticks = processes.start_of(victim.pid)
        record = self.directory / 'run' / 'sleeper.json'
        record.write_text(json.dumps(
            {'pid': victim.pid, 'boot': boot, 'started': ticks - 1}))
        service = self.service('')
        self.assertEqual('dead', service.state)
        self.assertEqual([], service.pids)
        service.stop()
        self.assertIsNone(victim.poll())

        record.write_text(json.dumps(
            {'pid': victim.pid, 'boot': boot, 'started': ticks}))
        self.assertEqual([victim.pid], service.pids)

    def test_ends_at_once(self):
        service = self.service('echo no such luck; exit 1',
                               ready=lambda: 'not there')
        service.start()
        error = self.assertRaises(errors.BedError, service.wait_ready)
        self.assertIn('sleeper has ended', str(error))
        self.assertIn('no such luck', str(error))
        self.assertIn(str(service.log), str(error))

    def test_never_ready(self):
        service = self.service('echo thinking; sleep 1000',
                               ready=lambda: 'no answer')
        service.start()
        error = self.assertRaises(errors.BedError, service.wait_ready, 0.5)
        self.assertIn('not ready after 0 s (no answer)', str(error))
        self.assertIn('thinking', str(error))


class DescriptionTest(testtools.TestCase):

    def load(self, text):
        """Read a description of the compute nodes."""
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path) / 'cloud.yaml'
        path.write_text(text)
        return cloud.load(path)

    def refusal(self, text):
        """Read one that makes no sense; return what is said."""
        return str(self.assertRaises(errors.BedError, self.load, text))

    def test_labels(self):
        hosts = self.load('hosts: {one: {vswitch: [1], places: {osd: [0]},'
                          'numa_nodes: [{cores: 2, memory_mb: 1024},'
                          '{cores: 2, memory_mb: 1024}]}}')
        self.assertEqual(
            {'nfv_vswitch': [1], 'nfv_osd': [0], 'nfv_node0': [0],
             'nfv_node1': [1]}, hosts['one'].physnets)

    def test_nonsense(self):
        node = '{cores: 2, memory_mb: 1024%s}'
        host = 'hosts: {one: {numa_nodes: [%s]%s}}'
        for text, expected in (
            ('hosts: {}', '$.hosts'),
            ('hosts: [', 'cannot be read'),
            (host % (node % ', colour: red', ''), 'colour'),
            (host % (node % '', ', vswitch: [1]'), 'has no NUMA node 1'),
            (host % (node % ', shared_cpus: 3', ''), '3 of them shared'),
            (host % (node % ', pages_1g: 2', ''), 'more huge pages'),
        ):
            self.assertIn(expected, self.refusal(text))


class LayoutTest(testtools.TestCase):

    def test_ports(self):
        first, second = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            for _ in range(2))
        one = ports.reserve(first, layout.PORTS)
        self.addCleanup(ports.release, first)
        two = ports.reserve(second, layout.PORTS)
        self.addCleanup(ports.release, second)
        self.assertEqual(set(layout.PORTS), set(one))
        self.assertFalse(set(one.values()) & set(two.values()))
        self.assertEqual(one, ports.reserve(first, layout.PORTS))

    def test_directory_in_use(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (directory / 'thesis.tex').touch()
        error = self.assertRaises(errors.BedError, layout.create, directory)
        self.assertIn('is not empty', str(error))

    def test_long_path(self):
        error = self.assertRaises(
            errors.BedError, layout.create, pathlib.Path('/' + 'x' * 100))
        self.assertIn('too long', str(error))

    def test_constraints_agree(self):
        """No package is pinned in both files of a release."""
        for suffix in ('.txt', '-2025.1.txt'):
            both = _names(layout.SOURCE / f'constraints{suffix}')
            live = _names(layout.SOURCE / f'constraints-live{suffix}')
            self.assertTrue(live)
            self.assertEqual(set(), set(both) & set(live))
