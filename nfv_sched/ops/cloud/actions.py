# SPDX-License-Identifier: Apache-2.0
"""Define the steps of a cloud file and their expectations.

The fields of each type are the keys of the file, as in
:mod:`nfv_sched.ops.cloud.cloud_file.model`, where keys are defined only once.
The key of the action itself is a field only where its value is not a list of
names of servers or hosts.
"""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import values

_HostNames = ty.Annotated[tuple[values.HostName, ...], values.NOT_EMPTY,
                          values.ONE_OR_MORE]
_SecurityGroups = ty.Annotated[tuple[values.SecurityGroupName, ...],
                               values.NOT_EMPTY]
_HostCounts = ty.Annotated[Mapping[values.HostName, values.Count],
                           values.NOT_EMPTY]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerExpectation:
    """Expectations of a server; None means no expectation."""

    #: number of servers that the step places, or True for all
    placed: values.Count | bool | None = None
    #: number of servers that it refuses, or True for all
    refused: values.Count | bool | None = None
    #: every placed server is on one of these hosts
    host: _HostNames | None = None
    #: no placed server is on one of these hosts
    not_host: _HostNames | None = None
    #: host NUMA node of each guest NUMA node
    nodes: values.Nodes | None = None
    #: every guest NUMA node is on one of these host NUMA nodes
    nodes_in: values.Nodes | None = None
    #: guest NUMA nodes that are on NUMA nodes of the virtual switch: ``local``
    #: (all), ``partial`` (some) or ``remote`` (none)
    vswitch: values.Locality | None = None
    #: name of a place -> guest NUMA nodes that are on its NUMA nodes, likewise
    places: ty.Annotated[Mapping[values.PlaceName, values.Locality],
                         values.NOT_EMPTY] | None = None
    #: PCI devices of the server that are on its own NUMA nodes: ``local``,
    #: ``partial`` or ``remote``
    pci: values.Locality | None = None
    #: host NUMA node -> number of the server's PCI devices there; the key None
    #: is for devices without a NUMA node
    pci_devices: Mapping[values.DeviceNode, values.Count] | None = None
    #: number of physical cores of the pinned vCPUs
    cores: values.Count | None = None
    #: text that the reason of every refused server contains
    reason: values.Name | None = None

    line: int = documents.internal(default=0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Expectation(ServerExpectation):
    #: host name -> number of its virtual switch ports after the step
    ports: _HostCounts = values.empty_mapping()
    #: host name -> number of its security group rules after the step
    rules: _HostCounts = values.empty_mapping()
    #: server name -> expectations of this server
    servers: Mapping[values.ServerName, ty.Annotated[
        ServerExpectation, values.NOT_EMPTY]] = values.empty_mapping()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    action: str = documents.internal(default='')  #: key of :data:`TYPES`
    #: position in the file, from 1
    number: int = documents.internal(default=0)
    line: int = documents.internal(default=0)
    #: names of the servers (hosts for host_down and host_up)
    targets: tuple[str, ...] = documents.internal(default=())
    expect: Expectation | None = documents.internal(default=None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerStep(Step):
    """A step on servers, which may have expectations."""

    expect: ty.Annotated[Expectation, values.NOT_EMPTY] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boot(ServerStep):
    #: name of the servers; a number is added if ``count`` is given
    boot: values.Name
    flavor: values.FlavorName
    #: number of servers; None for one, without a number
    count: ty.Annotated[int, values.within(1, 100_000)] | None = None
    multi_create: bool = False  #: whether one request creates all of them
    image: values.ImageName | None = None
    #: names of networks; each server gets a port on each
    networks: tuple[values.NetworkName, ...] = ()
    #: names of the security groups of the ports; empty for the default group
    #: of the project
    security_groups: _SecurityGroups = ()
    #: the only host to consider; the filters run
    host: values.HostName | None = None
    #: forced host; the filters do not run
    force: values.HostName | None = None
    ignore_hosts: tuple[values.HostName, ...] = ()
    availability_zone: values.Name | None = None
    group: values.ServerGroupName | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PortStep(ServerStep):
    network: values.NetworkName
    count: ty.Annotated[int, values.within(1, 1000)] = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attach(PortStep):
    #: names of the security groups of the ports; empty for the default group
    #: of the project
    security_groups: _SecurityGroups = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveStep(ServerStep):
    """Move servers to other hosts; evacuated hosts are down from then on."""

    #: the only host to consider; the filters run
    host: values.HostName | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ColdMove(MoveStep):
    """A move that must be confirmed or reverted."""

    #: whether to confirm it immediately; None for yes, unless it is reverted
    confirm: bool | None = None
    revert: bool = False  #: whether to revert it immediately


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resize(ColdMove):
    flavor: values.FlavorName
    same_host: bool = False  #: whether they may stay on their host


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild(ServerStep):
    """Rebuild servers, from the old image if ``image`` is None."""

    image: values.ImageName | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Neutron(Step):
    """Change whether Neutron can be read."""

    #: ``up``, ``stale`` (figures were read, but are too old from this step on)
    #: or ``down`` (figures were never read)
    neutron: ty.Literal['up', 'stale', 'down']


#: Types of steps on hosts: stop and start their compute services.
HOST_TYPES: Mapping[str, type[Step]] = {'host_down': Step, 'host_up': Step}
#: Action -> type of its steps.
TYPES: Mapping[str, type[Step]] = {
    'boot': Boot, 'delete': ServerStep, 'cold_migrate': ColdMove,
    'resize': Resize, 'confirm': ServerStep, 'revert': ServerStep,
    'live_migrate': MoveStep, 'evacuate': MoveStep, 'shelve': ServerStep,
    'unshelve': MoveStep, 'rebuild': Rebuild, 'attach': Attach,
    'detach': PortStep, **HOST_TYPES, 'neutron': Neutron}
