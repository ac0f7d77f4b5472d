# SPDX-License-Identifier: Apache-2.0
"""Remember what this process has placed and Neutron does not show yet.

Between two readings of Neutron the scheduler places guests.  It remembers them
here until Neutron shows their ports, so that the next request does not count
their room as free.  What other processes place meanwhile is not known here;
for that there is the ledger in Placement.

Concurrent requests take their room here right before Nova claims it, so that
they do not all count on the same.  These entries also tell what an answer of
Placement to another request cannot contain yet.

An entry ends when Neutron shows the ports of the guest on the host; when they
are gone, or bound to a host that the guest neither comes from nor goes to; and
after an hour in any case.  A move may take long, and binds ports at its end.

If no reading has ever shown a port of the guest, it may have been deleted at
once, or its build may have failed: Nova is asked, in the background
(:meth:`Memory.review`).  If fewer ports are shown than were counted, the rest
counts for ten minutes; a guest whose move failed counts for an hour.
"""

from collections.abc import Callable
from collections.abc import Set
import itertools
import math
import threading
import time
import typing as ty

from nfv_sched.network import demand as network_demand
from nfv_sched.network import usage

#: Seconds after which a guest is taken to be built with all its ports bound,
#: unless its ports are still on the source of a move.
BUILD_SECONDS = 600.0

#: Seconds that Nova has for the claim in Placement, and for the other servers
#: of the request. Room that is only taken is free again after that, or when
#: the request ends.
TAKE_SECONDS = 60.0

# Entries older than this are dropped in any case.
_LOST_SECONDS = 3600.0

# Limits of one review: guests that Nova is asked about, and seconds for asking
# for single ones, as the database of a cell may not answer.
_REVIEWED = 500
_REVIEW_SECONDS = 5.0


class Entry(ty.NamedTuple):
    """One guest on one host: placed, or about to be.

    Times are seconds of ``time.monotonic()``.

    :ivar ports: number of its ports on the virtual switch
    :ivar rules: number of security-group rules on these ports
    :ivar when: when this was noted
    :ivar until: when this ends if Nova does not place the guest
    :ivar holder: weak reference to an object that lives as long as the
        request; None once Nova has placed the guest
    :ivar sources: hosts to which its ports are bound until it has moved
    :ivar settled: whether ``sources`` is complete. The last reading before the
        guest was placed may be older than its last move, so the first one
        after that may add a host.
    :ivar shown: whether a reading has shown ports of the guest
    :ivar project: UUID of its project; empty if not known
    :ivar taken: when the room was taken, before Nova's claim
    :ivar before: of room that is taken, the entry of the same guest that was
        there, as when it is resized on its host; None if there was none
    """

    ports: int
    rules: int
    when: float
    until: float = math.inf
    holder: Callable[[], ty.Any] | None = None
    sources: frozenset[str] = frozenset()
    settled: bool = True
    shown: bool = False
    project: str = ''
    taken: float = 0.0
    before: 'Entry | None' = None

    def in_flight(self, now: float) -> bool:
        """Whether Nova has not placed the guest yet, but still may.

        :param now: seconds of ``time.monotonic()``
        """
        return (self.holder is not None and now <= self.until and
                self.holder() is not None)

    def lost(self, now: float) -> bool:
        """Whether Nova did not place the guest, and will not any more.

        :param now: seconds of ``time.monotonic()``
        """
        return self.holder is not None and not self.in_flight(now)

    def after(self, snapshot: usage.Snapshot, host: str, instance: str,
              now: float) -> 'Entry | None':
        """The entry after a reading of Neutron; None if it has ended.

        :param snapshot: the reading
        :param host: ``host_state.host``
        :param instance: UUID of the server
        :param now: seconds of ``time.monotonic()``
        :returns: this entry if nothing has changed
        """
        if self.lost(now):
            return self.before and self.before.after(
                snapshot, host, instance, now)
        if self.when + _LOST_SECONDS < now:
            return None
        if self.holder is not None or snapshot.taken <= self.when:
            return self
        guest = snapshot.host(host).guests.get(instance)
        if guest is not None and len(guest.ports) >= self.ports:
            return None
        ports = snapshot.ports_of(instance, self.project)
        if self.shown and not ports:
            return None  # deleted
        bound = frozenset(port.host for port in ports)
        sources = self.sources
        if not self.settled:
            sources |= bound - {host}
        waits = not bound.isdisjoint(sources)
        if bound and not waits and host not in bound:
            return None  # placed elsewhere, after this host could not build it
        shown = self.shown or bool(ports)
        if shown and not waits and self.when + BUILD_SECONDS < snapshot.taken:
            return None
        if self.settled and shown == self.shown:
            return self
        return self._replace(sources=sources, settled=True, shown=shown)


class LedgerBalance(ty.NamedTuple):
    """What the ledger of a host had left by Placement's answer.

    :ivar asked: when Placement was about to be asked, seconds of
        ``time.monotonic()``
    :ivar answered: when its answer was there, seconds of ``time.monotonic()``
    :ivar ports: ports of the virtual switch that were left; None if they do
        not limit the guest
    :ivar rules: security-group rules that were left; None as for ports
    """

    asked: float
    answered: float
    ports: int | None = None
    rules: int | None = None


