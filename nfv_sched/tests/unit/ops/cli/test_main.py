# SPDX-License-Identifier: Apache-2.0
"""The command without the libraries of the extra."""

import importlib.util
import io
import sys
from unittest import mock

from nfv_sched.ops.cli import main
from nfv_sched.tests import base


class MainTest(base.TestCase):

    def run_main(self, *missing):
        find_spec = importlib.util.find_spec
        with mock.patch.object(
                importlib.util, 'find_spec', lambda name: None
                if name in missing else find_spec(name)), mock.patch.object(
                sys, 'stderr', io.StringIO()) as err, mock.patch.object(
                sys, 'stdout', io.StringIO()), mock.patch.object(
                sys, 'argv', ['nfv-sched', '--version']):
            return main.main(), err.getvalue()

    def test_missing(self):
        """One line says what to install; nothing is imported."""
        code, err = self.run_main('rich', 'pydantic')
        self.assertEqual(1, code)
        line, = err.splitlines()
        for part in ('pydantic, rich', "pip install '.[ops]'"):
            self.assertIn(part, line)

    def test_installed(self):
        self.assertEqual((0, ''), self.run_main())
