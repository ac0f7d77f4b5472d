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

from nfv_sched.ops.answers.hosts import values

#: Number of colours for servers.
COLOURS = 6

_LETTERS = string.ascii_uppercase
_STATES = {
    values.CPUState.EMULATOR: 'e', values.CPUState.IDLE: '-',
    values.CPUState.UNKNOWN: '?', values.CPUState.CONFLICT: '!',
    values.CPUState.SHARED: 's', values.CPUState.FREE: '.',
    values.CPUState.OTHER: 'n'}

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
    """The mark of a CPU.

    :ivar text: one or more characters
    :ivar kind: the colour: ``0`` and so on for servers, else ``e``, ``i``,
        ``u``, ``x``, ``s``, ``f``, ``n``
    :ivar remote: True if a device or network of its server is near another
        NUMA node
    """

    text: str
    kind: str
    remote: bool = False


def has_others(views: Iterable[values.HostView]) -> bool:
    """Return True if some CPUs of the hosts are not Nova's."""
    return any(thread.state is values.CPUState.OTHER
               for view in views for node in view.nodes
               for core in node.cores for thread in core)


def key(has_others: bool) -> tuple[tuple[str, str], ...]:
    """Return sign and meaning of each mark."""
    return (*_KEY, _OTHER) if has_others else _KEY


def letters(view: values.HostView) -> dict[str, str]:
    """Return the letters of each server with pinned CPUs, by UUID."""
    letters = {}
    for guest in view.guests:
        if any(part.dedicated for part in guest.parts):
            letters[guest.uuid] = _letters(len(letters))
    return letters


def _letters(number: int) -> str:
    """Return the letters for a number: A to Z, then AA, AB and so on."""
    text = ''
    while number >= 0:
        text = _LETTERS[number % 26] + text
        number = number // 26 - 1
    return text


def colours(letters: Mapping[str, str]) -> dict[str, str]:
    """Return the colour of each server with letters, by UUID."""
    return {uuid: str(number % COLOURS)
            for number, uuid in enumerate(letters)}


_KINDS = {
    values.CPUState.IDLE: 'i', values.CPUState.UNKNOWN: 'u',
    values.CPUState.CONFLICT: 'x', values.CPUState.SHARED: 's',
    values.CPUState.FREE: 'f', values.CPUState.OTHER: 'n'}


def sign(thread: values.Thread, letters: Mapping[str, str],
         colours: Mapping[str, str]) -> Sign:
    """Return the mark of a CPU.

    :param letters: result of :func:`letters` for its host
    :param colours: result of :func:`colours`
    """
    if thread.state in _KINDS:
        return Sign(_STATES[thread.state], _KINDS[thread.state])
    guest = thread.owners[0].guest
    text = _STATES.get(thread.state) or letters.get(guest.uuid, '?')
    return Sign(text, colours.get(guest.uuid, '0'), bool(guest.remote))
