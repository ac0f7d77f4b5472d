# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched agent rebalance``."""

import csv
import dataclasses
import io
import json
import os
import re
import shlex
import subprocess
import sys

import fixtures
import yaml

from nfv_sched.ops.snapshot import file
from nfv_sched.ops.snapshot import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.plans import test_rendering
from nfv_sched.tests.unit.ops.rebalance import test_freed_capacity
from nfv_sched.tests.unit.ops.rebalance import test_rebalance
from nfv_sched.tests.unit.ops import small_clouds


def agents(kind, first, second, **fields):
    """An agent that serves something, and one that is to get it."""
    return (dataclasses.replace(
        test_rebalance.agent('one', *test_rebalance.names(first), kind=kind),
        id=snapshots.id_of(f'{kind}-1')), dataclasses.replace(
        test_rebalance.agent('two', *test_rebalance.names(second), kind=kind,
                             **fields), id=snapshots.id_of(f'{kind}-2')))


ROUTERS = test_rebalance.routers('r', 6, ports=2)
NETWORKS = tuple(snapshot.NetworkService(
    id=f'n{number}', kind='dhcp', name=f'net {number}', ports=1)
    for number in range(5))
CLOUD = dataclasses.replace(
    test_freed_capacity.cloud(14, 0), network_services=(*ROUTERS, *NETWORKS),
    network_agents=(*agents('router', ROUTERS, ()),
                    *agents('dhcp', NETWORKS, ())))


#: An openstack client, and a Neutron in a file.  As the real one, it ends
#: without an error if an agent is refused.
CLIENT = """\
import json, sys
words = sys.argv[1:]
with open(PATH) as file:
    cloud = json.load(file)
if words[:3] == ['network', 'agent', 'list']:
    print(*cloud['agents'], sep='\\n')
elif words[1] == 'list':
    print(*cloud['served'][words[words.index('--agent') + 1]], sep='\\n')
else:
    cloud['calls'] += 1
    agent, service = words[-2:]
    served = cloud['served'][agent]
    if words[2] == 'remove':
        served.remove(service)
    elif service not in cloud['refused']:
        served.append(service)
    with open(PATH, 'w') as file:
        json.dump(cloud, file)
"""


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
            '# 1: net 0, from one to two',
            f'openstack network agent remove network --dhcp -- {d1} {n0}',
            f'openstack network agent add network --dhcp -- {d2} {n0}',
            f'serves network {d2} {n0}',
            '# 2: r0, from one to two',
            f'openstack network agent remove router --l3 -- {r1} {r0}',
            f'openstack network agent add router --l3 -- {r2} {r0}',
            f'serves router {r2} {r0}'],
            self.plan('-f', 'commands').splitlines()[-12:-4])

    def test_commands_are_harmless(self):
        """Whatever others have named their routers, or written to a file."""
        evil = "x\nreboot; `reboot` $(reboot) '\u2028reboot"
        made = [dataclasses.replace(
            test_rebalance.service(f'r{number}'), name=f'{number}{evil}')
            for number in range(5)]
        self.save(network_services=tuple(made),
                  network_agents=agents('router', made, ()))
        text = self.plan('-f', 'commands')
        self.assertEqual(
            [['openstack', 'network', 'agent', verb, 'router', '--l3']
             for verb in ('remove', 'add')],
            [words[:6] for words in self.commands_in(text)])
        self.assertEqual(
            [9, 9], [len(words) for words in self.commands_in(text)])

    def commands_in(self, text):
        """What a shell would run to move something, word by word."""
        commands, words = [], []
        head, *rest = text.splitlines(keepends=True)
        self.assertEqual('set -eu\n', head)
        rest = rest[rest.index('# change nothing unless all is as planned\n'):]
        for word in shlex.split(''.join(rest), comments=True):
            if word in ('openstack', 'serves', 'usable'):
                words = []
                commands.append(words)
            words.append(word)
        return [words for words in commands if words[0] == 'openstack']

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
        made = [*test_rebalance.routers('h', 2, ha=True),
                test_rebalance.service('spread', distributed=True),
                *test_rebalance.routers('r', 6, physnets=frozenset({'x'}))]
        one, two = agents('router', made[:-1], made[-1:])
        lost = test_rebalance.agent('three', 'r0', alive=False)
        off = test_rebalance.agent('four', enabled=False)
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
        done = subprocess.run(
            ['sh'], input=self.plan('-f', 'commands'), text=True,
            capture_output=True, timeout=60)
        self.assertEqual(
            (3, '', 'three: cannot move r0 (one, two: no x)\n'
                    'one: cannot move r0, r1, r2, r3, r4 (two: no x)\n'),
            (done.returncode, done.stdout, done.stderr))

    def test_unknown_networks(self):
        """What a router needs is not known: it stays, and is named."""
        made = [*test_rebalance.routers('r', 6),
                *test_rebalance.routers('u', 2, physnets=None),
                test_rebalance.service('h', ha=True, physnets=None)]
        one, two = agents('router', made, ())
        off = test_rebalance.agent('three', 'u0', alive=False)
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


