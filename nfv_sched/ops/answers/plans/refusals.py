# SPDX-License-Identifier: Apache-2.0
"""Find out why a server finds no other host.

Placement and filters are asked about hosts as they are, as in
:mod:`nfv_sched.ops.answers.explain`.
"""

from collections.abc import Mapping
import types
import typing as ty

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model import movable

_NONE: Mapping[str, ty.Any] = types.MappingProxyType({})


class LackKind(movable.WordedKind):
    """Cause that keeps a server off a host."""

    CELL = 'cell', 'another cell'
    GROUP = 'group', 'the server group ({})'
    HINT = 'hint', 'the hint {}'
    PLACEMENT = 'placement', 'Placement'
    FILTERS = 'filters', '{}'
    CLAIM = 'claim', 'the claim on the compute node'
    #: They would be kept less than on the present host.
    POLICIES = 'policies', '{} kept less'
    SIMULATOR = 'simulator', 'refused in the simulator'
    #: In the cloud.
    FAILED = 'failed', 'a move there has just failed'
    #: Others that leave the same host take the capacity.
    GUESTS = 'guests', 'other servers'


class _OnHost(ty.NamedTuple):
    """The cause that keeps a server off one host; higher ranks are nearer."""

    kind: LackKind
    names: tuple[str, ...] = ()
    text: str = ''
    rank: int = 0


class Lacks:
    """The reasons why servers find no host; refusals are cached."""

    def __init__(self, positions: arrangements.Positions):
        self._positions = positions
        self._refusals: dict[arrangements.Guest, arrangements.Refusals] = {}

    def for_server(
        self, uuid: str, excluded_hosts: frozenset[str],
        degrees: Mapping[str, float] = _NONE,
        refused: Mapping[str, str] = _NONE,
        failed: Mapping[str, str] = _NONE,
    ) -> tuple[document.CapacityLack, ...]:
        """Return why a server finds no other host, the commonest first.

        :param excluded_hosts: names of the hosts to which it cannot go anyway
        :param degrees: text of each policy -> least degree to which it must be
            kept
        :param refused: hosts to which a move failed in the simulator -> why
        :param failed: hosts to which a move failed in the cloud -> why
        """
        alike: dict[tuple, list[tuple[int, str, str]]] = {}
        for name in self._positions.hosts:
            if name in excluded_hosts:
                continue
            if name in failed:
                on_host = _OnHost(LackKind.FAILED, text=failed[name])
            elif name in refused:
                on_host = _OnHost(LackKind.SIMULATOR, text=refused[name])
            else:
                on_host = self._cause_on_host(uuid, name, degrees)
            kind, names, text, rank = on_host
            alike.setdefault((kind, names), []).append((rank, name, text))
        lacks = []
        for (kind, names), hosts in alike.items():
            # Of equally near hosts, max() takes the first.
            _rank, host, text = max(hosts, key=lambda each: each[0])
            lacks.append(document.CapacityLack(
                kind=kind, names=names, hosts=len(hosts), nearest=host,
                nearest_id=self._positions.host_id(host), why=text or None))
        return tuple(sorted(lacks, key=lambda lack: -lack.hosts))

    def _cause_on_host(self, uuid: str, name: str,
                       degrees: Mapping[str, float]) -> _OnHost:
        positions = self._positions
        if not positions.in_cell(uuid, name):
            return _OnHost(LackKind.CELL)
        # Hints and groups come first: no free capacity on the host helps.
        hint = positions.broken_hint(arrangements.AS_IS, uuid, name)
        if hint is not None:
            return _OnHost(LackKind.HINT, (hint,))
        if not positions.together(arrangements.AS_IS, uuid, name, soft=False):
            return _OnHost(LackKind.GROUP, (positions.policy(uuid) or '',))
        guest = positions.guest(uuid)
        refusal = self._refusal(guest, name)
        if refusal is not None:
            return refusal
        position = positions.position(name)
        if positions.put(position, guest, uuid) is None:
            return _OnHost(LackKind.CLAIM)
        if degrees and positions.put(position, guest, uuid, degrees) is None:
            return _OnHost(LackKind.POLICIES, tuple(degrees))
        return _OnHost(LackKind.GUESTS)

    def _refusal(self, guest: arrangements.Guest, name: str) -> _OnHost | None:
        refusals = self._refusals.get(guest)
        if refusals is None:
            refusals = self._refusals[guest] = self._positions.refusals(guest)
        answer = refusals.placement
        lacks = answer.lacks.get(name)
        if lacks:
            return _OnHost(
                LackKind.PLACEMENT,
                tuple([each.need.text for each in lacks if each.need]),
                ', '.join([each.text for each in lacks]),
                answer.free.get(name, 0))
        refused = [hosts[name] for hosts in refusals.filters.values()
                   if name in hosts]
        if not refused:
            return None
        # Several filters give the same reason for NUMA nodes.
        sentences = dict.fromkeys(
            f'{each.key}: {each.why}' if each.key else each.why
            for each in refused if each.why)
        return _OnHost(
            LackKind.FILTERS, tuple([each.filter for each in refused]),
            '; '.join(sentences), max(each.rank for each in refused))
