#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

import argparse
from collections.abc import Iterable
import dataclasses
import shlex
from unittest import mock

from cliff import commandmanager
from openstackclient import shell

from nfv_sched.advice.plans import movable
from nfv_sched.advice.plans import trial
from nfv_sched.render import plans
from nfv_sched.tests import base

LIVE = trial.Move(
    uuid='11111111-1111-1111-1111-111111111111', name='fw 1', flavor='fw.8',
    memory=8192, source='one', destination='two')


def parsed(lines: Iterable[str]) -> list[tuple[str, argparse.Namespace]]:
    """What python-openstackclient understands of lines.

    :returns: of each line without comment, the version of the compute API,
        and the arguments of the command
    """
    manager = commandmanager.CommandManager('openstack.cli')
    manager.add_command_group('openstack.compute.v2')
    found = []
    for line in lines:
        program, *words = shlex.split(line, comments=True) or ('',)
        if not program or program == 'sleep':
            continue
        assert program == 'openstack', line
        options, words = shell.OpenStackShell().parser.parse_known_args(words)
        factory, name, rest = manager.find_command(words)
        parser = factory(mock.Mock(), None).get_parser(name)
        with mock.patch.object(parser, 'error', side_effect=AssertionError):
            arguments = parser.parse_args(rest)
        arguments.command = name
        found.append((options.os_compute_api_version, arguments))
    return found


class CommandsTest(base.TestCase):

    def test_live(self):
        (version, args), = parsed(plans.commands([LIVE]))
        self.assertEqual(
            ('2.30', 'server migrate', True, 'two', True, LIVE.uuid),
            (version, args.command, args.live_migration, args.host,
             args.wait, args.server))

    def test_paused(self):
        """It is never active, for which the client would wait."""
        moves = [dataclasses.replace(LIVE, paused=True)]
        lines = list(plans.commands(moves))
        (_version, args), = parsed(lines[:-1])
        self.assertFalse(args.wait)
        self.assertEqual(
            'while [ "$(openstack server show -f value -c status '
            f'{LIVE.uuid})" = MIGRATING ]; do sleep 5; done', lines[-1])

    def test_cold(self):
        move = trial.move_of(mock.Mock(
            uuid='u', flavor=mock.Mock(memory=1)), 'one', 'two',
            movable.COLD)
        (version, args), (_version, confirm) = parsed(plans.commands([move]))
        self.assertEqual(
            ('2.56', 'server migrate', False, 'two', True),
            (version, args.command, args.live_migration, args.host,
             args.wait))
        self.assertEqual(('server migration confirm', 'u'),
                         (confirm.command, confirm.server))

    def test_room_that_was_left(self):
        """Nova gives it back a moment after a move has ended."""
        def moves(*hosts):
            return [trial.Move(uuid=source, name=source, flavor='f', memory=1,
                               source=source, destination=destination)
                    for source, destination in hosts]

        for hosts, pauses in (
                ((('one', 'two'), ('three', 'two')), []),
                ((('one', 'two'), ('two', 'three')), []),
                ((('one', 'two'), ('three', 'one')), [3]),
                ((('one', 'two'), ('three', 'four'), ('four', 'one'),
                  ('five', 'one'), ('six', 'four')), [5, 11])):
            lines = list(plans.commands(moves(*hosts)))
            self.assertEqual(pauses, [
                number for number, line in enumerate(lines)
                if line == 'sleep 5'], lines)
            self.assertEqual(len(hosts), len(parsed(lines)))

    def test_disable(self):
        (_version, args), = parsed([plans.disable('one', "it's broken")])
        self.assertEqual(
            ('compute service set', 'one', 'nova-compute', True,
             "it's broken"),
            (args.command, args.host, args.service, args.disable,
             args.disable_reason))

    def test_odd_names(self):
        """Names end neither a comment nor a word."""
        odd = 'a b; rm -rf $(x) `y`'
        lines = list(plans.commands([trial.Move(
            uuid='u', name=f'{odd}\nc', flavor='f', memory=1, source=odd,
            destination=odd)]))
        self.assertEqual(2, len(lines))
        self.assertFalse([line for line in lines if '\n' in line])
        (_version, args), = parsed(lines)
        self.assertEqual(odd, args.host)
