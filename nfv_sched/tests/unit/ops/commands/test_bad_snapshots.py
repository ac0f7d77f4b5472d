# SPDX-License-Identifier: Apache-2.0
"""Snapshots that were cut off, edited, or made to do harm.

Every command either shows something, or says in a line what is wrong.
"""

import copy
import dataclasses
import io
import os
import re
from unittest import mock

from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.rebalance import test_levelling
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds

SERVER = snapshot.Server(
    uuid='5e7e1c1c-0000-4000-8000-000000000001', name='vm', host='one',
    flavor=small_clouds.flavor(), nodes=(snapshot.GuestNode(
        host_node=0, dedicated=frozenset(range(4)), memory=1024,
        pins=dict(enumerate(range(4))), page_size=1048576),),
    devices=('0000:01:02.0',), ports=(snapshot.Port(
        id='port', network='net', rules=3),),
    allocations={})
CLOUD = small_clouds.cloud(
    small_clouds.host('one', small_clouds.node(0, range(4), huge=1),
                      small_clouds.node(1),
                      devices=(small_clouds.device(1, 0, status='allocated',
                                                   server=SERVER.uuid),
                               small_clouds.device(2, 1)),
                      network=snapshot.HostNetwork(vswitch_ports=2)),
    small_clouds.host('two'),
    servers=(SERVER,), flavors=(small_clouds.flavor(name='vrouter.4'),),
    aggregates=(snapshot.Aggregate(name='nfv', hosts=('one',)),))
CLOUD = snapshots.with_uuids(dataclasses.replace(
    CLOUD, network_agents=(
        test_levelling.agent('one', *'abcde', zone='west', mode='legacy'),
        test_levelling.agent('two')),
    network_services=tuple(map(test_levelling.service, 'abcde'))))

COMMANDS = (
    ('host', 'list'), ('host', 'list', '-f', 'csv'),
    ('host', 'show', 'one'), ('host', 'map'),
    ('host', 'map', '--format', 'html'),
    ('server', 'explain', 'vm', '--all'),
    ('flavor', 'explain', 'vrouter.4'),
    ('capacity', 'list', '--empty', '--by', 'host'),
    ('capacity', 'show', 'vrouter.4'),
    ('capacity', 'show', 'vrouter.4', '--next'), ('cloud', 'audit'),
    ('metrics',),
    ('simulation', 'run'), ('agent', 'rebalance'), ('host', 'list'),
    ('flavor', 'lint', '--all', '--hosts', '--used'),
    ('flavor', 'translate', '--all', '-f', 'commands'))
#: What looks at agents of Neutron.
OF_AGENTS = (
    ('metrics',), ('agent', 'rebalance'),
    ('agent', 'rebalance', '--ports', '-f', 'csv'),
    ('agent', 'rebalance', '-f', 'commands'))

ESCAPE = '\x1b[31mE\x07\r\n<script>'
_CONTROL = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]')

# What to put where, below "cloud", and whether it is refused by all: one of
# each kind; tests/fuzz puts such values everywhere.
REFUSED = True
EDITS = (
    (('hosts', 0, 'nodes', 0, 'memory'), -1, REFUSED),
    (('hosts', 0, 'nodes'), None, False),
    (('hosts', 1, 'name'), 'one', False),
    (('hosts', 0, 'nodes', 0, 'memory'), (1 << 63) - 1, False),
    (('hosts', 0, 'devices', 0, 'parent'), '0000:99:00.0', False),
    (('hosts', 0, 'providers'), [], False),
    (('hosts', 0, 'cpu_ratio'), 0.0, False),
    (('hosts', 0, 'supported'), [['x86_64', ESCAPE, 'hvm']], False),
    (('hosts', 0, 'disk_available_least'), -7, False),
    (('hosts',), [], False),
    (('servers', 0, 'host'), 'none', False),
    (('servers', 0, 'nodes', 0, 'host_node'), 99, False),
    (('servers', 0, 'nodes', 0, 'pins'), {'0': 999}, False),
    (('servers', 0, 'name'), 'x' * 10000, False),
    (('servers', 0, 'image'), {'hw_cpu_policy': 'x'}, False),
    (('flavors', 0, 'vcpus'), 65535, False),
    (('flavors', 0, 'extra_specs'), {'hw:numa_nodes': '99999999'}, False),
    (('options', 'filter_scheduler', 'enabled_filters'), ['None'], False),
    (('options', 'filter_scheduler', 'weight_classes'), [''], False),
    (('options', 'scheduler'), {'image_metadata_prefilter': 1}, False),
    (('aggregates', 0, 'metadata'),
     {'vswitch_ports_per_node': 'x', 'cpu_allocation_ratio': '-1'}, False),
    (('taken',), 'yesterday', False),
    (('missing',), [{'kind': 'other', 'text': ESCAPE}], False),
    (('servers', 0, 'name'), ESCAPE, False),
    (('flavors', 0, 'extra_specs'), {ESCAPE: ESCAPE}, False),
    (('network_agents',), [], False),
    (('network_agents', 0, 'mode'), ESCAPE, False),
    (('network_agents', 0, 'alive'), False, False),
    (('network_agents', 0, 'serves'), ['f' * 32], False),
    (('network_services', 0, 'kind'), 'dhcp', False),
    (('network_services', 0, 'ports'), (1 << 63) - 1, False),
    (('network_services', 0, 'name'), ESCAPE, False),
    ((ESCAPE,), ESCAPE, REFUSED),
)


class BadSnapshotTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.path = self.in_folder('cloud.json')
        self.steps = self.write_file(
            'steps.yaml', 'steps:\n- boot: new\n  flavor: vrouter.4\n')
        self.data = {'format': file.FORMAT, 'version': snapshot.VERSION,
                     'cloud': codec.encode(CLOUD)}

    def run_command(self, *args):
        if args[0] == 'metrics':
            args = (*args, '--textfile', self.in_folder('prom'))
        elif args[0] == 'simulation':
            args = (*args, self.steps)
        code, out, err = super().run_command(*args, '--from', self.path)
        # What a count assumes is not an error.
        return code, out, ''.join(
            line for line in err.splitlines(keepends=True)
            if not line.startswith('note: no server shows'))

    def assertClear(self, what, refused, commands=COMMANDS):
        """Assert that each command shows something, or says what is wrong."""
        for command in commands[:4] if refused else commands:
            code, out, err = self.run_command(*command)
            where = f'{what} {command}: {code} {err}'
            self.assertIn(code, (1, 2) if refused else (0, 1, 2, 3), where)
            for said in ('Traceback', 'internal error'):
                self.assertNotIn(said, err, where)
            if code in (1, 2):
                self.assertIn(err[:6], ('error:', 'nfv-sc'), where)
                self.assertLess(len(err.splitlines()), 4, where)
            self.assertIsNone(_CONTROL.search(out + err), where)
            if 'html' in command:
                # A page has one script, its own.
                self.assertLessEqual(out.count('<script>'), 1, where)

    def save(self, data):
        self.write_file(self.path, data)

    def test_good(self):
        self.save(self.data)
        for command in COMMANDS:
            code, out, err = self.run_command(*command)
            self.assertIn((code, err), ((0, ''), (3, '')), command)

    def test_edited(self):
        for path, value, refused in EDITS:
            data = copy.deepcopy(self.data)
            place = data['cloud']
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = value
            self.save(data)
            self.assertClear(
                (path, value), refused, OF_AGENTS if str(
                    path[0]).startswith('network_') else COMMANDS)

    def test_only_refused_filters(self):
        data = copy.deepcopy(self.data)
        data['cloud']['options']['filter_scheduler'][
            'available_filters'] = ['pydoc.cli']
        self.save(data)
        self.refused("available_filters: 'pydoc.cli' is not a class",
                     'capacity', 'list', code=1)

    def test_no_file(self):
        pipe = self.in_folder('pipe')
        os.mkfifo(pipe)
        for self.path in (self.folder, os.devnull, pipe,
                          self.in_folder('none')):
            self.assertClear(self.path, REFUSED)

    def test_columns_and_output(self):
        self.save(self.data)
        for command in (('host', 'list'), ('host', 'show', 'one'),
                        ('capacity', 'list'),
                        ('flavor', 'explain', 'vrouter.4', '-f', 'csv')):
            self.refused('error: no column None; there are: ', *command, '-c',
                         'None')
        with open('/dev/full', 'w') as full, mock.patch(
                'sys.stdout', full), mock.patch(
                    'sys.stderr', io.StringIO()) as err:
            self.assertEqual(1, cli_base.main(
                ['host', 'list', '--from', self.path]))
        self.assertEqual(
            'error: No space left on device\n', err.getvalue())
