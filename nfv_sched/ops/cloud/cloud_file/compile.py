# SPDX-License-Identifier: Apache-2.0
"""Compile the checked contents of a cloud file to a snapshot and steps."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import json
import typing as ty

from nfv_sched.ops.cloud.cloud_file import hosts as cloud_hosts
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot


def scenario(cloud: model.CloudFile, path: str,
             defaults: scenarios.Defaults) -> scenarios.Scenario:
    """Compile a cloud file, with all that the loader sets in ``hosts``."""
    aggregates = tuple([snapshot.Aggregate(
        name=each.name, metadata=each.metadata, hosts=each.hosts,
        uuid=scenarios.stable_uuid('aggregate', each.name))
        for each in cloud.aggregates])
    of_host = scenarios.aggregates_by_host(aggregates)
    zones = scenarios.zones_of(aggregates)
    zone = str(cloud.options.get('DEFAULT', {}).get(
        'default_availability_zone', defaults.zone))
    named = _named(cloud)
    service = cloud.network_service or (
        'ovs' if any(group.dhcp_servers or group.routers.count
                     for group in cloud.hosts) else 'none')
    agents, network_services = _agents(cloud, service)
    hosts, services, places, alike = [], {}, {}, {}
    for group in cloud.hosts:
        template = _template(group, service)
        for name in group.names:
            hosts.append(_host(
                name, template, of_host[name], zones.get(name, zone)))
            services[name] = scenarios.HostServices(
                group.dhcp_servers, group.routers.count,
                group.routers.ports, group.other_ports)
            places[name] = group.places
            alike[name] = group.name
    return scenarios.Scenario(
        cloud=snapshot.Cloud(
            taken='', source=path, options=_merged({
                'nfv_sched': {'vswitch_label': defaults.switch_label,
                              'node_label_prefix': defaults.node_prefix}},
                _options(cloud)),
            hosts=tuple(hosts), flavors=_flavors(cloud),
            aggregates=aggregates,
            groups=tuple(named['server_groups'].values()), moves=(),
            consumers={}, networks=tuple(named['networks'].values()),
            network_agents=agents, network_services=network_services),
        new_hosts=True, network_service=service, services=services,
        places=places, alike=alike, **named)


def _named(cloud: model.WhatIf) -> dict[str, dict[str, ty.Any]]:
    """Return what the steps of a file can name, by field of a scenario."""
    return {
        'images': dict(cloud.images),
        'networks': {
            name: snapshot.Network(
                id=scenarios.stable_uuid('network', name), name=name,
                physnet=each.physical_network, vnic_type=each.vnic_type,
                numa_policy=each.numa_policy, trusted=each.trusted)
            for name, each in cloud.networks.items()},
        'security_groups': {
            name: scenarios.SecurityGroup(
                scenarios.stable_uuid('security group', name),
                each.ingress + each.egress)
            for name, each in cloud.security_groups.items()},
        'server_groups': {
            name: snapshot.Group(
                uuid=scenarios.stable_uuid('group', name), name=name,
                policy=each.policy,
                rules={} if each.max_server_per_host is None else {
                    'max_server_per_host': str(each.max_server_per_host)})
            for name, each in cloud.server_groups.items()}}


def with_additions(start: scenarios.Scenario,
                   more: model.WhatIf) -> scenarios.Scenario:
    """Return a snapshot with the additions of a file of steps.

    The name of a network of the snapshot in steps is its UUID, with the vNIC
    type if that is not ``normal``: in a cloud file all ports of a network have
    the same vNIC type.
    """
    networks: dict[str, snapshot.Network] = {}
    for port in scenarios.ports_of(start.cloud):
        kind = '' if port.vnic_type == scenarios.NORMAL else (
            f'/{port.vnic_type}')
        network = scenarios.network_of(port)
        networks.setdefault(f'{network.name}{kind}', network)
    start = dataclasses.replace(start, networks=networks)
    flavors = {flavor.name: flavor for flavor in (
        *start.cloud.flavors, *_flavors(more))}
    return dataclasses.replace(
        start,
        cloud=dataclasses.replace(
            start.cloud, flavors=tuple(flavors.values()),
            options=_merged(start.cloud.options, _options(more))),
        **{field: {**getattr(start, field), **added}
           for field, added in _named(more).items()})


_Options = Mapping[str, Mapping[str, ty.Any]]


def _merged(first: _Options, more: _Options) -> _Options:
    """Return the options of both; those of the second count."""
    return {group: {**first.get(group, {}), **more.get(group, {})}
            for group in (*first, *more)}


def _options(cloud: model.WhatIf) -> _Options:
    """Return the options of a file, and those that other keys mean."""
    more: dict[str, dict[str, ty.Any]] = {'filter_scheduler': {}, 'pci': {}}
    if cloud.filters is not None:
        more['filter_scheduler']['enabled_filters'] = list(cloud.filters)
    if isinstance(cloud, model.CloudFile):
        if cloud.pci_in_placement is not None:
            more['pci']['report_in_placement'] = cloud.pci_in_placement
            more['filter_scheduler']['pci_in_placement'] = (
                cloud.pci_in_placement)
        if cloud.pci_aliases is not None:
            more['pci']['alias'] = [
                json.dumps(cloud_hosts.pci_alias(name, alias))
                for name, alias in cloud.pci_aliases.items()]
    return _merged(cloud.options, {
        group: options for group, options in more.items() if options})


def _flavors(cloud: model.WhatIf) -> tuple[snapshot.Flavor, ...]:
    return tuple([snapshot.Flavor(
        name=name, id=name, vcpus=each.vcpus, memory=each.memory,
        disk=each.disk, extra_specs=each.extra_specs)
        for name, each in cloud.flavors.items()])


def _template(group: model.HostGroup,
              service: scenarios.NetworkService) -> snapshot.Host:
    """Return an unused host of a group, without name, UUID and aggregates."""
    host = snapshot.Host(
        name='', hypervisor='', uuid='', cell=scenarios.CELL,
        enabled=not group.disabled,
        hypervisor_version=8002000, supported=scenarios.X86_64,
        cpu_info=json.dumps({'arch': 'x86_64'}), stats={
            'num_instances': '0', 'io_workload': '0', 'failed_builds': '0'},
        # With vcpu_pin_set the same CPUs are shared and dedicated.
        vcpus=sum(len(node.shared | node.dedicated) for node in group.nodes),
        memory=sum(node.memory for node in group.nodes),
        memory_used=group.reserved_memory, disk=group.disk,
        cpu_ratio=group.cpu_allocation_ratio,
        memory_ratio=group.ram_allocation_ratio,
        disk_ratio=group.disk_allocation_ratio, nodes=group.nodes,
        devices=group.devices,
        network=snapshot.HostNetwork(
            vswitch_ports=(group.dhcp_servers + group.other_ports +
                           group.routers.count * group.routers.ports),
            security_rules=0, routers=group.routers.count,
            dhcp_servers=None if service == 'ovn' else group.dhcp_servers))
    root = scenarios.reported_provider(host, group.reserved_memory)
    return dataclasses.replace(host, providers=(
        dataclasses.replace(root, traits=root.traits.union(group.traits)), *(
            snapshot.Provider(
                uuid='', traits=frozenset(entry.traits), name=entry.name + (
                    f'-{number}' if entry.count > 1 else ''),
                inventories={
                    name: snapshot.Inventory.of_total(
                        each.total, each.reserved)
                    for name, each in entry.inventories.items()})
            for entry in group.providers for number in range(entry.count))))


def _host(name: str, template: snapshot.Host,
          aggregates: Sequence[snapshot.Aggregate],
          zone: str) -> snapshot.Host:
    uuid = scenarios.stable_uuid('host', name)
    root, *nested = template.providers
    return dataclasses.replace(
        template, name=name, hypervisor=name, uuid=uuid, zone=zone,
        aggregates=tuple([each.name for each in aggregates]),
        providers=(dataclasses.replace(
            root, uuid=uuid, name=name,
            aggregates=frozenset([each.uuid for each in aggregates])), *(
                dataclasses.replace(
                    each, name=f'{name}_{each.name}', parent=uuid,
                    uuid=scenarios.stable_uuid(
                        'provider', f'{name}/{each.name}'))
                for each in nested)))


def _agents(
    cloud: model.CloudFile, service: scenarios.NetworkService,
) -> tuple[tuple[snapshot.NetworkAgent, ...],
           tuple[snapshot.NetworkService, ...]]:
    """Return agents of each host, and services, without networks, of OVS."""
    kinds: Mapping[str, tuple[str, ...]] = {
        'ovs': (snapshot.DHCP, snapshot.ROUTER), 'ovn': (snapshot.OVN,)}
    agents, services = [], []
    for kind in kinds.get(service, ()):
        for group in cloud.hosts:
            for name in group.names:
                served = tuple(_served(name, group, kind))
                agents.append(snapshot.NetworkAgent(
                    id=scenarios.stable_uuid(f'{kind} agent', name),
                    kind=kind, host=name,
                    physnets=frozenset(group.physical_networks),
                    serves=tuple([each.id for each in served])))
                if service == 'ovs':
                    services.extend(served)
    return tuple(agents), tuple(services)


def _served(name: str, group: model.HostGroup,
            agent: str) -> Iterator[snapshot.NetworkService]:
    kind, count, ports = (
        (agent, group.dhcp_servers, 1) if agent == snapshot.DHCP else
        (snapshot.ROUTER, group.routers.count, group.routers.ports))
    for number in range(count):
        own = f'{name}-{kind}{number}'
        yield snapshot.NetworkService(
            id=scenarios.stable_uuid('network service', own), kind=kind,
            name=own, ports=ports)
