# SPDX-License-Identifier: Apache-2.0
"""Commands without a configuration, and with names that nothing has."""

import dataclasses
import gzip
import os
import pathlib
import re

import fixtures
from oslo_db import exception as db_exception

import nfv_sched
from nfv_sched.nova import database
from nfv_sched.ops.cloud import database as snapshot_database
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import names
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.commands import test_bad_snapshots
from nfv_sched.tests.unit.ops.commands import test_simulate
from nfv_sched.tests.unit.ops import small_clouds

_ROOT = pathlib.Path(nfv_sched.__file__).parents[1]
CONFIG = ('  --config-file FILE  nova.conf of nova-scheduler, which names '
          "Nova's databases")
FROM = ('  --from FILE         a snapshot ("snapshot save", "snapshot serve") '
        'or a cloud file; to try it: --from telco')
ACCOUNT = '  --os-cloud NAME     the API alone, with an account of clouds.yaml'


class ReadmeTest(base.CommandTestCase):

    def test_every_command_with_the_example(self):
        names = {'SERVER': 'fw-large', 'HOST': 'compute-1', 'FLAVOR': 'vfw.8'}
        readme = (_ROOT / 'README.md').read_text()
        table = re.search(r'\n\| question .*?\n\n', readme, re.DOTALL)[0]
        facts, = re.findall('`--facts (.*?)`', readme)
        commands = re.findall('`(?:nfv-sched )?([a-z]+ [^`/]+|metrics)`',
                              table)
        self.assertLess(10, len(commands))
        for text in commands:
            words = [names.get(word, word) for word in text.split()]
            words += ['--facts', str(_ROOT / facts)] if words == [
                'host', 'profile'] else ['--from', 'telco']
            code, out, err = self.run_command(*words)
            self.assertIn(code, (0, 3), (words, err))
            self.assertTrue(out or 'nothing found' in err, words)


class NoConfigurationTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            database, 'read_configuration'))
        self.useFixture(fixtures.MockPatchObject(
            snapshot_database, 'read',
            side_effect=db_exception.CantStartEngineError('None is given')))
        self.config.config(connection=None, group='api_database')

    def read_files(self, *names):
        self.useFixture(fixtures.MockPatchObject(
            database, 'configuration_files', return_value=list(names)))

    def test_no_file(self):
        self.read_files()
        first = ('error: no nova.conf in ~/.nova, ~, /etc/nova or /etc, so '
                 'there is no cloud to read')
        for command, lines in (
                (('host', 'list'), (CONFIG, FROM)),
                (('agent', 'rebalance'), (CONFIG, FROM, ACCOUNT)),
                (('snapshot', 'save', '/x/y'), (CONFIG,))):
            code, out, err = self.run_command(*command)
            self.assertEqual((1, '', [first, *lines]),
                             (code, out, err.splitlines()))

    def test_no_connection(self):
        self.read_files('/etc/nova/nova.conf')
        code, _out, err = self.run_command('host', 'list')
        self.assertEqual(1, code)
        self.assertEqual(
            ['error: [api_database] connection is not set in '
             '/etc/nova/nova.conf', CONFIG, FROM], err.splitlines())


class FromTest(test_simulate.SimulateTestCase):

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def test_file_of_that_name(self):
        cloud = small_clouds.cloud(small_clouds.host('mine'))
        file.save(cloud, 'two-hosts')
        self.assertEqual(cloud, source.load('two-hosts'))

    def test_unknown(self):
        self.refused("no file or example named 'fragmentd'; the examples "
                     'are: all-policies, ', 'host', 'list', '--from',
                     'fragmentd')

    def test_other_files(self):
        for name, content, text in (
                ('a.json.gz', b'odd', 'damaged gzip file: not gzip'),
                ('b', gzip.compress(b'{' * 99)[:20],
                 'damaged gzip file: it is cut off'),
                ('c', b'# Read me\n\nThis: is\n\ttext', file.NEITHER),
                ('d', b'apiVersion: v1\nkind: Pod', file.NEITHER),
                ('e', b'\xff\xfe', file.NEITHER),
                ('g', b'', 'the file is empty'),
                ('h', b'{"format": "odd"}', file.NEITHER),
                ('f', b'hosts: 1\nflavors: {a', 'f:2: not valid YAML: ')):
            with open(name, 'wb') as stream:
                stream.write(content)
            code, _out, err = self.run_command('host', 'list', '--from', name)
            self.assertEqual((1, 1), (code, len(err.splitlines())))
            self.assertIn(text, err)


class NamesTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.path = self.save_cloud(dataclasses.replace(
            test_bad_snapshots.CLOUD, hosts=tuple(
                small_clouds.host(name, zone='east', aggregates=('nfv-hosts',))
                for name in ('cmp1.a.example', 'cmp2.a.example',
                             'cmp3.a.example', 'cmp3.b.example')),
            servers=(), aggregates=(snapshot.Aggregate(name='empty'),)))

    def run_on(self, *args):
        return self.run_command(*args, '--from', self.path)


class NamesTest(NamesTestCase):

    def test_nearest(self):
        for text, command in (
                ("no host named 'cmp4.a.example'; did you mean cmp1.a.example "
                 'or cmp2.a.example or cmp3.a.example?',
                 ('host', 'show', 'cmp4.a.example')),
                ("no host named 'Cmp3.b.exmple'; did you mean cmp3.b.example "
                 'or cmp3.a.example or cmp2.a.example?',
                 ('host', 'list', '--host', 'Cmp3.b.exmple')),
                ("no host named 'cmp'; did you mean cmp1.a.example or "
                 'cmp2.a.example or cmp3.a.example?', ('host', 'show', 'cmp')),
                ("no host named 'CMP2'; did you mean cmp2.a.example?",
                 ('host', 'show', 'CMP2')),
                ("no host named 'cnp2'; did you mean cmp2.a.example?",
                 ('host', 'show', 'cnp2')),
                ("no flavor named 'vroter.4'; did you mean vrouter.4?",
                 ('flavor', 'lint', 'vroter.4')),
                ("no aggregate named 'nfv-host'; did you mean nfv-hosts?",
                 ('host', 'list', '--aggregate', 'nfv-host')),
                ("aggregate 'empty' has no hosts",
                 ('host', 'list', '--aggregate', 'empty')),
                ("no availability zone named 'eats'; did you mean east?",
                 ('host', 'list', '--availability-zone', 'eats')),
                ("no aggregate matches 'x*'; there are: nfv-hosts",
                 ('host', 'map', '--aggregate', 'x*'))):
            self.assertEqual((2, '', f'error: {text}\n'),
                             self.run_on(*command))

    def test_beginning(self):
        """Names and IDs that begin so come before those that are similar."""
        for name, near in (('prov', 'provider'), ('fast-', 'fast-1 or fast-2'),
                           ('8535EA', '8535ea69')):
            self.assertEqual(
                f'no network named {name!r}; did you mean {near}?',
                names.unknown('network', name, (
                    'sriov', 'provider', 'fast-2', 'fast-1', '', None),
                    ('8535ea69', '7535ea69')))
        self.assertEqual("no network named ''; there are: fast", names.unknown(
            'network', '', ('fast', 'fast', ''), ('8535ea69',)))

    def test_short_host_name(self):
        for command in (('host', 'show', 'cmp1'), ('host', 'drain', 'cmp1'),
                        ('host', 'list', '--host', 'cmp1')):
            out = self.shown(*command, '--from', self.path)
            self.assertIn('cmp1.a.example', out)
            self.assertNotIn('cmp2', out)

    def test_ambiguous_host_name(self):
        for command in (('host', 'show', 'cmp3'), ('host', 'drain', 'cmp3'),
                        ('host', 'list', '--host', 'cmp3')):
            self.assertEqual(
                (2, '', "error: several hosts named 'cmp3': cmp3.a.example, "
                 'cmp3.b.example\n'), self.run_on(*command))


class OptionsTest(NamesTestCase):

    def test_zone(self):
        """The old names of the option still work, and are not shown."""
        for option in ('--availability-zone', '--az', '--zone'):
            self.assertIn('cmp1.a.example', self.shown(
                'host', 'list', option, 'east', '--from', self.path))
            code, _out, err = self.run_on(
                'flavor', 'explain', 'vrouter.4', option, 'east')
            self.assertEqual('', err)
        for command in (('host', 'list'), ('flavor', 'explain')):
            _code, out, _err = self.run_command(*command, '--help')
            self.assertIn('--availability-zone', out)
            self.assertNotIn('--az', out)
            self.assertNotIn('--zone', out)

    def test_no_abbreviations(self):
        self.refused('unrecognized arguments: --aggr', 'host', 'list',
                     '--aggr', 'nfv-hosts', '--from', self.path)

    def test_image_of_a_file(self):
        for command in (('flavor', 'explain', 'vrouter.4'),
                        ('capacity', 'show', 'vrouter.4')):
            self.refused('error: --image: a file has no images', *command,
                         '--image', 'fw', '--from', self.path)
