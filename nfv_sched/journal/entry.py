# SPDX-License-Identifier: Apache-2.0
"""Define the entries of the journal, and their form as a line of JSON."""

from collections.abc import Iterable
from collections.abc import Mapping
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
    """

    time: str
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
    """

    time: str
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A count of entries that are not in the journal.

    :ivar time: when the first entry after them was written; ISO 8601, UTC
    :ivar count: number of entries that could not be written
    :ivar removed: number of entries removed because the journal was full
    """

    time: str
    count: int = 0
    removed: int = 0


Entry = Refusal | PlacedServer | Lost

#: Key of an entry in its line -> its class.
KINDS: dict[str, type] = {
    'refusal': Refusal, 'placed': PlacedServer, 'lost': Lost}


def line(value: Entry) -> str:
    """Return an entry as a line of JSON, without its end."""
    name, = [name for name, kind in KINDS.items() if isinstance(value, kind)]
    return json.dumps({'version': VERSION, name: value}, default=_fields,
                      separators=(',', ':'))


def _fields(value: ty.Any) -> dict[str, ty.Any]:
    """Return the fields of a dataclass that have not their default."""
    return {field.name: content for field in dataclasses.fields(value)
            if (content := getattr(value, field.name)) not in (
                field.default, {})}


def short_line(value: Refusal | PlacedServer, limit: int) -> str:
    """Return the line of an entry; if it is too long, without some hosts.

    :param limit: maximum length of the line
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
    """Yield the reasons, cut to the first ``count`` hosts."""
    for reason in reasons:
        hosts = reason.hosts[:count]
        count -= len(hosts)
        if hosts:
            yield dataclasses.replace(reason, hosts=hosts)
