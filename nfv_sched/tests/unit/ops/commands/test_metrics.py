# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched metrics``."""

import argparse
import base64
import contextlib
import dataclasses
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from unittest import mock
import urllib.error
import urllib.parse
import urllib.request

import bcrypt
import fixtures
from oslo_db import exception as db_exception
from prometheus_client import parser

from nfv_sched.ops.answers.audit import values as audit_values
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.serve.metrics import collecting
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.answers.rebalance import test_levelling
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds

CLOUD = snapshots.with_uuids(dataclasses.replace(small_clouds.cloud(
    small_clouds.host('one', small_clouds.node(0, range(5)),
                      small_clouds.node(1, range(3))),
    small_clouds.host('two'), flavors=(
        small_clouds.flavor(name='vrouter.4'),
        small_clouds.flavor(6, name='fw.6'))),
    taken='2026-01-02T03:04:05Z',
    missing=(snapshot.Missing(
        kind=snapshot.MissingKind.SILENT_CELL, cell='2'),),
    network_agents=(test_levelling.agent('one', *'abcdef'),
                    test_levelling.agent('two')),
    network_services=tuple(map(test_levelling.service, 'abcdef'))))
JOURNAL = 'refusals-20260102T030405Z-1-0123abcd.jsonl'


def figures(text):
    return {(sample.name, *sample.labels.values()): sample.value
            for family in parser.text_string_to_metric_families(text)
            for sample in family.samples}


class MetricsTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.cloud = self.save_cloud(CLOUD)
        self.textfile = self.in_folder('nfv.prom')

    def refuse(self, *times):
        with open(self.in_folder(JOURNAL), 'ab') as opened:
            for second in times:
                opened.write(test_entry.line(test_entry.refusal(
                    time=f'2026-01-02T03:04:{second:02}.001Z')))


