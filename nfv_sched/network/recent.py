#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""What this process has placed and no reading shows yet.

Between two readings of Neutron the scheduler places guests.  It remembers
them here until Neutron shows their ports, so that the next request does not
take their room for free.  What other processes place meanwhile is not known;
for that there is the ledger in Placement.

Requests that are decided at the same time take their room before Nova claims
it, so that they do not all take the same.  That is also how it is
known what is missing in what Placement has answered a request meanwhile.

A guest counts until Neutron shows its ports on the host; until they are gone,
or bound to a host that it neither comes from nor goes to; and in no case for
more than an hour.  A move may take long, and binds the ports at its end.

A guest of which no reading has ever shown a port may have been deleted at
once, or its build may have failed: Nova is asked, in the background
(:meth:`Memory.review`).  What a guest has taken besides the ports that are
shown counts for ten minutes, and one whose move failed for an hour.
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

#: Seconds in which a guest that does not wait on another host is built, and
#: all its ports are bound.
BUILD_SECONDS = 600.0

#: Seconds that Nova has for the claim in Placement, and for the other servers
#: of the request. What it took ends before that if the request does.
TAKE_SECONDS = 60.0

# Entries older than this are dropped whatever has been read.
_LOST_SECONDS = 3600.0

# So many guests that were never shown are asked about in one review, and for
# so many seconds one by one: a cell may not answer.
_REVIEWED = 500
_REVIEW_SECONDS = 5.0


