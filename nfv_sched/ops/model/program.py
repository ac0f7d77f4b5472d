# SPDX-License-Identifier: Apache-2.0
"""State which servers may be where as an integer program, and solve it.

Servers that are alike are one class.  An option of a class is a host, and the
NUMA cells there.  The unknowns are how many servers of a class arrive at an
option, and how many of those that are there leave it.  What a host cell, or a
host in Placement, has of a resource bounds what is there in the end, and so do
its devices.  A goal adds unknowns of its own.

Nova's rules allow no more than the program does, so its bound holds for them.
What it proposes has to be tried.
"""

import collections
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from collections.abc import Sequence
import dataclasses
import itertools
import math
import time
import typing as ty

from nfv_sched.fit import decide
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import topology
from nfv_sched.fit import occupancy
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model.counting import host_count
from nfv_sched.ops.simulator import servers

#: Cost of all moves, where a new server is worth 1.
_COST = 0.4
_EPSILON = 1e-4
#: Highest number of ways to put a server on the NUMA cells of a host; where
#: there are more, none is an option, and there is no bound.
_PERMUTATIONS = 50_000
_CPUS = 'CPUs'
_ANTI_AFFINITY = 'anti-affinity'

#: (position of the host cell, or None for the host; _CPUS, page size in KiB,
#: resource class, specs of a PCI request, or UUID of an anti-affinity group)
#: -> amount
_Amounts = dict[tuple[int | None, Hashable], int]
_Row = dict[int, float]  # number of a column -> coefficient


class Option(ty.NamedTuple):
    host: str
    cells: tuple[int, ...]  #: positions of host cells, sorted


class Mover(ty.NamedTuple):
    """A server that may move."""

    uuid: str
    guest: arrangements.Guest
    likeness: Hashable  #: equal ones are interchangeable
    hosts: tuple[str, ...]  #: names of hosts to which it may go, best first
    #: text of a policy -> least degree to which it has to be kept there
    kept: Mapping[str, float]
    #: name of a host -> UUIDs; one of these has to go there before it
    leaders: Mapping[str, frozenset[str]]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Class:
    """Servers that are alike."""

    mover: Mover  #: one of them
    options: Mapping[Option, _Amounts]  #: what it takes, where it may go
    present: dict[Option, list[str]]  #: UUIDs of those that may leave

    @property
    def uuids(self) -> list[str]:
        return list(itertools.chain(*self.present.values()))


class Solution(ty.NamedTuple):
    #: highest gain that may be possible; None if that was not found in time
    bound: int | None
    fewest: bool  #: whether no fewer moves may do for so much
    on_host: Mapping[str, int]  #: new servers of each host
    #: class, UUID and host of each server that leaves
    leaving: list[tuple[Class, str, str]]
    #: class and option of each server that arrives
    arriving: list[tuple[Class, Option]]


class Unknowns:
    """The unknowns of a program, by numbers of columns.

    :param free: what is free on each host, for all that is there now
    """

    def __init__(self, model: '_Model', max_moves: int,
                 free: Mapping[str, _Amounts]):
        self.model = model
        self.max_moves = max_moves
        self.free = free
        self.arrivals: dict[int, tuple[Class, Option]] = {}
        self.departures: dict[int, tuple[Class, Option]] = {}
        #: (host, amount) -> what arrivals take of it, and departures give back
        self.rows: dict[tuple[str, ty.Any], _Row] = (
            collections.defaultdict(dict))
        self.gains: dict[int, int] = {}  #: column -> what one of it is worth
        self.new: dict[int, str] = {}  #: column of new servers -> their host

    def gain(self, most: float, of_one: int) -> int:
        """Add an unknown that is gained; return its number."""
        column = self.model.column(most, -of_one)
        self.gains[column] = of_one
        return column

    def available(self, host: str, what: ty.Any) -> int:
        """Return what is free when all that may leave a host has left it."""
        return max(0, self.free[host].get(what, 0)) - sum([
            amount * len(each.present[option])
            for column, amount in self.rows[host, what].items() if amount < 0
            for each, option in [self.departures[column]]])


