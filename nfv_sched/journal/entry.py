# SPDX-License-Identifier: Apache-2.0
"""Define the entries of the journal, and their form as a line of JSON."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum
import functools
import hashlib
import json
import types
import typing as ty

from nfv_sched.base import files

#: Version of the format. It changes when older tools would misread entries;
#: they refuse those with keys unknown to them.
VERSION = 1


class LineError(ValueError):
    """A line is not an entry of a journal; the text has the reason."""


class RefusedBy(enum.StrEnum):
    """The cause for which a server found no host."""

    NFV_SCHED = ''
    #: Placement had no allocation candidates.
    PLACEMENT = 'placement'
    #: Placement could not be reached, or reported an error.
    PLACEMENT_ERROR = 'placement-error'
    #: A filter of Nova, or of others.
    FILTER = 'filter'
    #: None of the hosts that passed all filters could be claimed.
    CLAIM = 'claim'
    #: Nova, before the filters: there is no such host, or none is allowed.
    NOVA = 'nova'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The result of a filter for the hosts of a request.

    :ivar filter: name of its class
    :ivar hosts: number of hosts that it was given
    :ivar left: number of those that it accepted
    """

    filter: str
    hosts: int
    left: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusalReason:
    """A reason why some hosts were refused.

    :ivar filter: name of the filter that refused them
    :ivar policy: an extra spec with its value, or other words for the policy
        that refused them; the name of a filter that gives no reasons
    :ivar need: text about the need of the server
    :ivar have: text about the resources of these hosts; may be empty
    :ivar hosts: their names
    """

    filter: str
    policy: str
    need: str
    have: str = ''
    hosts: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f'{self.policy}: {self.need}'
        return f'{text}, {self.have}' if self.have else text


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A refusal that is equal to a later one, and was joined with it.

    :ivar time: when; ISO 8601, UTC, with milliseconds
    :ivar request: ID of the request
    :ivar server: UUID
    :ivar before: UUIDs, see :class:`Refusal`
    """

    time: str
    request: str = ''
    server: str
    before: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFlavor:
    """The flavor of a refused server.

    :ivar memory: MiB
    """

    name: str
    id: str = ''
    vcpus: int
    memory: int
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A server for which Nova found no host.

    :ivar time: when; ISO 8601, UTC, with milliseconds
    :ivar written: when the entry was written, if that was later, because of
        joined refusals; ISO 8601, UTC
    :ivar request: ID of the request
    :ivar server: UUID
    :ivar before: UUIDs of the servers of the same request for which there was
        a host, and which failed with it; all others if there were no
        allocation candidates
    :ivar project: UUID
    :ivar move: whether an existing server was to be moved
    :ivar flavor: the flavor of the request; None if it had none
    :ivar by: a value of :class:`RefusedBy`
    :ivar filter: the filter that removed the last host; empty if none did
    :ivar queries: what Placement was asked for, a query string each; empty if
        a filter removed the last host
    :ivar message: the reason that Nova gave; empty if a filter removed the
        last host
    :ivar passes: the filters that examined hosts, in order; only those of
        nfv-sched if one of these removed the last host
    :ivar reasons: why hosts were refused
    :ivar unnamed: number of refused hosts that were left out to shorten the
        entry
    :ivar earlier: equal refusals that were joined with this one, the oldest
        first; they differ only in the fields of :class:`Earlier`
    :ivar copied: whether this is a copy of an entry in a file that was, or is
        about to be, removed
    """

    time: str
    written: str = ''
    request: str = ''
    server: str
    before: tuple[str, ...] = ()
    project: str = ''
    move: bool = False
    flavor: RefusedFlavor | None = None
    by: str = ''
    filter: str = ''
    queries: tuple[str, ...] = ()
    message: str = ''
    passes: tuple[Pass, ...] = ()
    reasons: tuple[RefusalReason, ...] = ()
    unnamed: int = 0
    earlier: tuple[Earlier, ...] = ()
    copied: bool = False

    @property
    def count(self) -> int:
        """Number of refusals in this entry."""
        return 1 + len(self.earlier)


