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

"""Runs the steps of a cloud: what API, conductor and computes do around the
scheduler and the claims.

Which copy of a request or of a NUMA topology goes where is Nova's: the API's
fresh topology to the scheduler and to the claim of a boot, the flavor's fresh
one to the claim of a move, the last known one to the claim of an unshelve.
The order in which Placement and nova-compute give and take is Nova's, too.
Guests, disks and images are not simulated, and nothing happens at the same
time as anything else.  Where Placement tracks PCI devices, nova-compute
would correct an allocation that its claim did not keep to; here it stays.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import time
import typing as ty

from nova import exception
from nova import objects
from oslo_serialization import jsonutils

from nfv_sched import policy
from nfv_sched.simulator import compute
from nfv_sched.simulator import loader
from nfv_sched.simulator import model
from nfv_sched.simulator import network
from nfv_sched.simulator import nova_api
from nfv_sched.simulator import placement as ledger_mod
from nfv_sched.simulator import scheduler

ACTIVE = 'ACTIVE'
REFUSED = 'REFUSED'
RESIZED = 'VERIFY_RESIZE'
SHELVED = 'SHELVED'
DELETED = 'DELETED'


class Refused(Exception):
    """A request that Nova refuses; the text says why."""


@dataclasses.dataclass(slots=True)
class _Pending:
    """A resize or cold migration that is not confirmed yet."""

    source: compute.ComputeHost
    flavor: objects.Flavor
    flavor_name: str
    claimed: compute.Claimed
    spec: objects.RequestSpec
    migration: str


@dataclasses.dataclass(slots=True)
class Server:
    """A server of the cloud.

    :ivar name: its name
    :ivar flavor_name: name of its flavor
    :ivar status: ACTIVE, REFUSED, VERIFY_RESIZE, SHELVED or DELETED
    :ivar host: its host, or None
    :ivar reason: why the last thing asked of it was refused, or ''
    :ivar instance: ``nova.objects.Instance``
    :ivar spec: the request as Nova stores it
    :ivar image_meta: its image
    :ivar pending: a move to be confirmed or reverted
    :ivar claimed: what it has claimed on its host, or None
    :ivar ports: its ports
    """

    name: str
    flavor_name: str
    status: str = REFUSED
    host: compute.ComputeHost | None = None
    reason: str = ''
    instance: objects.Instance | None = None
    spec: objects.RequestSpec | None = None
    image_meta: objects.ImageMeta | None = None
    pending: _Pending | None = None
    claimed: compute.Claimed | None = None
    ports: list[network.Port] = dataclasses.field(default_factory=list)

    @property
    def uuid(self) -> str:
        """UUID of the server."""
        return compute.stable_uuid('server', self.name)

    @property
    def nodes(self) -> tuple[int, ...] | None:
        """Host NUMA node of each guest NUMA node; None if it has none."""
        if self.host is None or self.instance.numa_topology is None:
            return None
        return tuple(cell.id for cell in self.instance.numa_topology.cells)

    @property
    def pinned_cpus(self) -> tuple[int, ...]:
        """Host CPUs its dedicated vCPUs are pinned to."""
        if self.nodes is None:
            return ()
        cpus: set[int] = set()
        for cell in self.instance.numa_topology.cells:
            cpus.update((cell.cpu_pinning or {}).values())
            cpus.update(cell.cpuset_reserved or ())
        return tuple(sorted(cpus))

    @property
    def vswitch(self) -> str | None:
        """``local``, ``partial`` or ``remote`` to the virtual switch.

        None where there is nothing to say: no host, no switch declared, or
        a guest that floats over several NUMA nodes.
        """
        if self.host is None:
            return None
        return self._near(self.host.group.switch_nodes)

    @property
    def places(self) -> dict[str, str]:
        """The same for each place of its host, where there is something."""
        if self.host is None:
            return {}
        found = {name: self._near(where)
                 for name, where in self.host.group.places.items()}
        return {name: near for name, near in found.items() if near}

    def _near(self, where: frozenset[int]) -> str | None:
        """How many of its NUMA nodes are on some of the host's."""
        if not where:
            return None
        nodes = self.nodes
        if nodes is None:
            if len(self.host.group.nodes) > 1:
                return None
            nodes = (self.host.group.nodes[0].id,)
        near = [node in where for node in nodes]
        if all(near):
            return 'local'
        return 'partial' if any(near) else 'remote'

    @property
    def cores(self) -> int:
        """How many physical cores its dedicated vCPUs are on."""
        if self.host is None:
            return 0
        return self.host.group.cores_of(self.pinned_cpus)

    @property
    def floating(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]],
                                ...]:
        """Its shared vCPUs and the host CPUs they float over.

        One pair for each of its NUMA nodes that has shared vCPUs.
        """
        if self.nodes is None:
            return ()
        shared = {node.id: node.shared for node in self.host.group.nodes}
        return tuple(
            (tuple(sorted(cell.cpuset)), tuple(sorted(shared[cell.id])))
            for cell in self.instance.numa_topology.cells if cell.cpuset)

    @property
    def devices(self) -> tuple[tuple[str, int | None], ...]:
        """PCI address and host NUMA node of each of its PCI devices."""
        if self.host is None or self.claimed is None:
            return ()
        return tuple(sorted((device.address, device.numa_node)
                            for device in self.claimed.devices))

    @property
    def pci(self) -> str | None:
        """``local``, ``partial`` or ``remote`` to its PCI devices.

        On a host with several NUMA nodes a device that does not tell its
        node is not local. None where there is nothing to say: no device, or
        a guest that floats over several NUMA nodes.
        """
        devices = self.devices
        if not devices:
            return None
        if len(self.host.group.nodes) == 1:
            return 'local'
        if self.nodes is None:
            return None
        near = [node in self.nodes for _, node in devices]
        if all(near):
            return 'local'
        return 'partial' if any(near) else 'remote'

    @property
    def policy(self) -> policy.NFVPolicy:
        """What its flavor and image ask of placement."""
        if self.instance is None:
            return policy.NO_POLICY
        return policy.parse(self.instance.flavor.extra_specs,
                            _properties(self.image_meta))


