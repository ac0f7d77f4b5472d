# SPDX-License-Identifier: Apache-2.0
"""Plans for DHCP servers and routers keep what they promise.

Over generated agents: a plan is replayed here with nothing but sets, and on
small clouds it is compared with all ways to put the services on agents.
"""

import collections
import dataclasses
import itertools

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.answers.rebalance import levelling
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

PHYSNETS = ('red', 'blue')


def agent(name, *serves, kind='router', physnets=PHYSNETS, **fields):
    return snapshot.NetworkAgent(
        id=snapshots.id_of(f'id-{name}'), kind=kind, host=name, serves=serves,
        physnets=frozenset(physnets), **fields)


def service(name, ports=1, kind='router', **fields):
    return snapshot.NetworkService(
        id=name, name=name, kind=kind, ports=ports, **fields)


def cloud(agents, services):
    return snapshot.Cloud(
        taken='2026-11-22T10:00:00Z', network_agents=tuple(agents),
        network_services=tuple(services))


def routers(letter, count, **fields):
    return [service(f'{letter}{number}', **fields) for number in range(count)]


def names(services):
    return [each.id for each in services]


def planned(agents, services, **options):
    """The only plan for a cloud, and the moves."""
    found = levelling.plans(cloud(agents, services), **options)
    plan, = found.plans
    return plan, found.moves


def steps(moves):
    return [(move.service_id, move.source, move.destination)
            for move in moves]


def ids(services):
    return [each.service_id for each in services]


class PlanTest(base.TestCase):

    def test_ports_tell_equals_apart(self):
        """By number; of the routers, what levels ports best."""
        made = routers('s', 5, ports=1) + [service('big', 8)]
        plan, moves = planned([agent('a', *names(made)), agent('b', 'x', 'y')],
                              [*made, service('x', 2), service('y', 2)])
        self.assertEqual([('big', 'a', 'b')], steps(moves))
        self.assertEqual([5, 12], [each.ports_after for each in plan.agents])
        # Of two that carry equally few, the one with fewer ports gets it.
        _plan, moves = planned([agent('a', *names(made)), agent('b', 'x'),
                                agent('c', 'y')],
                               [*made, service('x', 9), service('y', 2)])
        self.assertEqual('c', moves[0].destination)

    def test_nothing_helps(self):
        plan, moves = planned([agent('a', 'big'), agent('b')],
                              [service('big', 9)], by_ports=True)
        self.assertEqual((), moves)
        stay, = plan.stays
        self.assertEqual(('b: would be no more even', ['big']),
                         (stay.why, ids(stay.services)))

    def test_reasons(self):
        for needs, has, reason in (
                ({}, {'physnets': None},
                 'no agent says what the switch reaches'),
                ({'physnets': frozenset({'red', 'x'}),
                  'tunnels': frozenset({'gre'})},
                 {'tunnels': frozenset({'vxlan'})}, 'no x, gre tunnels'),
                ({'tunnels': frozenset({'gre'})}, {}, None),
                ({'zones': ('west',)}, {'zone': 'east'},
                 'in another availability zone'),
                ({'zones': ('west',)}, {'zone': 'west'}, None),
                ({}, {'external_only': True},
                 'takes only routers with a gateway'),
                ({'external': True}, {'external_only': True}, None)):
            made = routers('r', 5, **needs)
            source = agent('a', *names(made))
            target = dataclasses.replace(agent('b'), **has)
            self.assertEqual(reason, levelling.obstacle(made[0], target))
            plan, moves = planned([source, target], made)
            self.assertEqual([f'b: {reason}'] if reason else [],
                             [stay.why for stay in plan.stays])
            self.assertEqual(0 if reason else 1, len(moves))

    def test_what_fits_least_goes_first(self):
        """So that it finds room where room is limited."""
        tight = service('t', 1, physnets=frozenset({'blue'}))
        loose = [service('l1', 2), service('l2', 2)]
        services = [tight, *loose]
        _plan, moves = planned([
            agent('a', *names(services), alive=False),
            agent('b'), agent('c', physnets=('red',))], services,
            room={'b': 1, 'c': 9})
        self.assertEqual({'t': 'b', 'l1': 'c', 'l2': 'c'}, {
            move.service_id: move.destination for move in moves})

    def test_nowhere_to_go(self):
        plan, _moves = planned([agent('a', 'r0', 'r1', alive=False)],
                               routers('r', 2))
        stay, = plan.stays
        self.assertEqual(('no other agent is in use', 2),
                         (stay.why, len(stay.services)))
        self.assertEqual('0-0', str(plan.after))

    def test_networks_with_several_agents(self):
        """None gets a network that it has."""
        made = [service(f'n{number}', kind='dhcp') for number in range(6)]
        plan, _moves = planned([
            agent('a', *names(made), kind='dhcp', enabled=False),
            agent('b', *names(made), kind='dhcp')], made)
        self.assertEqual(['b: has it already'],
                         [stay.why for stay in plan.stays])

    def test_agents_of_distributed_routers(self):
        """They take no others, and do not count."""
        made = routers('r', 8)
        _plan, moves = planned([agent('a', *names(made), mode='dvr_snat'),
                                agent('b', mode='dvr'),
                                agent('c', mode='dvr_no_external'),
                                agent('d', mode='legacy')], made)
        self.assertEqual({'a', 'd'}, {
            host for _name, *hosts in steps(moves) for host in hosts})

    def test_room_on_the_switch(self):
        made = routers('r', 8, ports=3)
        agents = [agent('a', *names(made)), agent('b')]
        plan, moves = planned(agents, made, room={'b': 5, 'a': -9})
        self.assertEqual(1, len(moves))
        self.assertEqual(['b: no ports left on the virtual switch'],
                         [stay.why for stay in plan.stays])

    def test_room_is_shared(self):
        """A host may have agents of both kinds."""
        made = routers('r', 8)
        networks = [service(f'n{number}', kind='dhcp') for number in range(8)]
        found = levelling.plans(cloud([
            agent('a', *names(made)), agent('b'),
            agent('c', *names(networks), kind='dhcp'),
            dataclasses.replace(agent('b', kind='dhcp'), id='x')],
            made + networks), room={'b': 4})
        self.assertEqual([3, 1], [
            len(found.moves_of(plan)) for plan in found.plans])

    def test_unknown_services(self):
        """What was not read counts, and stays."""
        plan, moves = planned([agent('a', *'123456789'), agent('b')], ())
        self.assertEqual((9, ()), (plan.imbalance, moves))


