# SPDX-License-Identifier: Apache-2.0
"""Clouds from files: of snapshots, and of the simulator."""

import dataclasses
import json
import os
import pathlib

import fixtures
from oslo_config import cfg
from oslo_messaging import conffixture
import sqlalchemy as sa

from nfv_sched.nova import database
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import database as snapshot_database
from nfv_sched.ops.cloud import file
from nfv_sched.ops.commands import source
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.profile import machines
from nfv_sched.tests.unit.ops.commands import base as cmd_base
from nfv_sched.tests.unit.ops.commands import test_bad_snapshots
from nfv_sched.tests.unit.ops.commands import test_simulate
from nfv_sched.tests.unit.ops import small_clouds

STEPS = """\
steps:
- boot: more
  flavor: f
  count: 2
- delete: s-1
- boot: again
  flavor: f
  expect: {placed: 1}
"""


class SimulateFromTest(test_simulate.SimulateTestCase):
    def test_all(self):
        cloud = self.file(test_simulate.CLOUD)
        steps = self.file(STEPS)
        out, = {self.shown(
            'simulation', 'run', '--from', path, steps, '-f', 'csv', '-c',
            'Server', '-c', 'Status', '-c', 'Host', '-c', 'NUMA nodes')
            for path in (cloud, self.save_cloud(source.load(cloud)))}
        self.assertEqual(
            ['"Server","Status","Host","NUMA nodes"',
             '"s-1","DELETED","",""', '"more-1","REFUSED","",""',
             '"more-2","REFUSED","",""'], out.splitlines()[:4])
        self.assertIn('"again","ACTIVE","h-', out.splitlines()[4])

    def test_places(self):
        """All are known, however alike their labels are to those of nodes."""
        for options, places in (
                ('', ('osd', 'node', 'nodes', 'node0x')),
                ('options: {nfv_sched: {node_label_prefix: nfv_n}}\n',
                 ('node0', 'nodes')),
                ('options: {nfv_sched: {node_label_prefix: nfv_, '
                 'vswitch_label: switch}}\n', ('node0', 'switch', '0x'))):
            where = ', '.join(f'{name}: [0]' for name in places)
            cloud = self.file(options + test_simulate.CLOUD.replace(
                'cores: 8', f'cores: 8, places: {{{where}}}'))
            steps = self.file(
                'steps: [{boot: new, flavor: g, expect: {places: {%s}}}]\n'
                'flavors: {g: {vcpus: 1, memory: 1 GiB, extra_specs: {%s}}}' %
                (', '.join(f'{name}: remote' for name in places),
                 'hw:cpu_policy: dedicated, '
                 f'"nfv:numa_anti_affinity.{places[-1]}": strict'))
            self.shown('simulation', 'run', '--from', cloud, steps, '-f',
                       'json')

    def test_wrong(self):
        cloud = self.file(test_simulate.CLOUD)
        steps = self.file(STEPS)
        for arguments, expected, message in (
                (('--from', '/missing', steps), 1,
                 'error: /missing: No such file or directory\n'),
                (('--from', self.file('hosts: 3\nodd: 1'), steps), 1,
                 ':2: odd: unknown key'),
                (('--from', cloud, cloud), 1,
                 ':1: hosts: the hosts are those'),
                (('--from', cloud, '--example', 'two-hosts'), 2,
                 '--from needs files with steps')):
            self.refused(
                message, 'simulation', 'run', *arguments, code=expected)


class SaveTest(test_simulate.SimulateTestCase):
    """``nfv-sched simulation run --save``."""

    def setUp(self):
        super().setUp()
        self.path = self.in_folder('saved')

    def save(self, *args, code=0):
        return self.exits(
            code, 'simulation', 'run', *args, '--save', self.path)

    def test_cloud_file(self):
        cloud = self.file(test_simulate.CLOUD)
        out, err = self.save(cloud, '-f', 'json')
        self.assertEqual(5, len(json.loads(out)['servers']))
        self.assertRegex(err, f'^{self.path}: 2 hosts, 5 servers, .* kB\n$')
        self.assertEqual(dataclasses.replace(source.load(cloud), taken=''),
                         dataclasses.replace(source.load(self.path), taken=''))

    def test_steps(self):
        """What was missing in the first cloud is missing in the next."""
        first = f'{self.path}-first'
        file.save(dataclasses.replace(
            source.load(self.file(test_simulate.CLOUD)), anonymous=True,
            missing=snapshots.missing('Neutron is silent')), first)
        self.save('--from', first, self.file(STEPS), code=1)
        saved = source.load(self.path)
        self.assertEqual(['Neutron is silent'], list(map(str, saved.missing)))
        self.assertTrue(saved.anonymous)
        self.assertIn('again', [server.name for server in saved.servers])

    def test_wrong(self):
        cloud = self.file(test_simulate.CLOUD)
        for args, text in (
                ((cloud, '--anonymize'), '--anonymize is for --save'),
                ((cloud, cloud, '--save', self.path),
                 '--save is for a single'),
                (('--list-examples', '--save', self.path),
                 '--save is for a single')):
            self.refused(text, 'simulation', 'run', *args)
        self.refused('error: /missing/file: No such file or directory\n',
                     'simulation', 'run', cloud, '--save', '/missing/file',
                     code=1)


