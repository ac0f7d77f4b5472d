# SPDX-License-Identifier: Apache-2.0
"""Define the outcomes of steps."""

from collections.abc import Mapping
import dataclasses
import typing as ty


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AssignedDevice:
    """A PCI device of a server."""

    address: str  #: its PCI address
    node: int | None  #: number of its NUMA node; null if it is not known


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStep:
    """The outcome of one step for one server or host."""

    step: int  #: number of the step
    action: str  #: action of the step
    server: str  #: name of the server, or of the host of the step
    result: ty.Literal['done', 'refused']  #: whether it was done
    status: str  #: status of the server after the step
    source: str | None  #: name of its host before the step; null without one
    #: name of its host after the step; null without one
    destination: str | None
    #: NUMA node of the host for each of the server; null if it has none
    numa_nodes: tuple[int, ...] | None
    cores: int  #: number of physical cores to which it is pinned
    #: its NUMA nodes relative to those of the virtual switch: "local",
    #: "partial" or "remote"; null if that cannot be said
    vswitch: str | None
    places: Mapping[str, str]  #: place -> the same relative to it
    #: its devices relative to its NUMA nodes, likewise; null without devices
    pci: str | None
    pci_devices: tuple[AssignedDevice, ...]  #: its PCI devices
    reason: str | None  #: why it was refused, for people; null if it was not
    notes: tuple[str, ...]  #: claims that failed before, for people

    @property
    def ok(self) -> bool:
        return self.result == 'done'


def places_text(places: Mapping[str, str]) -> str:
    """Return the positions as text: ``osd remote, nvme local``."""
    return ', '.join(f'{name} {near}' for name, near in places.items())
