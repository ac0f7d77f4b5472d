# SPDX-License-Identifier: Apache-2.0
"""Add hosts to a snapshot, remove some, or enable them."""

from collections.abc import Collection
from collections.abc import Mapping
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
    """Return a cloud with more hosts like one of its hosts.

    A new host is empty, enabled and up.  It has the hardware, inventories,
    traits, aggregates and network agents of the host that it is like.  The
    ledger service would still have to publish a ledger for it.

    :returns: also the names of the new hosts: ``a+1`` for a host ``a``,
        ``a+1.example.net`` for ``a.example.net``
    """
    like = next(host for host in cloud.hosts if host.name == name)
    copies = _copies(
        cloud, occupied.empty(like, occupied.totals(cloud)[name]), count)
    names = [copy.name for copy in copies]
    agents = cloud.network_agents
    return dataclasses.replace(
        cloud, hosts=(*cloud.hosts, *(copy.host() for copy in copies)),
        aggregates=tuple([
            dataclasses.replace(each, hosts=(*each.hosts, *names))
            if name in each.hosts else each for each in cloud.aggregates]),
        network_agents=None if agents is None else (*agents, *(
            copy.agent(agent) for copy in copies for agent in agents
            if agent.host == name))), names


def emptied(cloud: snapshot.Cloud) -> snapshot.Cloud:
    """Return a cloud without servers, with each host as if it were new."""
    sums = occupied.totals(cloud)
    return dataclasses.replace(cloud, servers=(), hosts=tuple([
        _new(occupied.empty(host, sums[host.name])) for host in cloud.hosts]))


def enabled(cloud: snapshot.Cloud,
            names: Collection[str]) -> snapshot.Cloud:
    return dataclasses.replace(cloud, hosts=tuple([
        host if host.name not in names else dataclasses.replace(
            host, enabled=True, disabled_reason=None,
            providers=tuple([dataclasses.replace(
                provider, traits=_enabled_traits(provider))
                for provider in host.providers])) for host in cloud.hosts]))


def _enabled_traits(provider: snapshot.Provider) -> frozenset[str]:
    return provider.traits - {os_traits.COMPUTE_STATUS_DISABLED}


def added_new(cloud: snapshot.Cloud, host: snapshot.Host,
              count: int) -> tuple[snapshot.Cloud, list[str]]:
    """Return a cloud with more hosts like an empty one that it lacks.

    :returns: also the names of the new hosts, as of :func:`added`; they are in
        no aggregate, and have no network agents
    """
    copies = _copies(cloud, host, count)
    hosts = (*cloud.hosts, *(copy.host() for copy in copies))
    names = [copy.name for copy in copies]
    return dataclasses.replace(cloud, hosts=hosts), names


def removed(cloud: snapshot.Cloud,
            names: Collection[str]) -> snapshot.Cloud:
    """Return a cloud without some hosts, and without the servers there."""
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


def _copies(cloud: snapshot.Cloud, empty: snapshot.Host,
            count: int) -> list['_Copy']:
    used = {host.name for host in cloud.hosts}
    numbers = (number for number in itertools.count(1)
               if _numbered_name(empty.name, number) not in used)
    return [_Copy(empty, number)
            for number in itertools.islice(numbers, count)]


def _new(empty: snapshot.Host) -> snapshot.Host:
    network = empty.network and snapshot.HostNetwork(**{
        field.name: None if getattr(empty.network, field.name) is None
        else 0 for field in dataclasses.fields(empty.network)})
    return dataclasses.replace(
        empty, enabled=True, disabled_reason=None, up=True, mapped=True,
        stats={'num_instances': '0'}, network=network,
        memory_used=occupied.reserved_memory(empty, 0),
        providers=tuple([
            dataclasses.replace(each, traits=_enabled_traits(each))
            for each in empty.providers]))


class _Copy:
    """A new host like an empty one; ``number`` counts from 1."""

    def __init__(self, empty: snapshot.Host, number: int):
        self._empty = empty
        self._number = number
        self.name = _numbered_name(empty.name, number)

    def host(self) -> snapshot.Host:
        empty = _new(self._empty)
        ledger = ledger_names.provider_uuid(empty.uuid)
        return dataclasses.replace(
            empty, name=self.name, uuid=self._uuid(empty.uuid),
            hypervisor=_numbered_name(empty.hypervisor, self._number),
            devices=tuple(map(self._device, empty.devices)),
            providers=tuple([self._provider(each) for each in empty.providers
                             if each.uuid != ledger]))

    def agent(self, agent: snapshot.NetworkAgent) -> snapshot.NetworkAgent:
        """Return an agent of the new host that serves nothing yet."""
        return dataclasses.replace(
            agent, host=self.name, alive=True, enabled=True, serves=(),
            # The ID of an OVN gateway is the name of its chassis.
            id=_numbered_name(agent.id, self._number)
            if agent.kind == snapshot.OVN else self._uuid(agent.id))

    def _uuid(self, like: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f'{like}+{self._number}'))

    def _device(self, device: snapshot.Device) -> snapshot.Device:
        if _PROVIDER_TAG not in device.tags:
            return device
        return dataclasses.replace(device, tags={
            **device.tags,
            _PROVIDER_TAG: self._uuid(device.tags[_PROVIDER_TAG])})

    def _provider(self, provider: snapshot.Provider) -> snapshot.Provider:
        return dataclasses.replace(
            provider, uuid=self._uuid(provider.uuid),
            name=self._provider_name(provider.name),
            parent=provider.parent and self._uuid(provider.parent))

    def _provider_name(self, name: str) -> str:
        # Names of nested providers begin with that of the compute node, or of
        # the host; all names in Placement differ.
        for prefix in (self._empty.hypervisor, self._empty.name):
            if name.startswith(prefix):
                return (_numbered_name(prefix, self._number)
                        + name.removeprefix(prefix))
        return f'{name}+{self._number}'
