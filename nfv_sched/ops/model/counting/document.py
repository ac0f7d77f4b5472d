# SPDX-License-Identifier: Apache-2.0
"""Define what limits a host, and how many servers fit it, as documents.

Nova is not needed for these types.
"""

from collections.abc import Mapping
import dataclasses
import functools
import typing as ty

from nfv_sched.ops.model import movable

#: Define fields that are in no document, see ``ops.cli.documents``, or in all.
internal = functools.partial(dataclasses.field, metadata={'internal': True})
always = functools.partial(dataclasses.field, metadata={'always': True})


class BindingKind(movable.WordedKind):
    """Kind of a limit; {} stands for the name of the limit, or NUMA nodes."""

    #: The flavor contradicts itself, or Nova refuses it.
    FLAVOR = 'flavor', 'flavor'
    #: A placement policy; the name is its extra spec with the value.
    POLICY = 'policy', 'policy'
    #: The host reports no NUMA nodes.
    TOPOLOGY = 'topology', 'NUMA topology'
    #: The host has fewer NUMA nodes than the server.
    NUMA_NODES = 'numa_nodes', 'NUMA nodes'
    #: The host does not suffice even without other servers.
    TOO_SMALL = 'too_small', 'host too small'
    #: Several resources together, none of them alone.
    SEVERAL = 'several', 'several'
    CPUS = 'cpus', 'pCPUs'
    #: The host has enough, but its NUMA nodes do not.
    CPUS_ON_NODES = 'cpus_on_nodes', 'pCPUs on {}'
    THREADS = 'threads', 'threads'
    MEMORY = 'memory', 'memory'
    PAGES = 'pages', 'pages of {}'
    #: The host has no such pages, or the memory is no multiple of their size.
    PAGE_SIZE = 'page_size', 'page size'
    SHARED_CPUS = 'shared_cpus', 'shared vCPUs'
    DEVICES = 'devices', '{}s'
    #: The host has enough, but not on NUMA nodes that suit the server.
    DEVICES_NEAR = 'devices_near', '{}s nearby'
    NETWORKS_NEAR = 'networks_near', 'networks nearby'
    PORTS = 'ports', 'ports'
    RULES = 'rules', 'rules'
    #: Another filter; the name is that of its class.
    FILTER = 'filter', 'filter'
    SERVICE = 'service', 'host disabled or down'
    UNMAPPED = 'unmapped', 'no host mapping'
    #: OpenStack Blazar keeps the host for reservations.
    RESERVED = 'reserved', 'reserved by Blazar'
    PLACEMENT = 'placement', 'Placement'
    #: The free capacity of what is named could not be determined.
    UNSURE = 'unsure', '{}'
    RESOURCE_CLASS = 'resource_class', 'Placement {}'
    TRAIT = 'trait', 'trait {}'
    AGGREGATE = 'aggregate', 'aggregate'
    ISOLATED_AGGREGATE = 'isolated_aggregate', 'isolated aggregate'
    #: Placement does not know a name; ``trait`` or ``resource class``.
    UNKNOWN_NAME = 'unknown_name', 'unknown {}'


@dataclasses.dataclass(frozen=True, slots=True)
class LostLimit:
    """A limit to which servers are lost."""

    #: kind of the limit, such as "cpus_on_nodes", "pages", "devices",
    #: "policy", "networks_near", "filter", "ports"
    kind: str
    #: the policy, filter, page size or other name of the limit; null if it has
    #: none
    name: str | None = always(default=None)
    #: number of NUMA nodes on which the CPUs of "cpus_on_nodes" are needed;
    #: null for other kinds
    numa_nodes: int | None = always(default=None)

    @property
    def label(self) -> str:
        if self.kind in (BindingKind.POLICY, BindingKind.FILTER):
            return self.name
        return BindingKind(self.kind).clause.format(
            self.name if self.numa_nodes is None
            else nodes_text(self.numa_nodes))


def nodes_text(nodes: int) -> str:
    return 'one NUMA node' if nodes == 1 else f'{nodes} NUMA nodes'


@dataclasses.dataclass(frozen=True, slots=True)
class HostLimit(LostLimit):
    """A limit that keeps one more server off a host."""

    #: kind of the limit, such as "cpus", "cpus_on_nodes", "pages", "devices",
    #: "policy", "filter", "ports"
    kind: str
    #: numbers of the NUMA nodes that policies and networks leave to a server;
    #: for a policy, those that it leaves; null if they leave all
    allowed_nodes: tuple[int, ...] | None = always(default=None)
    #: whether one more server fits once this limit alone is lifted
    alone: bool = always(default=True)
    #: the amount needed and the amount free, for people
    why: str = always(default='')
    #: ``HostLimit`` of each that it lacks together, if it is too small
    lacks: ty.Any = internal(default=())

    @property
    def on_any_host(self) -> LostLimit:
        """The limit without what differs between hosts, to be compared."""
        return LostLimit(self.kind, self.name, self.numa_nodes)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LostCapacity:
    """Servers that Placement would grant and hosts do not take."""

    limits: tuple[LostLimit, ...]  #: the limits to which they are lost
    #: whether they fit without any one of the limits; if not, only without all
    #: of them
    any_one: bool
    servers: int  #: number of servers

    @property
    def label(self) -> str:
        return (' or ' if self.any_one else ' and ').join(
            each.label for each in self.limits)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FreeCPUs:
    """CPUs for pinned servers of a NUMA node."""

    node: int  #: number of the NUMA node
    pcpus: int  #: number of CPUs for pinned servers
    pcpus_free: int  #: number of free ones


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeavingPart:
    """The part of a server on a NUMA node."""

    node: int  #: number of the NUMA node of the host
    pcpus: int  #: number of CPUs that are its own


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeavingServer:
    """The smallest server of a host without which one more fits."""

    server: str  #: its name
    server_id: str  #: its UUID
    vcpus: int  #: number of its vCPUs
    memory_mib: int  #: its memory in MiB
    #: NUMA nodes on which it has CPUs of its own
    numa_nodes: tuple[LeavingPart, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostFit:
    """The number of servers of the flavor that fit a host."""

    host: str  #: name of the host
    host_id: str  #: UUID of its compute node
    fits: int  #: number of servers that fit one after the other
    #: number of servers that Placement alone would grant
    placement_grants: int
    #: NUMA nodes with CPUs for pinned servers
    numa_nodes: tuple[FreeCPUs, ...]
    limits: tuple[HostLimit, ...]  #: what keeps the next server off
    #: the smallest server without which one more fits; null without --next, or
    #: if no single server would do
    next: LeavingServer | None = always(default=None)
    #: number of each NUMA node -> used and all CPUs for pinned servers
    used_pcpus: Mapping[int, tuple[int, int]] = internal()
    #: servers that Placement would grant and the host does not take, by
    #: ``losses.Cause``
    lost: ty.Any = internal(default_factory=dict, hash=False)
