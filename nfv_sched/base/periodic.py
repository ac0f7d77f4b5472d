# SPDX-License-Identifier: Apache-2.0
"""Read values again and again in a background thread.

:class:`Source` holds the latest value in each process that uses it.  Callers
never wait for the service that it is read from, except for a bounded time at
the first call.  :class:`Repeated` computes the pauses between attempts, which
are shorter after a failure; other loops use it, too.

Only the standard threading primitives are used, which also work where
``nova-scheduler`` is patched by eventlet.
"""

import abc
from collections.abc import Callable
import os
import random
import threading
import time
import typing as ty

from oslo_log import log as logging

from nfv_sched.base import strings

Value = ty.TypeVar('Value')


class Stopped(Exception):
    """Raised by a reading that is interrupted because the thread ends."""


class Repeated(metaclass=abc.ABCMeta):
    """A task that is attempted again and again, sooner after a failure.

    :ivar failures: number of failed attempts since the last successful one
    :ivar failing_since: start of the first of them, seconds of
        ``time.monotonic()``
    :ivar last_error: message of the last failure, also after a success; empty
        if there was none
    """

    #: Pause after a first failure, in seconds; it doubles with each further
    #: one, up to the longest.
    FIRST_PAUSE = 1.0

    #: Logger for the end of a series of failures, and start of its message.
    log: logging.KeywordArgumentAdapter
    again: str

    def __init__(self):
        self.failures = 0
        self.failing_since = 0.0
        self.last_error = ''

    @abc.abstractmethod
    def interval(self) -> float:
        """Return the seconds from one attempt to the next."""

    def longest_pause(self) -> float:
        """Return the seconds of pause after many failures."""
        return self.interval()

    def hurries(self) -> bool:
        """Return whether the pause is shorter after a failure."""
        return True

    def least_pause(self, took: float) -> float:
        """Return the least pause after an attempt of ``took`` seconds."""
        return took

    def _count_failure(self, began: float) -> None:
        """Count a failed attempt that began at ``began``."""
        if not self.failures:
            self.failing_since = began
        self.failures += 1

    def _end_failures(self) -> None:
        """Note that an attempt succeeded; log it if earlier ones failed."""
        if self.failures:
            self.log.info('%s, after %d failed attempts in %.0f s',
                          self.again, self.failures,
                          time.monotonic() - self.failing_since)
        self.failures = 0

    def pause(self, took: float) -> float:
        """Return the seconds until the next attempt.

        :param took: seconds that the last one took
        """
        if self.failures and self.hurries():
            pause = min(
                self.FIRST_PAUSE * 2 ** min(self.failures - 1, 32),
                self.longest_pause())
        else:
            pause = max(self.interval() - took, self.least_pause(took))
        # So that processes that started together do not read all at once.
        return pause * random.uniform(0.9, 1.1)


