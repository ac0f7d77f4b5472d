# SPDX-License-Identifier: Apache-2.0
"""The benchmarks that measure on the bed, a short run of each.

The others are run by tools/check_benchmarks.
"""

import subprocess
import sys

from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import layout

_SCRIPTS = sorted((layout.SOURCE / 'benchmarks').glob('live_*.py'))
_SECONDS = 600


class BenchmarksTest(base.LiveTestCase):

    def test_quick(self):
        self.assertTrue(_SCRIPTS)
        for script in _SCRIPTS:
            done = subprocess.run(
                [sys.executable, str(script), '--quick',
                 '--directory', str(self.bed.directory)],
                cwd=layout.SOURCE, text=True, timeout=_SECONDS,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(0, done.returncode,
                             f'{script.name}: {done.stdout}')
