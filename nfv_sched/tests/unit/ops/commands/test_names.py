# SPDX-License-Identifier: Apache-2.0
"""Names of the commands: by object."""

from nfv_sched.ops.cli import base as cli
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.commands import test_hostile_names as names


class CommandNamesTest(base.CommandTestCase):

    def test_groups_of_the_help(self):
        grouped = [name for _title, group in cli.GROUPS for name in group]
        self.assertEqual(
            sorted(name.replace('_', ' ') for name in names.commands()),
            sorted(grouped))
        code, out, err = self.run_command('--help')
        self.assertEqual((0, ''), (code, err))
        for name in grouped:
            self.assertEqual(1, out.count(f'\n  {name}  '), name)
        for title in ('Could not', 'cannot be loaded', 'simulate  '):
            self.assertNotIn(title, out)
