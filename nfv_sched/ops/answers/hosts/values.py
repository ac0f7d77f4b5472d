# SPDX-License-Identifier: Apache-2.0
"""Define the views of hosts that tables and maps show."""

import dataclasses
import enum

from nfv_sched.ops.answers.hosts import limit_use
from nfv_sched.ops.answers.hosts import memory
from nfv_sched.ops.cloud import snapshot


class CPUState(enum.Enum):
    """The use of a CPU of a host by Nova.

    Nova does not report CPUs that are neither for shared nor for pinned
    servers; only facts about the machine have them.
    """

    GUEST = 'guest'  # a vCPU is pinned to it
    EMULATOR = 'emulator'  # for emulator threads of a guest
    IDLE = 'idle'  # kept idle: the server on its sibling wants whole cores
    UNKNOWN = 'unknown guest'  # in use by the record, but by no known server
    CONFLICT = 'conflict'  # several servers use it
    SHARED = 'shared'
    FREE = 'free'
    OTHER = "not Nova's"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The part of a server on one NUMA node of its host.

    :ivar node: number of the host NUMA node
    :ivar dedicated: number of pinned vCPUs
    :ivar shared: number of vCPUs that float over the shared CPUs of the node
    :ivar memory: MiB
    :ivar page_size: KiB; None if the server has no page size
    :ivar pins: (vCPU, host CPU) of each pinned vCPU, in order
    :ivar of: number of host NUMA nodes that the server spans
    """

    node: int
    dedicated: int
    shared: int
    memory: int
    page_size: int | None
    of: int
    pins: tuple[tuple[int, int], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GuestView:
    """A server on a host.

    :ivar label: its name without control characters, unique on the host
    :ivar name: its name as its owner chose it
    :ivar flavor: name of the flavor
    :ivar flavor_id: ID of the flavor; empty if it was not read
    :ivar state: Nova's vm_state
    :ivar memory: MiB
    :ivar parts: by host NUMA node; empty if it floats over the host
    :ivar remote: devices and networks near other NUMA nodes only, a sentence
        each
    """

    uuid: str
    label: str
    name: str
    project: str
    flavor: str
    flavor_id: str
    state: str
    vcpus: int
    memory: int
    parts: tuple[Part, ...] = ()
    remote: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CPUOwner:
    """A server that uses a CPU.

    :ivar vcpu: number of the vCPU; None if the CPU is for emulator threads
    """

    guest: GuestView
    vcpu: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A CPU of a host.

    :ivar cpu: number of the CPU
    :ivar owners: at most one, unless servers conflict
    """

    cpu: int
    state: CPUState
    owners: tuple[CPUOwner, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """PCI devices shown as one: those of a NIC, or of one product.

    :ivar name: PCI address of the PF, or vendor and product
    :ivar kind: ``VF``, ``PF``, ``PCI`` or ``vDPA``
    :ivar free: number of available devices
    :ivar used: number of devices of servers
    :ivar total: number of all devices, unavailable ones included
    :ivar guests: labels of the servers that use some, in order
    """

    name: str
    kind: str
    free: int
    used: int
    total: int
    guests: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A NUMA node of a host.

    :ivar node: as nova-compute reports it
    :ivar switch: True if the virtual switch is here; None if the host does
        not say where it is
    :ivar places: names of declared places here, without ``nfv_``
    :ivar networks: physical networks near it
    :ivar largest_fit: most pinned vCPUs that a new server with one NUMA node
        can have here
    :ivar shared_limit: number of vCPUs that its shared CPUs can take
    :ivar cores: threads of each core, in order
    :ivar guests: servers with a part here, in order
    :ivar devices: devices near it, in order
    """

    node: snapshot.Node
    switch: bool | None
    places: tuple[str, ...]
    networks: tuple[str, ...]
    largest_fit: int
    shared_limit: int
    cores: tuple[tuple[Thread, ...], ...]
    guests: tuple[GuestView, ...]
    devices: tuple[DeviceGroup, ...]

    @property
    def used(self) -> int:
        """The number of CPUs that servers are pinned to."""
        return len(self.node.pinned)

    def devices_of(self, kind: str) -> tuple[int, int, int]:
        """Return counts of devices of a kind near it: used, total, free."""
        groups = [each for each in self.devices if each.kind == kind]
        return (sum(each.used for each in groups),
                sum(each.total for each in groups),
                sum(each.free for each in groups))

    def part_of(self, guest: GuestView) -> Part:
        """Return the part of a server on this node; it must have one."""
        return next(part for part in guest.parts
                    if part.node == self.node.number)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NetworkView:
    """A network that servers of a host use.

    :ivar name: its name, or its UUID if the name is not known
    :ivar physnet: its physical network; None if it has none or if it is not
        known
    """

    name: str
    physnet: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """A host.

    :ivar host: as it was read
    :ivar title: its name, unique in the cloud
    :ivar state: ``up``, or what keeps it from taking servers
    :ivar nodes: in the order of the host; empty if it reports none
    :ivar guests: all servers, oldest first
    :ivar devices: devices whose NUMA node is not known
    :ivar limits: its ports and security group rules, and their limits
    :ivar shared_limit: shared vCPUs that it can take if it reports no nodes
    :ivar small_pages: None if it reports none
    :ivar hidden: number of CPUs that are not for servers; None if not known
    :ivar notes: oddities, a sentence each
    :ivar networks: networks of its servers, by name
    """

    host: snapshot.Host
    title: str
    state: str
    nodes: tuple[NodeView, ...]
    guests: tuple[GuestView, ...]
    devices: tuple[DeviceGroup, ...]
    limits: limit_use.HostLimits
    shared_limit: int
    small_pages: memory.SmallPages | None
    hidden: int | None
    notes: tuple[str, ...]
    networks: tuple[NetworkView, ...] = ()

    @property
    def floating(self) -> tuple[GuestView, ...]:
        """The servers without a NUMA topology."""
        return tuple(guest for guest in self.guests if not guest.parts)

    @property
    def remote(self) -> tuple[GuestView, ...]:
        """The servers with a device or network near another NUMA node."""
        return tuple(guest for guest in self.guests if guest.remote)

    @property
    def free(self) -> int:
        """The number of free CPUs for pinned servers."""
        return sum(len(view.node.free) for view in self.nodes)

    @property
    def used(self) -> int:
        """The number of CPUs that servers are pinned to."""
        return sum(view.used for view in self.nodes)

    @property
    def dedicated(self) -> int:
        """The number of CPUs for pinned servers."""
        return sum(len(view.node.dedicated) for view in self.nodes)

    @property
    def largest_fit(self) -> int:
        """The largest fit among its NUMA nodes."""
        return max((view.largest_fit for view in self.nodes), default=0)

    @property
    def possible_fit(self) -> int:
        """The largest fit if all free CPUs were on its largest NUMA node."""
        return min(self.free, max(
            (len(view.node.dedicated) for view in self.nodes), default=0))

    @property
    def wholeness(self) -> float | None:
        """The part of its free CPUs that one server on one NUMA node can use.

        1.0 if only the number of free CPUs and the size of the largest node
        limit it.  The more scattered the free CPUs, the lower.

        :returns: 0.0 to 1.0; None without free CPUs
        """
        possible = self.possible_fit
        return self.largest_fit / possible if possible else None

    @property
    def order(self) -> tuple:
        """Sort key that puts the host with most to gain first.

        First hosts whose free CPUs are scattered over NUMA nodes, by the part
        of the possible fit that is left, then by the number of CPUs that do
        not count; then the others, the fullest first; at last full ones and
        those without pinned CPUs.
        """
        ratio = self.wholeness
        return (ratio is None, not self.dedicated, ratio or 0,
                self.largest_fit - self.possible_fit, self.free, self.title)
