# SPDX-License-Identifier: Apache-2.0
"""Compare the nova.conf of a running host with its profile."""

from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from nfv_sched import cpu_spec
from nfv_sched.nova import compute_settings
from nfv_sched.numa import rule
from nfv_sched.ops.profile import choices
from nfv_sched.ops.profile import profile
from nfv_sched.rules import place

#: In place of a value.
NOT_SET = 'not set'
#: CPU allocation ratios that differ by less count as equal.
_CLOSE = 1e-4


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """An option whose value differs from the profile.

    :ivar option: its name, with its section
    :ivar has: the current value
    :ivar wants: the value of the profile
    """

    option: str
    has: str
    wants: str


def page_size(size: int) -> str:
    """Return a page size in KiB in the form of nova.conf."""
    name = choices.PAGE_NAMES.get(size)
    return str(size) if name is None else f'{name}B'


def ratio(number: float) -> str:
    """Return a CPU allocation ratio without trailing zeros."""
    return f'{number:.6f}'.rstrip('0').rstrip('.')


def reserved_pages(pages: Mapping[tuple[int, int], int]) -> list[str]:
    """Return ``reserved_huge_pages`` for pages by (NUMA node, KiB)."""
    return [f'node:{node},size:{page_size(size)},count:{count}'
            for (node, size), count in sorted(pages.items()) if count]


def differences(has: compute_settings.Settings,
                wants: compute_settings.Settings,
                vswitch_label: str,
                node_label_prefix: str) -> Iterator[Difference]:
    """Yield the options of a nova.conf that differ from the profile.

    Additional physical networks are not the profile's business; additional
    labels are.

    :param has: settings of the nova.conf
    :param wants: settings of the profile
    :param vswitch_label: label of NUMA nodes with the virtual switch
    :param node_label_prefix: prefix of the labels of single NUMA nodes
    """
    if has.pin_set:
        yield Difference('vcpu_pin_set', has.pin_set, NOT_SET)
    for name, one, other in (
        ('[compute] cpu_shared_set', has.shared, wants.shared),
        ('[compute] cpu_dedicated_set', has.dedicated, wants.dedicated),
    ):
        if one != other:
            yield Difference(name, cpu_spec.to_text(one) or NOT_SET,
                             cpu_spec.to_text(other) or NOT_SET)
    if has.reserved_memory != wants.reserved_memory:
        yield Difference('reserved_host_memory_mb', str(has.reserved_memory),
                         str(wants.reserved_memory))
    one, other = map(reserved_pages, (
        has.reserved_pages, wants.reserved_pages))
    if one != other:
        yield Difference('reserved_huge_pages', '; '.join(one) or NOT_SET,
                         '; '.join(other) or NOT_SET)
    if wants.cpu_ratio is not None and (
            has.cpu_ratio is None
            or abs(has.cpu_ratio - wants.cpu_ratio) > _CLOSE):
        yield Difference(
            'cpu_allocation_ratio',
            NOT_SET if has.cpu_ratio is None else ratio(has.cpu_ratio),
            ratio(wants.cpu_ratio))
    names = rule.Names(vswitch_label, node_label_prefix)
    labels = (names.vswitch, place.label_of(profile.OSD, names))
    for name in sorted({*has.physnets, *wants.physnets}):
        ours = name in labels or names.node(name) is not None
        one, other = has.physnets.get(name), wants.physnets.get(name)
        if one != other and (other is not None or ours):
            yield Difference(
                f'[neutron_physnet_{name}] numa_nodes', _nodes(one),
                _nodes(other))


def _nodes(nodes: frozenset[int] | None) -> str:
    if nodes is None:
        return 'not in [neutron] physnets'
    return ','.join(map(str, sorted(nodes))) or NOT_SET