class MoveGoal:
    """A purpose of moves."""

    guests: Sequence[arrangements.Guest] = ()  #: new servers
    most: int  #: a gain that is enough
    levels = False  #: whether it evens loads, by moves with little memory

    def add(self, program: 'Program', unknowns: Unknowns) -> None:
        """Add unknowns and rows of the gain."""


class FitNewServers(MoveGoal):
    """New servers are to fit.

    :param guest: a new server
    :param fits: name of each host -> number of new servers that fit it now;
        hosts that are not named do not get new ones
    """

    def __init__(self, guest: arrangements.Guest, fits: Mapping[str, int],
                 most: int):
        self.guests = [guest]
        self._fits = fits
        self.most = most

    def add(self, program: 'Program', unknowns: Unknowns) -> None:
        ever: dict[str, int] = collections.Counter()
        whole: dict[tuple[str, ty.Any], int] = {}
        now: dict[str, _Row] = collections.defaultdict(dict)
        for option, amounts in program.options(
                self.guests[0], list(self._fits)).items():
            fits = min([self.most, *(
                unknowns.available(option.host, what) // amount
                for what, amount in amounts.items() if amount)])
            ever[option.host] += fits
            column = unknowns.gain(fits, 1)
            unknowns.new[column] = option.host
            for what, amount in amounts.items():
                unknowns.rows[option.host, what][column] = amount
                if what[1] == _CPUS and amount:
                    whole[option.host, what] = amount
            # As long as none leaves, no more fit than now.  On several cells
            # Nova's choice may leave less than another would.
            if len(option.cells) < 2:
                now[option.host][column] = 1
        for column, (_class, option) in unknowns.departures.items():
            now[option.host][column] = -ever[option.host]
        for host, row in now.items():
            unknowns.model.row(self._fits.get(host, 0), row, -math.inf)
        # The same in whole new servers, which relaxations do not see.
        for (host, what), amount in whole.items():
            unknowns.model.row(max(0, unknowns.free[host][what]) // amount, {
                column: each // amount for column, each
                in unknowns.rows[host, what].items() if each // amount},
                -math.inf)
        unknowns.model.row(
            self.most, dict.fromkeys(unknowns.new, 1), -math.inf)


class EmptyHosts(MoveGoal):
    """Hosts are to have no servers.

    :param on_host: name of each host -> UUIDs of its servers
    """

    def __init__(self, on_host: Mapping[str, Collection[str]], most: int):
        self._on_host = on_host
        self.most = most

    def add(self, program: 'Program', unknowns: Unknowns) -> None:
        movable: dict[str, int] = collections.Counter()
        for of_class, option in unknowns.departures.values():
            movable[option.host] += len(of_class.present[option])
        gains = {host: unknowns.gain(1, 1)
                 for host, uuids in self._on_host.items()
                 if movable[host] == len(uuids)}
        most = unknowns.max_moves
        for column, (of_class, option) in unknowns.departures.items():
            if option.host in gains:
                unknowns.model.row(math.inf, {
                    column: 1,
                    gains[option.host]: -len(of_class.present[option])})
        for column, (_class, option) in unknowns.arrivals.items():
            if option.host in gains:
                unknowns.model.row(
                    most, {column: 1, gains[option.host]: most}, -math.inf)
        unknowns.model.row(self.most, unknowns.gains, -math.inf)


class EvenNodes(MoveGoal):
    """CPUs of host cells that are too many, or too few, are to be none.

    :param bounds: (host, position of the cell) -> number of CPUs in use, and
        its lowest and highest
    """

    most = 0
    levels = True

    def __init__(self, bounds: Mapping[tuple[str, int], tuple[int, int, int]]):
        self._bounds = bounds

    def add(self, program: 'Program', unknowns: Unknowns) -> None:
        for (host, cell), (used, least, most) in self._bounds.items():
            row = unknowns.rows[host, (cell, _CPUS)]
            unknowns.model.row(most - used, {
                **row, unknowns.gain(math.inf, -1): -1}, -math.inf)
            unknowns.model.row(math.inf, {
                **row, unknowns.gain(math.inf, -1): 1}, least - used)


