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

"""What became of the steps of a cloud, as values."""

from collections.abc import Mapping, Sequence
import dataclasses

from nfv_sched.simulator import compute
from nfv_sched.simulator import model
from nfv_sched.simulator import network
from nfv_sched.simulator import placement as placement_mod
from nfv_sched.simulator import servers as simulated


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one server in one step.

    :ivar step: number of the step
    :ivar action: what was asked
    :ivar server: name of the server (or host)
    :ivar ok: whether it was done
    :ivar status: status of the server afterwards
    :ivar source: host before the step
    :ivar host: host afterwards
    :ivar nodes: host NUMA node of each guest NUMA node
    :ivar vswitch: local, partial, remote or None
    :ivar places: local, partial or remote to each place of the host
    :ivar devices: PCI address and host NUMA node of each PCI device
    :ivar pci: local, partial, remote or None
    :ivar cores: physical cores that dedicated vCPUs are on
    :ivar reason: why it was refused
    :ivar notes: claims that failed on the way
    """

    step: int
    action: str
    server: str
    ok: bool
    status: str
    source: str | None = None
    host: str | None = None
    nodes: tuple[int, ...] | None = None
    vswitch: str | None = None
    places: Mapping[str, str] = dataclasses.field(default_factory=dict)
    devices: tuple[tuple[str, int | None], ...] = ()
    pci: str | None = None
    cores: int = 0
    reason: str = ''
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What became of a cloud.

    :ivar cloud: the cloud
    :ivar servers: its servers, deleted ones included
    :ivar hosts: its hosts
    :ivar placement: its Placement
    :ivar loads: what the network puts on each host, by name
    :ivar outcomes: what happened, in order
    :ivar checks: how many expectations were checked
    :ivar failures: those not met
    :ivar seconds: how long the steps took
    """

    cloud: model.Cloud
    servers: Sequence[simulated.Server]
    hosts: Sequence[compute.ComputeHost]
    placement: placement_mod.Placement
    loads: Mapping[str, network.Load]
    outcomes: Sequence[Outcome]
    checks: int
    failures: Sequence[str]
    seconds: float


def places_text(places: Mapping[str, str]) -> str:
    """Where a server is: ``osd remote, nvme local``.

    :param places: place -> local, partial or remote
    """
    return ', '.join(f'{name} {near}' for name, near in places.items())