class NotThereTest(cmd_base.CommandTestCase):
    """What a command names, and is not in the cloud as it was read."""

    COMMANDS = (
        ("no host named 'x'", ('cloud', 'audit', '--host', 'x')),
        ("no host named 'x'", ('capacity', 'list', '--host', 'x')),
        ("no flavor named 'x'", ('capacity', 'list', '--flavor', 'x')),
        ("no flavor named 'x'", ('capacity', 'list', '--mix', 'x=1')),
        ("no aggregate named 'x'", ('host', 'list', '--aggregate', 'x')),
        ("no host named 'x'", ('host', 'show', 'x')),
        ("no host named 'x'", ('host', 'drain', 'x')),
        ("no server named 'x'", ('server', 'explain', 'x')),
        ("no flavor named 'x'", ('flavor', 'explain', 'x')),
        ("no host named 'x'", ('server', 'explain', 'vm', '--host', 'x')),
        ("no host named 'x'", ('cloud', 'failover', '--host', 'x')),
        ("no flavor named 'x'", ('flavor', 'lint', 'x')))
    LEFT_OUT = ('Cell 2 does not answer in time', 'Neutron is silent')

    def run_all(self, commands, **fields):
        path = self.save_cloud(dataclasses.replace(
            test_bad_snapshots.CLOUD, **fields))
        for text, command in commands:
            code, out, err = self.run_command(*command, '--from', path)
            self.assertEqual('', out, command)
            yield text, code, err

    def test_all_read(self):
        for text, code, err in self.run_all(self.COMMANDS):
            self.assertEqual((2, f'error: {text}'),
                             (code, err.rstrip().partition(';')[0]))

    def test_not_all_read(self):
        """It may be in what was not, which is named."""
        for text, code, err in self.run_all(
                self.COMMANDS, missing=snapshots.missing(*self.LEFT_OUT)):
            self.assertEqual(
                (1, [f'error: {line}' for line in (text, *self.LEFT_OUT)]),
                (code, [line.partition(';')[0] for line in err.splitlines()]))

    def test_wrong_all_the_same(self):
        """Whatever was read, such a command line cannot be used."""
        for text, code, err in self.run_all((
                ('no column x; there are: ', ('host', 'list', '-c', 'x')),
                ('--mix goes with neither ',
                 ('capacity', 'list', '--mix', 'x=1', '--by', 'host'))),
                missing=snapshots.missing(*self.LEFT_OUT)):
            self.assertEqual(2, code)
            self.assertIn(text, err)
            self.assertEqual(1, len(err.splitlines()))