class Entry(ty.NamedTuple):
    """One guest placed by this process.

    :ivar ports: ports of the virtual switch
    :ivar rules: security-group rules on them
    :ivar when: seconds of ``time.monotonic()``
    :ivar until: when it ends if Nova does not place the guest
    :ivar holder: weak reference to what lives as long as the request; None if
        Nova has placed the guest
    :ivar sources: hosts that its ports are bound to until it has moved
    :ivar settled: whether these are known: the first reading since it was
        placed may show another, for the last one before may be older than the
        guest's last move
    :ivar shown: a reading has shown ports of it
    :ivar project: UUID of its project
    :ivar taken: seconds when it was taken, before Nova made its own
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

    def in_flight(self, now: float) -> bool:
        """Whether Nova may still be about to place the guest."""
        return (self.holder is not None and now <= self.until and
                self.holder() is not None)

    def lost(self, now: float) -> bool:
        """Whether Nova has not placed the guest, and will not."""
        return self.holder is not None and not self.in_flight(now)

    def after(self, snapshot: usage.Snapshot, host: str, instance: str,
              now: float) -> 'Entry | None':
        """What it has become when a reading was made; None if it is over.

        :param snapshot: the reading
        :param host: ``host_state.host``
        :param instance: UUID of the server
        :param now: seconds of ``time.monotonic()``
        """
        if self.lost(now) or self.when + _LOST_SECONDS < now:
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


class Answer(ty.NamedTuple):
    """What the ledger of a host had left when Placement was asked.

    :ivar asked: when it was about to be asked, seconds of
        ``time.monotonic()``
    :ivar answered: when its answer was there
    :ivar ports: ports of the virtual switch that were left; None if the guest
        is not held to that
    :ivar rules: the same of rules
    """

    asked: float
    answered: float
    ports: int | None = None
    rules: int | None = None


class Unshown(ty.NamedTuple):
    """What an answer of Placement does not have of one host.

    :ivar ports: ports of guests that it cannot have
    :ivar rules: rules on them
    :ivar more_ports: ports of those and of guests that it may not have, for
        they were being placed at that moment
    :ivar more_rules: rules on them
    """

    ports: int = 0
    rules: int = 0
    more_ports: int = 0
    more_rules: int = 0


def left(ledger: int | None, surely: int, perhaps: int, otherwise: float,
         need: int) -> float:
    """How much is left of one resource on a host that has a ledger.

    Placement's answer counts. Of what this process was placing while
    Placement was asked nobody knows whether it is in the answer: if the guest
    fits only if it is, the other figures decide.

    :param ledger: how much was left by Placement's answer; None if the guest
        is not held to that
    :param surely: how much the answer cannot have
    :param perhaps: that, and how much it may not have
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
    """Entries by host and server; several threads may use it."""

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
        :param project: UUID of its project, empty if that is not known
        :param is_move: it existed before
        :param snapshot: what Neutron showed, if anything
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
        self._hosts[host] = {**entries, instance: entry._replace(
            taken=now if before is None or before.holder is None
            else before.taken)}
        if now - self._swept > _LOST_SECONDS:
            self._swept = now
            self._sweep(now - _LOST_SECONDS)

    def take(
        self, snapshot: usage.Snapshot | None, host: str, instance: str,
        demand: network_demand.NetworkDemand, ports: float, rules: float,
        holder: Callable[[], ty.Any], answer: Answer | None = None,
    ) -> tuple[float, float] | None:
        """Take room on a host for a moment, if there is enough.

        :param snapshot: what Neutron showed, None if that is not believed
        :param host: ``host_state.host``
        :param instance: UUID of the server
        :param demand: what it takes
        :param ports: ports that are left without what Neutron does not show
        :param rules: rules that are left in the same way
        :param holder: weak reference to what lives as long as the request
        :param answer: what Placement said of the ledger of the host, None if
            it has none
        :returns: None, or the ports and rules that are left if they are too
            few
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
            self._add(host, instance, Entry(
                demand.vswitch_ports, demand.rules, now, now + TAKE_SECONDS,
                holder))
            return None

    def release(self, host: str, instance: str) -> None:
        """Give back what Nova has not claimed, or undoes with the request.

        :param host: ``host_state.host``
        :param instance: UUID of the server
        """
        entry = self._hosts.get(host, {}).get(instance)
        if entry is not None:
            self._change(host, {instance: (entry, None)})

    def unshown(self, host: str, asked: float, answered: float,
                without: str | None = None) -> Unshown:
        """What an answer of Placement does not have of a host.

        :param host: ``host_state.host``
        :param asked: see :class:`Answer`
        :param answered: see :class:`Answer`
        :param without: UUID of a server that does not count
        """
        ports = rules = more_ports = more_rules = 0
        now = time.monotonic()
        for instance, entry in self._hosts.get(host, {}).items():
            if instance == without or entry.lost(now) or (
                    entry.holder is None and entry.when < asked):
                continue
            more_ports += entry.ports
            more_rules += entry.rules
            if entry.taken > answered:
                ports += entry.ports
                rules += entry.rules
        return Unshown(ports, rules, more_ports, more_rules)

    def prolong(self, host: str, instance: str) -> None:
        """Nova is not done yet with the request of a server.

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
        """Names of the hosts on which anything was placed lately.

        What is placed later shows in what was returned before.
        """
        return self._hosts.keys()

    def servers_on(self, host: str) -> Set[str]:
        """UUIDs of the servers placed on a host lately.

        :param host: ``host_state.host``
        """
        return self._hosts.get(host, {}).keys()

    def unseen(self, snapshot: usage.Snapshot, host: str,
               without: str | None = None) -> tuple[int, int]:
        """Ports and rules that a reading of Neutron does not show.

        :param snapshot: what Neutron showed
        :param host: ``host_state.host``
        :param without: UUID of a server that does not count
        """
        ports, rules, changed = self._unseen(snapshot, host, without)
        if changed:
            self._change(host, changed)
        return ports, rules

    def _unseen(
        self, snapshot: usage.Snapshot, host: str, without: str | None,
    ) -> tuple[int, int, dict[str, tuple[Entry, Entry | None]]]:
        """Ports and rules, and what has become of the entries that changed."""
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
                ports += entry.ports
                rules += entry.rules
            else:
                # Its ports are bound one after the other.
                ports += max(entry.ports - len(seen.ports), 0)
                rules += max(entry.rules - seen.rules, 0)
        return ports, rules, changed

    def review(
        self, snapshot: usage.Snapshot,
        deleted: Callable[[list[str]], set[str]],
        host_of: Callable[[str], str],
    ) -> None:
        """Drop what has come to an end.

        Asks Nova about guests that were never shown, so it is nothing for a
        filter.

        :param snapshot: the latest reading
        :param deleted: tells which of some servers Nova has deleted, by UUID
        :param host_of: tells on which host Nova has a server
        :raises Exception: whatever these raise
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
        """Forget everything."""
        with self._lock:
            self._hosts.clear()
