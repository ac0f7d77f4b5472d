# SPDX-License-Identifier: Apache-2.0
"""Make one move of a plan by the APIs of Nova and Neutron.

A move is a generator: it yields whenever the cloud needs time, with a text if
an API gives no answer, and is to be continued after a pause.  It ends when the
move is over, and raises :class:`MoveError` if it failed.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from collections.abc import Mapping
import shlex
import time
import typing as ty

from keystoneauth1 import exceptions as ks_exceptions
from openstack import connection as sdk_connection
from openstack import exceptions as sdk_exceptions

from nfv_sched.base import http_limits
from nfv_sched.base import strings
from nfv_sched.ops.run import values

#: Seconds in which a request that got no answer may still take effect.
GRACE = 60.0

# Has all that is used: hosts of migrations (2.30, 2.56), UUIDs of services
# (2.53) and of migrations (2.59).  Rocky.
_MICROVERSION = '2.61'
# Tells what went wrong in an action.  Ussuri.
_DETAILS = '2.84'
#: Seconds in which the events of a failed migration should end.
EVENTS_END = 30
_NO_REASON = 'Nova gives no reason'
# Number of migrations of a server that are read, the newest first.
_MIGRATIONS = 50

_ACTIONS = {'live': 'os-migrateLive', 'cold': 'migrate',
            'evacuate': 'evacuate'}
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    'live': {'block_migration': 'auto'}, 'cold': {}, 'evacuate': {}}
_TYPES = {'live': 'live-migration', 'cold': 'migration',
          'evacuate': 'evacuation'}
_SHELVE, _OFFLOAD = 'shelve', 'shelveOffload'
_ACTION_NAMES = {'live': ('live-migration',), 'cold': ('migrate',),
                 'evacuate': ('evacuate',), 'shelve': (_SHELVE, _OFFLOAD)}
#: Status of a migration record when the move is over.
_OVER = {'live': ('completed', 'done'), 'cold': ('confirmed',),
         'evacuate': ('completed', 'done')}
_FAILED = ('cancelled', 'error', 'failed', 'reverted')
_TO_CONFIRM, _UNCONFIRMED = 'finished', 'VERIFY_RESIZE'
# A shelved server is on its host until it is offloaded.
_SHELVED, _OFFLOADED = 'SHELVED', 'SHELVED_OFFLOADED'
# What an agent serves: its path, and the key of its UUID in a request.
_SERVED = {'dhcp': ('dhcp-networks', 'networks', 'network_id'),
           'router': ('l3-routers', 'routers', 'router_id')}

# Key of an answer -> the fields of it, or of each row, that are used.
_TEXT_OR_NONE = (str, type(None))
_FIELDS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    'services': {'host': str, 'id': str, 'status': str, 'state': str},
    'server': {'id': str, 'name': str, 'status': str, 'locked': bool,
               'OS-EXT-STS:task_state': _TEXT_OR_NONE,
               'OS-EXT-STS:vm_state': str},
    'servers': {'id': str, 'name': str},
    'migrations': {'uuid': str, 'status': str, 'dest_compute': _TEXT_OR_NONE,
                   'migration_type': _TEXT_OR_NONE},
    'instanceActions': {'action': str, 'request_id': str},
    'instanceAction': {'events': list},
    'events': {'finish_time': _TEXT_OR_NONE, 'result': _TEXT_OR_NONE},
    'agent': {'alive': bool, 'admin_state_up': bool},
    'networks': {'id': str}, 'routers': {'id': str}}
# Others are one object.
_LISTS = ('services', 'servers', 'migrations', 'instanceActions', 'events',
          'networks', 'routers')
_HOST = 'OS-EXT-SRV-ATTR:host'

_UNANSWERED = (*http_limits.MALFORMED, ks_exceptions.ClientException,
               sdk_exceptions.SDKException, OSError)
# Too early, too many requests: the same request may succeed later.
_LATER = (408, 425, 429)

_T = ty.TypeVar('_T')
_Connection = sdk_connection.Connection


class MoveError(Exception):
    """A move that cannot be made, or has failed; the message says why."""


class FailedMoveError(MoveError):
    """A move that Nova has begun, and that has failed."""


class NoAnswerError(Exception):
    """An API that gave no usable answer: whether it acted is not known."""


class RefusedRequestError(MoveError):
    """A request that an API has refused, with its HTTP status."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


