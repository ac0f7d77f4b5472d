# SPDX-License-Identifier: Apache-2.0
"""What is read of Neutron's agents."""

import contextlib

from nfv_sched.ledger import neutron
from nfv_sched.ops.cloud import agents
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests.unit.limits import base
from nfv_sched.tests.unit.limits import neutron_api

INTERFACE = 'network:router_interface'
GATEWAY = 'network:router_gateway'


class ReadTest(base.NeutronTestCase):

    def setUp(self):
        super().setUp()
        self.progress = []

    def read(self):
        with contextlib.closing(neutron.Reader()) as reader:
            return snapshot.Cloud(taken='', **agents.read(
                reader, lambda *args: self.progress.append(args)))

    def agent(self, kind, host, *served, alive=True, fields=None,
              **configurations):
        agent = neutron_api.agent(
            kind, host, alive=alive, **configurations) | (fields or {})
        self.api.agents.append(agent)
        self.api.served[agent['id']] = list(served)
        return agent['id']

    def network(self, *args, **kwargs):
        self.api.networks.append(neutron_api.network(*args, **kwargs))
        return self.api.networks[-1]

    def plug(self, owner, network, device='', host=''):
        self.api.ports.append(neutron_api.port(
            owner, device, host=host, network=network['id']))

    def test_none(self):
        """Only guests: nothing else is asked for."""
        self.agent('Open vSwitch agent', 'h1')
        nothing = snapshot.Cloud(taken='', network_agents=(), networks=())
        self.assertEqual(nothing, self.read())
        self.assertEqual({'agents', 'networks'},
                         {each for each, _ in self.api.requests})
        self.api.missing.add('agents')
        self.assertEqual(nothing, self.read())

    def test_dhcp(self):
        flat = self.network('flat', 'physnet0', 'flat',
                            availability_zone_hints=['west'],
                            subnets=['s', 't'])
        tunnel = self.network('tunnel', None, 'vxlan')
        first = self.agent('DHCP agent', 'h1', flat, tunnel, fields={
            'availability_zone': 'west'})
        second = self.agent('DHCP agent', 'h2', flat, alive=False,
                            fields={'admin_state_up': False})
        self.agent('Open vSwitch agent', 'h1', bridge_mappings={
            'physnet0': 'br0', 'physnet1': 'br1'}, tunnel_types=['vxlan'])
        for host in ('h1', 'h2'):
            self.plug('network:dhcp', flat, 'dhcp-x', host)
        self.plug('compute:nova', flat, 'vm', 'h1')
        found = self.read()
        self.assertEqual((
            snapshot.NetworkAgent(
                id=first, kind='dhcp', host='h1', zone='west',
                physnets=frozenset({'physnet0', 'physnet1'}),
                tunnels=frozenset({'vxlan'}),
                serves=tuple(sorted((flat['id'], tunnel['id'])))),
            snapshot.NetworkAgent(
                id=second, kind='dhcp', host='h2', alive=False,
                enabled=False, serves=(flat['id'],))), found.network_agents)
        self.assertEqual({
            snapshot.NetworkService(
                id=flat['id'], kind='dhcp', name='flat', ports=1,
                physnets=frozenset({'physnet0'}), zones=('west',), subnets=2),
            snapshot.NetworkService(
                id=tunnel['id'], kind='dhcp', name='tunnel',
                tunnels=frozenset({'vxlan'}))}, set(found.network_services))
        self.assertEqual(('network agents', 2, 2), self.progress[-1])

    def test_routers(self):
        outer = self.network('outer', 'physnet0', 'flat')
        inner = self.network('inner', None, 'geneve')
        other = self.network('other', segments=[
            {'provider:network_type': 'vlan',
             'provider:physical_network': name} for name in ('a', 'b')])
        plain = neutron_api.router('plain')
        ha = neutron_api.router('ha', ha=True)
        spread = neutron_api.router('spread', distributed=True)
        ids = [self.agent(
            'L3 agent', host, *routers, agent_mode='dvr_snat',
            handle_internal_only_routers=False)
            for host, routers in (('h1', (plain, ha)), ('h2', (ha, spread)))]
        self.plug(GATEWAY, outer, plain['id'], 'h1')
        self.plug(INTERFACE, inner, plain['id'], 'h1')
        self.plug(INTERFACE, other, plain['id'], 'h1')
        self.plug('network:ha_router_replicated_interface', inner, ha['id'],
                  'h1')
        for host in ('h1', 'h2'):
            self.plug('network:router_ha_interface', inner, ha['id'], host)
        self.plug('network:floatingip_agent_gateway', outer, ids[0], 'h1')
        found = self.read()
        self.assertEqual([(ids[0], 'dvr_snat', True, None),
                          (ids[1], 'dvr_snat', True, None)], [
            (each.id, each.mode, each.external_only, each.physnets)
            for each in found.network_agents])
        services = {each.name: each for each in found.network_services}
        self.assertEqual(snapshot.NetworkService(
            id=plain['id'], kind='router', name='plain', ports=3,
            physnets=frozenset({'physnet0', 'a', 'b'}), external=True,
            tunnels=frozenset({'geneve'})), services['plain'])
        self.assertEqual(
            [(2, True, False), (0, False, True)],
            [(services[name].ports, services[name].ha,
              services[name].distributed) for name in ('ha', 'spread')])
        self.assertEqual(3, len(found.network_services))
        # Of several segments the first with a physical network, as in Nova.
        self.assertEqual(
            {'outer': 'physnet0', 'inner': None, 'other': 'a'},
            {each.name: each.physnet for each in found.networks})

    def test_unknown_networks(self):
        """A router without some of its networks needs nobody knows what."""
        inner = self.network('inner', None, 'geneve')
        lost = neutron_api.network('lost', 'physnet0', 'flat')
        both = neutron_api.router('both')
        one = neutron_api.router('one')
        none = neutron_api.router('none')
        self.agent('L3 agent', 'h1', both, one, none)
        for network, router in ((inner, both), (lost, both), (inner, one)):
            self.plug(INTERFACE, network, router['id'], 'h1')

        def known():
            return {each.name: each.physnets is not None
                    for each in self.read().network_services}

        self.assertEqual({'both': False, 'one': True, 'none': True}, known())
        for change in (self.api.networks.clear,
                       lambda: self.api.missing.add('networks')):
            change()
            self.assertEqual(
                {'both': False, 'one': False, 'none': True}, known())

    def test_ovn(self):
        """Where the gateway of a router is bound, it is."""
        outer = self.network('outer', 'physnet0', 'flat')
        agent = self.agent('OVN Controller Gateway agent', 'h1', **{
            'bridge-mappings': 'physnet0:br-ex, physnet1:br-1'})
        self.plug(GATEWAY, outer, 'r1', 'h1')
        self.plug(GATEWAY, outer, 'r2', 'h2')
        found = self.read()
        self.assertEqual(snapshot.Cloud(
            taken='', network_agents=(snapshot.NetworkAgent(
                id=agent, kind='ovn', host='h1', serves=('r1',),
                physnets=frozenset({'physnet0', 'physnet1'})),),
            networks=(snapshot.Network(
                id=outer['id'], name='outer', physnet='physnet0'),)), found)

    def test_what_a_host_reaches(self):
        """What agents that report say of it, together."""
        self.agent('DHCP agent', 'h1')
        self.agent('DHCP agent', 'h2')
        self.agent('Open vSwitch agent', 'h1', tunnel_types=[],
                   bridge_mappings={'a': 'x'})
        self.agent('Linux bridge agent', 'h1', tunnel_types=['vxlan'],
                   interface_mappings={'b': 'y'})
        self.agent('NIC Switch agent', 'h2', device_mappings={'a': ['e']})
        self.agent('Open vSwitch agent', 'h2', alive=False,
                   bridge_mappings={'a': 'x'})
        first, second = self.read().network_agents
        self.assertEqual(
            (frozenset({'a', 'b'}), frozenset({'vxlan'}), None, None),
            (first.physnets, first.tunnels, second.physnets, second.tunnels))

    def test_gone_meanwhile(self):
        """An agent that was deleted serves nothing."""
        agent = self.agent('L3 agent', 'h1', neutron_api.router())
        self.api.missing.add(f'agents/{agent}/l3-routers')
        found = self.read()
        self.assertEqual(((), ()), (
            found.network_agents[0].serves, found.network_services))

    def test_served_twice(self):
        router = neutron_api.router()
        self.agent('L3 agent', 'h1', router, router)
        found = self.read()
        self.assertEqual((router['id'],), found.network_agents[0].serves)
        self.assertEqual(1, len(found.network_services))

    def test_odd(self):
        self.agent('L3 agent', 'h1', neutron_api.router())
        del self.api.agents[0]['host']
        self.api.agents[0]['agent_type'] = 'OVN Controller Gateway agent'
        self.plug(GATEWAY, self.network('n'), 'r', 'h1')
        error = self.assertRaises(neutron.NeutronError, self.read)
        self.assertIn('malformed answer: KeyError', str(error))

    def test_wrong(self):
        agent = self.agent('L3 agent', 'h1', {'id': 'r', 'name': 5})
        self.assertRaises(neutron.NeutronError, self.read)
        self.api.served[agent] = [neutron_api.router()]
        self.api.faults[f'agents/{agent}/l3-routers'] = (
            lambda handler, query, body: handler.reply({}, 403))
        error = self.assertRaises(neutron.NeutronError, self.read)
        self.assertIn('l3-routers: 403', str(error))
        self.api.faults.clear()
        self.api.networks = [neutron_api.network(segments=['x'])]
        self.assertRaises(neutron.NeutronError, self.read)
        self.api.networks.clear()
        for field in ('configurations', 'agent_type'):
            self.api.agents[0][field] = ['x']
            self.assertRaises(neutron.NeutronError, self.read)
