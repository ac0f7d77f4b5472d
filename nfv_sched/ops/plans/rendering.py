# SPDX-License-Identifier: Apache-2.0
"""Render moves as shell commands, and reasons and gaps as sentences."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import shlex
import typing as ty

from nfv_sched.ops.cloud import planning
from nfv_sched.ops.execution import values
from nfv_sched.ops.plans import gap
from nfv_sched.ops.plans import movable
from nfv_sched.ops.plans import refusals
from nfv_sched.ops.plans import trial
from nfv_sched import strings

#: Microversions of the compute API from which a destination can be named.
_LIVE, _COLD = '2.30', '2.56'

#: Maximum number of kinds of hosts in the reason of one server.
_LACKS = 3

#: Status of a server while it moves, and until a cold migration is confirmed.
_MOVING, _TO_CONFIRM = 'MIGRATING', 'VERIFY_RESIZE'

_STRICT = 'set -eu'

# Check what "plan run" does before the first move, and before each.  The
# client prints the columns of a server in alphabetical order, those of a list
# in its own.
_BEFORE = planning.STOP + """\
# planned SERVER SOURCE STATE...: stop unless the server is idle on SOURCE, not
# locked, and its vm_state is one of STATE
planned() {
    server=$1 source=$2
    shift 2
    now=$(openstack --os-compute-api-version 2.59 server show -f value \\
        -c OS-EXT-SRV-ATTR:host -c OS-EXT-STS:task_state \\
        -c OS-EXT-STS:vm_state -c locked -- "$server")
    now=$(printf '%s' "$now" | tr '\\n' ' ')
    for state in "$@"; do
        if [ "$now" = "$source None $state False" ]; then
            return 0
        fi
    done
    stop "server $server is not idle on $source, not locked and $*;" \\
        "its host, task, state and lock: $now"
}
# up HOST, enabled HOST: stop unless nova-compute on HOST is up; and enabled
services=$(openstack compute service list --service nova-compute -f value \\
    -c Host -c Status -c State)
