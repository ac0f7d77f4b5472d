# SPDX-License-Identifier: Apache-2.0
"""How many more guests of each flavor fit a cloud at most.

What Placement alone has room for, as :mod:`nfv_sched.ops.counting.capacity`
counts it: all that can be counted where only the API of a cloud is known.
Pinning, pages, NUMA nodes, devices and filters are not looked at.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nfv_sched.ops.counting import capacity
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.snapshot import api_only
from nfv_sched.ops.snapshot import snapshot


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """What a cloud takes of a flavor at most.

    :ivar flavor: the flavor
    :ivar hosts: name of each host -> number of guests that Placement has room
        for there
    :ivar error: why Nova takes no server of this flavor; None if it does
    """

    flavor: snapshot.Flavor
    hosts: Mapping[str, int]
    error: str | None = None

    @property
    def most(self) -> int:
        """Number of guests that Placement has room for."""
        return sum(self.hosts.values())

    @property
    def with_room(self) -> int:
        """Number of hosts on which it has room for at least one."""
        return sum(most > 0 for most in self.hosts.values())

    def within(self, hosts: Iterable[str]) -> 'Bound':
        """The same of some hosts.

        :param hosts: their names
        """
        return dataclasses.replace(self, hosts={
            name: self.hosts[name] for name in hosts if name in self.hosts})


def bounds(
    cloud: snapshot.Cloud, flavors: Sequence[snapshot.Flavor], *,
    hosts: Collection[str] | None = None,
    update: Callable[[int, int], None] = lambda done, total: None,
) -> list[Bound]:
    """How many more guests of each flavor fit a cloud at most.

    :param cloud: the cloud as the API shows it
    :param flavors: the flavors; PCI devices that they ask for are left out
    :param hosts: names of the hosts that count; None for all
    :param update: called with (flavors done, flavors in all)
    """
    with capacity.counting_on(cloud, empty=False, ports=0) as counting:
        found = []
        for done, flavor in enumerate(flavors):
            update(done, len(flavors))
            found.append(_bound(counting, flavor, counting.hosts(hosts)))
        update(len(flavors), len(flavors))
        return found


def _bound(counting: capacity.Counting, flavor: snapshot.Flavor,
           hosts: Sequence[capacity.CountedHost]) -> Bound:
    try:
        grants = counting.guest(api_only.without_devices(flavor)).grants
    except servers.Refused as exc:
        return Bound(flavor, {host.name: 0 for host in hosts}, str(exc))
    return Bound(flavor, {
        host.name: grants.of(host.root).believed for host in hosts})
