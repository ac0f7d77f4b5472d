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
"""A snapshot as the contents of a cloud file.

All that a cloud file can say of hosts, flavors, networks and groups; what
servers use of it is put there by
:mod:`nfv_sched.simulator.restore_servers`.  Nothing here knows Nova.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
import itertools
import typing as ty

from nfv_sched.cloud import occupied
from nfv_sched.cloud import snapshot
from nfv_sched.rules import base
from nfv_sched.rules import place as rule_place
from nfv_sched.simulator.cloud_file import model

#: Kind of a PCI device in Nova -> in a cloud file.
KINDS = {'type-VF': 'VF', 'type-PF': 'PF', 'type-PCI': 'standard'}

_NORMAL = 'normal'
_CELL = 'cell1'
#: How much refusals tell is for who asks to say, not for the cloud.
_NOT_TAKEN = {('nfv_sched', 'expose_reasons')}
#: Files that are not from a reader of Nova's databases may lack labels.
_LABELS = model.Defaults()


def cloud(found: snapshot.Cloud,
          more_ports: Iterable[snapshot.Port] = ()) -> model.Cloud:
    """A snapshot as a cloud file without steps.

    :param found: the snapshot
    :param more_ports: ports of which there are the security groups, beside
        those of its servers
    """
    labels = found.options.get('nfv_sched', {})
    names = base.Names(
        labels.get('vswitch_label') or _LABELS.switch_label,
        labels.get('node_label_prefix') or _LABELS.node_prefix)
    guests = occupied.totals(found)
    groups = tuple(_host(host, names, guests[host.name],
                         found.options.get('DEFAULT', {}))
                   for host in hosts(found))
    known = {group.name for group in groups}
    return model.Cloud(
        path='the snapshot', hosts=(), steps=(),
        groups=groups,
        aggregates=tuple(model.Aggregate(
            name=each.name, uuid=each.uuid, metadata=each.metadata,
            hosts=tuple(name for name in each.hosts if name in known))
            for each in found.aggregates),
        flavors={each.name: flavor(each) for each in found.flavors},
        networks=_networks(found),
        security_groups=_security_groups(
            itertools.chain(ports_of(found), more_ports), groups),
        network_service=_network_service(found.hosts),
        server_groups={name: _server_group(name, group) for name, group
                       in server_groups(found).items()},
        settings=tuple(
            (section, name, value, 0)
            for section, of_section in found.options.items()
            for name, value in of_section.items()
            if (section, name) not in _NOT_TAKEN))


def hosts(found: snapshot.Cloud) -> list[snapshot.Host]:
    """The hosts of a snapshot that can be simulated: one of each name.

    Of the compute nodes of one service, as Ironic has them, the first.

    :param found: the snapshot
    """
    of_name: dict[str, snapshot.Host] = {}
    for host in found.hosts:
        of_name.setdefault(host.name, host)
    return list(of_name.values())


def flavor(found: snapshot.Flavor) -> model.Flavor:
    """A flavor as in a cloud file.

    :param found: a flavor, or that of a server
    """
    return model.Flavor(
        name=found.name, vcpus=found.vcpus, memory=found.memory,
        disk=found.disk, extra_specs=found.extra_specs, validate=False,
        ephemeral=found.ephemeral, swap=found.swap)


def names(things: Iterable[snapshot.Server | snapshot.Group]
          ) -> dict[str, str]:
    """UUID of each thing -> a name that no other has.

    Its own name; if others have that, too, the name and part of its UUID; if
    there is no name, its UUID.

    :param things: servers, or server groups
    """
    things = list(things)
    count = collections.Counter(thing.name for thing in things)
    taken = set(count)
    found = {}
    for thing in things:
        name = thing.name
        if name and count[name] > 1:
            name = f'{name}-{thing.uuid[:8]}'
            if name in taken:
                name = ''
        found[thing.uuid] = name or thing.uuid
        taken.add(found[thing.uuid])
    return found


def ways_to_say(found: snapshot.Cloud) -> dict[str, list[str]]:
    """How steps can say which server is meant.

    :param found: the snapshot
    :returns: name in Nova, or UUID -> the names that :func:`names` gives to
        such servers
    """
    ways: dict[str, list[str]] = {}
    given = names(found.servers)
    for server in found.servers:
        for way in dict.fromkeys((server.name, server.uuid)):
            ways.setdefault(way, []).append(given[server.uuid])
    return ways


def server_groups(found: snapshot.Cloud) -> dict[str, snapshot.Group]:
    """The server groups by names that no other has.

    :param found: the snapshot
    """
    of_uuid = names(found.groups)
    return {of_uuid[group.uuid]: group for group in found.groups}


def network_name(port: snapshot.Port) -> str:
    """Name of the network of a port.

    The ports on a network of a cloud file are all of one kind.

    :param port: the port
    """
    kind = '' if port.vnic_type == _NORMAL else f'/{port.vnic_type}'
    return f'{port.network or "unknown"}{kind}'


def network(port: snapshot.Port) -> model.Network:
    """Return the network of a port as in a cloud file."""
    return model.Network(
        name=network_name(port), physical_network=port.physnet,
        tunneled=port.physnet is None,
        vnic_type=ty.cast(ty.Any, port.vnic_type), uuid=port.network)


def security_groups(port: snapshot.Port) -> tuple[str, ...]:
    """Names of the security groups of a port.

    :param port: the port
    """
    return (model.group_of_rules(port.rules),) if port.rules else ()


# Hosts


def _ratio(options: Mapping[str, ty.Any], of: str) -> float:
    """The allocation ratio that Nova takes where a host reports none.

    :param options: those of section ``DEFAULT``
    :param of: ``cpu``, ``ram`` or ``disk``
    """
    return (options.get(f'{of}_allocation_ratio')
            or options.get(f'initial_{of}_allocation_ratio') or 1.0)


def _host(host: snapshot.Host, names: base.Names, guests: occupied.Totals,
          options: Mapping[str, ty.Any]) -> model.HostGroup:
    """A host as a group of one.

    :param names: names of the labels
    :param guests: what its servers have
    :param options: those of section ``DEFAULT``
    """
    nodes = host.nodes or ()
    near = _near(nodes)
    return model.HostGroup(
        name=host.name, names=(host.name,), cores=(), memory=(),
        nodes=tuple(_node(node) for node in nodes),
        threads=max((len(core) for node in nodes for core in node.siblings),
                    default=1),
        legacy_pinning=any(node.shared & node.dedicated for node in nodes),
        reserved_memory=occupied.reserved_memory(host, guests.memory),
        disk=host.disk,
        switch_nodes=near.get(names.vswitch, ()),
        places={place: where for label, where in near.items()
                if label != names.vswitch and (
                    place := rule_place.place_of(label, names)) is not None},
        cpu_allocation_ratio=host.cpu_ratio or _ratio(options, 'cpu'),
        ram_allocation_ratio=host.memory_ratio or _ratio(options, 'ram'),
        disk_allocation_ratio=host.disk_ratio or _ratio(options, 'disk'),
        disabled=not host.enabled, disabled_reason=host.disabled_reason,
        mapped=host.mapped,
        pci=model.PCIConfig(tuple(map(_device, host.devices))),
        cell=host.cell or _CELL, **_services(host.network, guests))


def _near(nodes: Sequence[snapshot.Node]) -> dict[str, tuple[int, ...]]:
    """Physical network or label -> numbers of the NUMA nodes near it."""
    found: dict[str, tuple[int, ...]] = {}
    for node in nodes:
        for name in sorted(node.physnets):
            found[name] = (*found.get(name, ()), node.number)
    return found


def _node(node: snapshot.Node) -> model.NodeLayout:
    cpus = node.shared | node.dedicated
    return model.NodeLayout(
        id=node.number, socket=node.socket or 0, cpus=cpus,
        shared=node.shared, dedicated=node.dedicated,
        siblings=node.cores, memory_mib=node.memory,
        pages=tuple(model.PageSpec(pages.size, pages.total, pages.reserved)
                    for pages in node.pages),
        physnets=node.physnets, tunneled=node.tunneled)


def _device(device: snapshot.Device) -> model.PCIDevice:
    return model.PCIDevice(
        address=device.address, kind=KINDS.get(device.kind, device.kind),
        node=device.node, vendor=device.vendor, product=device.product,
        parent=device.parent,
        physical_network=device.tags.get('physical_network'))


# Networks


def _services(found: snapshot.HostNetwork | None,
              guests: occupied.Totals) -> dict[str, ty.Any]:
    """What is on a host besides servers, as fields of its group."""
    if found is None:
        return {}
    left = max(0, (found.vswitch_ports or 0) - guests.ports)
    dhcp, routers = found.dhcp_servers or 0, found.routers or 0
    left = max(0, left - dhcp)
    # The number of routers is known, that of their ports is not.
    of_router = 1 if left >= routers else 0
    return {
        'dhcp_servers': dhcp,
        'routers': model.Routers(count=routers, ports=of_router),
        'other_ports': left - of_router * routers,
        'other_rules': max(0, (found.security_rules or 0) - guests.rules)}


def _network_service(
        found: Iterable[snapshot.Host]) -> ty.Literal['ovs', 'ovn', 'none']:
    seen = [host.network for host in found if host.network is not None]
    if any(each.dhcp_servers is not None for each in seen):
        return 'ovs'
    return 'ovn' if any(each.routers for each in seen) else 'none'


def ports_of(cloud: snapshot.Cloud) -> Iterable[snapshot.Port]:
    """Yield the ports of all servers."""
    for server in cloud.servers:
        yield from server.ports or ()


def _networks(found: snapshot.Cloud) -> dict[str, model.Network]:
    networks: dict[str, model.Network] = {}
    for port in ports_of(found):
        networks.setdefault(network_name(port), network(port))
    return networks


def _security_groups(
    ports: Iterable[snapshot.Port], groups: Iterable[model.HostGroup],
) -> dict[str, model.SecurityGroup]:
    """Groups that stand for those of the ports, which are not known."""
    numbers = {port.rules for port in ports if port.rules}
    numbers.update(group.other_rules for group in groups
                   if group.other_rules and group.other_ports)
    return {model.group_of_rules(number):
            model.SecurityGroup(ingress=number) for number in sorted(numbers)}


def _server_group(name: str, group: snapshot.Group) -> model.ServerGroup:
    most = group.rules.get('max_server_per_host', '')
    return model.ServerGroup(
        name=name, policy=ty.cast(ty.Any, group.policy), uuid=group.uuid,
        max_server_per_host=int(most) if most.isdigit() else None)
