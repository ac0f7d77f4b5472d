# SPDX-License-Identifier: Apache-2.0

"""Define the steps of a cloud file and their expectations.

There is one type for each action.  Its fields are the keys of the file, as in
:mod:`nfv_sched.ops.cloud.cloud_file.model`; keys are defined nowhere else.
"""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.ops.cloud import schema
from nfv_sched.ops.cloud import values

_HostNames = ty.Annotated[tuple[values.HostName, ...], values.SOME_ITEMS,
                          schema.ONE_OR_MORE]
_SecurityGroups = ty.Annotated[tuple[values.SecurityGroupName, ...],
                               values.SOME_ITEMS]
_HostCounts = ty.Annotated[Mapping[values.HostName, values.Count],
                           values.SOME_KEYS]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerExpectation:
    """Expectations of a server; None means no expectation.

    :ivar placed: number of servers that the step places, or True for all
    :ivar refused: number of servers that it refuses, or True for all
    :ivar host: every placed server is on one of these hosts
    :ivar not_host: no placed server is on one of these hosts
    :ivar nodes: host NUMA node of each guest NUMA node
    :ivar nodes_in: every guest NUMA node is on one of these host NUMA nodes
    :ivar vswitch: guest NUMA nodes that are on NUMA nodes of the virtual
        switch: ``local`` (all), ``partial`` (some) or ``remote`` (none)
    :ivar places: name of a place -> guest NUMA nodes that are on its NUMA
        nodes, likewise
    :ivar pci: PCI devices of the server that are on its own NUMA nodes:
        ``local``, ``partial`` or ``remote``
    :ivar pci_devices: host NUMA node -> number of the server's PCI devices
        there; the key None is for devices without a NUMA node
    :ivar cores: number of physical cores of the pinned vCPUs
    :ivar reason: text that the reason of every refused server contains
    :ivar line: line in the file
    """

    placed: values.Count | bool | None = None
    refused: values.Count | bool | None = None
    host: _HostNames | None = None
    not_host: _HostNames | None = None
    nodes: values.Nodes | None = None
    nodes_in: values.Nodes | None = None
    vswitch: values.Locality | None = None
    places: ty.Annotated[Mapping[values.PlaceName, values.Locality],
                         values.SOME_KEYS] | None = None
    pci: values.Locality | None = None
    pci_devices: Mapping[values.DeviceNode, values.Count] | None = None
    cores: values.Count | None = None
    reason: values.Name | None = None

    line: int = schema.line()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expectation(ServerExpectation):
    """Expectations of a step.

    :ivar ports: host name -> number of its virtual switch ports after the step
    :ivar rules: host name -> number of its security group rules after the step
    :ivar servers: server name -> expectations of this server
    """

    ports: _HostCounts = dataclasses.field(default_factory=dict)
    rules: _HostCounts = dataclasses.field(default_factory=dict)
    servers: Mapping[values.ServerName, ty.Annotated[
        ServerExpectation, values.SOME_KEYS]] = dataclasses.field(
            default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the file.

    :ivar action: key of :data:`TYPES`
    :ivar number: position in the file, from 1
    :ivar line: line in the file
    :ivar targets: names of the servers (hosts for host_down and host_up)
    """

    action: str = schema.worked_out('')
    number: int = schema.worked_out(0)
    line: int = schema.line()
    targets: tuple[str, ...] = schema.worked_out(())
    expect: Expectation | None = schema.worked_out(None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Checked(Step):
    """A step that may have expectations."""

    expect: ty.Annotated[Expectation, values.SOME_KEYS] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boot(_Checked):
    """Boot servers.

    :ivar boot: name of the servers; a number is added if ``count`` is given
    :ivar flavor: name of the flavor
    :ivar count: number of servers; None for one, without a number
    :ivar multi_create: whether one request creates all of them
    :ivar image: name of the image
    :ivar networks: names of networks; each server gets a port on each
    :ivar security_groups: names of the security groups of the ports; empty for
        the default group of the project
    :ivar host: the only host to consider; the filters run
    :ivar force: forced host; the filters do not run
    :ivar ignore_hosts: hosts to ignore
    :ivar availability_zone: availability zone of the hosts to consider
    :ivar group: name of the server group
    """

    boot: values.Name
    flavor: values.FlavorName
    count: ty.Annotated[int, values.within(1, 100_000)] | None = None
    multi_create: bool = False
    image: values.ImageName | None = None
    networks: tuple[values.NetworkName, ...] = ()
    security_groups: _SecurityGroups = ()
    host: values.HostName | None = None
    force: values.HostName | None = None
    ignore_hosts: tuple[values.HostName, ...] = ()
    availability_zone: values.Name | None = None
    group: values.ServerGroupName | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _PortStep(_Checked):
    """Attach or detach ports.

    :ivar network: name of the network of the ports
    :ivar count: number of ports
    """

    network: values.NetworkName
    count: ty.Annotated[int, values.within(1, 1000)] = 1

    @property
    def networks(self) -> tuple[str, ...]:
        """The network of each port."""
        return (self.network,) * self.count


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attach(_PortStep):
    """Attach ports.

    :ivar attach: names of the servers
    :ivar security_groups: names of the security groups of the ports; empty for
        the default group of the project
    """

    attach: values.Names
    security_groups: _SecurityGroups = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Detach(_PortStep):
    """Detach ports.

    :ivar detach: names of the servers
    """

    detach: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Move(_Checked):
    """Move servers to other hosts.

    :ivar host: the only host to consider; the filters run
    """

    host: values.HostName | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _ColdMove(_Move):
    """A move that must be confirmed or reverted.

    :ivar confirm: whether to confirm it immediately; None for yes, unless
        it is reverted
    :ivar revert: whether to revert it immediately
    """

    confirm: bool | None = None
    revert: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ColdMigrate(_ColdMove):
    """Cold-migrate servers.

    :ivar cold_migrate: the servers
    """

    cold_migrate: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resize(_ColdMove):
    """Resize servers.

    :ivar resize: the servers
    :ivar flavor: their new flavor
    :ivar same_host: whether they may stay on their host
    """

    resize: values.Names
    flavor: values.FlavorName
    same_host: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Confirm(_Checked):
    """Confirm resizes or cold migrations.

    :ivar confirm: the servers
    """

    confirm: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Revert(_Checked):
    """Revert resizes or cold migrations.

    :ivar revert: the servers
    """

    revert: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LiveMigrate(_Move):
    """Live-migrate servers.

    :ivar live_migrate: the servers
    """

    live_migrate: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evacuate(_Move):
    """Evacuate servers; their hosts are down from this step on.

    :ivar evacuate: the servers
    """

    evacuate: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shelve(_Checked):
    """Shelve and offload servers.

    :ivar shelve: the servers
    """

    shelve: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unshelve(_Move):
    """Unshelve servers.

    :ivar unshelve: the servers
    """

    unshelve: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Delete(_Checked):
    """Delete servers.

    :ivar delete: the servers
    """

    delete: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostDown(Step):
    """Stop compute services.

    :ivar host_down: their hosts
    """

    host_down: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostUp(Step):
    """Start compute services again.

    :ivar host_up: their hosts
    """

    host_up: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild(_Checked):
    """Rebuild servers.

    :ivar rebuild: the servers
    :ivar image: name of the new image; None for the old one
    """

    rebuild: values.Names
    image: values.ImageName | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Neutron(Step):
    """Change whether Neutron can be read.

    :ivar neutron: ``up``, ``stale`` (figures were read, but are too old from
        this step on) or ``down`` (figures were never read)
    """

    neutron: ty.Literal['up', 'stale', 'down']


#: Action -> type of its steps.
TYPES: Mapping[str, type[Step]] = {
    'boot': Boot,
    'delete': Delete,
    'cold_migrate': ColdMigrate,
    'resize': Resize,
    'confirm': Confirm,
    'revert': Revert,
    'live_migrate': LiveMigrate,
    'evacuate': Evacuate,
    'shelve': Shelve,
    'unshelve': Unshelve,
    'rebuild': Rebuild,
    'attach': Attach,
    'detach': Detach,
    'host_down': HostDown,
    'host_up': HostUp,
    'neutron': Neutron,
}
