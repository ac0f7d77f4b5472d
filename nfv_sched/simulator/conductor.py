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

"""What the conductor and the computes do around the scheduler.

The order in which Placement and nova-compute give and take is Nova's.  Where
Placement tracks PCI devices, nova-compute would correct an allocation that
its claim did not keep to; here it stays.
"""

from collections.abc import Callable, Sequence
import typing as ty

from nova import exception
from nova import objects
from oslo_serialization import jsonutils

from nfv_sched.simulator import actions
from nfv_sched.simulator import compute
from nfv_sched.simulator import nova_api
from nfv_sched.simulator import servers
from nfv_sched.simulator import state as states


def select(state: states.State, spec: objects.RequestSpec,
           uuids: Sequence[str], alternates: bool = True):
    """Ask the scheduler.

    :param state: the cloud
    :param spec: the request
    :param uuids: its servers
    :param alternates: whether other hosts are wanted in case a claim fails
    :returns: for each server its host and the alternates
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
                server: servers.Server,
                selections: Sequence[objects.Selection],
                claim: Callable[[compute.ComputeHost, ty.Any], ty.Any]):
    """Claim on the selected host, or on the next alternate that can.

    :returns: (host, what the server has claimed there)
    :raises Refused: if no claim succeeds
    """
    failed = []
    for number, selection in enumerate(selections):
        host = state.hosts[selection.service_host]
        if number and not nova_api.claim_resources(
                state.context, state.placement, spec, server.uuid,
                jsonutils.loads(selection.allocation_request),
                selection.allocation_request_version):
            failed.append(f'{host.name}: no room in Placement')
            continue
        nova_api.fill_provider_mapping(spec, selection)
        nova_api.map_requests(state.context, server.instance, spec)
        try:
            return host, claim(host, selection.limits)
        except nova_api.CLAIM_ERRORS as e:
            failed.append(f'{host.name}: {e}')
            state.placement.remove_provider(server.uuid, host.uuid)
        finally:
            state.notes = [f'claim failed on {text}' for text in failed]
    raise servers.Refused('every claim failed: ' + '; '.join(failed))


def claim(state: states.State, server: servers.Server,
          spec: objects.RequestSpec,
          selections: Sequence[objects.Selection]) -> None:
    """Claim a new server, or one that was shelved.

    :raises Refused: if no claim succeeds
    """
    if spec.force_hosts:
        selections = selections[:1]
    host, claimed = claim_first(
        state, spec, server, selections,
        lambda host, limits: host.claim(state.context, server.instance,
                                        limits))
    settle(state, server, host, claimed)


def settle(state: states.State, server: servers.Server,
           host: compute.ComputeHost, claimed: compute.Claimed,
           status: str = servers.ACTIVE) -> None:
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


def needs(server: servers.Server, status: str = servers.ACTIVE) -> None:
    """Refuse what a server is not in the right state for.

    :raises Refused: if its status is another one
    """
    if server.status != status:
        raise servers.Refused(f'the server is {server.status}, not {status}')


def needs_service(host: compute.ComputeHost) -> None:
    """Refuse what a host must be up for.

    :raises Refused: if its compute service is down
    """
    if host.down:
        raise servers.Refused(f'the compute service on {host.name} is down')


def hand_over(state: states.State, server: servers.Server,
              step: actions.Step) -> str:
    """Let the migration of a move have what the server has.

    :returns: UUID of the migration
    """
    migration = compute.stable_uuid(
        'migration', f'{server.name}/{step.number}')
    state.network.migrations[migration] = server.uuid
    state.placement.move(server.uuid, migration)
    return migration


def leave(state: states.State, host: compute.ComputeHost,
          server: servers.Server, flavor: objects.Flavor,
          claimed: compute.Claimed) -> None:
    """Keep in mind what a server leaves behind on a host that is down."""
    state.residues.setdefault(host.name, []).append(
        (server.instance, flavor, claimed))
