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

Requests that are decided at the same time take their claim before Nova makes
its own, so that they do not all take the same room.

It may count too much for a short time: a guest that was deleted, or whose
build failed, counts until a reading was made some time after it was placed.
"""

from collections.abc import Callable
from collections.abc import Collection
import math
import threading
import time
import typing as ty

from nfv_sched.network import demand as network_demand
from nfv_sched.network import usage

#: Seconds after which a guest's ports should be bound to its host.
BUILD_SECONDS = 60.0

#: Seconds that Nova has for the claim in Placement, and for the other servers
#: of the request. What it took ends before that if the request does.
TAKE_SECONDS = 60.0

# Claims older than this are dropped whatever has been read.
_LOST_SECONDS = 3600.0


class Claim(ty.NamedTuple):
    """One guest placed by this process.

    :ivar ports: ports of the virtual switch
    :ivar rules: security-group rules on them
    :ivar when: seconds of ``time.monotonic()``
    :ivar until: when it ends if Nova does not place the guest
    :ivar holder: weak reference to what lives as long as the request; None if
        Nova has placed the guest
    """

    ports: int
    rules: int
    when: float
    until: float = math.inf
    holder: Callable[[], ty.Any] | None = None

    def in_flight(self, now: float) -> bool:
        """Whether Nova may still be about to place the guest."""
        return (self.holder is not None and now <= self.until and
                self.holder() is not None)

    def lost(self, now: float) -> bool:
        """Whether Nova has not placed the guest, and will not."""
        return self.holder is not None and not self.in_flight(now)


class Claims:
    """Claims by host and instance; several threads may use it."""

    def __init__(self):
        self._lock = threading.Lock()
        self._hosts: dict[str, dict[str, Claim]] = {}
        self._swept = time.monotonic()

    def add(self, host: str, instance: str,
            demand: network_demand.NetworkDemand) -> None:
        """Note that Nova has placed a guest.

        :param host: ``host_state.host``
        :param instance: UUID of the server
        :param demand: what it takes
        """
        with self._lock:
            self._add(host, instance, demand)

    def _add(self, host: str, instance: str,
             demand: network_demand.NetworkDemand, seconds: float = math.inf,
             holder: Callable[[], ty.Any] | None = None) -> None:
        now = time.monotonic()
        # Replaced, not changed: others may be reading it.
        self._hosts[host] = {
            **self._hosts.get(host, {}), instance: Claim(
                demand.vswitch_ports, demand.rules, now, now + seconds,
                holder)}
        if now - self._swept > _LOST_SECONDS:
            self._swept = now
            self._sweep(now - _LOST_SECONDS)

    def take(
        self, snapshot: usage.Snapshot, host: str, instance: str,
        demand: network_demand.NetworkDemand, ports: float, rules: float,
        holder: Callable[[], ty.Any],
    ) -> tuple[float, float] | None:
        """Claim room on a host for a moment, if there is enough.

        :param snapshot: what Neutron showed
        :param host: ``host_state.host``
        :param instance: UUID of the server
        :param demand: what it takes
        :param ports: ports that are left without what Neutron does not show
        :param rules: rules that are left in the same way
        :param holder: weak reference to what lives as long as the request
        :returns: None, or the ports and rules that are left if they are too
            few
        """
        with self._lock:
            more_ports, more_rules, _old = self._unseen(
                snapshot, host, instance)
            ports -= more_ports
            rules -= more_rules
            if ports < demand.vswitch_ports or rules < demand.rules:
                return ports, rules
            self._add(host, instance, demand, TAKE_SECONDS, holder)
            return None

    def release(self, host: str, instance: str) -> None:
        """Give back what Nova has not claimed, or undoes with the request.

        :param host: ``host_state.host``
        :param instance: UUID of the server
        """
        claim = self._hosts.get(host, {}).get(instance)
        if claim is not None:
            self._drop(host, [instance])

    def in_flight(self, host: str,
                  without: Collection[str]) -> tuple[int, int]:
        """Ports and rules taken that Nova may not have claimed yet.

        :param host: ``host_state.host``
        :param without: UUIDs of servers that do not count
        """
        ports = rules = 0
        now = time.monotonic()
        for instance, claim in self._hosts.get(host, {}).items():
            if claim.in_flight(now) and instance not in without:
                ports += claim.ports
                rules += claim.rules
        return ports, rules

    def prolong(self, host: str, instance: str) -> None:
        """Nova is not done yet with the request of a server.

        :param host: ``host_state.host``
        :param instance: UUID of the server
        """
        with self._lock:
            claims = self._hosts.get(host, {})
            claim = claims.get(instance)
            if claim is not None and claim.holder is not None:
                self._hosts[host] = {**claims, instance: claim._replace(
                    until=time.monotonic() + TAKE_SECONDS)}

    def has(self, host: str, instance: str) -> bool:
        """Whether a server is known to be placed, or taken, on a host.

        :param host: ``host_state.host``
        :param instance: UUID of the server
        """
        return instance in self._hosts.get(host, {})

    def _sweep(self, oldest: float) -> None:
        self._hosts = {
            host: left for host, claims in self._hosts.items()
            if (left := {instance: claim for instance, claim in claims.items()
                         if claim.when > oldest})}

    def any_on(self, host: str) -> bool:
        """Whether anything was placed on a host lately.

        :param host: ``host_state.host``
        """
        return host in self._hosts

    def unseen(self, snapshot: usage.Snapshot, host: str,
               without: str | None = None) -> tuple[int, int]:
        """Ports and rules that a reading of Neutron does not show.

        :param snapshot: what Neutron showed
        :param host: ``host_state.host``
        :param without: UUID of a server that does not count
        """
        ports, rules, old = self._unseen(snapshot, host, without)
        if old:
            self._drop(host, old)
        return ports, rules

    def _unseen(
        self, snapshot: usage.Snapshot, host: str, without: str | None,
    ) -> tuple[int, int, list[str]]:
        """Ports and rules, and the servers that do not count any more."""
        guests = snapshot.host(host).guests
        ports = rules = 0
        old: list[str] = []
        now = time.monotonic()
        for instance, claim in self._hosts.get(host, {}).items():
            if claim.when + BUILD_SECONDS < snapshot.taken or (
                    claim.lost(now)):
                old.append(instance)
                continue
            if instance == without:
                continue
            seen = guests.get(instance)
            if seen is None:
                ports += claim.ports
                rules += claim.rules
            else:
                # Its ports are bound one after the other.
                ports += max(claim.ports - len(seen.ports), 0)
                rules += max(claim.rules - seen.rules, 0)
        return ports, rules, old

    def _drop(self, host: str, instances: list[str]) -> None:
        with self._lock:
            claims = self._hosts.get(host, {})
            left = {instance: claim for instance, claim in claims.items()
                    if instance not in instances}
            if left:
                self._hosts[host] = left
            else:
                self._hosts.pop(host, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._hosts = {}


#: The claims of this process.
CLAIMS = Claims()