class UnfinishedMoveError(MoveError):
    """A move that is half made, and that the next run has to go on with."""


# What a move has come to before the run was interrupted: "asked" with the UUID
# of the newest migration before, or "moving" with the UUID of its migration;
# and for how many seconds.  For shelving, of which there is no migration, with
# the IDs of requests.
Progress = tuple[ty.Literal['asked', 'moving'], str | None, float]
Record = Callable[[ty.Literal['asked', 'moving'], str | None], None]
_Steps = Generator[str, None, _T]


def make(connection: _Connection, move: values.Move,
         progress: Progress | None, record: Record) -> Iterator[str]:
    """Make a move, or go on with it.

    :param progress: what it had come to; None if it has not begun
    :param record: called before each request that cannot be repeated, and
        when the migration is known
    """
    return (_migrate if move.is_of_server else _reassign)(
        connection, move, progress, record)


def problems(connection: _Connection, moves: Iterable[values.Move],
             enabled_hosts: Collection[str] = ()) -> Iterator[str]:
    """Yield why moves that have not begun cannot be made.

    :param enabled_hosts: names of other hosts that must be enabled and up
    :raises NoAnswerError: if an API does not answer
    """
    moves = list(moves)
    of_servers = [move for move in moves if move.is_of_server]
    if of_servers or enabled_hosts:
        services = compute_services(connection)
        for host in dict.fromkeys((*enabled_hosts, *[
                move.destination for move in of_servers
                if not move.is_shelving])):
            if services.get(host, {}).get('status') != 'enabled':
                yield f'{host} is not an enabled compute host'
        lost = {move.source for move in of_servers if move.is_evacuation}
        for host in dict.fromkeys((*enabled_hosts, *[
                name for move in of_servers
                for name in (move.source, move.destination)])):
            state = services.get(host, {}).get('state')
            if host in lost and state == 'up':
                yield (f'nova-compute on {host} is up: Nova evacuates only '
                       'from hosts that are down')
            elif state == 'down' and host not in lost:
                yield f'nova-compute on {host} is down'
    agents: dict[str, Mapping] = {}
    for move in moves:
        if move.is_of_server:
            continue
        uuid = move.destination_agent
        if uuid not in agents:
            agents[uuid] = _found(
                connection, 'network', f'/agents/{uuid}', 'agent') or {}
        if not (agents[uuid].get('alive')
                and agents[uuid].get('admin_state_up')):
            yield (f'move {move.number}: the agent on {move.destination} '
                   'is not there, down or disabled')
    # Servers are evacuated whatever has become of others.
    yield from astray(connection, [
        move for move in moves if not move.is_evacuation])


def astray(connection: _Connection,
           moves: Iterable[values.Move]) -> Iterator[str]:
    """Yield why the first move of a server or service is impossible."""
    checked: set[str] = set()
    for move in moves:
        # A later move of the same server begins where this one ends.
        if move.id not in checked:
            checked.add(move.id)
            try:
                if move.is_of_server:
                    _is_to_move(_server(connection, move, False), move)
                else:
                    _is_to_reassign(connection, move)
            except MoveError as exc:
                yield f'move {move.number}: {move} {exc}'


def is_on_source(connection: _Connection, move: values.Move) -> bool:
    """Return whether what was moved is back; raise as unfinished()."""
    if not move.is_of_server:
        return _agents_of(connection, move)[0]
    return any(_host(server) == move.source
               for server in _servers(connection, [move.id]))


