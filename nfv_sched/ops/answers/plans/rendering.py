# SPDX-License-Identifier: Apache-2.0
"""Render moves as shell commands, and reasons and gaps as sentences."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import shlex

from nfv_sched.base import strings
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values

#: Microversions of the compute API from which a destination can be named.
_LIVE, _COLD = '2.30', '2.56'

#: Maximum number of kinds of hosts in the reason of one server.
_LACKS = 3


def commands(moves: Iterable[values.Move]) -> Iterator[str]:
    """Yield the command of the client that begins each move, in order.

    Checks, waiting and confirming are left to ``plan run``.
    """
    for move in moves:
        if move.kind == movable.SHELVE:
            yield _openstack(
                None, 'server', 'shelve', '--offload', '--', move.id)
            continue
        live = move.kind == movable.LIVE
        yield _openstack(
            _LIVE if live else _COLD, 'server', 'migrate',
            *['--live-migration'] * live, '--host', move.destination, '--',
            move.id)


def to_unshelve(uuid: str, name: str) -> str:
    return (f'To start {strings.line(name) or uuid} again: '
            f'openstack server unshelve -- {uuid}')


def vfs_cell(number: int | None) -> int | str:
    return '' if number is None else number


def why(each: document.DrainServer | document.StrandedServer) -> str:
    return (lacking_text(each.lacks) if each.obstacle is None
            else each.obstacle.text)


def lacking_text(lacking: Sequence[document.CapacityLack]) -> str:
    if not lacking:
        return 'there is no other host'
    parts = [_lack_text(each) for each in lacking[:_LACKS]]
    if len(lacking) > _LACKS:
        more = sum(each.hosts for each in lacking[_LACKS:])
        parts.append(f'other causes on {strings.count(more, "host")}')
    return f'no host takes it: {"; ".join(parts)}'


def _lack_text(lack: document.CapacityLack) -> str:
    if lack.kind == refusals.LackKind.GUESTS:
        more_hosts = '' if lack.hosts == 1 else (
            f' and {strings.count(lack.hosts - 1, "other host")}')
        return (f'{lack.nearest}{more_hosts} would, but other servers that '
                'have to move are placed there first')
    what = _lack_cause(lack)
    if lack.why is None:
        return f'{what} on {strings.count(lack.hosts, "host")}'
    # The figures are those of one host.
    nearest = '' if lack.hosts == 1 else (
        f', the nearest of {lack.hosts} hosts')
    return f'{what} on {lack.nearest}{nearest} ({lack.why})'


def _lack_cause(lack: document.CapacityLack) -> str:
    kind = refusals.LackKind(lack.kind)
    return kind.clause.format(' and '.join([
        name.removesuffix('Filter') for name in lack.names])
        if kind is refusals.LackKind.FILTERS else ', '.join(lack.names))


def gap_text(missing: document.UnreadData) -> str:
    kind = gap.GapKind(missing.kind)
    names = (strings.brief(', '.join(missing.names))
             if kind is gap.GapKind.RECORD else strings.some(missing.names))
    return kind.clause.format(
        names=names, of_names=f' of {names}' if names else '')


def disable(host: str, reason: str) -> str:
    return _openstack(
        None, 'compute', 'service', 'set', '--disable', '--disable-reason',
        reason, '--', host, 'nova-compute')


def _openstack(version: str | None, *words: str) -> str:
    of_version = ('--os-compute-api-version', version) if version else ()
    return shlex.join(('openstack', *of_version, *words))
