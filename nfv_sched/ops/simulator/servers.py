# SPDX-License-Identifier: Apache-2.0
"""Define the servers of a simulated cloud."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import typing as ty

from nova import objects
from nova.objects import base as nova_base

from nfv_sched.base import extra_specs
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import outcome

ACTIVE = 'ACTIVE'
REFUSED = 'REFUSED'
RESIZED = 'VERIFY_RESIZE'
SHELVED = 'SHELVED'
DELETED = 'DELETED'
# Statuses that only servers of a snapshot have.
STOPPED = 'STOPPED'
PAUSED = 'PAUSED'
SUSPENDED = 'SUSPENDED'
ERROR = 'ERROR'
NOT_OFFLOADED = 'SHELVED, NOT OFFLOADED'


class Refused(Exception):
    """A request that Nova refuses; the message has the reason."""


class UnknownAliasError(Refused):
    """A request for a PCI alias that is not in nova.conf."""

    def __init__(self, text: str, alias: str):
        super().__init__(text)
        self.alias = alias


@dataclasses.dataclass(slots=True)
class Pending:
    """A resize or cold migration that is not confirmed yet."""

    source: compute.ComputeHost
    #: resources that the server still occupies on the source
    claimed: compute.ServerClaim
    spec: objects.RequestSpec  #: the old request, as Nova has stored it
    #: UUID of the migration, the consumer of the allocations on the source
    migration: str
    status: str = ACTIVE  #: the status before the move


@dataclasses.dataclass
class SimulatedServer:
    """A server of the cloud.

    :ivar instance: ``nova.objects.Instance``, or None
    :ivar spec: the ``RequestSpec`` as Nova stores it, or None
    :ivar image_meta: ``nova.objects.ImageMeta``
    :ivar claimed: the ``ServerClaim`` on its host, or None
    """

    name: str
    flavor_name: str
    #: ACTIVE, REFUSED, VERIFY_RESIZE, SHELVED or DELETED; a server of a
    #: snapshot may have another status of Nova
    status: str = REFUSED
    uuid: str = ''  #: its UUID; by default one that is derived from its name
    project: str = nova_internals.PROJECT  #: UUID of its project
    host: compute.ComputeHost | None = None
    #: name of its last cell; None if unknown or not placed yet
    cell: str | None = None
    #: reason why its last step was refused; None if it was not
    reason: str | None = None
    #: a move that must be confirmed or reverted, or None
    pending: Pending | None = None
    ports: list[nova_internals.SimulatedPort] = dataclasses.field(
        default_factory=list)
    #: properties of its image, as Nova stores them
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: reason why there is no ``spec``; None if there is one
    unknown: str | None = None
    #: sets what is in Nova's objects when it is read for the first time: they
    #: are slow to make, and of thousands of servers only a few are needed
    work_out: Callable[['SimulatedServer'], None] | None = None

    def __post_init__(self) -> None:
        self.uuid = self.uuid or scenario.stable_uuid('server', self.name)

    def __getattr__(self, name: str) -> ty.Any:
        if name not in ('instance', 'spec', 'image_meta', 'claimed'):
            return object.__getattribute__(self, name)  # says what is wrong
        if self.work_out is not None:
            # Before the call, as that reads such attributes itself.
            work_out, self.work_out = self.work_out, None
            work_out(self)
        return vars(self).get(name)

    @property
    def has_fixed_devices(self) -> bool:
        """Whether it has PCI devices that prevent live migration."""
        return any(
            request.source == objects.InstancePCIRequest.FLAVOR_ALIAS and
            not nova_internals.is_live_migratable(request)
            for request in self.instance.pci_requests.requests)

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """The host NUMA node of each guest NUMA node; None if it has none."""
        if self.host is None or self.instance.numa_topology is None:
            return None
        return tuple(cell.id for cell in self.instance.numa_topology.cells)

    @property
    def pinned_cpus(self) -> tuple[int, ...]:
        """The host CPUs to which vCPUs and emulator threads are pinned."""
        if self.nodes is None:
            return ()
        return tuple(sorted({
            cpu for cell in self.instance.numa_topology.cells
            for cpu in (*(cell.cpu_pinning or {}).values(),
                        *(cell.cpuset_reserved or ()))}))

    @property
    def vswitch(self) -> str | None:
        """The position of its NUMA nodes relative to the virtual switch.

        :returns: ``local`` (all are on nodes of the switch), ``partial``
            (some) or ``remote`` (none); None without a host, if the host
            declares no switch, or for a guest that floats over several nodes
        """
        return self.host and self._nearness_of(self.host.switch_nodes)

    @property
    def places(self) -> dict[str, str]:
        """The position relative to each place, with values of vswitch."""
        if self.host is None:
            return {}
        positions = {name: self._nearness_of(where)
                     for name, where in self.host.places.items()}
        return {name: near for name, near in positions.items() if near}

    def _nearness_of(self, where: Sequence[int]) -> str | None:
        if not where:
            return None
        if (nodes := self.nodes) is None:
            host_nodes = self.host.record.nodes or ()
            if len(host_nodes) > 1:
                return None
            nodes = tuple(node.number for node in host_nodes)
        return _nearness([node in where for node in nodes])

    @property
    def cores(self) -> int:
        if self.host is None:
            return 0
        cpus = frozenset(self.pinned_cpus)
        return sum(bool(core & cpus) for node in self.host.record.nodes or ()
                   for core in node.cores)

    @property
    def floating(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """(vCPUs, host CPUs) of each guest NUMA node with shared vCPUs."""
        if self.nodes is None:
            return ()
        shared = {node.number: node.shared
                  for node in self.host.record.nodes or ()}
        return tuple(
            (tuple(sorted(cell.cpuset)), tuple(sorted(shared[cell.id])))
            for cell in self.instance.numa_topology.cells if cell.cpuset)

    @property
    def devices(self) -> tuple[outcome.AssignedDevice, ...]:
        """Its PCI devices, by address."""
        if self.host is None or self.claimed is None:
            return ()
        return tuple([
            outcome.AssignedDevice(address=each.address, node=each.numa_node)
            for each in sorted(
                self.claimed.devices, key=lambda each: each.address)])

    @property
    def pci(self) -> str | None:
        """The position of its PCI devices relative to its NUMA nodes.

        A device without NUMA information is local only on a host with one.
        """
        if not (devices := self.devices):
            return None
        if len(self.host.record.nodes or ()) == 1:
            return 'local'
        if self.nodes is None:
            return None
        return _nearness([device.node in self.nodes for device in devices])

    @property
    def policy(self) -> extra_specs.NFVPolicy:
        if self.instance is None:
            return extra_specs.NO_POLICY
        return extra_specs.parse(
            self.instance.flavor.extra_specs,
            # As to_dict(), which Nova has since commit acd6c733c6 (Nova 31).
            nova_base.obj_to_primitive(self.image_meta.properties))


def _nearness(near: Sequence[bool]) -> str:
    if all(near):
        return 'local'
    return 'partial' if any(near) else 'remote'