def _properties(image_meta: objects.ImageMeta) -> dict[str, ty.Any]:
    return image_meta.properties.to_dict()


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one server in one step.

    :ivar step: number of the step
    :ivar action: what was asked
    :ivar server: name of the server (or host)
    :ivar ok: whether it was done
    :ivar status: status of the server afterwards
    :ivar source: host before the step
    :ivar host: host afterwards
    :ivar nodes: host NUMA node of each guest NUMA node
    :ivar vswitch: local, partial, remote or None
    :ivar places: local, partial or remote to each place of the host
    :ivar devices: PCI address and host NUMA node of each PCI device
    :ivar pci: local, partial, remote or None
    :ivar cores: physical cores that dedicated vCPUs are on
    :ivar reason: why it was refused
    :ivar notes: claims that failed on the way
    """

    step: int
    action: str
    server: str
    ok: bool
    status: str
    source: str | None = None
    host: str | None = None
    nodes: tuple[int, ...] | None = None
    vswitch: str | None = None
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    devices: tuple[tuple[str, int | None], ...] = ()
    pci: str | None = None
    cores: int = 0
    reason: str = ''
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What became of a cloud.

    :ivar cloud: the cloud
    :ivar servers: its servers, deleted ones included
    :ivar hosts: its hosts
    :ivar ledger: its Placement
    :ivar loads: what the network puts on each host, by name
    :ivar outcomes: what happened, in order
    :ivar checks: how many expectations were checked
    :ivar failures: those not met
    :ivar seconds: how long the steps took
    """

    cloud: model.Cloud
    servers: Sequence[Server]
    hosts: Sequence[compute.ComputeHost]
    ledger: ledger_mod.Ledger
    loads: Mapping[str, network.Load]
    outcomes: Sequence[Outcome]
    checks: int
    failures: Sequence[str]
    seconds: float