class TextFileTest(MetricsTestCase):

    def run_command(self, *args):
        return super().run_command('metrics', *args)

    def write(self, *args, missing=''):
        self.assertEqual(
            (1, '', f'{missing}error: {CLOUD.missing[0]}\n'),
            self.run_command('--textfile', self.textfile, '--from',
                             self.cloud, *args))
        with open(self.textfile) as written:
            return figures(written.read())

    def test_another_file_is_replaced(self):
        """What was in it is not shown at length, and no password."""
        log = self.useFixture(fixtures.FakeLogger())
        for content in ('a 1 password=hunter2', 'a ' + 'b' * 100000):
            self.write_file(self.textfile, content)
            self.write()
        self.assertEqual(2, log.output.count('its counts are lost'))
        self.assertNotIn('hunter2', log.output)
        self.assertLess(len(log.output), 5000)

    def collection(self):
        return collecting.Collection(argparse.Namespace(
            source=self.cloud, config_file=[], journal=None, flavors=[],
            failover=False))

    def test_no_late_failures(self):
        """Nova's API database, or a cell, fails after the cloud was read."""
        collection = self.collection()
        for answer, text in (
                (db_exception.DBConnectionError(),
                 "Nova's API database does not answer"),
                ([({}, ['cell 1 did not answer'])], 'cell 1 did not answer')):
            with mock.patch.object(
                    collection, 'late_failures', side_effect=answer):
                missing, = set(collection.collect()) - {str(CLOUD.missing[0])}
            self.assertIn(
                f'Late failures and retries are not known: {text}', missing)
        found = figures(collection.render('')[1].decode())
        self.assertEqual(2, found['nfv_sched_snapshot_missing',])
        self.assertIn(('nfv_sched_imbalance', 'router'), found)
        self.assertNotIn(('nfv_sched_late_failures', 'claim'), found)

    def test_accept(self):
        collection = self.collection()
        for version in ('1.0.0', '0', 'x', '1.x', '2.\r\n x', '9' * 5000, ''):
            for name in ('application/openmetrics-text', 'text/plain'):
                content_type, _text = collection.render(
                    f'{name}; version={version}')
                self.assertTrue(content_type.isprintable(), content_type)

    def test_audit_of_older_files(self):
        """Where no host could be checked, none is said to be in order."""
        kinds = {('nfv_sched_audit_findings', kind)
                 for kind in audit_values.KINDS}
        self.assertLessEqual(kinds, self.write().keys())
        file.save(dataclasses.replace(CLOUD, missing=snapshots.missing(
            str(CLOUD.missing[0]))), self.cloud)
        self.assertEqual(set(), kinds & self.write().keys())

    def test_written(self):
        found = self.write()
        for key, figure in (
                (('nfv_sched_imbalance', 'router'), 6),
                (('nfv_sched_rebalance_moves', 'router'), 2),
                (('nfv_sched_snapshot_timestamp_seconds',), 1767323045),
                (('nfv_sched_snapshot_missing',), 1)):
            self.assertEqual(figure, found[key], key)
        self.assertAlmostEqual(
            time.time() - 1767323045,
            found['nfv_sched_snapshot_age_seconds',], delta=60)
        self.assertEqual(['cloud', 'nfv.prom'],
                         sorted(os.listdir(self.folder)))

    def test_flavors(self):
        self.assertEqual({'vrouter.4'}, {
            key[2] for key in self.write('--flavors', 'v*')
            if key[0] == 'nfv_sched_flavor_fits'})
        code, _out, err = self.run_command(
            '--textfile', self.textfile, '--from', self.cloud,
            '--flavors', 'x*')
        self.assertEqual((2, "error: no flavor matches 'x*'; there are: "
                          'fw.6, vrouter.4\n'), (code, err))

    def test_failover(self):
        """Only if it is asked for, as it takes long."""
        name = 'nfv_sched_failover_stranded_servers'
        self.assertFalse([key for key in self.write() if key[0] == name])
        found = self.write('--failover')
        self.assertEqual((0, 0), (found[name, 'one'], found[name, 'two']))

    def test_refusals_are_counted_once(self):
        """Also when the journal has forgotten them."""
        args = ('--journal', self.folder)
        key = ('nfv_sched_refusals_total', 'nfv:key')
        self.assertNotIn(key, self.write(
            *args, missing=self.no_journal(self.folder)))
        self.refuse(1, 2)
        for _ in range(2):
            self.assertEqual(2, self.write(*args)[key])
        self.write_file(JOURNAL, '')
        self.assertEqual(2, self.write(*args)[key])
        self.refuse(2, 3)
        self.assertEqual(3, self.write(*args)[key])

    def test_shadow(self):
        args = ('--journal', self.folder)
        self.write_file(
            JOURNAL, test_entry.line(test_entry.placed(1)) + test_entry.line(
                test_entry.placed(2, change='', by=())))
        for _ in range(2):
            found = self.write(*args)
            self.assertEqual(
                1, found['nfv_sched_shadow_servers_total', 'refused'])
            self.assertEqual(
                1, found['nfv_sched_shadow_decisions_total', 'First',
                         'refused'])
            self.assertEqual(
                2, found['nfv_sched_shadow_decisions_total', 'Weigher',
                         'same'])
        self.write_file(JOURNAL, '')
        self.assertEqual(1, self.write(*args)[
            'nfv_sched_shadow_servers_total', 'same'])

    def test_what_is_none_of_ours(self):
        for text in ('{}', 'nfv_sched_refusals_total 5', '\0'):
            self.write_file(self.textfile, text)
            self.assertIn(('nfv_sched_snapshot_age_seconds',), self.write())
        for number in ('1e300', '-1', 'NaN', '+Inf'):
            self.write_file(self.textfile, f"""\
# TYPE nfv_sched_latest_refusal_timestamp_seconds gauge
nfv_sched_latest_refusal_timestamp_seconds {number}
# TYPE nfv_sched_refusals_total counter
nfv_sched_refusals_total{{policy="x"}} {number}
""")
            self.assertIn(('nfv_sched_snapshot_age_seconds',), self.write())

    def test_journal_that_is_not_there(self):
        path = self.in_folder('missing')
        self.write('--journal', path, missing='error: The decision journal '
                   f'cannot be read: {path}: No such file or directory\n')
        self.write('--journal', self.folder, missing=self.no_journal(
            self.folder))

    def no_journal(self, path):
        return ('error: The decision journal cannot be read: '
                f'{path}: has no decision journal (refusals-*.jsonl)\n')

    def test_cannot_be_written(self):
        for path, why in (
                ('/nonexistent/nfv.prom', 'No such file or directory'),
                ('/dev/null', 'not a regular file')):
            self.assertEqual(
                (1, '', f'error: {path}: {why}\n'), self.run_command(
                    '--textfile', path, '--from', self.cloud))

    def test_cannot_be_read(self):
        code, out, err = self.run_command(
            '--textfile', self.textfile, '--from', self.in_folder('missing'))
        self.assertEqual((1, 1), (code, err.count('\n')))
        self.assertFalse(os.path.exists(self.textfile))

    def test_usage(self):
        for args in (('--listen', '9180'), ('--listen', 'a:b'),
                     ('--listen', 'a:1', '--textfile', 'b'),
                     ('--listen', 'a:1', '--interval', '0'),
                     ('--textfile', 'b', '--tls-cert', 'c'),
                     ('--textfile', 'b', '--auth-file', 'c')):
            self.assertEqual(2, self.run_command(*args)[0])

    def test_address_in_use(self):
        with socket.create_server(('127.0.0.1', 0)) as used:
            address = f'127.0.0.1:{used.getsockname()[1]}'
            self.refused(
                f'error: {address}: Address already in use\n', '--listen',
                address, '--from', self.cloud, code=1)


