# SPDX-License-Identifier: Apache-2.0
"""Command lines of plans; what these print is in the golden files."""

import dataclasses
import json

import fixtures

from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import plan_file
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.commands import base


class PlanningTest(base.CommandTestCase, running.RunningTestCase):

    def refused(self, text, *args):
        super().refused(text, *args, '--from', self.in_folder('cloud'))

    def test_servers_that_are_not_there(self):
        self.save_cloud(self.running('a p1 one', 'c p1 two'))
        for name, error in (('c', 'server c is not on one, but on two'),
                            ('d', "no server named 'd'")):
            self.refused(error, 'host', 'drain', 'one', '--server', name)

    def test_seconds(self):
        """Each plan has its own time limit unless one is given."""
        self.save_cloud(self.running('a p1 one'))
        plans = 'nfv_sched.ops.answers.plans.'
        for module, name, default, *args in (
                ('drain', 'plan', 30, 'host', 'drain', 'one'),
                ('rolling', 'plan', 5, 'host', 'drain', 'one', 'two'),
                ('drain', 'evacuate', 30, 'host', 'evacuate', 'one'),
                ('rearrange', 'plan', 30, 'cloud', 'spread'),
                ('defrag', 'plan', 30, 'cloud', 'defrag', '--flavor', 'p1')):
            for given in (), ('--seconds', '7'):
                seen = []

                def plan(*_args, seconds, **_options):
                    seen.append(seconds)
                    raise errors.UsageError('seen')

                with fixtures.MonkeyPatch(f'{plans}{module}.{name}', plan):
                    self.refused('seen', *args, *given)
                self.assertEqual([7 if given else default], seen)

    def test_estimate(self):
        cloud = self.running('a p1 one', 'b p2 one', 'c fat3 two')
        self.save_cloud(cloud)
        speed = '--mib-per-second', '3', '--from', self.in_folder('cloud')
        plan = json.loads(self.shown(
            'host', 'drain', 'one', *speed, '--parallel', '3', '-f', 'json'))
        # One host sends both.
        self.assertEqual({'seconds': 171, 'mib_per_second': 3, 'parallel': 3},
                         plan['estimate'])
        self.assertEqual([{'memory_mib': 256, 'disk_mib': 0}] * 2, [
            each['copied'] for each in plan['servers']])
        path = self.in_folder('plan')
        for args in ('cloud', 'consolidate'), ('host', 'drain', 'one', 'two'):
            self.assertIn(
                ' minutes at 3 MiB/s, 4 at once: an estimate.',
                self.shown(*args, *speed, '--save', path))
        self.assertEqual(
            4, plan_file.read(path).document.rounds[0].estimate.parallel)
        self.save_cloud(dataclasses.replace(cloud, servers=tuple(
            dataclasses.replace(each, allocations=None)
            for each in cloud.servers)))
        self.assertIn('How long it takes is not known', self.shown(
            'host', 'drain', 'one', *speed))

    def test_save_of_agents(self):
        """Their moves are not tried in a file."""
        _status, out, _err = self.run_command(
            'agent', 'rebalance', '--from', 'network-nodes', '--save',
            self.in_folder('plan.json'))
        self.assertTrue(out.endswith('plan.json --dry-run\n'), out)

    def test_usage(self):
        self.save_cloud(self.running('a p1 one'))
        for *args, text in (
                ('host', 'drain',
                 'HOST, --aggregate or --availability-zone is needed'),
                ('host', 'drain', 'one', 'two', '--server', 'a',
                 '--server is for one host'),
                *(('host', 'drain', 'one', more, '--max-moves', '1',
                   '--max-moves is for one host, without')
                  for more in ('two', '--make-room', '--shelve')),
                ('host', 'drain', 'x*', "no host matches 'x*'"),
                ('cloud', 'defrag', '--flavor', 'x', "no flavor named 'x'"),
                ('cloud', 'defrag', '--flavor', 'p1', '--ports', '1001',
                 '--ports: 1000 at most')):
            self.refused(text, *args)
        for option in '--points', '--seconds', '--mib-per-second':
            self.refused('a number from 1 is needed', 'cloud', 'spread',
                         option, '0')
