# SPDX-License-Identifier: Apache-2.0
"""List, write and remove the files of a journal.

Each process writes files of its own, one after the other, so that no process
has to wait for another one and a file is never renamed.  A file consists of
the lines of :mod:`nfv_sched.journal.entry`.  All processes together keep to
the configured size of the journal: a process that writes removes the oldest
files first, those of processes that have ended included.

Before a file is removed, the last entries of each project are copied from it
to the file of the process that removes it, so that a project with many
refusals displaces its own, not those of others.
"""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import errno
import fcntl
import os
import re
import stat
import time
import typing as ty
import uuid

from nfv_sched.journal import entry

#: A file has at most 1/PARTS of the size of the journal.
PARTS = 8

#: Maximum number of entries of a project to copy from the files that are
#: removed at once.
SHARE = 16

#: Maximum number of files to remove at once.
MAX_OPEN = 64

#: Maximum number of bytes to copy at once, so that memory is bounded.
MAX_COPIED = 16 * 2 ** 20

_MOST_LINKS = 40  # of a path, as in Linux
_NAME = re.compile(r'refusals-\d{8}T\d{6}Z-\d+-[0-9a-f]{8}\.jsonl')


class File(ty.NamedTuple):
    """A file of a journal.

    :ivar changed: when it was last written, ns since the epoch
    :ivar path: path of the file
    :ivar size: bytes
    """

    changed: int
    path: str
    size: int


def listed(directory: str) -> list[File]:
    """Return the files of a journal; the one written last comes last.

    Other files, and entries of other types, are left out.

    :raises OSError: if the directory cannot be read
    """
    return sorted(_files(directory))


def _files(directory: str) -> Iterator[File]:
    with os.scandir(directory) as items:
        for item in items:
            if not _NAME.fullmatch(item.name):
                continue
            with contextlib.suppress(FileNotFoundError):
                status = item.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield File(status.st_mtime_ns, item.path, status.st_size)


def changeable(directory: str) -> str | None:
    """Return the first part of a path that other users can change.

    It is a folder or link that belongs to neither this user nor root, or a
    folder in which everybody may write; further up on the path that matters
    only without the sticky bit.  What is missing is made by this user.
    """
    path = os.path.abspath(directory)
    for _link in range(_MOST_LINKS):
        parts = path.split(os.sep)
        for number in range(1, len(parts) + 1):
            part = os.sep.join(parts[:number]) or os.sep
            try:
                status = os.lstat(part)
                if status.st_uid not in (0, os.geteuid()):
                    return part
                if stat.S_ISLNK(status.st_mode):
                    path = os.path.normpath(os.path.join(
                        os.path.dirname(part), os.readlink(part),
                        *parts[number:]))
                    break
            except OSError:
                return None
            if status.st_mode & stat.S_IWOTH and not (
                    number < len(parts) and status.st_mode & stat.S_ISVTX):
                return part
        else:
            return None
    return None


class _Line(ty.NamedTuple):
    """An entry that may be copied.

    :ivar time: when its last refusal was
    :ivar count: number of refusals in it
    """

    time: str
    project: str
    count: int
    text: bytes


