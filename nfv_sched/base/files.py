# SPDX-License-Identifier: Apache-2.0
"""Read files within limits of memory and time.

A file may be made to fill the memory of its reader or to occupy it for hours.
One number limits all: the size of a file, after decompression.  Items and YAML
are limited in proportion to it; depth and single texts have fixed limits.
"""

from collections.abc import Iterator
import contextlib
import errno
import io
import json
import math
import os
import re
import stat
import typing as ty
import zlib

#: Default maximum size of a file, MiB.
DEFAULT = 128
OPTION = '--max-file-size'

#: Maximum depth of lists and mappings.
MAX_DEPTH = 64
#: Maximum length of a text, in characters.
MAX_TEXT = 1 << 18
#: Maximum number of digits; YAML reads base 60 in quadratic time.
MAX_DIGITS = 64

# A file may have one item for each so many bytes of its maximum size. A list
# of thousands of hosts has about 13 bytes for each item.
_BYTES_PER_ITEM = 16
# YAML is read by plain Python, 1 MiB in some seconds.
_YAML_PART = 16
_BYTES_PER_YAML_ITEM = 32
_GZIP = b'\x1f\x8b'
_CHUNK = 1 << 20
# Of compressed bytes; 1 of them becomes 1032 at most.
_SMALL_CHUNK = 1 << 14
# A file may have one member of gzip for each so many bytes of its maximum
# size; bgzip makes one of 64 KiB.
_BYTES_PER_MEMBER = 1 << 14
_WITH_HEADER = zlib.MAX_WBITS + 16
# Surrogates: halves of characters; a half alone cannot be encoded.
_HALVES = re.compile(rb'\\u[dD][89a-fA-F]')

_size = DEFAULT << 20


class FileLimitError(ValueError):
    """A file exceeds a limit; the text names it and how to raise it."""


@contextlib.contextmanager
def limited(mebibytes: int) -> Iterator[None]:
    """Set the maximum size of files, in MiB after decompression."""
    global _size
    before, _size = _size, mebibytes << 20
    try:
        yield
    finally:
        _size = before


@contextlib.contextmanager
def naming(what: str, error: type[Exception]) -> Iterator[None]:
    """Raise errors of reading as ``error``, after a path or what was read."""
    try:
        yield
    except (error, OSError, EOFError, ValueError, RecursionError,
            zlib.error) as exc:
        reason = getattr(exc, 'strerror', None) or (
            'is not valid UTF-8' if isinstance(exc, UnicodeDecodeError) else
            'nested too deeply' if isinstance(exc, RecursionError) else
            ' '.join(str(exc).split()))
        raise error(f'{what}: {reason}') from exc


def max_items() -> int:
    return _size // _BYTES_PER_ITEM


def max_yaml_size() -> int:
    return _size // _YAML_PART


def max_yaml_items() -> int:
    # Items of an alias or a merge count each time that they are used.
    return max_yaml_size() // _BYTES_PER_YAML_ITEM


def beyond(what: str) -> FileLimitError:
    """Return the error for a file of more than, for example, ``100 items``."""
    return FileLimitError(f'has more than {what}; {OPTION} raises the limit, '
                          f'now {_size >> 20} MiB')


def read(path: str, size: int | None = None) -> bytes:
    """Read a file; see :func:`unpack` for what is raised."""
    if is_named_pipe(path):
        raise OSError(errno.EINVAL, 'is a named pipe', path)
    with open(path, 'rb') as raw:
        return unpack(raw, size)


def unpack(raw: io.BufferedReader, size: int | None = None) -> bytes:
    """Read an open file, compressed by gzip or not; may raise OSError.

    :param size: maximum size in bytes, if less than for other files
    :raises EOFError, zlib.error: if it is damaged
    :raises FileLimitError: if it is too large
    """
    most = _size if size is None else size
    chunks = []
    count = 0
    for chunk in (_inflate(raw, most) if raw.peek(2)[:2] == _GZIP
                  else iter(lambda: raw.read(_CHUNK), b'')):
        count += len(chunk)
        if count > most:
            raise _beyond_size(most)
        chunks.append(chunk)
    return b''.join(chunks)


def _beyond_size(most: int) -> FileLimitError:
    return beyond(f'{most >> 20} MiB' if most >= 1 << 20 else f'{most} bytes')


def _inflate(raw: io.BufferedReader, most: int) -> Iterator[bytes]:
    """Yield a gzip file's content, perhaps more than ``most`` bytes."""
    # NOTE: gzip.GzipFile skips empty members, and zeros after the last one,
    # within one call, byte by byte: a sparse file would never end.
    most_members = max(_size // _BYTES_PER_MEMBER, 1)
    count = members = 0
    member = None
    while chunk := raw.read(_SMALL_CHUNK):
        count += len(chunk)
        # What cannot be compressed grows by less than 1 part in 1000.
        if count > most + _CHUNK:
            raise _beyond_size(most)
        while chunk:
            if member is None:
                chunk = chunk.lstrip(b'\0') if members else chunk
                if not chunk:
                    break
                members += 1
                if members > most_members:
                    raise beyond(f'{most_members} members of gzip')
                member = zlib.decompressobj(_WITH_HEADER)
            yield member.decompress(chunk)
            chunk = member.unused_data
            if member.eof:
                member = None
    if member is not None:
        raise EOFError('ends before the end of its last member')


def max_size() -> int:
    return _size


def is_named_pipe(path: str) -> bool:
    """Return whether reading may wait for ever; ``<(...)`` has no name."""
    try:
        return stat.S_ISFIFO(os.stat(os.path.realpath(path)).st_mode)
    except OSError:
        return False


def parse_json(content: bytes) -> ty.Any:
    """Parse JSON whose depth and texts the caller checks.

    :raises FileLimitError: if it has too many items
    :raises ValueError: if it is not strict JSON in UTF-8: NaN, or halves of
        characters
    :raises RecursionError: if it is nested too deeply
    """
    # Quick estimate: some of these marks are in texts and start no item.
    if sum(content.count(mark) for mark in (b',', b'[', b'{')) > max_items():
        raise beyond(f'{max_items()} items')
    # Of bytes, json.loads() would also take UTF-16, and halves of characters.
    try:
        text = content.decode('utf-8-sig')
        data = json.loads(text, parse_float=_finite_number,
                          parse_constant=_finite_number)
    except UnicodeDecodeError as exc:
        raise ValueError(f'not UTF-8 from byte {exc.start} on') from exc
    except json.JSONDecodeError as exc:
        raise ValueError(
            f'not JSON from line {exc.lineno}, column {exc.colno} on'
            if text.strip() else 'the file is empty') from exc
    if _HALVES.search(content):
        json.dumps(data, ensure_ascii=False).encode()
    return data


def check(data: ty.Any) -> None:
    """Check depth, texts and numbers; raise FileLimitError beyond a limit."""
    level = [data]
    for _depth in range(MAX_DEPTH + 1):
        below: list[ty.Any] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each)
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
            elif isinstance(each, str):
                if len(each) > MAX_TEXT:
                    raise FileLimitError(
                        f'has a text of more than {MAX_TEXT} characters')
            elif isinstance(each, int) and each.bit_length() > MAX_DIGITS * 3:
                raise FileLimitError(
                    f'has a number of more than {MAX_DIGITS} digits')
        if not below:
            return
        level = below
    raise FileLimitError(f'nested too deeply: more than {MAX_DEPTH} levels')


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f'{text[:40]} is not a finite number')
    return number
