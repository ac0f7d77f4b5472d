# SPDX-License-Identifier: Apache-2.0
"""Plan migrations that empty hosts, or spread servers over NUMA nodes."""

from collections.abc import Callable, Collection
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
        positions = arrangements.Positions(cloud, state, options=options)
        purpose, value = goal(positions, options)
        search = move_search.MoveSearch(
            positions, purpose, value, options.max_moves,
            forbidden=set(failed), update=update, seconds=seconds)
        moves, exact, reasons, after = search.tried(
            lambda moves: trial.run(cloud, positions, moves))
        *_before, last = search.states(moves)
        unread = gap.of_cloud(cloud)
        sign = -1 if options.spread else 1
        stranded = None
        if after is not None and not options.spread:
            update(0, None, 'losses of hosts')
            # With empty hosts off.
            part = trial.part(after, {each.host for each in after.servers})
            analysis = failover.FailoverAnalysis(part, start.restored(part))
            stranded = max([len(each.stranded) for host in part.hosts
                            for each in analysis.losses([host.name])])
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
    if not options.spread:
        return _empty(positions, options.hosts)
    return _even(positions, options.points)


def options_again(plan: document.Rearrangement,
                  cloud: snapshot.Cloud) -> document.RearrangeOptions:
    options = plan.options
    if options.hosts is None:
        return options
    names = {host.name for host in cloud.hosts}
    empty = len(names.difference(server.host for server in cloud.servers))
    return dataclasses.replace(
        options, hosts=max(0, plan.before + options.hosts - empty))


def _empty(positions: arrangements.Positions, hosts: int | None) -> Goal:
    """Return the goal of hosts without servers, and how many there are."""
    on_host = positions.on_host
    counts = move_search.HostCounts(
        {name: int(not uuids) for name, uuids in on_host.items()},
        lambda position: int(not position.came and len(position.left) == len(
            on_host[position.host.name])))
    return program.EmptyHosts(
        on_host, len(on_host) if hosts is None
        else counts.total(arrangements.AS_IS) + hosts), counts.total


def _even(positions: arrangements.Positions, points: int | None) -> Goal:
    """Return the goal of even NUMA nodes, and by how many CPUs they are not.

    The figure is negative.

    :param points: percentage points that a node may differ; None for the
        CPUs that half of the servers do not exceed on a node
    """
    cells = {name: _cells(positions.position(name))
             for name in positions.hosts
             if positions.of_name[name].enabled and positions.of_name[name].up
             and name not in positions.closed}
    every = [each for of_host in cells.values() for each in of_host.values()]
    share = sum([used for used, _total in every]) / max(
        1, sum([total for _used, total in every]))
    size = statistics.median_low([
        len(share.cpus) for name in positions.hosts
        for uuid in positions.on_host[name]
        for share in positions.shares(positions.position(name), uuid)
        if share.cpus] or [0])
    bounds = {}
    for name, of_host in cells.items():
        for number, (used, total) in of_host.items():
            # The nearest whole number of CPUs is even in any case.
            nearest = math.floor(share * total + .5)
            more = size if points is None else points / 100 * total
            bounds[name, number] = (
                used, min(nearest, math.ceil(share * total - more)),
                max(nearest, math.floor(share * total + more)))

    def uneven(position: arrangements.Position) -> int:
        return -sum([
            max(0, least - used, used - most)
            for number, (used, _total) in _cells(position).items()
            for _now, least, most in [bounds[position.host.name, number]]]
            if position.host.name in cells else [])

    return program.EvenNodes(bounds), move_search.HostCounts(
        {name: uneven(positions.position(name)) for name in positions.hosts},
        uneven).total


def _cells(position: arrangements.Position) -> dict[int, tuple[int, int]]:
    """Return CPUs for pinned servers of NUMA cells: in use, and all."""
    host = position.room.host
    return {number: (cell.dedicated - len(cell.free_cpus), cell.dedicated)
            for number, cell in enumerate(host.cells if host else ())
            if cell.dedicated}
