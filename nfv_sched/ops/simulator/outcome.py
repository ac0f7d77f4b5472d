# SPDX-License-Identifier: Apache-2.0

"""Define the outcomes of steps, and the result of a simulation."""

from collections.abc import Mapping, Sequence
import dataclasses
import typing as ty

if ty.TYPE_CHECKING:  # these load Nova
    from nfv_sched.ops.cloud import scenario as scenarios
    from nfv_sched.ops.simulator import compute
    from nfv_sched.ops.simulator import network
    from nfv_sched.ops.simulator import placement as placement_mod
    from nfv_sched.ops.simulator import servers as simulated


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AssignedDevice:
    """A PCI device of a server.

    :ivar address: its PCI address
    :ivar node: number of its NUMA node; null if it is not known
    """

    address: str
    node: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStep:
    """The outcome of one step for one server or host.

    :ivar step: number of the step
    :ivar action: action of the step
    :ivar server: name of the server, or of the host of the step
    :ivar result: whether it was done
    :ivar status: status of the server after the step
    :ivar source: name of its host before the step; null without one
    :ivar destination: name of its host after the step; null without one
    :ivar numa_nodes: NUMA node of the host for each of the server; null if it
        has none
    :ivar cores: number of physical cores to which it is pinned
    :ivar vswitch: its NUMA nodes relative to those of the virtual switch:
        "local", "partial" or "remote"; null if that cannot be said
    :ivar places: place -> the same relative to it
    :ivar pci: its devices relative to its NUMA nodes, likewise; null without
        devices
    :ivar pci_devices: its PCI devices
    :ivar reason: why it was refused, for people; null if it was not
    :ivar notes: claims that failed before, for people
    """

    step: int
    action: str
    server: str
    result: ty.Literal['done', 'refused']
    status: str
    source: str | None
    destination: str | None
    numa_nodes: tuple[int, ...] | None
    cores: int
    vswitch: str | None
    places: Mapping[str, str]
    pci: str | None
    pci_devices: tuple[AssignedDevice, ...]
    reason: str | None
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.result == 'done'


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

    scenario: 'scenarios.Scenario'
    servers: 'Sequence[simulated.SimulatedServer]'
    hosts: 'Sequence[compute.ComputeHost]'
    placement: 'placement_mod.Placement'
    loads: 'Mapping[str, network.HostLoad]'
    outcomes: Sequence[SimulatedStep]
    checks: int
    failures: Sequence[str]
    seconds: float


def places_text(places: Mapping[str, str]) -> str:
    """Return the positions as text: ``osd remote, nvme local``."""
    return ', '.join(f'{name} {near}' for name, near in places.items())
