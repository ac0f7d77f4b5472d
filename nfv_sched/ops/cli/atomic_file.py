# SPDX-License-Identifier: Apache-2.0
"""Write files: completely or not at all, and never over another user's link.

A file is written beside the one that it replaces, is on disk before it takes
its name, and only its owner can read it.  ``-`` is standard output.
"""

from collections.abc import Callable
import contextlib
import io
import os
import secrets
import stat
import sys
import typing as ty

from nfv_sched.base import files
from nfv_sched.ops.cli import errors

STDOUT = '-'

_MODE = 0o600
# Linux gives up after as many links (MAXSYMLINKS), too: ELOOP.
_MOST_LINKS = 40


class WriteError(errors.CloudUnreadError):
    """Failure to write a file; the message has its path and the reason."""


def is_stdout(path: str | None) -> bool:
    return path in (STDOUT, '/dev/stdout')


def write(path: str, fill: Callable[[ty.BinaryIO], ty.Any]) -> int:
    """Write a file, or to standard output.

    An existing file of this user keeps its permissions and group; any other
    file gets mode 0600.  If anything fails, including ``fill``, the old file
    stays and the temporary file is removed.

    :param path: may be a link; see :func:`target`
    :returns: the size in bytes
    :raises WriteError: if the file cannot be written
    """
    if is_stdout(path):
        content = io.BytesIO()
        fill(content)
        sys.stdout.flush()
        sys.stdout.buffer.write(content.getvalue())
        sys.stdout.buffer.flush()
        return len(content.getvalue())
    folder, name = os.path.split(target(path))
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return _write_and_rename(directory, name, fill)
        finally:
            os.close(directory)
    except OSError as exc:
        raise WriteError(f'{path}: {exc.strerror or exc}') from exc


def target(path: str) -> str:
    """Return the path of the file that :func:`write` would replace.

    :raises WriteError: if it is not a regular file, or behind a link of
        another user; links to folders may also belong to root
    """
    with files.naming(path, WriteError):
        links = 0
        if not os.path.basename(path) or is_stdout(path):
            raise ValueError('not a regular file')
        rest = os.path.abspath(path).split(os.sep)[1:]
        resolved = os.sep
        while rest:
            part = rest.pop(0)
            if part in ('', os.curdir):
                continue
            if part == os.pardir:
                resolved = os.path.dirname(resolved)
                continue
            here = os.path.join(resolved, part)
            try:
                status = os.lstat(here)
            except FileNotFoundError:
                if os.path.exists(path):  # a pipe in /proc/self/fd
                    raise ValueError('not a regular file') from None
                # Opening the folder fails if there is more to come.
                return os.path.join(here, *rest)
            if not stat.S_ISLNK(status.st_mode):
                resolved = here
                continue
            links += 1
            # The last link may itself lead to a path of several parts.
            last = not any(rest)
            if status.st_uid != os.geteuid() and (last or status.st_uid != 0):
                raise ValueError(f'{here} is a symbolic link of another user')
            if links > _MOST_LINKS:
                raise ValueError('too many symbolic links')
            goal = os.readlink(here)
            if goal.startswith(os.sep):
                resolved = os.sep
            rest = goal.split(os.sep) + rest
        if not stat.S_ISREG(os.lstat(resolved).st_mode):
            raise ValueError('not a regular file')
        return resolved


def _write_and_rename(directory: int, name: str,
                      fill: Callable[[ty.BinaryIO], ty.Any]) -> int:
    temporary = f'.{name[:100]}.{secrets.token_hex(8)}'
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE,
        dir_fd=directory)
    try:
        with os.fdopen(descriptor, 'wb') as file:
            fill(file)
            file.flush()
            _set_mode(file.fileno(), directory, name)
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    # Sync the folder, so that the new name is on disk, too.  Not every file
    # system supports that.
    with contextlib.suppress(OSError):
        os.fsync(directory)
    return size


def _set_mode(descriptor: int, directory: int, name: str) -> None:
    """Give a new file the permissions and group of the one it replaces."""
    try:
        old = os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(old.st_mode) or old.st_uid != os.geteuid():
        return
    mode = stat.S_IMODE(old.st_mode) & 0o777
    try:
        os.fchown(descriptor, -1, old.st_gid)
    except OSError:
        mode &= ~0o070  # it would be that of another group
    os.fchmod(descriptor, mode)