@st.composite
def drawn(draw, most=12, agents=5, alike=False):
    """Agents and what they serve.

    :param most: services
    :param agents: at most
    :param alike: whether each agent can take everything
    """
    kind = draw(st.sampled_from(('dhcp', 'router')))
    some = st.sets(st.sampled_from(PHYSNETS))
    physnets = st.just(set(PHYSNETS)) if alike else st.none() | some
    services = [service(
        f's{number}', draw(st.integers(0, 5)), kind,
        physnets=frozenset(draw(some)),
        ha=not alike and kind == 'router' and draw(st.integers(0, 5)) == 0)
        for number in range(draw(st.integers(0, most)))]
    count = draw(st.integers(1, agents))
    serves = collections.defaultdict(list)
    for each in services:
        hosts = st.sets(st.integers(0, count - 1), min_size=1, max_size=2) if (
            kind == 'dhcp' and not alike) else st.sets(
                st.integers(0, count - 1), min_size=1, max_size=1)
        for host in draw(hosts):
            serves[host].append(each.id)
    made = []
    for number in range(count):
        reached = draw(physnets)
        made.append(snapshot.NetworkAgent(
            id=f'a{number}', kind=kind, host=f'h{number}',
            alive=draw(st.integers(0, 4)) > 0,
            enabled=draw(st.integers(0, 7)) > 0,
            physnets=None if reached is None else frozenset(reached),
            serves=tuple(serves[number])))
    return made, services


def homes(agents, services):
    """The numbers of agents in use, and of that of each service."""
    return {number for number, each in enumerate(agents)
            if each.alive and each.enabled}, [
        next(number for number, each in enumerate(agents)
             if one.id in each.serves) for one in services]