def shelved(connection: _Connection,
            uuids: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield UUID and name of servers on no host; raise as unfinished()."""
    for server in _servers(connection, uuids):
        if _has_left(server):
            yield server['id'], strings.line(server['name'])


def left_behind(connection: _Connection, host: str,
                planned: Collection[str]) -> Iterator[str]:
    """Yield servers on a lost host that a plan knows not; raise as shelved().

    :param planned: UUIDs of the servers of the plan
    """
    for server in _read(connection, 'compute', '/servers', 'servers',
                        {'all_tenants': '1', 'host': host}):
        if server['id'] not in planned:
            yield (f'{strings.line(server["name"])} ({server["id"]}) is on '
                   f'{host}, and not in the plan')


def unfinished(connection: _Connection, uuids: Iterable[str]) -> Iterator[str]:
    """Yield which servers a failed move has left in a bad state.

    :raises MoveError: if Nova refuses to say
    :raises NoAnswerError: if Nova does not answer
    """
    for server in _servers(connection, uuids):
        status = server['status']
        if status in (_UNCONFIRMED, _SHELVED, 'ERROR') or (
                _task(server) is not None):
            yield (f'{strings.line(server["name"])} ({server["id"]}) is '
                   f'{status} on {_host(server)}')


def _servers(connection: _Connection,
             uuids: Iterable[str]) -> Iterator[Mapping]:
    for uuid in uuids:
        server = _found(connection, 'compute', f'/servers/{uuid}', 'server')
        if server is not None:
            yield server


def _call(connection: _Connection, service: ty.Literal['compute', 'network'],
          method: str, path: str, body: ty.Any = None,
          query: Mapping[str, str] | None = None,
          microversion: str = _MICROVERSION) -> ty.Any:
    """Return the answer to a request, which is made once, as it is.

    :raises NoAnswerError: if it may have taken effect, or may later
    """
    options = {'microversion': microversion} if service == 'compute' else {}
    try:
        # Nothing is repeated: a second request may begin a second migration
        # after the first is over.
        response = getattr(connection, service).request(
            path, method, json=body, params=query or {}, raise_exc=False,
            connect_retries=0, status_code_retries=0, skip_cache=True,
            **options)
        status = response.status_code
        if status >= 500 or status in _LATER:
            raise NoAnswerError(f'{method} {path}: {status} {response.reason}')
        answer = response.json() if response.content else {}
    except _UNANSWERED as exc:
        raise NoAnswerError(http_limits.reason(exc)) from exc
    if status >= 400:
        raise RefusedRequestError(
            _message(answer) or f'{method} {path}: {status} '
            f'{response.reason}', status)
    return answer


def _read(connection: _Connection, service: ty.Literal['compute', 'network'],
          path: str, key: str, query: Mapping[str, str] | None = None,
          microversion: str = _MICROVERSION) -> ty.Any:
    """Return what is under a key of the answer to GET; raise as _call().

    :raises NoAnswerError: also if it has not the form of the API's reference
    """
    answer = _call(connection, service, 'GET', path, query=query,
                   microversion=microversion)
    _check(path, answer, {key: list if key in _LISTS else dict})
    for row in answer[key] if key in _LISTS else (answer[key],):
        _check(path, row, _FIELDS[key])
    return answer[key]


def _found(connection: _Connection, service: ty.Literal['compute', 'network'],
           path: str, key: str) -> Mapping | None:
    """Return an object as _read() does; None if there is none."""
    try:
        return _read(connection, service, path, key)
    except RefusedRequestError as exc:
        if exc.status != 404:
            raise
        return None


def _check(path: str, value: ty.Any,
           fields: Mapping[str, type | tuple[type, ...]]) -> None:
    """Raise NoAnswerError unless an object has fields of these types."""
    if isinstance(value, dict):
        wrong = [name for name, kind in fields.items()
                 if name not in value or not isinstance(value[name], kind)]
        if not wrong:
            return
        what = f'without a proper {wrong[0]!r}'
    else:
        what = f'{type(value).__name__} in place of an object'
    raise NoAnswerError(f'GET {path}: malformed answer: {what}')


def _message(answer: ty.Any) -> str:
    for each in answer.values() if isinstance(answer, dict) else ():
        if isinstance(each, dict) and isinstance(each.get('message'), str):
            return strings.brief(each['message'])
    return ''


def _retry_read(call: Callable[..., _T], *args: ty.Any) -> _Steps[_T]:
    """Repeat a call that changes nothing until there is an answer."""
    while True:
        try:
            return call(*args)
        except NoAnswerError as exc:
            yield str(exc)


def compute_services(connection: _Connection) -> dict[str, Mapping]:
    return {row['host']: row for row in _read(
        connection, 'compute', '/os-services', 'services',
        {'binary': 'nova-compute'})}


def set_status(connection: _Connection, host: str, reason: str | None,
               record: Callable[[], None]) -> bool:
    """Disable a compute host for a reason, or enable it without one.

    :param record: called before the request
    :returns: False if it was so already
    :raises MoveError: if there is no such host, or Nova refuses it
    """
    if (service := compute_services(connection).get(host)) is None:
        raise MoveError(f'there is no compute host {host}')
    status = 'enabled' if reason is None else 'disabled'
    if service['status'] == status:
        return False
    body = {'status': status}
    if reason is not None:
        body['disabled_reason'] = reason
    record()
    _call(connection, 'compute', 'PUT', f'/os-services/{service["id"]}', body)
    return True


def _server(connection: _Connection, move: values.Move,
            has_begun: bool = True) -> Mapping:
    server = _found(connection, 'compute', f'/servers/{move.id}', 'server')
    if server is None:
        raise MoveError('has been deleted')
    if not isinstance(server.get(_HOST, 0), _TEXT_OR_NONE):
        # Nobody takes away the role of an account while a server moves.
        raise (NoAnswerError if has_begun else MoveError)(
            'has no host that the account may see; it needs the role admin')
    return server


def _host(server: Mapping) -> str:
    return server.get(_HOST) or 'no host'


def _task(server: Mapping) -> str | None:
    return server['OS-EXT-STS:task_state']


def _is_to_move(server: Mapping, move: values.Move) -> bool:
    """Return whether a server is still to be moved, and can be."""
    host, task = _host(server), _task(server)
    if task is not None and not (
            move.is_evacuation and values.can_evacuate(task)):
        raise MoveError(f'is busy on {host} ({task})')
    # A cold migration that is not confirmed has to be confirmed by hand: it
    # may not be ours.
    if _has_left(server) if move.is_shelving else (
            host == move.destination and server['status'] not in (
                _UNCONFIRMED, 'ERROR')):
        return False
    if host != move.source:
        raise MoveError(f'is {server["status"]} on {host}, not on '
                        f'{move.source}')
    if server['OS-EXT-STS:vm_state'] not in values.STATES[move.kind]:
        raise MoveError(f'is {server["status"]}')
    if server['locked'] and not move.is_evacuation:
        raise MoveError('is locked')
    return True


def _has_left(server: Mapping) -> bool:
    # Nova shows the status before it has given back what is on the host.
    return server['status'] == _OFFLOADED and not server.get(_HOST)


def _act(connection: _Connection, move: values.Move, action: str,
         body: Mapping[str, str] | None) -> None:
    _call(connection, 'compute', 'POST', f'/servers/{move.id}/action',
          {action: body})


def _migrations(connection: _Connection, move: values.Move) -> list[Mapping]:
    """Return the migrations of a server, the newest first."""
    return _read(connection, 'compute', '/os-migrations', 'migrations', {
        'instance_uuid': move.id, 'limit': str(_MIGRATIONS)})


def _server_actions(connection: _Connection,
                    move: values.Move) -> list[Mapping]:
    return [row for row in _read(
        connection, 'compute', f'/servers/{move.id}/os-instance-actions',
        'instanceActions') if row['action'] in _ACTION_NAMES[move.kind]]


def _begun_ids(connection: _Connection,
               move: values.Move) -> list[tuple[str, bool]]:
    """Return IDs of what began, newest first, and whether of this kind."""
    if move.is_shelving:
        return [(row['request_id'], True)
                for row in _server_actions(connection, move)]
    # That of a resize, which its owner is to confirm, is another one.
    return [(row['uuid'], row['migration_type'] == _TYPES[move.kind])
            for row in _migrations(connection, move)]


def _migrate(connection: _Connection, move: values.Move,
             progress: Progress | None, record: Record) -> _Steps[None]:
    migration: str | None = None
    before: str | None = None
    match progress:
        case ('moving', known, _):
            migration = known
        case ('asked', before, age):
            # The request may have been under way when the run was killed.
            migration = yield from _find_migration(
                connection, move, before, GRACE - age)
    if migration is None:
        server = yield from _retry_read(_server, connection, move)
        if not _is_to_move(server, move):
            return
        if move.is_evacuation:
            # One that finds its only host down would be left in ERROR.
            services = yield from _retry_read(compute_services, connection)
            service = services.get(move.destination, {})
            if (service.get('status'), service.get('state')) != (
                    'enabled', 'up'):
                raise FailedMoveError(
                    f'was not moved: {move.destination} is down or disabled')
        # The newest migration before is what tells whether the request had an
        # effect, even if its answer is lost or this process is killed.
        if progress is None:
            begun = yield from _retry_read(_begun_ids, connection, move)
            before = begun[0][0] if begun else None
        record('asked', before)
        unanswered = ''
        refusal: RefusedRequestError | None = None
        try:
            if move.is_shelving:
                _act(connection, move, (
                    _OFFLOAD if server['status'] == _SHELVED else _SHELVE),
                    None)
            else:
                _act(connection, move, _ACTIONS[move.kind], {
                    'host': move.destination, **_OPTIONS[move.kind]})
        except NoAnswerError as exc:
            unanswered = str(exc)
            yield unanswered
        except RefusedRequestError as exc:
            # Nova may be at an earlier request for this move.
            if exc.status != 409:
                raise
            refusal = exc
        migration = yield from _find_migration(
            connection, move, before, GRACE if unanswered else 0)
        if migration is None:
            if refusal is not None:
                raise refusal
            why = yield from _failure_text(connection, move)
            error = MoveError if unanswered else FailedMoveError
            participle = 'shelved' if move.is_shelving else 'moved'
            raise error(f'was not {participle}: {unanswered or why}')
    record('moving', migration)
    if move.is_shelving:
        yield from _await_offload(connection, move)
    else:
        yield from _await_migration(connection, move, migration)


def _find_migration(connection: _Connection, move: values.Move,
                    before: str | None, grace: float) -> _Steps[str | None]:
    """Return the UUID of the migration that a request has started.

    Of shelving, the ID of the request.

    :param before: that of the newest one before; None if there was none
    :param grace: seconds that it may take to begin
    :returns: None if it has not started any
    """
    end = time.monotonic() + grace
    while True:
        # In this order: Nova may end the move between the two requests.
        server = yield from _retry_read(_server, connection, move)
        begun = yield from _retry_read(_begun_ids, connection, move)
        migration = None
        for each, is_of_kind in begun:
            if each == before:
                break
            if is_of_kind:
                migration = each
        if migration is not None:
            return migration
        # Nova sets the task of the server before it answers; one of a lost
        # host may have had another, for ever.
        if (_task(server) is None or move.is_evacuation) and (
                time.monotonic() >= end):
            return None
        yield ''


def _await_migration(connection: _Connection, move: values.Move,
                     migration: str) -> _Steps[None]:
    """Wait until a migration is over, and confirm a cold one."""
    refused = False
    still = time.monotonic()  # since when Nova has done something
    while True:
        server = yield from _retry_read(_server, connection, move)
        rows = yield from _retry_read(_migrations, connection, move)
        row = next((row for row in rows if row['uuid'] == migration),
                   # Only the newest _MIGRATIONS are read, so others may have
                   # come after it.
                   {'status': 'gone'})
        status = row['status']
        if status in (*_OVER[move.kind], *_FAILED, 'gone'):
            break
        if move.is_evacuation and _task(server) is None:
            # NOTE: Nova may have ended an older record in place of this one.
            if _host(server) == move.destination:
                status = _OVER[move.kind][0]
                break
            if time.monotonic() - still > EVENTS_END:
                raise FailedMoveError(
                    f'was not moved: the migration stays {status}, and Nova '
                    f'does nothing; it is {server["status"]} on '
                    f'{_host(server)}')
        else:
            still = time.monotonic()
        if status == _TO_CONFIRM and _task(server) is None and (
                server['status'] == _UNCONFIRMED):
            if row['dest_compute'] != move.destination:
                raise MoveError(
                    f'was moved to {row["dest_compute"]} by another request, '
                    'which is not confirmed')
            try:
                _act(connection, move, 'confirmResize', None)
            except NoAnswerError as exc:
                yield str(exc)
            except RefusedRequestError as exc:
                # Nova confirms, too, after [DEFAULT] resize_confirm_window.
                if refused and exc.status != 409:
                    raise UnfinishedMoveError(
                        f'is on {move.destination}, waits to be confirmed, '
                        f'and holds resources on {move.source}, too: {exc}; '
                        'to confirm it: openstack server resize confirm -- '
                        + shlex.quote(move.id)) from exc
                refused = True
        yield ''
    failed = status not in _OVER[move.kind]
    while True:
        server = yield from _retry_read(_server, connection, move)
        # NOTE: nova-compute confirms the migration, then the server.
        if _task(server) is None and (
                failed or server['status'] != _UNCONFIRMED):
            break
        yield ''
    if failed:
        why = yield from _failure_text(connection, move)
        server = yield from _retry_read(_server, connection, move)
    state = f'it is {server["status"]} on {_host(server)}'
    if failed:
        raise FailedMoveError('was not moved: the migration is in status '
                              f'{status}: {why}; {state}')
    if _host(server) != move.destination or server['status'] in (
            'ERROR', _UNCONFIRMED):
        raise MoveError(f'was not moved to {move.destination}: {state}')


def _await_offload(connection: _Connection, move: values.Move) -> _Steps[None]:
    """Wait until a server that is shelved has left its host.

    Nova offloads it [DEFAULT] shelved_offload_time seconds later, 0 by
    default, or never: then it is told to.
    """
    while True:
        # In this order: what an action does shows in the server.
        actions = yield from _retry_read(_server_actions, connection, move)
        server = yield from _retry_read(_server, connection, move)
        if _has_left(server):
            return
        if _task(server) is None:
            if server['status'] == _SHELVED and not (
                    actions and actions[0]['action'] == _OFFLOAD):
                try:
                    _act(connection, move, _OFFLOAD, None)
                except NoAnswerError as exc:
                    yield str(exc)
                except RefusedRequestError as exc:
                    # Nova may be about to do it.
                    if exc.status != 409:
                        raise MoveError(f'is {_SHELVED} and still on '
                                        f'{_host(server)}: {exc}') from exc
            elif server['status'] != _OFFLOADED:
                break
            else:
                events = yield from _retry_read(_events, connection, move)
                if _error(events) is not None:
                    break
        yield ''
    why = yield from _failure_text(connection, move)
    server = yield from _retry_read(_server, connection, move)
    if _has_left(server):
        return
    raise FailedMoveError(
        f'was not shelved: {why}; it is {server["status"]} on '
        f'{_host(server)}, and may have been stopped')


def _events(connection: _Connection, move: values.Move) -> list[Mapping]:
    """Return the events of the last action of the kind of a move."""
    for action in _server_actions(connection, move):
        path = f'/servers/{move.id}/os-instance-actions/{action["request_id"]}'
        events = _read(connection, 'compute', path, 'instanceAction',
                       microversion=_DETAILS)['events']
        for event in events:
            _check(path, event, _FIELDS['events'])
        return events
    return []


def _error(events: Iterable[Mapping]) -> str | None:
    """Return what went wrong; None if nothing has, as far as is known."""
    return next((
        strings.one_line(event['details']) for event in events
        if event['result'] == 'Error' and event.get('details')), None)


def _failure_text(connection: _Connection, move: values.Move) -> _Steps[str]:
    """Return why the last move of a server failed, as Nova says.

    Wait until Nova has done all that follows a failure.
    """
    # NOTE: nova-compute puts a migration into an error, resets the task of
    # the server, and only then puts the server into ERROR and ends the event.
    end = time.monotonic() + EVENTS_END
    while True:
        waiting = ''
        try:
            events = _events(connection, move)
            if all(event['finish_time'] for event in events):
                return _error(events) or _NO_REASON
        except MoveError:
            return _NO_REASON  # an account without the right to read it
        except NoAnswerError as exc:
            events, waiting = [], str(exc)
        if time.monotonic() >= end:
            return _error(events) or _NO_REASON
        yield waiting


def _agents_of(connection: _Connection, move: values.Move) -> list[bool]:
    path, key, _name = _SERVED[move.kind]
    return [any(row['id'] == move.id for row in _read(
        connection, 'network', f'/agents/{agent}/{path}', key))
        for agent in (move.source_agent, move.destination_agent)]


def _is_to_reassign(connection: _Connection, move: values.Move) -> bool:
    """Return whether an agent is still to give it to the other."""
    on_source, on_destination = _agents_of(connection, move)
    if on_source and on_destination:
        raise MoveError(f'is on {move.source} and {move.destination}')
    if not (on_source or on_destination):
        raise MoveError(f'is not on {move.source}')
    return on_source


def _reassign(connection: _Connection, move: values.Move,
              progress: Progress | None, record: Record) -> _Steps[None]:
    if progress is None:
        if not (yield from _retry_read(_is_to_reassign, connection, move)):
            return
        record('asked', None)
    path, _key, name = _SERVED[move.kind]
    source, destination = [f'/agents/{agent}/{path}' for agent in (
        move.source_agent, move.destination_agent)]
    while True:
        served = yield from _retry_read(_agents_of, connection, move)
        on_source, on_destination = served
        if on_destination:
            if on_source:
                raise MoveError(f'is on {move.source} and {move.destination}')
            return
        try:
            if on_source:
                _call(connection, 'network', 'DELETE', f'{source}/{move.id}')
            else:
                _call(connection, 'network', 'POST', destination,
                      {name: move.id})
        except NoAnswerError as exc:
            yield str(exc)
        except RefusedRequestError as exc:
            # What it is refused for may be the effect of an earlier request
            # that got no answer.
            if served != (yield from _retry_read(
                    _agents_of, connection, move)):
                continue
            if not on_source:
                yield from _give_back(connection, move, exc)
            raise MoveError(f'was not moved: {exc}') from exc


def _give_back(connection: _Connection, move: values.Move,
               reason: MoveError) -> _Steps[None]:
    """Have the source serve what no agent serves."""
    path, _key, name = _SERVED[move.kind]
    try:
        yield from _retry_read(
            _call, connection, 'network', 'POST',
            f'/agents/{move.source_agent}/{path}', {name: move.id})
    except RefusedRequestError as exc:
        if not any((yield from _retry_read(_agents_of, connection, move))):
            raise UnfinishedMoveError(
                f'is on no agent now: {reason}; it could not be given back '
                f'to {move.source}: {exc}') from exc
