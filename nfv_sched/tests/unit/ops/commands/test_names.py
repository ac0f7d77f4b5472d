# SPDX-License-Identifier: Apache-2.0
"""Names of the commands: by object, and those that they had before 1.0."""

import types

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

    def test_old_names(self):
        """They do the same, and write the new name."""
        old = names.commands(old=True)
        for name, command in old.items():
            words = name.split('_')
            self.assertTrue(command.deprecated)
            code, out, err = self.run_command(*words, '--no-such-option')
            self.assertEqual((2, ''), (code, out), name)
            code, out, err = self.run_command(*words, '--help')
            self.assertIn('\nWill be removed in the next release; use ', out)
            # As a command of python-openstackclient.
            in_client = command(None, None)
            in_client.app = types.SimpleNamespace(NAME='openstack')
            self.assertIn(
                'use the files in' if name == 'metadefs_save' else
                'use "nfv-sched-status' if name == 'ledger_probe' else
                'use "nfv ', in_client.get_description())
        path = 'etc/nfv_sched/examples/fragmented.yaml'
        for before, now in (('audit', 'cloud audit'),
                            ('failover check', 'cloud failover')):
            code, out, err = self.run_command(
                *before.split(), '--from', path)
            warning = (f'warning: "{before}" will be removed in the next '
                       f'release; use "{now}"\n')
            self.assertTrue(err.startswith(warning), err)
            self.assertEqual(
                (code, out, err.removeprefix(warning)),
                self.run_command(*now.split(), '--from', path))
