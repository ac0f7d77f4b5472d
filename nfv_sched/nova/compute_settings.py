# SPDX-License-Identifier: Apache-2.0
"""Hold the CPU, memory and label settings of a compute node's nova.conf."""

from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StartError:
    """An error that nova-compute finds in its options when it starts.

    :ivar starts: whether it starts all the same, without reporting its host
    :ivar reason: in Nova's words
    """

    starts: bool
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MisplacedOption:
    """An option in a section in which Nova does not read it.

    :ivar values: what it is set to there
    :ivar belongs: the section in which Nova reads it
    """

    section: str
    option: str
    values: tuple[str, ...]
    belongs: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of a compute node; those that are not set have a default here.

    :ivar shared: ``[compute] cpu_shared_set``
    :ivar dedicated: ``[compute] cpu_dedicated_set``
    :ivar reserved_memory: ``reserved_host_memory_mb`` in MiB
    :ivar reserved_pages: ``reserved_huge_pages``: (NUMA node, KiB) -> pages
    :ivar cpu_ratio: ``cpu_allocation_ratio``, or None if it is not set
    :ivar pin_set: ``vcpu_pin_set``, which Nova has deprecated
    :ivar reserved_cpus: ``reserved_host_cpus``
    :ivar powers_down: True if ``[libvirt] cpu_power_management`` switches off
        the dedicated CPUs that no server has
    :ivar physnets: names of ``[neutron] physnets`` -> their NUMA nodes
    """

    shared: frozenset[int] = frozenset()
    dedicated: frozenset[int] = frozenset()
    reserved_memory: int = 512
    reserved_pages: Mapping[tuple[int, int], int] = dataclasses.field(
        default_factory=dict)
    cpu_ratio: float | None = None
    pin_set: str = ''
    reserved_cpus: int = 0
    powers_down: bool = False
    physnets: Mapping[str, frozenset[int]] = dataclasses.field(
        default_factory=dict)
