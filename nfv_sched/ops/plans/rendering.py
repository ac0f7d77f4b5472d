# SPDX-License-Identifier: Apache-2.0
"""Render moves as shell commands, and reasons and gaps as sentences."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import shlex
import typing as ty

from nfv_sched.ops.plans import gap
from nfv_sched.ops.plans import movable
from nfv_sched.ops.plans import refusals
from nfv_sched.ops.plans import trial
from nfv_sched import strings

#: Microversions of the compute API from which a destination can be named.
_LIVE, _COLD = '2.30', '2.56'

# Seconds in which Nova frees the resources of a server on its old host: the
# last step of a move, after the server is shown active on the new one.
_PAUSE = 5

# Seconds until nova-scheduler knows of all moves: after a live migration it
# still has the server on the source, until both hosts send the list of their
# servers, each scheduler_instance_sync_interval (120 by default).
_SYNC = 130

#: Maximum number of kinds of hosts in the reason of one server.
_LACKS = 3

#: Status of a server while it moves, and until a cold migration is confirmed.
_MOVING, _TO_CONFIRM = 'MIGRATING', 'VERIFY_RESIZE'

# Check the migration and the host after each move: python-openstackclient
# reports success for a migration that failed late, as the server is active
# then, too.
_HEAD = """\
set -eu
show() { openstack server show -f value -c "$2" -- "$1"; }
# migration SERVER: print the status of its last migration
migration() {
    openstack --os-compute-api-version 2.59 server migration list \\
        --server "$1" --limit 1 -f value -c Status
}
# moving SERVER: whether its last migration is in progress, or not known
moving() {
    case $(migration "$1") in
        completed|done|finished|confirmed) return 1 ;;
        cancelled|error|failed|reverted) return 1 ;;
    esac
}
# arrived SERVER HOST STATUS: wait, an hour at most, while Nova is busy with
# the server or its status is STATUS; stop unless its last migration is over
# without an error and it is on HOST then
arrived() {
    end=$(($(date +%s) + 3600))
    while [ "$(show "$1" OS-EXT-STS:task_state)" != None ] ||
            [ "$(show "$1" status)" = "$3" ] || moving "$1"; do
        if [ "$(date +%s)" -ge "$end" ]; then
            echo "stopped: server $1 is still busy" >&2
            exit 1
        fi
        sleep 5
    done
    host=$(show "$1" OS-EXT-SRV-ATTR:host)
    status=$(show "$1" status)
    migration=$(migration "$1")
    case $host/$status/$migration in
        "$2"/ERROR/*) ;;
        "$2"/*/completed|"$2"/*/done) return 0 ;;
        "$2"/*/finished|"$2"/*/confirmed) return 0 ;;
    esac
    echo "stopped: server $1 is $status on $host, to be on $2;" \\
        "its last migration is $migration" >&2
    exit 1
}
"""

# The client waits until the server is shelved, or forever, and cannot offload
# one that is shelved already.
_SHELVE_HEAD = """\
# left SERVER HOST: wait, an hour at most, while Nova is busy with a shelved
# server; stop unless it has left HOST then
left() {
    end=$(($(date +%s) + 3600))
    while task=$(show "$1" OS-EXT-STS:task_state)
            status=$(show "$1" status)
            host=$(show "$1" OS-EXT-SRV-ATTR:host)
            [ "$task" != None ] ||
            [ "$status/$host" = "SHELVED_OFFLOADED/$2" ]; do
        if [ "$(date +%s)" -ge "$end" ]; then
            echo "stopped: server $1 is still busy" >&2
            exit 1
        fi
        sleep 5
    done
    if [ "$status/$host" != SHELVED_OFFLOADED/None ]; then
        echo "stopped: server $1 is $status on $host, to be shelved" >&2
        exit 1
    fi
}
"""


def commands(moves: Collection[trial.ServerMove],
             before: Sequence[str] = ()) -> Iterator[str]:
    """Yield a script that makes moves, in order, and stops at a failure.

    Each move is over, and its server on its host, before the next begins.  The
    script pauses before a move to a host that an earlier one has left, and
    longer before a move that depends on where a live-migrated server is.

    Servers are shelved at the end, and the last lines print how to start them
    again.

    :param moves: live and cold migrations, and servers to shelve
    :param before: lines of the script before the moves
    :returns: lines for a shell; comments begin with ``#``
    """
    shelved = [move for move in moves if move.kind == movable.SHELVE]
    if moves or before:
        yield from _HEAD.splitlines() if moves else ['set -eu']
    if shelved:
        yield from _SHELVE_HEAD.splitlines()
    yield from before
    sources: set[str] = set()
    migrated: set[str] = set()
    for move in moves:
        if move.kind == movable.SHELVE:
            yield comment(f'{move.name}: shelving on {move.source}')
            yield ('timeout 3600 ' + _openstack(
                None, 'server', 'shelve', '--offload', '--', move.uuid)
                + ' || :')
            yield shlex.join(('left', move.uuid, move.source))
            continue
        if not migrated.isdisjoint(move.related):
            yield comment('until nova-scheduler knows where the servers are '
                          f'that {move.name} is to be with or apart from')
            yield f'sleep {_SYNC}'
            migrated.clear()
            sources.clear()
        if move.destination in sources:
            yield comment(f'until Nova has given back the room on '
                          f'{move.destination}')
            yield f'sleep {_PAUSE}'
            sources.clear()
        sources.add(move.source)
        yield comment(f'{move.name}: {move.kind} migration from '
                      f'{move.source} to {move.destination}')
        to_host = ('--host', move.destination, '--', move.uuid)
        if move.kind == movable.LIVE:
            migrated.add(move.uuid)
            yield _openstack(
                _LIVE, 'server', 'migrate', '--live-migration', *to_host)
            yield _arrived(move, _MOVING)
        else:
            yield _openstack(_COLD, 'server', 'migrate', *to_host)
            yield _arrived(move, _MOVING)
            yield _openstack(
                _COLD, 'server', 'migration', 'confirm', '--', move.uuid)
            yield _arrived(move, _TO_CONFIRM)
    for move in shelved:
        yield shlex.join(('printf', '%s\\n', to_unshelve(
            move.uuid, move.name)))


def to_unshelve(uuid: str, name: str) -> str:
    """Return a sentence with the command that starts a shelved server."""
    return (f'To start {strings.line(name) or uuid} again: '
            f'openstack server unshelve -- {uuid}')


def _arrived(move: trial.ServerMove, status: str) -> str:
    """Return the command that ends when a move is over."""
    return shlex.join(('arrived', move.uuid, move.destination, status))


def lacking_text(lacking: Sequence[refusals.Lack]) -> str:
    """Return the reasons why hosts do not take a server, as a clause.

    :param lacking: one for each kind of hosts
    """
    if not lacking:
        return 'there is no other host'
    parts = [_lack_text(each) for each in lacking[:_LACKS]]
    if len(lacking) > _LACKS:
        more = sum(each.hosts for each in lacking[_LACKS:])
        parts.append(f'other causes on {strings.count(more, "host")}')
    return f'no host has room: {"; ".join(parts)}'


def _lack_text(lack: refusals.Lack) -> str:
    what = _lack_cause(lack)
    if not lack.text:
        return f'{what} on {strings.count(lack.hosts, "host")}'
    # The figures are those of one host.
    nearest = '' if lack.hosts == 1 else (
        f', the nearest of {lack.hosts} hosts')
    return f'{what}: {lack.text} on {lack.host}{nearest}'


def _lack_cause(lack: refusals.Lack) -> str:
    names = ', '.join(lack.names)
    match lack.kind:
        case refusals.LackKind.CELL:
            return 'another cell'
        case refusals.LackKind.GROUP:
            return f'the server group ({names})'
        case refusals.LackKind.HINT:
            return f'the hint {names}'
        case refusals.LackKind.PLACEMENT:
            return 'Placement'
        case refusals.LackKind.FILTERS:
            return ', '.join([
                name.removesuffix('Filter') for name in lack.names])
        case refusals.LackKind.CLAIM:
            return 'the claim on the compute node'
        case refusals.LackKind.POLICIES:
            return f'{names} kept less'
        case refusals.LackKind.SIMULATOR:
            return 'refused in the simulator'
        case refusals.LackKind.FAILED:
            return 'a move there has just failed'
        case refusals.LackKind.GUESTS:
            return 'room that others from there take'
    ty.assert_never(lack.kind)


def gap_text(missing: gap.Gap) -> str:
    """Return a sentence on data that was not read."""
    names = strings.some(missing.names)
    of_names = f' of {names}' if names else ''
    match missing.kind:
        case gap.GapKind.NEUTRON:
            return ('Neutron was not read: ports of hosts, security group '
                    'rules and resource requests of ports are not counted.')
        case gap.GapKind.PLACEMENT:
            return (f'Resource providers in Placement{of_names} were not '
                    'read: inventories and traits are not known.')
        case gap.GapKind.CELL:
            return (f'Cells were not read: {names}. Their hosts and servers '
                    'are not known.')
        case gap.GapKind.FLAVORS:
            return 'Flavors were not read.'
        case gap.GapKind.MIGRATIONS:
            return ('Migrations were not read: what they hold on hosts is not '
                    'known.')
        case gap.GapKind.PORTS:
            return (f'Ports{of_names} were not read: their networks and PCI '
                    'devices are not counted.')
        case gap.GapKind.PORT_RESOURCES:
            return (f'Resource requests of ports{of_names}, such as a minimum '
                    'bandwidth, are not counted.')
        case gap.GapKind.RECORD:
            return f'Not read: {strings.brief(", ".join(missing.names))}.'
    ty.assert_never(missing.kind)


def gap_comments(missing: Iterable[gap.Gap]) -> Iterator[str]:
    """Return comments for a shell on data that was not read."""
    for each in missing:
        yield comment(f'may be wrong: {gap_text(each)}')


def comment(message: str) -> str:
    """Return a comment for a shell, in one line."""
    return f'# {" ".join(message.split())}'


def disable(host: str, reason: str) -> str:
    """Return the command that keeps new servers off a host."""
    return _openstack(
        None, 'compute', 'service', 'set', '--disable', '--disable-reason',
        reason, '--', host, 'nova-compute')


def _openstack(version: str | None, *words: str) -> str:
    of_version = ('--os-compute-api-version', version) if version else ()
    return shlex.join(('openstack', *of_version, *words))
