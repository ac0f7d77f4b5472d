# SPDX-License-Identifier: Apache-2.0
"""``openstack nfv ...``: the program of python-openstackclient itself."""

import importlib.metadata
import json
import os
import subprocess
import sys

from nfv_sched.ops.cloud import file
from nfv_sched.tests.functional import test_ledger_process

GROUP = 'openstack.extension'

CLOUD = """\
hosts:
  - name: east
    cores: 4
    memory: 16 GiB
flavors:
  small: {vcpus: 1, memory: 1 GiB}
steps:
  - boot: vm
    flavor: small
    expect: {placed: 1}
"""

#: Runs the program with each list of arguments, and prints what came of it.
_EACH = """\
import contextlib
import io
import json
import sys
from openstackclient import shell
answers = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = shell.main(arguments)
        except SystemExit as exc:
            code = exc.code
    answers.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""


class OpenStackTest(test_ledger_process.ProcessTestCase):
    """One compute node; see the base.  There is no Keystone."""

    def setUp(self):
        super().setUp()
        self.file = f'{self.directory}/cloud.json.gz'

    def run_python(self, *args, **environment):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith('OS_')}
        done = subprocess.run(
            [sys.executable, *args],
            capture_output=True, text=True, timeout=120,
            # No clouds.yaml of somebody.
            env={**kept, 'HOME': self.directory, **environment})
        self.assertNotIn('Traceback', done.stderr)
        return done.returncode, done.stdout, done.stderr

    def openstack(self, *args, **environment):
        return self.run_python(
            '-m', 'openstackclient.shell', *args, **environment)

    def test_help(self):
        entries = [entry for entry in importlib.metadata.entry_points(
            group=GROUP) if entry.value.startswith('nfv_sched.')]
        self.assertIn('nfv_snapshot_save', [entry.name for entry in entries])
        names = [entry.name.replace('_', ' ') for entry in entries]
        # One process: the program alone takes more than a second to start.
        code, answers, err = self.run_python('-c', _EACH, json.dumps(
            [[*name.split(), '--help'] for name in names]))
        self.assertEqual((0, ''), (code, err))
        for name, (code, out, err) in zip(
                names, json.loads(answers), strict=True):
            self.assertEqual((0, ''), (code, err))
            # The module has no name as a program.
            self.assertRegex(out, rf'usage: [-\w.]+ {name} ')
            self.assertRegex(out, rf'\n  [-\w.]+ {name}')
            self.assertNotIn('nfv-sched simulation run', out)

    def test_save(self):
        """The cloud of nova.conf is read, not that of the credentials."""
        for environment in ({}, {
            'OS_AUTH_URL': 'http://127.0.0.1:9/v3', 'OS_USERNAME': 'nobody',
            'OS_PASSWORD': 'wrong', 'OS_PROJECT_NAME': 'none',
        }):
            code, out, err = self.openstack(
                'nfv', 'snapshot', 'save', self.file,
                '--config-file', self.conf, **environment)
            self.assertEqual(
                (0, ''), (code, test_ledger_process.without_progress(err)))
            self.assertIn(f'{self.file}: 1 host, 0 servers, ', out)
            self.assertEqual(['host1'], [
                host.name for host in file.load(self.file).hosts])
            os.unlink(self.file)

    def test_exit_codes(self):
        self.neutron.stop()
        code, out, err = self.openstack(
            'nfv', 'snapshot', 'save', self.file, '--config-file', self.conf)
        lines = test_ledger_process.without_progress(err).splitlines()
        self.assertEqual((1, 1), (code, len(lines)), err)
        self.assertIn('error: Neutron cannot be read: ', err)
        self.assertEqual(
            2, self.openstack('nfv', 'snapshot', 'save', '--wrong')[0])
        self.assertEqual(2, self.openstack('nfv', 'snapshot')[0])
        cloud = f'{self.directory}/cloud.yaml'
        with open(cloud, 'w') as out:
            out.write(CLOUD)
        code, out, err = self.openstack(
            'nfv', 'simulation', 'run', cloud, '--show', 'servers',
            '-f', 'json')
        self.assertEqual(3, code, err)
        self.assertIn('1 expectation failed:', err)
        self.assertIn('"server": "vm"', out)
        self.assertEqual(
            2, self.openstack(
                'nfv', 'simulation', 'run', '--example', 'none')[0])
