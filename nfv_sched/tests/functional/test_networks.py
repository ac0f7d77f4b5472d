# SPDX-License-Identifier: Apache-2.0

"""Virtual switch affinity together with the networks of the guest.

A host may run its switch on several nodes, with other physical networks on
each: a strict guest belongs on the nodes of the networks it uses.
"""

from nova.conf import neutron as neutron_conf

from nfv_sched.tests.functional import base

SPLIT = {'foo': [0], 'bar': [1]}


class SplitSwitchTest(base.NFVCloudTestCase):
    """Network foo on node 0, network bar on node 1, a switch on both."""

    def test_guests_run_near_their_networks(self):
        self.start_two(switch=[0, 1], physnets=SPLIT)
        for policy in ('strict', 'prefer'):
            flavor = self.flavor(nfv__vswitch_numa_affinity=policy)
            wide = self.flavor(nfv__vswitch_numa_affinity=policy,
                               hw__numa_nodes='2')

            with self.row(policy + ', on bar'):
                server = self.boot(flavor, [base.BAR], host='host1')
                self.assertPlaced(server, [1])
                # Node 0 is free, and still not for a guest on bar.
                server = self.boot(flavor, [base.BAR], host='host1')
                self.assertPlaced(server, [1])

            with self.row(policy + ', on foo beside a guest on node 0'):
                self.assertEqual([[0]], self.occupy(self.flavor(), 'host1'))
                server = self.boot(flavor, [base.FOO], host='host1')
                self.assertPlaced(server, [0])

            with self.row(policy + ', on both, two guest nodes'):
                server = self.boot(wide, [base.FOO, base.BAR])
                self.assertEqual([0, 1], sorted(self.nodes(server)))

            with self.row(policy + ', on both, one guest node'):
                server = self.boot(flavor, [base.FOO, base.BAR],
                                   expect='ERROR')
                self.assertRefused(server)

        with self.row('strict, the node of its network is full'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
            for host in ('host1', 'host2'):
                for _ in range(2):
                    self.boot(flavor, [base.BAR], host=host)
            server = self.boot(flavor, [base.BAR], expect='ERROR')
            self.assertRefused(server)
            self.assertPlaced(self.boot(flavor, [base.FOO]), [0])

        with self.row('strict, on bar, cold migrated'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
            server = self.boot(flavor, [base.BAR], host='host1')
            self.move_cold(server, [1], 'host2')

    def test_network_away_from_the_only_switch(self):
        """The switch is on node 1, network foo on node 0."""
        self.start_host('host1', switch=[1], physnets=SPLIT)
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        prefer = self.flavor(nfv__vswitch_numa_affinity='prefer')
        with self.row('strict on foo'):
            self.assertRefused(
                self.boot(strict, [base.FOO], expect='ERROR'),
                'nfv:vswitch_numa_affinity')
        with self.row('prefer on foo'):
            self.assertPlaced(self.boot(prefer, [base.FOO]), [0])
        with self.row('strict on bar'):
            self.assertPlaced(self.boot(strict, [base.BAR]), [1])

    def test_network_without_a_node(self):
        """A physical network that the host does not declare."""
        self.start_host('host1', switch=[1], physnets={'foo': [0]})
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.assertPlaced(self.boot(strict, [base.BAR]), [1])


class TunnelTest(base.NFVCloudTestCase):
    """Tunnels end on node 0."""

    def start_pair(self):
        self.start_two(switch=[0, 1], physnets=SPLIT, tunnel=[0])

    def test_guest_of_another_node_moves(self):
        """Nova takes every moved guest for one on a tunnelled network."""
        self.start_pair()
        for title, flavor in (
                ('no policy', self.flavor()),
                ('strict', self.flavor(nfv__vswitch_numa_affinity='strict')),
                ('prefer', self.flavor(nfv__vswitch_numa_affinity='prefer'))):
            with self.row(title):
                server = self.boot(flavor, [base.BAR], host='host1')
                self.assertPlaced(server, [1], 'host1')
                self.move_cold(server, [1], 'host2')
                self.shelve_and_unshelve(server)
                self.assertPlaced(server, [1])

    def test_tunnelled_guest_stays_near_the_tunnels(self):
        self.start_pair()
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        for host in ('host1', 'host2'):
            # Node 0 is the busier one.
            self.assertEqual([[0]], self.occupy(self.flavor(), host))
        server = self.boot(strict, [base.TUNNELED], host='host1')
        self.assertPlaced(server, [0], 'host1')
        self.move_cold(server, [0], 'host2')


class OptionsTest(base.NFVCloudTestCase):
    """The labels as nova.conf of a compute node gives them."""

    def configure(self):
        labels = {'nfv_vswitch': [1], 'nfv_node0': [0], 'nfv_node1': [1],
                  'foo': [0]}
        self.flags(physnets=list(labels), group='neutron')
        neutron_conf.register_dynamic_opts(base.CONF)
        for name, nodes in labels.items():
            self.flags(numa_nodes=nodes, group='neutron_physnet_' + name)

    def test_boot(self):
        self.start_host('host1')
        self.declared.clear()
        self._run_periodics()
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.assertPlaced(self.boot(flavor), [1])
        flavor = self.flavor(nfv__numa_node_0='0')
        self.assertPlaced(self.boot(flavor), [0])
        self.assertPlaced(self.boot(flavor), [0])
