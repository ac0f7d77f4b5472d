# SPDX-License-Identifier: Apache-2.0

"""Boot a server, or several servers with one request."""

from collections.abc import Iterator

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.simulator import conductor
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states


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
    """Boot several servers with one request.

    The scheduler finds hosts for all servers or for none; after that, the
    claim of a single server can fail.

    :returns: generator of the servers, each when it is booted or refused
    """
    booted = [servers.SimulatedServer(name, step.flavor)
              for name in step.targets]
    state.servers.update((server.name, server) for server in booted)
    state.notes = []
    try:
        boot_request = request.wanted(state, step)
        for server in booted:
            request.create(state, server, boot_request, booted[0])
        spec = booted[0].spec.obj_clone()
        if step.group:
            spec.instance_group = request.server_group(state, step.group)
        request.set_destination(state, spec, step.host)
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
