# SPDX-License-Identifier: Apache-2.0

"""What a server asks for, as plain values, and as Nova's scheduler gets it."""

from collections.abc import Mapping
import dataclasses

from nova import exception

from nfv_sched.ops.cloud_file import scenario
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import state as states
from nfv_sched.ops.snapshot import snapshot


def network_label(network: snapshot.Network) -> str:
    """Return the name of a network for people, with the type of its ports.

    :param network: with the vNIC type of ports that are asked for on it
    """
    if network.vnic_type in (None, scenario.NORMAL):
        return network.name
    return f'{network.name}/{network.vnic_type}'


class ExplainError(Exception):
    """Nothing can be explained about such a request; says why."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRequest:
    """What is asked for.

    :ivar flavor: the flavor
    :ivar image: properties of the image
    :ivar ports: the network of each port, and its security groups
    :ivar zone: availability zone
    :ivar stored: whether Nova has stored the request of a server
    :ivar group: name of the server group
    :ivar hints: scheduler hints other than that of the group
    :ivar project: UUID of the project
    :ivar on_volume: whether the root disk is on a volume
    :ivar count: how many servers one request makes
    """

    flavor: snapshot.Flavor
    image: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ports: tuple[scenario.Plug, ...] = ()
    zone: str | None = None
    stored: bool = False
    group: str | None = None
    hints: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict)
    project: str = nova_internals.PROJECT
    on_volume: bool = False
    count: int = 1

    def with_flavor(self, **changes) -> 'ExplainedRequest':
        """The same with another flavor.

        :param changes: what is other about it
        """
        return dataclasses.replace(
            self, flavor=dataclasses.replace(self.flavor, **changes))

    def with_specs(self, extra_specs: Mapping[str, str]) -> 'ExplainedRequest':
        """The same with other extra specs.

        :param extra_specs: all of them
        """
        return self.with_flavor(extra_specs=dict(extra_specs))


def wanted(state: states.State,
           asked: ExplainedRequest) -> request.BootRequest:
    """The request as the simulator takes it.

    :param state: the cloud
    :param asked: what is asked for
    :raises ExplainError: if Nova takes no such image, or there is no such
        server group or availability zone
    """
    try:
        image = nova_internals.image_meta({
            name: value for name, value in asked.image.items()
            if name.startswith('trait:') or
            name not in nova_internals.unknown_image_properties([name])})
    except (ValueError, exception.NovaException) as exc:
        raise ExplainError(f'Nova does not take the image: {exc}') from exc
    if asked.group is not None and (
            asked.group not in state.scenario.server_groups):
        raise ExplainError(f'there is no server group {asked.group!r}')
    return request.BootRequest(
        flavor=states.nova_flavor(1, asked.flavor),
        image=image, ports=asked.ports, zone=asked.zone,
        stored=asked.stored, group=asked.group,
        hints=asked.hints, project=asked.project, on_volume=asked.on_volume,
        count=asked.count)
