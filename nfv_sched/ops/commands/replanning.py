# SPDX-License-Identifier: Apache-2.0
"""Make a plan, or make it anew if it was not carried out to its end."""

from collections.abc import Collection
import dataclasses
import typing as ty

from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import move_search
from nfv_sched.ops.answers.plans import rearrange
from nfv_sched.ops.answers.plans import rolling
from nfv_sched.ops.answers.rebalance import freed_capacity
from nfv_sched.ops.answers.rebalance import levelling
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import progress
from nfv_sched.ops.simulator import servers


def plan_again(plan: ty.Any, cloud: snapshot.Cloud,
               failed: drain.Failed = drain.NONE_FAILED, round_number: int = 0,
               finished: Collection[int] = ()) -> documents.Document:
    """Return a new plan with the aim of another, which the cloud allows.

    :param failed: moves not to be made
    :param round_number: of a plan of several hosts: the round that was not
        carried out to its end; that and later ones are planned anew
    :param finished: numbers of the moves of the round that were made
    """
    with progress.shown() as update:
        match plan:
            case document.RollingDrain():
                again = _roll_again(
                    plan, cloud, failed, round_number, finished, update)
            case document.Drain():
                # Servers that have already left the host need no further move.
                again = drain.plan(
                    cloud, arguments.host_name(
                        [host.name for host in cloud.hosts], plan.host),
                    plan.options, failed=failed, update=update,
                    uuids=None if plan.others is None else set(
                        plan_file.to_leave(plan)))
            case document.Evacuation():
                hosts = {host.name: host for host in reversed(cloud.hosts)}
                lost = [host for host in plan.hosts if not hosts[
                    arguments.host_name(list(hosts), host)].up]
                if not lost:
                    raise errors.CloudUnreadError(
                        'no host of the plan is down any more')
                again = drain.evacuate(
                    cloud, lost, relax=plan.relax, avoid=plan.avoid,
                    failed=failed, update=update)
            case document.Defrag(options=options):
                again = plan_defrag(cloud, plan.flavor, plan.wanted, options,
                                    update, failed)
            case document.Rearrangement():
                again = rearrange.plan(
                    cloud, rearrange.options_again(plan, cloud),
                    failed=failed, update=update)
            case _:
                if cloud.network_agents is None:
                    raise errors.CloudUnreadError(
                        'the agents of Neutron are not known')
                again = freed_capacity.with_gain(
                    cloud, levelling.plans(
                        cloud, plan_file.kinds(plan),
                        threshold=plan.plans[0].threshold if plan.plans
                        else levelling.THRESHOLD, by_ports=any(
                            each.levels == 'ports' for each in plan.plans),
                        room=view.free_ports(cloud)),
                    lambda done, total: update(done, total, 'flavors'))
    if estimates := document.estimates_of(plan):
        again = document.with_time(
            again, estimates[0].mib_per_second, estimates[0].parallel)
    return plan_file.document_of(again)


def plan_defrag(cloud: snapshot.Cloud, flavor_name: str, count: int,
                options: document.DefragOptions, update: ty.Any,
                failed: drain.Failed = drain.NONE_FAILED,
                seconds: float = move_search.SECONDS) -> document.Defrag:
    """Plan moves for a flavor; raise UsageError if Nova refuses it."""
    flavor = arguments.flavor(cloud, flavor_name)
    try:
        return defrag.plan(
            cloud, flavor, count, options, failed=failed, update=update,
            seconds=seconds, ports=arguments.ports(cloud, options))
    except servers.Refused as exc:
        raise errors.UsageError(f'flavor {flavor.name}: {exc}') from exc


def _roll_again(plan: document.RollingDrain, cloud: snapshot.Cloud,
                failed: drain.Failed, round_number: int,
                finished: Collection[int],
                update: drain.Update) -> document.RollingDrain:
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
