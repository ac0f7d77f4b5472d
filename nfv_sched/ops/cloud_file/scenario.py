# SPDX-License-Identifier: Apache-2.0
"""A snapshot with what a simulation adds to it: steps, and names for them."""

import collections
from collections.abc import Iterable, Mapping
import dataclasses
import functools
import typing as ty
import uuid

import os_traits

from nfv_sched.numa import rule
from nfv_sched.ops.cloud_file import actions
from nfv_sched.ops.snapshot import occupied
from nfv_sched.ops.snapshot import snapshot
from nfv_sched.rules import place as rule_place

NAMESPACE = uuid.UUID('4f1d3f3c-5f0b-5d0a-9f57-0f6f1f1b7a11')
NORMAL = 'normal'
#: How Neutron shows DHCP servers and routers: by agents, by gateway ports of
#: routers, or by their ports only.
NetworkService = ty.Literal['ovs', 'ovn', 'none']

#: Cell of a host of which none is known.
CELL = 'cell1'
#: Virtual machines of a host of which nothing else is known: architecture,
#: hypervisor and mode.
X86_64 = (('x86_64', 'kvm', 'hvm'),)
#: Traits that Nova's libvirt driver always reports.
DRIVER_TRAITS = frozenset((os_traits.COMPUTE_SOCKET_PCI_NUMA_AFFINITY,))

_UNKNOWN = 'unknown'
# Chosen by the user who asks, not by the cloud.
_OPTIONS_OF_USER = {('nfv_sched', 'expose_reasons')}


def stable_uuid(kind: str, name: str) -> str:
    """Return a UUID that is the same in every run.

    :param kind: kind of the object
    :param name: name of the object, unique in its kind
    """
    return str(uuid.uuid5(NAMESPACE, f'{kind}:{name}'))


@dataclasses.dataclass(frozen=True, slots=True)
class SecurityGroup:
    """A security group.

    :ivar uuid: its UUID
    :ivar rules: number of its rules
    """

    uuid: str
    rules: int


@functools.lru_cache(maxsize=1024)
def security_groups_of(rules: int | None) -> tuple[SecurityGroup, ...]:
    """Return security groups with so many rules in sum.

    A snapshot has the number of rules of a port, not its groups.
    """
    if not rules:
        return ()
    return (SecurityGroup(
        stable_uuid('security group', f'of {rules} rules'), rules),)


#: The network of a port that is asked for, with the vNIC type of the port, and
#: its security groups.
Plug = tuple[snapshot.Network, tuple[SecurityGroup, ...]]


