# SPDX-License-Identifier: Apache-2.0
"""Names of filters and weighers in shadow."""

from nfv_sched.scheduler import shadow
from nfv_sched.tests import base


class UnknownTest(base.TestCase):

    def test_unknown(self):
        self.assertEqual(['ComputeFilter', 'x'], shadow.unknown(
            ['x', 'VSwitchNUMAAffinityFilter', 'ComputeFilter',
             'RouterWeigher']))
