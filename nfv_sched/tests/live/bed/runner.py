# SPDX-License-Identifier: Apache-2.0
"""A command, such as the tests, run with a bed."""

from collections.abc import Sequence
import os
import pathlib
import re
import subprocess
import sys

from nfv_sched.tests.live.bed import bed as bed_module
from nfv_sched.tests.live.bed import layout as bed_layout
from nfv_sched.tests.live.bed import processes

_ERROR = re.compile(r' (ERROR|CRITICAL) \S+ \[')
_LINES = 5


def run(directory: pathlib.Path, command: Sequence[str],
        new: bool = False, keep: bool = False,
        description: pathlib.Path | None = None) -> int:
    """Bring a bed up, run a command, and take the bed down again.

    A bed that runs already is used as it is, and goes on running.

    :param command: program and arguments; the environment variable
        ``NFV_SCHED_LIVE`` tells it the directory
    :param new: whether a stopped bed is replaced by a new one, which is
        removed if the command succeeds
    :param keep: whether the bed goes on running in any case
    :raises BedError: if the bed does not come up
    """
    with bed_module.lock(directory.with_name(directory.name + '.run'),
                         f'The bed in {directory} is used by another "run"'):
        ran = bed_layout.exists(directory) and bed_module.Bed(
            directory).running
        if new and not ran:
            bed_module.Bed.down(directory, purge=True)
        bed = bed_module.Bed.up(directory, description=description)
        status = 1
        try:
            status = subprocess.call(
                command,
                env={**os.environ, bed_module.VARIABLE: str(directory)})
            if status:
                print(complaints(bed), file=sys.stderr)
        finally:
            if not (ran or keep):
                bed_module.Bed.down(directory, purge=new and not status)
    return status


def complaints(bed: bed_module.Bed) -> str:
    """What the services say that may be why something has failed."""
    parts = []
    for service in bed.services.values():
        if service.state != 'running':
            parts.append(f'{service.name} is {service.state}, see '
                         f'{service.log}:\n{processes.tail(service.log)}')
            continue
        lines = [line for line in service.log.read_text(
            errors='replace').splitlines() if _ERROR.search(line)]
        if lines:
            shown = '\n'.join('    ' + line[:300] for line in lines[-_LINES:])
            parts.append(f'{service.name} has logged {len(lines)} lines of '
                         f'errors, see {service.log}:\n{shown}')
    return '\n'.join(parts) or 'No service has logged an error.'
