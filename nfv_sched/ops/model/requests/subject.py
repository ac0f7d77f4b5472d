# SPDX-License-Identifier: Apache-2.0
"""Resolve the subject of an explanation: a server, or new ones of a flavor."""

from collections.abc import Mapping, Sequence
import dataclasses
import typing as ty

from nova import exception

from nfv_sched.base import strings
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import names
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import lifecycle
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExplainSubject:
    text: str  #: description for people
    requested: request.BootRequest
    #: assumptions about the request, a sentence each
    assumed: tuple[str, ...] = ()
    #: host on which the server runs; None if it runs on none
    present: str | None = None
    taken: str = ''  #: when the cloud was read
    server: snapshot.Server | None = None  #: the server; None for new ones
    #: ports that ``capacity`` assumes for new servers of the flavor, if none
    #: are asked for here; else None
    usual_ports: assumed_ports.NewPorts | None = None


def server(cloud: snapshot.Cloud, state: states.State, name: str,
           networks: Sequence[str] = ()) -> ExplainSubject:
    """Return a server as if it were booted now.

    The resources that it has on its host are freed.

    :param state: the cloud that was started from the snapshot; changed
    :param name: UUID or name of the server
    :param networks: networks in place of its own, as for :func:`flavor`
    :raises NotInCloudError: if there is no such server, or there are several,
        or a network cannot be used
    """
    this = find(cloud, name)
    simulated = _simulated(state, this)
    present = simulated.host.name if simulated.host is not None else None
    named = assumed_ports.of_networks(
        cloud, networks, state.network.security_groups(()))
    assumed = [*named.notes]
    own = assumed_ports.plugs(this, {
        network.id: network.name for network in cloud.networks or ()})
    if networks:
        if own:
            assumed.append('the networks of --network in place of its own: ' +
                           ', '.join(assumed_ports.network_label(network)
                                     for network, _groups in own))
    elif this.ports is None and not own:
        assumed.append('its networks were not read: none are assumed, '
                       '--network names them')
    elif present is None and not simulated.ports:
        assumed.append('Nova does not keep the networks of a server that has '
                       'no host, only the PCI requests of its ports: ' + (
                           f'{strings.count(len(own), "port")} assumed'
                           if own else 'none are assumed') +
                       ', --network names them')
    boot_request = request.BootRequest(
        flavor=this.flavor, image=this.image,
        ports=named.plugs if networks else own,
        alias_specs=request.alias_specs(this),
        zone=this.zone, stored=True,
        group=scenario.unique_names(cloud.groups).get(this.group or ''),
        hints=this.hints, project=simulated.project,
        on_volume=this.is_on_volume)
    give_back(state, this)
    where = f'on {present}' if present else 'without a host'
    return ExplainSubject(
        text=f'Server {this.name or this.uuid} ({this.state}, {where})',
        requested=boot_request, assumed=tuple(assumed), present=present,
        taken=cloud.taken, server=this)


def find(cloud: snapshot.Cloud, name: str) -> snapshot.Server:
    return _named('server', name, cloud.servers)


def _named(noun: str, name: str, items: Sequence[ty.Any]) -> ty.Any:
    named = [each for each in items if each.uuid == name] or [
        each for each in items if each.name == name]
    if not named:
        raise errors.NotInCloudError(names.unknown(
            noun, name, [each.name for each in items],
            [each.uuid for each in items]))
    if len(named) > 1:
        raise errors.NotInCloudError(
            f'several {noun}s named {name!r}: ' +
            ', '.join(each.uuid for each in named))
    return named[0]


def _simulated(state: states.State,
               server: snapshot.Server) -> servers.SimulatedServer:
    return next(each for each in state.servers.values()
                if each.uuid == server.uuid)


def give_back(state: states.State, server: snapshot.Server) -> None:
    """Remove a server from a cloud, with all its resources."""
    simulated = state.servers.pop(_simulated(state, server).name)
    lifecycle.remove(state, simulated)
    for members in state.groups.values():
        if simulated.name in members:
            members.remove(simulated.name)


def flavor(cloud: snapshot.Cloud, state: states.State, name: str, *,
           image: Mapping[str, str] | None = None,
           networks: Sequence[str] = (), zone: str | None = None,
           group: str | None = None, count: int = 1) -> ExplainSubject:
    """Return new servers of a flavor.

    :param state: the cloud that was started from the snapshot
    :param name: name or ID of the flavor
    :param networks: see
        :func:`nfv_sched.ops.model.requests.assumed_ports.of_networks`
    :param group: UUID or name of the server group
    :raises NotInCloudError: if there is no such flavor or group, Nova does not
        know an image property, or the ports cannot be used
    """
    flavors = [each for each in cloud.flavors if name in (each.name, each.id)]
    if not flavors:
        raise errors.NotInCloudError(names.unknown(
            'flavor', name, [each.name for each in cloud.flavors]))
    ports = assumed_ports.of_networks(
        cloud, networks, state.network.security_groups(()))
    if count > 1 and any(network.vnic_type != scenario.NORMAL
                         for network, _groups in ports.plugs):
        raise errors.NotInCloudError(
            'a request for several servers cannot have ports of SR-IOV')
    check_image(image or {}, errors.NotInCloudError)
    assumed = list(ports.notes)
    usual_ports = None
    if not networks:
        usual_ports = assumed_ports.per_flavor(cloud, None)(flavors[0])
        assumed.append(_without_ports(usual_ports))
    zones = {host.zone for host in cloud.hosts}
    # Nova also takes ZONE:HOST:NODE.
    if zone and zone.partition(':')[0] not in zones:
        raise errors.NotInCloudError(
            names.unknown('availability zone', zone, zones))
    default = nova_internals.CONF.default_schedule_zone
    if not zone and default:
        zone = default
        assumed.append(f'availability zone {zone}, as default_schedule_zone '
                       'says')
    return ExplainSubject(
        text=f'Flavor {flavors[0].name}' + (
            f', {count} servers' if count > 1 else ''),
        requested=request.BootRequest(
            flavor=flavors[0], image=image or {}, ports=ports.plugs,
            zone=zone, count=count,
            group=None if group is None else scenario.unique_names(
                cloud.groups)[_named(
                    'server group', group, cloud.groups).uuid]),
        assumed=tuple(assumed), taken=cloud.taken, usual_ports=usual_ports)


def check_image(properties: Mapping[str, str], error: type[Exception]) -> None:
    """Raise ``error``, with the reason, if Nova does not take an image."""
    if unknown := nova_internals.unknown_image_properties(properties):
        raise error(f'Nova knows no image property {unknown[0]!r}')
    try:
        nova_internals.image_meta(properties)
    except (ValueError, exception.NovaException) as exc:
        raise error(f'Nova does not take the image: {exc}') from exc


def _without_ports(usual_ports: assumed_ports.NewPorts) -> str:
    text = 'the server has no port'
    if usual_ports.basis is assumed_ports.Basis.SERVERS:
        if not usual_ports.plugs:
            return f'{text}, {usual_ports.reason}'
        return (f'{text}, while capacity list assumes {usual_ports.label}, '
                f'{usual_ports.reason}; --network NET gives it one')
    return f'{text}, as {usual_ports.reason}; --network NET gives it one'
