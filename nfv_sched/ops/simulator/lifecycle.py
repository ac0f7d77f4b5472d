# SPDX-License-Identifier: Apache-2.0
"""Boot, shelve, rebuild and delete servers, and change their ports.

Each step takes the state of the cloud, a server and the step, and raises
``servers.Refused`` if Nova refuses the request; so do those of ``moves``.
"""

from collections.abc import Iterator

from nova import exception

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.simulator import conductor
from nfv_sched.ops.simulator import moves
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states

#: Statuses of servers whose ports can be changed.
_PLUGGABLE = (servers.ACTIVE, servers.STOPPED, servers.PAUSED)


def boot(state: states.State, server: servers.SimulatedServer,
         step: actions.Boot) -> None:
    boot_as(state, server, request.wanted(state, step))


def boot_as(state: states.State, server: servers.SimulatedServer,
            boot_request: request.BootRequest) -> None:
    request.create(state, server, boot_request)
    spec = server.spec.obj_clone()
    request.set_destination(state, spec, boot_request.host)
    selections = conductor.select(state, spec, [server.uuid])[0]
    conductor.claim(state, server, spec, selections)


def boot_together(state: states.State,
                  step: actions.Boot) -> Iterator[servers.SimulatedServer]:
    """Boot several servers with one request, and yield each.

    The scheduler finds hosts for all or none; a single claim can fail.
    """
    booted = [servers.SimulatedServer(name, step.flavor)
              for name in step.targets]
    state.servers.update((server.name, server) for server in booted)
    state.notes = []
    try:
        spec = request.create_together(
            state, booted, request.wanted(state, step))
        lists = conductor.select(state, spec,
                                 [server.uuid for server in booted])
    except servers.Refused as e:
        for server in booted:
            server.reason = str(e)
            yield server
        return
    for server, selections in zip(booted, lists):
        state.notes = []
        try:
            conductor.claim(state, server, spec, selections)
        except servers.Refused as e:
            server.reason = str(e)
        yield server


def shelve(state: states.State, server: servers.SimulatedServer,
           step: actions.Step) -> None:
    conductor.needs(server, servers.ACTIVE, servers.STOPPED, servers.PAUSED,
                    servers.SUSPENDED, servers.NOT_OFFLOADED)
    conductor.needs_service(server.host)
    remove(state, server)
    server.instance.host = server.instance.node = None
    server.status = servers.SHELVED


def unshelve(state: states.State, server: servers.SimulatedServer,
             step: actions.MoveStep) -> None:
    conductor.needs(server, servers.SHELVED)
    spec = request.of_move(state, server, step.host, ())
    selections = conductor.select(state, spec, [server.uuid], False)[0]
    conductor.claim(state, server, spec, selections[:1])


def rebuild(state: states.State, server: servers.SimulatedServer,
            step: actions.Rebuild) -> None:
    conductor.needs(server, servers.ACTIVE, servers.STOPPED, servers.ERROR)
    conductor.needs_service(server.host)
    image = state.images.get(step.image, server.image)
    if image is server.image:
        # Nova calls the scheduler only if the image changes.
        return
    image_meta = nova_internals.image_meta(image)
    flavor = server.instance.flavor
    # The API compares them (bug 1763766).
    before, after = [
        topology and topology.obj_to_primitive() for topology in (
            request.constraints(flavor, server.image_meta),
            request.constraints(flavor, image_meta))]
    if before != after:
        conflict = exception.ImageNUMATopologyRebuildConflict()
        raise servers.Refused(f'the Nova API refuses the image: {conflict}')
    spec = request.stored(server)
    spec.image = image_meta
    request.set_destination(state, spec, None, server.cell)
    spec.ensure_network_information(server.instance)
    # By this hint request_is_rebuild knows, and no filter with RUN_ON_REBUILD
    # = False runs.
    spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
    spec.force_hosts = [server.host.name]
    spec.force_nodes = [server.host.node.hypervisor_hostname]
    request.renew_group(state, server, spec)
    conductor.select(state, spec, [server.uuid], False)
    server.image_meta = server.spec.image = image_meta
    server.image = image


def delete(state: states.State, server: servers.SimulatedServer,
           step: actions.Step) -> None:
    if server.pending is not None:
        moves.confirm(state, server, step)
    remove(state, server)
    server.status = servers.DELETED


def remove(state: states.State, server: servers.SimulatedServer) -> None:
    if server.host is not None:
        host = server.host
        host.instances.pop(server.uuid, None)
        if host.down:
            state.residues[host.name].append((server.instance, server.claimed))
        else:
            host.give_back(server.instance, server.claimed)
        server.claimed = None
    state.placement.remove(server.uuid)
    server.host = None


def attach(state: states.State, server: servers.SimulatedServer,
           step: actions.Attach) -> None:
    conductor.needs(server, *_PLUGGABLE)
    _plug(server, server.ports + request.ports_of(
        f'{server.name}/{step.number}', request.plugs(
            state, (step.network,) * step.count, step.security_groups),
        server.ports))


def detach(state: states.State, server: servers.SimulatedServer,
           step: actions.PortStep) -> None:
    """Detach the last attached ports of a server from a network."""
    conductor.needs(server, *_PLUGGABLE)
    network_id = state.scenario.networks[step.network].id
    ports = [port for port in server.ports
             if port.network.id == network_id and
             port.network.vnic_type == scenario.NORMAL]
    if len(ports) < step.count:
        raise servers.Refused(f'the server has {len(ports)} ports on '
                              f'{step.network}, not {step.count}')
    gone = ports[-step.count:]
    _plug(server, [port for port in server.ports if port not in gone])


def _plug(server: servers.SimulatedServer,
          ports: list[nova_internals.SimulatedPort]) -> None:
    """Set the ports of a server; Nova does not call the scheduler here."""
    conductor.needs_service(server.host)
    server.ports = ports
    server.instance.info_cache.network_info = nova_internals.network_info(
        ports)