class ChangesTest(test_simulate.SimulateTestCase):
    """``--add-hosts`` and ``--remove-host``."""

    ADDED = 'note: as if there were h-1+1 to h-1+2, like h-1\n'
    REMOVED = 'note: as if there were no h-2, without 2 servers there\n'

    def run_on_cloud(self, *args):
        return self.run_command(
            *args, '--from', self.file(test_simulate.CLOUD))

    def refused_on_cloud(self, text, *args, code=2):
        self.refused(text, *args, '--from', self.file(test_simulate.CLOUD),
                     code=code)

    def hosts(self, *args):
        code, out, err = self.run_on_cloud(
            'host', 'list', '-f', 'csv', '-c', 'Host', *args)
        self.assertEqual(0, code, err)
        return sorted({row['Host'] for row in self.csv_rows(out)}), err

    def test_hosts(self):
        self.assertEqual(
            (['h-1', 'h-1+1', 'h-1+2', 'h-2'], self.ADDED),
            self.hosts('--add-hosts', '2:h-1'))
        self.assertEqual((['h-1'], self.REMOVED),
                         self.hosts('--remove-host', '*2'))
        self.assertEqual(
            (['h-1', 'h-2+1'],
             'note: as if there were h-2+1, like h-2\n' + self.REMOVED),
            self.hosts('--add-hosts', '1:h-2', '--remove-host', 'h-2'))

    def test_all_commands(self):
        change = '--add-hosts', '2:h-1'
        for command, code in (
                (('capacity', 'list', '--flavor', 'f'), 0),
                (('capacity', 'show', 'f'), 0),
                (('host', 'drain', 'h-1'), 0),
                (('cloud', 'defrag', '--flavor', 'f', '--count', '3'), 0),
                (('cloud', 'consolidate'), 0), (('cloud', 'spread'), 0),
                (('cloud', 'failover'), 0), (('host', 'map'), 0),
                (('host', 'show', 'h-1+2'), 0),
                (('server', 'explain', 's-5'), 0),
                (('flavor', 'explain', 'f'), 0),
                (('flavor', 'lint', '--all', '--hosts'), 0),
                (('agent', 'rebalance'), 0)):
            actual, out, err = self.run_on_cloud(*command, *change)
            self.assertEqual(code, actual, (command, out, err))
            self.assertTrue(err.startswith(self.ADDED), (command, err))

    def profile(self, name='new.json', **changes):
        """A file with the profile of a machine, in the current directory."""
        profile = documents.builtins_of(machines.derive(shared=True))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.write_file(name, {
            'schema': documents.VERSION, **profile, **changes})
        return name

    def test_profile(self):
        cloud = test_simulate.CLOUD.replace('steps:', """\
  large:
    vcpus: 4
    memory: 16 GiB
    extra_specs: {hw:cpu_policy: dedicated, hw:mem_page_size: 1GB}
steps:""", 1)
        cloud = self.file(cloud)
        path = self.profile()
        note = ('note: as if there were new+1 to new+2, by the profile '
                'new.json, with the hypervisor and disk of h-1\n')
        # As in ops/profile/test_capacity.py, 11 on each.
        out, err = self.exits(
            0, 'capacity', 'list', '--flavor', 'large', '--by', 'host', '-f',
            'csv', '--add-hosts', f'2:{path}', '--from', cloud)
        self.assertIn(note, err)
        self.assertEqual({'h-1': 0, 'h-2': 0, 'new+1': 11, 'new+2': 11}, {
            row['Host']: row['Fits'] for row in self.csv_rows(out)})

    def test_profile_or_host(self):
        """A host of the cloud comes first, and ./ before a file."""
        self.profile('h-1')
        self.assertIn('like h-1', self.hosts('--add-hosts', '1:h-1')[1])
        names, err = self.hosts('--add-hosts', '1:./h-1')
        self.assertIn('by the profile ./h-1', err)
        # The name of the file is that of a host: new numbers are free.
        self.assertEqual(['h-1', 'h-1+1', 'h-2'], names)

    def test_bad_profiles(self):
        path = self.file(test_simulate.CLOUD)
        self.profile()
        content = pathlib.Path('new.json').read_text()
        good = json.loads(content)
        node, other = good['numa_nodes']
        for number, (bad, text) in enumerate((
                (content[:90], 'new.json: not a document of "host profile '
                 '-f json": '),
                ('[]', 'not a document of "host profile -f json"'),
                ('{}', 'not a document of "host profile -f json"'),
                ('[' * 10000, 'new.json: '),
                ({**good, 'schema': 9}, 'schema 9: this release reads 1'),
                ({**good, 'numa_nodes': 5}, 'numa_nodes: '),
                ({**good, 'numa_nodes': [node, node]}, 'no such host: '),
                *(({**good, 'numa_nodes': [{**node, **change}, other]}, said)
                  for change, said in (
                      ({'memory_mib': 1}, 'no such host: '),
                      ({'memory_mib': -1}, 'no such host: '),
                      ({'node': 10 ** 30}, 'new.json: '))),
                ({**good, 'numa_nodes': [
                    {**node, 'cores': [[10 ** 9]]}, other], 'nova': {
                    **good['nova'], 'cpu_dedicated_set': [10 ** 9]}},
                 'no such host: '),
                *(({**good, 'nova': {**good['nova'], **change}}, said)
                  for change, said in (
                      ({'cpu_allocation_ratio': -1.5}, 'no such host: '),
                      ({'reserved_host_memory_mib': -1}, 'no such host: '),
                      ({'physnets': {'a': ['x']}}, 'nova.physnets.a[0]: '))
                  ))):
            self.write_file('new.json', bad)
            err = self.refused(text, 'host', 'list', '--from', path,
                               '--add-hosts', '1:new.json', code=1)
            self.assertEqual(1, len(err.splitlines()), (number, err))
        os.mkdir('folder')
        for path, code, text in (
                ('folder', 1, 'Is a directory'),
                ('./none', 1, 'No such file'),
                ('none', 2, "no host named 'none'")):
            self.refused_on_cloud(
                text, 'host', 'list', '--add-hosts', f'1:{path}', code=code)

    def test_no_plan_to_run(self):
        """Nobody shall run one, or its commands, on the cloud as it is."""
        plan = self.file('')
        for command in (('host', 'drain', 'h-1'),
                        ('cloud', 'defrag', '--flavor', 'f'),
                        ('agent', 'rebalance')):
            self.refused_on_cloud(
                'none of --add-hosts, --remove-host and --limit',
                *command, '--remove-host', 'h-2', '--save', plan)
            self.refused_on_cloud('-f commands goes with none of', *command,
                                  '-f', 'commands', '--add-hosts', '1:h-1')

    def limited(self, *limits):
        code, out, err = self.run_on_cloud(
            'host', 'list', '-f', 'csv', *(
                f'--limit={limit}' for limit in limits))
        self.assertEqual(0, code, err)
        return {row['Host']: row['Ports limit']
                for row in self.csv_rows(out)}, err

    def test_limits(self):
        limits, err = self.limited('vswitch_ports_per_node=40',
                                   'shared_vcpus_per_core=2.5')
        self.assertEqual({'h-1': 40, 'h-2': 40}, limits)
        self.assertEqual(
            'note: as if [nfv_sched] vswitch_ports_per_node were 40\n'
            'note: as if [nfv_sched] shared_vcpus_per_core were 2.5\n', err)
        limits, _err = self.limited('vswitch_ports_per_node=0')
        self.assertEqual({'h-1': '', 'h-2': ''}, limits)

    def test_wrong_limits(self):
        for value in ('vnics_per_guest', 'vnics_per_guest=', '=1x',
                      'vnics_per_guest=inf', 'vnics_per_guest=nan'):
            self.refused_on_cloud('NAME=VALUE needed, with a number, not',
                                  'host', 'list', f'--limit={value}')
        self.refused_on_cloud('vnics_per_guest', 'host', 'list', '--limit',
                              'vnics_per_gest=2')

    def test_simulation(self):
        steps = self.file('steps: [{boot: new, flavor: f, count: 3, '
                          'host: h-1+1, expect: {placed: 2, refused: 1}}]')
        code, _out, err = self.run_on_cloud(
            'simulation', 'run', steps, '--add-hosts', '2:h-1')
        self.assertEqual((0, self.ADDED), (code, err))
        self.refused(
            '--add-hosts, --remove-host and --limit are for --from',
            'simulation', 'run', self.file(test_simulate.CLOUD),
            '--remove-host', 'h-1')

    def test_wrong(self):
        for text, *args in (
                ("no host named 'x'; there are: h-1, h-2",
                 '--add-hosts', '1:x'),
                ("no host matches 'x*'; there are: h-1, h-2", '--remove-host',
                 'x*'),
                ('--add-hosts: 1000 hosts at most', '--add-hosts', '999:h-1',
                 '--add-hosts', '2:h-2')):
            self.assertEqual((2, '', f'error: {text}\n'),
                             self.run_on_cloud('host', 'list', *args))
        for text in ('h-1', ':h-1', '0:h-1', '-1:h-1', '1001:h-1', '1:',
                     '\u00b2:h-1'):
            self.refused_on_cloud(
                'N:HOST or N:FILE needed, with 1 to 1000 hosts, not', 'host',
                'list', f'--add-hosts={text}')

    def test_host_that_placement_was_not_read_for(self):
        unread = dataclasses.replace(small_clouds.host('two'), providers=())
        path = self.save_cloud(small_clouds.cloud(small_clouds.host(), unread))
        self.assertEqual(
            (2, '', 'error: --add-hosts: no resource provider of host two was '
             'read\n'), self.run_command(
                 'host', 'list', '--from', path, '--add-hosts', '1:two'))


