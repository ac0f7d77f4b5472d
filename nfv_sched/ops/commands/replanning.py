# SPDX-License-Identifier: Apache-2.0
"""Make a plan anew that was not carried out to its end."""

import argparse
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import types
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.rebalance import document as rebalance_document
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import source
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import progress

_Update = Callable[..., None]
# UUID of a server, and a destination to which it is not moved again -> why.
_NONE_FAILED: Mapping[tuple[str, str], str] = types.MappingProxyType({})


def plan_again(
    plan: ty.Any, cloud: snapshot.Cloud,
    failed: Mapping[tuple[str, str], str] = _NONE_FAILED,
    round_number: int = 0, finished: Collection[int] = (),
) -> documents.Document:
    """Return a new plan with the aim of another, which the cloud allows.

    :param failed: UUID and destination of each move not to be made -> why
    :param round_number: of a plan of several hosts: the round that was not
        carried out to its end; that and later ones are planned anew
    :param finished: numbers of the moves of the round that were made
    """
    with progress.shown() as update:
        match plan:
            case document.RollingDrain():
                return documents.Document(
                    _roll_again(plan, cloud, failed, round_number, finished,
                                update), ('rounds', 'not_emptied'))
            case document.Drain():
                return documents.Document(
                    _drain_again(plan, cloud, failed, update), ('servers',))
            case document.Defrag():
                return documents.Document(
                    _defrag_again(plan, cloud, failed, update), ('moves',))
        return documents.Document(_rebalance_again(plan, cloud, update),
                                  ('moves',))


def _drain_again(plan: document.Drain, cloud: snapshot.Cloud,
                 failed: Mapping[tuple[str, str], str],
                 update: _Update) -> document.Drain:
    # Importing Nova takes seconds.
    from nfv_sched.ops.answers.plans import drain
    host = source.host_name([host.name for host in cloud.hosts], plan.host)
    # Servers that have already left the host need no further move.
    uuids = None if plan.others is None else set(plan_file.to_leave(plan))
    return drain.plan(cloud, host, plan.options, uuids=uuids, failed=failed,
                      update=update)


def _roll_again(plan: document.RollingDrain, cloud: snapshot.Cloud,
                failed: Mapping[tuple[str, str], str], round_number: int,
                finished: Collection[int],
                update: _Update) -> document.RollingDrain:
    # Importing Nova takes seconds.
    from nfv_sched.ops.answers.plans import rolling
    hosts = {host.name: host for host in reversed(cloud.hosts)}
    this, *later = plan_file.rounds_from(plan, round_number)
    later_plans = (
        *(each for of_round in later for each in of_round.hosts),
        *plan.not_emptied)
    names = [each.host for each in (
        *(each for each in this.hosts
          if not _is_back(each, hosts.get(each.host), finished)),
        *later_plans) if each.host in hosts]
    options = (*this.hosts, *later_plans)[0].options
    begun = [name for name in (*(each.host for each in this.hosts),
                               *this.given_up)
             if name in names and not hosts[name].enabled
             and (finished or hosts[name].disabled_reason == values.REASON)]
    before = [name for name in this.enabled if name in hosts
              and hosts[name].enabled and hosts[name].up]
    result = rolling.plan(
        cloud, list(dict.fromkeys(names)), options, at_once=plan.at_once,
        begun=begun, first_round=round_number, before=before, failed=failed,
        update=update)
    first, *next_rounds = result.rounds or (document.DrainRound(
        round=round_number, enabled=tuple(before), hosts=()),)
    emptied = {each.host for each in first.hosts}
    return dataclasses.replace(result, rounds=(dataclasses.replace(
        first, given_up=tuple([
            name for name in begun if name not in emptied])), *next_rounds))


def _is_back(plan: document.Drain, host: snapshot.Host | None,
             finished: Collection[int]) -> bool:
    """Return whether a host was emptied, and has been enabled again."""
    # Moves begin when all hosts of the round are disabled.
    numbers = [each.move for each in plan.servers if each.move is not None]
    return bool(finished and host is not None and host.enabled
                and all(number in finished for number in numbers))


def _defrag_again(plan: document.Defrag, cloud: snapshot.Cloud,
                  failed: Mapping[tuple[str, str], str],
                  update: _Update) -> document.Defrag:
    from nfv_sched.ops.answers.plans import defrag
    from nfv_sched.ops.simulator import servers
    options = plan.options
    flavor = source.flavor(cloud, plan.flavor)
    ports = source.ports(cloud, argparse.Namespace(
        networks=options.networks, like=options.like, ports=options.ports))
    try:
        return defrag.plan(cloud, flavor, plan.wanted, options, ports=ports,
                           failed=failed, update=update)
    except servers.Refused as exc:
        raise source.UsageError(f'flavor {flavor.name}: {exc}') from exc


def _rebalance_again(
    plan: rebalance_document.Rebalance, cloud: snapshot.Cloud,
    update: _Update,
) -> rebalance_document.Rebalance:
    from nfv_sched.ops.answers.hosts import view
    from nfv_sched.ops.answers.rebalance import freed_capacity
    from nfv_sched.ops.answers.rebalance import levelling
    if cloud.network_agents is None:
        raise source.CloudUnreadError('the agents of Neutron are not known')
    again = levelling.plans(
        cloud, plan_file.kinds(plan),
        threshold=plan.plans[0].threshold if plan.plans
        else levelling.THRESHOLD,
        by_ports=any(each.levels == 'ports' for each in plan.plans),
        room=view.free_ports(cloud))
    return freed_capacity.with_gain(
        cloud, again, lambda done, total: update(done, total, 'flavors'))
