# SPDX-License-Identifier: Apache-2.0
"""Define scenarios: snapshots with steps, and with names for the steps."""

import collections
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
import typing as ty
import uuid

import os_resource_classes as orc
import os_traits

from nfv_sched.fit.numa import rule
from nfv_sched.fit.rules import place as rule_place
from nfv_sched.limits.names import is_of_node
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import values

NAMESPACE = uuid.UUID('4f1d3f3c-5f0b-5d0a-9f57-0f6f1f1b7a11')
NORMAL = 'normal'
#: Source of DHCP servers and routers in Neutron: agents, gateway ports of
#: routers, or their ports only.
NetworkService = ty.Literal['ovs', 'ovn', 'none']

#: Nova cell of hosts whose cell is unknown.
CELL = 'cell1'
#: Default supported_instances: architecture, hypervisor and VM mode.
X86_64 = (('x86_64', 'kvm', 'hvm'),)


def stable_uuid(kind: str, name: str) -> str:
    """Return a UUID that is equal in every run, for a kind and name."""
    return str(uuid.uuid5(NAMESPACE, f'{kind}:{name}'))


@dataclasses.dataclass(frozen=True, slots=True)
class SecurityGroup:
    uuid: str
    rules: int


@functools.lru_cache(maxsize=1024)
def security_groups_of(rules: int | None) -> tuple[SecurityGroup, ...]:
    """Return groups in place of those of a port, which no snapshot has."""
    if not rules:
        return ()
    return (SecurityGroup(
        stable_uuid('security group', f'of {rules} rules'), rules),)


#: A requested port: its network, with the vNIC type of the port, and its
#: security groups.
Plug = tuple[snapshot.Network, tuple[SecurityGroup, ...]]


class HostServices(ty.NamedTuple):
    """Virtual switch ports on a host that do not belong to servers."""

    dhcp_servers: int = 0  #: number of DHCP servers, each with one port
    routers: int = 0
    router_ports: int = 1  #: number of ports of each router
    other_ports: int = 0
    other_rules: int = 0  #: number of security group rules of the other ports


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Defaults of Nova's configuration for the hosts of a cloud file."""

    #: label of NUMA nodes with a virtual switch
    switch_label: str = 'nfv_vswitch'
    node_prefix: str = 'nfv_node'  #: prefix of the labels of single NUMA nodes
    cpu_ratio: float = 4.0  #: shared vCPUs per shared CPU
    ram_ratio: float = 1.0
    disk_ratio: float = 1.0
    #: availability zone of hosts whose aggregates have none
    zone: str = 'nova'


#: The defaults of Nova and nfv-sched.
DEFAULTS = Defaults()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    cloud: snapshot.Cloud  #: the cloud before the first step
    path: str = 'the snapshot'  #: source of the cloud, for error messages
    steps: tuple[actions.Step, ...] = ()  #: the steps in order
    #: number of the steps before those of a sequence; None without one
    own_steps: int | None = None
    #: (group, option) of Nova's configuration -> its line in a file of the
    #: user; not those of a snapshot
    lines: Mapping[tuple[str, str], int] = values.empty_mapping()
    #: whether nova-compute reports the PCI devices of the hosts for the first
    #: time; their tags are then those of ``[pci] device_spec``
    new_hosts: bool = False
    #: image properties by name of the image in steps
    images: Mapping[str, Mapping[str, ty.Any]] = values.empty_mapping()
    #: networks by their names in steps, each with the vNIC type of its ports
    networks: Mapping[str, snapshot.Network] = values.empty_mapping()
    #: security groups by their names in steps
    security_groups: Mapping[str, SecurityGroup] = values.empty_mapping()
    #: server groups by their names in steps
    server_groups: Mapping[str, snapshot.Group] = values.empty_mapping()
    #: source of DHCP servers and routers in Neutron
    network_service: NetworkService = 'none'
    #: host name -> ports that do not belong to servers, where the source says
    #: more of them than a snapshot has
    services: Mapping[str, HostServices] = values.empty_mapping()
    #: host name -> name of place -> its NUMA nodes
    places: Mapping[str, Mapping[str, values.Nodes]] = values.empty_mapping()
    #: host name -> name of its group of equal hosts
    alike: Mapping[str, str] = values.empty_mapping()