class Simulation:
    """One cloud and its state.

    It uses Nova's global configuration:
    :mod:`nfv_sched.simulator.configuration` sets that up around it.

    :param cloud: what to build and run
    :param progress: called with (servers done, servers in all) now and then
    :raises InputError: if a filter does not exist, an image or an alias is
        bad, or Nova cannot report the PCI devices of a host
    """

    def __init__(self, cloud: model.Cloud,
                 progress: Callable[[int, int], None] | None = None):
        self.cloud = cloud
        self.context = nova_api.admin_context()
        self.ledger = ledger_mod.Ledger()
        self.hosts: dict[str, compute.ComputeHost] = {}
        self.servers: dict[str, Server] = {}
        self.outcomes: list[Outcome] = []
        self.failures: list[str] = []
        self.checks = 0
        self._progress = progress or (lambda done, total: None)
        self._notes: list[str] = []
        # Members of server groups by group.
        self._groups: dict[str, list[str]] = {}
        # What servers left behind on hosts that are down.
        self._residues: dict[str, list[tuple[
            objects.Instance, objects.Flavor, compute.Claimed]]] = {}
        self._flavors = {
            name: self._flavor(number, spec) for number, (name, spec) in
            enumerate(cloud.flavors.items(), 1)}
        self._images = {name: self._image(name, properties)
                        for name, properties in cloud.images.items()}
        try:
            nova_api.get_alias_from_config()
        except exception.NovaException as e:
            raise loader.InputError([f'{cloud.path}: {e}'])
        self._build_hosts()
        try:
            self.manager = scheduler.HostManager(self.hosts,
                                                 cloud.aggregates)
        except (exception.SchedulerHostFilterNotFound, ImportError,
                AttributeError) as e:
            raise loader.InputError([f'{cloud.path}: {e}'])
        self.network = network.Network(
            cloud, self.hosts, self.ledger, self.manager.aggregates_of)
        self.scheduler = scheduler.Scheduler(
            self.manager, self.ledger, self.network.sources)

    # Building

    def _build_hosts(self) -> None:
        for group in self.cloud.groups:
            text = compute.numa_topology(group.nodes)._to_json()
            for name in group.names:
                host = compute.ComputeHost(name, len(self.hosts) + 1, group,
                                           text)
                self.hosts[name] = host
                self.ledger.add(host.provider())
                try:
                    providers = host.report_devices()
                except exception.NovaException as e:
                    raise loader.InputError([
                        f'{self.cloud.path}: host {name}: {e}'])
                for provider in providers:
                    self.ledger.add(provider)
        for aggregate in self.cloud.aggregates:
            aggregate_uuid = compute.stable_uuid('aggregate', aggregate.name)
            for name in aggregate.hosts:
                provider = self.ledger.providers[self.hosts[name].uuid]
                provider.aggregates.add(aggregate_uuid)

    @staticmethod
    def _flavor(number: int, spec: model.FlavorSpec) -> objects.Flavor:
        flavor = objects.Flavor(
            id=number, name=spec.name, flavorid=spec.name, vcpus=spec.vcpus,
            memory_mb=spec.memory_mib, root_gb=spec.disk_gib, ephemeral_gb=0,
            swap=0, rxtx_factor=1.0, vcpu_weight=0, is_public=True,
            disabled=False, description=None,
            extra_specs=dict(spec.extra_specs))
        flavor.obj_reset_changes()
        return flavor

    def _image(self, name: str, properties: ty.Mapping[str, ty.Any]):
        unknown = nova_api.unknown_image_properties(properties)
        problem = (f'Nova knows no image property {unknown[0]!r}'
                   if unknown else None)
        try:
            meta = nova_api.image_meta(properties)
        except (ValueError, exception.NovaException) as e:
            problem = str(e)
        if problem:
            raise loader.InputError([f'{self.cloud.path}: images.{name}: '
                                     f'{problem}'])
        return meta

    # Running

    def run(self) -> Result:
        """Run all steps and check what is expected of them."""
        began = time.monotonic()
        total = sum(len(step.targets) for step in self.cloud.steps)
        done = 0
        for step in self.cloud.steps:
            first = len(self.outcomes)
            if step.action == 'neutron':
                self.network.become(step.state, self._owners())
                self.outcomes.append(Outcome(
                    step.number, step.action, '', True, '',
                    notes=(step.state,)))
            elif step.action == 'boot' and step.multi_create:
                self._boot_together(step)
                done += len(step.targets)
                self._progress(done, total)
            else:
                for name in step.targets:
                    self._one(step, name)
                    done += 1
                    self._progress(done, total)
            if step.expect is not None:
                self._check(step, self.outcomes[first:])
        return Result(
            cloud=self.cloud, servers=list(self.servers.values()),
            hosts=list(self.hosts.values()), ledger=self.ledger,
            loads=self.network.loads(self._owners()),
            outcomes=self.outcomes, checks=self.checks,
            failures=self.failures, seconds=time.monotonic() - began)

    def _one(self, step: model.Step, name: str) -> None:
        """Do a step for one of its servers or hosts."""
        self._notes = []
        if step.action in ('host_down', 'host_up'):
            getattr(self, f'_{step.action}')(self.hosts[name])
            self.outcomes.append(Outcome(step.number, step.action, name,
                                         True, ''))
            return
        if step.action == 'boot':
            self.servers[name] = Server(name, step.flavor)
        server = self.servers[name]
        source = server.host.name if server.host else None
        server.reason = ''
        try:
            getattr(self, f'_{step.action}')(server, step)
        except Refused as e:
            server.reason = str(e)
        self._record(step, server, source)

    def _record(self, step: model.Step, server: Server,
                source: str | None) -> None:
        self.outcomes.append(Outcome(
            step=step.number, action=step.action, server=server.name,
            ok=not server.reason, status=server.status, source=source,
            host=server.host.name if server.host else None,
            nodes=server.nodes, vswitch=server.vswitch,
            places=server.places,
            devices=server.devices, pci=server.pci, cores=server.cores,
            reason=server.reason, notes=tuple(self._notes)))

    # What the API does

    def _constraints(self, flavor: objects.Flavor,
                     image_meta: objects.ImageMeta):
        try:
            return nova_api.numa_get_constraints(flavor, image_meta)
        except (exception.NovaException, ValueError) as e:
            raise Refused(f'the Nova API refuses the flavor: {e}')

    def _create(self, server: Server, step: model.Step,
                first: Server | None = None) -> None:
        """Make the instance and its request, as the API does for a boot.

        :param server: the server
        :param step: its boot
        :param first: the first server of the same request: they share their
            PCI requests
        """
        flavor = self._flavors[step.flavor]
        server.image_meta = (
            self._images[step.image] if step.image else
            nova_api.image_meta({}))
        server.ports = self._ports(server.name, step)
        ports = [port.to_nova() for port in server.ports]
        server.instance = objects.Instance(
            id=len(self.servers), uuid=server.uuid,
            display_name=server.name, project_id=self.context.project_id,
            user_id=self.context.user_id, host=None, node=None,
            flavor=flavor, old_flavor=None, new_flavor=None,
            system_metadata={}, numa_topology=None, availability_zone=None,
            pci_requests=None, resources=None, migration_context=None,
            pci_devices=objects.PciDeviceList(objects=[]),
            info_cache=objects.InstanceInfoCache(
                instance_uuid=server.uuid,
                network_info=nova_api.network_info(ports)))
        topology = self._constraints(flavor, server.image_meta)
        server.instance.numa_topology = topology
        try:
            requests, metadata, requested = nova_api.resource_requests(
                self.context, flavor, server.image_meta, ports,
                lambda number: compute.stable_uuid(
                    'pci request', f'{(first or server).name}/{number}'))
        except (exception.NovaException, ValueError) as e:
            raise Refused(f'the Nova API refuses the flavor: {e}')
        requests.instance_uuid = server.uuid
        server.instance.pci_requests = requests
        spec = objects.RequestSpec.from_components(
            self.context, server.uuid, server.image_meta, flavor, topology,
            requests.obj_clone(),
            {'ignore_hosts': list(step.ignore_hosts) or None,
             'force_hosts': [step.force] if step.force else None},
            None, step.zone, security_groups=nova_api.security_groups(
                self.network.requested_groups(step.security_groups)))
        spec.num_instances = (len(step.targets) if step.multi_create else 1)
        spec.requested_networks = requested
        if ports:
            spec.network_metadata = metadata
        server.spec = spec
        if step.group:
            spec.instance_group = self._server_group(step.group)
            spec.instance_group.members.append(server.uuid)
            self._groups.setdefault(step.group, []).append(server.name)

    def _ports(self, name: str, step: model.Step) -> list[network.Port]:
        """The ports that a step asks for.

        :param name: what tells them from those of other servers and steps
        :param step: a boot or an attach
        """
        groups = self.network.security_groups(step.security_groups)
        return [network.Port(compute.stable_uuid('port', f'{name}/{number}'),
                             self.cloud.networks[of_port], groups)
                for number, of_port in enumerate(step.networks)]

    # Server groups

    def _server_group(self, name: str) -> objects.InstanceGroup:
        spec = self.cloud.server_groups[name]
        members = [self.servers[member]
                   for member in self._groups.get(name, ())
                   if self.servers[member].status != DELETED]
        rules = {}
        if spec.max_server_per_host is not None:
            rules['max_server_per_host'] = str(spec.max_server_per_host)
        return objects.InstanceGroup(
            id=1, uuid=compute.stable_uuid('group', name), name=name,
            project_id=self.context.project_id,
            user_id=self.context.user_id,
            policy=spec.policy, policies=[spec.policy], _rules=rules,
            members=[member.uuid for member in members],
            hosts=sorted({member.host.name for member in members
                          if member.host is not None}))

    # What the conductor does

    def _owners(self) -> list[Server]:
        """The servers that have ports."""
        return [server for server in self.servers.values()
                if server.host is not None or server.status == SHELVED]

    def _select(self, spec: objects.RequestSpec, uuids: Sequence[str],
                alternates: bool = True):
        self.network.refresh(self._owners())
        try:
            return self.scheduler.select(self.context, spec, uuids,
                                         alternates)
        except exception.NoValidHost as e:
            raise Refused(str(e.kwargs.get('reason') or e))
        except exception.NovaException as e:
            raise Refused(str(e))

    def _destination(self, spec: objects.RequestSpec, host: str | None,
                     zone: str | None, move: bool = False) -> None:
        """Ask for a host or a zone; a move stays within its cell."""
        destination = objects.Destination()
        if move:
            destination.cell = self.manager.cell
        if host is not None:
            destination.host = host
            destination.node = host
        if zone is not None:
            members = [
                compute.stable_uuid('aggregate', aggregate.name)
                for aggregate in self.cloud.aggregates
                if aggregate.metadata.get('availability_zone') == zone]
            if not members:
                raise Refused(f'there is no availability zone {zone!r}')
            destination.require_aggregates(members)
        spec.requested_destination = destination

    def _request(self, server: Server, host: str | None,
                 ignore: Sequence[str]) -> objects.RequestSpec:
        """The request of a move, from the one that Nova stored."""
        spec = server.spec.obj_clone()
        spec.reset_forced_destinations()
        spec.ignore_hosts = list(ignore)
        self._destination(spec, host, spec.availability_zone, move=True)
        spec.ensure_network_information(server.instance)
        # Only the devices of aliases are asked of Placement.
        spec.requested_resources = []
        spec.generate_request_groups_from_pci_requests()
        self._renew_group(server, spec)
        return spec

    def _renew_group(self, server: Server,
                     spec: objects.RequestSpec) -> None:
        for name, members in self._groups.items():
            if server.name in members:
                spec.instance_group = self._server_group(name)

    def _claim_first(self, spec: objects.RequestSpec, server: Server,
                     selections: Sequence[objects.Selection],
                     claim: Callable[[compute.ComputeHost, ty.Any], ty.Any]):
        """Claim on the selected host, or on the next alternate that can.

        :returns: (host, what the server has claimed there)
        :raises Refused: if no claim succeeds
        """
        failed = []
        for number, selection in enumerate(selections):
            host = self.hosts[selection.service_host]
            if number and not nova_api.claim_resources(
                    self.context, self.ledger, spec, server.uuid,
                    jsonutils.loads(selection.allocation_request),
                    selection.allocation_request_version):
                failed.append(f'{host.name}: no room in Placement')
                continue
            nova_api.fill_provider_mapping(spec, selection)
            nova_api.map_requests(self.context, server.instance, spec)
            try:
                return host, claim(host, selection.limits)
            except nova_api.CLAIM_ERRORS as e:
                failed.append(f'{host.name}: {e}')
                self.ledger.remove_provider(server.uuid, host.uuid)
            finally:
                self._notes = [f'claim failed on {text}' for text in failed]
        raise Refused('every claim failed: ' + '; '.join(failed))

    def _settle(self, server: Server, host: compute.ComputeHost,
                claimed: compute.Claimed, status: str = ACTIVE) -> None:
        """Note where a server is now."""
        if server.host is not None:
            server.host.instances.pop(server.uuid, None)
        server.host = host
        server.status = status
        server.instance.host = server.instance.node = host.name
        server.claimed = claimed
        server.instance.numa_topology = claimed.topology
        server.instance.pci_requests = claimed.requests
        server.instance.pci_devices = objects.PciDeviceList(
            objects=list(claimed.devices))
        host.instances[server.uuid] = server.instance

    def _needs(self, server: Server, status: str = ACTIVE) -> None:
        if server.status != status:
            raise Refused(f'the server is {server.status}, not {status}')

    # Boots

    def _boot(self, server: Server, step: model.Step) -> None:
        self._create(server, step)
        spec = server.spec.obj_clone()
        self._destination(spec, step.host, step.zone)
        selections = self._select(spec, [server.uuid])[0]
        self._build(server, spec, selections)

    def _build(self, server: Server, spec: objects.RequestSpec,
               selections: Sequence[objects.Selection]) -> None:
        if spec.force_hosts:
            selections = selections[:1]
        host, claimed = self._claim_first(
            spec, server, selections,
            lambda host, limits: host.claim(self.context, server.instance,
                                            limits))
        self._settle(server, host, claimed)

    def _boot_together(self, step: model.Step) -> None:
        """Boot several servers with one request: all or none."""
        servers = [Server(name, step.flavor) for name in step.targets]
        self.servers.update((server.name, server) for server in servers)
        self._notes = []
        try:
            for server in servers:
                self._create(server, step, servers[0])
            spec = servers[0].spec.obj_clone()
            if step.group:
                spec.instance_group = self._server_group(step.group)
            self._destination(spec, step.host, step.zone)
            lists = self._select(spec, [server.uuid for server in servers])
        except Refused as e:
            for server in servers:
                server.reason = str(e)
                self._record(step, server, None)
            return
        for server, selections in zip(servers, lists):
            self._notes = []
            try:
                self._build(server, spec, selections)
            except Refused as e:
                server.reason = str(e)
            self._record(step, server, None)

    # Moves

    def _cold_migrate(self, server: Server, step: model.Step) -> None:
        self._needs(server)
        self._move(server, step, server.instance.flavor, server.flavor_name,
                   'migration', [server.host.name])

    def _resize(self, server: Server, step: model.Step) -> None:
        self._needs(server)
        flavor = self._flavors[step.flavor]
        if step.flavor == server.flavor_name:
            raise Refused('the server has this flavor already')
        ignore = [] if step.same_host else [server.host.name]
        self._move(server, step, flavor, step.flavor, 'resize', ignore)

    def _move(self, server: Server, step: model.Step,
              flavor: objects.Flavor, flavor_name: str, kind: str,
              ignore: Sequence[str]) -> None:
        """A cold migration or resize up to VERIFY_RESIZE, and on."""
        stored = server.spec
        if kind == 'resize':
            server.spec = stored.obj_clone()
            server.spec.flavor = flavor
            try:
                server.spec.numa_topology = self._constraints(
                    flavor, server.image_meta)
                server.spec.pci_requests = self._resized_requests(
                    flavor, server)
            except Refused:
                server.spec = stored
                raise
        migration = self._hand_over(server, step)
        try:
            spec = self._request(server, step.host, ignore)
            selections = self._select(spec, [server.uuid])[0]
            host, claimed = self._claim_first(
                spec, server, selections,
                lambda host, limits: host.move_claim(
                    self.context, server.instance, flavor,
                    server.image_meta, kind, limits))
        except Refused:
            self.ledger.move(migration, server.uuid)
            server.spec = stored
            raise
        server.pending = _Pending(
            server.host, server.instance.flavor, server.flavor_name,
            server.claimed, stored, migration)
        server.instance.flavor = flavor
        server.flavor_name = flavor_name
        self._settle(server, host, claimed, RESIZED)
        if step.revert:
            self._revert(server, step)
        elif step.confirm:
            self._confirm(server, step)

    def _hand_over(self, server: Server, step: model.Step) -> str:
        """Let the migration of a move have what the server has.

        :returns: UUID of the migration
        """
        migration = compute.stable_uuid(
            'migration', f'{server.name}/{step.number}')
        self.network.migrations[migration] = server.uuid
        self.ledger.move(server.uuid, migration)
        return migration

    @staticmethod
    def _resized_requests(flavor: objects.Flavor, server: Server):
        """The PCI requests of a resize, as the API makes them."""
        try:
            requests = nova_api.move_requests(flavor, server.instance)
            for number, request in enumerate(requests.requests):
                if request.source == request.FLAVOR_ALIAS:
                    request.request_id = compute.stable_uuid(
                        'pci request', f'{server.name}/{flavor.name}/'
                                       f'{number}')
            return requests
        except exception.NovaException as e:
            raise Refused(f'the Nova API refuses the flavor: {e}')

    def _confirm(self, server: Server, step: model.Step) -> None:
        self._needs(server, RESIZED)
        pending = server.pending
        pending.source.give_back(server.instance, pending.flavor,
                                 pending.claimed)
        self.ledger.delete_allocation_for_instance(
            self.context, pending.migration)
        server.pending = None
        server.status = ACTIVE

    def _revert(self, server: Server, step: model.Step) -> None:
        self._needs(server, RESIZED)
        pending = server.pending
        server.host.give_back(server.instance, server.instance.flavor,
                              server.claimed)
        self.ledger.delete_allocation_for_instance(self.context, server.uuid)
        self.ledger.move(pending.migration, server.uuid)
        server.instance.flavor = pending.flavor
        server.flavor_name = pending.flavor_name
        server.spec = pending.spec
        server.pending = None
        self._settle(server, pending.source, pending.claimed)

    def _live_migrate(self, server: Server, step: model.Step) -> None:
        self._needs(server)
        source, old = server.host, server.claimed
        if source.down:
            raise Refused(f'the compute service on {source.name} is down')
        if any(request.source == objects.InstancePCIRequest.FLAVOR_ALIAS and
               not request.is_live_migratable()
               for request in server.instance.pci_requests.requests):
            raise Refused('Nova live-migrates no server with devices of an '
                          'alias that is not live_migratable')
        migration = self._hand_over(server, step)
        tried = [source.name]
        notes: list[str] = []
        try:
            while True:
                spec = self._request(server, step.host, tried)
                selections = self._select(spec, [server.uuid], False)[0]
                try:
                    host, claimed = self._claim_first(
                        spec, server, selections[:1],
                        lambda host, limits: host.move_claim(
                            self.context, server.instance,
                            server.instance.flavor, server.image_meta,
                            'live-migration', limits if nova_api.
                            live_migration_carries_limits() else None))
                    break
                except Refused:
                    # Nova asks the scheduler again, without this host.
                    notes += self._notes
                    tried.append(selections[0].service_host)
        except Refused as e:
            self._notes = notes
            self.ledger.move(migration, server.uuid)
            if notes:
                raise Refused(f'{"; ".join(notes)}; then: {e}')
            raise
        self._notes = notes
        self._settle(server, host, claimed)
        source.give_back(server.instance, server.instance.flavor, old)
        self.ledger.delete_allocation_for_instance(self.context, migration)

    def _evacuate(self, server: Server, step: model.Step) -> None:
        self._needs(server)
        source, old = server.host, server.claimed
        source.down = True
        spec = self._request(server, step.host, [source.name])
        selections = self._select(spec, [server.uuid], False)[0]
        host, claimed = self._claim_first(
            spec, server, selections[:1],
            lambda host, limits: host.move_claim(
                self.context, server.instance, server.instance.flavor,
                server.image_meta, 'evacuation', limits))
        # The dead host still counts it until its nova-compute is back.
        self._leave(source, server, server.instance.flavor, old)
        self._settle(server, host, claimed)

    def _shelve(self, server: Server, step: model.Step) -> None:
        self._needs(server)
        host = server.host
        if host.down:
            raise Refused(f'the compute service on {host.name} is down')
        host.give_back(server.instance, server.instance.flavor,
                       server.claimed)
        server.claimed = None
        host.instances.pop(server.uuid, None)
        self.ledger.delete_allocation_for_instance(self.context, server.uuid)
        server.host = None
        server.instance.host = server.instance.node = None
        server.status = SHELVED

    def _unshelve(self, server: Server, step: model.Step) -> None:
        self._needs(server, SHELVED)
        spec = self._request(server, step.host, ())
        selections = self._select(spec, [server.uuid], False)[0]
        self._build(server, spec, selections[:1])

    def _rebuild(self, server: Server, step: model.Step) -> None:
        self._needs(server)
        if server.host.down:
            raise Refused(f'the compute service on {server.host.name} is '
                          'down')
        image_meta = self._images.get(step.image, server.image_meta)
        if image_meta is server.image_meta:
            # Nova asks the scheduler only about another image.
            return
        flavor = server.instance.flavor
        before = self._constraints(flavor, server.image_meta)
        after = self._constraints(flavor, image_meta)
        if _primitive(before) != _primitive(after):
            conflict = exception.ImageNUMATopologyRebuildConflict()
            raise Refused(f'the Nova API refuses the image: {conflict}')
        spec = server.spec.obj_clone()
        spec.image = image_meta
        self._destination(spec, None, None, move=True)
        spec.ensure_network_information(server.instance)
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        spec.force_hosts = spec.force_nodes = [server.host.name]
        self._renew_group(server, spec)
        self._select(spec, [server.uuid], False)
        server.image_meta = server.spec.image = image_meta

    def _delete(self, server: Server, step: model.Step) -> None:
        if server.pending is not None:
            self._confirm(server, step)
        if server.host is not None:
            host = server.host
            host.instances.pop(server.uuid, None)
            if host.down:
                self._leave(host, server, server.instance.flavor,
                            server.claimed)
            else:
                host.give_back(server.instance, server.instance.flavor,
                               server.claimed)
            server.claimed = None
        self.ledger.delete_allocation_for_instance(self.context, server.uuid)
        server.host = None
        server.status = DELETED

    # Interfaces

    def _attach(self, server: Server, step: model.Step) -> None:
        self._plug(server, server.ports + self._ports(
            f'{server.name}/{step.number}', step))

    def _detach(self, server: Server, step: model.Step) -> None:
        self._needs(server)
        name, count = step.networks[0], len(step.networks)
        found = [port for port in server.ports if port.network.name == name]
        if len(found) < count:
            raise Refused(f'the server has {len(found)} ports on {name}, '
                          f'not {count}')
        gone = found[-count:]
        self._plug(server, [port for port in server.ports
                            if port not in gone])

    def _plug(self, server: Server, ports: list[network.Port]) -> None:
        """Give a server its new ports; Nova asks no scheduler."""
        self._needs(server)
        if server.host.down:
            raise Refused(f'the compute service on {server.host.name} is '
                          'down')
        server.ports = ports
        server.instance.info_cache.network_info = nova_api.network_info(
            port.to_nova() for port in ports)

    # Hosts

    def _leave(self, host: compute.ComputeHost, server: Server,
               flavor: objects.Flavor, claimed: compute.Claimed) -> None:
        self._residues.setdefault(host.name, []).append(
            (server.instance, flavor, claimed))

    def _host_down(self, host: compute.ComputeHost) -> None:
        host.down = True

    def _host_up(self, host: compute.ComputeHost) -> None:
        host.down = False
        for instance, flavor, claimed in self._residues.pop(
                host.name, ()):
            host.give_back(instance, flavor, claimed)
            self.ledger.remove_provider(instance.uuid, host.uuid)

    # Expectations

    def _check(self, step: model.Step, outcomes: Sequence[Outcome]) -> None:
        names = ' '.join(step.targets[:1])
        if len(step.targets) > 1:
            names += f' and {len(step.targets) - 1} more'
        where = f'step {step.number} ({step.action} {names})'
        self._compare(where, step.expect, outcomes)
        by_name = {outcome.server: outcome for outcome in outcomes}
        for name, expect in step.expect.servers:
            self._compare(f'step {step.number} ({step.action} {name})',
                          expect, [by_name[name]])
        if step.expect.ports or step.expect.rules:
            loads = self.network.loads(self._owners())
            for name, count in step.expect.ports:
                self._expect(where, step.expect, loads[name].ports == count,
                             f'{count} vSwitch ports on {name}',
                             f'{loads[name].ports}')
            for name, count in step.expect.rules:
                rules = loads[name].usage.rules
                self._expect(where, step.expect, rules == count,
                             f'{count} security-group rules on {name}',
                             f'{rules}')

    def _expect(self, where: str, expect: model.Expectation, met: bool,
                wanted: str, got: str) -> None:
        """Count an expectation, and note it if it is not met."""
        self.checks += 1
        if not met:
            self.failures.append(
                f'{self.cloud.path}:{expect.line}: {where}: expected '
                f'{wanted}, got {got}')

    def _compare(self, where: str, expect: model.Expectation,
                 outcomes: Sequence[Outcome]) -> None:
        def check(met: bool, wanted: str, got: str) -> None:
            self._expect(where, expect, met, wanted, got)

        placed = [o for o in outcomes if o.ok]
        refused = [o for o in outcomes if not o.ok]
        reasons = '; '.join(dict.fromkeys(o.reason for o in refused))
        for wanted, got, word in ((expect.placed, placed, 'placed'),
                                  (expect.refused, refused, 'refused')):
            if wanted is None:
                continue
            count = len(outcomes) if wanted is True else wanted
            text = f'{len(got)}'
            if word == 'placed' and reasons:
                text += f' ({reasons})'
            elif word == 'refused' and placed:
                text += f' ({_places(placed)})'
            check(len(got) == count, f'{count} {word}', text)
        facts = (
            (expect.hosts, lambda o: o.host in expect.hosts,
             lambda: f'host {" or ".join(expect.hosts)}'),
            (expect.not_hosts, lambda o: o.host not in expect.not_hosts,
             lambda: f'not host {" or ".join(expect.not_hosts)}'),
            (expect.nodes, lambda o: o.nodes == expect.nodes,
             lambda: f'host NUMA nodes {list(expect.nodes)}'),
            (expect.nodes_in, lambda o: o.nodes is not None and
             set(o.nodes) <= set(expect.nodes_in),
             lambda: f'host NUMA nodes among {list(expect.nodes_in)}'),
            (expect.vswitch, lambda o: o.vswitch == expect.vswitch,
             lambda: f'vSwitch {expect.vswitch}'),
            (expect.places or None, lambda o: all(
                o.places.get(name) == near for name, near in expect.places),
             lambda: places_text(dict(expect.places))),
            (expect.pci, lambda o: o.pci == expect.pci,
             lambda: f'PCI devices {expect.pci}'),
            (expect.pci_devices, lambda o: _per_node(o) ==
             {node: count for node, count in expect.pci_devices if count},
             lambda: 'PCI devices ' + _devices_text(
                 dict(expect.pci_devices))),
            (expect.cores, lambda o: o.cores == expect.cores,
             lambda: f'{expect.cores} physical cores'),
        )
        for wanted, fits, text in facts:
            if wanted is None:
                continue
            wrong = [o for o in placed if not fits(o)]
            got = _places(wrong)
            if not placed:
                got = f'refused: {reasons}' if reasons else 'nothing'
            check(bool(placed) and not wrong, text(), got)
        if expect.reason is not None:
            wrong = [o for o in refused
                     if expect.reason.lower() not in o.reason.lower()]
            got = '; '.join(dict.fromkeys(o.reason for o in wrong))
            if not refused:
                got = f'placed ({_places(placed)})'
            check(bool(refused) and not wrong,
                  f'a refusal with {expect.reason!r}', got)


