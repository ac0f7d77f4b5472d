# SPDX-License-Identifier: Apache-2.0
"""The filter of the virtual switch."""

from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestVSwitchNUMAAffinityFilter(base.FilterTestCase):

    def test_requests_that_it_looks_at(self):
        """Node mappings, too: they are kept if this is the only filter."""
        for looked, spec in (
                (False, clouds.spec()),
                (False, clouds.spec(numa=False)),
                (False, clouds.spec(extra_specs={
                    'nfv:numa_affinity.vswitch': 'strict'})),
                (True, clouds.spec('strict')),
                (True, clouds.spec('prefer')),
                (True, clouds.spec(nodes={0: 0}))):
            self.assertEqual(looked, base.looks_at(self.vswitch, spec))
