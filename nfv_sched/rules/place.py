#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Guests on, or away from, the NUMA nodes of a place that hosts declare."""

import dataclasses
import re

from nfv_sched import policy as nfv_policy
from nfv_sched import reasons
from nfv_sched.rules import base

_PREFIX = 'nfv_'
_VSWITCH = 'vswitch'
_NAME = re.compile(r'[A-Za-z0-9_-]{1,64}')
_KEYS = {nfv_policy.NUMA_AFFINITY: False, nfv_policy.NUMA_ANTI_AFFINITY: True}


@dataclasses.dataclass(frozen=True, eq=False)
class PlaceRule(base.CellsRule):
    """``nfv:numa_affinity.{place}`` and ``nfv:numa_anti_affinity.{place}``.

    A host declares a place by the label ``nfv_{place}``, as it declares its
    virtual switch.  A host that does not has no such place: it cannot keep an
    affinity, and keeps every anti-affinity.

    No label says "not here", so the claim is kept away from a place by the
    labels of the other nodes.

    :ivar place: its name
    :ivar away: whether the guest is to be elsewhere
    """

    name = 'place'
    filters = ('PlaceNUMAAffinityFilter',)
    order = reasons.PLACE
    keys = tuple(f'{key}PLACE' for key in _KEYS)

    place: str = ''
    away: bool = False

    @classmethod
    def of(cls, asked):
        """One for each key of the flavor."""
        rules, seen = [], {}
        for key in sorted(
                key for key in asked.extra_specs
                if isinstance(key, str) and key.startswith(tuple(_KEYS))):
            prefix, _point, place = key.partition('.')
            value = asked.extra_specs[key]
            if not _NAME.fullmatch(place):
                raise base.RequestError('flavor', (
                    f'{nfv_policy.shown(key)} does not name a place'))
            if value not in nfv_policy.AFFINITIES:
                raise base.RequestError('flavor', (
                    f'{key}={nfv_policy.shown(value)} is not one of '
                    f'{", ".join(nfv_policy.AFFINITIES)}'))
            text = f'{key}={value}'
            if seen.setdefault(place, text) != text:
                raise base.RequestError(
                    'flavor', f'{text} contradicts {seen[place]}')
            rules.append(cls(
                text, value == nfv_policy.STRICT, place=place,
                away=_KEYS[f'{prefix}.']))
        return rules

    @property
    def noun(self):
        """See :meth:`nfv_sched.rules.base.CellsRule.noun`."""
        return f'{"without" if self.away else "with"} {self.place}'

    def _declared(self, host, names: base.Names) -> int:
        """Host cells of the place, as a bitmask."""
        label = (names.vswitch if self.place == _VSWITCH
                 else f'{_PREFIX}{self.place}')
        return host.labels.get(label, 0)

    def label(self, names):
        """The label of the place, unless the guest is to be elsewhere."""
        if self.away:
            return None
        return (names.vswitch if self.place == _VSWITCH
                else f'{_PREFIX}{self.place}')

    def read(self, host, names):
        """The host cells of the place, or all others."""
        declared = self._declared(host, names)
        if self.away:
            return host.all_cells & ~declared
        return declared or None

    def undeclared(self):
        """See :meth:`nfv_sched.rules.base.CellsRule.undeclared`."""
        return reasons.Reason(
            self.order, self.text,
            f'a host that declares the place {self.place} needed',
            'no label')

    def apart(self, node, key, nodes):
        """See :meth:`nfv_sched.rules.base.CellsRule.apart`."""
        return reasons.Reason(
            self.order, self.text,
            f'host NUMA node {node} {self.noun} needed ({key})',
            f'those are {", ".join(map(str, nodes))}' if nodes else 'none is')

    def floating(self, host, names):
        """Kept on one node, and away from what the host has nowhere."""
        if self.away and (host is None or not self._declared(host, names)):
            return 1.0
        return super().floating(host, names)