class ScriptTest(PlanTestCase):
    """The script in a shell, with a client that behaves like the real one."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.neutron = os.path.join(self.folder, 'neutron.json')
        with open(os.path.join(self.folder, 'openstack'), 'w') as stream:
            stream.write(f'#!{sys.executable}\nPATH = {self.neutron!r}\n'
                         + CLIENT)
        os.chmod(stream.name, 0o700)

    def run_script(self, agents=None, served=None, refused=()):
        """Run the script of CLOUD.

        :param agents: agent of the move's list -> its host and states
        :param served: agent -> what it serves
        :param refused: what no agent is given
        :returns: exit code, number of changes, and what the agents serve
        """
        cloud = snapshots.with_uuids(CLOUD)
        with open(self.neutron, 'w') as stream:
            json.dump({
                'calls': 0, 'refused': refused,
                'agents': [' '.join((id, state)) for id, state in {
                    **{agent.id: f'{agent.host} True True'
                       for agent in cloud.network_agents},
                    **(agents or {})}.items()],
                'served': {
                    **{agent.id: agent.serves
                       for agent in cloud.network_agents},
                    **(served or {})}}, stream)
        done = subprocess.run(
            ['sh'], input=self.plan('-f', 'commands'), text=True,
            capture_output=True, timeout=60,
            env={'PATH': f'{self.folder}:{os.environ["PATH"]}'})
        self.error = done.stderr
        with open(self.neutron) as stream:
            after = json.load(stream)
        return done.returncode, after['calls'], after['served']

    def test_all_moves(self):
        code, calls, served = self.run_script()
        self.assertEqual((0, 6, ''), (code, calls, self.error))
        self.assertEqual(
            {'dhcp-1': 4, 'dhcp-2': 1, 'router-1': 4, 'router-2': 2},
            {name: len(served[snapshots.id_of(name)]) for name in (
                'dhcp-1', 'dhcp-2', 'router-1', 'router-2')})

    def test_agent_is_not_as_planned(self):
        """Nothing is changed."""
        router = snapshots.id_of('router-2')
        for state in ('two False True', 'two True False', 'six True True'):
            code, calls, _served = self.run_script({router: state})
            self.assertEqual((1, 0), (code, calls))
            self.assertEqual(f'stopped: agent {router} on two is not there, '
                             'down or disabled\n', self.error)
        # The agents that are emptied may be down.
        code, _calls, _served = self.run_script({
            snapshots.id_of('router-1'): 'one False False'})
        self.assertEqual(0, code)

    def test_service_is_not_as_planned(self):
        """Nothing is changed."""
        router = snapshots.id_of('router-1')
        for served in ((), [snapshots.id_of('r0')]):
            code, calls, _served = self.run_script(served={router: served})
            self.assertEqual((1, 0), (code, calls))
        self.assertEqual(
            f'stopped: router {snapshots.id_of("r1")} is not on agent '
            f'{router}\n', self.error)

    def test_neutron_refuses(self):
        """Nothing else is moved."""
        network = snapshots.id_of('n0')
        code, calls, _served = self.run_script(refused=[network])
        self.assertEqual((1, 2), (code, calls))
        self.assertEqual(f'stopped: network {network} is not on agent '
                         f'{snapshots.id_of("dhcp-2")}\n', self.error)

    def test_client(self):
        """What python-openstackclient understands of what is asked."""
        text = self.plan('-f', 'commands').replace('\\\n', '')
        of_agents, of_agent = re.findall(r'\$\((openstack .*)\)', text)
        (_version, agents), (_version, routers), (_version, networks) = (
            test_rendering.parsed([of_agents, *[
                of_agent.replace('"$kind"', kind)
                for kind in ('router', 'network')]]))
        self.assertEqual(
            ('network agent list', 'value', ['ID', 'Host', 'Alive', 'State']),
            (agents.command, agents.formatter, agents.columns))
        self.assertEqual(
            ('router list', '$agent', 'value', ['ID']),
            (routers.command, routers.agent, routers.formatter,
             routers.columns))
        self.assertEqual(
            ('network list', '$agent', 'value', ['ID']),
            (networks.command, networks.agent_id, networks.formatter,
             networks.columns))
