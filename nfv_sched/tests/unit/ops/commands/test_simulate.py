# SPDX-License-Identifier: Apache-2.0

"""The command: exit codes, formats, and lines instead of tracebacks."""

import json
import os
import subprocess
import sys
import tempfile

from nfv_sched.tests.unit.ops.commands import base

CLOUD = """\
hosts:
  - {name: h, count: 2, cores: 8, memory: 32 GiB, pages: {2M: 64}}
flavors:
  f:
    vcpus: 2
    memory: 1 GiB
    extra_specs:
      hw:cpu_policy: dedicated
      nfv:vswitch_numa_affinity: strict
steps:
  - boot: s
    flavor: f
    count: 5
    expect: {placed: 4, refused: 1}
"""


class SimulateTestCase(base.CommandTestCase):

    def file(self, text: str) -> str:
        stream = tempfile.NamedTemporaryFile('w', suffix='.yaml', delete=False)
        self.addCleanup(os.unlink, stream.name)
        with stream:
            stream.write(text)
        return stream.name


class SimulateTest(SimulateTestCase):

    def good(self, *args: str) -> str:
        return self.shown('simulation', 'run', self.file(CLOUD), *args)

    def test_columns(self):
        doc = json.loads(self.good('-f', 'json', '-c', 'Server', '-c', 'down'))
        self.assertEqual({'server': 's-1'}, doc['servers'][0])
        self.assertEqual({'down': False}, doc['hosts'][0])
        self.assertNotIn('Memory used MiB', self.good('-c', 'Server'))

    def test_failed_expectation(self):
        path = self.file(CLOUD.replace('placed: 4', 'placed: 5'))
        out, err = self.exits(3, 'simulation', 'run', path, '-f', 'json')
        self.assertIn(f'{path}:14: step 1 (boot s-1 and 4 more): expected 5 '
                      'placed, got 4', err)
        self.assertEqual(1, len(json.loads(out)['expectations']['failed']))

    def test_unusable_input(self):
        directory = tempfile.gettempdir()
        for args, expected, message in (
                ((self.file(''),), 1, 'the file is empty'),
                ((self.file('hosts: ['),), 1, 'not valid YAML'),
                ((self.file(CLOUD.replace('cores', 'corse')),), 1,
                 "did you mean 'cores'?"),
                ((directory,), 1, 'is a directory'),
                (('/no/such/file',), 1, 'No such file'),
                (('--example', 'nope'), 2, 'no example named'),
                ((self.file(CLOUD), '-c', 'Nope'), 2, 'no column Nope'),
                ((self.file(CLOUD), '--config-file', '/no/such'), 1,
                 '/no/such'),
                ((self.file(CLOUD), '--config-file', self.file('a = b')), 1,
                 'error: ')):
            self.refused(message, 'simulation', 'run', *args, code=expected)

    def test_several_files(self):
        good = self.file(CLOUD)
        bad = self.file(CLOUD.replace('placed: 4', 'placed: 5'))
        out, err = self.exits(
            3, 'simulation', 'run', good, bad, good, '-f', 'json')
        self.assertIn(f'{bad}:14: step 1', err)
        self.assertNotIn(f'{good}:', err)
        self.assertEqual(
            [(good, 2, 0), (bad, 2, 1), (good, 2, 0)],
            [(row['file'], row['expectations'], row['failed'])
             for row in json.loads(out)['files']])
        self.assertEqual(
            0, self.run_command('simulation', 'run', good, good)[0])
        for args, expected, message in (
                ((good, '/no/such/file'), 1, '/no/such/file'),
                ((good, good, '--show', 'all'), 2, '--show')):
            self.refused(message, 'simulation', 'run', *args, code=expected)

    def test_usage_errors(self):
        for args in ((), ('a', '--example', 'b'), ('a', '-f', 'xml'),
                     ('a', 'b', '--list-examples'),
                     ('a', '--seed', 'x')):
            self.assertEqual(
                2, self.run_command('simulation', 'run', *args)[0])

    def test_config_file(self):
        path = self.file('[filter_scheduler]\nenabled_filters = '
                         'ComputeFilter,NUMATopologyFilter\n')
        # Stock Nova alone does not know the policy.
        _out, err = self.exits(
            3, 'simulation', 'run', self.file(CLOUD), '--config-file', path)
        self.assertIn('expected 4 placed, got 5', err)

    def test_reader_that_stops(self):
        """What head does: no traceback, and the exit code stays true."""
        for placed, code in ((4, 0), (5, 3)):
            path = self.file(CLOUD.replace('placed: 4', f'placed: {placed}'))
            reader, writer = os.pipe()
            os.close(reader)
            try:
                done = subprocess.run(
                    [sys.executable, '-m', 'nfv_sched.ops.cli.base',
                     'simulation', 'run',
                     path], stdout=writer, stderr=subprocess.PIPE, text=True,
                    check=False)
            finally:
                os.close(writer)
            self.assertEqual(code, done.returncode, done.stderr)
            for word in ('Traceback', 'Broken', 'error'):
                self.assertNotIn(word, done.stderr)


