# SPDX-License-Identifier: Apache-2.0

"""Attach ports to existing servers, and detach ports."""

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.simulator import conductor
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states


def attach(state: states.State, server: servers.SimulatedServer,
           step: actions.Attach) -> None:
    _plug(server, server.ports + request.ports_of(
        f'{server.name}/{step.number}', request.plugs(
            state, step.networks, step.security_groups),
        server.ports))


def detach(state: states.State, server: servers.SimulatedServer,
           step: actions.Detach) -> None:
    """Detach the last attached ports of a server from a network."""
    _check(server)
    name, count = step.networks[0], len(step.networks)
    network_id = state.scenario.networks[name].id
    ports = [port for port in server.ports
             if port.network.id == network_id and
             port.network.vnic_type == scenario.NORMAL]
    if len(ports) < count:
        raise servers.Refused(f'the server has {len(ports)} ports on {name}, '
                              f'not {count}')
    gone = ports[-count:]
    _plug(server, [port for port in server.ports
                   if port not in gone])


def _check(server: servers.SimulatedServer) -> None:
    conductor.needs(server, servers.ACTIVE, servers.STOPPED, servers.PAUSED)


def _plug(server: servers.SimulatedServer,
          ports: list[network.SimulatedPort]) -> None:
    """Set the ports of a server; Nova does not call the scheduler here."""
    _check(server)
    conductor.needs_service(server.host)
    server.ports = ports
    server.instance.info_cache.network_info = nova_internals.network_info(
        port.to_nova() for port in ports)
