# SPDX-License-Identifier: Apache-2.0

"""The same outcome however the filters are enabled."""

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


class OursFirstTest(base.NFVCloudTestCase):
    extra_filters = ['VSwitchNUMAAffinityFilter', 'NFVTopologyFilter']

    def test_boot(self):
        self.start_host('host1', switch=[1])
        server = self.boot(self.flavor(nfv__vswitch_numa_affinity='strict'))
        self.assertPlaced(server, [1], 'host1')
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict',
                             hw__numa_nodes='2')
        self.assertRefused(self.boot(flavor, expect='ERROR'),
                           'nfv:vswitch_numa_affinity')


class OnlyTopologyTest(base.NFVCloudTestCase):
    """NFVTopologyFilter alone stands in for Nova's filter."""

    extra_filters = ['NFVTopologyFilter']

    def test_as_stock_nova(self):
        self.start_host('host1', switch=[1], physnets={'bar': [1]})
        flavor = self.flavor()
        self.assertPlaced(self.boot(flavor), [0])
        self.assertPlaced(self.boot(flavor), [1])
        server = self.boot(self.flavor(vcpus=1), [base.BAR])
        self.assertPlaced(server, [1])
        self.assertRefused(self.boot(self.flavor(vcpus=5), expect='ERROR'))


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
