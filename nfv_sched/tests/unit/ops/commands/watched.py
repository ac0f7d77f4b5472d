# SPDX-License-Identifier: Apache-2.0
"""Run a command and write what it did on the machine.

A module for ``python -m``: an audit hook cannot be removed from a process.
The first argument is a file for the events, the second a text, the rest those
of ``nfv-sched``.  An event is written if the text is in one of its arguments,
or if it starts a process or opens a connection.
"""

import json
import sys

#: Events that no command has while it reads files.
FORBIDDEN = ('os.exec', 'os.fork', 'os.posix_spawn', 'os.spawn', 'os.system',
             'socket.connect', 'socket.getaddrinfo', 'socket.sendto',
             'subprocess.Popen')
# oslo.utils learns the address of this machine by a route to it; no packet is
# sent.
_OWN_ADDRESS = "('192.0.2.0', 80)"
# ctypes asks for the path of a library, as pyroute2 does for os-vif up to
# Nova 31 when it is imported.
_LIBRARIES = "('/sbin/ldconfig', ['/sbin/ldconfig', '-p'], None, "
#: Events that do something with what is named in their arguments.
NAMED = ('exec', 'glob.glob', 'import', 'open', 'os.', 'shutil.', 'socket.',
         'tempfile.', 'urllib.Request')


def is_noted(event: str, values: tuple, marker: str) -> bool:
    """Return whether an audit event is one that a file must not cause."""
    if not event.startswith((*FORBIDDEN, *NAMED)):
        return False
    text = repr(values)
    if event == 'socket.connect' and _OWN_ADDRESS in text:
        return False
    if event == 'subprocess.Popen' and text.startswith(_LIBRARIES):
        return False
    return event.startswith(FORBIDDEN) or marker in text


def main() -> int:
    path, marker, *arguments = sys.argv[1:]
    events: list[tuple[str, str]] = []

    def note(event: str, values: tuple) -> None:
        if is_noted(event, values, marker):
            events.append((event, repr(values)))

    sys.addaudithook(note)
    from nfv_sched.ops.cli import base
    code = base.main(arguments)
    seen = list(events)
    with open(path, 'w') as file:
        json.dump(seen, file)
    return code


if __name__ == '__main__':
    sys.exit(main())
