# SPDX-License-Identifier: Apache-2.0
"""Choose the mark of each CPU on a map: a letter, and a colour.

Each server with pinned CPUs has a letter, or several, of its own on a host;
the oldest has A.  Small letters and signs mark CPUs that no server's vCPU is
pinned to.  Colours repeat; letters differ without them.
"""

from collections.abc import Iterable, Mapping
import string
import typing as ty

from nfv_sched.ops.answers.hosts import document

#: Number of colours for servers.
COLOURS = 6

_State = document.CPUState
#: State of a CPU -> its sign and colour on a map, and what they mean.
_SIGNS: Mapping[str, tuple[str, str, str]] = {
    _State.GUEST: ('A', '0', 'a vCPU of server A is pinned to it'),
    _State.EMULATOR: ('e', '0', "for a server's emulator threads"),
    _State.IDLE: (
        '-', 'i', 'idle: the server beside it wants the core for itself'),
    _State.UNKNOWN: ('?', 'u', 'taken by a server that is not known'),
    _State.CONFLICT: ('!', 'x', 'taken by several servers'),
    _State.SHARED: ('s', 's', 'for servers with shared CPUs'),
    _State.FREE: ('.', 'f', 'free'),
    # Only maps with facts about the machines have these.
    _State.OTHER: ('n', 'n', "not Nova's: in none of its sets of CPUs"),
}


class Sign(ty.NamedTuple):
    text: str  #: one or more characters; empty for a server without pins
    #: the colour: ``0`` and so on for servers, else ``e``, ``i``, ``u``,
    #: ``x``, ``s``, ``f``, ``n``
    kind: str
    #: True if what its server wants nearby is near another NUMA node
    remote: bool = False


def has_others(hosts: Iterable[document.HostDetails]) -> bool:
    return any(cpu.state is _State.OTHER
               for host in hosts for node in host.numa_nodes
               for core in node.cores for cpu in core.cpus)


def key(has_others: bool) -> list[tuple[str, str, str]]:
    return [row for state, row in _SIGNS.items()
            if has_others or state is not _State.OTHER]


def of_host(host: document.HostDetails) -> dict[str, Sign]:
    pinned = [server.server_id for server in host.servers
              if any(part.pinned_vcpus for part in server.numa_nodes)]
    numbers = {uuid: number for number, uuid in enumerate(pinned)}
    return {server.server_id: Sign(
        _letters(numbers.get(server.server_id, -1)),
        str(numbers.get(server.server_id, 0) % COLOURS), server.lacks_nearby)
        for server in host.servers}


def _letters(number: int) -> str:
    """Return A to Z, then AA, AB and so on."""
    text = ''
    while number >= 0:
        text = string.ascii_uppercase[number % 26] + text
        number = number // 26 - 1
    return text


def sign(cpu: document.CPUUse, marks: Mapping[str, Sign]) -> Sign:
    text, kind, _meaning = _SIGNS[cpu.state]
    if kind != '0':
        return Sign(text, kind)
    mark = marks[cpu.users[0].server_id]
    return mark._replace(text=text) if cpu.state == _State.EMULATOR else mark
