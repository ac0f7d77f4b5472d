# SPDX-License-Identifier: Apache-2.0
"""What ``nfv-sched cloud audit`` prints, of which hosts, and how it exits."""

import dataclasses
import json
import shlex

import fixtures

from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import drain as drain_command
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.audit import clouds
from nfv_sched.tests.unit.ops.answers.audit import faults
from nfv_sched.tests.unit.ops.commands import base


def broken(*names):
    cloud = clouds.sound()
    for name in names:
        fault = faults.FAULTS[name]
        cloud = fault.plant(list(fault.spots(cloud))[-1])
    return cloud


class AuditTest(base.CommandTestCase):

    def audit(self, cloud, *args):
        return self.run_command(
            'cloud', 'audit', '--from', self.save_cloud(cloud), *args)

    def test_sound_for_people(self):
        """Not even an empty line goes to stdout."""
        self.assertEqual((0, '', '2 hosts: nothing found.\n'), self.audit(
            clouds.sound(), '--host', 'old*'))
        self.refused('no column Hots; there are: Host, ', 'cloud', 'audit',
                     '--from', self.in_folder('cloud'), '-c', 'Hots')

    def test_commands(self):
        path = self.save_cloud(broken('switch moved', 'orphan', 'ledger'))
        lines = self.shown('cloud', 'audit', '--from', path, '-f', 'commands',
                           code=3).splitlines()
        drain, remove = sorted(shlex.split(line) for line in lines
                               if not line.startswith('# '))
        self.assertEqual(['nova-manage', 'placement', 'audit'], remove[:3])
        self.assertEqual(['nfv-sched', 'host', 'drain'], drain[:3])
        parsed = drain_command.DrainHost(None, None).get_parser(
            'drain').parse_args(drain[3:])
        self.assertEqual(('commands', drain[4:5], drain[-1:]),
                         (parsed.formatter, parsed.server, parsed.hosts))
        self.assertIn(f'# to do: {values.KINDS[values.LEDGER]}', lines)
        self.assertEqual((0, '', '5 hosts: nothing found.\n'), self.audit(
            clouds.sound(), '-f', 'commands'))

    def test_bad_options(self):
        for option, text in (('--kind', "no kind named 'x'"),
                             ('--confirm', "'x' is not a number of seconds")):
            self.refused(text, 'cloud', 'audit', '--from',
                         self.save_cloud(clouds.sound()), option, 'x')

    def test_something_unread(self):
        code, out, err = self.audit(dataclasses.replace(
            broken('orphan'), missing=(snapshot.Missing(
                kind=snapshot.MissingKind.NEUTRON, text='x'),)))
        self.assertEqual((1, 'error: Neutron cannot be read: x\n'),
                         (code, err))
        self.assertIn(values.ALLOCATION_ORPHAN, out)

    def test_unread_cell(self):
        """Of its hosts nothing is said: their servers may not be known."""
        cloud = broken('orphan')
        cloud = dataclasses.replace(cloud, missing=(snapshot.Missing(
            kind=snapshot.MissingKind.CELL, cell=cloud.hosts[0].cell),
        ), servers=())
        code, out, err = self.audit(cloud, '-f', 'json')
        self.assertEqual((1, []), (code, json.loads(out)['findings']))
        self.assertIn('0 hosts: nothing found.\n', err)

    def test_sentences_of_older_files(self):
        """They may be of cells: no host is said to be in order, or not."""
        self.assertEqual(
            (1, '', 'error: no host can be checked: the file does not say '
             'which of them were read completely\nerror: Neutron: x\n'),
            self.audit(dataclasses.replace(
                broken('orphan'), missing=snapshots.missing('Neutron: x'))))


class LiveTest(base.CommandTestCase):
    """A live cloud is read again if anything is found."""

    def audit(self, *readings, args=()):
        left = list(readings)
        slept = []
        self.useFixture(base.live(lambda: left.pop(0)))
        self.useFixture(fixtures.MockPatch(
            'nfv_sched.ops.commands.audit.time.sleep', slept.append))
        code, out, err = self.run_command(
            'cloud', 'audit', '-f', 'json', *args)
        self.assertEqual([], left)
        kinds = [row['kind'] for row in json.loads(out)['findings']]
        self.assertEqual(3 if kinds else 0, code)
        return kinds, err, slept

    def test_nothing_found(self):
        self.assertEqual(([], '5 hosts: nothing found.\n', []),
                         self.audit(clouds.sound()))

    def test_confirmed(self):
        kinds, err, slept = self.audit(
            broken('orphan', 'ledger'), broken('orphan', 'unknown CPU'))
        self.assertEqual([values.ALLOCATION_ORPHAN], kinds)
        self.assertEqual([90.0], slept)
        self.assertEqual('2 to be confirmed: the cloud is read again in 90 s'
                         '\n', err)

    def test_gone(self):
        self.assertEqual([], self.audit(
            broken('orphan'), clouds.sound())[0])

    def test_once(self):
        self.assertEqual(
            ([values.ALLOCATION_ORPHAN], '', []),
            self.audit(broken('orphan'), args=('--confirm', '0')))
