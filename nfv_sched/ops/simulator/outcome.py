# SPDX-License-Identifier: Apache-2.0

"""Define the outcomes of steps, and the result of a simulation."""

from collections.abc import Mapping, Sequence
import dataclasses

from nfv_sched.ops.cloud.cloud_file import scenario as scenarios
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import placement as placement_mod
from nfv_sched.ops.simulator import servers as simulated


@dataclasses.dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of one step for one server or host.

    :ivar step: number of the step
    :ivar action: action of the step
    :ivar server: name of the server (or host)
    :ivar ok: whether the step succeeded; otherwise it was refused
    :ivar status: status of the server after the step
    :ivar source: name of its host before the step, or None
    :ivar host: name of its host after the step, or None
    :ivar nodes: host NUMA node of each guest NUMA node, or None
    :ivar vswitch: see ``servers.SimulatedServer.vswitch``
    :ivar places: see ``servers.SimulatedServer.places``
    :ivar devices: (PCI address, host NUMA node or None) of each PCI device
    :ivar pci: see ``servers.SimulatedServer.pci``
    :ivar cores: number of physical cores to which the server is pinned
    :ivar reason: reason of the refusal; empty if the step succeeded
    :ivar notes: messages on claims that failed before
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
class SimulationResult:
    """The result of all steps of a cloud.

    :ivar scenario: the cloud before the steps
    :ivar servers: servers, including deleted ones
    :ivar placement: model of Placement
    :ivar loads: host name -> network load
    :ivar outcomes: in order of the steps
    :ivar checks: number of expectations that were checked
    :ivar failures: messages on expectations that are not met
    :ivar seconds: duration of the steps
    """

    scenario: scenarios.Scenario
    servers: Sequence[simulated.SimulatedServer]
    hosts: Sequence[compute.ComputeHost]
    placement: placement_mod.Placement
    loads: Mapping[str, network.HostLoad]
    outcomes: Sequence[StepOutcome]
    checks: int
    failures: Sequence[str]
    seconds: float


def places_text(places: Mapping[str, str]) -> str:
    """Return the positions as text: ``osd remote, nvme local``."""
    return ', '.join(f'{name} {near}' for name, near in places.items())