class ShadowChange(enum.StrEnum):
    """The change for a server, if filters and weighers in shadow counted."""

    NOTHING = ''
    #: No host would have been left.
    REFUSED = 'refused'
    #: The server would have gone to another host.
    ELSEWHERE = 'elsewhere'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacedServer:
    """A server that Nova placed, and what would have been different.

    That is, if the filters and weighers in shadow had counted.

    :ivar time: when; ISO 8601, UTC, with milliseconds
    :ivar written: when the entry was written, if that was later, because of
        joined entries; ISO 8601, UTC
    :ivar request: ID of the request
    :ivar server: UUID
    :ivar project: UUID
    :ivar move: whether an existing server was moved
    :ivar flavor: the flavor of the request; None if it had none
    :ivar host: name of the host that Nova chose
    :ivar passes: the filters of nfv-sched that examined hosts, in order
    :ivar shadow: names of the filters and weighers in shadow that have
        examined it, in order
    :ivar change: a value of :class:`ShadowChange`
    :ivar by: those of them that would have changed it
    :ivar instead: name of the host that would have been first; empty if it is
        not known
    :ivar reasons: why hosts would have been refused that passed all filters
        that count
    :ivar unnamed: number of such hosts that were left out to shorten the entry
    :ivar earlier: equal entries that were joined with this one, the oldest
        first; they differ only in the fields of :class:`Earlier`
    """

    time: str
    written: str = ''
    request: str = ''
    server: str
    project: str = ''
    move: bool = False
    flavor: RefusedFlavor | None = None
    host: str
    passes: tuple[Pass, ...] = ()
    shadow: tuple[str, ...] = ()
    change: str = ''
    by: tuple[str, ...] = ()
    instead: str = ''
    reasons: tuple[RefusalReason, ...] = ()
    unnamed: int = 0
    earlier: tuple[Earlier, ...] = ()

    @property
    def before(self) -> tuple[str, ...]:
        """UUIDs of servers that failed with it: none."""
        return ()

    @property
    def count(self) -> int:
        """Number of servers in this entry."""
        return 1 + len(self.earlier)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A count of refusals that are not in the journal.

    :ivar time: when the first entry after them was made, or the latest of
        them; ISO 8601, UTC
    :ivar count: number of refusals, and placed servers, that could not be
        written
    :ivar removed: number of refusals removed because the journal was full
    """

    time: str
    count: int = 0
    removed: int = 0


#: An entry about a server.
Decided = ty.TypeVar('Decided', Refusal, PlacedServer)

_KINDS: dict[str, type] = {
    'refusal': Refusal, 'placed': PlacedServer, 'lost': Lost}


def encode(value: ty.Any) -> ty.Any:
    """Return an entry as data for JSON, without fields at their default.

    :param value: an entry, or the value of a field of one
    """
    if dataclasses.is_dataclass(value):
        data = {}
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            if content not in (field.default, {}):
                data[field.name] = encode(content)
        return data
    if isinstance(value, tuple):
        return [encode(each) for each in value]
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    return value


def line(value: Refusal | PlacedServer | Lost) -> bytes:
    """Return an entry as a line, with its end."""
    name, = [name for name, kind in _KINDS.items() if isinstance(value, kind)]
    return json.dumps(
        {'version': VERSION, name: encode(value)},
        separators=(',', ':')).encode() + b'\n'


def short_line(refusal: Refusal | PlacedServer, limit: int) -> bytes:
    """Return the line of an entry; if it is too long, without some hosts.

    :param limit: maximum length of the line, in bytes
    :raises LineError: if it is too long even without any host
    """
    whole = refusal
    named = sum(len(reason.hosts) for reason in whole.reasons)
    left_out = 0
    while True:
        text = line(refusal)
        if len(text) <= limit:
            return text
        if left_out == named:
            raise LineError('too long')
        left_out = named - (named - left_out) // 2
        refusal = dataclasses.replace(
            whole, unnamed=whole.unnamed + left_out,
            reasons=tuple(_first_hosts(whole.reasons, named - left_out)))


def key(value: Refusal | PlacedServer) -> bytes:
    """Return a digest that equal entries have in common.

    They are equal if all but the fields of :class:`Earlier` is; the order of
    hosts is ignored.
    """
    flavor = value.flavor
    same = (
        dataclasses.replace(
            value, time='', request='', server='', flavor=None, reasons=(),
            **({'before': ()} if isinstance(value, Refusal) else {})),
        flavor and dataclasses.replace(flavor, extra_specs={}),
        flavor and sorted(flavor.extra_specs.items()),
        sorted((reason.filter, reason.policy, reason.need, reason.have,
                sorted(reason.hosts)) for reason in value.reasons))
    return hashlib.blake2b(repr(same).encode(), digest_size=16).digest()


def joined(first: Decided, last: Decided) -> Decided:
    """Return one entry for an entry and a later one that is equal."""
    return dataclasses.replace(last, earlier=(*first.earlier, Earlier(
        time=first.time, request=first.request, server=first.server,
        before=first.before)))


def single(value: Decided) -> Iterable[Decided]:
    """Yield the entries that were joined in one, one by one."""
    for each in value.earlier:
        more = {'before': each.before} if isinstance(value, Refusal) else {}
        yield dataclasses.replace(
            value, time=each.time, request=each.request, server=each.server,
            earlier=(), **more)
    yield dataclasses.replace(value, earlier=())


def copy(text: bytes) -> bytes:
    """Return the line of a refusal, marked as a copy."""
    return line(dataclasses.replace(parse(text), copied=True))


def _first_hosts(reasons: Iterable[RefusalReason],
                 count: int) -> Iterable[RefusalReason]:
    """Yield the reasons, cut to the first ``count`` hosts."""
    for reason in reasons:
        hosts = reason.hosts[:count]
        count -= len(hosts)
        if hosts:
            yield dataclasses.replace(reason, hosts=hosts)


def parse(text: bytes) -> Refusal | PlacedServer | Lost:
    """Return the entry in a line.

    :raises LineError: if there is none, or one of another version
    """
    try:
        data: ty.Any = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise LineError(f'no JSON: {exc}') from exc
    if not isinstance(data, dict) or 'version' not in data:
        raise LineError('no entry of a journal')
    version = data.pop('version')
    if version != VERSION:
        raise LineError(f'of version {version!r}, not {VERSION}')
    if len(data) != 1 or not data.keys() <= _KINDS.keys():
        raise LineError('no entry that is known')
    (name, value), = data.items()
    return _decode(_KINDS[name], value)


def _decode(hint: ty.Any, data: ty.Any) -> ty.Any:
    """Return a value of a type, made from JSON data.

    nova-scheduler copies entries, so this needs no library that only tools
    have.

    :raises LineError: if the data does not fit the type
    """
    if isinstance(hint, types.UnionType):  # a type, or None
        return None if data is None else _decode(ty.get_args(hint)[0], data)
    kind, args = ty.get_origin(hint) or hint, ty.get_args(hint)
    if kind is tuple and isinstance(data, list):
        return tuple([_decode(args[0], each) for each in data])
    if kind is Mapping and isinstance(data, dict):
        return {_decode(args[0], key): _decode(args[1], each)
                for key, each in data.items()}
    if dataclasses.is_dataclass(kind) and isinstance(data, dict):
        hints = _hints(kind)
        try:
            return kind(**{name: _decode(hints[name], each)
                           for name, each in data.items()})
        except (KeyError, TypeError) as exc:  # unknown, missing
            raise LineError(f'no entry that is known: {exc}') from exc
    if type(data) is not kind or kind is int and not 0 <= data < 1 << 63:
        raise LineError(f'no entry that is known: not of type {hint}')
    if kind is str and len(data) > files.MAX_TEXT:
        raise LineError(f'has more than {files.MAX_TEXT} characters in a text')
    # Halves of characters cannot be written to any output.
    return data.encode(errors='replace').decode() if kind is str else data


_hints = functools.cache(ty.get_type_hints)
