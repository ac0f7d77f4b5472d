# SPDX-License-Identifier: Apache-2.0
"""The count of servers with ports, against servers that Nova boots.

The cloud is read by the tools from Nova's databases, Placement and Neutron.
Then servers are booted until none fits any more.
"""

from nfv_sched.ops.cloud import database
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import network


class FillTest(base.PCI, network.NetworkCloudTestCase):
    """Hosts with 6 ports each; the switch is on node 1, network foo on 0.

    Only host1 has VFs for ports, two near node 0 and one near node 1.
    """

    extra_filters = [*base.WholePluginTestCase.extra_filters,
                     'VSwitchPortLimitFilter', 'SecurityRuleLimitFilter']
    #: Ports of Nova's fixture have a group with four rules.
    limits = {'vswitch_ports_per_node': 10, 'security_rules_per_node': 18}

    def setUp(self):
        super().setUp()
        physnets = {'foo': [0], 'bar': [1]}
        self.start_host('host1', physnets=physnets, devices={
            'port_vfs': [0, 0, 1]})
        self.start_host('host2', physnets=physnets)

    def read(self):
        self._run_periodics()
        self.publish()
        cloud = database.read(base.CONF)
        self.assertEqual((), cloud.missing)
        return cloud

    @staticmethod
    def count(cloud, flavor, choice=None):
        flavor, = [each for each in cloud.flavors if each.id == flavor]
        counted, = capacity.capacities(
            cloud, [flavor], capacity.NewServers(ports=choice))
        return counted.fits, counted.ports

    def fill(self, flavor, networks):
        count = 0
        while self.boot(flavor, networks(), expect=('ACTIVE', 'ERROR'))[
                'status'] == 'ACTIVE':
            count += 1
        return count

    def check(self, flavor, networks, expected, label, names):
        """Compare counts with what Nova boots.

        :param networks: makes the networks of a server
        :param expected: number of servers, the one that is there included
        :param label: the ports as the count shows them
        :param names: the same networks as a command line has them
        """
        self.boot(flavor, networks())
        cloud = self.read()
        fits, assumed = self.count(cloud, flavor)
        self.assertEqual((assumed_ports.Basis.SERVERS, label),
                         (assumed.basis, assumed.label))
        self.assertEqual(expected - 1, fits)
        named = assumed_ports.of_networks(cloud, names)
        self.assertEqual(label, named.label)
        self.assertEqual(fits, self.fill(flavor, networks))

    def test_as_servers_have_them(self):
        plain = self.flavor(vcpus=1)
        strict = self.flavor(vcpus=1, nfv__vswitch_numa_affinity='strict')
        near = self.flavor(vcpus=1, hw__pci_numa_affinity_policy='required')
        vf, foo = 'private-network', 'physical-network-foo'
        bar, tunneled = 'physical-network-bar', 'tunneled-network'
        for title, *arguments in (
            ('VFs', plain, lambda: [self.port()], 3, '1 direct@physnet4',
             [f'{vf},vnic-type=direct']),
            ('VFs, and ports near node 0', near,
             lambda: [self.port(), base.FOO], 2,
             '1 direct@physnet4, 1 normal@foo', [vf, foo]),
            ('switch and network on node 1', strict, lambda: [base.BAR], 8,
             '1 normal@bar', [base.BAR]),
            ('two ports each: 6 ports and 18 rules of a host', plain,
             lambda: [base.BAR, base.TUNNELED], 4, '1 normal, 1 normal@bar',
             [bar, tunneled]),
        ):
            with self.row(title):
                self.check(*arguments)

    def test_switch_and_network_share_no_node(self):
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
        cloud = self.read()
        self.assertEqual(4, self.count(cloud, flavor)[0])
        choice = assumed_ports.of_networks(cloud, [base.FOO])
        self.assertEqual(0, self.count(cloud, flavor, choice)[0])
        self.boot(flavor, [base.FOO], expect='ERROR')

    def test_forbidden_trait_that_placement_does_not_know(self):
        """Placement answers 400, and Nova takes no host."""
        specs = {'trait:CUSTOM_NOWHERE': 'forbidden'}
        flavors = [self.flavor_with({**base.pinned(), **specs}),
                   self.flavor_with(specs, vcpus=1)]
        cloud = self.read()
        self.assertIn('HW_CPU_X86_AVX2', cloud.traits)
        for flavor in flavors:
            self.assertEqual(0, self.count(cloud, flavor)[0])
            self.boot(flavor, expect='ERROR')
        self.assertEqual(201, self.placement.put(
            '/traits/CUSTOM_NOWHERE', {}, version='1.6').status)
        cloud = self.read()
        self.assertIn('CUSTOM_NOWHERE', cloud.traits)
        for flavor in flavors:
            self.assertGreater(self.count(cloud, flavor)[0], 0)
            self.boot(flavor)
