# SPDX-License-Identifier: Apache-2.0
"""Write the journal through a logger of the standard library.

Each process writes files of its own, one after the other: lines of several
processes never mix, and no file is renamed while somebody reads it.  A process
that begins a file removes the oldest ones before, those of processes that have
ended included.  No file stays open between two lines.
"""

import contextlib
import functools
import logging
from logging import handlers
import os
import re
import stat
import sys
import time
import typing as ty
import uuid

from oslo_log import log as oslo_logging

from nfv_sched.journal import entry

LOG = oslo_logging.getLogger(__name__)

#: A file has at most 1/PARTS of the size of the journal.
PARTS = 8

#: Maximum number of files.
MOST_FILES = 128

#: Maximum number of characters in a line, about 10,000 names of hosts.
LONGEST = 1 << 18

_NAME = re.compile(r'refusals-\d{8}T\d{6}Z-\d+-[0-9a-f]{8}\.jsonl')


class File(ty.NamedTuple):
    changed: int  #: when it was last written, ns since the epoch
    path: str
    size: int  #: bytes


def listed(directory: str) -> list[File]:
    """Return a journal's files, the last written last; may raise OSError."""
    files = []
    with os.scandir(directory) as items:
        for item in items:
            with contextlib.suppress(FileNotFoundError):
                status = item.stat(follow_symlinks=False)
                if _NAME.fullmatch(item.name) and stat.S_ISREG(status.st_mode):
                    files.append(
                        File(status.st_mtime_ns, item.path, status.st_size))
    return sorted(files)


def stamp(seconds: float) -> str:
    """Return seconds since the epoch in ISO 8601, UTC, with milliseconds."""
    whole = int(seconds)
    return time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole)) + (
        f'.{int((seconds - whole) * 1000):03d}Z')


def write(value: entry.Refusal | entry.PlacedServer, directory: str,
          size: int) -> None:
    """Write an entry; if that fails, say so in the log once.

    :param size: maximum size of all files together, in bytes
    :raises LineError: if the entry is too long
    """
    text = entry.short_line(value, min(size // PARTS // 2, LONGEST))
    _logger(os.getpid(), directory, size).info('%s', text)


@functools.lru_cache(maxsize=1)
def _logger(_process: int, directory: str, size: int) -> logging.Logger:
    """Return the logger of this process, which has no file open yet."""
    # Not one of getLogger(), which would write to Nova's log, too.
    logger = logging.Logger(__name__)
    logger.addHandler(_JournalHandler(directory, size))
    return logger


class _JournalHandler(handlers.RotatingFileHandler):
    """A handler for the files of a process, which only their owner reads.

    It counts the lines that cannot be written, and those in files that are
    removed, and writes their number before the next line.
    """

    def __init__(self, directory: str, size: int):
        super().__init__(_new_path(directory), maxBytes=size // PARTS,
                         encoding='utf-8', delay=True)
        self._directory = directory
        self._size = size
        self._end = self._lost = self._removed = 0

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if not (self._lost or self._removed):
            return text
        return entry.line(entry.Lost(
            time=stamp(record.created), count=self._lost,
            removed=self._removed)) + self.terminator + text

    def emit(self, record: logging.LogRecord) -> None:
        lost = self._lost
        super().emit(record)
        if self._lost > lost:
            return
        self.close()  # another process may remove the file
        self._lost = self._removed = 0
        if lost:
            LOG.info('The decision journal in %s can be written again',
                     self._directory)

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if self.stream is not None:
            # Half a line would spoil the next one.
            with contextlib.suppress(OSError):
                self.close()
            with contextlib.suppress(OSError):
                os.truncate(self.baseFilename, self._end)
        if not self._lost:
            LOG.warning(
                'The decision journal in %s cannot be written, entries are '
                'missing there until it can: %s', self._directory, error)
        self._lost += 1

    def doRollover(self) -> None:
        self.close()
        self.baseFilename = _new_path(self._directory)

    def _open(self) -> ty.TextIO:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        status = os.stat(self._directory)
        if (status.st_uid not in (0, os.geteuid()) or
                status.st_mode & stat.S_IWOTH):
            raise PermissionError(
                'the folder belongs to another user, or is open to all for '
                'writing')
        if not os.path.exists(self.baseFilename):
            self._make_room()
        # Names of hosts and what is free there are for operators only.
        stream = open(
            self.baseFilename, 'a', encoding=self.encoding,
            opener=lambda path, flags: os.open(
                path, flags | os.O_NOFOLLOW, 0o600))
        self._end = stream.tell()
        return stream

    def _make_room(self) -> None:
        files = listed(self._directory)
        excess = sum(file.size for file in files) + self.maxBytes - self._size
        for count, file in enumerate(files):
            if excess <= 0 and len(files) - count < MOST_FILES:
                break
            # Another process may remove it, too.
            with contextlib.suppress(OSError), open(file.path, 'rb') as opened:
                self._removed += sum(1 for _line in opened)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.path)
            excess -= file.size


def _new_path(directory: str) -> str:
    return os.path.join(directory, 'refusals-{}-{}-{}.jsonl'.format(
        time.strftime('%Y%m%dT%H%M%SZ', time.gmtime()), os.getpid(),
        uuid.uuid4().hex[:8]))
