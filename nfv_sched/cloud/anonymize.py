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
"""Replace the names and UUIDs of a cloud, so that it can be given away.

Each name is replaced by another one, the same wherever it is used.  The new
names are drawn at random each time, and no list of them is kept.  What the
tools need stays: amounts, extra specs, Nova's properties of images, traits,
PCI addresses, labels, options.  Free text is dropped: faults, reasons why a
service is disabled, and scheduler hints other than those that name servers and
groups.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import random
import re
import typing as ty
import uuid

from nfv_sched.cloud import snapshot
from nfv_sched.cloud import unread
from nfv_sched.ledger import names as ledger_names
from nfv_sched.rules import base
from nfv_sched.rules import place

_IDS = re.compile(r'\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b'
                  r'|\b[0-9a-f]{32}\b', re.IGNORECASE)
_NAMED = re.compile(r'\b(Cell|Host) \S+')
_NO_NAME = re.compile(r'[^0-9A-Z_]+')

# Scheduler hints of Nova whose values are UUIDs of servers and groups.
_HINTS = ('group', 'same_host', 'different_host')
_PHYSNET_TRAIT = 'CUSTOM_PHYSNET_'
# Metadata of aggregates that has names, or UUIDs, separated by commas.
_ZONE = 'availability_zone'
_TENANT = 'filter_tenant_id'
_FLAVORS = 'instance_type'
_PROJECTS = 'num_proj_'  # in the statistics of a host
# Tags of devices that say which one in the world it is.
_SERIAL = ('card_serial_number', 'serial_number', 'mac_address',
           'pf_mac_address')
# Tags of PCI requests that say which devices will do.
_REQUEST_TAGS = frozenset((
    'vendor_id', 'product_id', 'dev_type', 'physical_network',
    'remote_managed', 'trusted', 'live_migratable', 'managed',
    'resource_class', 'traits'))
_DROPPED = 'dropped'
# Properties of images that Nova and nfv-sched know; others may say anything.
_IMAGE = ('hw', 'img_', 'os_', 'nfv', 'trait', 'architecture',
          'hypervisor_type', 'vm_mode')
# Those of them with free text.
_FREE = ('os_admin_user', 'os_command_line')
# Options that name an availability zone.
_ZONES = ('default_schedule_zone', 'default_availability_zone')


def anonymize(cloud: snapshot.Cloud) -> snapshot.Cloud:
    """Replace the names and UUIDs of a cloud.

    :param cloud: any cloud
    :returns: the same with other names and UUIDs, in another order
    """
    return _Anonymizer(cloud).cloud()


class _Names:
    """New names for old ones: a word and a number, drawn at random."""

    def __init__(self, word: str, known: Iterable[str],
                 kept: Iterable[str] = ('',)):
        self._word = word
        old = sorted(set(known).difference(kept))
        self._new = dict(zip(old, random.SystemRandom().sample(
            range(1, len(old) + 1), len(old))))
        self._kept = frozenset(kept)

    def __call__(self, name: str) -> str:
        if name in self._kept:
            return name
        number = self._new.setdefault(name, len(self._new) + 1)
        return f'{self._word}{number}'


class _Anonymizer:

    def __init__(self, cloud: snapshot.Cloud):
        self._cloud = cloud
        self._uuids: dict[str, str] = {}
        hosts, servers = cloud.hosts, cloud.servers
        self._host = _Names('host', [
            *(host.name for host in hosts),
            *(server.host for server in servers if server.host),
            *(name for move in cloud.moves or ()
              for name in (move.source, move.target) if name),
            *(agent.host for agent in cloud.network_agents or ()),
            *(name for aggregate in cloud.aggregates
              for name in aggregate.hosts)])
        self._hypervisor = _Names(
            'node', (host.hypervisor for host in hosts))
        self._cell = _Names(
            'cell', (each.cell for each in (*hosts, *servers)),
            ('', 'cell0'))
        defaults = cloud.options.get('DEFAULT', {})
        self._zone = _Names(
            'zone', [*(host.zone for host in hosts),
                     *(server.zone for server in servers if server.zone),
                     *(agent.zone for agent in cloud.network_agents or ()),
                     *(zone for service in cloud.network_services
                       for zone in service.zones),
                     *(defaults[name] for name in _ZONES
                       if defaults.get(name))],
            ('', 'nova'))
        self._server = _Names('server', (server.name for server in servers))
        self._flavor = _Names('flavor', [
            *(flavor.name for flavor in cloud.flavors),
            *(server.flavor.name for server in servers),
            *(name for aggregate in cloud.aggregates
              for name in _split(aggregate.metadata.get(_FLAVORS, '')))])
        self._aggregate = _Names('aggregate', [
            *(aggregate.name for aggregate in cloud.aggregates),
            *(name for host in hosts for name in host.aggregates)])
        self._group = _Names('group', (group.name for group in cloud.groups))
        self._network = _Names('network', (
            port.network_name for server in servers
            for port in server.ports or ()))
        self._service = _Names(
            'service', (each.name for each in cloud.network_services))
        self._network = _Names(
            'network', (each.name for each in cloud.networks or ()))
        self._physnet = _Names('physnet', (
            name for name in self._all_physnets()
            if not self._is_label(name)))
        self._traits = {
            _trait_part(name): _trait_part(self._physnet(name))
            for name in self._all_physnets() if not self._is_label(name)}
        for host in hosts:
            # The tools find the ledger of a host by this.
            self._uuids[ledger_names.provider_uuid(host.uuid)] = (
                ledger_names.provider_uuid(self._uuid(host.uuid)))

    def _all_physnets(self) -> set[str]:
        found = {name for host in self._cloud.hosts
                 for node in host.nodes or () for name in node.physnets}
        found.update(
            name for host in self._cloud.hosts for device in host.devices
            if (name := device.tags.get('physical_network')))
        found.update(
            port.physnet for server in self._cloud.servers
            for port in server.ports or () if port.physnet)
        found.update(
            name for server in self._cloud.servers
            for request in server.pci_requests or ()
            for tags in request.specs
            if (name := tags.get('physical_network')))
        for each in (*(self._cloud.network_agents or ()),
                     *self._cloud.network_services):
            found.update(each.physnets or ())
        found.update(network.physnet for network
                     in self._cloud.networks or () if network.physnet)
        return found

    def _is_label(self, name: str) -> bool:
        options = self._cloud.options.get('nfv_sched', {})
        labels = base.Names(
            options.get('vswitch_label') or place.PREFIX,
            options.get('node_label_prefix') or place.PREFIX)
        return (name == labels.vswitch or labels.node(name) is not None or
                name.startswith(place.PREFIX))

    def _uuid(self, old: str) -> str:
        """A new UUID for an old one; without dashes if that has none."""
        if not old:
            return old
        new = self._uuids.get(old)
        if new is None:
            drawn = uuid.uuid4()
            new = self._uuids[old] = (
                str(drawn) if '-' in old or len(old) != 32 else drawn.hex)
        return new

    def _without_ids(self, text: str) -> str:
        return _IDS.sub(lambda found: self._uuid(found[0]), text)

    def cloud(self) -> snapshot.Cloud:
        """The cloud with other names and UUIDs."""
        cloud = self._cloud
        return dataclasses.replace(
            cloud, anonymous=True, source='', options=self._options(),
            missing=tuple(self._sentence(text) for text in cloud.missing),
            hosts=tuple(sorted(
                map(self._whole_host, cloud.hosts),
                key=lambda host: (host.name, host.hypervisor))),
            servers=tuple(sorted(
                map(self._whole_server, cloud.servers),
                key=lambda server: server.uuid)),
            flavors=tuple(sorted(
                map(self._whole_flavor, cloud.flavors),
                key=lambda flavor: flavor.name)),
            aggregates=tuple(sorted(
                map(self._whole_aggregate, cloud.aggregates),
                key=lambda aggregate: aggregate.name)),
            groups=tuple(sorted(
                map(self._whole_group, cloud.groups),
                key=lambda group: group.uuid)),
            moves=None if cloud.moves is None else tuple(sorted(
                map(self._whole_move, cloud.moves),
                key=lambda move: move.uuid)),
            consumers=None if cloud.consumers is None else {
                self._uuid(consumer): self._allocations(found)
                for consumer, found in cloud.consumers.items()},
            network_agents=None if cloud.network_agents is None else tuple(
                sorted(map(self._agent, cloud.network_agents),
                       key=lambda agent: agent.id)),
            network_services=tuple(sorted(
                map(self._network_service, cloud.network_services),
                key=lambda service: service.id)),
            networks=None if cloud.networks is None else tuple(sorted(
                map(self._whole_network, cloud.networks),
                key=lambda network: network.id)),
            traits=None if cloud.traits is None else frozenset(
                map(self._trait, cloud.traits)))

    def _sentence(self, text: str) -> str:
        """What is missing, without the error: that may have any name in it."""
        cell = unread.cell(text)
        if cell is not None:
            # Those who read the file have to know which hosts are concerned.
            name, what = cell
            return f'Cell {self._cell(name)} {what}'
        return self._without_ids(_NAMED.sub(
            lambda found: f'A {found[1].lower()}', text.partition(':')[0]))

    def _options(self) -> Mapping[str, Mapping[str, ty.Any]]:
        """The options; some name an availability zone, hosts or images."""
        options = dict(self._cloud.options)
        defaults = dict(options.get('DEFAULT', {}))
        for name in _ZONES:
            if defaults.get(name):
                defaults[name] = self._zone(defaults[name])
                options['DEFAULT'] = defaults
        scheduler = dict(options.get('filter_scheduler', {}))
        for name, other in (('isolated_hosts', self._host),
                            ('isolated_images', self._uuid)):
            if scheduler.get(name):
                scheduler[name] = list(map(other, scheduler[name]))
                options['filter_scheduler'] = scheduler
        return options

    def _whole_host(self, host: snapshot.Host) -> snapshot.Host:
        return dataclasses.replace(
            host, name=self._host(host.name),
            hypervisor=self._hypervisor_name(host),
            uuid=self._uuid(host.uuid), cell=self._cell(host.cell),
            zone=self._zone(host.zone),
            disabled_reason=host.disabled_reason and _DROPPED,
            aggregates=tuple(map(self._aggregate, host.aggregates)),
            stats={self._statistic(name): text
                   for name, text in host.stats.items()},
            nodes=None if host.nodes is None else tuple(
                dataclasses.replace(node, physnets=frozenset(
                    map(self._label, node.physnets)))
                for node in host.nodes),
            devices=tuple(map(self._device, host.devices)),
            providers=tuple(self._provider(host, provider)
                            for provider in host.providers))

    def _hypervisor_name(self, host: snapshot.Host) -> str:
        if host.hypervisor == host.name:
            return self._host(host.name)
        return self._hypervisor(host.hypervisor)

    def _statistic(self, name: str) -> str:
        if name.startswith(_PROJECTS):
            return _PROJECTS + self._uuid(name.removeprefix(_PROJECTS))
        return self._without_ids(name)

    def _label(self, physnet: str) -> str:
        return physnet if self._is_label(physnet) else self._physnet(physnet)

    def _device(self, device: snapshot.Device) -> snapshot.Device:
        tags = {name: self._without_ids(text)
                for name, text in device.tags.items() if name not in _SERIAL}
        if 'physical_network' in tags:
            tags['physical_network'] = self._label(
                device.tags['physical_network'])
        return dataclasses.replace(
            device, tags=tags,
            server=device.server and self._uuid(device.server),
            request=device.request and self._uuid(device.request))

    def _provider(self, host: snapshot.Host,
                  provider: snapshot.Provider) -> snapshot.Provider:
        name = self._hypervisor_name(host)
        if provider.name != host.hypervisor:
            # Those of devices and of the ledger begin with the hypervisor;
            # those of Neutron, too, but they name bridges after a colon.
            rest = provider.name.removeprefix(host.hypervisor)
            name += rest if rest != provider.name and rest[0] == '_' else (
                '_' + self._uuid(provider.uuid)[:8])
        return dataclasses.replace(
            provider, uuid=self._uuid(provider.uuid), name=name,
            parent=provider.parent and self._uuid(provider.parent),
            traits=frozenset(map(self._trait, provider.traits)),
            aggregates=frozenset(map(self._uuid, provider.aggregates)))

    def _trait(self, name: str) -> str:
        if name.startswith(_PHYSNET_TRAIT):
            part = name.removeprefix(_PHYSNET_TRAIT)
            return _PHYSNET_TRAIT + (
                self._traits.get(part)
                or _trait_part(self._physnet(part)))
        return name

    def _whole_server(self, server: snapshot.Server) -> snapshot.Server:
        return dataclasses.replace(
            server, uuid=self._uuid(server.uuid),
            name=self._server(server.name),
            host=server.host and self._host(server.host),
            cell=self._cell(server.cell),
            project=self._uuid(server.project), fault=None,
            flavor=self._whole_flavor(server.flavor),
            image={name: self._without_ids(text)
                   for name, text in server.image.items()
                   if name.startswith(_IMAGE) and name not in _FREE},
            pci_requests=None if server.pci_requests is None else tuple(
                map(self._pci_request, server.pci_requests)),
            ports=None if server.ports is None else tuple(
                dataclasses.replace(
                    port, id=self._uuid(port.id),
                    network=self._uuid(port.network),
                    network_name=self._network(port.network_name),
                    physnet=port.physnet and self._label(port.physnet))
                for port in server.ports),
            group=server.group and self._uuid(server.group),
            zone=server.zone and self._zone(server.zone),
            hints={name: tuple(map(self._uuid, values))
                   for name, values in server.hints.items()
                   if name in _HINTS},
            allocations=None if server.allocations is None
            else self._allocations(server.allocations))

    def _pci_request(
            self, request: snapshot.PCIRequest) -> snapshot.PCIRequest:
        return dataclasses.replace(
            request, id=request.id and self._uuid(request.id),
            alias=request.alias and _DROPPED,
            port=request.port and self._uuid(request.port),
            specs=tuple({
                name: self._label(value)
                if value and name == 'physical_network' else value
                for name, value in tags.items() if name in _REQUEST_TAGS}
                for tags in request.specs))

    def _allocations(
        self, found: Mapping[str, Mapping[str, int]],
    ) -> dict[str, Mapping[str, int]]:
        return {self._uuid(provider): amounts
                for provider, amounts in found.items()}

    def _whole_move(self, move: snapshot.Migration) -> snapshot.Migration:
        return dataclasses.replace(
            move, uuid=self._uuid(move.uuid), server=self._uuid(move.server),
            source=move.source and self._host(move.source),
            target=move.target and self._host(move.target))

    def _whole_flavor(self, flavor: snapshot.Flavor) -> snapshot.Flavor:
        return dataclasses.replace(
            flavor, name=self._flavor(flavor.name),
            id=self._uuid(flavor.id))

    def _whole_aggregate(
            self, aggregate: snapshot.Aggregate) -> snapshot.Aggregate:
        return dataclasses.replace(
            aggregate, name=self._aggregate(aggregate.name),
            uuid=self._uuid(aggregate.uuid),
            metadata={name: self._metadata(name, text)
                      for name, text in aggregate.metadata.items()},
            hosts=tuple(sorted(map(self._host, aggregate.hosts))))

    def _metadata(self, name: str, text: str) -> str:
        if name == _ZONE:
            return self._zone(text)
        if name.startswith(_TENANT):
            return _each(text, self._uuid)
        if name == _FLAVORS:
            return _each(text, self._flavor)
        return self._without_ids(text)

    def _whole_group(self, group: snapshot.Group) -> snapshot.Group:
        return dataclasses.replace(
            group, uuid=self._uuid(group.uuid), name=self._group(group.name),
            members=tuple(map(self._uuid, group.members)))

    def _agent(self, agent: snapshot.NetworkAgent) -> snapshot.NetworkAgent:
        return dataclasses.replace(
            agent, id=self._uuid(agent.id), host=self._host(agent.host),
            zone=self._zone(agent.zone),
            physnets=None if agent.physnets is None else frozenset(
                map(self._label, agent.physnets)),
            serves=tuple(sorted(map(self._uuid, agent.serves))))

    def _network_service(
            self, service: snapshot.NetworkService) -> snapshot.NetworkService:
        return dataclasses.replace(
            service, id=self._uuid(service.id),
            name=self._service(service.name),
            physnets=None if service.physnets is None else frozenset(
                map(self._label, service.physnets)),
            zones=tuple(map(self._zone, service.zones)))

    def _whole_network(self, network: snapshot.Network) -> snapshot.Network:
        return dataclasses.replace(
            network, id=self._uuid(network.id),
            name=self._network(network.name),
            physnet=network.physnet and self._label(network.physnet))


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(',')]


def _each(text: str, change: Callable[[str], str]) -> str:
    return ','.join(map(change, _split(text)))


def _trait_part(name: str) -> str:
    """The name of a physical network as Neutron writes it in a trait."""
    return _NO_NAME.sub('_', name.upper())