class ListenTest(MetricsTestCase):
    def start(self, *args, files=None):
        """Start the command; ``files`` is its limit of open files."""
        self.process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m', 'nfv_sched.ops.cli.base',
             'metrics', '--listen', '127.0.0.1:0', '--interval', '1',
             '--from', self.cloud, '--journal', self.folder, *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=files and (lambda: resource.setrlimit(
                resource.RLIMIT_NOFILE, (files, files))))
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.process.kill)
        self.url = self.process.stdout.readline().strip()

    def scrape(self):
        with urllib.request.urlopen(self.url, timeout=60) as answer:
            return figures(answer.read().decode())

    def wait_for(self, key, accepts):
        end = time.monotonic() + 120
        while True:
            found = self.scrape()
            if accepts(found.get(key)):
                return found
            self.assertLess(time.monotonic(), end, found)
            time.sleep(0.1)

    def test_scraped(self):
        fits = ('nfv_sched_flavor_fits', '', 'vrouter.4', '1 normal')
        age = ('nfv_sched_snapshot_age_seconds',)
        taken = ('nfv_sched_snapshot_timestamp_seconds',)
        errors = ('nfv_sched_collection_errors_total',)
        refusals = ('nfv_sched_refusals_total', 'nfv:key')
        self.start()
        first = self.wait_for(fits, lambda figure: figure == 5)
        self.assertEqual(0, first[errors])
        self.refuse(1, 2)
        self.wait_for(refusals, lambda figure: figure == 2)

        # It cannot be read any more: the last figures stay, and grow old.
        os.rename(self.cloud, self.cloud + '-away')
        failed = self.wait_for(errors, lambda figure: figure >= 2)
        self.assertEqual(5, failed[fits])
        self.assertEqual(first[taken], failed[taken])
        self.assertGreater(failed[age], first[age])

        file.save(dataclasses.replace(
            CLOUD, hosts=CLOUD.hosts[1:], taken='2026-02-02T03:04:05Z'),
            self.cloud)
        again = self.wait_for(fits, lambda figure: figure == 4)
        self.assertGreater(again[taken], first[taken])
        self.assertGreaterEqual(again[errors], failed[errors])

        self.assertIn('The last figures are kept', self.end())

    def end(self):
        """End the process; return its standard error."""
        self.process.send_signal(signal.SIGTERM)
        _out, err = self.process.communicate(timeout=60)
        self.assertEqual(0, self.process.returncode, err)
        self.assertNotIn('Traceback', err)
        return err

    def test_ended_at_once(self):
        """Also while the cloud is read."""
        self.start()
        self.end()

    def test_refusals_before(self):
        """A counter that begins anew begins at 0."""
        refusals = ('nfv_sched_refusals_total', 'nfv:key')
        self.refuse(1, 2, 3)
        self.start()
        self.wait_for(refusals, lambda figure: figure == 0)
        self.refuse(4)
        self.wait_for(refusals, lambda figure: figure == 1)

    def attack(self, stopped):
        """Keep up to 500 connections, half of which read no answer."""
        address = urllib.parse.urlsplit(self.url)
        with contextlib.ExitStack() as stack:
            for number in range(500):
                with contextlib.suppress(OSError):
                    client = stack.enter_context(socket.create_connection(
                        (address.hostname, address.port), timeout=10))
                    if number % 2:
                        client.sendall(b'GET / HTTP/1.0\r\n\r\n')
                if stopped.wait(0.002):
                    return

    def test_collection_while_attacked(self):
        """Few files may be open; connections leave enough of them."""
        fits = ('nfv_sched_flavor_fits', '', 'vrouter.4', '1 normal')
        self.start(files=32)
        self.wait_for(fits, lambda figure: figure == 5)
        stopped = threading.Event()

        def attack():
            while not stopped.is_set():
                self.attack(stopped)

        attackers = [threading.Thread(target=attack) for _number in range(2)]
        for thread in attackers:
            thread.start()
            self.addCleanup(thread.join)
        self.addCleanup(stopped.set)
        time.sleep(1)
        file.save(dataclasses.replace(
            CLOUD, hosts=CLOUD.hosts[1:], taken='2026-02-02T03:04:05Z'),
            self.cloud)
        # A collection takes more than 4 seconds on a busy machine.
        time.sleep(12)
        stopped.set()
        for thread in attackers:
            thread.join()
        last = self.scrape()
        self.assertEqual(4, last[fits])
        self.assertEqual(0, last['nfv_sched_collection_errors_total',])
        err = self.end()
        self.assertIn('The limit of open files allows only 1 connections '
                      'instead of 32', err)
        self.assertNotIn('Too many open files', err)

    def test_password(self):
        self.start('--auth-file', self.write_file(
            'users', b'u:' + bcrypt.hashpw(b'p', bcrypt.gensalt(4))))
        error = self.assertRaises(urllib.error.HTTPError, self.scrape)
        self.addCleanup(error.close)
        self.assertEqual(401, error.code)
        request = urllib.request.Request(self.url, headers={
            'Authorization': 'Basic ' + base64.b64encode(b'u:p').decode()})
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(200, answer.status)

    def test_password_file_unusable(self):
        self.start('--auth-file', self.in_folder('missing'))
        out, err = self.process.communicate(timeout=60)
        self.assertEqual('', self.url + out)
        self.assertEqual(1, self.process.returncode)
        self.assertIn('missing: No such file or directory', err)
