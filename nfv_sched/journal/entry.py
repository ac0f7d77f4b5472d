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
"""An entry of the journal, as a value and as a line of JSON."""

from collections.abc import Iterable
import dataclasses
import json
import typing as ty

from nfv_sched.cloud import codec
from nfv_sched.cloud import snapshot
from nfv_sched import files

#: Of the format. Changes when older tools would misread it.
VERSION = 1


class LineError(ValueError):
    """A line that is no entry of a journal; says why."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What a filter of nfv-sched made of the hosts of a request.

    :ivar filter: name of its class
    :ivar hosts: number of hosts that it was given
    :ivar left: number of those that it accepted
    """

    filter: str
    hosts: int
    left: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why some hosts were refused.

    :ivar filter: name of the filter that refused them
    :ivar policy: what refused: an extra spec with its value, or words
    :ivar need: what was needed
    :ivar have: what these hosts had; may be empty
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
class Refusal:
    """A server for which a filter of nfv-sched removed the last host.

    :ivar time: when; ISO 8601, UTC, with milliseconds
    :ivar request: ID of the request
    :ivar server: UUID
    :ivar before: UUIDs of the servers of the same request for which there was
        a host, and which failed with it
    :ivar project: UUID
    :ivar move: whether an existing server was to be moved
    :ivar flavor: the flavor of the request; None if it had none
    :ivar filter: the filter that removed the last host
    :ivar passes: the filters of nfv-sched that looked at hosts, in order
    :ivar reasons: why hosts were refused
    :ivar unnamed: refused hosts that were left out, for want of room
    """

    time: str
    request: str = ''
    server: str
    before: tuple[str, ...] = ()
    project: str = ''
    move: bool = False
    flavor: snapshot.Flavor | None = None
    filter: str
    passes: tuple[Pass, ...] = ()
    reasons: tuple[Reason, ...] = ()
    unnamed: int = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Refusals of a process that could not be written.

    :ivar time: when the first entry after them was; ISO 8601, UTC
    :ivar count: how many
    """

    time: str
    count: int


_KINDS: dict[str, type] = {'refusal': Refusal, 'lost': Lost}


def line(value: Refusal | Lost) -> bytes:
    """The line of an entry, with its end.

    :param value: the entry
    """
    name, = [name for name, kind in _KINDS.items() if isinstance(value, kind)]
    return json.dumps(
        {'version': VERSION, name: codec.encode(value)},
        separators=(',', ':')).encode() + b'\n'


def short_line(refusal: Refusal, limit: int) -> bytes:
    """The line of a refusal, without some of the hosts if it is too long.

    :param refusal: the refusal
    :param limit: length of the line at most, in bytes
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
            reasons=tuple(_first(whole.reasons, named - left_out)))


def _first(reasons: Iterable[Reason], count: int) -> Iterable[Reason]:
    """The reasons of the first hosts.

    :param count: how many hosts
    """
    for reason in reasons:
        hosts = reason.hosts[:count]
        count -= len(hosts)
        if hosts:
            yield dataclasses.replace(reason, hosts=hosts)


def parse(text: bytes) -> Refusal | Lost:
    """The entry of a line.

    :param text: the line
    :raises LineError: if it is no entry, or one of another version
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
    try:
        return codec.decode(_KINDS[name], value)
    except (codec.WrongError, files.LimitError) as exc:
        raise LineError(str(exc)) from exc
