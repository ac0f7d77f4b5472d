#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
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
