# SPDX-License-Identifier: Apache-2.0
"""Decide which ports new servers of a flavor are assumed to have.

A flavor does not name the networks of its servers, but they decide where the
servers fit: by VFs, NUMA nodes near physical networks, and limits of ports and
security group rules.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import enum
import typing as ty

from nfv_sched.base import extra_specs
from nfv_sched.base import strings
from nfv_sched.limits import usage
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import names
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import document

#: Keys of a network on the command line.
_PHYSNET = 'physnet'
_VNIC_TYPE = 'vnic-type'
_TRUSTED = 'trusted'
#: Kind of device -> vNIC type of the ports that want it.
_VNIC_TYPES_OF = {'type-PF': 'direct-physical', 'vdpa': 'vdpa'}
#: Neutron's vNIC types.
VNIC_TYPES: tuple[str, ...] = ty.get_args(snapshot.VNICType)
#: Nova's vm_states of servers that may not have got their ports.
_UNBUILT = ('error', 'building')


def network_label(network: snapshot.Network) -> str:
    """Return the name of a network for people, with the type of its ports."""
    if network.vnic_type in (None, scenario.NORMAL):
        return network.name
    return f'{network.name}/{network.vnic_type}'


class Basis(enum.StrEnum):
    """Reason for an assumption about ports: see ``NewPorts.basis``."""

    SERVERS = 'servers'
    SERVER = 'server'
    NETWORKS = 'networks'
    NUMBER = 'number'
    NO_SERVERS = 'no_servers'
    UNREAD = 'unread'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PortsOfKind:
    """Ports of one kind."""

    vnic_type: str  #: Neutron's vNIC type, such as "normal" or "direct"
    #: name of the physical network; null if the network has none
    physical_network: str | None
    count: int  #: number of ports

    @property
    def label(self) -> str:
        """The kind alone: ``direct@physnet0``."""
        return f'{self.vnic_type}@{self.physical_network}' if (
            self.physical_network) else self.vnic_type


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewPorts:
    """The ports that each new server is assumed to have."""

    kinds: tuple[PortsOfKind, ...]  #: its ports
    #: reason for the assumption: "servers" if most servers of the flavor have
    #: such ports, "server" for --like, "networks" for --network, "number" for
    #: --ports, "no_servers" if there are none to learn from, "unread" if
    #: Neutron was not read
    basis: str
    #: number of servers of the flavor with known ports; null unless the basis
    #: is "servers"
    servers: int | None = document.always(default=None)
    #: number of them that have these ports; null likewise
    servers_alike: int | None = document.always(default=None)
    #: name of the server of --like; null without it
    like: str | None = document.always(default=None)
    #: :class:`scenario.Plug` of each port on a network
    plugs: ty.Any = document.internal(default=())
    #: number of further ports of the virtual switch, on networks without NUMA
    #: affinity
    unplugged: int = document.internal(default=0)
    #: assumptions about the networks, a sentence each
    notes: ty.Any = document.internal(default=())

    @property
    def label(self) -> str:
        """The number of each kind: ``1 direct@physnet0, 2 normal``."""
        # Networks are not named: servers of all projects share the label.
        return ', '.join(f'{kind.count} {kind.label}'
                         for kind in self.kinds) or 'none'

    @property
    def listed(self) -> str:
        """The kind of each port: ``direct@physnet0, normal, normal``."""
        return ', '.join(kind.label for kind in self.kinds
                         for _port in range(kind.count))

    @property
    def description(self) -> str:
        """The ports in words: ``1 direct port on physical network data``."""
        return ', '.join(
            strings.count(kind.count, f'{kind.vnic_type} port') + (
                f' on physical network {kind.physical_network}'
                if kind.physical_network else '')
            for kind in self.kinds) or 'none'

    @property
    def reason(self) -> str:
        match self.basis:
            case Basis.SERVERS:
                if self.servers == 1:
                    return 'as the existing server of the flavor has'
                if self.servers_alike == self.servers:
                    return f'as all {self.servers} servers of the flavor have'
                verb = 'has' if self.servers_alike == 1 else 'have'
                return (f'as {self.servers_alike} of {self.servers} servers '
                        f'of the flavor {verb}')
            case Basis.SERVER:
                return f'as server {self.like}'
            case Basis.NETWORKS:
                return 'as --network says'
            case Basis.NUMBER:
                return 'as --ports says'
            case Basis.UNREAD:
                return 'the ports of its servers were not read'
        return 'the flavor has no servers'


def assume(basis: Basis, plugs: tuple[scenario.Plug, ...] = (),
           unplugged: int = 0, **about: ty.Any) -> NewPorts:
    kinds = collections.Counter(
        (network.vnic_type, network.physnet or '')
        for network, _groups in plugs)
    kinds[scenario.NORMAL, ''] += unplugged
    return NewPorts(
        kinds=tuple([PortsOfKind(
            vnic_type=vnic_type, physical_network=physnet or None, count=count)
            for (vnic_type, physnet), count in sorted(kinds.items())
            if count]),
        basis=basis, plugs=plugs, unplugged=unplugged, **about)


#: Ports that the callers of a count choose: the same for all flavors, a number
#: of ports of the virtual switch, or None for those of each flavor's servers.
Choice = NewPorts | int | None


#: Returns the ports of new servers of a flavor.
OfFlavor = Callable[[snapshot.Flavor], NewPorts]


def always(choice: NewPorts | int) -> OfFlavor:
    ports = choice if isinstance(choice, NewPorts) else assume(
        Basis.NUMBER, unplugged=choice)
    return lambda flavor: ports


def per_flavor(cloud: snapshot.Cloud, choice: Choice) -> OfFlavor:
    """Return a function that returns the ports of new servers of a flavor."""
    if choice is not None:
        return always(choice)
    of_flavor: dict[str, list[snapshot.Server]] = {}
    for server in cloud.servers:
        of_flavor.setdefault(server.flavor.name, []).append(server)
    return lambda flavor: of_servers(of_flavor.get(flavor.name, ()))


def of_servers(servers: Sequence[snapshot.Server]) -> NewPorts:
    """Return the ports that most of some servers have.

    Of kinds that equally many servers have, the most demanding is taken, so
    that rather too few servers are counted: most ports that bypass the virtual
    switch, then most ports, then most on physical networks.  Servers that
    failed or are being built and have no port are ignored.
    """
    counted = [server for server in servers if server.ports or (
        server.ports is not None and server.state not in _UNBUILT)]
    if not counted:
        # The limits of the virtual switch count for any server.
        return assume(Basis.UNREAD if any(
            server.ports is None for server in servers)
            else Basis.NO_SERVERS, unplugged=1)
    kinds = collections.Counter(map(_kinds, counted))
    kind = max(kinds, key=lambda each: (kinds[each], _demand(each), each))
    alike = [server for server in counted if _kinds(server) == kind]
    rules = collections.Counter(map(_rules, alike))
    most = max(rules, key=lambda each: (rules[each], sum(each), each))
    server = min((server for server in alike if _rules(server) == most),
                 key=lambda server: server.uuid)
    return assume(Basis.SERVERS, plugs(server),
                  servers_alike=len(alike), servers=len(counted))


def of_server(server: snapshot.Server) -> NewPorts:
    name = server.name or server.uuid
    own = plugs(server)
    if server.ports is None and not own:
        raise errors.NotInCloudError(
            f'--like {name}: its ports were not read; name its networks with '
            '--network')
    return assume(Basis.SERVER, own, like=name)


def plugs(server: snapshot.Server,
          names: Mapping[str, str] | None = None) -> tuple[scenario.Plug, ...]:
    """Return the networks and security groups of a server's ports.

    :param names: network UUID -> name; others are named as their port says

    What ports want of VFs is that of the PCI requests that Nova has stored. Of
    a server that never had a host these are all that is known of its ports.
    Their NUMA policies are included, unless the flavor or the image has the
    same one: it may come from there, and a new server may have other ones.
    """
    own = (server.flavor.extra_specs.get(extra_specs.NATIVE_PCI_KEY),
           server.image.get(extra_specs.NATIVE_PCI_PROPERTY))
    stored = [request for request in server.pci_requests or ()
              if request.alias is None]
    ports = server.ports
    if not ports and server.host is None:
        ports = tuple(map(_port_of, stored))
    by_port = {request.port or request.id: request for request in stored}
    networks_and_groups = []
    for port in ports or ():
        network = scenario.network_of(port)
        network = dataclasses.replace(network, name=(names or {}).get(
            port.network) or port.network_name or network.name)
        if (request := by_port.get(port.id)) is not None:
            texts = [tags[_TRUSTED] for tags in request.specs
                     if _TRUSTED in tags]
            network = dataclasses.replace(
                network, trusted=_is_true(texts[0]) if texts else None,
                numa_policy=None if request.numa_policy in own
                else request.numa_policy)
        networks_and_groups.append(
            (network, scenario.security_groups_of(port.rules)))
    return tuple(networks_and_groups)


def _port_of(request: snapshot.PCIRequest) -> snapshot.Port:
    tags = request.specs[0] if request.specs else {}
    vnic_type = _VNIC_TYPES_OF.get(tags.get('dev_type'), 'direct')
    if _is_true(tags.get('remote_managed')):
        vnic_type = 'remote-managed'
    return snapshot.Port(
        id=request.port or request.id or '', vnic_type=vnic_type,
        physnet=tags.get('physical_network'))


def _is_true(text: str | None) -> bool:
    return str(text).lower() == 'true'


def _kinds(server: snapshot.Server) -> tuple[tuple[str, str], ...]:
    """Return the vNIC type and physical network of each port, sorted."""
    return tuple(sorted((port.vnic_type, port.physnet or '')
                        for port in server.ports or ()))


def _demand(kinds: Sequence[tuple[str, str]]) -> tuple[int, int, int]:
    return (sum(usage.bypasses_vswitch(vnic_type) for vnic_type, _ in kinds),
            len(kinds), sum(bool(physnet) for _, physnet in kinds))


def _rules(server: snapshot.Server) -> tuple[int, ...]:
    return tuple(port.rules or 0 for port in sorted(
        server.ports or (), key=lambda port: (
            port.vnic_type, port.physnet or '', port.rules or 0)))


# Networks of the command line


class _Networks:
    """The networks of a snapshot, by name, with their usual ports.

    :param cloud: the snapshot; networks that it does not list are taken from
        ports and DHCP servers
    """

    def __init__(self, cloud: snapshot.Cloud):
        networks = [*(cloud.networks or ()), *(
            snapshot.Network(id=service.id, name=service.name,
                             physnet=min(service.physnets or (), default=None))
            for service in cloud.network_services
            if service.kind == snapshot.DHCP)]
        self._vnic_types = collections.defaultdict(set)
        self._rules = collections.defaultdict(collections.Counter)
        for server in cloud.servers:
            for port in server.ports or ():
                if port.rules is not None:
                    self._rules[port.network][port.rules] += 1
                if port.network:
                    self._vnic_types[port.network].add(port.vnic_type)
                    networks.append(snapshot.Network(
                        id=port.network, name=port.network_name,
                        physnet=port.physnet))
        self._networks: dict[str, snapshot.Network] = {}
        for network in networks:
            self._networks.setdefault(network.id, network)

    def find(self, name: str) -> snapshot.Network | None:
        """Return the network of a name or ID; None if there is none."""
        if name in self._networks:
            return self._networks[name]
        named = [network for network in self._networks.values()
                 if network.name == name]
        if len({(network.physnet, self.vnic_type(network),
                 network.numa_policy) for network in named}) > 1:
            raise errors.NotInCloudError(
                f'several networks named {name!r}: ' +
                ', '.join(sorted(network.id for network in named)))
        return named[0] if named else None

    def vnic_type(self, network: snapshot.Network) -> str | None:
        """Return the vNIC type that all ports have; None if there is none."""
        vnic_types = self._vnic_types[network.id]
        return network.vnic_type or (
            min(vnic_types) if len(vnic_types) == 1 else None)

    def rules(self, network: snapshot.Network | None) -> int:
        """Return the number of security group rules that most ports have.

        Those of all networks count if the network is None or has none.
        """
        numbers = (network and self._rules[network.id]) or sum(
            self._rules.values(), collections.Counter())
        return max(numbers, key=lambda number: (numbers[number], number),
                   default=0)

    def names_and_ids(self) -> tuple[list[str], list[str]]:
        return [each.name for each in self._networks.values()], list(
            self._networks)


def of_networks(cloud: snapshot.Cloud, texts: Sequence[str],
                groups: tuple[scenario.SecurityGroup, ...] = ()) -> NewPorts:
    """Return the ports that a command line names by their networks.

    :param texts: for each port name or ID of the network, then, separated by
        commas, ``physnet=NAME`` and ``vnic-type=TYPE`` where these are not
        known; ``physnet=`` for a network without physical network; and
        ``trusted=true`` or ``false`` for ports that want such VFs
    :param groups: of each port; empty for as many rules as most ports have
    :raises NotInCloudError: if a text cannot be parsed, or the network is not
        known
    """
    networks = _Networks(cloud)
    plugs: list[scenario.Plug] = []
    notes: list[str] = []
    for text in texts:
        name, options = _options(text)
        network = networks.find(name)
        if network is None and _PHYSNET not in options:
            raise errors.NotInCloudError(
                names.unknown('network', name, *networks.names_and_ids())
                + f'; for one that was not read, add ,{_PHYSNET}=NAME, or '
                f',{_PHYSNET}= if it has no physical network')
        physnet = options.get(_PHYSNET, network and network.physnet) or None
        if (vnic_type := options.get(_VNIC_TYPE)) is None:
            vnic_type = network and networks.vnic_type(
                network) or scenario.NORMAL
            if vnic_type != scenario.NORMAL:
                notes.append(f'ports on the network {name} are {vnic_type}, '
                             f'as all that it has; {_VNIC_TYPE}= says '
                             'otherwise')
        if physnet and physnet not in _physnets(cloud):
            notes.append(f'no host and no port of the cloud is on the '
                         f'physical network {physnet}')
        rules = 0 if groups else networks.rules(network)
        if rules:
            notes.append(
                f'ports on the network {name} have '
                f'{strings.count(rules, "security-group rule")}, as most that '
                'are there')
        # They come from a cloud file, for ports of that vNIC type.
        numa_policy = trusted = None
        if network and network.vnic_type == vnic_type:
            numa_policy, trusted = network.numa_policy, network.trusted
        if _TRUSTED in options:
            trusted = _is_true(options[_TRUSTED])
        plugs.append((
            snapshot.Network(
                id=network.id if network else scenario.stable_uuid(
                    'network', name),
                name=name, physnet=physnet, vnic_type=vnic_type,
                numa_policy=numa_policy, trusted=trusted),
            scenario.security_groups_of(rules) or groups))
    return assume(Basis.NETWORKS, tuple(plugs),
                  notes=tuple(dict.fromkeys(notes)))


def _options(text: str) -> tuple[str, dict[str, str]]:
    name, *rest = text.split(',')
    options = {}
    for option in rest:
        key, equals, value = option.partition('=')
        if not equals or key not in (_PHYSNET, _VNIC_TYPE, _TRUSTED) or (
                key == _TRUSTED and value not in ('true', 'false')):
            raise errors.NotInCloudError(
                f'--network {text}: {option!r} is not {_PHYSNET}=NAME, '
                f'{_VNIC_TYPE}=TYPE or {_TRUSTED}=true or false')
        if key == _VNIC_TYPE and value not in VNIC_TYPES:
            raise errors.NotInCloudError(
                f'--network {text}: {value!r} is not a vNIC type; there are: '
                + ', '.join(VNIC_TYPES))
        options[key] = value
    if not name:
        raise errors.NotInCloudError(f'--network {text}: a name needed')
    return name, options


def _physnets(cloud: snapshot.Cloud) -> set[str]:
    names: set[str | None] = {
        name for host in cloud.hosts for node in host.nodes or ()
        for name in node.physnets}
    names.update(device.tags.get('physical_network')
                 for host in cloud.hosts for device in host.devices)
    names.update(port.physnet for port in scenario.ports_of(cloud))
    names.update(network.physnet for network in cloud.networks or ())
    for agent in cloud.network_agents or ():
        names.update(agent.physnets or ())
    return {name for name in names if name}