class Program:
    """Servers and hosts of a cloud.

    :param movers: servers that may move
    """

    def __init__(self, positions: arrangements.Positions, goal: MoveGoal,
                 movers: Sequence[Mover]):
        self._positions = positions
        self._goal = goal
        self._now = {name: positions.position(name)
                     for name in positions.hosts}
        self._cells: dict[Hashable, list[tuple[Option, _Amounts]]] = {}
        self._of_guest: dict[Hashable, dict[Option, _Amounts]] = {}
        self._chosen: dict[Hashable, tuple[int, ...] | None] = {}
        # What each PCI request of any server is for -> one such request.
        self._demands = {
            repr(demand.specs): demand
            for guest in (*goal.guests, *[each.guest for each in movers])
            for demand in guest.counted.request.demands}
        self._free = {name: self._free_of(name) for name in self._now}
        #: gain, and its bound, of the first program
        self._possible: tuple[int | None, int | None] | None = None
        self._is_complete = True
        self.classes: dict[Hashable, Class] = {}
        for each in movers:
            key = each.likeness, each.hosts
            if key not in self.classes:
                self.classes[key] = self._class_of(each)
            name = positions.servers[each.uuid].host or ''
            self.classes[key].present.setdefault(Option(
                name, positions.cells(self._now[name], each.uuid)),
                []).append(each.uuid)

    def _class_of(self, mover: Mover) -> Class:
        positions = self._positions
        options = {
            option: amounts for option, amounts
            in self.options(mover.guest, mover.hosts).items()
            if not (mover.kept and option.cells) or all(
                degree >= mover.kept.get(text, 0.0) - _EPSILON
                for text, degree in positions.degrees_on(
                    mover.guest, option.host, option.cells).items())}
        group = positions.group(mover.uuid)
        if group is not None and group.policy == _ANTI_AFFINITY:
            options = {option: {**amounts, (None, group.uuid): 1}
                       for option, amounts in options.items()}
            for name in mover.hosts:
                self._free[name][None, group.uuid] = (
                    group.most_on_host - len({*group.members}.intersection(
                        positions.on_host[name])))
        return Class(mover, options, {})

    # -- amounts

    def _free_of(self, name: str) -> _Amounts:
        position = self._now[name]
        free: _Amounts = {}
        for number, cell in enumerate(
                position.room.host.cells if position.room.host else ()):
            free[number, _CPUS] = len(cell.free_cpus)
            for page in cell.pages:
                free[number, page.size_kb] = page.free_kb // page.size_kb
        for provider in position.used.tree(position.host.root):
            for resource_class, inventory in provider.inventories.items():
                key = None, resource_class
                free[key] = free.get(key, 0) + inventory.capacity - (
                    provider.used.get(resource_class, 0))
        devices = position.room.devices
        return {**free, **self._devices(
            name, devices.pools if devices else ())}

    def _devices(self, name: str,
                 pools: Iterable[Mapping[str, ty.Any]]) -> _Amounts:
        """Return how many devices serve each request, also on each cell."""
        host = self._now[name].room.host
        cells = {cell.id: number for number, cell
                 in enumerate(host.cells if host else ())}
        amounts: _Amounts = collections.Counter()
        for pool in pools if self._demands else ():
            node = pool.get('numa_node')
            # Devices without a NUMA node are near all, unless required.
            near = cells.values() if node is None else [cells.get(node)]
            for specs, demand in self._demands.items():
                if demand.matches(pool) and demand.usable(pool):
                    for cell in dict.fromkeys((None, *near)):
                        amounts[cell, specs] += pool.get('count', 1)
        return amounts

    def _freed(self, uuid: str, name: str) -> _Amounts:
        """Return what a server gives back when it leaves a host."""
        position = self._now[name]
        without = self._positions.without(position, uuid)
        amounts: _Amounts = collections.Counter()
        if self._positions.policy(uuid) == _ANTI_AFFINITY:
            amounts[None, self._positions.servers[uuid].group] = 1
        for share in self._positions.shares(position, uuid):
            amounts[share.position, _CPUS] += len(share.cpus)
            amounts[share.position, share.page_size] += share.pages
        for before, after in zip(position.used.tree(position.host.root),
                                 without.used.tree(position.host.root)):
            for resource_class, used in before.used.items():
                amounts[None, resource_class] += used - after.used.get(
                    resource_class, 0)
        devices = position.room.devices
        return amounts + self._devices(
            name, devices.freed_by(uuid) if devices else ())

    # -- options

    def options(self, guest: arrangements.Guest,
                names: Sequence[str]) -> dict[Option, _Amounts]:
        """Return what a server takes wherever it may be, whatever is free."""
        key = guest, tuple(names)
        if key not in self._of_guest:
            options = self._of_guest[key] = {}
            granted = self._granted(guest)
            for name in names:
                if not self._is_refused(guest, name):
                    classes = {(None, each): amount
                               for each, amount in granted.items()
                               if (None, each) in self._free[name]}
                    for cells, amounts in self._cells_of(guest, name):
                        options[Option(name, cells)] = {
                            **amounts, **classes, **_device_needs(
                                guest, cells)}
        return self._of_guest[key]

    def _is_refused(self, guest: arrangements.Guest, name: str) -> bool:
        """Return whether filters refuse a host, even one without servers."""
        position = self._positions.position(name)
        if not guest.refused(position):
            return False
        load = position.load
        for uuid in self._positions.on_host[name]:
            try:
                load = load.plus(occupancy.amounts(
                    self._positions.guest(uuid).counted.spec), -1)
            except servers.Refused:
                continue
        return guest.refused(dataclasses.replace(position, load=load))

    def _granted(self, guest: arrangements.Guest) -> Mapping[str, int]:
        """Return the least that each query asks Placement for."""
        totals = [collections.Counter(guest.needs)
                  for _query in guest.counted.grants.queries]
        for amounts, query in zip(totals, guest.counted.grants.queries):
            amounts.update(query.amounts)
            for group in query.groups:
                for _suffix in group.suffixes:
                    amounts.update(group.amounts)
        first, *more = totals
        for each in more:
            first &= each
        return first

    def _cells_of(self, guest: arrangements.Guest, name: str) -> list[
            tuple[tuple[int, ...], _Amounts]]:
        host = self._now[name].room.host
        if guest.counted.request.guest is None:
            return [((), {})]
        if host is None:
            return []
        empty = occupancy.empty(host)
        key = guest, host_count.FreeResources(empty).key
        if key not in self._cells:
            own = guest.counted.request.guest
            few = math.perm(len(host.cells), len(own.cells)) <= _PERMUTATIONS
            # Of unlike cells, one may take more than _cells() says.
            alike = len({cell[:2] for cell in own.cells}) == 1 and (
                not own.reserved or len(own.cells) == 1)
            self._is_complete &= few and (alike or not self._goal.levels)
            self._cells[key] = list(_cells(guest, empty)) if few else []
        return self._cells[key]

    def _is_unlikely(self, each: Class, option: Option) -> bool:
        """Return whether a claim would choose other cells of the host now."""
        position = self._now[option.host]
        free = self._free[option.host]
        ready = [cells for cells, amounts
                 in self._cells_of(each.mover.guest, option.host)
                 if all(free.get(what, 0) >= amounts[what]
                        for what in amounts)]
        if option.cells not in ready or len(ready) < 2:
            return False
        key = each.mover.guest, position.room.key
        if key not in self._chosen:
            after = position.put(each.mover.guest, '')
            self._chosen[key] = after and self._positions.cells(after, '')
        return self._chosen[key] != option.cells

    # -- the program

    def _add_moves(self, unknowns: Unknowns, forbidden: Collection[
            tuple[arrangements.Guest, Option]] = ()) -> None:
        model = unknowns.model
        for each in self.classes.values():
            balance: _Row = {}
            for option, uuids in each.present.items():
                freed = [self._freed(uuid, option.host) for uuid in uuids]
                column = model.column(len(uuids))
                unknowns.departures[column] = each, option
                balance[column] = -1
                for what in dict.fromkeys(itertools.chain(*freed)):
                    unknowns.rows[option.host, what][column] = -max(
                        amounts.get(what, 0) for amounts in freed)
            number = min(len(each.uuids), unknowns.max_moves)
            for option, amounts in each.options.items():
                if (each.mover.guest, option) in forbidden:
                    continue
                column = model.column(number)
                unknowns.arrivals[column] = each, option
                balance[column] = 1
                for what, amount in amounts.items():
                    unknowns.rows[option.host, what][column] = amount
            model.row(0, balance)

    def _add_capacities(self, unknowns: Unknowns) -> None:
        for (host, what), row in unknowns.rows.items():
            unknowns.model.row(
                max(0, self._free[host].get(what, 0)), row, -math.inf)

    def assign(self, seconds: float,
               refused: Collection[tuple[str, Collection[str]]],
               ) -> tuple[dict[str, list[str]], int | None]:
        """Find hosts for as many servers as possible, whatever the goal.

        :param refused: (host, UUIDs of all servers that come to it) of what is
            not possible
        :returns: (host -> UUIDs of servers that go there, highest number of
            servers that may be possible; None if not known)
        """
        model = _Model()
        count = sum(len(each.uuids) for each in self.classes.values())
        unknowns = Unknowns(model, count, self._free)
        self._add_moves(unknowns)
        self._add_capacities(unknowns)
        # Of what is possible, that with the best hosts.
        unit = _COST / max([1, *(
            count * len(each.mover.hosts) for each in self.classes.values())])
        model.add_costs({
            **dict.fromkeys(unknowns.departures, -1),
            **{column: unit * each.mover.hosts.index(option.host)
               for column, (each, option) in unknowns.arrivals.items()}})
        # Host -> class -> columns of what goes there.
        coming: dict[str, dict[Class, _Row]] = collections.defaultdict(
            lambda: collections.defaultdict(dict))
        for column, (each, option) in unknowns.arrivals.items():
            coming[option.host][each][column] = 1
        for name, of_host in coming.items():
            for each, row in of_host.items():
                if leaders := each.mover.leaders.get(name):
                    model.row(0, {**row, **{
                        column: -count for other, columns in of_host.items()
                        if not leaders.isdisjoint(other.uuids)
                        for column in columns}}, -math.inf)
        for name in dict(refused):
            # Columns that are 1 if at least so many come.
            levels: dict[Class, list[int]] = {}
            for each, row in coming[name].items():
                columns = levels[each] = [
                    model.column(1) for _uuid in each.uuids]
                model.row(0, {**row, **dict.fromkeys(columns, -1)})
                for higher, lower in zip(columns[1:], columns):
                    model.row(0, {higher: 1, lower: -1}, -math.inf)
            for uuids in [uuids for host, uuids in refused if host == name]:
                most, same = -1, {}
                for each, columns in levels.items():
                    number = len({*each.uuids}.intersection(uuids))
                    if number:
                        most += 1
                        same[columns[number - 1]] = 1
                    if number < len(columns):
                        same[columns[number]] = -1
                model.row(most, same, -math.inf)
        values, cost = model.solve(seconds, .1)
        hosts: dict[str, list[str]] = collections.defaultdict(list)
        waiting = {each: each.uuids for each in self.classes.values()}
        for column, (each, option) in unknowns.arrivals.items():
            for _ in range(values[column] if values else 0):
                hosts[option.host].append(waiting[each].pop(0))
        return hosts, (math.floor(_COST - cost) if self._is_complete
                       and cost > -math.inf else None)

    def solve(self, max_moves: int, seconds: float,
              forbidden: Collection[tuple[arrangements.Guest, Option]] = (),
              ) -> Solution:
        """Find the highest gain.

        And the fewest moves for it, of at most ``max_moves``; of these, the
        ones with the least memory.
        """
        until = time.monotonic() + seconds
        goal, model = self._goal, _Model()
        max_moves = min(max_moves, sum(
            len(each.uuids) for each in self.classes.values()))
        unknowns = Unknowns(model, max_moves, self._free)
        self._add_moves(unknowns, forbidden)
        arrivals, departures = unknowns.arrivals, unknowns.departures
        # Cost of one move: the fewest first, then those that claims make.
        unit = _COST / (max_moves + 1)
        memory = max([1, *(each.mover.guest.counted.spec.memory_mb
                           for each in self.classes.values())])
        of_moves, of_memory = (.1, .88) if goal.levels else (.9, .08)
        unlikely = dict.fromkeys([
            column for column, arrival in arrivals.items()
            if self._is_unlikely(*arrival)])
        costs = {column: unit * (
            of_moves + .02 * (column in unlikely) + of_memory
            * each.mover.guest.counted.spec.memory_mb / memory)
            for column, (each, _option) in arrivals.items()}
        model.row(max_moves, dict.fromkeys(arrivals, 1), -math.inf)
        goal.add(self, unknowns)
        self._add_capacities(unknowns)
        gains = unknowns.gains

        def gained(values: Sequence[int]) -> int:
            return sum([of_one * values[column]
                        for column, of_one in gains.items()])

        if self._possible is None:
            # At all, with moves that claims may not make.
            values, bound = model.solve(seconds / 2, .99)
            self._possible = (
                gained(values) if values else None,
                math.floor(_EPSILON - bound)
                if self._is_complete and bound > -math.inf else None)
        possible, limit = self._possible
        model.add_costs(costs)
        enough = model.row(math.inf if limit is None else limit, gains,
                           -math.inf if possible is None else possible)
        _none, bound = model.solve(until - time.monotonic(), relaxed=True)
        # Where claims choose other cells, these have to fill up first, or
        # something has to leave the ones that are to be chosen.
        changes = collections.defaultdict(list)
        for column, (_class, option) in (
                *arrivals.items(), *departures.items()):
            changes[option.host].append((column, set(option.cells)))
        for column in unlikely:
            _class, option = arrivals[column]
            model.row(0, {**{
                change: -max_moves for change, cells in changes[option.host]
                if (not cells.isdisjoint(option.cells)
                    if change in departures
                    else not cells.issubset(option.cells))},
                column: 1}, -math.inf)
        values, cost = model.solve(
            (until - time.monotonic()) / 4, unit * .002 * max_moves)
        if not values:
            model.drop(enough)
            values, cost = model.solve(until - time.monotonic(), 0.99 - _COST)
        if not values:
            return Solution(limit, False, {}, [], [])
        moves = sum(values[column] for column in arrivals)
        # A server that comes to a host and leaves it may be what changes, in
        # one more move than the relaxed program needs.
        fewest = gained(values) == limit and (
            unit * (moves - 1) + _EPSILON < limit + min(cost, bound + unit))
        on_host: dict[str, int] = collections.Counter()
        for column, name in unknowns.new.items():
            on_host[name] += values[column]
        return Solution(limit, fewest, on_host, [
            (each, uuid, option.host)
            for column, (each, option) in departures.items()
            for uuid in each.present[option][:values[column]]], [
                (each, option) for column, (each, option) in arrivals.items()
                for _ in range(values[column])])


