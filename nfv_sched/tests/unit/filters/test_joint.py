# SPDX-License-Identifier: Apache-2.0
"""All policies at once."""

import itertools

from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestTogether(base.JointTestCase):
    """Each need alone can be met; what counts is all of them at once."""

    def test_switch_and_device(self):
        for switch, device, free, node in (
                ((0,), 0, {}, 0), ((1,), 1, {}, 1), ((0, 1), 0, {}, 0),
                ((0, 1), 1, {}, 1), ((0,), 1, {}, None), ((1,), 0, {}, None),
                ((0, 1), 1, {1: 1}, None)):
            results = set()
            for order in itertools.permutations(self.filters[:3]):
                self.flags(expose_reasons='none')
                host = clouds.host(
                    devices={device: 1}, switch=switch, free=free)
                spec = clouds.spec('strict', extra_specs=base.PCI_STRICT,
                                   devices=[clouds.pci_request()])
                passed = self.passing([host], spec, list(order))
                results.add(bool(passed))
                if passed:
                    self.assertEqual(
                        ([node], [node]), self.claimed(host, spec))
            self.assertEqual({node is not None}, results)

    def test_mapping_and_device(self):
        for node in (0, 1):
            spec = clouds.spec(nodes={0: node}, extra_specs=base.PCI_STRICT,
                               devices=[clouds.pci_request()])
            host = clouds.host(devices={1: 1})
            if node:
                self.assertEqual(['host1'], self.passing([host], spec))
                self.assertEqual(([1], [1]), self.claimed(host, spec))
            else:
                self.refusal([host], spec)

    def test_prefer_gives_way_to_strict(self):
        host = clouds.host(devices={0: 1}, switch=(1,))
        spec = clouds.spec('prefer', extra_specs=base.PCI_STRICT,
                           devices=[clouds.pci_request()])
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(([0], [0]), self.claimed(host, spec))

    def test_enabled_filters_count_from_the_first(self):
        """But each refuses by its own rule."""
        nova_filters_enabled = [
            'NFVTopologyFilter', 'PCINUMAAffinityFilter']
        self.flags(enabled_filters=nova_filters_enabled,
                   group='filter_scheduler')
        host = clouds.host(devices={0: 1})
        spec = clouds.spec(nodes={0: 1}, extra_specs=base.PCI_STRICT,
                           devices=[clouds.pci_request(1, 'preferred')])
        self.assertEqual(
            ['host1'], self.passing([host], spec, self.filters[:1]))
        self.assertIn('nfv:pci_numa_affinity=strict', self.refusal(
            [host], spec, self.filters))
