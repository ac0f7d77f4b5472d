# SPDX-License-Identifier: Apache-2.0
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
