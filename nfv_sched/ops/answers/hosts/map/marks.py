# SPDX-License-Identifier: Apache-2.0
"""Choose the mark of each CPU on a map: a letter, and a colour.

Each server with pinned CPUs has a letter, or several, of its own on a host;
the oldest has A.  Small letters and signs mark CPUs that no server's vCPU is
pinned to.  Colours repeat; letters differ without them.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import string
import typing as ty

from nfv_sched.ops.answers.hosts import document

#: Number of colours for servers.
COLOURS = 6

_LETTERS = string.ascii_uppercase
_STATES = {
    document.CPUState.EMULATOR: 'e', document.CPUState.IDLE: '-',
    document.CPUState.UNKNOWN: '?', document.CPUState.CONFLICT: '!',
    document.CPUState.SHARED: 's', document.CPUState.FREE: '.',
    document.CPUState.OTHER: 'n'}

#: Sign and meaning, for the key of a map.
_KEY = (
    ('A', 'a vCPU of server A is pinned to it'),
    ('e', "for a server's emulator threads"),
    ('-', 'idle: the server beside it wants the core for itself'),
    ('?', 'taken by a server that is not known'),
    ('!', 'taken by several servers'),
    ('s', 'for servers with shared CPUs'),
    ('.', 'free'),
)
#: For CPUs that only maps with facts about the machines have.
_OTHER = ('n', "not Nova's: in none of its sets of CPUs")


class Sign(ty.NamedTuple):
    """The mark of a CPU."""

    text: str  #: one or more characters
    #: the colour: ``0`` and so on for servers, else ``e``, ``i``, ``u``,
    #: ``x``, ``s``, ``f``, ``n``
    kind: str
    #: True if a device or network of its server is near another NUMA node
    remote: bool = False


class HostMarks(ty.NamedTuple):
    """The marks of the servers of a host with pinned CPUs."""

    letters: Mapping[str, str] = {}  #: UUID of a server -> its letters
    colours: Mapping[str, str] = {}  #: UUID of a server -> its colour
    #: UUIDs of servers with a device or network near another NUMA node
    remote: frozenset[str] = frozenset()


def has_others(hosts: Iterable[document.HostDetails]) -> bool:
    return any(cpu.state is document.CPUState.OTHER
               for host in hosts for node in host.numa_nodes
               for core in node.cores for cpu in core.cpus)


def key(has_others: bool) -> tuple[tuple[str, str], ...]:
    return (*_KEY, _OTHER) if has_others else _KEY


def of_host(host: document.HostDetails) -> HostMarks:
    pinned = [server.server_id for server in host.servers
              if any(part.pinned_vcpus for part in server.numa_nodes)]
    return HostMarks(
        {uuid: _letters(number) for number, uuid in enumerate(pinned)},
        {uuid: str(number % COLOURS) for number, uuid in enumerate(pinned)},
        frozenset(server.server_id for server in host.remote))


def _letters(number: int) -> str:
    """Return the letters for a number: A to Z, then AA, AB and so on."""
    text = ''
    while number >= 0:
        text = _LETTERS[number % 26] + text
        number = number // 26 - 1
    return text


_KINDS = {
    document.CPUState.IDLE: 'i', document.CPUState.UNKNOWN: 'u',
    document.CPUState.CONFLICT: 'x', document.CPUState.SHARED: 's',
    document.CPUState.FREE: 'f', document.CPUState.OTHER: 'n'}


def sign(cpu: document.CPUUse, marks: HostMarks) -> Sign:
    if cpu.state in _KINDS:
        return Sign(_STATES[cpu.state], _KINDS[cpu.state])
    server = cpu.users[0].server_id
    return Sign(_STATES.get(cpu.state) or marks.letters.get(server, '?'),
                marks.colours.get(server, '0'), server in marks.remote)
