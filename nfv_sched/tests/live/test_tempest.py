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
"""Tempest finds the plugin, and the cloud passes its tests."""

import re

from testtools import content

from nfv_sched.tests.live import base
from nfv_sched.tests.live import tempest_workspace

# Tests of clouds that are unlike this one: here some hosts have sibling
# threads and some do not.
_NOT_HERE = {'test_require_negative', 'test_isolate_negative'}

_SKIPPED = re.compile(r'\.(test_\w+)(?:\[\S*\])? \.\.\. SKIPPED')


class TempestTest(base.LiveTestCase):

    def test_plugin(self):
        outcome = tempest_workspace.run(self.bed)
        self.addDetail('tempest', content.text_content(outcome.output))
        self.assertTrue(outcome.succeeded, outcome.counts)
        self.assertEqual(_NOT_HERE,
                         set(_SKIPPED.findall(outcome.output)))
        self.assertEqual(len(_NOT_HERE), outcome.counts['Skipped'])