def _primitive(topology: ty.Any) -> ty.Any:
    return topology and topology.obj_to_primitive()


def _per_node(outcome: Outcome) -> dict[int | None, int]:
    """How many of the PCI devices of a server are on each NUMA node."""
    return dict(collections.Counter(node for _, node in outcome.devices))


def _devices_text(per_node: Mapping[int | None, int]) -> str:
    texts = [f'{"none" if node is None else node}: {count}'
             for node, count in sorted(
                 per_node.items(), key=lambda item: str(item[0]))]
    return f'{{{", ".join(texts)}}}'


def places_text(places: Mapping[str, str]) -> str:
    """Where a server is: ``osd remote, nvme local``.

    :param places: place -> local, partial or remote
    """
    return ', '.join(f'{name} {near}' for name, near in places.items())


def _places(outcomes: Sequence[Outcome]) -> str:
    """Where some servers are, in a few words."""
    texts = []
    for outcome in outcomes[:3]:
        text = f'{outcome.server} on {outcome.host or "no host"}'
        if outcome.nodes is not None:
            text += f' nodes {list(outcome.nodes)}'
        if outcome.vswitch is not None:
            text += f' ({outcome.vswitch})'
        if outcome.places:
            text += f' ({places_text(outcome.places)})'
        if outcome.devices:
            text += f' PCI devices {_devices_text(_per_node(outcome))}'
            if outcome.pci is not None:
                text += f' ({outcome.pci})'
        if outcome.cores:
            text += f' on {outcome.cores} cores'
        texts.append(text)
    if len(outcomes) > 3:
        texts.append(f'{len(outcomes) - 3} more')
    return ', '.join(texts)
