# SPDX-License-Identifier: Apache-2.0
"""Save and load snapshots, as compressed JSON with a format version."""

import dataclasses
import functools
import gzip
import io
import json
import os
import stat
import typing as ty
import zlib

from nfv_sched.base import extra_specs
from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation

FORMAT = 'nfv-sched snapshot'
#: Format versions that can be read.
VERSIONS = (1, snapshot.VERSION)

#: The message for a file of another kind.
NEITHER = ('neither a snapshot, which "nfv-sched snapshot save" writes, nor a '
           'cloud file')

_GZIP = b'\x1f\x8b'
# Most messages to keep from a file: masking secrets in them takes time.
_MAX_MISSING = 1000


class FileError(errors.CloudUnreadError):
    """Failure to read a snapshot; the message has path and reason."""


class NotASnapshotError(FileError):
    """A file is neither a snapshot nor a cloud file."""

    def __init__(self, path: str, why: str = ''):
        super().__init__(f'{path}: {NEITHER}{why and f": {why}"}')


def save(cloud: snapshot.Cloud, path: str) -> int:
    """Write a snapshot, which only its owner can read; return its bytes."""
    return atomic_file.write(path, functools.partial(dump, cloud))


def dump(cloud: snapshot.Cloud, raw: ty.BinaryIO) -> None:
    data = {'format': FORMAT, 'version': snapshot.VERSION,
            'cloud': codec.encode(cloud)}
    # Without a time, so that equal snapshots make equal files.
    with gzip.GzipFile('', 'wb', fileobj=raw, mtime=0) as packed:
        with io.TextIOWrapper(packed, 'utf-8') as text:
            json.dump(data, text, separators=(',', ':'))


def is_snapshot(path: str) -> bool:
    with files.naming(path, FileError):
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            # The file is read twice, which a pipe does not allow, and a
            # pipe may never end.
            raise FileError('not a regular file')
        with open(path, 'rb') as raw:
            start = raw.read(64)
    is_snapshot = start.startswith(_GZIP) or start.lstrip().startswith(b'{')
    if path.endswith('.gz') and not is_snapshot:
        raise FileError(f'{path}: damaged gzip file: not gzip')
    return is_snapshot


def load(path: str, content: bytes | None = None) -> snapshot.Cloud:
    """Read a snapshot, or ``content`` in its place; may raise FileError."""
    try:
        data = files.parse_json(
            files.read(path) if content is None
            else files.unpack(io.BufferedReader(io.BytesIO(content))))
    except (files.FileLimitError, OSError) as exc:
        raise FileError(
            f'{path}: {getattr(exc, "strerror", None) or exc}') from exc
    except (EOFError, zlib.error) as exc:
        reason = 'it is cut off' if isinstance(exc, EOFError) else exc
        raise FileError(f'{path}: damaged gzip file: {reason}') from exc
    except RecursionError as exc:
        raise NotASnapshotError(path, 'nested too deeply') from exc
    except ValueError as exc:
        raise NotASnapshotError(path, str(exc)) from exc
    if not isinstance(data, dict) or data.get('format') != FORMAT:
        raise NotASnapshotError(path)
    version, fields = data.get('version'), data.get('cloud')
    if version not in VERSIONS:
        raise FileError(
            f'{path}: a snapshot of version {extra_specs.shown(version)}; '
            'this release of nfv-sched reads versions '
            f'{" and ".join(map(str, VERSIONS))}')
    if version == 1 and isinstance(fields, dict) and isinstance(
            fields.get('missing'), list):
        # It has sentences.
        fields['missing'] = [
            {'kind': snapshot.MissingKind.OTHER, 'text': sentence}
            for sentence in fields['missing']]
    with files.naming(path, FileError):
        cloud = codec.decode(snapshot.Cloud, fields)
        validation.check_names(cloud)
        validation.check(cloud)
    # An older release may have saved errors with their secrets.
    missing = [
        dataclasses.replace(each, text=strings.mask_secrets(each.text))
        for each in cloud.missing[:_MAX_MISSING]]
    if len(cloud.missing) > _MAX_MISSING:
        missing.append(snapshot.Missing(
            kind=snapshot.MissingKind.OTHER,
            text=f'{len(cloud.missing) - _MAX_MISSING} more messages of the '
                 'snapshot are left out'))
    return dataclasses.replace(cloud, missing=tuple(missing))
