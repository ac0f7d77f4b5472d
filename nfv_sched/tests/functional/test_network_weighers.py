# SPDX-License-Identifier: Apache-2.0

"""New guests go where the network puts less on a host."""

from nfv_sched.tests.functional import network
from nfv_sched.tests.unit.limits import neutron_api


class WeigherTest(network.NetworkCloudTestCase):
    """Nova by itself prefers the first host, which has more memory.

    The weighers here have multipliers that outweigh that.
    """

    limits = {'dhcp_server_weight_multiplier': 0.0,
              'router_weight_multiplier': 0.0,
              'vswitch_port_weight_multiplier': 0.0}

    def setUp(self):
        super().setUp()
        self.start_host('host1', memory_gib=64)
        self.start_host('host2', memory_gib=8)
        self.assertGoesTo('host1')

    def weigh(self, **multipliers):
        for option in self.limits:
            name = option.removesuffix('_weight_multiplier')
            self.flags(**{option: multipliers.get(name, 0.0)},
                       group='nfv_sched')

    def assertGoesTo(self, host, networks='none'):
        server = self.boot(self.small, networks=networks)
        self.assertEqual(host, self.host(server))
        self.delete_all([server['id']])

    def agents(self, kind, **figures):
        for host, count in (('host1', 3), ('host2', 1)):
            self.neutron_api.agents.append(neutron_api.agent(
                kind, host, **{name: count for name in figures}))

    def test_agents(self):
        """ML2/OVS: what the agents on the hosts report."""
        self.agents('DHCP agent', networks=None)
        self.agents('L3 agent', routers=None)
        self.publish()
        for weigher in ('dhcp_server', 'router'):
            with self.row(weigher):
                self.weigh(**{weigher: 10.0})
                self.assertGoesTo('host2')
        with self.row('none counts'):
            self.weigh()
            self.assertGoesTo('host1')
        with self.row('reversed'):
            self.weigh(router=-10.0)
            self.assertGoesTo('host1')
        with self.row('multiplier of an aggregate'):
            self.weigh(router=10.0)
            self.set_metadata('host2', router_weight_multiplier='0')
            self.assertGoesTo('host1')
        with self.row('hosts of dead agents'):
            self.weigh(dhcp_server=10.0)
            for agent in self.neutron_api.agents:
                agent['alive'] = False
            self.publish()
            self.assertGoesTo('host1')

    def test_gateway_ports(self):
        """ML2/OVN: where the gateway ports of routers are bound."""
        for host, count in (('host1', 3), ('host2', 1)):
            self.neutron_api.agents.append(neutron_api.agent(
                'OVN Controller Gateway agent', host))
            self.bind(host, count, owner='network:router_gateway')
        self.bind('host1', 2, owner='network:distributed')
        self.publish()
        with self.row('routers'):
            self.weigh(router=10.0)
            self.assertGoesTo('host2')
        with self.row('DHCP is everywhere'):
            self.weigh(dhcp_server=10.0)
            self.assertGoesTo('host1')
        with self.row('ports'):
            self.weigh(vswitch_port=10.0)
            self.assertGoesTo('host2')

    def test_ports_of_guests(self):
        """Also those that were placed since the last round; they spread."""
        self.weigh(vswitch_port=10.0)
        self.bind('host1', 1)
        self.publish()
        hosts = [self.host(self.guest()) for _ in range(4)]
        # From the second on both have as many ports in turn.
        self.assertEqual(['host2', 'host1', 'host2', 'host1'], hosts)
        with self.row('servers of one request'):
            self.assertEqual(['host1', 'host2'], sorted(
                map(self.host, self.guests(2))))
