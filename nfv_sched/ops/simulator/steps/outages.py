# SPDX-License-Identifier: Apache-2.0

"""Stop and start compute services, and evacuate servers."""

import dataclasses

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import conductor
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states


def evacuate(state: states.State, server: servers.SimulatedServer,
             step: actions.MoveStep) -> None:
    """Evacuate a server from its host, which is down from now on."""
    conductor.needs(server, servers.ACTIVE, servers.STOPPED, servers.ERROR)
    source, old = server.host, server.claimed
    source.down = True
    spec = request.of_move(state, server, step.host, [source.name])
    selections = conductor.select(state, spec, [server.uuid], False)[0]
    host, claimed = conductor.claim_first(
        state, spec, server, selections[:1],
        lambda host, limits: host.move_claim(
            state.context, server.instance, server.instance.flavor,
            server.image_meta, 'evacuation', limits))
    # The source counts the server until its nova-compute is up again.
    conductor.leave(state, source, server, old)
    conductor.settle(
        state, server, host, claimed, servers.STOPPED
        if server.status == servers.STOPPED else servers.ACTIVE)


@dataclasses.dataclass(frozen=True, slots=True)
class ServerLocation:
    host: compute.ComputeHost
    claimed: compute.ServerClaim
    status: str

    @classmethod
    def from_server(cls, server: servers.SimulatedServer) -> 'ServerLocation':
        return cls(server.host, server.claimed, server.status)


def undo(state: states.State, server: servers.SimulatedServer,
         before: ServerLocation) -> None:
    """Undo an evacuation, but leave the old host down.

    :param server: the last server that was evacuated from its host
    """
    host = server.host
    host.give_back(server.instance, server.claimed)
    state.placement.remove_provider(server.uuid, host.uuid)
    state.residues[before.host.name].pop()
    conductor.settle(state, server, before.host, before.claimed,
                     before.status)


def host_down(state: states.State, host: compute.ComputeHost) -> None:
    host.down = True


def host_up(state: states.State, host: compute.ComputeHost) -> None:
    """Start the compute service of a host.

    It frees the resources and allocations of evacuated and deleted servers.
    """
    host.down = False
    for instance, claimed in state.residues.pop(host.name, ()):
        host.give_back(instance, claimed)
        state.placement.remove_provider(instance.uuid, host.uuid)
