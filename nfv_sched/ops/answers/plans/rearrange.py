# SPDX-License-Identifier: Apache-2.0
"""Plan migrations that empty hosts, or spread servers over NUMA nodes."""

from collections.abc import Callable, Collection, Mapping
import dataclasses
import math
import statistics

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import failover
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import move_search
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import program
from nfv_sched.ops.model import trial
from nfv_sched.ops.simulator import start

Goal = tuple[program.MoveGoal, Callable[[arrangements.Arrangement], int]]


def plan(cloud: snapshot.Cloud, options: document.RearrangeOptions, *,
         failed: Collection[tuple[str, str]] = (),
         seconds: float = move_search.SECONDS,
         update: move_search.Update = lambda done, total,
         what: None) -> document.Rearrangement:
    """Plan the best migrations, and of these the fewest.

    Those that spread servers copy little memory.  For parameters and errors
    see :func:`defrag.plan`.
    """
    with start.started(cloud) as state:
        positions = arrangements.Positions(
            cloud, state, cold_for_vfs=options.cold_for_vfs)
        purpose, value = goal(positions, options)
        search = move_search.MoveSearch(
            positions, purpose, value, options.max_moves,
            **move_search.avoided(positions, options.avoid),
            forbidden=set(failed), update=update, seconds=seconds)
        moves, exact, reasons = search.tried(
            lambda moves: trial.run(cloud, positions, moves)[1])
        *_before, last = search.states(moves)
        unread = gap.of_cloud(cloud)
        sign = -1 if options.spread else 1
        stranded = None
        if moves and not options.spread:
            update(0, None, 'losses of hosts')
            stranded = _stranded(trial.run(cloud, positions, moves)[0])
        return document.Rearrangement(
            stranded=stranded,
            before=sign * search.before, after=sign * value(last),
            bound=None if unread or search.bound is None
            else sign * search.bound,
            moves=tuple([search.row(number, move)
                         for number, move in enumerate(moves, 1)]),
            not_movable=search.fixed_servers(), failed=reasons,
            exact=exact and not unread, options=options, unread=unread)


def goal(positions: arrangements.Positions, options: document.RearrangeOptions,
         ) -> Goal:
    """Return what servers are moved for, and its value of an arrangement."""
    avoided = move_search.avoided(positions, options.avoid)
    if options.spread:
        return _even(positions, avoided['closed'], options.points)
    return _empty(positions, avoided, options.hosts)


def options_again(plan: document.Rearrangement,
                  cloud: snapshot.Cloud) -> document.RearrangeOptions:
    """Return the options for what is left of a plan.

    :param cloud: the cloud after some of its moves
    """
    options = plan.options
    if options.hosts is None:
        return options
    names = {host.name for host in cloud.hosts}
    empty = len(names.difference(server.host for server in cloud.servers))
    return dataclasses.replace(
        options, hosts=max(0, plan.before + options.hosts - empty))


def _stranded(cloud: snapshot.Cloud) -> int:
    """Return how many servers the loss of a host strands at most.

    Hosts without servers count as switched off.
    """
    part = trial.part(cloud, {server.host for server in cloud.servers})
    analysis = failover.FailoverAnalysis(part, start.restored(part))
    return max([len(each.stranded) for host in part.hosts
                for each in analysis.losses([host.name])])


def _empty(positions: arrangements.Positions,
           avoided: Mapping[str, Collection[str]],
           hosts: int | None) -> Goal:
    """Return the goal of hosts without servers, and how many there are."""
    now = sum(not uuids for uuids in positions.on_host.values())
    most = len(positions.hosts) if hosts is None else now + hosts
    fixed = {uuid for uuid in positions.servers
             if uuid in avoided['fixed'] or positions.why_not(
                 positions.kind(uuid), uuid) is not None}
    for name in avoided['closed']:
        fixed.update(positions.on_host[name])

    def value(arrangement: arrangements.Arrangement) -> int:
        used = {host for uuid, server in positions.servers.items()
                if (host := arrangement.where.get(uuid, server.host))}
        return sum(name not in used for name in positions.hosts)

    return program.EmptyHosts(positions, fixed, most), value


def _even(positions: arrangements.Positions, closed: Collection[str],
          points: int | None) -> Goal:
    """Return the goal of even NUMA nodes, and by how many CPUs they are not.

    The figure is negative.

    :param points: percentage points that a node may differ; None for the
        CPUs that half of the servers do not exceed on a node
    """
    totals: dict[tuple[str, int], int] = {}
    for name in positions.hosts:
        of, host = positions.of_name[name], positions.position(name).room.host
        if of.enabled and of.up and host is not None and name not in closed:
            for number, cell in enumerate(host.cells):
                if cell.dedicated:
                    totals[name, number] = cell.dedicated

    def used(arrangement: arrangements.Arrangement, name: str,
             number: int) -> int:
        cell = positions.position(name, arrangement).room.host.cells[number]
        return totals[name, number] - len(cell.free_cpus)

    now = {key: used(arrangements.AS_IS, *key) for key in totals}
    share = sum(now.values()) / max(1, sum(totals.values()))
    size = statistics.median_low([
        len(share.cpus) for name in positions.hosts
        for uuid in positions.on_host[name]
        for share in positions.shares(positions.position(name), uuid)
        if share.cpus] or [0])
    bounds = {}
    for key, total in totals.items():
        # The nearest whole number of CPUs is even in any case.
        nearest = math.floor(share * total + .5)
        more = size if points is None else points / 100 * total
        bounds[key] = (
            now[key], min(nearest, math.ceil(share * total - more)),
            max(nearest, math.floor(share * total + more)))

    def value(arrangement: arrangements.Arrangement) -> int:
        return -sum(max(0, least - cpus, cpus - most)
                    for key, (_now, least, most) in bounds.items()
                    for cpus in [used(arrangement, *key)])

    return program.EvenNodes(bounds), value
