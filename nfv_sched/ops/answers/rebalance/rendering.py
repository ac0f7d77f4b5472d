# SPDX-License-Identifier: Apache-2.0
"""Render plans for DHCP servers and routers as text, rows and commands."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import shlex

from nfv_sched.base import strings
from nfv_sched.ops.answers.rebalance import document as rebalance_document
from nfv_sched.ops.answers.rebalance import freed_capacity
from nfv_sched.ops.answers.rebalance import levelling
from nfv_sched.ops.cloud import snapshot

#: Columns of :func:`rows`.
COLUMNS = ('Move', 'Kind', 'What', 'From', 'To', 'Ports', 'After')
#: Columns of :func:`records`.
RECORD_COLUMNS = (*COLUMNS[:-1], 'ID', 'From agent', 'To agent', 'Most after',
                  'Fewest after')

_NOUNS = {snapshot.DHCP: 'DHCP servers', snapshot.ROUTER: 'Routers',
          snapshot.OVN: 'Routers at gateways of ML2/OVN'}
#: Words of the client's commands for the services of an agent, by kind.
_SERVED = {snapshot.DHCP: ('network', '--dhcp'),
           snapshot.ROUTER: ('router', '--l3')}


def rows(plans: Iterable[levelling.RebalancePlan]) -> list[tuple]:
    """Return the moves as rows of a table, numbered throughout."""
    return [(number, move.service.kind, name_of(move.service),
             move.source.host, move.target.host, move.service.ports,
             f'{move.most}-{move.fewest}')
            for number, move in _enumerate(plans)]


def _enumerate(plans: Iterable[levelling.RebalancePlan],
               ) -> Iterator[tuple[int, levelling.ServiceMove]]:
    return enumerate((move for plan in plans for move in plan.moves), 1)


def name_of(service: snapshot.NetworkService) -> str:
    """Return the name of a network or router for people, in one line."""
    return ' '.join(service.name.split()) or service.id


def commands(plans: Iterable[levelling.RebalancePlan]) -> Iterator[str]:
    """Yield the commands that make the moves, in order, two for each."""
    for plan in plans:
        for move in plan.moves:
            yield from _of_move(move)


def _of_move(move: levelling.ServiceMove) -> list[str]:
    served = _SERVED[move.service.kind]
    return [shlex.join(('openstack', 'network', 'agent', verb, *served, '--',
                        agent.id, move.service.id))
            for verb, agent in (('remove', move.source),
                                ('add', move.target))]


def _word(text: str) -> str:
    return ' '.join(text.split())


def summary(plans: Sequence[levelling.RebalancePlan],
            gain: freed_capacity.Gain) -> list[str]:
    """Describe the plans, a sentence each.

    :param gain: the change of capacity by the moves
    """
    sentences = []
    for plan in plans:
        sentences += _of_plan(plan)
    sentences += _of_gain(gain)
    return sentences


def _of_plan(plan: levelling.RebalancePlan) -> Iterator[str]:
    """Describe a plan, a sentence each."""
    agents = [load for load in plan.before if levelling.in_use(load.agent)]
    before, after = (
        '{}-{}{}'.format(*plan.spread(loads), ' ports' * plan.by_ports)
        for loads in (plan.before, plan.after))
    head = (f'{_NOUNS[plan.kind]} on {strings.count(len(agents), "agent")}: '
            f'{before}')
    if plan.kind == snapshot.OVN:
        yield f'{head}; OVN itself places them.'
    elif plan.moves:
        yield f'{head} -> {after} in {strings.count(len(plan.moves), "move")}.'
    else:
        yield f'{head}; nothing {"can be moved" if plan.stays else "to move"}.'
    for load, later in zip(plan.before, plan.after):
        if not levelling.in_use(load.agent) and load.number:
            yield (f'{_word(load.agent.host)}: the agent is '
                   f'{_state(load.agent)}; {load.number} -> {later.number}.')
    for stay in plan.stays:
        yield f'{_of_stay(stay)}.'
    for what, why, services in (
            ('HA router', '', [each for each in plan.left_out if each.ha]),
            ('distributed router', '', [
                each for each in plan.left_out
                if each.distributed and not each.ha]),
            ('router', ' whose networks are not known',
             of_unknown_networks([plan]))):
        if services:
            yield (f'Left out: {strings.count(len(services), what)}{why} '
                   f'({strings.some(map(name_of, services))}).')


def _of_stay(stay: levelling.Stay) -> str:
    return (f'{_word(stay.agent.host)}: cannot move '
            f'{strings.some(map(name_of, stay.services))} '
            f'({_word(stay.reason)})')


def of_unknown_networks(plans: Iterable[levelling.RebalancePlan],
                        ) -> list[snapshot.NetworkService]:
    """Return the routers left out only because networks are unknown."""
    return [each for plan in plans for each in plan.left_out
            if not (each.ha or each.distributed)]


def _state(agent: snapshot.NetworkAgent) -> str:
    if not agent.alive:
        return 'down'
    return f'of mode {_word(agent.mode)}' if agent.enabled else 'disabled'


def _of_gain(gain: freed_capacity.Gain) -> Iterator[str]:
    for verb, sign in (('Frees', 1), ('Takes', -1)):
        hosts = [f'{_word(host)} {sign * count}'
                 for host, count in gain.ports.items() if count * sign > 0]
        if hosts:
            yield f'{verb} ports of virtual switches: {strings.some(hosts)}.'
    for flavor, count in sorted(gain.guests.items()):
        yield (f'{_word(flavor)}: {strings.count(abs(count), "server")} '
               f'{"more" if count > 0 else "fewer"} will fit.')


def records(plans: Sequence[levelling.RebalancePlan]) -> list[tuple]:
    """Return the moves as rows for programs."""
    return [(*row[:-1], move.service.id, move.source.id, move.target.id,
             move.most, move.fewest)
            for row, (_number, move) in zip(rows(plans), _enumerate(plans))]


def document(plans: Sequence[levelling.RebalancePlan],
             gain: freed_capacity.Gain) -> rebalance_document.Rebalance:
    """Return the document of plans, with the capacity that they gain."""
    return rebalance_document.rebalanced(
        [(number, move, _of_move(move)) for number, move in _enumerate(plans)],
        plans, gain)
