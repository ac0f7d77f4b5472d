# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched agent rebalance``."""

import dataclasses
import json

from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.rebalance import test_freed_capacity
from nfv_sched.tests.unit.ops.answers.rebalance import test_levelling
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds


def agents(kind, first, second, **fields):
    return (dataclasses.replace(
        test_levelling.agent('one', *test_levelling.names(first), kind=kind),
        id=snapshots.id_of(f'{kind}-1')), dataclasses.replace(
        test_levelling.agent('two', *test_levelling.names(second), kind=kind,
                             **fields), id=snapshots.id_of(f'{kind}-2')))


ROUTERS = test_levelling.routers('r', 6, ports=2)
NETWORKS = tuple(snapshot.NetworkService(
    id=f'n{number}', kind='dhcp', name=f'net {number}', ports=1)
    for number in range(5))
CLOUD = dataclasses.replace(
    test_freed_capacity.cloud(14, 0), network_services=(*ROUTERS, *NETWORKS),
    network_agents=(*agents('router', ROUTERS, ()),
                    *agents('dhcp', NETWORKS, ())))


class PlanTestCase(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.save()

    def save(self, **fields):
        self.path = self.save_cloud(snapshots.with_uuids(
            dataclasses.replace(CLOUD, **fields)))

    def plan(self, *args, code=3):
        return self.shown(
            'agent', 'rebalance', '--from', self.path, *args, code=code)


class PlanTest(PlanTestCase):

    def test_guests(self):
        given = test_freed_capacity.cloud(16, 0, of_router=1)
        full = small_clouds.host('two', small_clouds.node(0, range(8)),
                                 network=given.hosts[1].network)
        file.save(snapshots.with_uuids(dataclasses.replace(
            given, hosts=(given.hosts[0], full), flavors=tuple([
                dataclasses.replace(each, id=f'id-of-{each.name}')
                for each in given.flavors]))), self.path)
        self.assertIn('\nsmall: 2 servers more will fit.\n', self.plan())
        document = json.loads(self.plan('-f', 'json'))
        self.assertEqual([{'host': 'one', 'ports': 2},
                          {'host': 'two', 'ports': -2}],
                         document['freed_ports'])
        self.assertEqual([{'flavor': 'small', 'flavor_id': 'id-of-small',
                           'servers': 2}], document['gained_servers'])

    def test_ovn_ports(self):
        """They are not known: routers are counted all the same."""
        self.save(network_agents=agents('ovn', ROUTERS, ()),
                  network_services=())
        self.assertEqual(
            'Routers at gateways of ML2/OVN on 2 agents: 6-0; OVN itself '
            'places them.\n', self.plan('--ports', code=0))
        plan, = json.loads(self.plan('--ports', '-f', 'json', code=0))['plans']
        self.assertEqual(
            ('services', {'most': 6, 'fewest': 0}, [(6, None), (0, None)]),
            (plan['levels'], plan['before'], [
                (each['services'], each['ports']) for each in plan['agents']]))

    def test_no_agents(self):
        self.save(network_agents=())
        self.assertEqual('Neutron shows no agents for DHCP or routers.\n',
                         self.plan(code=0))
        for kind, other, said in (('dhcp', 'router', 'DHCP'),
                                  ('router', 'dhcp', 'routers')):
            self.save(network_agents=agents(other, (), ()))
            self.assertEqual(f'Neutron shows no agents for {said}.\n',
                             self.plan('--kind', kind, code=0))

    def test_agents_not_read(self):
        for missing, said in (
                ((), 'the agents of Neutron are not known'),
                (('no one', ), 'no one')):
            self.save(network_agents=None, missing=snapshots.missing(*missing))
            self.assertEqual(
                (1, '', f'error: {said}\n'), self.run_command(
                    'agent', 'rebalance', '--from', self.path))

    def test_something_else_not_read(self):
        self.save(missing=snapshots.missing('Cell 2 does not answer'))
        code, out, err = self.run_command(
            'agent', 'rebalance', '--from', self.path)
        self.assertEqual((1, 'error: Cell 2 does not answer\n'), (code, err))
        self.assertIn('in 2 moves.', out)

    def test_usage(self):
        for args in (('--threshold', '0'), ('--threshold', 'x'),
                     ('--kind', 'ovn'), ('-f', 'x'), ('-c', 'x')):
            self.assertEqual(2, self.run_command(
                'agent', 'rebalance', '--from', self.path, *args)[0], args)
