# SPDX-License-Identifier: Apache-2.0
"""Native threads or eventlet; decided once, so in processes of their own."""

import importlib.util
import os
import subprocess
import sys
import unittest

from nfv_sched.tests import base

# Up to Nova 32 this module patches the process.
_IMPORT = 'import nova.api.validation.extra_specs.validators; '


class ConcurrencyTest(base.TestCase):

    def run_python(self, code):
        # What another test in this process may have set.
        environment = {name: value for name, value in os.environ.items()
                       if name != 'OS_NOVA_DISABLE_EVENTLET_PATCHING'}
        process = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c',
             f'from nfv_sched.nova import concurrency; {code}'
             'print(concurrency.is_patched())'],
            capture_output=True, text=True, timeout=280, env=environment)
        self.assertEqual(0, process.returncode, process.stderr)
        return process.stdout.strip(), process.stderr

    def test_command(self):
        for code in (_IMPORT, 'import nfv_sched.ops.simulator.start; '):
            self.assertEqual('False', self.run_python(
                f'concurrency.native_threads(); {code}')[0])

    def test_configured(self):
        """Commands that read Nova's databases have chosen by then."""
        self.assertEqual('False', self.run_python(
            'import os; from nfv_sched.ops.commands import source; '
            'source.configure(["--config-file=/dev/null"], databases=False); '
            'assert os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"]; ')[0])

    def test_command_prints_nothing(self):
        self.assertEqual('', self.run_python(
            'from nfv_sched.base import quiet; '
            'ignored = quiet.warnings_ignored(), quiet.logs_ignored(); '
            '[each.__enter__() for each in ignored]; '
            'concurrency.native_threads(); ' + _IMPORT)[1])

    def test_service(self):
        """A thread of the service runs, whatever the threads are."""
        out, err = self.run_python(
            'concurrency.service(); from oslo_service import threadgroup; '
            'group = threadgroup.ThreadGroup(1); '
            'group.add_thread(print, "ran"); group.wait(); ')
        self.assertEqual('ran', out.split()[0], err)

    @unittest.skipUnless(importlib.util.find_spec('eventlet'), 'no eventlet')
    def test_patched_process_is_left_alone(self):
        self.assertEqual('True', self.run_python(
            'import eventlet; eventlet.monkey_patch(); '
            'concurrency.native_threads(); import os; '
            'assert "OS_NOVA_DISABLE_EVENTLET_PATCHING" not in os.environ; ')
            [0])
