# SPDX-License-Identifier: Apache-2.0
"""What moves of DHCP servers and routers leave for guests."""

import dataclasses

from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.rebalance import freed_capacity
from nfv_sched.ops.answers.rebalance import levelling
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.rebalance import test_levelling
from nfv_sched.tests.unit.ops import small_clouds

SMALL = small_clouds.flavor(1, 'small')
#: One of its hosts takes 20 ports, of which 4 are physical.
LIMITS = {'vswitch_ports_per_node': 20, 'vswitch_physical_ports': 4}


def cloud(ports, other, routers=6, of_router=2, **options):
    """Two hosts, routers on one of them.

    :param ports: ports of the virtual switch of the one with routers
    :param other: those of the other one
    """
    made = test_levelling.routers('r', routers, ports=of_router)
    return dataclasses.replace(
        small_clouds.cloud(
            small_clouds.host('one', network=snapshot.HostNetwork(
                vswitch_ports=ports, security_rules=0, dhcp_servers=0,
                routers=routers)),
            small_clouds.host('two', network=snapshot.HostNetwork(
                vswitch_ports=other, security_rules=0, routers=0)),
            flavors=(SMALL,), nfv_sched={**LIMITS, **options}),
        network_agents=(
            test_levelling.agent('one', *test_levelling.names(made)),
            test_levelling.agent('two')), network_services=tuple(made))


class GainTest(base.TestCase):

    def found(self, given):
        """The plan, with freed ports and gained servers."""
        plan = freed_capacity.with_gain(given, levelling.plans(
            given, room=view.free_ports(given)))
        return plan, {each.host: each.ports for each in plan.freed_ports}, {
            each.flavor: each.servers for each in plan.gained_servers}

    def fits(self, given):
        counted, = capacity.capacities(given, [SMALL])
        return counted.fits, [host.fits for host in counted.hosts.values()]

    def test_free_ports(self):
        self.assertEqual({'one': 2, 'two': 16},
                         view.free_ports(cloud(14, 0)))
        without = small_clouds.cloud(small_clouds.host('one'))
        self.assertEqual({}, view.free_ports(without))
        unlimited = cloud(14, 0, vswitch_ports_per_node=0)
        self.assertEqual({}, view.free_ports(unlimited))
        aggregate = dataclasses.replace(
            cloud(14, 0), aggregates=(snapshot.Aggregate(
                name='a', hosts=('two',),
                metadata={'vswitch_ports_per_node': '5'}),))
        self.assertEqual({'one': 2, 'two': 1}, view.free_ports(aggregate))

    def test_where_ports_bind(self):
        """As many more as the count of capacity says before and after."""
        for ledger in ('none', 'placement'):
            given = cloud(16, 0, of_router=1, ledger=ledger)
            given = dataclasses.replace(
                given, hosts=(given.hosts[0], small_clouds.host(
                    'two', small_clouds.node(0, range(8)), network=given.hosts[
                        1].network)))
            plan, ports, servers = self.found(given)
            self.assertEqual({'one': 2, 'two': -2}, ports)
            self.assertEqual({'small': 2}, servers)
            self.assertEqual((0, [0, 0]), self.fits(given))
            self.assertEqual(
                (2, [2, 0]), self.fits(freed_capacity.after(given, plan)))

    def test_fewer_fit(self):
        """What one host gains, another one loses: the cloud is told of."""
        given = cloud(4, 14, of_router=1)
        given = dataclasses.replace(given, hosts=(
            small_clouds.host('one', small_clouds.node(0, range(8)),
                              network=given.hosts[0].network), given.hosts[1]))
        self.assertEqual({'small': -2}, self.found(given)[2])

    def test_where_ports_do_not_bind(self):
        given = cloud(14, 0, vswitch_ports_per_node=25400)
        self.assertEqual(({'one': 4, 'two': -4}, {}), self.found(given)[1:])

    def test_no_moves(self):
        self.assertEqual(({}, {}), self.found(cloud(14, 0, 2))[1:])

    def test_after(self):
        given = cloud(14, 0)
        later = freed_capacity.after(given, self.found(given)[0])
        one, two = (host.network for host in later.hosts)
        self.assertEqual(
            (10, 4, 4, 2, 0, None),
            (one.vswitch_ports, two.vswitch_ports, one.routers, two.routers,
             one.dhcp_servers, two.dhcp_servers))
        found = levelling.plans(later)
        self.assertEqual(((), '4-2'), (
            found.moves, str(found.plans[0].before)))

    def test_hosts_that_are_not_computes(self):
        """A network node is not in Nova."""
        given = cloud(14, 0)
        given = dataclasses.replace(given, hosts=given.hosts[1:])
        plan, ports, _servers = self.found(given)
        self.assertEqual({'one': 4, 'two': -4}, ports)
        self.assertEqual(1, len(freed_capacity.after(given, plan).hosts))
