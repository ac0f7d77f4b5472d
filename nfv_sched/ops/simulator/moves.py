# SPDX-License-Identifier: Apache-2.0
"""Move servers, and start the compute services of hosts again."""

from collections.abc import Sequence

from nova import objects

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import conductor
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states


def cold_migrate(state: states.State, server: servers.SimulatedServer,
                 step: actions.ColdMove) -> None:
    conductor.needs(server, servers.ACTIVE, servers.STOPPED)
    _move(state, server, step, [server.host.name])


def resize(state: states.State, server: servers.SimulatedServer,
           step: actions.Resize) -> None:
    conductor.needs(server, servers.ACTIVE, servers.STOPPED)
    flavor = states.nova_flavor(state.flavors[step.flavor])
    if step.flavor == server.flavor_name:
        raise servers.Refused('the server has this flavor already')
    _move(state, server, step,
          [] if step.same_host else [server.host.name], flavor)


def _move(state: states.State, server: servers.SimulatedServer,
          step: actions.ColdMove, ignore: Sequence[str],
          flavor: objects.Flavor | None = None) -> None:
    """Move a server; confirm or revert the move, unless told otherwise."""
    copy = request.stored(server)
    stored = server.spec
    migration = None
    try:
        if flavor is not None:
            server.spec = copy
            copy.flavor = flavor
            copy.numa_topology = request.constraints(flavor, server.image_meta)
            copy.pci_requests = request.resized_requests(flavor, server)
        # As MigrationTask does: the migration holds the source until the move
        # is confirmed.
        migration = conductor.hand_over(state, server, step)
        spec = request.of_move(state, server, step.host, ignore)
        selections = conductor.select(state, spec, [server.uuid])[0]
        host, claimed = conductor.claim_first(
            state, spec, server, selections,
            'migration' if flavor is None else 'resize', flavor)
    except servers.Refused:
        if migration is not None:
            state.placement.move(migration, server.uuid)
        server.spec = stored
        raise
    server.pending = servers.Pending(
        server.host, server.claimed, stored, migration, server.status)
    if flavor is not None:
        server.instance.flavor = flavor
        server.flavor_name = flavor.name
    conductor.settle(server, host, claimed, servers.RESIZED)
    if step.revert:
        revert(state, server, step)
    elif step.confirm is not False:
        confirm(state, server, step)


def _unconfirmed_move(server: servers.SimulatedServer) -> servers.Pending:
    conductor.needs(server, servers.RESIZED)
    if server.pending is None:
        raise servers.Refused('the snapshot does not say from where it was '
                              'moved')
    return server.pending


def confirm(state: states.State, server: servers.SimulatedServer,
            step: actions.Step) -> None:
    pending = _unconfirmed_move(server)
    pending.source.give_back(server.instance, pending.claimed)
    state.placement.remove(pending.migration)
    server.pending = None
    server.status = pending.status


def revert(state: states.State, server: servers.SimulatedServer,
           step: actions.Step) -> None:
    pending = _unconfirmed_move(server)
    server.host.give_back(server.instance, server.claimed)
    state.placement.remove(server.uuid)
    state.placement.move(pending.migration, server.uuid)
    server.instance.flavor = pending.claimed.flavor
    server.flavor_name = server.instance.flavor.name
    server.spec = pending.spec
    server.pending = None
    conductor.settle(server, pending.source, pending.claimed, pending.status)


def live_migrate(state: states.State, server: servers.SimulatedServer,
                 step: actions.MoveStep) -> None:
    conductor.needs(server, servers.ACTIVE, servers.PAUSED)
    source, old = server.host, server.claimed
    conductor.needs_service(source)
    if server.has_fixed_devices:
        raise servers.Refused('Nova live-migrates no server with devices of '
                              'an alias that is not live_migratable')
    migration = conductor.hand_over(state, server, step)
    tried = [source.name]
    notes: list[str] = []
    try:
        while True:
            spec = request.of_move(state, server, step.host, tried, live=True)
            selections = conductor.select(state, spec, [server.uuid], False)[0]
            try:
                host, claimed = conductor.claim_first(
                    state, spec, server, selections[:1], 'live-migration')
                break
            except servers.Refused:
                # Nova asks the scheduler again, without this host.
                notes += state.notes
                tried.append(selections[0].service_host)
    except servers.Refused as e:
        state.notes = notes
        state.placement.move(migration, server.uuid)
        if notes:
            raise servers.Refused(f'{"; ".join(notes)}; then: {e}')
        raise
    state.notes = notes
    conductor.settle(server, host, claimed, server.status)
    source.give_back(server.instance, old)
    state.placement.remove(migration)


def evacuate(state: states.State, server: servers.SimulatedServer,
             step: actions.MoveStep) -> None:
    """Evacuate a server from its host, which is down from now on."""
    conductor.needs(server, servers.ACTIVE, servers.STOPPED, servers.ERROR)
    source, old = server.host, server.claimed
    source.down = True
    spec = request.of_move(state, server, step.host, [source.name])
    selections = conductor.select(state, spec, [server.uuid], False)[0]
    host, claimed = conductor.claim_first(
        state, spec, server, selections[:1], 'evacuation')
    # The source counts the server until its nova-compute is up again.
    state.residues[source.name].append((server.instance, old))
    conductor.settle(
        server, host, claimed, servers.STOPPED
        if server.status == servers.STOPPED else servers.ACTIVE)


def undo_evacuation(state: states.State, server: servers.SimulatedServer,
                    source: compute.ComputeHost, claimed: compute.ServerClaim,
                    status: str) -> None:
    """Undo the last evacuation from a host, which stays down."""
    server.host.give_back(server.instance, server.claimed)
    state.placement.remove_provider(server.uuid, server.host.uuid)
    state.residues[source.name].pop()
    conductor.settle(server, source, claimed, status)


def host_up(state: states.State, host: compute.ComputeHost) -> None:
    """Start the service of a host, which servers that are gone then leave."""
    host.down = False
    for instance, claimed in state.residues.pop(host.name, ()):
        host.give_back(instance, claimed)
        state.placement.remove_provider(instance.uuid, host.uuid)
