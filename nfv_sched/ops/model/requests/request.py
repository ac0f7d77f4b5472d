# SPDX-License-Identifier: Apache-2.0

"""Hold the request of a server as plain values, and convert it for Nova."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from nova import exception

from nfv_sched.ops.cloud.cloud_file import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import state as states

#: Extra spec -> its most lenient value.
_LENIENT = {
    'hw:pci_numa_affinity_policy': 'preferred',
    'hw:cpu_thread_policy': 'prefer',
}


def network_label(network: snapshot.Network) -> str:
    """Return the name of a network for people, with the type of its ports."""
    if network.vnic_type in (None, scenario.NORMAL):
        return network.name
    return f'{network.name}/{network.vnic_type}'


class ExplainError(Exception):
    """A request that cannot be explained."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRequest:
    """A request for servers.

    :ivar image: image properties
    :ivar ports: the network of each port, and its security groups
    :ivar alias_specs: what PCI aliases mean for an existing server
    :ivar zone: availability zone
    :ivar stored: whether it is the stored request of an existing server
    :ivar group: name of the server group
    :ivar hints: scheduler hints other than that of the group
    :ivar project: UUID of the project
    :ivar on_volume: whether the root disk is on a volume
    :ivar count: number of servers in the request
    """

    flavor: snapshot.Flavor
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ports: tuple[scenario.Plug, ...] = ()
    alias_specs: Mapping[str, request.Specs] = dataclasses.field(
        default_factory=dict)
    zone: str | None = None
    stored: bool = False
    group: str | None = None
    hints: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict)
    project: str = nova_internals.PROJECT
    on_volume: bool = False
    count: int = 1

    def with_flavor(self, **changes) -> 'ExplainedRequest':
        """Return the request with attributes of its flavor replaced."""
        return dataclasses.replace(
            self, flavor=dataclasses.replace(self.flavor, **changes))

    def with_specs(self, extra_specs: Mapping[str, str]) -> 'ExplainedRequest':
        """Return the request with these extra specs only."""
        return self.with_flavor(extra_specs=dict(extra_specs))


def wanted(state: states.State,
           explained_request: ExplainedRequest) -> request.BootRequest:
    """Convert the request for the simulator.

    :raises ExplainError: if Nova refuses the image, or there is no such server
        group
    """
    try:
        image = nova_internals.image_meta({
            name: value for name, value in explained_request.image.items()
            if name.startswith('trait:') or
            name not in nova_internals.unknown_image_properties([name])})
    except (ValueError, exception.NovaException) as exc:
        raise ExplainError(f'Nova does not take the image: {exc}') from exc
    if explained_request.group is not None and (
            explained_request.group not in state.scenario.server_groups):
        raise ExplainError(
            f'no server group named {explained_request.group!r}')
    return request.BootRequest(
        flavor=states.nova_flavor(1, explained_request.flavor),
        image=image, ports=explained_request.ports,
        alias_specs=explained_request.alias_specs,
        zone=explained_request.zone,
        stored=explained_request.stored, group=explained_request.group,
        hints=explained_request.hints, project=explained_request.project,
        on_volume=explained_request.on_volume, count=explained_request.count)


def lenient_values(
    specs: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """Yield the extra specs that insist on something.

    :returns: of each, the key and the most lenient value
    """
    for key, value in specs.items():
        lenient = _LENIENT.get(key)
        if lenient is None and key.startswith(('nfv:', 'hw:wrs:')) and (
                value == 'strict'):
            lenient = 'prefer'
        if lenient is not None and value != lenient:
            yield key, lenient