class HostServices(ty.NamedTuple):
    """What the network puts on a host besides the ports of servers.

    :ivar dhcp_servers: each takes a port of the virtual switch
    :ivar router_ports: ports of the virtual switch that each router takes
    :ivar other_ports: number of further ports of the virtual switch
    :ivar other_rules: security group rules of these
    """

    dhcp_servers: int = 0
    routers: int = 0
    router_ports: int = 1
    other_ports: int = 0
    other_rules: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Values of Nova's configuration for hosts of which nothing else is said.

    :ivar switch_label: label of NUMA nodes with a virtual switch
    :ivar node_prefix: prefix of the labels of single NUMA nodes
    :ivar cpu_ratio: shared vCPUs per shared CPU
    :ivar ram_ratio: memory overcommitment
    :ivar disk_ratio: disk overcommitment
    :ivar zone: availability zone of hosts whose aggregates have none
    """

    switch_label: str = 'nfv_vswitch'
    node_prefix: str = 'nfv_node'
    cpu_ratio: float = 4.0
    ram_ratio: float = 1.0
    disk_ratio: float = 1.0
    zone: str = 'nova'


#: Those of Nova and nfv-sched.
DEFAULTS = Defaults()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value of an option of Nova's configuration.

    :ivar group: ``DEFAULT`` for options without a group
    :ivar line: line in the cloud file; 0 for none
    """

    group: str
    name: str
    value: ty.Any
    line: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A cloud, and what is done there.

    :ivar cloud: the cloud before the first step
    :ivar path: what error messages name as the source
    :ivar steps: the steps in order
    :ivar settings: Nova's configuration
    :ivar new_hosts: whether nova-compute reports the PCI devices of the hosts
        for the first time; their tags are then those of ``[pci] device_spec``
    :ivar images: image properties by the name that steps have for the image
    :ivar networks: networks by the name that steps have for them, each with
        the vNIC type of its ports
    :ivar security_groups: security groups, likewise
    :ivar server_groups: server groups, likewise
    :ivar network_service: how Neutron shows DHCP servers and routers
    :ivar services: name of each host -> what the network puts there
    :ivar places: name of each host -> NUMA nodes of each of its places
    :ivar alike: name of a host -> what it and hosts like it are called
    """

    cloud: snapshot.Cloud
    path: str = 'the snapshot'
    steps: tuple[actions.Step, ...] = ()
    settings: tuple[Setting, ...] = ()
    new_hosts: bool = False
    images: Mapping[str, Mapping[str, ty.Any]] = dataclasses.field(
        default_factory=dict)
    networks: Mapping[str, snapshot.Network] = dataclasses.field(
        default_factory=dict)
    security_groups: Mapping[str, SecurityGroup] = dataclasses.field(
        default_factory=dict)
    server_groups: Mapping[str, snapshot.Group] = dataclasses.field(
        default_factory=dict)
    network_service: NetworkService = 'none'
    services: Mapping[str, HostServices] = dataclasses.field(
        default_factory=dict)
    places: Mapping[str, Mapping[str, tuple[int, ...]]] = dataclasses.field(
        default_factory=dict)
    alike: Mapping[str, str] = dataclasses.field(default_factory=dict)


def of_snapshot(cloud: snapshot.Cloud) -> Scenario:
    """Return the scenario of a snapshot, without steps."""
    return Scenario(
        cloud=dataclasses.replace(cloud, aggregates=tuple([
            each if each.uuid else dataclasses.replace(
                each, uuid=stable_uuid('aggregate', each.name))
            for each in cloud.aggregates])),
        settings=tuple([
            Setting(group=section, name=name, value=value)
            for section, options in cloud.options.items()
            for name, value in options.items()
            if (section, name) not in _OPTIONS_OF_USER]),
        server_groups=groups_by_name(cloud),
        network_service=_network_service(cloud.hosts),
        services=services_of(cloud), places=places_of(cloud))


def _network_service(hosts: Iterable[snapshot.Host]) -> NetworkService:
    networks = [host.network for host in hosts if host.network is not None]
    if any(network.dhcp_servers is not None for network in networks):
        return 'ovs'
    return 'ovn' if any(network.routers for network in networks) else 'none'


def hosts_of(cloud: snapshot.Cloud) -> list[snapshot.Host]:
    """Return the hosts that can be simulated: one of each name.

    Of the compute nodes of one service, as Ironic has them, the first.
    """
    of_name: dict[str, snapshot.Host] = {}
    for host in cloud.hosts:
        of_name.setdefault(host.name, host)
    return list(of_name.values())


def unique_names(
    things: Iterable[snapshot.Server | snapshot.Group],
) -> dict[str, str]:
    """Return the UUID of each thing with a name that no other has.

    Its own name; if others have that, too, the name and part of its UUID; if
    there is no name, its UUID.

    :param things: servers, or server groups
    """
    things = list(things)
    count = collections.Counter(thing.name for thing in things)
    used = set(count)
    names = {}
    for thing in things:
        name = thing.name
        if name and count[name] > 1:
            name = f'{name}-{thing.uuid[:8]}'
            if name in used:
                name = ''
        names[thing.uuid] = name or thing.uuid
        used.add(names[thing.uuid])
    return names


def groups_by_name(cloud: snapshot.Cloud) -> dict[str, snapshot.Group]:
    """Return the server groups by names of :func:`unique_names`."""
    names = unique_names(cloud.groups)
    return {names[group.uuid]: group for group in cloud.groups}


def server_names(cloud: snapshot.Cloud) -> dict[str, list[str]]:
    """Return by which names steps can mean the servers of a snapshot.

    :returns: name in Nova, or UUID -> names of :func:`unique_names`
    """
    names: dict[str, list[str]] = {}
    unique = unique_names(cloud.servers)
    for server in cloud.servers:
        for name in dict.fromkeys((server.name, server.uuid)):
            names.setdefault(name, []).append(unique[server.uuid])
    return names


# Labels


def label_names(cloud: snapshot.Cloud) -> rule.Names:
    """Return the names of the labels of NUMA nodes.

    Files that are not from a reader of Nova's databases may lack them.
    """
    options = cloud.options.get('nfv_sched', {})
    return rule.Names(
        options.get('vswitch_label') or DEFAULTS.switch_label,
        options.get('node_label_prefix') or DEFAULTS.node_prefix)


def places_of(
    cloud: snapshot.Cloud,
) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the NUMA nodes of each place of each host, by their names."""
    names = label_names(cloud)
    places: dict[str, dict[str, tuple[int, ...]]] = {}
    for host in hosts_of(cloud):
        of_host = places[host.name] = {}
        for node in host.nodes or ():
            for label in sorted(node.physnets - {names.vswitch}):
                place = rule_place.place_of(label, names)
                if place is not None:
                    of_host[place] = (*of_host.get(place, ()), node.number)
    return places


