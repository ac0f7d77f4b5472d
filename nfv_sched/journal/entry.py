# SPDX-License-Identifier: Apache-2.0
"""Define the entries of the journal, and their form as a line of JSON."""

from collections.abc import Iterable, Mapping
import dataclasses
import enum
import json
import typing as ty

#: Version of the format. It changes when older tools would misread entries;
#: they refuse those with keys unknown to them.
VERSION = 1


class LineError(ValueError):
    """An unknown line, or an entry that is too long for one."""


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
    """The result of a filter for the hosts of a request."""

    filter: str  #: name of its class
    hosts: int  #: number of hosts that it was given
    left: int  #: number of those that it accepted


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusalReason:
    filter: str  #: name of the filter that refused them
    #: an extra spec with its value, or other words for the policy that refused
    #: them; the name of a filter that gives no reasons
    policy: str
    need: str  #: text about the need of the server
    have: str = ''  #: text about the resources of these hosts; may be empty
    hosts: tuple[str, ...] = ()  #: their names

    def __str__(self) -> str:
        text = f'{self.policy}: {self.need}'
        return f'{text}, {self.have}' if self.have else text


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RefusedFlavor:
    name: str
    id: str = ''
    vcpus: int
    memory: int  #: MiB
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A server for which Nova found no host."""

    time: str  #: when; ISO 8601, UTC, with milliseconds
    request: str = ''  #: ID of the request
    server: str  #: UUID
    #: UUIDs of the servers of the same request for which there was a host, and
    #: which failed with it; all others if there were no allocation candidates
    before: tuple[str, ...] = ()
    project: str = ''  #: UUID
    move: bool = False  #: whether an existing server was to be moved
    flavor: RefusedFlavor | None = None  #: None if the request had none
    by: str = ''  #: a value of :class:`RefusedBy`
    #: the filter that removed the last host; empty if none did
    filter: str = ''
    #: what Placement was asked for, a query string each; empty if a filter
    #: removed the last host
    queries: tuple[str, ...] = ()
    #: the reason that Nova gave; empty if a filter removed the last host
    message: str = ''
    #: the filters that examined hosts, in order; only those of nfv-sched if
    #: one of these removed the last host
    passes: tuple[Pass, ...] = ()
    reasons: tuple[RefusalReason, ...] = ()  #: why hosts were refused
    #: number of refused hosts that were left out to shorten the entry
    unnamed: int = 0


class ShadowChange(enum.StrEnum):
    """The change for a server, if filters and weighers in shadow counted."""

    NOTHING = ''
    #: No host would have been left.
    REFUSED = 'refused'
    #: The server would have gone to another host.
    ELSEWHERE = 'elsewhere'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacedServer:
    """A server that Nova placed, and what filters in shadow would change."""

    time: str  #: when; ISO 8601, UTC, with milliseconds
    request: str = ''  #: ID of the request
    server: str  #: UUID
    project: str = ''  #: UUID
    move: bool = False  #: whether an existing server was moved
    flavor: RefusedFlavor | None = None  #: None if the request had none
    host: str  #: name of the host that Nova chose
    #: the filters of nfv-sched that examined hosts, in order
    passes: tuple[Pass, ...] = ()
    #: names of the filters and weighers in shadow that have examined it, in
    #: order
    shadow: tuple[str, ...] = ()
    change: str = ''  #: a value of :class:`ShadowChange`
    by: tuple[str, ...] = ()  #: those of them that would have changed it
    #: name of the host that would have been first; empty if it is not known
    instead: str = ''
    #: why hosts would have been refused that passed all filters that count
    reasons: tuple[RefusalReason, ...] = ()
    #: number of such hosts that were left out to shorten the entry
    unnamed: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A count of entries that are not in the journal."""

    time: str  #: when the first entry after them was written; ISO 8601, UTC
    count: int = 0  #: number of entries that could not be written
    removed: int = 0  #: number of entries removed because the journal was full


Entry = Refusal | PlacedServer | Lost

#: Key of an entry in its line -> its class.
KINDS: dict[str, type] = {
    'refusal': Refusal, 'placed': PlacedServer, 'lost': Lost}


def line(value: Entry) -> str:
    name, = [name for name, kind in KINDS.items() if isinstance(value, kind)]
    return json.dumps({'version': VERSION, name: value}, default=_fields,
                      separators=(',', ':'))


def _fields(value: ty.Any) -> dict[str, ty.Any]:
    return {field.name: content for field in dataclasses.fields(value)
            if (content := getattr(value, field.name)) not in (
                field.default, {})}


def short_line(value: Refusal | PlacedServer, limit: int) -> str:
    """Return the line of an entry; if it is too long, without some hosts.

    :raises LineError: if it is too long even without any host
    """
    whole = value
    named = sum(len(reason.hosts) for reason in whole.reasons)
    left_out = 0
    while len(text := line(value)) > limit:
        if left_out == named:
            raise LineError('too long')
        left_out = named - (named - left_out) // 2
        value = dataclasses.replace(
            whole, unnamed=whole.unnamed + left_out,
            reasons=tuple(_first_hosts(whole.reasons, named - left_out)))
    return text


def _first_hosts(reasons: Iterable[RefusalReason],
                 count: int) -> Iterable[RefusalReason]:
    for reason in reasons:
        hosts = reason.hosts[:count]
        count -= len(hosts)
        if hosts:
            yield dataclasses.replace(reason, hosts=hosts)
