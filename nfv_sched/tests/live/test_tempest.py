# SPDX-License-Identifier: Apache-2.0
"""Tempest finds the plugin, and the cloud passes its tests."""

from testtools import content

from nfv_sched.tests.live import base
from nfv_sched.tests.live import tempest_workspace


class TempestTest(base.LiveTestCase):

    def test_plugin(self):
        succeeded, output = tempest_workspace.run(self.bed)
        self.addDetail('tempest', content.text_content(output))
        self.assertTrue(succeeded)
