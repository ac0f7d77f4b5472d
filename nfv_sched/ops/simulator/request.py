# SPDX-License-Identifier: Apache-2.0
"""Make instances and requests as the Nova API and nova-conductor do.

As in Nova, scheduler and claim of a boot get the NUMA topology that the API
has made; the claim of a move gets one that is made again from the flavor; the
claim of an unshelve gets the last one of the server.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import typing as ty

from nova import exception
from nova import objects

from nfv_sched.nova import flavors
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states
from nfv_sched.scheduler import notes

#: Alternatives of a PCI request; a device must have all tags of one of them.
Specs = Sequence[Mapping[str, str | None]]


def alias_specs(snapshot_server: snapshot.Server) -> dict[str, Specs]:
    """Return what a device of each alias must have, as Nova stored it."""
    return {pci_request.alias: pci_request.specs
            for pci_request in snapshot_server.pci_requests or ()
            if pci_request.alias and pci_request.specs}


def constraints(flavor: objects.Flavor, image_meta: objects.ImageMeta,
                ) -> objects.InstanceNUMATopology | None:
    # Nova would make a set of all CPUs up to any number in the file.
    if (reason := flavors.unreadable(flavor.extra_specs)) is not None:
        raise servers.Refused(f'the flavor cannot be read: {reason}')
    try:
        return nova_internals.numa_get_constraints(flavor, image_meta)
    except (exception.NovaException, ArithmeticError, ValueError) as e:
        raise servers.Refused(f'the Nova API refuses the flavor: {e}')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BootRequest:
    flavor: snapshot.Flavor
    #: properties of the image, as Nova stores them
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: see :func:`alias_specs`
    alias_specs: Mapping[str, Specs] = dataclasses.field(default_factory=dict)
    #: network and security groups of each port
    ports: tuple[scenario.Plug, ...] = ()
    #: names of the security groups of ports that Nova makes; empty for the
    #: default group of the project
    security_groups: tuple[str, ...] = ()
    host: str | None = None  #: the only host to consider; the filters run
    force: str | None = None  #: forced host; the filters do not run
    ignore_hosts: tuple[str, ...] = ()  #: hosts to ignore
    zone: str | None = None  #: availability zone of the hosts to consider
    #: whether Nova has stored the request already: the API then does not check
    #: its availability zone again
    stored: bool = False
    group: str | None = None  #: name of the server group
    #: scheduler hints other than that of the group
    hints: Mapping[str, Sequence[str]] = dataclasses.field(
        default_factory=dict)
    project: str = nova_internals.PROJECT  #: UUID of the project
    on_volume: bool = False  #: whether the root disk is on a volume
    count: int = 1  #: number of servers that one request creates

    def with_flavor(self, **changes) -> 'BootRequest':
        return dataclasses.replace(
            self, flavor=dataclasses.replace(self.flavor, **changes))

    def with_specs(self, extra_specs: Mapping[str, str]) -> 'BootRequest':
        return self.with_flavor(extra_specs=dict(extra_specs))


def wanted(state: states.State, step: actions.Boot) -> BootRequest:
    return BootRequest(
        flavor=state.flavors[step.flavor],
        image=state.images[step.image] if step.image else {},
        ports=plugs(state, step.networks, step.security_groups),
        security_groups=step.security_groups, host=step.host,
        force=step.force, ignore_hosts=step.ignore_hosts,
        zone=step.availability_zone, group=step.group,
        count=len(step.targets) if step.multi_create else 1)


def create(state: states.State, server: servers.SimulatedServer,
           boot_request: BootRequest,
           first: servers.SimulatedServer | None = None) -> None:
    """Make instance and request of a server, as the API does for a boot.

    :param first: the first of several servers, which have equal PCI requests
    """
    try:
        server.image_meta = nova_internals.image_meta(boot_request.image)
    except (exception.NovaException, ValueError) as e:
        raise servers.Refused(f'the Nova API refuses the image: {e}')
    server.image = boot_request.image
    # All ports that Nova makes have the security groups of the request.  A
    # port with other groups must exist before.
    groups = state.network.security_groups(boot_request.security_groups)
    server.ports = [
        dataclasses.replace(port, exists=port.security_groups != groups)
        for port in ports_of(server.name, boot_request.ports)]
    state.network.add_unbound(server)
    server.instance = new_instance(
        state, server, states.nova_flavor(boot_request.flavor))
    properties = {
        'ignore_hosts': list(boot_request.ignore_hosts) or None,
        'force_hosts': [boot_request.force] if boot_request.force else None,
        'scheduler_hints': {
            name: list(values) for name, values in boot_request.hints.items()}}
    server.spec = spec = describe(
        state, server, properties, _zone(state, boot_request),
        state.network.requested_groups(boot_request.security_groups),
        (first or server).name, boot_request.alias_specs)
    spec.num_instances = boot_request.count
    spec.is_bfv = boot_request.on_volume
    if boot_request.group:
        spec.instance_group = server_group(state, boot_request.group)
        spec.instance_group.members.append(server.uuid)
        state.groups.setdefault(boot_request.group, []).append(server.name)


def create_together(state: states.State,
                    booted: Sequence[servers.SimulatedServer],
                    boot_request: BootRequest) -> objects.RequestSpec:
    """Create several servers; return the request for all of them."""
    for server in booted:
        create(state, server, boot_request, booted[0])
    spec = booted[0].spec.obj_clone()
    if boot_request.group:
        spec.instance_group = server_group(state, boot_request.group)
    set_destination(state, spec, boot_request.host)
    return spec


def _zone(state: states.State, boot_request: BootRequest) -> str | None:
    if boot_request.stored:
        return boot_request.zone
    zone = boot_request.zone or nova_internals.CONF.default_schedule_zone
    if zone and not boot_request.force:
        zones = scenario.zones_of(state.scenario.cloud.aggregates)
        default = nova_internals.CONF.default_availability_zone
        if not any(zones.get(name, default) == zone
                   for name, host in state.hosts.items()
                   if host.record.enabled):
            raise servers.Refused(f'no availability zone named {zone!r}')
    return zone


def new_instance(state: states.State, server: servers.SimulatedServer,
                 flavor: objects.Flavor) -> objects.Instance:
    return objects.Instance(
        id=len(state.servers), uuid=server.uuid, display_name=server.name,
        project_id=server.project, user_id=state.context.user_id, host=None,
        node=None, flavor=flavor, old_flavor=None, new_flavor=None,
        system_metadata={}, numa_topology=None, availability_zone=None,
        pci_requests=objects.InstancePCIRequests(
            instance_uuid=server.uuid, requests=[]),
        resources=None, migration_context=None,
        pci_devices=objects.PciDeviceList(objects=[]),
        info_cache=objects.InstanceInfoCache(
            instance_uuid=server.uuid,
            network_info=nova_internals.network_info(server.ports)))


def describe(state: states.State, server: servers.SimulatedServer,
             properties: Mapping[str, ty.Any], zone: str | None,
             security_groups: Sequence[str], name: str,
             alias_specs: Mapping[str, Specs]) -> objects.RequestSpec:
    """Return the request for a server, as the API makes it.

    :param server: its ``instance`` gets the NUMA topology and the PCI
        requests that the API makes of flavor, image and ports
    :param properties: filter properties: requested hosts and hints
    :param name: a name from which the IDs of the PCI requests are derived
    :raises Refused: if the API refuses flavor or image
    """
    instance = server.instance
    flavor, image_meta = instance.flavor, server.image_meta
    topology = constraints(flavor, image_meta)
    instance.numa_topology = topology
    try:
        requests, metadata, requested = nova_internals.resource_requests(
            state.context, flavor, image_meta, server.ports,
            lambda number: scenario.stable_uuid(
                'pci request', f'{name}/{number}'))
    except exception.PciRequestAliasNotDefined as e:
        raise servers.UnknownAliasError(
            f'the Nova API refuses the flavor: {e}', e.kwargs['alias'])
    except (exception.NovaException, ValueError) as e:
        raise servers.Refused(f'the Nova API refuses the flavor: {e}')
    for pci_request in requests.requests:
        if pci_request.alias_name in alias_specs:
            pci_request.spec = [
                dict(tags) for tags in alias_specs[pci_request.alias_name]]
    requests.instance_uuid = server.uuid
    instance.pci_requests = requests
    spec = objects.RequestSpec.from_components(
        state.context, server.uuid, image_meta, flavor, topology,
        requests.obj_clone(), properties, None, zone,
        security_groups=nova_internals.security_groups(security_groups),
        project_id=server.project)
    spec.requested_networks = requested
    spec.is_bfv = False
    if server.ports:
        spec.network_metadata = metadata
    return spec


def stored(server: servers.SimulatedServer) -> objects.RequestSpec:
    if server.spec is None:
        raise servers.Refused(server.unknown or '')
    return server.spec.obj_clone()


def plugs(state: states.State, networks: Sequence[str],
          security_groups: tuple[str, ...]) -> tuple[scenario.Plug, ...]:
    groups = state.network.security_groups(security_groups)
    return tuple((state.scenario.networks[name], groups) for name in networks)


def ports_of(
    name: str, plugs: Sequence[scenario.Plug],
    existing_ports: Sequence[nova_internals.SimulatedPort] = (),
) -> list[nova_internals.SimulatedPort]:
    """Return new ports of a server, with UUIDs derived from ``name``."""
    used = {port.id for port in existing_ports}
    ids = (uuid for number in itertools.count() if (
        uuid := scenario.stable_uuid('port', f'{name}/{number}')) not in used)
    return [nova_internals.SimulatedPort(next(ids), of_port, groups)
            for of_port, groups in plugs]


def resized_requests(flavor: objects.Flavor, server: servers.SimulatedServer):
    """Return the PCI requests of a resize to a flavor, as from the API."""
    try:
        requests = nova_internals.move_requests(flavor, server.instance)
        for number, request in enumerate(requests.requests):
            if request.source == request.FLAVOR_ALIAS:
                request.request_id = scenario.stable_uuid(
                    'pci request', f'{server.name}/{flavor.name}/{number}')
        return requests
    except exception.NovaException as e:
        raise servers.Refused(f'the Nova API refuses the flavor: {e}')


def is_claimed_as_asked(server: servers.SimulatedServer) -> bool:
    """Return whether a move claims the devices that filters are asked for.

    The claim makes stored requests of aliases again: an alias may mean other
    devices by now, or be gone, and the flavor's NUMA policy does not count.
    """
    try:
        claimed = nova_internals.move_requests(
            server.instance.flavor, server.instance)
    except exception.NovaException:
        return False
    of_claim, asked = [
        [(each.alias_name, each.count, each.spec, each.numa_policy)
         for each in of.requests]
        for of in (claimed, server.instance.pci_requests)]
    return of_claim == asked


def server_group(state: states.State, name: str) -> objects.InstanceGroup:
    group = state.scenario.server_groups[name]
    members = state.present_members(name)
    rules = {name: str(group.most_on_host) for name in group.rules
             if name == 'max_server_per_host'}
    return objects.InstanceGroup(
        id=1, uuid=group.uuid, name=name, user_id=state.context.user_id,
        project_id=state.context.project_id, policy=group.policy,
        policies=[group.policy], _rules=rules,
        members=[member.uuid for member in members],
        hosts=sorted({member.host.name for member in members
                      if member.host is not None}))


def renew_group(state: states.State, server: servers.SimulatedServer,
                spec: objects.RequestSpec) -> None:
    for name, members in state.groups.items():
        if server.name in members:
            spec.instance_group = server_group(state, name)


def set_destination(state: states.State, spec: objects.RequestSpec,
                    host: str | None, cell: str | None = None) -> None:
    """Set the requested destination: a host, or any, in a cell if given."""
    destination = objects.Destination()
    if cell is not None:
        destination.cell = state.manager.cell_by_name[cell]
    if host is not None:
        destination.host = host
        destination.node = state.hosts[host].node.hypervisor_hostname
    spec.requested_destination = destination


def of_move(state: states.State, server: servers.SimulatedServer,
            host: str | None, ignore: Sequence[str],
            live: bool = False) -> objects.RequestSpec:
    """Return the request of a move to ``host``, or to any if it is None."""
    spec = stored(server)
    spec.reset_forced_destinations()
    spec.ignore_hosts = list(ignore)
    # Nova moves servers within their cell, unless the policy allows a
    # cross-cell resize.
    set_destination(state, spec, host, server.cell)
    # Sets tunneled = True, as in Nova; see nfv_sched.fit.request.
    spec.ensure_network_information(server.instance)
    # The query for Placement has only the PCI devices of aliases.
    spec.requested_resources = []
    spec.generate_request_groups_from_pci_requests()
    renew_group(state, server, spec)
    notes.note_of(spec).live_migration = live
    return spec
