# SPDX-License-Identifier: Apache-2.0

"""Types of single values of a cloud file: sizes, CPU sets, names."""

import re
import typing as ty

from oslo_utils import units

from nfv_sched import cpu_spec
from nfv_sched import extra_specs
from nfv_sched.ops.cloud_file import schema

#: Size of ordinary pages, which fill what huge pages leave, in KiB.
SMALL_PAGE_KIB = 4

_SIZE = re.compile(r'\s*(\d+(?:\.\d+)?)\s*([kKMGT])(?:iB?)?\s*')
_UNITS = {'K': units.Ki, 'M': units.Mi, 'G': units.Gi, 'T': units.Ti}
_CPU_RANGE = re.compile(r'\s*(\^?)\s*(\d+)(?:\s*-\s*(\d+))?\s*')


def parse_size(value: int | str) -> int:
    """Parse a memory size.

    :param value: MiB as a number, or text with a unit: ``96 GiB``, ``2M``
    :returns: KiB
    :raises ValueError: if it is neither, or no whole number of KiB
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
    """Parse a CPU set in the syntax of Nova: ``0-3,^2,8``.

    :param value: the text, or one CPU
    :raises ValueError: if it is no CPU set
    """
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
        # Spans may overlap, but need not.
        count += last - first + 1
        if count > cpu_spec.MOST_CPUS:
            raise ValueError(f'more than {cpu_spec.MOST_CPUS} CPUs')
        (out if match[1] else cpus).update(range(first, last + 1))
    return frozenset(cpus - out)


def parse_text(value: str | int | float | bool) -> str:
    """A value as text; booleans as ``true`` and ``false``.

    :param value: a scalar of YAML
    """
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return str(value)


def parse_mib(value: int | str) -> int:
    """Parse a memory size.

    :param value: as for :func:`parse_size`
    :returns: MiB
    :raises ValueError: if it is none, or no whole number of MiB
    """
    kib = parse_size(value)
    if kib % 1024:
        raise ValueError(f'{value!r} is not a whole number of MiB')
    return kib // 1024


def parse_gib(value: int | str) -> int:
    """Parse a disk size.

    :param value: GiB as a number, or text with a unit
    :returns: GiB, rounded up
    :raises ValueError: if it is no size
    """
    return value if isinstance(value, int) else -(-parse_mib(value) // 1024)


def parse_page(value: str) -> int:
    """Parse a page size.

    :param value: KiB without a unit, or text with a unit
    :returns: KiB
    :raises ValueError: if it is no page size
    """
    kib = parse_size(f'{value}K' if value.isdigit() else value)
    if kib < SMALL_PAGE_KIB or kib & (kib - 1):
        raise ValueError(f'{value!r} is not a page size')
    return kib


def parse_huge_page(value: str) -> int:
    """Parse a page size of more than 4 KiB.

    :param value: as for :func:`parse_page`
    :returns: KiB
    :raises ValueError: if it is none
    """
    kib = parse_page(value)
    if kib == SMALL_PAGE_KIB:
        raise ValueError('4 KiB pages are what the huge pages leave')
    return kib


def parse_device_node(value: str) -> int | None:
    """Parse the NUMA node of a device.

    :param value: a number, ``none`` or ``null``
    :returns: None for a device without NUMA information
    :raises ValueError: if it is anything else
    """
    if value.isdigit():
        return int(value)
    if value in ('none', 'null'):
        return None
    raise ValueError(f'{value!r} is neither a NUMA node nor none')


def within(least: int, most: int) -> schema.SchemaRule:
    """Annotation with the bounds of a number.

    :param least: lowest value
    :param most: highest value
    """
    return schema.rule(minimum=least, maximum=most)


#: Annotations of lists and mappings with at least one entry.
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
PCIKind = ty.Literal['VF', 'PF', 'standard']
NUMAPolicy = ty.Literal['required', 'socket', 'preferred', 'legacy']
Locality = ty.Literal['local', 'partial', 'remote']
DeviceNode = ty.Annotated[str, schema.Convert(parse_device_node)]
#: NUMA nodes of a host.
Nodes = tuple[Count, ...]
Names = ty.Annotated[tuple[Name, ...], SOME_ITEMS, schema.ONE_OR_MORE]

#: Mark of keys with one value for all NUMA nodes, or a list of values.
PER_NODE = 'per NUMA node'
_T = ty.TypeVar('_T')
PerNode = ty.Annotated[_T | tuple[_T, ...], SOME_ITEMS, PER_NODE]

#: Mark of keys of PCI devices that Nova gets unchanged.
FOR_NOVA = 'for Nova'

FlavorName = ty.Annotated[Name, schema.NameOf('flavor')]
ImageName = ty.Annotated[Name, schema.NameOf('image')]
NetworkName = ty.Annotated[Name, schema.NameOf('network')]
SecurityGroupName = ty.Annotated[Name, schema.NameOf('security group')]
ServerGroupName = ty.Annotated[Name, schema.NameOf('server group')]
HostName = ty.Annotated[Name, schema.NameOf('host')]
PlaceName = ty.Annotated[str, schema.NameOf('place')]
ServerName = ty.Annotated[str, schema.NameOf('server in this step')]
