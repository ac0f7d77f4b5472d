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
"""What the decision journal says."""

from collections.abc import Iterator
import dataclasses

from nfv_sched.journal import entry
from nfv_sched.journal import files

#: A longer line is none of ours.
_MAX_LINE = 64 * 2 ** 20


class JournalError(Exception):
    """A journal that cannot be read; says which, and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Journal:
    """The content of a journal.

    :ivar refusals: by time, the oldest first
    :ivar lost: number of refusals that could not be written
    :ivar unread: what could not be read, a sentence each; lines that are cut
        off, as by a full disk, among them
    """

    refusals: tuple[entry.Refusal, ...]
    lost: int = 0
    unread: tuple[str, ...] = ()


def read(directory: str, server: str | None = None) -> Journal:
    """Read a journal, which others may be writing.

    :param directory: of the journal
    :param server: only refusals of the server with this UUID
    :raises JournalError: if the directory cannot be read
    """
    refusals: list[entry.Refusal] = []
    unread: list[str] = []
    lost = 0
    try:
        found = files.listed(directory)
    except OSError as exc:
        raise JournalError(f'{directory}: {exc.strerror or exc}') from exc
    for file in found:
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
                elif server is None or server in (
                        value.server, *value.before):
                    refusals.append(value)
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
    return Journal(tuple(refusals), lost, tuple(unread))


def refusals(directory: str, server: str) -> list[entry.Refusal]:
    """The refusals of a server, the oldest first.

    :param directory: of the journal
    :param server: its UUID
    :raises JournalError: if the directory cannot be read
    """
    return list(read(directory, server).refusals)


def by_policy(journal: Journal) -> dict[str, int]:
    """How many refusals each policy had a part in.

    :param journal: a journal
    :returns: policy, without its value -> number of refusals for which a host
        was refused by it
    """
    counts: dict[str, int] = {}
    for refusal in journal.refusals:
        for policy in {reason.policy.partition('=')[0]
                       for reason in refusal.reasons}:
            counts[policy] = counts.get(policy, 0) + 1
    return counts


def _lines(path: str) -> Iterator[bytes]:
    """The lines of a file; what is too long for one comes in pieces."""
    with open(path, 'rb') as file:
        while line := file.readline(_MAX_LINE):
            yield line
