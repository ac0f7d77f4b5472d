# SPDX-License-Identifier: Apache-2.0
"""Read the decision journal, and count what is in it."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import heapq
import json
import operator
import os
import re

from nfv_sched.base import files
from nfv_sched.journal import entry
from nfv_sched.journal import writer
from nfv_sched.ops.cloud import codec

#: What refused a server, in documents, if it was a filter of nfv-sched.
NFV_SCHED = 'nfv-sched'

#: Number of policies that are counted apart; further ones are "other".
MAX_POLICIES = 40

_KEY = re.compile(r'(nfv|hw):[a-z_]+')

#: Bytes; longer lines are not written by the journal.
_MAX_LINE = 8 * 2 ** 20

# Items of files.max_items() that an entry counts for.
_ITEMS_PER_ENTRY = 8


class JournalError(Exception):
    """A journal that cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class JournalContent:
    """The content of a journal."""

    refusals: tuple[entry.Refusal, ...]  #: refusals, the oldest first
    lost: int = 0  #: number of entries that could not be written
    removed: int = 0  #: number of entries that were removed to limit the size
    #: errors while reading, a sentence each; this includes truncated lines, as
    #: a killed process leaves them, and the oldest files of a journal that
    #: exceeds a limit
    unread: tuple[str, ...] = ()
    #: servers that were placed, the oldest first
    placed: tuple[entry.PlacedServer, ...] = ()


def read(directory: str, server: str | None = None, *,
         required: bool = False) -> JournalContent:
    """Read a journal, which other processes may be writing.

    :param server: UUID of the only server of interest; None for all
    :param required: whether it is an error if the directory has no journal
    :raises JournalError: if the directory cannot be read
    """
    refusals: list[entry.Refusal] = []
    placed: list[entry.PlacedServer] = []
    unread: list[str] = []
    lost = removed = 0
    try:
        journal_files = writer.listed(directory)
    except OSError as exc:
        raise JournalError(f'{directory}: {exc.strerror or exc}') from exc
    if required and not journal_files:
        raise JournalError(
            f'{directory}: has no decision journal (refusals-*.jsonl)')
    entries = 0
    most_entries = files.max_items() // _ITEMS_PER_ENTRY
    # The newest first: what exceeds the limit is left out at the other end.
    for file in reversed(_newest(journal_files, unread)):
        damaged = 0
        try:
            for line in _lines(file.path):
                entries += 1
                if entries > most_entries:
                    break
                try:
                    value = parse(line)
                except entry.LineError:
                    damaged += 1
                    continue
                if isinstance(value, entry.Lost):
                    lost += value.count
                    removed += value.removed
                elif isinstance(value, entry.PlacedServer):
                    if server in (None, value.server):
                        placed.append(value)
                elif server in (None, value.server, *value.before):
                    refusals.append(value)
            if entries > most_entries:
                unread.append(f'{file.path}, with older files, ' + str(
                    files.beyond(f'{most_entries} entries')))
                break
        except FileNotFoundError:
            continue  # removed meanwhile, to make room
        except OSError as exc:
            unread.append(f'{file.path}: {exc.strerror or exc}')
        if damaged:
            unread.append(
                f'{file.path}: '
                f'{"1 line is" if damaged == 1 else f"{damaged} lines are"} '
                f'cut off, or of no version that is known')
    refusals.sort(key=lambda refusal: refusal.time)
    placed.sort(key=lambda each: each.time)
    return JournalContent(tuple(refusals), lost, removed,
                          tuple(sorted(unread)), tuple(placed))


def read_all(directories: Iterable[str],
             server: str | None = None, *,
             required: bool = False) -> JournalContent:
    """Read journals of several hosts of nova-scheduler as one, as ``read``."""
    contents = [read(directory, server, required=required)
                for directory in {os.path.realpath(each): each
                                  for each in directories}.values()]
    by_time = operator.attrgetter('time')
    return JournalContent(
        refusals=tuple(heapq.merge(
            *[each.refusals for each in contents], key=by_time)),
        lost=sum(each.lost for each in contents),
        removed=sum(each.removed for each in contents),
        unread=tuple(text for each in contents for text in each.unread),
        placed=tuple(heapq.merge(
            *[each.placed for each in contents], key=by_time)))