class SequenceTest(SimulateTestCase):

    CLOUD = CLOUD.partition('steps:')[0] + 'steps: []\n'
    ROWS = """\
vcpus,arrival,departure,memory,numa_nodes,group,policy
8,1,3,1024,1,,
8,2,,1024,1,db,
8,2.5,,1024,1,,
"8",3,3,1024,,,

4,0,,1024,2,web,anti-affinity
4,9,,1024,2,web,
4,9,,1024,2,web,
"""

    def play(self, *args, cloud=None, rows=ROWS):
        return self.shown('simulation', 'run', *(cloud or (self.file(
            self.CLOUD),)), '--sequence', self.file(rows), *args)

    def test_result(self):
        """Line 7 leaves room for one of 8 vCPUs: 2, and when it has left 5."""
        result = json.loads(self.play('-f', 'json'))
        self.assertEqual(
            [(8, 1024, 1, 4, 2, 0), (4, 1024, 2, 3, 1, 2)],
            [(each['vcpus'], each['memory_mib'], each['numa_nodes'],
              each['servers'], each['refused'], each['fit'])
             for each in result['requests']])
        self.assertEqual((2, None), (result['hosts_used'], result['servers']))
        text = self.play()
        self.assertNotIn('sequence1-', text)
        self.assertIn('ServerGroupAntiAffinityFilter', text)
        self.assertIn('2 hosts in use', text)
        self.assertEqual(
            [f'sequence1-{line}' for line in (7, 2, 3, 4, 2, 5, 5, 8, 9)],
            self.play('--show', 'steps', '-f', 'value', '-c', 'Server'
                      ).split())

    def test_after_another(self):
        saved = self.in_folder('saved')
        self.run_command('simulation', 'run', self.file(self.CLOUD), '--save',
                         saved, '--sequence', self.file(self.ROWS))
        self.assertIn('sequence2-2', self.play(
            '--show', 'all', cloud=('--from', saved)))
        self.refused(
            ":3: policy: the group 'db' has the policy soft-anti-affinity",
            'simulation', 'run', '--from', saved, '--sequence', self.file(
                self.ROWS.replace('db,', 'db,affinity')), code=1)

    def test_bad(self):
        for old, new, message in (
                ('vcpus', 'cpus', ":1: no column named 'cpus'; did you"),
                ('group', 'arrival', ":1: 2 columns named"),
                (self.ROWS, 'vcpus,arrival', ":1: no columns named 'memory'"),
                (self.ROWS, '', ':1: no servers'),
                ('8,2,,1024,1,db,', '8,2', ':3: 2 cells for 7 columns'),
                ('8,1,', '\u00b2,1,', ':2: vcpus: must be a whole number'),
                ('8,1,', '9' * 99 + ',1,', ':2: vcpus: must be a whole'),
                ('8,1,', '=8,1,', ':2: vcpus: must be a whole number'),
                ('8,1,', '8,nan,', ':2: arrival: must be a number'),
                ('8,1,3', '8,1,0.5', ':2: departure: is before the arrival'),
                ('"8"', '"8', 'not csv: unexpected end of data')):
            self.refused(message, 'simulation', 'run', self.file(self.CLOUD),
                         '--sequence', self.file(
                             self.ROWS.replace(old, new)), code=1)
