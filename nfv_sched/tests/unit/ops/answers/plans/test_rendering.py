# SPDX-License-Identifier: Apache-2.0

import argparse
from collections.abc import Iterable
import dataclasses
import shlex
from unittest import mock

from cliff import commandmanager
from openstackclient import shell

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.run import values
from nfv_sched.tests import base

LIVE = values.Move(
    kind='live', id='11111111-1111-1111-1111-111111111111', name='fw 1',
    source='one', destination='two')


def parsed(lines: Iterable[str]) -> list[tuple[str, argparse.Namespace]]:
    """Return the compute API version and arguments of each openstack line."""
    manager = commandmanager.CommandManager('openstack.cli')
    for group in ('compute', 'network'):
        manager.add_command_group(f'openstack.{group}.v2')
    found = []
    for line in lines:
        if not line.startswith('openstack '):
            continue
        words = shlex.split(line)[1:]
        options, words = shell.OpenStackShell().parser.parse_known_args(words)
        factory, name, rest = manager.find_command(words)
        parser = factory(mock.Mock(), None).get_parser(name)
        with mock.patch.object(parser, 'error', side_effect=AssertionError):
            arguments = parser.parse_args(rest)
        arguments.command = name
        found.append((options.os_compute_api_version, arguments))
    return found


class CommandsTest(base.TestCase):

    def test_migrations(self):
        for kind, least in (('live', '2.30'), ('cold', '2.56')):
            (version, args), = parsed(rendering.commands(values.MovePlan(
                moves=(dataclasses.replace(LIVE, kind=kind),))))
            self.assertEqual(
                (least, 'server migrate', kind == 'live', 'two', LIVE.id),
                (version, args.command, args.live_migration, args.host,
                 args.server))

    def test_odd_names(self):
        odd = 'a b; rm -rf $(x) `y`'
        move = dataclasses.replace(
            LIVE, name=f'{odd}\nc', source=odd, destination=odd)
        lines = list(rendering.commands(values.MovePlan(moves=(
            move, dataclasses.replace(move, kind='shelve', destination='')))))
        self.assertFalse([line for line in lines if '\n' in line])
        (_version, live), (_version, shelved) = parsed(lines)
        self.assertEqual((odd, [LIVE.id], True), (
            live.host, shelved.servers, shelved.offload))


def lack(**fields):
    return document.CapacityLack(**{
        'names': (), 'hosts': 1, 'why': None, **fields})


class LackingTest(base.TestCase):

    def test_text(self):
        """Figures of several hosts are those of one that is named."""
        policy = 'nfv:vswitch_numa_affinity=strict'
        filters = lack(
            kind=refusals.LackKind.FILTERS, nearest='two', hosts=2,
            names=('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter'),
            why=f'{policy}: 8 needed, 2 free')
        placement = lack(kind=refusals.LackKind.PLACEMENT, names=('PCPU=8',),
                         why='PCPU 8 needed, 6 free', nearest='one')
        group = lack(kind=refusals.LackKind.GROUP, nearest='four',
                     hosts=3, names=('anti-affinity',))
        hint = lack(kind=refusals.LackKind.HINT, nearest='five',
                    names=('same_host',))
        self.assertEqual(
            'no host takes it: the server group (anti-affinity) on 3 hosts; '
            'NFVTopology and VSwitchNUMAAffinity on two, the nearest of 2 '
            f'hosts ({policy}: 8 needed, 2 free); Placement on one (PCPU 8 '
            'needed, 6 free); other causes on 1 host',
            rendering.lacking_text((group, filters, placement, hint)))
        self.assertEqual('there is no other host', rendering.lacking_text(()))

    def test_servers_that_are_placed_first(self):
        for hosts, text in ((1, 'two would'), (3, 'two and 2 other hosts '
                                                  'would')):
            self.assertEqual(
                f'no host takes it: {text}, but other servers that have to '
                'move are placed there first', rendering.lacking_text([
                    lack(kind=refusals.LackKind.GUESTS, nearest='two',
                         hosts=hosts)]))
