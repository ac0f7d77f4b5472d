# SPDX-License-Identifier: Apache-2.0
"""Command lines of plans; what these print is in the golden files."""

import os

import fixtures

from nfv_sched.ops.cloud import file
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.commands import base


class PlanningTest(base.CommandTestCase, running.RunningTestCase):

    def save(self, *servers):
        self.file = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'cloud')
        file.save(self.running(*servers), self.file)

    def refused(self, text, *args):
        code, _out, err = self.run_command(*args, '--from', self.file)
        self.assertEqual(2, code)
        self.assertIn(text, err)

    def test_servers_that_are_not_there(self):
        self.save('a p1 one', 'c p1 two')
        for name, error in (('c', 'server c is not on one, but on two'),
                            ('d', "no server named 'd'")):
            self.refused(error, 'host', 'drain', 'one', '--server', name)

    def test_usage(self):
        self.save('a p1 one')
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
                ('cloud', 'defrag', '--flavor', 'x', "no flavor named 'x'"),
                ('cloud', 'defrag', '--flavor', 'p1', '--ports', '1001',
                 '--ports: 1000 at most')):
            self.refused(text, *args)
