# SPDX-License-Identifier: Apache-2.0
"""Add hosts to a snapshot, remove some, or enable them."""

from collections.abc import Collection, Mapping
import dataclasses
import itertools
import uuid

import os_traits

from nfv_sched.limits import names as ledger_names
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot

_NAMESPACE = uuid.UUID('0a4f0f37-5a9e-4a51-9d6b-3f5c2b6f3f60')
#: Tag of a PCI device with the UUID of its resource provider.
_PROVIDER_TAG = 'rp_uuid'


def added(cloud: snapshot.Cloud, name: str,
          count: int) -> tuple[snapshot.Cloud, list[str]]:
    """Return a cloud with more empty hosts like one, and their names: ``a+1``.

    The ledger service would still have to publish a ledger for each.
    """
    like = next(host for host in cloud.hosts if host.name == name)
    numbers = _free_numbers(cloud, name, count)
    agents = cloud.network_agents
    cloud, names = added_new(
        cloud, occupied.empty(like, occupied.totals(cloud)[name]), count)
    return dataclasses.replace(
        cloud, aggregates=tuple([
            dataclasses.replace(each, hosts=(*each.hosts, *names))
            if name in each.hosts else each for each in cloud.aggregates]),
        network_agents=None if agents is None else (*agents, *(
            _copy_agent(agent, number) for number in numbers
            for agent in agents if agent.host == name))), names


def emptied(cloud: snapshot.Cloud) -> snapshot.Cloud:
    cloud = occupied.without_servers(cloud)
    return dataclasses.replace(cloud, hosts=tuple(map(_new, cloud.hosts)))


def enabled(cloud: snapshot.Cloud, names: Collection[str]) -> snapshot.Cloud:
    return dataclasses.replace(cloud, hosts=tuple([
        _enabled(host) if host.name in names else host
        for host in cloud.hosts]))


def _enabled(host: snapshot.Host) -> snapshot.Host:
    return dataclasses.replace(
        host, enabled=True, disabled_reason=None, providers=tuple([
            dataclasses.replace(each, traits=each.traits - {
                os_traits.COMPUTE_STATUS_DISABLED})
            for each in host.providers]))


def added_new(cloud: snapshot.Cloud, host: snapshot.Host,
              count: int) -> tuple[snapshot.Cloud, list[str]]:
    """Return a cloud with more hosts like an empty one, and their names."""
    copies = [_copy(host, number)
              for number in _free_numbers(cloud, host.name, count)]
    return (dataclasses.replace(cloud, hosts=(*cloud.hosts, *copies)),
            [copy.name for copy in copies])


def removed(cloud: snapshot.Cloud, names: Collection[str]) -> snapshot.Cloud:
    providers = {provider.uuid for host in cloud.hosts if host.name in names
                 for provider in host.providers}
    gone = {server.uuid for server in cloud.servers if server.host in names}
    moves, consumers = cloud.moves, cloud.consumers
    if moves is not None:
        moves = tuple([move for move in moves if move.server not in gone
                       and not {move.source, move.target} & set(names)])
    if consumers is not None:
        consumers = {uuid: rest for uuid, each in consumers.items()
                     if (rest := _drop_providers(each, providers))}
    agents = cloud.network_agents
    return dataclasses.replace(
        cloud, moves=moves, consumers=consumers,
        hosts=tuple([host for host in cloud.hosts if host.name not in names]),
        servers=tuple([
            server if not server.allocations else dataclasses.replace(
                server,
                allocations=_drop_providers(server.allocations, providers))
            for server in cloud.servers if server.uuid not in gone]),
        aggregates=tuple([
            dataclasses.replace(each, hosts=tuple([
                host for host in each.hosts if host not in names]))
            for each in cloud.aggregates]),
        groups=tuple([
            dataclasses.replace(group, members=tuple([
                member for member in group.members if member not in gone]))
            for group in cloud.groups]),
        network_agents=None if agents is None else tuple([
            agent for agent in agents if agent.host not in names]))


def _drop_providers(
    allocations: Mapping[str, Mapping[str, int]], providers: Collection[str],
) -> dict[str, Mapping[str, int]]:
    return {uuid: amounts for uuid, amounts in allocations.items()
            if uuid not in providers}


def _numbered_name(name: str, number: int) -> str:
    label, dot, domain = name.partition('.')
    return f'{label}+{number}{dot}{domain}'


def _numbered_uuid(like: str, number: int) -> str:
    return str(uuid.uuid5(_NAMESPACE, f'{like}+{number}'))


def _free_numbers(cloud: snapshot.Cloud, name: str, count: int) -> list[int]:
    """Return the first numbers, from 1, that no host has after this name."""
    used = {host.name for host in cloud.hosts}
    return list(itertools.islice(
        (number for number in itertools.count(1)
         if _numbered_name(name, number) not in used), count))


def _new(empty: snapshot.Host) -> snapshot.Host:
    network = empty.network and snapshot.HostNetwork(**{
        field.name: None if getattr(empty.network, field.name) is None
        else 0 for field in dataclasses.fields(empty.network)})
    return dataclasses.replace(
        _enabled(empty), up=True, mapped=True, stats={'num_instances': '0'},
        network=network, memory_used=occupied.reserved_memory(empty, 0))


def _copy(empty: snapshot.Host, number: int) -> snapshot.Host:
    new = _new(empty)
    ledger = ledger_names.provider_uuid(new.uuid)
    return dataclasses.replace(
        new, name=_numbered_name(new.name, number),
        uuid=_numbered_uuid(new.uuid, number),
        hypervisor=_numbered_name(new.hypervisor, number),
        devices=tuple([
            device if _PROVIDER_TAG not in device.tags else
            dataclasses.replace(device, tags={
                **device.tags, _PROVIDER_TAG: _numbered_uuid(
                    device.tags[_PROVIDER_TAG], number)})
            for device in new.devices]),
        providers=tuple([
            dataclasses.replace(
                each, uuid=_numbered_uuid(each.uuid, number),
                name=_provider_name(empty, each.name, number),
                parent=each.parent and _numbered_uuid(each.parent, number))
            for each in new.providers if each.uuid != ledger]))


def _provider_name(host: snapshot.Host, name: str, number: int) -> str:
    # Names of nested providers begin with that of the compute node, or of the
    # host; all names in Placement differ.
    for prefix in (host.hypervisor, host.name):
        if name.startswith(prefix):
            return _numbered_name(prefix, number) + name.removeprefix(prefix)
    return f'{name}+{number}'


def _copy_agent(agent: snapshot.NetworkAgent,
                number: int) -> snapshot.NetworkAgent:
    """Return an agent of the new host that serves nothing yet."""
    return dataclasses.replace(
        agent, host=_numbered_name(agent.host, number), alive=True,
        enabled=True, serves=(),
        # The ID of an OVN gateway is the name of its chassis.
        id=(_numbered_name if agent.kind == snapshot.OVN
            else _numbered_uuid)(agent.id, number))
