# SPDX-License-Identifier: Apache-2.0
"""Loopback ports, so that several beds can run side by side.

A bed gets a block of ports and keeps it as long as its directory is there.
Which blocks are taken is written down in a file of the user, under a lock;
ports that anybody else listens on are left alone.
"""

from collections.abc import Sequence
import fcntl
import json
import os
import pathlib
import socket
import tempfile

from nfv_sched.tests.live.bed import errors

ADDRESS = '127.0.0.1'

# Below the ports that systems give to outgoing connections.
_FIRST = 20400
_LAST = 30000
_BLOCK = 16


def _registry() -> pathlib.Path:
    return (pathlib.Path(tempfile.gettempdir()) /
            f'nfv-sched-live-{os.getuid()}.json')


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def _change(function):
    """Apply a function to the blocks that are taken, by directory."""
    with open(_registry(), 'a+') as registry:
        fcntl.flock(registry, fcntl.LOCK_EX)
        registry.seek(0)
        text = registry.read()
        taken = {directory: first
                 for directory, first in json.loads(text or '{}').items()
                 if os.path.isdir(directory)}
        result = function(taken)
        registry.truncate(0)
        registry.write(json.dumps(taken))
        return result


def reserve(directory: pathlib.Path, names: Sequence[str]) -> dict[str, int]:
    """Reserve ports for a bed: its former ones, if they are free.

    :param directory: of the bed; it exists
    :raises BedError: if no block of ports is free
    """
    def choose(taken):
        blocks = [taken[str(directory)]] if str(directory) in taken else []
        blocks += [first for first in range(_FIRST, _LAST, _BLOCK)
                   if first not in taken.values()]
        for first in blocks:
            if all(is_free(first + index) for index in range(len(names))):
                taken[str(directory)] = first
                return {name: first + index
                        for index, name in enumerate(names)}
        raise errors.BedError(
            f'No block of {len(names)} free ports between {_FIRST} and '
            f'{_LAST} on {ADDRESS}; take down beds that are not needed')

    return _change(choose)


def release(directory: pathlib.Path) -> None:
    _change(lambda taken: taken.pop(str(directory), None))