def parse(text: bytes) -> entry.Entry:
    """Return the entry in a line.

    :raises entry.LineError: if there is none, or one of another version
    """
    try:
        data = json.loads(text)
        version = data.pop('version')
        (name, fields), = data.items()
        if version == entry.VERSION:
            return codec.decode(entry.KINDS[name], fields)
    except (ValueError, TypeError, KeyError, AttributeError,
            RecursionError) as exc:
        raise entry.LineError(f'no entry that is known: {exc}') from exc
    raise entry.LineError(f'of version {version!r}, not {entry.VERSION}')


def policy_of(reason: entry.RefusalReason) -> str:
    """Return the policy without value and place: ``nfv:numa_node``."""
    key = _KEY.match(reason.policy)
    return key[0] if key else reason.policy.partition('=')[0]


def policies(refusal: entry.Refusal) -> set[str]:
    """Return the policies that refused hosts, and what did if no filter."""
    names = {policy_of(reason) for reason in refusal.reasons}
    if refusal.by and not refusal.filter:
        names.add(refusal.by)
    return names


class Tally:
    """A count of refusals by policy, and of outcomes in shadow.

    A journal forgets the oldest entries; a tally does not.

    :ivar counts: policy -> number of refusals for which a host was refused by
        it; see :func:`policies`
    :ivar latest: time of the latest counted refusal; ISO 8601
    :ivar servers: what would have become of servers that were placed, if
        filters and weighers in shadow had counted -> number
    :ivar decisions: the same for each name of such a filter or weigher
    :ivar latest_placed: time of the latest of them; ISO 8601
    """

    #: Outcome for servers for which nothing would have been different.
    SAME = 'same'

    def __init__(self, counts: Mapping[str, int] | None = None,
                 latest: str = '',
                 servers: Mapping[str, int] | None = None,
                 decisions: Mapping[tuple[str, str], int] | None = None,
                 latest_placed: str = ''):
        self.counts = dict(counts or {})
        self.latest = latest
        self.servers = dict(servers or {})
        self.decisions = dict(decisions or {})
        self.latest_placed = latest_placed

    def add(self, refusals: Iterable[entry.Refusal],
            placed: Iterable[entry.PlacedServer] = ()) -> None:
        """Count entries, given oldest first, later than any counted before."""
        counted_until = self.latest
        for refusal in refusals:
            if refusal.time <= counted_until:
                continue
            self.latest = max(self.latest, refusal.time)
            for policy in policies(refusal):
                if policy not in self.counts and (
                        len(self.counts) >= MAX_POLICIES):
                    policy = 'other'
                self.counts[policy] = self.counts.get(policy, 0) + 1
        counted_until = self.latest_placed
        for each in placed:
            if each.time <= counted_until or not each.shadow:
                continue
            self.latest_placed = max(self.latest_placed, each.time)
            outcome = each.change or self.SAME
            self.servers[outcome] = self.servers.get(outcome, 0) + 1
            for name in each.shadow:
                key = name, outcome if name in each.by else self.SAME
                self.decisions[key] = self.decisions.get(key, 0) + 1

    def restarted(self) -> 'Tally':
        """Return a tally that continues this one, from 0."""
        return Tally(
            dict.fromkeys(self.counts, 0), self.latest,
            dict.fromkeys(self.servers, 0), dict.fromkeys(self.decisions, 0),
            self.latest_placed)


def _newest(journal_files: Sequence[writer.File],
            unread: list[str]) -> list[writer.File]:
    """Return the files, without the oldest if all are too large together.

    :param journal_files: the oldest first
    :param unread: gets the error if some are left out
    """
    most = files.max_size()
    size = 0
    newest: list[writer.File] = []
    left_out: list[writer.File] = []
    full = False
    for file in reversed(journal_files):
        full = full or file.size <= most < size + file.size
        if full or file.size > most:
            left_out.append(file)
            continue
        size += file.size
        newest.append(file)
    if left_out:
        suffix = f' and {len(left_out) - 1} more' if left_out[1:] else ''
        unread.append(f'{left_out[0].path}{suffix}, with newer files, ' + str(
            files.beyond(f'{most >> 20} MiB')))
    return newest[::-1]


def _lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file; too long ones in pieces.

    Another process may be writing it, but not beyond the limit.
    """
    remaining = files.max_size()
    with open(path, 'rb') as file:
        while line := file.readline(min(_MAX_LINE, remaining)):
            remaining -= len(line)
            yield line
