# SPDX-License-Identifier: Apache-2.0
"""Render plans for DHCP servers and routers as text, and name columns."""

from collections.abc import Iterator
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.rebalance import document
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot

_NOUNS = {snapshot.DHCP: 'DHCP servers', snapshot.ROUTER: 'Routers',
          snapshot.OVN: 'Routers at gateways of ML2/OVN'}


def name_of(service: document.AgentMove | document.ServedThing) -> str:
    return _word(service.service or '') or service.service_id


def _word(text: str) -> str:
    return ' '.join(text.split())


COLUMNS = (
    tables.Column('Move', 'move'), tables.Column('Kind', 'kind'),
    tables.Column('What', name_of), tables.Column('From', 'source'),
    tables.Column('To', 'destination'), tables.Column('Ports', 'ports'),
    tables.Column('After', None, lambda move: str(move.after)),
    *(tables.Column(title, value, is_detail=True) for title, value in (
        ('ID', 'service_id'), ('From agent', 'source_agent_id'),
        ('To agent', 'destination_agent_id'), ('Most after', 'after.most'),
        ('Fewest after', 'after.fewest'))))


def summary(plan: document.Rebalance, cloud: snapshot.Cloud) -> list[str]:
    agents = {agent.id: agent for agent in cloud.network_agents or ()}
    return [*(sentence for each in plan.plans for sentence in _of_plan(
        each, len(plan.moves_of(each)), agents)), *_of_gain(plan)]


def _of_plan(plan: document.AgentPlan, moves: int,
             agents: ty.Mapping[str, snapshot.NetworkAgent]) -> Iterator[str]:
    in_use = sum(each.in_use for each in plan.agents)
    unit = ' ports' * (plan.levels == 'ports')
    head = (f'{_NOUNS[plan.kind]} on {strings.count(in_use, "agent")}: '
            f'{plan.before}{unit}')
    if plan.kind == snapshot.OVN:
        yield f'{head}; OVN itself places them.'
    elif moves:
        yield (f'{head} -> {plan.after}{unit} in '
               f'{strings.count(moves, "move")}.')
    else:
        yield f'{head}; nothing {"can be moved" if plan.stays else "to move"}.'
    for each in plan.agents:
        if not each.in_use and each.services:
            yield (f'{_word(each.host)}: the agent is '
                   f'{_state(agents[each.agent_id])}; {each.services} -> '
                   f'{each.services_after}.')
    for stay in plan.stays:
        yield (f'{_word(stay.host)}: cannot move '
               f'{strings.some(map(name_of, stay.services))} '
               f'({_word(stay.why)}).')
    for what, why, services in (
            ('HA router', '', [each for each in plan.left_out if each.ha]),
            ('distributed router', '', [
                each for each in plan.left_out
                if each.distributed and not each.ha]),
            ('router', ' whose networks are not known', [
                each for each in plan.left_out if each.lacks_networks])):
        if services:
            yield (f'Left out: {strings.count(len(services), what)}{why} '
                   f'({strings.some(map(name_of, services))}).')


def _state(agent: snapshot.NetworkAgent) -> str:
    if not agent.alive:
        return 'down'
    return f'of mode {_word(agent.mode)}' if agent.enabled else 'disabled'


def _of_gain(plan: document.Rebalance) -> Iterator[str]:
    for verb, sign in (('Frees', 1), ('Takes', -1)):
        hosts = [f'{_word(each.host)} {sign * each.ports}'
                 for each in plan.freed_ports if each.ports * sign > 0]
        if hosts:
            yield f'{verb} ports of virtual switches: {strings.some(hosts)}.'
    for each in sorted(plan.gained_servers, key=lambda each: each.flavor):
        yield (f'{_word(each.flavor)}: '
               f'{strings.count(abs(each.servers), "server")} '
               f'{"more" if each.servers > 0 else "fewer"} will fit.')
