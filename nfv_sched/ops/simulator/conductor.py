# SPDX-License-Identifier: Apache-2.0
"""Simulate the work of nova-conductor and nova-compute on a request.

Allocations and claims are made and removed in the same order as in Nova.  One
difference: with PCI in Placement, nova-compute corrects an allocation if its
claim took another device; the simulator does not.
"""

from collections.abc import Sequence

from nova import exception
from nova import objects
from oslo_serialization import jsonutils

from nfv_sched.nova import scheduler
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states


def select(state: states.State, spec: objects.RequestSpec,
           uuids: Sequence[str], alternates: bool = True,
           ) -> list[list[objects.Selection]]:
    """Ask the scheduler for a host of each server, and alternates."""
    # What Neutron shows is never late here, unless a step says so.
    state.network.refresh()
    try:
        return state.scheduler.select(state.context, spec, uuids, alternates)
    except exception.NoValidHost as e:
        raise servers.Refused(str(e.kwargs.get('reason') or e))
    except exception.NovaException as e:
        raise servers.Refused(str(e))


def claim_first(
    state: states.State, spec: objects.RequestSpec,
    server: servers.SimulatedServer, selections: Sequence[objects.Selection],
    kind: str | None = None, flavor: objects.Flavor | None = None,
) -> tuple[compute.ComputeHost, compute.ServerClaim]:
    """Claim on the selected host; if that fails, on the alternates in turn.

    :param state: its ``notes`` are set to the failures before the last claim
    :raises Refused: if no claim succeeds
    """
    failed = []
    for number, selection in enumerate(selections):
        host = state.hosts[selection.service_host]
        # The scheduler has claimed the first one only.
        if number and not nova_internals.claim_resources(
                state.context, state.placement, spec, server.uuid,
                jsonutils.loads(selection.allocation_request),
                selection.allocation_request_version):
            failed.append(f'{host.name}: Placement refused the allocation')
            continue
        nova_internals.fill_provider_mapping(spec, selection)
        nova_internals.map_requests(state.context, server.instance, spec)
        limits = selection.limits
        if kind == 'live-migration' and not (
                scheduler.live_migration_carries_limits()):
            limits = None
        try:
            return host, host.claim(
                state.context, server, limits, kind, flavor)
        except nova_internals.CLAIM_ERRORS as e:
            failed.append(f'{host.name}: {e}')
            # Nova removes the allocation on this host before it reschedules.
            state.placement.remove_provider(server.uuid, host.uuid)
        finally:
            state.notes = [f'claim failed on {text}' for text in failed]
    raise servers.Refused('every claim failed: ' + '; '.join(failed))


def claim(state: states.State, server: servers.SimulatedServer,
          spec: objects.RequestSpec,
          selections: Sequence[objects.Selection]) -> None:
    """Claim a host for a server without one; see :func:`claim_first`."""
    # Nova does not reschedule a server that is forced to a host
    # (populate_retry).
    if spec.force_hosts:
        selections = selections[:1]
    settle(server, *claim_first(state, spec, server, selections))


def settle(server: servers.SimulatedServer, host: compute.ComputeHost,
           claimed: compute.ServerClaim,
           status: str = servers.ACTIVE) -> None:
    """Move a server to the host where its resources are claimed."""
    if server.host is not None:
        server.host.instances.pop(server.uuid, None)
    server.host = host
    server.cell = host.record.cell
    server.status = status
    server.instance.host = host.name
    server.instance.node = host.node.hypervisor_hostname
    server.claimed = claimed
    server.instance.numa_topology = claimed.topology
    server.instance.pci_requests = claimed.requests
    server.instance.pci_devices = objects.PciDeviceList(
        objects=list(claimed.devices))
    host.instances[server.uuid] = server


def needs(server: servers.SimulatedServer, *statuses: str) -> None:
    """Raise Refused unless a server has one of the statuses, and a host."""
    if server.status not in statuses:
        raise servers.Refused(
            f'the server is {server.status}, not {statuses[0]}')
    if server.host is None and server.status != servers.SHELVED:
        raise servers.Refused('its host is not in the snapshot')


def needs_service(host: compute.ComputeHost) -> None:
    if host.down:
        raise servers.Refused(f'the compute service on {host.name} is down')


def hand_over(state: states.State, server: servers.SimulatedServer,
              step: actions.Step) -> str:
    """Move a server's allocations to its migration; return the UUID of it."""
    migration = scenario.stable_uuid(
        'migration', f'{server.name}/{step.number}')
    state.network.migrations[migration] = server.uuid
    state.placement.move(server.uuid, migration)
    return migration