def of_snapshot(cloud: snapshot.Cloud) -> Scenario:
    cloud = _without_nodes(cloud)
    networks = [host.network for host in cloud.hosts if host.network]
    return Scenario(
        cloud=dataclasses.replace(cloud, aggregates=tuple([
            each if each.uuid else dataclasses.replace(
                each, uuid=stable_uuid('aggregate', each.name))
            for each in cloud.aggregates])),
        server_groups=groups_by_name(cloud),
        network_service=(
            'ovs' if any(each.dhcp_servers is not None for each in networks)
            else 'ovn' if any(each.routers for each in networks) else 'none'),
        places=places_of(cloud))


def _without_nodes(cloud: snapshot.Cloud) -> snapshot.Cloud:
    """Return a cloud without what the ledger has of host NUMA nodes.

    Who is decided about alone finds there what the hosts report, and what is
    reserved would not follow the servers that are moved.
    """
    if not any(is_of_node(name) for host in cloud.hosts
               for provider in host.providers
               for name in provider.inventories):
        return cloud

    def without(amounts):
        return {name: amount for name, amount in amounts.items()
                if not is_of_node(name)}

    def held(allocations):
        return {uuid: rest for uuid, amounts in allocations.items()
                if (rest := without(amounts))}

    return dataclasses.replace(
        cloud, hosts=tuple([dataclasses.replace(host, providers=tuple([
            dataclasses.replace(
                provider, inventories=without(provider.inventories))
            for provider in host.providers])) for host in cloud.hosts]),
        servers=tuple([
            server if server.allocations is None else dataclasses.replace(
                server, allocations=held(server.allocations))
            for server in cloud.servers]),
        consumers=cloud.consumers and {
            consumer: held(allocations)
            for consumer, allocations in cloud.consumers.items()})


def hosts_of(cloud: snapshot.Cloud) -> list[snapshot.Host]:
    """Return the first compute node of each service; Ironic has several."""
    of_name: dict[str, snapshot.Host] = {}
    for host in cloud.hosts:
        of_name.setdefault(host.name, host)
    return list(of_name.values())


def unique_names(servers_or_groups: Iterable[
        snapshot.Server | snapshot.Group]) -> dict[str, str]:
    """Return a unique name for each server or server group, by UUID."""
    servers_or_groups = list(servers_or_groups)
    count = collections.Counter(item.name for item in servers_or_groups)
    used = set(count)
    names = {}
    for item in servers_or_groups:
        name = item.name
        if name and count[name] > 1:
            name = f'{name}-{item.uuid[:8]}'
            if name in used:
                name = ''
        names[item.uuid] = name or item.uuid
        used.add(names[item.uuid])
    return names


def groups_by_name(cloud: snapshot.Cloud) -> dict[str, snapshot.Group]:
    names = unique_names(cloud.groups)
    return {names[group.uuid]: group for group in cloud.groups}


def server_names(cloud: snapshot.Cloud) -> dict[str, list[str]]:
    """Return name in Nova, or UUID -> unique names of servers, for steps."""
    names: dict[str, list[str]] = {}
    unique = unique_names(cloud.servers)
    for server in cloud.servers:
        for name in dict.fromkeys((server.name, server.uuid)):
            names.setdefault(name, []).append(unique[server.uuid])
    return names