is() { printf '%s\\n' "$services" | grep -Fqx -e "$1"; }
up() {
    is "$1 enabled up" || is "$1 disabled up" ||
        stop "nova-compute on $1 is not up"
}
enabled() {
    up "$1"
    is "$1 enabled up" || stop "$1 is disabled"
}
"""

# Check the migration and the host after each move: python-openstackclient
# reports success for a migration that failed late, as the server is active
# then, too.
_HEAD = """\
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
            stop "server $1 is still busy"
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
    stop "server $1 is $status on $host, to be on $2;" \\
        "its last migration is $migration"
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
            stop "server $1 is still busy"
        fi
        sleep 5
    done
    if [ "$status/$host" != SHELVED_OFFLOADED/None ]; then
        stop "server $1 is $status on $host, to be shelved"
    fi
}
"""


def commands(moves: Collection[trial.ServerMove],
             before: Sequence[str] = ()) -> Iterator[str]:
    """Yield a script that makes moves, in order, and stops at a failure.

    It changes nothing if a server or a host is not as planned, and looks again
    at each server before its move.  Each move is over, and its server on its
    host, before the next begins.  The script pauses before a move to a host
    that an earlier one has left, and longer before a move that depends on
    where a live-migrated server is.

    Servers are shelved at the end.  The last lines print how to start them
    again, and how to check strict policies, for which the script has no data.

    :param moves: live and cold migrations, and servers to shelve
    :param before: lines of the script before the moves
    :returns: lines for a shell; comments begin with ``#``
    """
    shelved = [move for move in moves if move.kind == movable.SHELVE]
    if moves or before:
        yield _STRICT
    if moves:
        yield from _BEFORE.splitlines()
        yield from _HEAD.splitlines()
    if shelved:
        yield from _SHELVE_HEAD.splitlines()
    yield from _checks(moves)
    yield from before
    sources: set[str] = set()
    migrated: set[str] = set()
    for move in moves:
        if move.kind == movable.SHELVE:
            yield comment(f'{move.name}: shelving on {move.source}')
            yield _check_command(move)
            yield ('timeout 3600 ' + _openstack(
                None, 'server', 'shelve', '--offload', '--', move.uuid)
                + ' || :')
            yield shlex.join(('left', move.uuid, move.source))
            continue
        if not migrated.isdisjoint(move.related):
            yield comment('until nova-scheduler knows where the servers are '
                          f'that {move.name} is to be with or apart from')
            yield f'sleep {values.SYNCED_SECONDS}'
            migrated.clear()
            sources.clear()
        if move.destination in sources:
            yield comment(f'until Nova has freed the capacity on '
                          f'{move.destination}')
            yield f'sleep {values.FREED_SECONDS}'
            sources.clear()
        sources.add(move.source)
        yield comment(f'{move.name}: {move.kind} migration from ' + values.how(
            f'{move.source} to {move.destination}', move.vfs_detached))
        yield _check_command(move)
        to_host = ('--host', move.destination, '--', move.uuid)
        if move.kind == movable.LIVE:
            migrated.add(move.uuid)
            yield _openstack(
                _LIVE, 'server', 'migrate', '--live-migration', *to_host)
            yield _wait_command(move, _MOVING)
        else:
            yield _openstack(_COLD, 'server', 'migrate', *to_host)
            yield _wait_command(move, _MOVING)
            yield _openstack(
                _COLD, 'server', 'migration', 'confirm', '--', move.uuid)
            yield _wait_command(move, _TO_CONFIRM)
    for move in shelved:
        yield shlex.join(('printf', '%s\\n', to_unshelve(
            move.uuid, move.name)))
    destinations = _names(move.destination for move in moves)
    if destinations:
        yield shlex.join(('printf', '%s\\n', (
            'To check strict policies, with access to the databases of Nova: '
            + shlex.join(('nfv-sched', 'cloud', 'audit', '--kind',
                          'policy-not-kept', *[
                              f'--host={name}' for name in destinations])))))


def _checks(moves: Collection[trial.ServerMove]) -> Iterator[str]:
    """Yield commands that stop unless the cloud is as planned."""
    destinations = _names(move.destination for move in moves)
    if moves:
        yield comment('change nothing unless all is as planned')
    for name in destinations:
        yield shlex.join(('enabled', name))
    for name in _names(move.source for move in moves):
        if name not in destinations:
            yield shlex.join(('up', name))
    checked: set[str] = set()
    for move in moves:
        # A later move of the same server begins where this one ends.
        if move.uuid not in checked:
            checked.add(move.uuid)
            yield _check_command(move)


def _names(names: Iterable[str]) -> list[str]:
    return list(filter(None, dict.fromkeys(names)))


def _check_command(move: trial.ServerMove) -> str:
    """Return the command that stops if a server is not as planned."""
    return shlex.join(('planned', move.uuid, move.source,
                       *values.STATES[move.kind]))


def to_unshelve(uuid: str, name: str) -> str:
    """Return a sentence with the command that starts a shelved server."""
    return (f'To start {strings.line(name) or uuid} again: '
            f'openstack server unshelve -- {uuid}')


def _wait_command(move: trial.ServerMove, status: str) -> str:
    """Return the command that ends when a move is over."""
    return shlex.join(('arrived', move.uuid, move.destination, status))


def vfs_cell(number: int | None) -> int | str:
    """Return a number of detached VFs, for programs."""
    return '' if number is None else number


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
    return f'no host takes it: {"; ".join(parts)}'


def _lack_text(lack: refusals.Lack) -> str:
    if lack.kind is refusals.LackKind.GUESTS:
        more_hosts = '' if lack.hosts == 1 else (
            f' and {strings.count(lack.hosts - 1, "other host")}')
        return (f'{lack.host}{more_hosts} would, but other servers that have '
                'to move are placed there first')
    what = _lack_cause(lack)
    if not lack.text:
        return f'{what} on {strings.count(lack.hosts, "host")}'
    # The figures are those of one host.
    nearest = '' if lack.hosts == 1 else (
        f', the nearest of {lack.hosts} hosts')
    return f'{what} on {lack.host}{nearest} ({lack.text})'


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
            return ' and '.join([
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
            return 'other servers'
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