# Networks


def network_of(port: snapshot.Port) -> snapshot.Network:
    """Return the network of a port; its vNIC type is that of the port."""
    return snapshot.Network(
        id=port.network or stable_uuid('network', _UNKNOWN),
        name=port.network or _UNKNOWN,
        physnet=port.physnet, vnic_type=port.vnic_type)


def ports_of(cloud: snapshot.Cloud) -> Iterable[snapshot.Port]:
    """Yield the ports of all servers."""
    for server in cloud.servers:
        yield from server.ports or ()


def services_of(cloud: snapshot.Cloud) -> dict[str, HostServices]:
    """Return what the network puts on each host besides servers' ports."""
    totals = occupied.totals(cloud)
    return {host.name: _services(host.network, totals[host.name])
            for host in hosts_of(cloud) if host.network is not None}


def _services(network: snapshot.HostNetwork,
              totals: occupied.Totals) -> HostServices:
    dhcp, routers = network.dhcp_servers or 0, network.routers or 0
    ports = max(0, (network.vswitch_ports or 0) - totals.ports)
    ports = max(0, ports - dhcp)
    # The number of routers is known, that of their ports is not.
    router_ports = 1 if ports >= routers else 0
    return HostServices(
        dhcp, routers, router_ports, ports - router_ports * routers,
        max(0, (network.security_rules or 0) - totals.rules))


# Aggregates


def aggregates_by_host(
    aggregates: Iterable[snapshot.Aggregate],
) -> dict[str, set[str]]:
    """Return the UUIDs of the aggregates of each host, by its name."""
    uuids: dict[str, set[str]] = {}
    for aggregate in aggregates:
        for name in aggregate.hosts:
            uuids.setdefault(name, set()).add(aggregate.uuid)
    return uuids


def zones_of(aggregates: Iterable[snapshot.Aggregate]) -> dict[str, str]:
    """Return the availability zone of each host that an aggregate gives one.

    :returns: by name of the host; the first aggregate counts
    """
    zones: dict[str, str] = {}
    for aggregate in aggregates:
        zone = aggregate.metadata.get('availability_zone')
        if zone:
            for name in aggregate.hosts:
                zones.setdefault(name, zone)
    return zones
