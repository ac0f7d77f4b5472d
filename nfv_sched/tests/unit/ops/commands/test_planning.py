# SPDX-License-Identifier: Apache-2.0
"""Command lines of plans; what these print is in the golden files."""

import os

import fixtures

from nfv_sched.ops.cloud import file
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.commands import base


class PlanningTest(base.CommandTestCase, running.RunningTestCase):

    def save(self, *servers, steps=''):
        self.file = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'cloud')
        file.save(self.running(*servers, steps=steps), self.file)

    def run_it(self, *args):
        code, out, err = self.run_command(*args, '--from', self.file)
        self.assertEqual('', err)
        return code, out

    def test_drain_servers(self):
        self.save('a p1 one', 'b p1 one', 'c p1 two')
        code, out = self.run_it('host', 'drain', 'one', '--server', 'b')
        self.assertEqual(0, code)
        self.assertIn('1 of 2 servers of one: 1 live.\n', out)
        code, out = self.run_it('host', 'drain', 'one', '--server', 'b',
                                '--server', 'a', '-f', 'commands')
        self.assertEqual(0, code)
        self.assertEqual(2, out.count(' server migrate '))
        self.assertNotIn('--disable', out)
        for name, error in (('c', 'server c is not on one, but on two'),
                            ('d', "no server named 'd'")):
            code, _out, err = self.run_command(
                'host', 'drain', 'one', '--server', name, '--from', self.file)
            self.assertEqual(2, code)
            self.assertIn(error, err)

    def test_usage(self):
        self.save('a p1 one')
        for *args, text in (
                ('host', 'drain',
                 'HOST, --aggregate or --availability-zone is needed'),
                ('host', 'drain', 'one', 'two', '--server', 'a',
                 '--server is for one host'),
                ('host', 'drain', 'one', 'two', '-f', 'commands',
                 'several are emptied in rounds by "plan run": write the '
                 'plan with --save FILE'),
                ('host', 'drain', 'one', 'x', "no host named 'x'"),
                ('host', 'drain', 'x*', "no host matches 'x*'"),
                ('cloud', 'defrag', '--flavor', 'p1', '--count', '0',
                 'a number from 1 is needed'),
                ('cloud', 'defrag', '--flavor', 'x', "no flavor named 'x'"),
                ('cloud', 'defrag', '--flavor', 'p1', '--ports', '1001',
                 '--ports: 1000 at most')):
            code, _out, err = self.run_command(*args, '--from', self.file)
            self.assertEqual(2, code)
            self.assertIn(text, err)
