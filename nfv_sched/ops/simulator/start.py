# SPDX-License-Identifier: Apache-2.0
"""Start a simulation from a snapshot, with its servers."""

import collections
from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import functools
import typing as ty

from nova import exception
from nova import objects
from nova.objects import fields

from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import configuration
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states

#: Nova's vm_state -> status.  Any other status is the vm_state in capitals,
#: except that a server with :data:`ERROR` and without a host is REFUSED.
STATUSES: Mapping[str, str] = {
    'active': servers.ACTIVE, 'resized': servers.RESIZED,
    'shelved_offloaded': servers.SHELVED, 'shelved': servers.NOT_OFFLOADED}
ERROR = 'error'
#: (Name of a host, CPU) -> number of servers that are pinned to it.
_Users: ty.TypeAlias = collections.Counter[tuple[str | None, int]]


@contextlib.contextmanager
def started(cloud: snapshot.Cloud, *, reasons: str | None = None,
            seed: int = 0, scenario: scenarios.Scenario | None = None
            ) -> Iterator[states.State]:
    """Simulate the cloud of a snapshot within this context.

    Unknown options, of another release or a plugin, are ignored.

    :param scenario: the snapshot with steps and what they need; None for none
    :raises InputError: if a filter or weigher of the snapshot is not
        installed, or an option of the configuration is bad
    """
    scenario = scenario or scenarios.of_snapshot(cloud)
    with (configuration.defaults(),
          configuration.overrides(scenario, reasons, seed)):
        yield restored(cloud, scenario)


def restored(cloud: snapshot.Cloud,
             scenario: scenarios.Scenario | None = None) -> states.State:
    """Return a cloud in the state of a snapshot, within :func:`started`."""
    scenario = scenario or scenarios.of_snapshot(cloud)
    cloud = scenario.cloud
    try:
        state = states.State(scenario)
        # Nova on this machine may be newer than the cloud, and require traits
        # and resource classes that Placement there did not know yet.
        state.placement.set_names(
            None if cloud.traits is None else cloud.traits.union(
                name for name in placement.STANDARD_TRAITS
                if name.startswith('COMPUTE_')),
            None if cloud.resource_classes is None else
            cloud.resource_classes | placement.STANDARD_CLASSES)
        _restore_servers(state, cloud)
    except (ValueError, exception.NovaException) as e:
        # Fields of Nova's objects have limited values, such as hypervisors.
        raise problems.InputError([f'the snapshot: {e}'])
    if not any(host.network for host in cloud.hosts):
        # Nothing would be published in Placement either.
        state.network.become(network.DOWN)
    state.network.refresh(keep_ledgers=True)
    return state


def _restore_servers(state: states.State, cloud: snapshot.Cloud) -> None:
    names = scenarios.unique_names(cloud.servers)
    networks = {(each.id, each.vnic_type): each
                for each in state.scenario.networks.values()}
    users = collections.Counter([
        (server.host, cpu) for server in cloud.servers
        for part in server.nodes or ()
        for cpu in occupied.exclusive_cpus(part)])
    for snapshot_server in cloud.servers:
        restored = _server(state, names[snapshot_server.uuid],
                           snapshot_server, networks, users)
        state.servers[restored.name] = restored
        if restored.host is not None:
            restored.host.instances[restored.uuid] = restored
        if snapshot_server.allocations is not None:
            # The usage of the providers already includes these allocations.
            held = {
                uuid: each for uuid, each
                in snapshot_server.allocations.items()
                if uuid in state.placement.providers}
            if held:
                state.placement.record(restored.uuid, held)
        elif restored.host is not None:
            state.placement.allocate(restored.uuid, {
                restored.host.uuid: occupied.allocation(
                    snapshot_server,
                    not restored.host.record.legacy_pinning)})
    for consumer, allocations in (cloud.consumers or {}).items():
        state.placement.record(consumer, {
            uuid: of_provider for uuid, of_provider in allocations.items()
            if uuid in state.placement.providers})
    for name, group in scenarios.groups_by_name(cloud).items():
        state.groups[name] = [names[member] for member in group.members
                              if member in names]


def _server(state: states.State, name: str, snapshot_server: snapshot.Server,
            networks: dict[tuple[str, str | None], snapshot.Network],
            users: _Users) -> servers.SimulatedServer:
    host = state.hosts.get(snapshot_server.host or '')
    status = STATUSES.get(snapshot_server.state, snapshot_server.state.upper())
    if snapshot_server.state == ERROR and snapshot_server.host is None:
        status = servers.REFUSED
    return servers.SimulatedServer(
        name, snapshot_server.flavor.name, status, uuid=snapshot_server.uuid,
        project=snapshot_server.project or nova_internals.PROJECT, host=host,
        cell=host.record.cell if host else None,
        reason=snapshot_server.fault or None, image=snapshot_server.image,
        ports=[nova_internals.SimulatedPort(
            port.id,
            # Ports of one network share the object.
            networks.setdefault((port.network, port.vnic_type),
                                scenarios.network_of(port)),
            scenarios.security_groups_of(port.rules))
            for port in snapshot_server.ports or ()],
        work_out=functools.partial(_work_out, state, snapshot_server, users))