class Unshown(ty.NamedTuple):
    """What guests take on a host and an answer of Placement lacks.

    :ivar ports: ports of guests that the answer cannot contain
    :ivar rules: security-group rules on these ports
    :ivar more_ports: ports of these and of guests that it may or may not
        contain, because they were being placed at that time
    :ivar more_rules: security-group rules on these ports
    """

    ports: int = 0
    rules: int = 0
    more_ports: int = 0
    more_rules: int = 0


def left(ledger: int | None, surely: int, perhaps: int, otherwise: float,
         need: int) -> float:
    """How much is left on a host with a ledger, of one resource class.

    It is what Placement answered, less what the answer cannot contain.  Guests
    that this process was placing while Placement was asked may be in it or
    not.  If the guest only fits if they are, the figures from Neutron count,
    too.

    :param ledger: how much was left by Placement's answer; None if that does
        not limit the guest
    :param surely: how much the answer cannot contain
    :param perhaps: how much it cannot, or perhaps does not, contain
    :param otherwise: how much is left by figures from Neutron; infinity if
        there are none
    :param need: how much the guest takes
    """
    if ledger is None:
        return otherwise
    if ledger - perhaps >= need:
        return ledger - perhaps
    if ledger - surely < need:
        return ledger - surely
    return min(ledger - surely, otherwise)