class PropertiesTest(base.TestCase):

    def weight(self, plan, service):
        return service.ports if plan.levels == 'ports' else 1

    def replayed(self, plan, moves, agents, known):
        has = {each.id: set(each.serves) for each in agents}
        of_id = {each.id: each for each in agents}
        gone = set()

        def load(uuid):
            return sum(self.weight(plan, known[name]) for name in has[uuid])

        def is_used(each):
            return each.alive and each.enabled

        for move in moves:
            name, source, target = (
                move.service_id, move.source_agent_id,
                move.destination_agent_id)
            self.assertIn(name, has[source])
            self.assertNotIn(name, has[target])
            self.assertTrue(is_used(of_id[target]))
            self.assertFalse(known[name].ha)
            self.assertLessEqual(known[name].physnets, of_id[target].physnets)
            # Neither passed on nor given back.
            self.assertNotIn((name, source), gone)
            self.assertNotIn((name, target), gone)
            gone |= {(name, source), (name, target)}
            gap = load(source) - load(target)
            if is_used(of_id[source]):
                self.assertGreater(gap, plan.threshold)
                self.assertIn(self.weight(plan, known[name]), range(1, gap))
            has[source].remove(name)
            has[target].add(name)
            loads = [load(each.id) for each in agents if is_used(each)]
            self.assertEqual((max(loads), min(loads)),
                             (move.after.most, move.after.fewest))
        return has

    @hypothesis.settings(max_examples=200, deadline=None)
    @hypothesis.given(drawn(), st.integers(1, 4), st.booleans())
    def test_any(self, found, threshold, by_ports):
        agents, services = found
        known = {each.id: each for each in services}
        plan, moves = planned(agents, services, threshold=threshold,
                              by_ports=by_ports)
        has = self.replayed(plan, moves, agents, known)
        # Nothing is lost, nothing is new.
        self.assertEqual(
            collections.Counter(
                name for each in agents for name in each.serves),
            collections.Counter(name for mine in has.values()
                                for name in mine))
        self.assertEqual(
            {name: (len(mine), sum(known[each].ports for each in mine))
             for name, mine in has.items()},
            {each.agent_id: (each.services_after, each.ports_after)
             for each in plan.agents})
        used = [each for each in agents if each.alive and each.enabled]
        self.assertDone(plan, moves, agents, used, has, known)
        if len(used) == len(agents):
            # Never worse, by what is levelled.
            self.assertLessEqual(plan.after.most, plan.before.most)
            self.assertGreaterEqual(plan.after.fewest, plan.before.fewest)
        # The same again.
        self.assertEqual((plan, moves), planned(
            agents, reversed(services), threshold=threshold,
            by_ports=by_ports))

    def assertDone(self, plan, moves, agents, used, has, known):
        """Assert that no further move is due, or that it is told why."""
        moved = {(move.service_id, each) for move in moves
                 for each in (move.source_agent_id, move.destination_agent_id)}
        told = {(stay.agent_id, each.service_id) for stay in plan.stays
                for each in stay.services}

        def weight(name):
            return self.weight(plan, known[name])

        def measure(each):
            return sum(map(weight, has[each.id]))

        for source in agents:
            for name in has[source.id]:
                if known[name].ha or (name, source.id) in moved:
                    continue
                due = [target for target in used if target != source and (
                    source not in used or measure(source) - measure(target)
                    > plan.threshold)]
                for target in due:
                    self.assertFalse(
                        target.physnets is not None
                        and known[name].physnets <= target.physnets
                        and name not in has[target.id]
                        and (name, target.id) not in moved
                        and (source not in used or 0 < weight(name) < (
                            measure(source) - measure(target))),
                        f'{name} could go from {source} to {target}')
                if due or source not in used:
                    self.assertIn((source.id, name), told)

    @hypothesis.settings(max_examples=150, deadline=None)
    @hypothesis.given(drawn(6, 4, alike=True), st.integers(1, 3))
    def test_fewest_moves(self, found, threshold):
        """Where each agent can take everything."""
        agents, services = found
        used, home = homes(agents, services)
        _plan, moves = planned(agents, services, threshold=threshold)
        if not used:
            self.assertEqual((), moves)
            return
        fewest = min(
            sum(one != other for one, other in zip(places, home))
            for places in itertools.product(used, repeat=len(services))
            if self.spread(places, used) <= threshold)
        self.assertEqual(fewest, len(moves))

    def spread(self, places, used):
        count = collections.Counter(places)
        return (max(count[each] for each in used)
                - min(count[each] for each in used))

    @hypothesis.settings(max_examples=150, deadline=None)
    @hypothesis.given(drawn(6, 4), st.integers(1, 3))
    def test_as_even_takes_as_many_moves(self, found, threshold):
        """Where some can take only some: no fewer moves are as even."""
        agents, services = found
        services = [each for each in services if not each.ha and sum(
            each.id in one.serves for one in agents) == 1]
        kept = set(names(services))
        agents = [dataclasses.replace(each, serves=tuple(
            name for name in each.serves if name in kept))
            for each in agents]
        used, home = homes(agents, services)
        able = [[number for number, each in enumerate(agents)
                 if number == home[index] or number in used
                 and each.physnets is not None
                 and one.physnets <= each.physnets]
                for index, one in enumerate(services)]
        plan, moves = planned(agents, services, threshold=threshold)
        even = sum(each.services_after ** 2 for each in plan.agents
                   if each.in_use)
        left = sum(each.services_after for each in plan.agents
                   if not each.in_use)
        for places in itertools.product(*able):
            fewer = sum(one != other for one, other in zip(places, home))
            if fewer >= len(moves):
                continue
            count = collections.Counter(places)
            self.assertFalse(
                sum(number for each, number in count.items()
                    if each not in used) <= left
                and sum(number ** 2 for each, number in count.items()
                        if each in used) <= even,
                f'{places} with {fewer} moves')
