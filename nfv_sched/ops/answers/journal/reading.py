# SPDX-License-Identifier: Apache-2.0
"""Read the decision journal, and count what is in it."""

import collections
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import json
import operator
import os
import re

from nfv_sched.base import files
from nfv_sched.journal import entry
from nfv_sched.journal import writer
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import codec

#: What refused a server, in documents, if it was a filter of nfv-sched.
NFV_SCHED = 'nfv-sched'

#: Number of policies that are counted apart; further ones are "other".
MAX_POLICIES = 40

# Outcome for servers for which nothing would have been different.
_SAME = 'same'
_KEY = re.compile(r'(nfv|hw):[a-z_]+')

#: Bytes; longer lines are not written by the journal.
_MAX_LINE = 8 * 2 ** 20

# Items of files.max_items() that an entry counts for.
_ITEMS_PER_ENTRY = 8


class JournalError(errors.CloudUnreadError):
    """A journal that cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class JournalContent:
    refusals: tuple[entry.Refusal, ...] = ()  #: the oldest first
    lost: int = 0  #: number of entries that could not be written
    removed: int = 0  #: number of entries that were removed to limit the size
    #: errors while reading, a sentence each; this includes truncated lines, as
    #: a killed process leaves them, and the oldest files of a journal that
    #: exceeds a limit
    unread: tuple[str, ...] = ()
    #: servers that were placed, the oldest first
    placed: tuple[entry.PlacedServer, ...] = ()


def read(*directories: str, server: str | None = None,
         required: bool = False) -> JournalContent:
    """Read journals, which other processes may be writing, as one.

    :param server: UUID of the only server of interest; None for all
    :param required: whether it is an error if a directory has no journal
    :raises JournalError: if a directory cannot be read
    """
    entries: list[entry.Entry] = []
    unread: list[str] = []
    for directory in {os.path.realpath(each): each
                      for each in directories}.values():
        unread += sorted(_read(directory, server, required, entries))
    entries.sort(key=operator.attrgetter('time'))
    lost = [each for each in entries if isinstance(each, entry.Lost)]
    return JournalContent(
        refusals=tuple([each for each in entries
                        if isinstance(each, entry.Refusal)]),
        placed=tuple([each for each in entries
                      if isinstance(each, entry.PlacedServer)]),
        lost=sum(each.count for each in lost),
        removed=sum(each.removed for each in lost), unread=tuple(unread))


def _read(directory: str, server: str | None, required: bool,
          entries: list[entry.Entry]) -> Iterator[str]:
    """Add the entries of a journal; yield what could not be read."""
    with files.naming(directory, JournalError):
        journal_files = writer.listed(directory)
        if required and not journal_files:
            raise JournalError('has no decision journal (refusals-*.jsonl)')
    newest, left_out = _newest(journal_files)
    yield from left_out
    lines = 0
    most_lines = files.max_items() // _ITEMS_PER_ENTRY
    # The newest first: what exceeds the limit is left out at the other end.
    for file in newest:
        damaged = 0
        try:
            for line in _lines(file.path):
                lines += 1
                if lines > most_lines:
                    yield f'{file.path}, with older files, ' + str(
                        files.beyond(f'{most_lines} entries'))
                    return
                try:
                    value = parse(line)
                except entry.LineError:
                    damaged += 1
                    continue
                if isinstance(value, entry.Lost) or server in (
                        None, value.server, *getattr(value, 'before', ())):
                    entries.append(value)
        except FileNotFoundError:
            continue  # removed meanwhile, to make room
        except OSError as exc:
            yield f'{file.path}: {exc.strerror or exc}'
        if damaged:
            yield (f'{file.path}: '
                   f'{"1 line is" if damaged == 1 else f"{damaged} lines are"}'
                   ' cut off, or of no version that is known')


def parse(text: bytes) -> entry.Entry:
    """Return the entry in a line; raise LineError if none is of VERSION."""
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


@dataclasses.dataclass(slots=True)
class Tally:
    """A count of refusals by policy, and of outcomes in shadow.

    A journal forgets the oldest entries; a tally does not.
    """

    #: policy, without value and place, as ``nfv:numa_node``, or what refused
    #: all hosts if no filter -> number of refusals with a host refused by it
    counts: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter)
    latest: str = ''  #: time of the latest counted refusal; ISO 8601
    #: what would have become of servers that were placed, if filters and
    #: weighers in shadow had counted -> number
    servers: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter)
    #: the same for each name of such a filter or weigher
    decisions: collections.Counter[tuple[str, str]] = dataclasses.field(
        default_factory=collections.Counter)
    latest_placed: str = ''  #: time of the latest of them; ISO 8601

    def add(self, refusals: Iterable[entry.Refusal],
            placed: Iterable[entry.PlacedServer] = ()) -> None:
        """Count entries, given oldest first, later than any counted before."""
        counted_until = self.latest
        for refusal in refusals:
            if refusal.time <= counted_until:
                continue
            self.latest = max(self.latest, refusal.time)
            policies = set()
            for reason in refusal.reasons:
                key = _KEY.match(reason.policy)
                policies.add(key[0] if key
                             else reason.policy.partition('=')[0])
            if refusal.by and not refusal.filter:
                policies.add(refusal.by)
            for policy in policies:
                is_counted = (policy in self.counts
                              or len(self.counts) < MAX_POLICIES)
                self.counts[policy if is_counted else 'other'] += 1
        counted_until = self.latest_placed
        for each in placed:
            if each.time <= counted_until or not each.shadow:
                continue
            self.latest_placed = max(self.latest_placed, each.time)
            outcome = each.change or _SAME
            self.servers[outcome] += 1
            self.decisions.update(
                (name, outcome if name in each.by else _SAME)
                for name in each.shadow)

    def restarted(self) -> 'Tally':
        """Return a tally that continues this one, from 0."""
        return dataclasses.replace(self, **{
            name: collections.Counter(dict.fromkeys(getattr(self, name), 0))
            for name in ('counts', 'servers', 'decisions')})


def _newest(
    journal_files: Sequence[writer.File],
) -> tuple[list[writer.File], list[str]]:
    """Return the files, the newest first, that are not too large together.

    :param journal_files: the oldest first
    :returns: also the error if some are left out
    """
    most = files.max_size()
    size = 0
    newest: list[writer.File] = []
    left_out: list[str] = []
    full = False
    for file in reversed(journal_files):
        full = full or file.size <= most < size + file.size
        if full or file.size > most:
            left_out.append(file.path)
            continue
        size += file.size
        newest.append(file)
    if not left_out:
        return newest, []
    more = f' and {len(left_out) - 1} more' if left_out[1:] else ''
    return newest, [f'{left_out[0]}{more}, with newer files, '
                    f'{files.beyond(f"{most >> 20} MiB")}']


def _lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file; too long ones in pieces.

    Another process may be writing it, but not beyond the limit.
    """
    remaining = files.max_size()
    with open(path, 'rb') as file:
        while line := file.readline(min(_MAX_LINE, remaining)):
            remaining -= len(line)
            yield line
