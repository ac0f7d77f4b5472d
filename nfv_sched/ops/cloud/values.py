# SPDX-License-Identifier: Apache-2.0

"""Define and parse single values of a cloud file: sizes, CPU sets, names."""

import re
import typing as ty

from oslo_utils import units

from nfv_sched.base import cpu_spec
from nfv_sched.base import extra_specs
from nfv_sched.ops.cloud import schema

#: Size in KiB of small pages, which fill the memory without huge pages.
SMALL_PAGE_KIB = 4

_SIZE = re.compile(r'\s*+(\d++(?:\.\d++)?)\s*+([kKMGT])(?:iB?)?\s*+')
_UNITS = {'K': units.Ki, 'M': units.Mi, 'G': units.Gi, 'T': units.Ti}
# Possessive: a text of many blanks is not searched again from each of them.
_CPU_RANGE = re.compile(r'\s*+(\^?)\s*+(\d++)(?:\s*+-\s*+(\d++))?\s*+')


def parse_size(value: int | str) -> int:
    """Parse a memory size.

    :param value: MiB as a number, or text with a unit: ``96 GiB``, ``2M``
    :returns: KiB
    :raises ValueError: if it is not a size, or not a multiple of 1 KiB
    """
    if isinstance(value, int):
        return value * 1024
    if value.strip().isdigit():
        return int(value) * 1024
    match = _SIZE.fullmatch(value)
    if not match:
        raise ValueError(f'{value!r} is not a size: MiB as a number, or a '
                         'number with KiB, MiB, GiB or TiB')
    amount = float(match[1]) * _UNITS[match[2].upper()]
    if amount % 1024:
        raise ValueError(f'{value!r} is not a whole number of KiB')
    return int(amount) // 1024


def parse_cpus(value: int | str) -> frozenset[int]:
    """Parse a CPU set in the syntax of Nova: ``0-3,^2,8``."""
    cpus, out = set(), set()
    count = 0
    text = str(value)
    if not text.strip():
        return frozenset()
    for part in text.split(','):
        match = _CPU_RANGE.fullmatch(part)
        if not match:
            raise ValueError(
                f'{extra_specs.shown(text)} is not a CPU set such as 0-3,8')
        first, last = int(match[2]), int(match[3] or match[2])
        if last < first or last >= cpu_spec.MOST_CPUS:
            raise ValueError(
                f'{extra_specs.shown(part.strip())} is not a range of CPUs')
        # Ranges that overlap count twice: this limits the work.
        count += last - first + 1
        if count > cpu_spec.MOST_CPUS:
            raise ValueError(f'more than {cpu_spec.MOST_CPUS} CPUs')
        (out if match[1] else cpus).update(range(first, last + 1))
    return frozenset(cpus - out)


def parse_text(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return str(value)


def parse_mib(value: int | str) -> int:
    """Parse a memory size like parse_size(), but in whole MiB."""
    kib = parse_size(value)
    if kib % 1024:
        raise ValueError(f'{value!r} is not a whole number of MiB')
    return kib // 1024


def parse_gib(value: int | str) -> int:
    """Parse a disk size, GiB or text with a unit, to GiB, rounded up."""
    return value if isinstance(value, int) else -(-parse_mib(value) // 1024)


def parse_page(value: str) -> int:
    """Parse a page size, KiB or text with a unit, to KiB: a power of 2."""
    kib = parse_size(f'{value}K' if value.isdigit() else value)
    if kib < SMALL_PAGE_KIB or kib & (kib - 1):
        raise ValueError(f'{value!r} is not a page size')
    return kib


def parse_huge_page(value: str) -> int:
    """Parse a page size of more than 4 KiB, like parse_page()."""
    kib = parse_page(value)
    if kib == SMALL_PAGE_KIB:
        raise ValueError('4 KiB pages are what the huge pages leave')
    return kib


def parse_device_node(value: str) -> int | None:
    """Parse the NUMA node of a device; None for ``none`` or ``null``."""
    if value.isdigit():
        return int(value)
    if value in ('none', 'null'):
        return None
    raise ValueError(f'{value!r} is neither a NUMA node nor none')


def within(least: int, most: int) -> schema.SchemaRule:
    """Return an annotation with inclusive limits of a number."""
    return schema.rule(minimum=least, maximum=most)


#: Annotations of lists, and of mappings, with at least one entry.
SOME_ITEMS = schema.rule(minItems=1)
SOME_KEYS = schema.rule(minProperties=1)

Name = ty.Annotated[str, schema.rule(minLength=1, maxLength=255)]
Count = ty.Annotated[int, schema.rule(minimum=0)]
Positive = ty.Annotated[int, schema.rule(minimum=1)]
#: Number of ports, rules, DHCP servers or routers.
Load = ty.Annotated[int, within(0, 100_000)]
Ratio = ty.Annotated[float, schema.rule(exclusiveMinimum=0, maximum=10_000),
                     schema.Convert(float)]
MiB = ty.Annotated[int | str, schema.rule(minimum=0),
                   schema.Convert(parse_mib)]
GiB = ty.Annotated[int | str, schema.rule(minimum=0),
                   schema.Convert(parse_gib)]
PageSize = ty.Annotated[str, schema.Convert(parse_page)]
HugePageSize = ty.Annotated[str, schema.Convert(parse_huge_page)]
CPUSet = ty.Annotated[str | int, schema.Convert(parse_cpus)]
Scalar = str | int | float | bool
Text = ty.Annotated[Scalar, schema.Convert(parse_text)]
PCIId = ty.Annotated[str, schema.rule(pattern='^[0-9a-fA-F]{4}$')]
PCIKind = ty.Literal['VF', 'PF', 'vdpa', 'standard']
#: Those of Nova, but for bare metal, and for accelerators of Cyborg.
NUMAPolicy = ty.Literal['required', 'socket', 'preferred', 'legacy']
Locality = ty.Literal['local', 'partial', 'remote']
DeviceNode = ty.Annotated[str, schema.Convert(parse_device_node)]
#: NUMA nodes of a host.
Nodes = tuple[Count, ...]
Names = ty.Annotated[tuple[Name, ...], SOME_ITEMS, schema.ONE_OR_MORE]

#: Mark of keys with one value for all NUMA nodes or a value for each.
PER_NODE = 'per NUMA node'
_T = ty.TypeVar('_T')
PerNode = ty.Annotated[_T | tuple[_T, ...], SOME_ITEMS, PER_NODE]

#: Mark of keys of PCI devices that are passed to Nova unchanged.
FOR_NOVA = 'for Nova'

FlavorName = ty.Annotated[Name, schema.NameOf('flavor')]
ImageName = ty.Annotated[Name, schema.NameOf('image')]
NetworkName = ty.Annotated[Name, schema.NameOf('network')]
SecurityGroupName = ty.Annotated[Name, schema.NameOf('security group')]
ServerGroupName = ty.Annotated[Name, schema.NameOf('server group')]
HostName = ty.Annotated[Name, schema.NameOf('host')]
PlaceName = ty.Annotated[str, schema.NameOf('place')]
ServerName = ty.Annotated[str, schema.NameOf('server in this step')]
