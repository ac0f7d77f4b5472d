# SPDX-License-Identifier: Apache-2.0
"""Command lines of plans; what these print is in the golden files."""

import fixtures

from nfv_sched.ops.cli import errors
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

    def test_usage(self):
        self.save_cloud(self.running('a p1 one'))
        for *args, text in (
                ('host', 'drain',
                 'HOST, --aggregate or --availability-zone is needed'),
                ('host', 'drain', 'one', 'two', '--server', 'a',
                 '--server is for one host'),
                ('host', 'drain', 'x*', "no host matches 'x*'"),
                ('host', 'drain', 'one', '--seconds', '0',
                 'a number from 1 is needed'),
                ('cloud', 'defrag', '--flavor', 'p1', '--count', '0',
                 'a number from 1 is needed'),
                ('cloud', 'spread', '--points', '0',
                 'a number from 1 is needed'),
                ('cloud', 'defrag', '--flavor', 'x', "no flavor named 'x'"),
                ('cloud', 'defrag', '--flavor', 'p1', '--ports', '1001',
                 '--ports: 1000 at most')):
            self.refused(text, *args)
