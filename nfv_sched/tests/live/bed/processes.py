# SPDX-License-Identifier: Apache-2.0
"""The processes of a bed: started, watched and ended by what was written down.

Each service is a session of its own.  Its process is recorded with the time at
which it was started, so that another process that has got its number since is
never touched.
"""

from collections.abc import Callable, Mapping, Sequence
import json
import os
import pathlib
import signal
import subprocess
import time
import typing as ty

import psutil

from nfv_sched.tests.live.bed import errors

_LINES_OF_LOG = 15
#: Seconds between two looks.
PAUSE = 0.1
_STOP_SECONDS = 20
_SIGNAL_SECONDS = 5
_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')


def tail(log: pathlib.Path, lines: int = _LINES_OF_LOG) -> str:
    try:
        text = log.read_text(errors='replace').splitlines()[-lines:]
    except FileNotFoundError:
        return '    (no log)'
    return '\n'.join('    ' + line[:300] for line in text)


def run(command: Sequence[str], environment: Mapping[str, str],
        log: pathlib.Path) -> None:
    """Run a command to its end.

    :param environment: all of it
    :raises BedError: if it fails, with the end of the log
    """
    with open(log, 'ab') as output:
        done = subprocess.run(
            command, env=dict(environment), stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT)
    if done.returncode:
        raise errors.BedError(
            f'{os.path.basename(command[0])} failed with status '
            f'{done.returncode}, see {log}:\n{tail(log)}')


def start_of(pid: int) -> tuple[str, int] | None:
    """When a process was started: boot of the system, ticks since.

    None if it is not running; a zombie is not.
    """
    try:
        with open(f'/proc/{pid}/stat') as stat:
            fields = stat.read().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in 'ZX':
        return None
    return _BOOT_ID.read_text().strip(), int(fields[19])


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def marked(name: str, value: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if (process.environ().get(name) == value and
                    process.status() != psutil.STATUS_ZOMBIE):
                found.append(process.pid)
        except psutil.Error:
            pass
    return [pid for pid in found if pid != os.getpid()]


def wait(predicate: Callable[[], object], seconds: float,
         pause: float = PAUSE) -> ty.Any:
    """Wait until something holds or time is up; return the last answer.

    :param predicate: called until it returns something true
    :param pause: seconds between two calls
    """
    limit = time.monotonic() + seconds
    while not (result := predicate()) and time.monotonic() < limit:
        time.sleep(pause)
    return result


def end(pids: Sequence[int], seconds: float = 5) -> None:
    _signal(pids, signal.SIGKILL)
    wait(lambda: not any(map(start_of, pids)), seconds)


class Service:
    """One service of a bed, in any process that knows the bed.

    :param name: what it is called, and its log
    :param environment: all of it
    :param url: where it listens, if it does
    :param ready: called until it returns None; what it returns or raises
        says what is missing
    """

    def __init__(self, name: str, command: Sequence[str],
                 environment: Mapping[str, str], directory: pathlib.Path,
                 url: str = '', ready: Callable[[], str | None] | None = None):
        self.name = name
        self.url = url
        self.log = directory / 'log' / f'{name}.log'
        self._command = list(command)
        self._environment = dict(environment)
        self._directory = directory
        self._record = directory / 'run' / f'{name}.json'
        self._ready = ready
        self._child: subprocess.Popen | None = None

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        if self.alive:
            raise errors.BedError(f'{self.name} is running already')
        self.kill()
        with open(self.log, 'ab') as output:
            try:
                self._child = subprocess.Popen(
                    self._command, env=self._environment, cwd=self._directory,
                    stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True)
            except OSError as exc:
                raise errors.BedError(
                    f'{self.name} cannot be started: {exc}')
        pid = self._child.pid
        boot, ticks = start_of(pid) or ('', 0)
        self._record.write_text(json.dumps(
            {'pid': pid, 'boot': boot, 'started': ticks}))

    def wait_ready(self, seconds: float = 90) -> None:
        """Wait until it does its work.

        :raises BedError: if it ends, or is not ready in time
        """
        missing: str | None = None

        def decided():
            nonlocal missing
            missing = self._missing()
            return missing is None or not self.alive

        ended = wait(decided, seconds)
        if missing is not None:
            what = 'has ended' if ended else (
                f'is not ready after {seconds:.0f} s ({missing[:200]})')
            raise errors.BedError(
                f'{self.name} {what}, see {self.log}:\n{tail(self.log)}')

    def _missing(self) -> str | None:
        """What keeps it from doing its work, None if nothing does."""
        try:
            return self._ready() if self._ready else None
        except Exception as exc:
            return str(exc) or repr(exc)

    def run(self, seconds: float = 90) -> None:
        if not self.alive:
            self.start()
        self.wait_ready(seconds)

    @property
    def pid(self) -> int | None:
        """Its first process, None if that is not running."""
        recorded = self._recorded()
        if recorded and start_of(recorded[0]) == recorded[1]:
            return recorded[0]
        return None

    @property
    def alive(self) -> bool:
        """Whether its first process is running (or frozen)."""
        return self.pid is not None

    @property
    def pids(self) -> list[int]:
        recorded = self._recorded()
        if recorded is None:
            return []
        leader, started = recorded
        if start_of(leader) not in (None, started):
            # Somebody else's by now.
            return []
        return [pid for pid in psutil.pids()
                if _session(pid) == leader and start_of(pid)]

    @property
    def worker_pids(self) -> list[int]:
        """The processes that its first one has forked."""
        pid = self.pid
        if pid is None:
            return []
        return [child.pid for child in psutil.Process(pid).children()
                if start_of(child.pid)]

    @property
    def state(self) -> str:
        if self._recorded() is None:
            return 'stopped'
        pid = self.pid
        if pid is None:
            return 'dead'
        if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
            return 'frozen'
        return 'running'

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Ask it to end; kill what is left of it after that time."""
        pid = self.pid
        if pid is not None:
            self.thaw()
            _signal([pid], signal.SIGTERM)
            wait(lambda: not self.alive, seconds)
        self.kill()

    def kill(self) -> None:
        end(self.pids)
        if self._child is not None:
            self._child.poll()
        self._record.unlink(missing_ok=True)

    def kill_worker(self, pid: int) -> None:
        if pid not in self.pids:
            raise errors.BedError(f'{pid} is no process of {self.name}')
        _signal([pid], signal.SIGKILL)

    def freeze(self) -> None:
        _signal(self.pids, signal.SIGSTOP)
        self._wait_while('running')

    def thaw(self) -> None:
        _signal(self.pids, signal.SIGCONT)
        self._wait_while('frozen')

    def _wait_while(self, state: str) -> None:
        """Wait until the kernel has come to the signal."""
        wait(lambda: self.state != state, _SIGNAL_SECONDS)

    def _recorded(self) -> tuple[int, tuple[str, int]] | None:
        try:
            record = json.loads(self._record.read_text())
        except (FileNotFoundError, ValueError):
            return None
        if self._child is not None and self._child.pid == record['pid']:
            self._child.poll()
        return record['pid'], (record['boot'], record['started'])