class Writer:
    """A writer of a journal, for one process; for use by one thread.

    :param directory: directory of the journal; created when needed
    :param size: maximum size of all its files together, in bytes
    """

    def __init__(self, directory: str, size: int):
        self.directory = directory
        self.size = size
        self._file: int | None = None
        self._path = ''
        self._written = 0

    @property
    def longest(self) -> int:
        """Maximum number of bytes to write at once."""
        return self.size // PARTS

    @property
    def _most_copied(self) -> int:
        """Maximum number of bytes to copy before files are removed."""
        return min(self.longest * 3 // 8, MAX_COPIED)

    def write(self, data: bytes) -> None:
        """Append to the file of this process.

        :param data: whole lines, not longer than :attr:`longest`
        :raises OSError: if it cannot be written
        """
        self._make_room(len(data))
        self._append(data)

    def close(self) -> None:
        """Close the file; the next write opens another one."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
        self._file, self._written = None, 0

    def _append(self, data: bytes) -> None:
        if self._written + len(data) > self.longest:
            self.close()
        # NOTE: another process that removes the file has the lock meanwhile.
        # Entries written after it has read the file would be lost.
        while self._file is None or not _lock(self._file):
            self.close()
            self._open()
        try:
            rest = memoryview(data)
            while rest:
                count = os.write(self._file, rest)
                rest = rest[count:]
            self._written += len(data)
            _unlock(self._file)
        except OSError:
            try:
                os.ftruncate(self._file, self._written)
                _unlock(self._file)
            except OSError:
                self.close()
            raise

    def _open(self) -> None:
        name = 'refusals-{}-{}-{}.jsonl'.format(
            time.strftime('%Y%m%dT%H%M%SZ', time.gmtime()), os.getpid(),
            uuid.uuid4().hex[:8])
        self._path = os.path.join(self.directory, name)
        # Host names and resources are for operators, not for other users.
        self._file = os.open(
            self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL |
            os.O_CLOEXEC, 0o600)

    def _make_room(self, needed: int) -> None:
        """Remove the oldest files until some number of bytes is free."""
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        while True:
            files = listed(self.directory)
            room = self.size - needed - sum(file.size for file in files)
            # One process frees space, in time for the copies; the others
            # continue to write meanwhile.
            if room >= self._most_copied + self.longest // 8:
                return
            if not self._remove_oldest(files, room < self._most_copied):
                return

    def _remove_oldest(self, files: Iterable[File], full: bool) -> bool:
        """Remove the oldest files, except for the share of each project.

        :param files: the oldest first
        :param full: whether to remove others if another process uses the
            oldest, which it may be about to remove
        :returns: whether more bytes are free now
        """
        with contextlib.ExitStack() as stack:
            size = 0
            oldest: list[ty.BinaryIO] = []
            for file in files:
                if size >= self.longest or len(oldest) == MAX_OPEN:
                    break
                if file.path == self._path:
                    self.close()
                try:
                    # For writing, as NFS demands for the lock.
                    opened = stack.enter_context(open(file.path, 'r+b'))
                except FileNotFoundError:
                    return True  # another process has freed space
                except PermissionError:
                    os.unlink(file.path)
                    return True  # of another user: cannot be copied
                if _lock(opened.fileno()):
                    oldest.append(opened)
                    size += file.size
                elif not full:
                    return False
            copied = self._lines_to_copy(oldest, self._most_copied)
            # Copied first if there is space, so that nothing is lost if this
            # process dies.
            if copied and not full:
                self._append(copied)
            for opened in oldest:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(opened.name)
            if copied and full:
                self._append(copied)
        return bool(oldest)

    def _lines_to_copy(
        self, files: Iterable[ty.BinaryIO], limit: int,
    ) -> bytes:
        """Return the lines to copy before files are removed."""
        lines: list[_Line] = []
        size = total = lost = removed = 0
        latest = ''
        for value, text in self._entries(files):
            latest = max(latest, value.time)
            if isinstance(value, entry.Lost):
                lost += value.count
                removed += value.removed
                continue
            if isinstance(value, entry.PlacedServer):
                continue  # only refusals are worth more than their age
            total += value.count
            lines.append(
                _Line(value.time, value.project, value.count, text))
            size += len(text)
            if size > 2 * limit:
                lines = _shares(lines, limit)
                size = sum(len(line.text) for line in lines)
        lines = _shares(lines, limit)
        removed += total - sum(line.count for line in lines)
        texts = [entry.copy(line.text) for line in lines]
        if lost or removed:
            texts.append(entry.line(entry.Lost(
                time=latest, count=lost, removed=removed)))
        return b''.join(texts)

    def _entries(self, files: Iterable[ty.BinaryIO]) -> Iterator[
            tuple[entry.Refusal | entry.PlacedServer | entry.Lost, bytes]]:
        """Yield the entries of files, each with its line."""
        for file in files:
            while text := file.readline(self.longest):
                # Others are cut off, or of a later release.
                with contextlib.suppress(entry.LineError):
                    yield entry.parse(text), text


def _shares(lines: Iterable[_Line], limit: int) -> list[_Line]:
    """Return the last lines of each project.

    The last one of each project comes first, without some of its hosts if
    there are many projects, then the last but one of each, and so on.

    :param limit: maximum length of all, in bytes
    :returns: lines, sorted by time
    """
    counts: collections.Counter[str] = collections.Counter()
    ranked: list[tuple[int, _Line]] = []
    # NOTE: lines are there twice if a process died while it copied them.
    for line in sorted(set(lines), reverse=True):
        ranked.append((counts[line.project], line))
        counts[line.project] += 1
    longest = limit // max(len(counts), 1)
    chosen: list[_Line] = []
    for rank, line in sorted(ranked, key=lambda pair: pair[0]):
        if rank == 0 and len(line.text) > longest:
            with contextlib.suppress(entry.LineError):
                line = line._replace(text=entry.short_line(
                    entry.parse(line.text), longest))
        if rank < SHARE and len(line.text) <= limit:
            chosen.append(line)
            limit -= len(line.text)
    return sorted(chosen)


def _lock(file: int) -> bool:
    """Lock a file until it is closed or unlocked, without waiting.

    :param file: its descriptor
    :returns: whether it is locked, and is still in the journal
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as exc:
        if exc.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
            raise
        # A file system without locks; two processes may disturb each other.
    return bool(os.fstat(file).st_nlink)


def _unlock(file: int) -> None:
    with contextlib.suppress(OSError):  # it is not locked; see above
        fcntl.flock(file, fcntl.LOCK_UN)
