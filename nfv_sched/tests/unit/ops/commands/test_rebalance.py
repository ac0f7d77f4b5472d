# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched agent rebalance``."""

import csv
import dataclasses
import io
import json
import os
import re
import shlex

import fixtures
import yaml

from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.rebalance import test_freed_capacity
from nfv_sched.tests.unit.ops.answers.rebalance import test_levelling
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds


def agents(kind, first, second, **fields):
    """An agent that serves something, and one that is to get it."""
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
        self.path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'cloud.json.gz')
        self.save()

    def save(self, **fields):
        file.save(snapshots.with_uuids(
            dataclasses.replace(CLOUD, **fields)), self.path)

    def plan(self, *args, code=3):
        found, out, err = self.run_command(
            'agent', 'rebalance', '--from', self.path, *args)
        self.assertEqual((code, ''), (found, err), out)
        return out


class PlanTest(PlanTestCase):

    def test_table(self):
        out = self.plan()
        table, sentences = out.split('DHCP', 1)
        self.assertEqual(
            [['1', 'dhcp', 'net 0', 'one', 'two', '1', '4-1'],
             ['2', 'router', 'r0', 'one', 'two', '2', '5-1'],
             ['3', 'router', 'r1', 'one', 'two', '2', '4-2']],
            [re.split('  +', line.strip())
             for line in table.splitlines()[2:] if line])
        self.assertEqual(
            [' servers on 2 agents: 5-0 -> 4-1 in 1 move.',
             'Routers on 2 agents: 6-0 -> 4-2 in 2 moves.',
             'Frees ports of virtual switches: one 5.',
             'Takes ports of virtual switches: two 5.'],
            sentences.splitlines())

    def test_guests(self):
        """Where ports limit guests, it is told how many more fit."""
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

    def test_nothing_to_move(self):
        self.assertEqual(
            'DHCP servers on 2 agents: 5-0; nothing to move.\n'
            'Routers on 2 agents: 6-0; nothing to move.\n',
            self.plan('--threshold', '6', code=0))
        self.assertEqual('', self.plan(
            '--threshold', '6', '-f', 'commands', code=0))

    def test_one_agent(self):
        self.save(network_agents=agents('router', ROUTERS, ())[:1])
        self.assertEqual('Routers on 1 agent: 6-6; nothing to move.\n',
                         self.plan(code=0))

    def test_kind(self):
        for kind, said, other in (('dhcp', 'DHCP', 'Routers'),
                                  ('router', 'Routers', 'DHCP')):
            out = self.plan('--kind', kind)
            self.assertIn(said, out)
            self.assertNotIn(other, out)

    def test_ports(self):
        out = self.plan('--kind', 'router', '--ports', '--threshold', '5')
        self.assertIn('Routers on 2 agents: 12-0 ports -> 8-4 ports in 2 '
                      'moves.', out)

    def test_commands(self):
        """Those of Neutron's client: what is taken away is given at once."""
        n0, r0, d1, d2, r1, r2 = map(snapshots.id_of, (
            'n0', 'r0', 'dhcp-1', 'dhcp-2', 'router-1', 'router-2'))
        self.assertEqual([
            f'openstack network agent remove network --dhcp -- {d1} {n0}',
            f'openstack network agent add network --dhcp -- {d2} {n0}',
            f'openstack network agent remove router --l3 -- {r1} {r0}',
            f'openstack network agent add router --l3 -- {r2} {r0}'],
            self.plan('-f', 'commands').splitlines()[:4])

    def test_commands_are_harmless(self):
        """Whatever others have named their routers, or written to a file."""
        evil = "x\nreboot; `reboot` $(reboot) '\u2028reboot"
        made = [dataclasses.replace(
            test_levelling.service(f'r{number}'), name=f'{number}{evil}')
            for number in range(5)]
        self.save(network_services=tuple(made),
                  network_agents=agents('router', made, ()))
        self.assertEqual(
            [['openstack', 'network', 'agent', verb, 'router', '--l3', '--',
              agent, snapshots.id_of('r0')] for verb, agent in (
                  ('remove', snapshots.id_of('router-1')),
                  ('add', snapshots.id_of('router-2')))],
            list(map(shlex.split, self.plan('-f', 'commands').splitlines())))

    def test_documents(self):
        for formatter, read in (('json', json.loads),
                                ('yaml', yaml.safe_load)):
            document = read(self.plan('-f', formatter))
            dhcp, router = document['plans']
            self.assertEqual(
                ('router', 3, 'services', {'most': 6, 'fewest': 0},
                 {'most': 4, 'fewest': 2}, [], []), tuple(
                    router[name] for name in (
                        'kind', 'threshold', 'levels', 'before', 'after',
                        'stays', 'left_out')))
            self.assertEqual(
                [('one', True, 6, 12, 4, 8), ('two', True, 0, 0, 2, 4)],
                [tuple(each[name] for name in (
                    'host', 'in_use', 'services', 'ports', 'services_after',
                    'ports_after')) for each in router['agents']])
            self.assertEqual('dhcp', dhcp['kind'])
            move = document['moves'][0]
            self.assertEqual(
                {'move': 1, 'kind': 'dhcp', 'service': 'net 0',
                 'service_id': snapshots.id_of('n0'),
                 'source': 'one', 'source_agent_id':
                     snapshots.id_of('dhcp-1'), 'destination': 'two',
                 'destination_agent_id': snapshots.id_of('dhcp-2'),
                 'ports': 1, 'after': {'most': 4, 'fewest': 1}},
                {name: value for name, value in move.items()
                 if name != 'commands'})
            self.assertEqual(2, len(move['commands']))
            self.assertEqual({'one': 5, 'two': -5}, {
                each['host']: each['ports']
                for each in document['freed_ports']})

    def test_rows(self):
        rows = list(csv.DictReader(io.StringIO(self.plan('-f', 'csv'))))
        self.assertEqual(
            {'Move': '1', 'Kind': 'dhcp', 'What': 'net 0',
             'From': 'one', 'To': 'two', 'Ports': '1',
             'ID': snapshots.id_of('n0'),
             'From agent': snapshots.id_of('dhcp-1'),
             'To agent': snapshots.id_of('dhcp-2'),
             'Most after': '4', 'Fewest after': '1'}, rows[0])
        self.assertEqual(3, len(rows))
        self.assertEqual(
            'r0\nr1\n', self.plan('--kind', 'router', '-f', 'value',
                                  '-c', 'What'))

    def test_what_stays(self):
        """Named, with the reason."""
        made = [*test_levelling.routers('h', 2, ha=True),
                test_levelling.service('spread', distributed=True),
                *test_levelling.routers('r', 6, physnets=frozenset({'x'}))]
        one, two = agents('router', made[:-1], made[-1:])
        lost = test_levelling.agent('three', 'r0', alive=False)
        off = test_levelling.agent('four', enabled=False)
        self.save(network_services=tuple(made),
                  network_agents=(one, two, lost, off))
        self.assertEqual(
            'Routers on 2 agents: 8-1; nothing can be moved.\n'
            'three: the agent is down; 1 -> 1.\n'
            'three: cannot move r0 (one, two: no x).\n'
            'one: cannot move r0, r1, r2, r3, r4 (two: no x).\n'
            'Left out: 2 HA routers (h0, h1).\n'
            'Left out: 1 distributed router (spread).\n',
            self.plan())

    def test_unknown_networks(self):
        """What a router needs is not known: it stays, and is named."""
        made = [*test_levelling.routers('r', 6),
                *test_levelling.routers('u', 2, physnets=None),
                test_levelling.service('h', ha=True, physnets=None)]
        one, two = agents('router', made, ())
        off = test_levelling.agent('three', 'u0', alive=False)
        self.save(network_services=tuple(made),
                  network_agents=(one, two, off))
        error = ('error: Neutron does not show the networks of 2 routers: '
                 'u0, u1\n')
        code, out, err = self.run_command(
            'agent', 'rebalance', '--from', self.path)
        self.assertEqual((1, error), (code, err))
        self.assertIn(
            'Left out: 1 HA router (h).\nLeft out: 2 routers whose networks '
            'are not known (u0, u1).\n', out)
        code, out, err = self.run_command(
            'agent', 'rebalance', '--from', self.path, '-f', 'json')
        self.assertEqual((1, error), (code, err))
        document = json.loads(out)
        plan, = document['plans']
        self.assertEqual(
            {'h': False, 'u0': False, 'u1': False},
            {each['service']: each['networks_known']
             for each in plan['left_out']})
        self.assertEqual(
            [], [move['service'] for move in document['moves']
                 if not move['service'].startswith('r')])

    def test_ovn(self):
        self.save(network_agents=agents('ovn', ROUTERS, ()))
        self.assertEqual(
            'Routers at gateways of ML2/OVN on 2 agents: 6-0; OVN itself '
            'places them.\n', self.plan(code=0))

    def test_ovn_ports(self):
        """They are not known: routers are counted all the same."""
        self.save(network_agents=agents('ovn', ROUTERS, ()),
                  network_services=())
        self.assertEqual(
            'Routers at gateways of ML2/OVN on 2 agents: 6-0; OVN itself '
            'places them.\n', self.plan('--ports', code=0))
        plan, = json.loads(self.plan('--ports', '-f', 'json', code=0))[
            'plans']
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
            self.save(network_agents=None,
                      missing=snapshots.missing(*missing))
            self.assertEqual(
                (1, '', f'error: {said}\n'), self.run_command(
                    'agent', 'rebalance', '--from', self.path))

    def test_something_else_not_read(self):
        """The plan is shown all the same."""
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