class _Model:
    """A linear program of whole numbers, for HiGHS, which minimizes."""

    def __init__(self) -> None:
        import highspy

        class SilentHighs(highspy.Highs):
            def enableCallbacks(self) -> None:
                # HiGHS 1.16.0 writes to standard output as early as here.
                self.silent()
                super().enableCallbacks()

        self._api = highspy
        self._highs = SilentHighs()
        self._highs.silent()
        self._highs.setOptionValue('threads', 1)
        # It takes half of the time and finds next to nothing.
        self._highs.setOptionValue('presolve', 'off')

    def add_costs(self, costs: Mapping[int, float]) -> None:
        for column, cost in costs.items():
            self._highs.changeColCost(column, cost)

    def column(self, most: float, cost: float = 0) -> int:
        """Add an unknown of 0 to ``most``; return its number."""
        self._highs.addCol(cost, 0, most, 0, [], [])
        return self._highs.getNumCol() - 1

    def row(self, most: float, row: _Row, least: float = 0) -> int:
        """Add a row; return its number."""
        self._highs.addRow(least, most, len(row), list(row),
                           list(row.values()))
        return self._highs.getNumRow() - 1

    def drop(self, row: int) -> None:
        self._highs.changeRowBounds(row, -math.inf, math.inf)

    def solve(self, seconds: float, gap: float = 0,
              relaxed: bool = False) -> tuple[list[int], float]:
        """Return the values, or none, and a lower bound of the cost.

        :param gap: difference of cost that does not matter
        :param relaxed: whether the numbers need not be whole
        """
        highs, count = self._highs, self._highs.getNumCol()
        if not count:
            return [], 0
        kinds = self._api.HighsVarType
        highs.changeColsIntegrality(count, list(range(count)), [
            kinds.kContinuous if relaxed else kinds.kInteger] * count)
        highs.setOptionValue(
            'time_limit', highs.getRunTime() + max(0.0, seconds))
        highs.setOptionValue('mip_abs_gap', gap)
        highs.run()
        info = highs.getInfo()
        is_feasible = info.primal_solution_status == (
            self._api.SolutionStatus.kSolutionStatusFeasible)
        bound = info.mip_dual_bound
        if relaxed:
            is_solved = (highs.getModelStatus()
                         == self._api.HighsModelStatus.kOptimal)
            bound = info.objective_function_value if is_solved else -math.inf
        return ([round(value) for value in highs.getSolution().col_value]
                if is_feasible else [], bound)


