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
"""Why a server of a host finds no other place."""

import collections
from collections.abc import Iterator
from collections.abc import Mapping
import types

from nfv_sched.advice import binding as bindings
from nfv_sched.advice import capacity
from nfv_sched.advice.plans import positions
from nfv_sched import text

_AS_IS = positions.Arrangement()
_NO_DEGREES: Mapping[str, float] = types.MappingProxyType({})
_NONE_REFUSED: Mapping[str, str] = types.MappingProxyType({})
_OTHERS = 'room that others from there take'
_REFUSED = 'refused in the simulator'
#: Kinds that are told at most.
_TOLD = 3


class Lacks:
    """Tells why servers find no place; what hosts lack is worked out once.

    :param known: the cloud
    """

    def __init__(self, known: positions.Positions):
        self._known = known
        self._counted: dict[
            positions.Guest, Mapping[str, capacity.HostCapacity]] = {}

    def of(self, uuid: str, gone: frozenset[str],
           degrees: Mapping[str, float] = _NO_DEGREES,
           refused: Mapping[str, str] = _NONE_REFUSED) -> str:
        """Why a server finds no other place; the most usual cause first.

        :param uuid: UUID of the server
        :param gone: names of the hosts to which it cannot go anyway
        :param degrees: how far each policy must be kept at least
        :param refused: names of the hosts to which a move failed in the
            simulator -> why
        """
        kinds: collections.Counter[str] = collections.Counter()
        examples: dict[str, str] = {}
        for name in self._known.hosts:
            if name in gone:
                continue
            kind, example = (
                (_REFUSED, refused[name]) if name in refused else
                self._on(uuid, name, degrees))
            kinds[kind] += 1
            examples.setdefault(kind, example)
        if not kinds:
            return 'there is no other host'
        parts = list(self._parts(kinds, examples))
        return 'no host has room: ' + '; '.join(parts)

    def _parts(self, kinds: collections.Counter[str],
               examples: Mapping[str, str]) -> Iterator[str]:
        for kind, count in kinds.most_common(_TOLD):
            example = f' ({examples[kind]})' if examples[kind] else ''
            yield f'{kind}{example} on {text.count(count, "host")}'
        if len(kinds) > _TOLD:
            more = sum(kinds.values()) - sum(
                count for _kind, count in kinds.most_common(_TOLD))
            yield f'other causes on {text.count(more, "host")}'

    def _on(self, uuid: str, name: str,
            degrees: Mapping[str, float]) -> tuple[str, str]:
        """Why a host does not take it: kind, and an example or nothing."""
        known = self._known
        server = known.servers[uuid]
        source = known.of_name.get(server.host or '')
        if source is not None and known.of_name[name].cell != source.cell:
            return 'another cell', ''
        if not known.together(_AS_IS, uuid, name, soft=False):
            return f'the server group ({known.policy(uuid)})', ''
        guest = known.guest(uuid)
        bound = self._bound(guest, name)
        if bound is not None:
            return bound
        if degrees and known.put(known.position(name), guest, uuid,
                                 degrees) is None:
            return 'policies kept less', ''
        return _OTHERS, ''

    def _bound(self, guest: positions.Guest,
               name: str) -> tuple[str, str] | None:
        """What binds on a host as it is; None if it takes the guest."""
        counted = self._counted.get(guest)
        if counted is None:
            counted = self._counted[guest] = guest.counted.count(
                list(self._known.hosts.values()))
        host = counted[name]
        if host.fits > 0:
            return None
        if not host.binding:
            return bindings.SEVERAL, ''
        first = host.binding[0]
        return first.kind, first.text
