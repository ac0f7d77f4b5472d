# SPDX-License-Identifier: Apache-2.0
"""The filter of PCI devices."""

from nfv_sched.filters import pci_numa_affinity
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestPCINUMAAffinityFilter(base.PCITestCase):

    def setUp(self):
        super().setUp()
        self.filters = [pci_numa_affinity.PCINUMAAffinityFilter()]

    def test_requests_that_it_looks_at(self):
        """Nova keeps its own policies, but for what is preferred."""
        for looked, spec in (
                (False, clouds.spec()),
                (False, clouds.spec(extra_specs=base.PCI_STRICT)),
                (False, self.spec({}, 'legacy')),
                (False, self.spec({}, 'required')),
                (False, self.spec({}, 'socket')),
                (True, self.spec({}, 'preferred')),
                (True, self.spec(base.PCI_STRICT)),
                (True, self.spec(base.PCI_PREFER))):
            self.assertEqual(looked, base.looks_at(self.filters[0], spec))

    def test_host_without_devices(self):
        host = clouds.host()
        host.pci_stats = None
        self.assertEqual(
            'No valid host was found. nfv:pci_numa_affinity=strict: PCI '
            'devices needed, the host has none (1 host)',
            self.refusal([host], self.spec(base.PCI_STRICT)))

    def test_odd_devices(self):
        host = clouds.host(devices={1: 1})
        del host.pci_stats.pools[0]['count']
        self.assertIn('PCI devices: a readable record of the host needed',
                      self.refusal([host], self.spec(base.PCI_STRICT)))
