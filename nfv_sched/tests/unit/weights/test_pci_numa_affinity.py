# SPDX-License-Identifier: Apache-2.0
"""The weigher of PCI devices."""

from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.weights import pci_numa_affinity as pci_weigher


class TestPCINUMAAffinityWeigher(base.PCITestCase):

    def test_weigher(self):
        hosts = [clouds.host('none', devices={1: 1}, free={1: 1}),
                 clouds.host('local', devices={0: 1})]
        for keys in (base.PCI_PREFER, {}):
            spec = self.spec(keys, 'preferred')
            weigher = pci_weigher.PCINUMAAffinityWeigher()
            self.assertEqual(
                [0.0, 1.0], clouds.weigh(weigher, spec, *hosts))
        spec = self.spec({}, 'legacy')
        self.assertEqual([0.0, 0.0], clouds.weigh(weigher, spec, *hosts))
