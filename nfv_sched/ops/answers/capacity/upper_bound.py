# SPDX-License-Identifier: Apache-2.0
"""Calculate upper bounds of how many servers of each flavor fit a cloud.

A bound is the number that Placement would grant, as counted by
:mod:`nfv_sched.ops.model.counting.capacity`: no more can be counted if only
the API of a cloud is known.  Pinning, pages, NUMA nodes, devices and filters
are ignored.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses

from nfv_sched.ops.cloud import api_only
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator import servers


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """The highest number of servers of a flavor that a cloud may take.

    :ivar hosts: name of each host -> number of servers that Placement would
        grant there
    :ivar error: why Nova takes no server of this flavor; None if it does
    """

    flavor: snapshot.Flavor
    hosts: Mapping[str, int]
    error: str | None = None

    @property
    def most(self) -> int:
        """Number of servers that Placement would grant."""
        return sum(self.hosts.values())

    @property
    def with_room(self) -> int:
        """Number of hosts on which it would grant at least one."""
        return sum(most > 0 for most in self.hosts.values())

    def within(self, hosts: Iterable[str]) -> 'Bound':
        """Return the bound of some hosts only, by their names."""
        return dataclasses.replace(self, hosts={
            name: self.hosts[name] for name in hosts if name in self.hosts})


def bounds(
    cloud: snapshot.Cloud, flavors: Sequence[snapshot.Flavor], *,
    hosts: Collection[str] | None = None,
    update: Callable[[int, int], None] = lambda done, total: None,
) -> list[Bound]:
    """Return upper bounds of how many more servers of each flavor fit.

    :param cloud: the cloud as the API shows it
    :param flavors: the flavors; their PCI devices are ignored
    :param hosts: names of the hosts that count; None for all
    :param update: called with (flavors done, all flavors)
    """
    with capacity.counting_on(cloud, empty=False, ports=0) as counting:
        flavor_bounds = []
        for index, flavor in enumerate(flavors):
            update(index, len(flavors))
            flavor_bounds.append(
                _bound_of_flavor(counting, flavor, counting.hosts(hosts)))
        update(len(flavors), len(flavors))
        return flavor_bounds


def _bound_of_flavor(counting: capacity.Counting, flavor: snapshot.Flavor,
                     hosts: Sequence[capacity.CountedHost]) -> Bound:
    try:
        grants = counting.guest(api_only.without_devices(flavor)).grants
    except servers.Refused as exc:
        return Bound(flavor, {host.name: 0 for host in hosts}, str(exc))
    return Bound(flavor, {
        host.name: grants.for_host(host.root).believed for host in hosts})
