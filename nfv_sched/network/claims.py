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

It may count too much for a short time: a guest that was deleted, or whose
build failed, counts until a reading was made some time after it was placed.
"""

import threading
import time
import typing as ty

from nfv_sched.network import demand as network_demand
from nfv_sched.network import usage

#: Seconds after which a guest's ports should be bound to its host.
BUILD_SECONDS = 60.0

# Claims older than this are dropped whatever has been read.
_LOST_SECONDS = 3600.0


class Claim(ty.NamedTuple):
    """One guest placed by this process.

    :ivar ports: ports of the virtual switch
    :ivar rules: security-group rules on them
    :ivar when: seconds of ``time.monotonic()``
    """

    ports: int
    rules: int
    when: float


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
        now = time.monotonic()
        claim = Claim(demand.vswitch_ports, demand.rules, now)
        with self._lock:
            # Replaced, not changed: others may be reading it.
            self._hosts[host] = {
                **self._hosts.get(host, {}), instance: claim}
            if now - self._swept > _LOST_SECONDS:
                self._swept = now
                self._sweep(now - _LOST_SECONDS)

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

    def unseen(self, usage_of_host: usage.HostUsage,
               taken: float) -> tuple[int, int]:
        """Ports and rules that a reading of Neutron does not show.

        :param usage_of_host: what Neutron showed on the host
        :param taken: when reading began, seconds of ``time.monotonic()``
        """
        claims = self._hosts.get(usage_of_host.host)
        if not claims:
            return 0, 0
        ports = rules = 0
        old = []
        for instance, claim in claims.items():
            if claim.when + BUILD_SECONDS < taken:
                old.append(instance)
                continue
            seen = usage_of_host.guests.get(instance)
            if seen is None:
                ports += claim.ports
                rules += claim.rules
            else:
                # Its ports are bound one after the other.
                ports += max(claim.ports - len(seen.ports), 0)
                rules += max(claim.rules - seen.rules, 0)
        if old:
            self._drop(usage_of_host.host, old)
        return ports, rules

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