class Memory:
    """The entries of this process, by host and server; thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._hosts: dict[str, dict[str, Entry]] = {}
        self._swept = time.monotonic()

    def add(self, host: str, instance: str,
            demand: network_demand.NetworkDemand, project: str = '',
            is_move: bool = False,
            snapshot: usage.Snapshot | None = None) -> None:
        """Note that Nova has placed a guest.

        :param host: ``host_state.host``
        :param instance: UUID of the server
        :param demand: what it takes
        :param project: UUID of its project; empty if not known
        :param is_move: whether the server existed before
        :param snapshot: the figures from Neutron, if any: they show the source
            of a move
        """
        now = time.monotonic()
        ports = (snapshot.ports_of(instance, project)
                 if is_move and snapshot else ())
        with self._lock:
            self._add(host, instance, Entry(
                demand.vswitch_ports, demand.rules, now,
                sources=frozenset(port.host for port in ports) - {host},
                settled=not is_move, shown=bool(ports), project=project))

    def _add(self, host: str, instance: str, entry: Entry) -> None:
        now = entry.when
        entries = self._hosts.get(host, {})
        before = entries.get(instance)
        # Replaced, not changed: others may be reading it.
        taken = now
        if before is not None and before.in_flight(now):
            taken = before.taken
        self._hosts[host] = {**entries, instance: entry._replace(taken=taken)}
        if now - self._swept > _LOST_SECONDS:
            self._swept = now
            self._sweep(now - _LOST_SECONDS)

    def take(
        self, snapshot: usage.Snapshot | None, host: str, instance: str,
        demand: network_demand.NetworkDemand, ports: float, rules: float,
        holder: Callable[[], ty.Any], answer: LedgerBalance | None = None,
    ) -> tuple[float, float] | None:
        """Take room on a host until Nova has placed the guest, if it is free.

        :param snapshot: the figures from Neutron; None if they are too old
        :param host: ``host_state.host``
        :param instance: UUID of the server
        :param demand: what it takes
        :param ports: ports that are left by the figures from Neutron alone
        :param rules: security-group rules that are left by these
        :param holder: weak reference to an object that lives as long as the
            request
        :param answer: what Placement said of the host's ledger; None if it has
            none
        :returns: None if the room was taken; else the numbers of ports and
            of security-group rules that are left
        """
        with self._lock:
            if snapshot is not None:
                more_ports, more_rules, _changed = self._unseen(
                    snapshot, host, instance)
                ports -= more_ports
                rules -= more_rules
            if answer is not None:
                unshown = self.unshown(
                    host, answer.asked, answer.answered, instance)
                ports = left(answer.ports, unshown.ports, unshown.more_ports,
                             ports, demand.vswitch_ports)
                rules = left(answer.rules, unshown.rules, unshown.more_rules,
                             rules, demand.rules)
            if ports < demand.vswitch_ports or rules < demand.rules:
                return ports, rules
            now = time.monotonic()
            before = self._hosts.get(host, {}).get(instance)
            if before is not None and before.holder is not None:
                before = before.before
            self._add(host, instance, Entry(
                demand.vswitch_ports, demand.rules, now, now + TAKE_SECONDS,
                holder, before=before))
            return None

    def release(self, host: str, instance: str) -> None:
        """Give back room that Nova has not claimed, or undoes.

        :param host: ``host_state.host``
        :param instance: UUID of the server
        """
        entry = self._hosts.get(host, {}).get(instance)
        if entry is not None:
            self._change(host, {instance: (entry, entry.before)})

    def unshown(self, host: str, asked: float, answered: float,
                without: str | None = None) -> Unshown:
        """What an answer of Placement about a host lacks.

        :param host: ``host_state.host``
        :param asked: see :class:`LedgerBalance`
        :param answered: see :class:`LedgerBalance`
        :param without: UUID of a server that does not count
        """
        ports = rules = more_ports = more_rules = 0
        now = time.monotonic()
        for instance, entry in self._hosts.get(host, {}).items():
            if entry.lost(now):
                entry = entry.before
            if entry is None or instance == without or (
                    entry.holder is None and entry.when < asked):
                continue
            more_ports += entry.ports
            more_rules += entry.rules
            if entry.taken > answered:
                ports += entry.ports
                rules += entry.rules
        return Unshown(ports, rules, more_ports, more_rules)

    def prolong(self, host: str, instance: str) -> None:
        """Keep room taken for longer: the request is still being scheduled.

        :param host: ``host_state.host``
        :param instance: UUID of the server
        """
        with self._lock:
            entries = self._hosts.get(host, {})
            entry = entries.get(instance)
            if entry is not None and entry.holder is not None:
                self._hosts[host] = {**entries, instance: entry._replace(
                    until=time.monotonic() + TAKE_SECONDS)}

    def _sweep(self, oldest: float) -> None:
        for host, entries in list(self._hosts.items()):
            left = {instance: entry for instance, entry in entries.items()
                    if entry.when > oldest}
            if left:
                self._hosts[host] = left
            else:
                del self._hosts[host]

    def hosts(self) -> Set[str]:
        """Names of the hosts with entries.

        A view: hosts that get entries later appear in it.
        """
        return self._hosts.keys()

    def counts(self) -> tuple[int, int]:
        """How many servers were placed, and how many are being placed.

        :returns: entries of servers that Nova has placed and readings may not
            show yet; entries of room that is taken for a claim
        """
        now = time.monotonic()
        entries = [entry for of_host in list(self._hosts.values())
                   for entry in of_host.values()]
        return (sum(entry.holder is None for entry in entries),
                sum(entry.in_flight(now) for entry in entries))

    def servers_on(self, host: str) -> Set[str]:
        """UUIDs of the servers with an entry on a host.

        :param host: ``host_state.host``
        """
        return self._hosts.get(host, {}).keys()

    def unseen(self, snapshot: usage.Snapshot, host: str,
               without: str | None = None) -> tuple[int, int]:
        """How much on a host a reading does not show.

        :param snapshot: the figures from Neutron
        :param host: ``host_state.host``
        :param without: UUID of a server that does not count
        :returns: number of ports, number of security-group rules
        """
        ports, rules, changed = self._unseen(snapshot, host, without)
        if changed:
            self._change(host, changed)
        return ports, rules

    def _unseen(
        self, snapshot: usage.Snapshot, host: str, without: str | None,
    ) -> tuple[int, int, dict[str, tuple[Entry, Entry | None]]]:
        """As :meth:`unseen`, with server -> (entry, new entry) of changes."""
        guests = snapshot.host(host).guests
        ports = rules = 0
        changed: dict[str, tuple[Entry, Entry | None]] = {}
        now = time.monotonic()
        for instance, entry in self._hosts.get(host, {}).items():
            after = entry.after(snapshot, host, instance, now)
            if after is not entry:
                changed[instance] = entry, after
            if after is None or instance == without:
                continue
            seen = guests.get(instance)
            if seen is None:
                ports += after.ports
                rules += after.rules
            else:
                # Its ports are bound one after the other.
                ports += max(after.ports - len(seen.ports), 0)
                rules += max(after.rules - seen.rules, 0)
        return ports, rules, changed

    def review(
        self, snapshot: usage.Snapshot,
        deleted: Callable[[list[str]], set[str]],
        host_of: Callable[[str], str],
    ) -> None:
        """Drop entries that have ended.

        Asks Nova about guests that were never shown, so it must not be called
        by a filter.

        :param snapshot: the latest reading
        :param deleted: returns the UUIDs of those servers that Nova has
            deleted
        :param host_of: returns the name of the host that has a server, by Nova
        :raises Exception: any error of these functions
        """
        for host in list(self._hosts):
            self.unseen(snapshot, host)
        unshown = list(itertools.islice((
            (host, instance, entry)
            for host, entries in list(self._hosts.items())
            for instance, entry in entries.items()
            if entry.holder is None and not entry.shown), _REVIEWED))
        if not unshown:
            return
        gone = deleted([instance for _host, instance, _entry in unshown])
        began = time.monotonic()
        for host, instance, entry in unshown:
            if instance in gone or (
                    entry.when + BUILD_SECONDS < began
                    and time.monotonic() < began + _REVIEW_SECONDS
                    and host_of(instance) != host):
                self._change(host, {instance: (entry, None)})

    def _change(self, host: str,
                changed: dict[str, tuple[Entry, Entry | None]]) -> None:
        with self._lock:
            left = dict(self._hosts.get(host, {}))
            for instance, (before, after) in changed.items():
                if left.get(instance) is not before:
                    continue  # placed again meanwhile
                if after is None:
                    del left[instance]
                else:
                    left[instance] = after
            if left:
                self._hosts[host] = left
            else:
                self._hosts.pop(host, None)

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._hosts.clear()
