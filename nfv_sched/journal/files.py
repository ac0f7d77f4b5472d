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
"""The files of a journal.

Each process writes files of its own, one after the other, so that nobody has
to wait for another one and a file is never renamed.  A file has the lines of
:mod:`nfv_sched.journal.entry`.  All processes together keep to the size that
the journal may have: whoever writes removes the oldest files first, those of
processes that are gone like any other.
"""

from collections.abc import Iterator
import contextlib
import os
import re
import stat
import time
import typing as ty
import uuid

#: A file has at most this part of the size of the journal.
PARTS = 8

_NAME = re.compile(r'refusals-\d{8}T\d{6}Z-\d+-[0-9a-f]{8}\.jsonl')


class File(ty.NamedTuple):
    """A file of a journal.

    :ivar changed: when it was last written, ns since the epoch
    :ivar path: where it is
    :ivar size: bytes
    """

    changed: int
    path: str
    size: int


def listed(directory: str) -> list[File]:
    """The files of a journal; the one that was written last is the last.

    Other files, and what is no file at all, are not among them.

    :param directory: of the journal
    :raises OSError: if it cannot be read
    """
    return sorted(_files(directory))


def _files(directory: str) -> Iterator[File]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if not _NAME.fullmatch(entry.name):
                continue
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    yield File(found.st_mtime_ns, entry.path, found.st_size)


class Writer:
    """Writes to a journal, for one process; for use by one thread.

    :param directory: of the journal; made when it is needed
    :param size: bytes that all its files may have together
    """

    def __init__(self, directory: str, size: int):
        self.directory = directory
        self.size = size
        self._file: int | None = None
        self._path = ''
        self._written = 0

    @property
    def longest(self) -> int:
        """Bytes that may be written at once."""
        return self.size // PARTS

    def write(self, data: bytes) -> None:
        """Append to the file of this process.

        :param data: whole lines, not more than :attr:`longest`
        :raises OSError: if it cannot be written; part of it may be there,
            and what is written next goes to another file
        """
        try:
            if self._written + len(data) > self.longest or self._is_gone():
                self.close()
            self._make_room(len(data))
            if self._file is None:
                self._open()
            left = memoryview(data)
            while left:
                count = os.write(self._file, left)
                left = left[count:]
                self._written += count
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; what is written next goes to another one."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
        self._file, self._written = None, 0

    def _is_gone(self) -> bool:
        """Whether somebody has removed the file."""
        return self._file is not None and not os.fstat(self._file).st_nlink

    def _open(self) -> None:
        name = 'refusals-{}-{}-{}.jsonl'.format(
            time.strftime('%Y%m%dT%H%M%SZ', time.gmtime()), os.getpid(),
            uuid.uuid4().hex[:8])
        self._path = os.path.join(self.directory, name)
        # Host names and what they have are for operators.
        self._file = os.open(
            self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL |
            os.O_CLOEXEC, 0o600)

    def _make_room(self, wanted: int) -> None:
        """Remove the oldest files until there is room.

        :param wanted: bytes
        """
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        files = listed(self.directory)
        excess = sum(file.size for file in files) + wanted - self.size
        for file in files:
            if excess <= 0:
                return
            if self._file is not None and file.path == self._path:
                self.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.path)
            excess -= file.size
