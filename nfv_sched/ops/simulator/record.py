# SPDX-License-Identifier: Apache-2.0
"""Convert the present state of a simulated cloud to a snapshot.

A simulation that starts from the snapshot continues like this one, except
that moves of this one cannot be confirmed or reverted there, resources that
evacuated or deleted servers still occupy on hosts that are down are unknown,
and so is whether Neutron can be read.
"""

from collections.abc import Iterator
import dataclasses

from oslo_utils import timeutils

from nfv_sched.limits import names
from nfv_sched.nova import records
from nfv_sched.ops.cloud import database
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import servers as simulated
from nfv_sched.ops.simulator import start
from nfv_sched.ops.simulator import state as states

_STATES = {status: state for state, status in start.STATUSES.items()} | {
    simulated.REFUSED: start.ERROR}


def cloud(state: states.State) -> snapshot.Cloud:
    # Publish the ledger, as the service would after the last step.
    state.network.refresh()
    loads = state.network.loads()
    groups = {member: state.scenario.server_groups[name].uuid
              for name, members in state.groups.items() for member in members}
    servers = {server.uuid: server for server in state.servers.values()
               if server.status != simulated.DELETED}
    agents = state.scenario.cloud.network_agents
    # On hosts that are down no agent of Neutron is alive.
    down = {host.name for host in state.hosts.values() if host.down}
    return snapshot.Cloud(
        taken=timeutils.utcnow().strftime('%Y-%m-%dT%H:%M:%SZ'),
        source=state.scenario.path, nova=database.release('nova'),
        nfv_sched=database.release('nfv-sched'),
        options=database.options(nova_internals.CONF),
        hosts=tuple(_host(state, host, loads[name])
                    for name, host in state.hosts.items()),
        servers=tuple(_server(state, server, groups.get(server.name))
                      for server in servers.values()),
        flavors=tuple(state.flavors.values()),
        aggregates=state.scenario.cloud.aggregates,
        groups=tuple([dataclasses.replace(group, members=tuple([
            member.uuid for member in state.present_members(name)]))
            for name, group in state.scenario.server_groups.items()]),
        moves=tuple([
            _move(server) for server in state.servers.values()
            if server.pending is not None]),
        consumers={uuid: _amounts(state, uuid)
                   for uuid in state.placement.allocations
                   if uuid not in servers},
        network_agents=agents and tuple([
            dataclasses.replace(agent, alive=False) if agent.host in down
            else agent for agent in agents]),
        network_services=state.scenario.cloud.network_services,
        networks=tuple(_networks(state.scenario)),
        **_names(state))


def _host(state: states.State, host: compute.ComputeHost,
          load: network.HostLoad) -> snapshot.Host:
    node, used = host.node, load.usage
    return dataclasses.replace(
        host.record, up=not host.down,
        supported=tuple(tuple(each.to_list())
                        for each in node.supported_hv_specs),
        stats=dict(node.stats), vcpus_used=node.vcpus_used,
        memory_used=node.memory_mb_used, disk_used=node.local_gb_used,
        nodes=None if node.numa_topology is None else tuple(
            database.host_node(cell) for cell
            in records.deserialized(node.numa_topology)['cells']),
        # In the order in which free ones are assigned.
        devices=tuple([
            database.device(device, tags)
            for device, tags in host.pci_tracker.in_order()
        ]) if host.record.devices else (),
        providers=tuple(provider.recorded() for provider
                        in state.placement.tree(host.uuid)
                        if provider.uuid not in state.network.added),
        network=snapshot.HostNetwork(
            vswitch_ports=used.vswitch_ports, security_rules=used.rules,
            dhcp_servers=network.dhcp_servers(state.scenario, load),
            routers=used.routers))


def _server(state: states.State, server: simulated.SimulatedServer,
            group: str | None) -> snapshot.Server:
    instance, spec = server.instance, server.spec
    on_host = server.host is not None
    topology = instance.numa_topology if on_host else None
    claimed = server.claimed
    hints = spec.scheduler_hints if spec is not None else None
    return snapshot.Server(
        uuid=server.uuid, name=server.name,
        host=server.host.name if on_host else None,
        cell=server.cell or '', project=server.project,
        state=_STATES.get(server.status, server.status.lower()),
        fault=server.reason, flavor=database.flavor_of(instance.flavor),
        image=server.image, nodes=database.guest_nodes(topology),
        emulator_threads=topology and topology.emulator_threads_policy,
        devices=tuple(device.address for device in claimed.devices)
        if claimed is not None else (),
        pci_requests=database.stored_requests(instance.pci_requests.to_json()),
        ports=tuple([snapshot.Port(
            id=port.id, network=port.network.id,
            vnic_type=port.network.vnic_type or scenarios.NORMAL,
            physnet=port.network.physnet,
            rules=sum(group.rules for group in port.security_groups))
            for port in server.ports]),
        group=group, zone=spec and spec.availability_zone,
        hints={name: tuple(values)
               for name, values in (hints or {}).items()},
        allocations=_amounts(state, server.uuid))


def _amounts(state: states.State, consumer: str) -> dict[str, dict[str, int]]:
    return {
        provider: dict(amounts) for provider, amounts
        in state.placement.allocations.get(consumer, {}).items()
        if provider not in state.network.added}


def _move(server: simulated.SimulatedServer) -> snapshot.Migration:
    pending = server.pending
    resized = pending.claimed.flavor.name != server.flavor_name
    return snapshot.Migration(
        uuid=pending.migration, server=server.uuid,
        kind='resize' if resized else 'migration', status='finished',
        source=pending.source.name, target=server.host.name,
        before=database.guest_nodes(pending.claimed.topology),
        after=database.guest_nodes(server.instance.numa_topology))


def _names(state: states.State) -> dict[str, frozenset[str] | None]:
    service = state.placement
    providers = [provider for uuid, provider in service.providers.items()
                 if uuid not in state.network.added]
    added = {names.TRAIT} if state.network.added else ()
    return {
        'traits': service.traits and service.traits.difference(added).union(
            *(provider.traits for provider in providers)),
        'resource_classes': service.classes and service.classes.union(
            *(provider.inventories for provider in providers))}


def _networks(scenario: scenarios.Scenario) -> Iterator[snapshot.Network]:
    """Yield each network once; a scenario has one for each vNIC type."""
    of_uuid: dict[str, list[snapshot.Network]] = {
        each.id: [each] for each in scenario.cloud.networks or ()}
    for each in scenario.networks.values():
        same = of_uuid.setdefault(each.id, [])
        if each not in same:
            same.append(each)
    for first, *rest in of_uuid.values():
        yield dataclasses.replace(
            first, vnic_type=None, numa_policy=None,
            trusted=None) if rest else first