class Refresher(Repeated, ty.Generic[Value]):
    """The thread that reads in one process, and the value that it has read.

    :ivar value: the latest value; None before the first
    :ivar stopped: set when the thread is to end
    """

    #: Name of the thread.
    name: str

    def __init__(self):
        super().__init__()
        self.value: Value | None = None
        self.stopped = threading.Event()
        #: Held while the thread is started or stopped.
        self.lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wait_until = 0.0
        # Only the first reading is waited for: while a service is down,
        # requests go on with the old value, or with none.
        self._first_attempt_ended = threading.Event()
        self._wake_up = threading.Event()
        self._attempt_ended = threading.Condition()
        self._ended_attempt_began = 0.0

    @abc.abstractmethod
    def first_timeout(self) -> float:
        """Return the seconds that callers wait for the first reading."""

    @abc.abstractmethod
    def read(self) -> Value:
        """Read a new value; called in the thread.

        :raises Stopped: if it was interrupted, see :attr:`stopped`
        :raises Exception: anything else counts as a failure and is tried
            again
        """

    def close(self) -> None:
        """Close connections, after a failure and at the end."""

    def succeeded(self, took: float) -> None:
        """Log a successful reading; does nothing by default.

        :param took: seconds that reading took
        """

    def failed(self, exc: Exception) -> None:
        """Log a failed reading; does nothing by default.

        :param exc: the error; ``failures`` counts it already
        """

    def get(self) -> Value | None:
        """Return the latest value; see :meth:`Source.get`."""
        # Looked at without the lock, as each request of nova-scheduler comes
        # by; _start() looks again with it.
        if self._thread is None or not self._thread.is_alive():
            self._start()
        if not self._first_attempt_ended.is_set():
            remaining = self._wait_until - time.monotonic()
            if remaining > 0:
                self._first_attempt_ended.wait(remaining)
        return self.value

    def renew(self, since: float, timeout: float) -> Value | None:
        """Wait for a new value; see :meth:`Source.renew`."""
        self.get()
        deadline = time.monotonic() + timeout
        with self._attempt_ended:
            # A reading that is under way may have passed what the caller waits
            # for, so only one that began later will do.
            while self._ended_attempt_began < since:
                self._wake_up.set()
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not self._attempt_ended.wait(remaining):
                    return None
            return None if self.failures else self.value

    def stop(self) -> None:
        """End the thread and wait for it."""
        with self.lock:
            self.stopped.set()
            self._wake_up.set()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _start(self) -> None:
        with self.lock:
            if self.stopped.is_set() or (
                    self._thread is not None and self._thread.is_alive()):
                return
            # Not for a thread that takes the place of one that died: no
            # request is to wait twice.
            if self._thread is None:
                self._wait_until = time.monotonic() + self.first_timeout()
            thread = threading.Thread(
                target=self._run, name=self.name, daemon=True)
            thread.start()
            self._thread = thread

    def _keep_error(self, exc: Exception) -> None:
        # Not the exception, which would keep its frames and their objects.
        self.last_error = strings.mask_secrets(f'{type(exc).__name__}: {exc}')

    def _call_logged(self, function: Callable[..., None], *args) -> None:
        """Call a function; log its exception, so that the thread goes on."""
        try:
            function(*args)
        except Exception:
            self.log.exception('%s goes on', self.name)

    def _run(self) -> None:
        while True:
            # Before reading: who asks during it gets another one.
            self._wake_up.clear()
            if self.stopped.is_set():
                break
            began = time.monotonic()
            try:
                self.value = self.read()
            except Stopped:
                break
            except Exception as exc:
                self._count_failure(began)
                self._call_logged(self._keep_error, exc)
                # After an error nobody knows in which state a connection is;
                # the next attempt makes a new one.
                self._call_logged(self.close)
                self._call_logged(self.failed, exc)
            else:
                self._end_failures()
                self._call_logged(self.succeeded, time.monotonic() - began)
            self._first_attempt_ended.set()
            with self._attempt_ended:
                self._ended_attempt_began = began
                self._attempt_ended.notify_all()
            self._wake_up.wait(self.pause(time.monotonic() - began))
        self.close()


class PerProcess(ty.Generic[Value]):
    """A value that each process has for itself; for use by several threads.

    A child has no use for what its parent had before a fork, above all
    threads.

    :param make: makes the value, at its first use in a process; if several
        threads come at once, more than one may be made and one is kept
    """

    def __init__(self, make: Callable[[], Value]):
        self._make = make
        # By process ID. Added without a lock: a fork could leave that locked
        # in the child for ever.
        self._values: dict[int, Value] = {}

    def get(self) -> Value:
        """Return the value of this process; made on first use."""
        pid = os.getpid()
        value = self._values.get(pid)
        if value is None:
            # What the parent had is of no use here, and its threads do not
            # run.
            for parent in list(self._values):
                if parent != pid:
                    self._values.pop(parent, None)
            value = self._values.setdefault(pid, self._make())
        return value

    def peek(self) -> Value | None:
        """Return the value of this process; None if there is none yet."""
        return self._values.get(os.getpid())

    def pop(self) -> Value | None:
        """Forget and return the value of this process, if there is one."""
        return self._values.pop(os.getpid(), None)


class Source(ty.Generic[Value], metaclass=abc.ABCMeta):
    """A value that is read again and again in each process that uses it.

    The first call of :meth:`get` in a process starts a thread there that
    reads.  After a fork the child starts its own.  Several threads may use an
    object.
    """

    def __init__(self):
        self._refreshers: PerProcess[Refresher[Value]] = PerProcess(
            self._make_refresher)

    @abc.abstractmethod
    def _make_refresher(self) -> Refresher[Value]:
        """Return a new refresher, for this process."""

    def get(self) -> Value | None:
        """Return the latest value, however old; None before the first.

        Returns at once, except that after the first call in a process it waits
        for the first reading to succeed or fail, for
        :meth:`Refresher.first_timeout` seconds at most.
        """
        return self.refresher().get()

    def renew(self, since: float, timeout: float) -> Value | None:
        """Wait for a value whose reading began at or after a given time.

        :param since: that time, seconds of ``time.monotonic()``
        :param timeout: seconds to wait at most
        :returns: None if there is none in time, or reading failed
        """
        return self.refresher().renew(since, timeout)

    def stop(self) -> None:
        """End the thread of this process; the next :meth:`get` starts anew."""
        refresher = self._refreshers.pop()
        if refresher is not None:
            refresher.stop()

    def peek(self) -> Refresher[Value] | None:
        """Return the refresher of this process; None before its first use."""
        return self._refreshers.peek()

    def refresher(self) -> Refresher[Value]:
        """Return the refresher of this process; made on first use."""
        return self._refreshers.get()
