# SPDX-License-Identifier: Apache-2.0
"""Keep guests on, or away from, the NUMA nodes of a place."""

from collections.abc import Iterator
import dataclasses
import re
import typing as ty

from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit.numa import rule

#: Prefix of the label of a place; the name of the place follows.
PREFIX = 'nfv_'
#: The extra specs; the name of the place follows.
AFFINITY = 'nfv:numa_affinity.'
ANTI_AFFINITY = 'nfv:numa_anti_affinity.'
#: Names of places.
NAME = re.compile('[A-Za-z0-9_-]{1,64}')
#: The place whose label is an option: ``vswitch_label``.
VSWITCH = 'vswitch'

_KEYS = {AFFINITY: False, ANTI_AFFINITY: True}


def label_of(place: str, names: rule.Names) -> str:
    return names.vswitch if place == VSWITCH else f'{PREFIX}{place}'


def place_of(label: str, names: rule.Names) -> str | None:
    """Return the place that a label declares; None if it declares none."""
    if label == names.vswitch:
        return VSWITCH
    place = label.removeprefix(PREFIX)
    if (label_of(place, names) != label or not NAME.fullmatch(place) or
            names.node(label) is not None):
        return None
    return place


def _places(extra_specs) -> Iterator[tuple[str, str, bool, ty.Any]]:
    """Yield (key, place, whether away from it, value), sorted by key."""
    # Sorted, so that the same keys give the same reasons in any flavor.
    for key in sorted(key for key in extra_specs if isinstance(key, str)):
        for prefix, away in _KEYS.items():
            if key.startswith(prefix):
                yield key, key[len(prefix):], away, extra_specs[key]


@dataclasses.dataclass(frozen=True, eq=False)
class PlaceRule(rule.CellsRule):
    """``nfv:numa_affinity.{place}`` and ``nfv:numa_anti_affinity.{place}``.

    A place is something that runs on certain NUMA nodes of a host, such as the
    Ceph OSDs or an NVMe drive.  The host declares it by the label
    ``nfv_{place}``.  A host without the label has no such place: it cannot
    satisfy an affinity, but satisfies every anti-affinity.

    No label excludes host cells, so the claim is kept away from a place by the
    node labels of the other host cells.
    """

    name = 'place'
    filters = ('PlaceNUMAAffinityFilter',)
    order = 40
    keys = tuple(f'{key}PLACE' for key in _KEYS)

    place: str = ''  #: name of the place
    #: anti-affinity: the guest is to run on other host cells
    away: bool = False

    @classmethod
    def from_request(cls, request_parts):
        if faults := cls.faults(request_parts.extra_specs):
            raise rule.RequestError('flavor', '; '.join(map(str, faults)))
        return [
            cls(f'{key}={value}', value == nfv_extra_specs.STRICT, place=place,
                away=away)
            for key, place, away, value in _places(request_parts.extra_specs)]

    @classmethod
    def faults(cls, extra_specs):
        errors: list[nfv_extra_specs.Fault] = []
        seen: dict[str, str] = {}
        for key, place, _away, value in _places(extra_specs):
            if not NAME.fullmatch(place):
                errors.append(nfv_extra_specs.Fault(
                    key,
                    f'{nfv_extra_specs.shown(key)} does not name a place'))
                continue
            if value not in nfv_extra_specs.AFFINITIES:
                errors.append(nfv_extra_specs.Fault(
                    key, f'{key}={nfv_extra_specs.shown(value)} is not one of '
                    f'{", ".join(nfv_extra_specs.AFFINITIES)}'))
                continue
            text = f'{key}={value}'
            if seen.setdefault(place, text) != text:
                errors.append(nfv_extra_specs.Fault(
                    key, f'{text} contradicts {seen[place]}'))
        return errors

    @property
    def noun(self):
        return f'{"without" if self.away else "with"} {self.place}'

    def _declared_cells(self, host, names: rule.Names) -> int:
        return host.labels.get(label_of(self.place, names), 0)

    def label(self, names):
        return None if self.away else label_of(self.place, names)

    def read(self, host, names):
        declared = self._declared_cells(host, names)
        if self.away:
            return host.all_cells & ~declared
        # None refuses the host for a lack of the label, 0 for a lack of cells.
        return declared or None

    def undeclared_reason(self):
        return reasons.Reason(
            self.order, self.text,
            f'a host that declares the place {self.place} needed',
            'no label')

    def node_map_reason(self, node, key, nodes):
        return reasons.Reason(
            self.order, self.text,
            f'host NUMA node {node} {self.noun} needed ({key})',
            f'those are {", ".join(map(str, nodes))}' if nodes else 'none is')

    def floating(self, host, names):
        """Return a degree or reason, as for other rules about host cells."""
        # But hosts that do not declare the place satisfy anti-affinity.
        if self.away and (
                host is None or not self._declared_cells(host, names)):
            return 1.0
        return super().floating(host, names)
