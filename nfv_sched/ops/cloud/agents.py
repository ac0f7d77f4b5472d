# SPDX-License-Identifier: Apache-2.0
"""Read Neutron's agents with the DHCP networks and routers that they serve.

Ports and networks are read in bulk; the networks or routers of an agent take
one request for each agent.  Only DHCP agents, L3 agents and gateways of
ML2/OVN are read, and the physical networks that agents of virtual switches
report.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
import typing as ty

from nfv_sched.base import http_limits
from nfv_sched.ledger import neutron
from nfv_sched.limits import usage
from nfv_sched.ops.cloud import snapshot

_KINDS = {usage.DHCP_AGENT: snapshot.DHCP, usage.L3_AGENT: snapshot.ROUTER,
          usage.OVN_GATEWAY_AGENT: snapshot.OVN}
#: Kind of agent -> (resource with what it serves, key of the answer).
_SERVED = {snapshot.DHCP: ('dhcp-networks', 'networks'),
           snapshot.ROUTER: ('l3-routers', 'routers')}
_AGENT_FIELDS = ('id', 'agent_type', 'host', 'alive', 'admin_state_up',
                 'availability_zone', 'configurations')
_PORT_FIELDS = ('id', 'device_owner', 'device_id', 'network_id',
                'binding:host_id')
_TYPE = 'provider:network_type'
_PHYSNET = 'provider:physical_network'
_NETWORK_FIELDS = ('id', 'name', _TYPE, _PHYSNET, 'segments')
_TUNNELS = frozenset({'geneve', 'gre', 'vxlan'})
#: Keys under which agents of Open vSwitch, Linux bridge and OVN report the
#: physical networks that they reach.
_MAPPINGS = ('bridge_mappings', 'interface_mappings', 'bridge-mappings')

#: Called with (name of what is read, number done, total).
Progress = Callable[[str, int, int], None]


def read(reader: neutron.Reader, progress: Progress) -> dict[str, ty.Any]:
    """Read agents, their services, and all networks, sorted, by field."""
    try:
        return _read_agents(reader, progress)
    except http_limits.MALFORMED as exc:
        raise neutron.NeutronError(
            f'malformed answer: {type(exc).__name__}: {exc}') from exc


def _read_agents(reader: neutron.Reader,
                 progress: Progress) -> dict[str, ty.Any]:
    rows = list(reader.items(
        'agents', _AGENT_FIELDS, paged=False, optional=True))
    if len({row['id'] for row in rows}) < len(rows):
        raise neutron.NeutronError('malformed agents: one is there twice')
    chosen = [row for row in rows
              if neutron.text_of(row, 'agent_type') in _KINDS]
    rows_of_networks = {row['id']: row for row in reader.items(
        'networks', _NETWORK_FIELDS, optional=True)}
    networks = tuple([
        snapshot.Network(
            id=uuid, name=neutron.text_of(row, 'name'),
            physnet=next((name for each in _segments(row) if (
                name := neutron.text_of(each, _PHYSNET))), None))
        for uuid, row in sorted(rows_of_networks.items())])
    if not chosen:
        return {'network_agents': (), 'networks': networks}
    switches = _switches(rows)
    served: dict[str, list[dict]] = {}
    for count, row in enumerate(chosen):
        progress('network agents', count, len(chosen))
        kind = _KINDS[row['agent_type']]
        if kind in _SERVED:
            resource, key = _SERVED[kind]
            # An agent that was deleted meanwhile serves nothing.
            served[row['id']] = list(reader.items(
                f'agents/{row["id"]}/{resource}', (), paged=False,
                optional=True, key=key))
    progress('network agents', len(chosen), len(chosen))
    ports = _ports(reader)
    return {
        'network_agents': tuple(sorted(
            (_agent(row, switches, served.get(row['id']), ports)
             for row in chosen),
            key=lambda agent: (agent.kind, agent.host, agent.id))),
        'network_services': _services(chosen, served, ports, {
            uuid: _switch_for(row) for uuid, row in rows_of_networks.items()}),
        'networks': networks}


class _Switch(ty.NamedTuple):
    """Reach of a virtual switch, as in ``snapshot.NetworkAgent``."""

    physnets: frozenset[str]
    tunnels: frozenset[str] | None


def _switches(rows: Iterable[Mapping]) -> dict[str, _Switch]:
    switches: dict[str, _Switch] = {}
    for row in rows:
        configurations = _configurations(row)
        if not row.get('alive') or not any(
                key in configurations for key in _MAPPINGS):
            continue
        host = neutron.text_of(row, 'host')
        physnets = frozenset(
            name for key in _MAPPINGS
            for name in _mapped_physnets(configurations.get(key)))
        types = configurations.get('tunnel_types')
        tunnels = None if not isinstance(types, list) else frozenset(
            map(str, types))
        if (switch := switches.get(host)) is not None:
            physnets |= switch.physnets
            tunnels = None if None in (tunnels, switch.tunnels) else (
                tunnels | switch.tunnels)
        switches[host] = _Switch(physnets, tunnels)
    return switches


def _configurations(row: Mapping) -> Mapping:
    configurations = row.get('configurations') or {}
    if not isinstance(configurations, Mapping):
        raise neutron.NeutronError('malformed configurations of an agent')
    return configurations


def _mapped_physnets(mappings: ty.Any) -> Iterable[str]:
    # An object, or OVN's text.
    if isinstance(mappings, str):
        return [part.partition(':')[0].strip()
                for part in mappings.split(',') if part.strip()]
    return _names(mappings, 'mappings of an agent')


def _names(values: ty.Any, what: str) -> list[str]:
    """Return the names in a list, or the keys of an object, of an answer."""
    if not values:
        return []
    if not isinstance(values, (Mapping, list)) or not all(
            isinstance(each, str) for each in values):
        raise neutron.NeutronError(f'malformed {what}')
    return list(values)


def _agent(row: Mapping, switches: Mapping[str, _Switch],
           served: Iterable[Mapping] | None,
           ports: Iterable['_Port']) -> snapshot.NetworkAgent:
    # An OVN gateway serves the routers whose gateway ports are bound there.
    serves = {port.device for port in ports
              if port.owner == usage.GATEWAY_OWNER
              and port.host == row['host']} if served is None else {
                  each['id'] for each in served}
    configurations, host = _configurations(row), neutron.text_of(row, 'host')
    switch = switches.get(host)
    return snapshot.NetworkAgent(
        id=row['id'], kind=_KINDS[row['agent_type']], host=host,
        alive=bool(row.get('alive')), enabled=bool(row.get('admin_state_up')),
        zone=neutron.text_of(row, 'availability_zone'),
        mode=neutron.text_of(configurations, 'agent_mode'),
        external_only=(
            configurations.get('handle_internal_only_routers') is False),
        physnets=switch and switch.physnets,
        tunnels=switch and switch.tunnels, serves=tuple(sorted(serves)))


class _Port(ty.NamedTuple):
    owner: str
    device: str
    network: str
    host: str


def _ports(reader: neutron.Reader) -> list[_Port]:
    owners = sorted({usage.DHCP_OWNER, *usage.ROUTER_OWNERS}
                    - {usage.AGENT_GATEWAY_OWNER})
    return [_Port(*(neutron.text_of(row, name) for name in _PORT_FIELDS[1:]))
            for row in reader.items('ports', _PORT_FIELDS, filters=[
                ('device_owner', owner) for owner in owners])]


def _services(
    agent_rows: Iterable[Mapping], served: Mapping[str, list[dict]],
    ports: Iterable[_Port], networks: Mapping[str, '_Switch'],
) -> tuple[snapshot.NetworkService, ...]:
    of_router: dict[str, list[_Port]] = collections.defaultdict(list)
    of_network: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter)
    for port in ports:
        if port.owner == usage.DHCP_OWNER:
            of_network[port.network][port.host] += 1
        else:
            of_router[port.device].append(port)
    services: dict[str, snapshot.NetworkService] = {}
    for agent in agent_rows:
        for row in served.get(agent['id'], ()):
            uuid = row['id']
            if uuid not in services:
                services[uuid] = (
                    _dhcp(row, of_network[uuid].values())
                    if _KINDS[agent['agent_type']] == snapshot.DHCP else
                    _router(row, of_router[uuid], networks))
    return tuple(sorted(
        services.values(), key=lambda service: (service.kind, service.id)))


def _dhcp(row: Mapping, ports: Iterable[int]) -> snapshot.NetworkService:
    reached = _switch_for(row)
    return snapshot.NetworkService(
        id=row['id'], kind=snapshot.DHCP, name=neutron.text_of(row, 'name'),
        ports=max(ports, default=0), physnets=reached.physnets,
        tunnels=reached.tunnels or frozenset(), zones=_zones(row),
        subnets=len(_names(row.get('subnets'), 'subnets of a network')))


def _router(row: Mapping, ports: Iterable[_Port],
            networks: Mapping[str, '_Switch']) -> snapshot.NetworkService:
    own = [port for port in ports if port.owner != usage.HA_OWNER]
    of_ports = {port.network for port in own}
    needed = [networks[each] for each in of_ports if each in networks]
    ha = bool(row.get('ha'))
    return snapshot.NetworkService(
        id=row['id'], kind=snapshot.ROUTER, name=neutron.text_of(row, 'name'),
        ports=len(own) + ha,
        physnets=None if len(needed) < len(of_ports) else frozenset().union(
            *(each.physnets for each in needed)),
        tunnels=frozenset().union(*(each.tunnels or () for each in needed)),
        zones=_zones(row),
        external=any(port.owner == usage.GATEWAY_OWNER for port in own),
        ha=ha, distributed=bool(row.get('distributed')))


def _segments(row: Mapping) -> list[Mapping]:
    segments = row.get('segments') or [row]
    if not isinstance(segments, list) or not all(
            isinstance(each, Mapping) for each in segments):
        raise neutron.NeutronError('malformed segments of a network')
    return segments


def _switch_for(row: Mapping) -> _Switch:
    segments = _segments(row)
    return _Switch(
        frozenset(name for each in segments
                  if (name := neutron.text_of(each, _PHYSNET))),
        _TUNNELS & {neutron.text_of(each, _TYPE) for each in segments})


def _zones(row: Mapping) -> tuple[str, ...]:
    return tuple(sorted(_names(row.get('availability_zone_hints'),
                               'availability_zone_hints')))