def _cells(guest: arrangements.Guest, host: topology.HostTopology,
           ) -> Iterator[tuple[tuple[int, ...], _Amounts]]:
    """Yield the cells of an empty host that a guest may be on."""
    own = guest.counted.request.guest
    reserved = [own.reserved, *[0] * len(own.cells[1:])]
    masks: Sequence[int] = [sum(
        1 << number for number, host_cell in enumerate(host.cells)
        if fit.check(host_cell, cell, cell.pagesize, more, decide.UNLIMITED)
        == fit.FITS) for cell, more in zip(own.cells, reserved)]
    if guest.counted.guest_request.terms is not None:
        masks, _rules = numa_decide.strict_cells(
            host, masks, guest.counted.guest_request.terms)
    request, near = guest.counted.guest_request, []
    if request.limited and not request.limits_lost:
        near = numa_decide.claim_groups(
            host, request.request, numa_decide.Decision(
                True, ignore_tunnel=request.request.tunnel_uncertain))
    seen: dict[tuple[int, ...], _Amounts] = {}
    for cells in itertools.permutations(range(len(host.cells)), len(masks)):
        if all(mask >> cell & 1 for mask, cell in zip(masks, cells)) and all(
                any(mask >> cell & 1 for cell in cells) for mask in near):
            amounts = _needs(own.cells, reserved, host, cells)
            # Unlike guest cells take the least of what either order takes.
            before = seen.setdefault(tuple(sorted(cells)), amounts)
            for what in before:
                before[what] = min(before[what], amounts.get(what, 0))
    yield from seen.items()


def _device_needs(guest: arrangements.Guest,
                  cells: tuple[int, ...]) -> _Amounts:
    amounts: _Amounts = collections.Counter()
    # With this a claim may take fewer; see pci.Served.
    may_lack = nova_scheduler.CONF.filter_scheduler.pci_in_placement
    for demand in guest.counted.request.demands:
        is_local = len(cells) == 1 and demand.claimed in (
            pci.REQUIRED, pci.LEGACY)
        amounts[cells[0] if is_local else None,
                repr(demand.specs)] += 1 if may_lack else demand.count
    return amounts


def _needs(guest_cells: Sequence[topology.GuestCell], reserved: Sequence[int],
           host: topology.HostTopology, cells: Sequence[int]) -> _Amounts:
    """Return what a guest takes of host cells at least."""
    amounts: _Amounts = {}
    for cell, more, number in zip(guest_cells, reserved, cells):
        amounts[number, _CPUS] = cell.number_of_pins(host.cells[number], more)
        # Without a size, memory may be overcommitted; for any, it is open.
        if (cell.pagesize or 0) > 0:
            amounts[number, cell.pagesize] = (
                cell.memory * 1024 // cell.pagesize)
    return amounts
