# SPDX-License-Identifier: Apache-2.0
"""Read the decision journal, and count refusals by policy."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import re

from nfv_sched.journal import entry
from nfv_sched.journal import files

#: Number of policies that are counted apart; further ones are "other".
MAX_POLICIES = 40

_KEY = re.compile(r'(nfv|hw):[a-z_]+')

#: Bytes; longer lines are not written by the journal.
_MAX_LINE = 8 * 2 ** 20


class JournalError(Exception):
    """A journal that cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class JournalContent:
    """The content of a journal.

    :ivar refusals: refusals, the oldest first; those that are joined in the
        journal are separate here
    :ivar lost: number of refusals that could not be written
    :ivar removed: number of refusals that were removed to limit the size
    :ivar unread: errors while reading, a sentence each; this includes
        truncated lines, as a full disk causes them
    """

    refusals: tuple[entry.Refusal, ...]
    lost: int = 0
    removed: int = 0
    unread: tuple[str, ...] = ()


def read(directory: str, server: str | None = None) -> JournalContent:
    """Read a journal, which other processes may be writing.

    :param server: UUID of the only server of interest; None for all
    :raises JournalError: if the directory cannot be read
    """
    refusals: list[entry.Refusal] = []
    copies: dict[tuple[str, str, str], entry.Refusal] = {}
    unread: list[str] = []
    lost = removed = 0
    try:
        journal_files = files.listed(directory)
    except OSError as exc:
        raise JournalError(f'{directory}: {exc.strerror or exc}') from exc
    for file in journal_files:
        damaged = 0
        try:
            for line in _lines(file.path):
                try:
                    value = entry.parse(line)
                except entry.LineError:
                    damaged += 1
                    continue
                if isinstance(value, entry.Lost):
                    lost += value.count
                    removed += value.removed
                    continue
                for each in entry.single(value):
                    if server is not None and server not in (
                            each.server, *each.before):
                        continue
                    if each.copied:
                        copies[_identity(each)] = each
                    else:
                        refusals.append(each)
        except FileNotFoundError:
            continue  # removed meanwhile, to make room
        except OSError as exc:
            unread.append(f'{file.path}: {exc.strerror or exc}')
        if damaged:
            unread.append(
                f'{file.path}: '
                f'{"1 line is" if damaged == 1 else f"{damaged} lines are"} '
                f'cut off, or of no version that is known')
    # An entry is in the journal twice while it is copied.
    for refusal in refusals:
        copies.pop(_identity(refusal), None)
    refusals += copies.values()
    refusals.sort(key=lambda refusal: refusal.time)
    return JournalContent(tuple(refusals), lost, removed, tuple(unread))


def _identity(refusal: entry.Refusal) -> tuple[str, str, str]:
    return refusal.time, refusal.server, refusal.request


def policy_of(reason: entry.RefusalReason) -> str:
    """Return the policy without value and place: ``nfv:numa_node``."""
    key = _KEY.match(reason.policy)
    return key[0] if key else reason.policy.partition('=')[0]


class Tally:
    """A count of refusals by policy.

    A journal forgets the oldest refusals; a tally does not.

    :ivar counts: policy -> number of refusals for which a host was refused by
        it
    :ivar latest: when the latest counted entry was written; ISO 8601
    """

    def __init__(self, counts: Mapping[str, int] | None = None,
                 latest: str = ''):
        self.counts = dict(counts or {})
        self.latest = latest

    def add(self, refusals: Iterable[entry.Refusal]) -> None:
        """Count the refusals that were written after :attr:`latest`.

        :param refusals: refusals of a journal, the oldest first
        """
        counted_until = self.latest
        for refusal in refusals:
            written = refusal.written or refusal.time
            if written <= counted_until:
                continue
            self.latest = max(self.latest, written)
            for policy in {policy_of(reason) for reason in refusal.reasons}:
                if policy not in self.counts and (
                        len(self.counts) >= MAX_POLICIES):
                    policy = 'other'
                self.counts[policy] = self.counts.get(policy, 0) + 1


def _lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file; too long ones in pieces."""
    with open(path, 'rb') as file:
        while line := file.readline(_MAX_LINE):
            yield line
