# SPDX-License-Identifier: Apache-2.0
"""The bed itself: what it must never do."""

import ipaddress
import json
import os
import pathlib
import subprocess
import sys

import fixtures
import psutil
import testtools

from nfv_sched.tests.live import base
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

    def command(self, *arguments):
        return subprocess.run(
            [sys.executable, '-W', 'ignore', '-m',
             'nfv_sched.tests.live.bed', *arguments],
            env={**os.environ, 'NFV_SCHED_LIVE': str(self.bed.directory)},
            cwd=layout.SOURCE, text=True, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    def test_second_up(self):
        before = self.bed.services['mariadb'].pid
        self.assertIn('is running', self.command('up'))
        self.assertEqual(before, self.bed.services['mariadb'].pid)
        status = self.command('status')
        for service in self.bed.services:
            self.assertIn(service, status)

    def test_listens_on_loopback_only(self):
        addresses = {
            (connection.laddr.ip, connection.laddr.port)
            for service in self.bed.services.values() for pid in service.pids
            for connection in psutil.Process(pid).net_connections()
            if connection.status == psutil.CONN_LISTEN}
        self.assertLessEqual(set(self.bed.layout.ports.values()),
                             {port for _, port in addresses})
        for address, port in addresses:
            self.assertTrue(
                ipaddress.ip_address(
                    address.removeprefix('::ffff:')).is_loopback,
                f'{address} {port}')


class ProcessTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        for name in ('log', 'run'):
            (self.directory / name).mkdir()

    def service(self, script):
        service = processes.Service(
            'sleeper', ['/bin/sh', '-c', script], {'PATH': os.defpath},
            self.directory)
        self.addCleanup(service.kill)
        return service

    def test_life(self):
        service = self.service('sleep 1000 & sleep 1000')
        self.assertEqual('stopped', service.state)
        service.start()
        self.assertEqual('running', service.state)
        self.assertEqual(service.pid, self.service('').pid)
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

    def test_constraints_agree(self):
        """No package is pinned in both files of a release."""
        for suffix in ('.txt', '-2025.1.txt'):
            both = _names(layout.SOURCE / f'constraints{suffix}')
            live = _names(layout.SOURCE / f'constraints-live{suffix}')
            self.assertTrue(live)
            self.assertEqual(set(), set(both) & set(live))
