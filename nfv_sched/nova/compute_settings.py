# SPDX-License-Identifier: Apache-2.0
"""Hold the CPU, memory and label settings of a compute node's nova.conf."""

from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of a compute node; those that are not set have a default here.

    :ivar shared: ``[compute] cpu_shared_set``
    :ivar dedicated: ``[compute] cpu_dedicated_set``
    :ivar reserved_memory: ``reserved_host_memory_mb`` in MiB
    :ivar reserved_pages: ``reserved_huge_pages``: (NUMA node, KiB) -> pages
    :ivar cpu_ratio: ``cpu_allocation_ratio``, or None if it is not set
    :ivar pin_set: ``vcpu_pin_set``, which Nova has deprecated
    :ivar physnets: names of ``[neutron] physnets`` -> their NUMA nodes
    """

    shared: frozenset[int] = frozenset()
    dedicated: frozenset[int] = frozenset()
    reserved_memory: int = 512
    reserved_pages: Mapping[tuple[int, int], int] = dataclasses.field(
        default_factory=dict)
    cpu_ratio: float | None = None
    pin_set: str = ''
    physnets: Mapping[str, frozenset[int]] = dataclasses.field(
        default_factory=dict)