class ConfigurationTest(cmd_base.CommandTestCase):
    """What cannot be read of a live cloud is told in a line by all."""

    COMMANDS = (
        ('cloud', 'audit'), ('capacity', 'list'), ('host', 'drain', 'x'),
        ('server', 'explain', 'x'), ('server', 'explain', 'x', '--then'),
        ('server', 'explain', '--then'), ('host', 'list'),
        ('metrics', '--textfile', '/x/y'), ('agent', 'rebalance'),
        ('snapshot', 'save', '/x/y'))

    def setUp(self):
        super().setUp()
        for name in ('read_configuration', 'parse_configuration'):
            self.useFixture(fixtures.MockPatchObject(
                database, name, self.configure))

    @staticmethod
    def configure(arguments, prog, _description):
        """As it is read, but not for the whole process."""
        database.parse(cfg.ConfigOpts(), arguments, prog)

    def run_all(self, path):
        for command in self.COMMANDS:
            yield self.run_command(*command, '--config-file', path)

    def test_files(self):
        good = self.write_file('good', b'[DEFAULT]\nx = 1\n')
        for path, why in (
                (self.in_folder('x'), 'No such file or directory'),
                (self.folder, 'Is a directory'),
                (self.write_file('latin', b'[DEFAULT]\nx = \xff\n'),
                 'not UTF-8 text'),
                (self.write_file('ini', b'foo\nbar\n'),
                 "not a valid ini file: line 1, No ':' or '=' "
                 "found in assignment: 'foo'")):
            for found in self.run_all(path):
                self.assertEqual(
                    (1, '', f'error: --config-file {path}: {why}\n'), found)
            # Whichever of several it is.
            self.assertEqual(
                (1, '', f'error: --config-file {path}: {why}\n'),
                self.run_command('cloud', 'audit', '--config-file', good,
                                 '--config-file', path))

    def test_values(self):
        for function in ((database, 'read_configuration'),
                         (snapshot_database, 'read')):
            with fixtures.MockPatchObject(
                    *function, side_effect=cfg.ConfigFileValueError('odd')):
                self.assertEqual(
                    (1, '', 'error: the configuration cannot be used: odd\n'),
                    self.run_command('capacity', 'list'))

    def test_transport(self):
        self.useFixture(fixtures.MockPatchObject(
            database, 'read_configuration',
            lambda *_args: database.prepare_database()))
        self.useFixture(conffixture.ConfFixture(database.CONF))
        self.config.config(transport_url='rabbit://nova:s3cret/x@host:5672/')
        for command in ('capacity', 'host'):
            self.assertNotIn('s3cret', self.refused(
                'error: the configuration cannot be used: [DEFAULT] '
                'transport_url ', command, 'list', code=1))

    def test_password_in_url(self):
        for error in (
            ValueError('GET https://nova:s3cret@host:5000/v3: refused'),
            errors.CloudUnreadError(
                'auth_url http://nova:s3/cr@et@host is odd'),
            cfg.ConfigFileValueError('mysql+pymysql://nova:s3cret@db/nova'),
        ):
            with fixtures.MockPatchObject(
                    database, 'read_configuration', side_effect=error):
                for command in (('capacity', 'list'), ('host', 'list'),
                                ('snapshot', 'save', 'x'), ('cloud', 'audit')):
                    self.assertNotIn('s3', self.refused(
                        '://***@', *command, code=1))

    def test_database(self):
        exc = self.assertRaises(
            sa.exc.OperationalError, self.query, 'SELECT *\nFROM aggregates')
        self.useFixture(fixtures.MockPatchObject(
            snapshot_database, 'read', side_effect=exc))
        self.useFixture(fixtures.MockPatchObject(
            database, 'compute_nodes', side_effect=exc))
        for command in (('capacity', 'list'), ('host', 'list')):
            self.assertEqual(
                (1, "error: Nova's API database cannot be read, see "
                 '[api_database] connection: (sqlite3.OperationalError) no '
                 'such table: aggregates\n'),
                self.run_command(*command, '-f', 'value')[::2])

    @staticmethod
    def query(text):
        with sa.create_engine('sqlite://').connect() as connection:
            connection.execute(sa.text(text))
