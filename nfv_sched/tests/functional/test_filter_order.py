# SPDX-License-Identifier: Apache-2.0

"""Filters beside that of Nova, and the one that is said to refuse."""

import re

import fixtures

from nfv_sched.tests.functional import base


class BesideStockTest(base.NFVCloudTestCase):
    """Nova's filter would write limits without labels after ours."""

    extra_filters = ['NFVTopologyFilter', 'VSwitchNUMAAffinityFilter',
                     'NUMATopologyFilter']

    def test_servers_with_a_policy_are_refused(self):
        self.start_host('host1', switch=[1])
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.assertRefused(self.boot(strict, expect='ERROR'),
                           'NUMATopologyFilter')
        self.assertPlaced(self.boot(self.flavor()), [0])


class WhoRefusesTest(base.PCI, base.WholePluginTestCase):
    """Nova's log names the filter whose policy leaves no host.

    The filters are in the documented order.  Nova writes its lines where
    tenants are not told a reason.
    """

    def configure(self):
        super().configure()
        self.flags(expose_reasons='none', group='nfv_sched')

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova.filters'))

    def refusing(self, flavor):
        """The filters that removed the last host, by Nova's log.

        :returns: by its line for each, and by its summary of the search
        """
        seen = len(self.log.output)
        self.assertRefused(self.boot(flavor, expect='ERROR'),
                           'No valid host was found.')
        output = self.log.output[seen:]
        return (re.findall(r'Filter (\w+) returned 0 hosts', output),
                re.findall(r"'(\w+): \(start: [1-9]\d*, end: 0\)'", output))

    def test_filters_in_the_log(self):
        self.start_host('host1', switch=[1], devices={
            'nics': [1], 'vfs': [0, 0]})
        vswitch = self.flavor(nfv__vswitch_numa_affinity='strict')
        pci = self.strict_pci('nic-preferred:1')
        both = self.strict_pci('vf:1', nfv__vswitch_numa_affinity='strict')
        full = self.flavor(hw__numa_nodes='2')
        mapped = self.flavor(nfv__numa_node_0='2')
        self.assertPlaced(self.boot(self.flavor(
            vcpus=base.PINNED_CPUS_PER_NODE, nfv__numa_node_0='1')), [1])
        for flavor, name in (
                (vswitch, 'VSwitchNUMAAffinityFilter'),
                (pci, 'PCINUMAAffinityFilter'),
                (both, 'VSwitchNUMAAffinityFilter'),
                (full, 'NFVTopologyFilter'),
                (mapped, 'NFVTopologyFilter'),
                (vswitch, 'VSwitchNUMAAffinityFilter')):
            self.assertEqual(([name], [name]), self.refusing(flavor))
        # There is room for any guest that asks for neither.
        self.assertPlaced(self.boot(self.pci_flavor('nic-preferred:1')), [0])
