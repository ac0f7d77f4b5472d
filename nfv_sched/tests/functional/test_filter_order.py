# SPDX-License-Identifier: Apache-2.0

"""The same outcome however the filters are enabled.

An operator may keep Nova's NUMATopologyFilter and add ours before or after
it, or name ours first.
"""

import re

import fixtures

from nfv_sched.tests.functional import base


class AfterStockTest(base.NFVCloudTestCase):
    """Stock Nova's filter writes limits of its own before each of ours."""

    extra_filters = ['NUMATopologyFilter', 'VSwitchNUMAAffinityFilter']

    def test_course(self):
        """A short course through rules, moves and multi-create."""
        for name in ('host1', 'host2'):
            self.start_host(name, switch=[1])
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        prefer = self.flavor(nfv__vswitch_numa_affinity='prefer')

        with self.row('boot and moves'):
            for flavor in (strict, prefer):
                server = self.boot(flavor, host='host1')
                self.assertPlaced(server, [1], 'host1')
                self.cold_migrate(server)
                self._confirm_resize(server)
                self.assertPlaced(server, [1], 'host2')

        with self.row('two guest nodes'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict',
                                 hw__numa_nodes='2')
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               'nfv:vswitch_numa_affinity')

        with self.row('multi-create that fills the switch nodes'):
            servers = self.boot_many(strict, 4)
            self.assertEqual([[1]] * 4, list(map(self.nodes, servers)))
            self.assertRefused(self.boot(strict, expect='ERROR'),
                               'nfv:vswitch_numa_affinity')
            self.assertPlaced(self.boot(prefer), [0])

        with self.row('multi-create of prefer'):
            servers = self.boot_many(prefer, 4)
            self.assertEqual([[1]] * 4, list(map(self.nodes, servers)))

        with self.row('multi-create that does not fit'):
            before = self.usages()
            self.boot_many(strict, 5, expect='ERROR')
            self.assertEqual(before, self.usages())

        with self.row('no policy'):
            self.assertPlaced(self.boot(self.flavor(), host='host1'), [0])


class Boot:
    """The start of that course, with the filters in another order."""

    def test_boot(self):
        self.start_host('host1', switch=[1])
        server = self.boot(self.flavor(nfv__vswitch_numa_affinity='strict'))
        self.assertPlaced(server, [1], 'host1')
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict',
                             hw__numa_nodes='2')
        self.assertRefused(self.boot(flavor, expect='ERROR'),
                           'nfv:vswitch_numa_affinity')


class OursFirstTest(Boot, base.NFVCloudTestCase):
    extra_filters = ['VSwitchNUMAAffinityFilter', 'NFVTopologyFilter']


class BeforeStockTest(Boot, base.NFVCloudTestCase):
    extra_filters = ['VSwitchNUMAAffinityFilter', 'NUMATopologyFilter']


class AllThreeTest(Boot, base.NFVCloudTestCase):
    extra_filters = ['NFVTopologyFilter', 'VSwitchNUMAAffinityFilter',
                     'NUMATopologyFilter']


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

    The filters are in the order of README.md.  Nova writes its lines where
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
