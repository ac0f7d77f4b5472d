# SPDX-License-Identifier: Apache-2.0
"""What is known of hosts, as values for tables and maps."""

import dataclasses
import enum

from nfv_sched.ops.hosts import memory
from nfv_sched.ops.snapshot import snapshot


class CPUState(enum.Enum):
    """What a CPU of a host is to Nova.

    A CPU that is neither for shared nor for pinned guests is not reported;
    only facts about the machine have it.
    """

    GUEST = 'guest'  # a vCPU is pinned to it
    EMULATOR = 'emulator'  # for emulator threads of a guest
    IDLE = 'idle'  # its sibling is a guest's that wants cores of its own
    UNKNOWN = 'unknown guest'  # taken, but by no server that is known
    CONFLICT = 'conflict'  # several have it
    SHARED = 'shared'
    FREE = 'free'
    OTHER = "not Nova's"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a guest has on one NUMA node of its host.

    :ivar node: number of the host NUMA node
    :ivar dedicated: pinned vCPUs
    :ivar shared: vCPUs that float over the shared CPUs of the node
    :ivar memory: MiB
    :ivar page_size: KiB; None if it has no page size of its own
    :ivar of: number of NUMA nodes that the guest spans
    """

    node: int
    dedicated: int
    shared: int
    memory: int
    page_size: int | None
    of: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GuestView:
    """A server on a host.

    :ivar label: its name without control characters, unique on the host
    :ivar name: as its owner gave it
    :ivar flavor: name
    :ivar state: Nova's vm_state
    :ivar memory: MiB
    :ivar parts: by host NUMA node; none if it floats over the host
    :ivar remote: what of it is near another NUMA node, a sentence each
    """

    uuid: str
    label: str
    name: str
    project: str
    flavor: str
    state: str
    vcpus: int
    memory: int
    parts: tuple[Part, ...] = ()
    remote: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CPUOwner:
    """Who has a CPU.

    :ivar vcpu: number of the vCPU; None if the CPU is for something else
    """

    guest: GuestView
    vcpu: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A CPU of a host.

    :ivar cpu: its number
    :ivar owners: usually one or none
    """

    cpu: int
    state: CPUState
    owners: tuple[CPUOwner, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """PCI devices that belong together: a NIC, or devices of one product.

    :ivar name: PCI address of the PF, or vendor and product
    :ivar kind: ``VF``, ``PF``, ``PCI`` or ``vDPA``
    :ivar free: those that a guest can have
    :ivar used: those that guests have
    :ivar total: all, with those that cannot be had now
    :ivar guests: labels of the guests that have some, in order
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
    :ivar switch: whether the virtual switch is here; None if the host does
        not say where it is
    :ivar places: names of places that are here, without ``nfv_``
    :ivar networks: physical networks near it
    :ivar largest_fit: most pinned vCPUs of a guest with one NUMA node
    :ivar shared_limit: vCPUs that its shared CPUs take
    :ivar cores: threads of each core, in order
    :ivar guests: those with a part here, in order
    :ivar devices: near it, in order
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
        """CPUs for pinned guests that are taken."""
        return len(self.node.dedicated & self.node.pinned)

    def devices_of(self, kind: str) -> tuple[int, int, int]:
        """Return the devices of a kind near it: free, all, used."""
        groups = [each for each in self.devices if each.kind == kind]
        return (sum(each.free for each in groups),
                sum(each.total for each in groups),
                sum(each.used for each in groups))

    def part_of(self, guest: GuestView) -> Part:
        """What a guest has here; it has something."""
        return next(part for part in guest.parts
                    if part.node == self.node.number)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """A host.

    :ivar host: as it was read
    :ivar title: its name, unique in the cloud
    :ivar state: ``up``, or what keeps it from taking guests
    :ivar nodes: in the order of the host; empty if it reports none
    :ivar guests: all, oldest first
    :ivar devices: those whose NUMA node is not known
    :ivar ports: of the virtual switch, physical ones included; None if not
        known
    :ivar port_limit: None if there is none
    :ivar rules: security-group rules of these ports; None if not known
    :ivar rule_limit: None if there is none
    :ivar shared_limit: shared vCPUs that it takes, if it reports no nodes
    :ivar small_pages: None if it reports none
    :ivar hidden: CPUs that are not for guests; None if not known
    :ivar notes: what is odd about it, a sentence each
    """

    host: snapshot.Host
    title: str
    state: str
    nodes: tuple[NodeView, ...]
    guests: tuple[GuestView, ...]
    devices: tuple[DeviceGroup, ...]
    ports: int | None
    port_limit: int | None
    rules: int | None
    rule_limit: int | None
    shared_limit: int
    small_pages: memory.SmallPages | None
    hidden: int | None
    notes: tuple[str, ...]

    @property
    def floating(self) -> tuple[GuestView, ...]:
        """Guests that are on no NUMA node of their own."""
        return tuple(guest for guest in self.guests if not guest.parts)

    @property
    def remote(self) -> tuple[GuestView, ...]:
        """Guests with something near another NUMA node."""
        return tuple(guest for guest in self.guests if guest.remote)

    @property
    def free(self) -> int:
        """Free CPUs for pinned guests."""
        return sum(len(view.node.free) for view in self.nodes)

    @property
    def used(self) -> int:
        """CPUs for pinned guests that are taken."""
        return sum(view.used for view in self.nodes)

    @property
    def dedicated(self) -> int:
        """CPUs for pinned guests."""
        return sum(len(view.node.dedicated) for view in self.nodes)

    @property
    def largest_fit(self) -> int:
        """The largest of its NUMA nodes."""
        return max((view.largest_fit for view in self.nodes), default=0)

    @property
    def wholeness(self) -> float | None:
        """How much of its free CPUs one guest on one NUMA node can have.

        1.0: as many as on any host with so many free CPUs and NUMA nodes of
        this size.  The lower, the more the free CPUs are scattered.

        :returns: 0.0 to 1.0; None without free CPUs
        """
        largest = max((len(view.node.dedicated) for view in self.nodes),
                      default=0)
        most = min(self.free, largest)
        return self.largest_fit / most if most else None

    @property
    def order(self) -> tuple:
        """To sort hosts by: those first whose free CPUs are most scattered.

        Those with nothing free are the last.
        """
        return (2.0 if self.wholeness is None else self.wholeness,
                -self.free, self.title)
