# SPDX-License-Identifier: Apache-2.0
"""Hold the CPU, memory and label settings of a compute node's nova.conf."""

from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StartError:
    """An error that nova-compute finds in its options when it starts."""

    starts: bool  #: whether it starts all the same, without reporting its host
    reason: str  #: in Nova's words


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MisplacedOption:
    """An option in a section in which Nova does not read it."""

    section: str
    option: str
    values: tuple[str, ...]
    belongs: str  #: the section in which Nova reads it


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of a compute node; what is not set has a default here."""

    shared: frozenset[int] = frozenset()  #: ``[compute] cpu_shared_set``
    dedicated: frozenset[int] = frozenset()  #: ``[compute] cpu_dedicated_set``
    reserved_memory: int = 512  #: ``reserved_host_memory_mb`` in MiB
    #: ``reserved_huge_pages``: (NUMA node, KiB) -> pages
    reserved_pages: Mapping[tuple[int, int], int] = dataclasses.field(
        default_factory=dict)
    #: ``cpu_allocation_ratio``, or None if it is not set
    cpu_ratio: float | None = None
    pin_set: str = ''  #: ``vcpu_pin_set``, which Nova has deprecated
    reserved_cpus: int = 0  #: ``reserved_host_cpus``
    #: True if ``[libvirt] cpu_power_management`` switches off the dedicated
    #: CPUs that no server has
    powers_down: bool = False
    #: names of ``[neutron] physnets`` -> their NUMA nodes
    physnets: Mapping[str, frozenset[int]] = dataclasses.field(
        default_factory=dict)
