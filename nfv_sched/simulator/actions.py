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

"""The steps of a cloud file, and what may be expected of them.

There is one type for each action.  As those of
:mod:`nfv_sched.simulator.model`, the types are all there is about the keys of
the file.
"""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.simulator.cloud_file import schema
from nfv_sched.simulator.cloud_file import values

_HostNames = ty.Annotated[tuple[values.HostName, ...], values.SOME_ITEMS,
                          schema.ONE_OR_MORE]
_SecurityGroups = ty.Annotated[tuple[values.SecurityGroupName, ...],
                               values.SOME_ITEMS]
_HostCounts = ty.Annotated[Mapping[values.HostName, values.Count],
                           values.SOME_KEYS]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerExpectation:
    """What is expected of a server. None: no expectation.

    :ivar placed: how many servers the step places, or True for all
    :ivar refused: how many it refuses, or True for all
    :ivar host: hosts of which every placed server is on one
    :ivar not_host: hosts on which no placed server is
    :ivar nodes: host NUMA node of each guest NUMA node
    :ivar nodes_in: host NUMA nodes of which every guest NUMA node is on one
    :ivar vswitch: ``local``, ``partial`` or ``remote``: which of the guest's
        NUMA nodes are where the virtual switch runs
    :ivar places: the same of each place
    :ivar pci: ``local``, ``partial`` or ``remote``: which of the guest's PCI
        devices are on its NUMA nodes
    :ivar pci_devices: how many PCI devices the guest has on each host NUMA
        node, or of none
    :ivar cores: how many physical cores the dedicated vCPUs are on
    :ivar reason: text in the reason of every refused server
    :ivar line: line of the file
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
    """What a step is expected to do.

    :ivar ports: ports of the virtual switch of hosts after the step
    :ivar rules: security-group rules on hosts after the step
    :ivar servers: expectations of single servers by name
    """

    ports: _HostCounts = dataclasses.field(default_factory=dict)
    rules: _HostCounts = dataclasses.field(default_factory=dict)
    servers: Mapping[values.ServerName, ty.Annotated[
        ServerExpectation, values.SOME_KEYS]] = dataclasses.field(
            default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the file.

    :ivar action: boot, delete, cold_migrate, ...
    :ivar number: position in the file, from 1
    :ivar line: line of the file
    :ivar targets: servers (hosts for host_down and host_up) it is about
    :ivar expect: what is expected, or None
    """

    action: str = schema.worked_out('')
    number: int = schema.worked_out(0)
    line: int = schema.line()
    targets: tuple[str, ...] = schema.worked_out(())
    expect: Expectation | None = schema.worked_out(None)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Checked(Step):
    """A step of which something may be expected."""

    expect: ty.Annotated[Expectation, values.SOME_KEYS] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Boot(_Checked):
    """New servers.

    :ivar boot: their name
    :ivar flavor: their flavor
    :ivar count: how many there are; None for one without a number
    :ivar multi_create: whether one request asks for all
    :ivar image: their image
    :ivar networks: networks of their ports, one each
    :ivar security_groups: security groups of the ports; none stands for the
        default group of the project
    :ivar host: host asked for; the filters still decide
    :ivar force: host asked for past the filters
    :ivar ignore_hosts: hosts left out
    :ivar availability_zone: availability zone asked for
    :ivar group: their server group
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
class _Ports(_Checked):
    """Ports that come or go.

    :ivar network: their network
    :ivar count: how many there are
    """

    network: values.NetworkName
    count: ty.Annotated[int, values.within(1, 1000)] = 1

    @property
    def networks(self) -> tuple[str, ...]:
        """The network of each port."""
        return (self.network,) * self.count


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Attach(_Ports):
    """New ports.

    :ivar attach: servers that get them
    :ivar security_groups: their security groups; none stands for the default
        group of the project
    """

    attach: values.Names
    security_groups: _SecurityGroups = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Detach(_Ports):
    """Ports taken away.

    :ivar detach: servers that lose them
    """

    detach: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Move(_Checked):
    """Servers that go to another host.

    :ivar host: host asked for; the filters still decide
    """

    host: values.HostName | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _ColdMove(_Move):
    """A move that is to be confirmed.

    :ivar confirm: whether that is done at once; None: unless it is reverted
    :ivar revert: whether it is reverted at once
    """

    confirm: bool | None = None
    revert: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ColdMigrate(_ColdMove):
    """A cold migration.

    :ivar cold_migrate: the servers
    """

    cold_migrate: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resize(_ColdMove):
    """A resize.

    :ivar resize: the servers
    :ivar flavor: their new flavor
    :ivar same_host: whether they may stay on their host
    """

    resize: values.Names
    flavor: values.FlavorName
    same_host: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Confirm(_Checked):
    """A confirmation of resizes or cold migrations.

    :ivar confirm: the servers
    """

    confirm: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Revert(_Checked):
    """The end of resizes or cold migrations where they began.

    :ivar revert: the servers
    """

    revert: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LiveMigrate(_Move):
    """A live migration.

    :ivar live_migrate: the servers
    """

    live_migrate: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evacuate(_Move):
    """An evacuation; the hosts are down from now on.

    :ivar evacuate: the servers
    """

    evacuate: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shelve(_Checked):
    """Servers shelved and offloaded.

    :ivar shelve: the servers
    """

    shelve: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unshelve(_Move):
    """Shelved servers that come back.

    :ivar unshelve: the servers
    """

    unshelve: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Delete(_Checked):
    """Servers deleted.

    :ivar delete: the servers
    """

    delete: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostDown(Step):
    """Compute services that stop.

    :ivar host_down: their hosts
    """

    host_down: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostUp(Step):
    """Compute services that start again.

    :ivar host_up: their hosts
    """

    host_up: values.Names


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild(_Checked):
    """Servers rebuilt.

    :ivar rebuild: the servers
    :ivar image: their new image; None for the old one
    """

    rebuild: values.Names
    image: values.ImageName | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Neutron(Step):
    """Neutron comes or goes.

    :ivar neutron: ``up``, ``stale`` (read up to now, not any more) or ``down``
        (never read)
    """

    neutron: ty.Literal['up', 'stale', 'down']


#: Type of a step by its action.
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