def reported_provider(host: snapshot.Host, reserved_memory: int,
                      aggregates: Iterable[str] = ()) -> snapshot.Provider:
    """Return the provider that nova-compute reports; memory in MiB."""
    nodes = host.nodes or ()
    # With vcpu_pin_set all CPUs are reported as VCPU; Placement counts pinned
    # vCPUs as such.
    dedicated = 0 if host.legacy_pinning else sum(
        len(node.dedicated) for node in nodes)
    traits = {os_traits.COMPUTE_SOCKET_PCI_NUMA_AFFINITY}
    if any(len(core) > 1 for node in nodes for core in node.siblings):
        traits.add(os_traits.HW_CPU_HYPERTHREADING)
    if not host.enabled:
        traits.add(os_traits.COMPUTE_STATUS_DISABLED)
    return snapshot.Provider(
        uuid=host.uuid, name=host.name, inventories={
            name: snapshot.Inventory.of_total(total, reserved, ratio=ratio)
            for name, total, reserved, ratio in (
                (orc.MEMORY_MB, host.memory, reserved_memory,
                 host.memory_ratio),
                (orc.VCPU, sum(len(node.shared) for node in nodes), 0,
                 host.cpu_ratio),
                (orc.PCPU, dedicated, 0, 1.0),
                (orc.DISK_GB, host.disk, 0, host.disk_ratio))
            if total or name == orc.MEMORY_MB},
        traits=frozenset(traits), aggregates=frozenset(aggregates))


def label_names(cloud: snapshot.Cloud) -> rule.Names:
    # A snapshot from the API has no options.
    options = cloud.options.get('nfv_sched', {})
    return rule.Names(
        options.get('vswitch_label') or DEFAULTS.switch_label,
        options.get('node_label_prefix') or DEFAULTS.node_prefix)


def places_of(cloud: snapshot.Cloud) -> dict[str, dict[str, tuple[int, ...]]]:
    names = label_names(cloud)
    places: dict[str, dict[str, tuple[int, ...]]] = {}
    for host in hosts_of(cloud):
        of_host = places[host.name] = {}
        for node in host.nodes or ():
            for label in sorted(node.physnets - {names.vswitch}):
                if (place := rule_place.place_of(label, names)) is not None:
                    of_host[place] = (*of_host.get(place, ()), node.number)
    return places


def network_of(port: snapshot.Port) -> snapshot.Network:
    return snapshot.Network(
        id=port.network or stable_uuid('network', 'unknown'),
        name=port.network or 'unknown',
        physnet=port.physnet, vnic_type=port.vnic_type)


def ports_of(cloud: snapshot.Cloud) -> Iterable[snapshot.Port]:
    for server in cloud.servers:
        yield from server.ports or ()


def services_of(scenario: Scenario) -> Mapping[str, HostServices]:
    """Return the ports that do not belong to servers, by name of host."""
    if scenario.services:
        return scenario.services
    totals = occupied.totals(scenario.cloud)
    services = {}
    for host in hosts_of(scenario.cloud):
        if host.network is None:
            continue
        dhcp = host.network.dhcp_servers or 0
        routers = host.network.routers or 0
        of_servers = totals[host.name]
        ports = max(0, (host.network.vswitch_ports or 0) - of_servers.ports
                    - dhcp)
        # The number of ports of a router is unknown: count one, if possible.
        router_ports = 1 if ports >= routers else 0
        services[host.name] = HostServices(
            dhcp, routers, router_ports, ports - router_ports * routers,
            max(0, (host.network.security_rules or 0) - of_servers.rules))
    return services


def aggregates_by_host(aggregates: Iterable[snapshot.Aggregate],
                       ) -> Mapping[str, list[snapshot.Aggregate]]:
    of_host = collections.defaultdict[str, list[snapshot.Aggregate]](list)
    for aggregate in aggregates:
        for name in aggregate.hosts:
            of_host[name].append(aggregate)
    return of_host


def zones_of(aggregates: Sequence[snapshot.Aggregate]) -> dict[str, str]:
    """Return availability zones by host name, from the first aggregate."""
    return {name: zone for aggregate in reversed(aggregates)
            if (zone := aggregate.metadata.get('availability_zone'))
            for name in aggregate.hosts}
