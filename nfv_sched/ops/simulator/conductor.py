# SPDX-License-Identifier: Apache-2.0

"""What nova-conductor and nova-compute do around the scheduler.

Allocations and claims are made and removed in the same order as in Nova.  One
thing is missing: with PCI in Placement, nova-compute corrects an allocation if
its claim took another device; here it stays.
"""

from collections.abc import Callable, Sequence
import typing as ty

from nova import exception
from nova import objects
from oslo_serialization import jsonutils

from nfv_sched.ops.cloud_file import actions
from nfv_sched.ops.cloud_file import scenario
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states


def select(state: states.State, spec: objects.RequestSpec,
           uuids: Sequence[str], alternates: bool = True):
    """Ask the scheduler for hosts.

    :param state: the cloud
    :param spec: the request
    :param uuids: UUIDs of its servers
    :param alternates: whether it gives alternates, in case a claim fails
    :returns: for each server a list of ``nova.objects.Selection``: its host
        and the alternates
    :raises Refused: if no host is found
    """
    state.network.refresh(state.owners())
    try:
        return state.scheduler.select(state.context, spec, uuids,
                                      alternates)
    except exception.NoValidHost as e:
        raise servers.Refused(str(e.kwargs.get('reason') or e))
    except exception.NovaException as e:
        raise servers.Refused(str(e))


def claim_first(state: states.State, spec: objects.RequestSpec,
                server: servers.SimulatedServer,
                selections: Sequence[objects.Selection],
                claim: Callable[[compute.ComputeHost, ty.Any], ty.Any]):
    """Claim on the selected host; if that fails, on the alternates in turn.

    :param state: the cloud; its ``notes`` are set
    :param spec: the request
    :param server: the server
    :param selections: the host and its alternates
    :param claim: makes the claim, from the host and its limits
    :returns: (host, what the server has claimed there)
    :raises Refused: if no claim succeeds
    """
    failed = []
    for number, selection in enumerate(selections):
        host = state.hosts[selection.service_host]
        if number and not nova_internals.claim_resources(
                state.context, state.placement, spec, server.uuid,
                jsonutils.loads(selection.allocation_request),
                selection.allocation_request_version):
            failed.append(f'{host.name}: no room in Placement')
            continue
        nova_internals.fill_provider_mapping(spec, selection)
        nova_internals.map_requests(state.context, server.instance, spec)
        try:
            return host, claim(host, selection.limits)
        except nova_internals.CLAIM_ERRORS as e:
            failed.append(f'{host.name}: {e}')
            state.placement.remove_provider(server.uuid, host.uuid)
        finally:
            state.notes = [f'claim failed on {text}' for text in failed]
    raise servers.Refused('every claim failed: ' + '; '.join(failed))


def claim(state: states.State, server: servers.SimulatedServer,
          spec: objects.RequestSpec,
          selections: Sequence[objects.Selection]) -> None:
    """Claim a host for a new server, or for one that was shelved.

    :param state: the cloud
    :param server: the server
    :param spec: the request
    :param selections: the host and its alternates
    :raises Refused: if no claim succeeds
    """
    if spec.force_hosts:
        selections = selections[:1]
    host, claimed = claim_first(
        state, spec, server, selections,
        lambda host, limits: host.claim(state.context, server.instance,
                                        limits))
    settle(state, server, host, claimed)


def settle(state: states.State, server: servers.SimulatedServer,
           host: compute.ComputeHost, claimed: compute.ServerClaim,
           status: str = servers.ACTIVE) -> None:
    """Put a server on the host that it has claimed.

    :param state: the cloud
    :param server: the server
    :param host: the host
    :param claimed: what it has claimed there
    :param status: its new status
    """
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
    """Check the status of a server.

    :param server: the server
    :param statuses: the statuses that it may have, most usual first
    :raises Refused: if its status is another one, or it has no host and is not
        shelved
    """
    if server.status not in statuses:
        raise servers.Refused(
            f'the server is {server.status}, not {statuses[0]}')
    if server.host is None and server.status != servers.SHELVED:
        raise servers.Refused('its host is not in the snapshot')


def needs_service(host: compute.ComputeHost) -> None:
    """Check that the compute service of a host is up.

    :param host: the host
    :raises Refused: if it is down
    """
    if host.down:
        raise servers.Refused(f'the compute service on {host.name} is down')


def hand_over(state: states.State, server: servers.SimulatedServer,
              step: actions.Step) -> str:
    """Give the allocations of a server to the migration of its move.

    :param state: the cloud
    :param server: the server
    :param step: the step that moves it
    :returns: UUID of the migration
    """
    migration = scenario.stable_uuid(
        'migration', f'{server.name}/{step.number}')
    state.network.migrations[migration] = server.uuid
    state.placement.move(server.uuid, migration)
    return migration


def leave(state: states.State, host: compute.ComputeHost,
          server: servers.SimulatedServer, flavor: objects.Flavor,
          claimed: compute.ServerClaim) -> None:
    """Note the resources that a server still holds on a host that is down.

    :param state: the cloud; its ``residues`` are changed
    :param host: the host
    :param server: the server, which has left
    :param flavor: its flavor there
    :param claimed: what it has claimed there
    """
    state.residues.setdefault(host.name, []).append(
        (server.instance, flavor, claimed))
