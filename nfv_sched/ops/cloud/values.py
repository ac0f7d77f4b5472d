# SPDX-License-Identifier: Apache-2.0
"""Define and parse single values of a cloud file: sizes, CPU sets, names."""

import dataclasses
import functools
import re
import typing as ty

from oslo_utils import units
import pydantic

from nfv_sched.base import cpu_spec
from nfv_sched.ops.cloud import marks

#: Defines a field of a dataclass that is an empty mapping by default.
empty_mapping = functools.partial(dataclasses.field, default_factory=dict)

#: Size in KiB of small pages, which fill the memory without huge pages.
SMALL_PAGE_KIB = 4

_SIZE = re.compile(r'\s*+(\d++(?:\.\d++)?)\s*+([kKMGT])(?:iB?)?\s*+')
_UNITS = {'K': units.Ki, 'M': units.Mi, 'G': units.Gi, 'T': units.Ti}


def parse_size(value: int | str) -> int:
    """Parse MiB as a number, or text with a unit such as ``2M``, to KiB."""
    if isinstance(value, int):
        return value * 1024
    if value.strip().isdigit():
        return int(value) * 1024
    if not (match := _SIZE.fullmatch(value)):
        raise ValueError(f'{value!r} is not a size: MiB as a number, or a '
                         'number with KiB, MiB, GiB or TiB')
    amount = float(match[1]) * _UNITS[match[2].upper()]
    if amount % 1024:
        raise ValueError(f'{value!r} is not a whole number of KiB')
    return int(amount) // 1024


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


def _not_empty(value: ty.Any) -> ty.Any:
    if value in ([], {}):
        raise ValueError('must not be empty')
    return value


def within(least: int, most: int) -> ty.Any:
    """Return an annotation with inclusive limits of a number."""
    return pydantic.Field(ge=least, le=most)


@dataclasses.dataclass(frozen=True, slots=True)
class NameOf:
    """Annotation of a value that is the name of an object in the file."""

    kind: str


#: Annotation of lists, and of mappings, with at least one entry.
NOT_EMPTY = pydantic.BeforeValidator(_not_empty)
#: Annotation of a list for which a single item may be written instead.
ONE_OR_MORE = pydantic.BeforeValidator(
    lambda value: value if isinstance(value, list) else [value])

Name = ty.Annotated[str, pydantic.Field(min_length=1, max_length=255)]
Count = ty.Annotated[int, pydantic.Field(ge=0)]
Positive = ty.Annotated[int, pydantic.Field(ge=1)]
#: Number of ports, rules, DHCP servers or routers.
Load = ty.Annotated[int, within(0, 100_000)]
Ratio = ty.Annotated[float, pydantic.Field(gt=0, le=10_000)]
_ParsedMiB = pydantic.AfterValidator(parse_mib)
MiB = ty.Annotated[Count | str, _ParsedMiB]
PositiveMiB = ty.Annotated[Positive | str, _ParsedMiB]
GiB = ty.Annotated[Count | str, pydantic.AfterValidator(parse_gib)]
PageSize = ty.Annotated[str, pydantic.AfterValidator(parse_page)]
HugePageSize = ty.Annotated[str, pydantic.AfterValidator(parse_huge_page)]
CPUSet = ty.Annotated[str | int, pydantic.AfterValidator(
    lambda value: cpu_spec.parse(str(value)))]
Scalar = str | int | float | bool
Text = ty.Annotated[Scalar, pydantic.AfterValidator(parse_text)]
PCIId = ty.Annotated[str, pydantic.Field(pattern='^[0-9a-fA-F]{4}$')]
PCIKind = ty.Literal['VF', 'PF', 'vdpa', 'standard']
#: Those of Nova, but for bare metal, and for accelerators of Cyborg.
NUMAPolicy = ty.Literal['required', 'socket', 'preferred', 'legacy']
Locality = ty.Literal['local', 'partial', 'remote']
DeviceNode = ty.Annotated[str, pydantic.AfterValidator(parse_device_node)]
#: NUMA nodes of a host.
Nodes = tuple[Count, ...]
Names = ty.Annotated[tuple[Name, ...], NOT_EMPTY, ONE_OR_MORE]

#: Mark of keys with one value for all NUMA nodes or a value for each.
PER_NODE = 'per NUMA node'
_T = ty.TypeVar('_T')
PerNode = ty.Annotated[_T | ty.Annotated[tuple[_T, ...], NOT_EMPTY], PER_NODE]

#: Mark of keys of PCI devices that are passed to Nova unchanged.
FOR_NOVA = 'for Nova'

FlavorName = ty.Annotated[Name, NameOf('flavor')]
ImageName = ty.Annotated[Name, NameOf('image')]
NetworkName = ty.Annotated[Name, NameOf('network')]
SecurityGroupName = ty.Annotated[Name, NameOf('security group')]
ServerGroupName = ty.Annotated[Name, NameOf('server group')]
HostName = ty.Annotated[Name, NameOf('host')]
PlaceName = ty.Annotated[str, NameOf('place')]
ServerName = ty.Annotated[str, NameOf('server in this step')]


@functools.cache
def keys_with(kind: type, mark: str) -> list[str]:
    return [key for key, hint in ty.get_type_hints(
        kind, include_extras=True).items() if mark in marks.parts(hint)]