def _work_out(state: states.State, snapshot_server: snapshot.Server,
              users: _Users, server: servers.SimulatedServer) -> None:
    """Make Nova's objects of a server, or set ``unknown``."""
    flavor = states.nova_flavor(snapshot_server.flavor)
    try:
        server.image_meta = nova_internals.image_meta(snapshot_server.image)
    except (ValueError, exception.NovaException) as e:
        server.image_meta = nova_internals.image_meta({})
        server.unknown = f'the properties of its image are bad: {e}'
    server.instance = instance = request.new_instance(state, server, flavor)
    try:
        spec = request.describe(
            state, server, {'scheduler_hints': {
                name: list(values)
                for name, values in snapshot_server.hints.items()}},
            snapshot_server.zone, (), server.name,
            request.alias_specs(snapshot_server))
    except servers.Refused as e:
        server.unknown = str(e)
    else:
        spec.is_bfv = snapshot_server.is_on_volume
        _restore_port_requests(instance, spec, snapshot_server)
        if server.unknown is None:
            server.spec = spec
    if (host := server.host) is None:
        return
    instance.host = host.name
    instance.node = host.node.hypervisor_hostname
    # Where the server is, in place of what describe() has made of the flavor.
    instance.numa_topology = instance_topology(snapshot_server)
    tracker = host.pci_tracker
    # Devices are freed in this order.
    order = {address: place
             for place, address in enumerate(snapshot_server.devices)}
    devices = sorted(
        (*tracker.allocations.get(server.uuid, ()),
         *tracker.claims.get(server.uuid, ())),
        key=lambda device: order.get(device.address, len(order)))
    instance.pci_devices.objects.extend(devices)
    recorded = _recorded(snapshot_server, host.record, users)
    server.claimed = compute.ServerClaim(
        flavor, instance.numa_topology if recorded == snapshot_server
        else instance_topology(recorded), tuple(devices),
        instance.pci_requests)


def _recorded(snapshot_server: snapshot.Server, host: snapshot.Host,
              users: _Users) -> snapshot.Server:
    """Return a server with only those CPUs that become free without it."""
    # NOTE: Nova raises CPUUnpinningUnknown or CPUUnpinningInvalid for a CPU
    # that the host does not record as pinned.  nova-compute then counts anew
    # what its servers have; here a CPU that several have stays taken.
    nodes = {node.number: node for node in host.nodes or ()}
    parts = []
    for part in snapshot_server.nodes or ():
        if (node := nodes.get(part.host_node)) is None:
            parts.append(part)
            continue
        pinned = node.dedicated & node.pinned
        own = occupied.exclusive_cpus(part)
        cores = node.siblings if part.thread_policy == (
            fields.CPUThreadAllocationPolicy.ISOLATE) else ()
        lost = set()
        for cpu in own:
            core = next((each for each in cores if cpu in each), {cpu})
            if not all(each in pinned
                       and users[host.name, each] <= (each in own)
                       for each in core):
                lost.add(cpu)
        parts.append(part if not lost else dataclasses.replace(
            part, reserved=part.reserved - lost, pins={
                vcpu: cpu for vcpu, cpu in part.pins.items()
                if cpu not in lost}))
    return snapshot_server if snapshot_server.nodes is None else (
        dataclasses.replace(snapshot_server, nodes=tuple(parts)))


def _restore_port_requests(instance: objects.Instance,
                           spec: objects.RequestSpec,
                           snapshot_server: snapshot.Server) -> None:
    """Replace the PCI requests of ports by those that Nova has stored.

    Nova does not make them again for a move: device type, NUMA policy and
    physical network stay as they were when the port was attached.  Requests
    of aliases are made from the flavor, and mean what they meant.
    """
    if snapshot_server.pci_requests is None:
        return
    stored = [
        objects.InstancePCIRequest(
            request_id=request.id, requester_id=request.port,
            alias_name=None, count=request.count,
            numa_policy=request.numa_policy,
            spec=[dict(tags) for tags in request.specs])
        for request in snapshot_server.pci_requests if request.alias is None]
    requests = instance.pci_requests
    requests.requests = [
        request for request in requests.requests
        if request.source == request.FLAVOR_ALIAS] + stored
    spec.pci_requests = requests.obj_clone()
    ids = [request.request_id for request in stored]
    # They were made in the order of the ports, as were those that are stored.
    for network_request in spec.requested_networks:
        if network_request.pci_request_id and ids:
            network_request.pci_request_id = ids.pop(0)


def instance_topology(snapshot_server: snapshot.Server,
                      ) -> objects.InstanceNUMATopology | None:
    if snapshot_server.nodes is None:
        return None
    return objects.InstanceNUMATopology(
        instance_uuid=snapshot_server.uuid,
        emulator_threads_policy=snapshot_server.emulator_threads,
        cells=[objects.InstanceNUMACell(
            id=node.host_node, cpuset=set(node.shared),
            pcpuset=set(node.dedicated), memory=node.memory,
            pagesize=node.page_size, cpu_policy=node.cpu_policy,
            cpu_thread_policy=node.thread_policy, cpu_pinning_raw={
                str(vcpu): cpu for vcpu, cpu in node.pins.items()} or None,
            cpuset_reserved=set(node.reserved) or None)
            for node in snapshot_server.nodes])
