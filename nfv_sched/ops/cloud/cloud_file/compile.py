# SPDX-License-Identifier: Apache-2.0
"""Compile the checked contents of a cloud file to a snapshot and steps."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import json
import typing as ty

from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud.cloud_file import pci
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot

_HYPERVISOR_VERSION = 8002000
_NO_USE = {'num_instances': '0', 'io_workload': '0', 'failed_builds': '0'}


def scenario(cloud: model.CloudFile, path: str,
             defaults: scenarios.Defaults) -> scenarios.Scenario:
    """Compile a cloud file to a snapshot, and what its steps can name.

    :param cloud: the contents, with ``groups``
    :param defaults: for options that are not in the file
    """
    aggregates = tuple(map(_aggregate, cloud.aggregates))
    of_host = scenarios.aggregates_by_host(aggregates)
    zones = scenarios.zones_of(aggregates)
    zone = str(cloud.options.get('DEFAULT', {}).get(
        'default_availability_zone', defaults.zone))
    named = _named(cloud)
    service = _network_service(cloud)
    hosts, services, places, alike = [], {}, {}, {}
    for group in cloud.groups:
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
            hosts=tuple(hosts), flavors=tuple(_flavors(cloud)),
            aggregates=aggregates,
            groups=tuple(named['server_groups'].values()), moves=(),
            consumers={}, networks=tuple(named['networks'].values()),
            network_agents=tuple(_agents(cloud, service)),
            network_services=tuple([
                each for kind in (snapshot.DHCP, snapshot.ROUTER)
                for group in cloud.groups for name in group.names
                for each in _services_of_agent(name, group, kind)
            ]) if service == 'ovs' else ()),
        new_hosts=True, network_service=service, services=services,
        places=places, alike=alike, **named)


def _named(cloud: model.WhatIf) -> dict[str, dict[str, ty.Any]]:
    """Return what the steps of a file can name, by field of a scenario."""
    return {
        'images': dict(cloud.images),
        'networks': {name: _network(network)
                     for name, network in cloud.networks.items()},
        'security_groups': {
            name: scenarios.SecurityGroup(
                scenarios.stable_uuid('security group', name), group.rules)
            for name, group in cloud.security_groups.items()},
        'server_groups': {name: _server_group(group)
                          for name, group in cloud.server_groups.items()}}


def with_additions(start: scenarios.Scenario,
                   more: model.WhatIf) -> scenarios.Scenario:
    """Return a snapshot with the additions of a file of steps."""
    start = dataclasses.replace(start, networks=_networks_of(start.cloud))
    flavors = {flavor.name: flavor for flavor in (
        *start.cloud.flavors, *_flavors(more))}
    return dataclasses.replace(
        start,
        cloud=dataclasses.replace(
            start.cloud, flavors=tuple(flavors.values()),
            options=_merged(start.cloud.options, _options(more))),
        **{field: {**getattr(start, field), **added}
           for field, added in _named(more).items()})


def _networks_of(cloud: snapshot.Cloud) -> dict[str, snapshot.Network]:
    """Return the networks of a snapshot by their names in steps.

    The name is the UUID of the network, with the vNIC type if that is not
    ``normal``: in a cloud file all ports of a network have the same vNIC type.
    """
    networks: dict[str, snapshot.Network] = {}
    for port in scenarios.ports_of(cloud):
        kind = '' if port.vnic_type == scenarios.NORMAL else (
            f'/{port.vnic_type}')
        network = scenarios.network_of(port)
        networks.setdefault(f'{network.name}{kind}', network)
    return networks


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
            more['pci']['alias'] = [json.dumps(pci.alias(alias))
                                    for alias in cloud.pci_aliases.values()]
    return _merged(cloud.options, {
        group: options for group, options in more.items() if options})


def _flavors(cloud: model.WhatIf) -> Iterator[snapshot.Flavor]:
    for flavor in cloud.flavors.values():
        yield snapshot.Flavor(
            name=flavor.name, id=flavor.name, vcpus=flavor.vcpus,
            memory=flavor.memory, disk=flavor.disk,
            extra_specs=flavor.extra_specs)


def _aggregate(aggregate: model.AggregateEntry) -> snapshot.Aggregate:
    return snapshot.Aggregate(
        name=aggregate.name, metadata=aggregate.metadata,
        uuid=scenarios.stable_uuid('aggregate', aggregate.name),
        hosts=aggregate.hosts)


def _server_group(group: model.ServerGroup) -> snapshot.Group:
    most = group.max_server_per_host
    return snapshot.Group(
        uuid=scenarios.stable_uuid('group', group.name), name=group.name,
        policy=group.policy, rules={} if most is None else {
            'max_server_per_host': str(most)})


# Hosts


def _template(group: model.HostGroup,
              service: scenarios.NetworkService) -> snapshot.Host:
    """Return an unused host of a group, without name, UUID and aggregates."""
    host = snapshot.Host(
        name='', hypervisor='', uuid='', cell=scenarios.CELL,
        enabled=not group.disabled,
        hypervisor_version=_HYPERVISOR_VERSION, supported=scenarios.X86_64,
        cpu_info=json.dumps({'arch': 'x86_64'}), stats=_NO_USE,
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
    return dataclasses.replace(host, providers=(dataclasses.replace(
        root, traits=root.traits.union(group.traits)), *_nested(group)))


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


def _nested(group: model.HostGroup) -> Iterator[snapshot.Provider]:
    for entry in group.providers:
        for number in range(entry.count):
            yield snapshot.Provider(
                uuid='', name=entry.name + (
                    f'-{number}' if entry.count > 1 else ''),
                traits=frozenset(entry.traits), inventories={
                    name: snapshot.Inventory(
                        total=each.total, reserved=each.reserved,
                        max_unit=each.total)
                    for name, each in entry.inventories.items()})


# Networks


def _network(network: model.NetworkEntry) -> snapshot.Network:
    return snapshot.Network(
        id=scenarios.stable_uuid('network', network.name), name=network.name,
        physnet=network.physical_network, vnic_type=network.vnic_type,
        numa_policy=network.numa_policy, trusted=network.trusted)


def _network_service(cloud: model.CloudFile) -> scenarios.NetworkService:
    return cloud.network_service or (
        'ovs' if any(group.dhcp_servers or group.routers.count
                     for group in cloud.groups) else 'none')


def _agents(cloud: model.CloudFile, service: scenarios.NetworkService,
            ) -> Iterator[snapshot.NetworkAgent]:
    """Yield the agents of Neutron: one of each kind on each host."""
    kinds: Mapping[str, tuple[str, ...]] = {
        'ovs': (snapshot.DHCP, snapshot.ROUTER), 'ovn': (snapshot.OVN,)}
    for kind in kinds.get(service, ()):
        served = kind if kind == snapshot.DHCP else snapshot.ROUTER
        for group in cloud.groups:
            for name in group.names:
                yield snapshot.NetworkAgent(
                    id=scenarios.stable_uuid(f'{kind} agent', name),
                    kind=kind, host=name,
                    physnets=frozenset(group.physical_networks),
                    serves=tuple([
                        each.id
                        for each in _services_of_agent(name, group, served)]))


def _services_of_agent(name: str, group: model.HostGroup,
                       kind: str) -> Iterator[snapshot.NetworkService]:
    """Yield the services of one kind of agent on a host, without networks."""
    count, ports = (
        (group.dhcp_servers, 1) if kind == snapshot.DHCP
        else (group.routers.count, group.routers.ports))
    for number in range(count):
        own = f'{name}-{kind}{number}'
        yield snapshot.NetworkService(
            id=scenarios.stable_uuid('network service', own), kind=kind,
            name=own, ports=ports)
