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
"""Values that a thread in the background keeps young.

:class:`Source` has the latest value at hand in every process that asks for
it, so that those who ask never wait for the service that it comes from, but
for a bounded time at the very first.  :class:`Repeated` is what its thread has
in common with whatever else is tried again after a failure.

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

Value = ty.TypeVar('Value')


class Stopped(Exception):
    """Reading is not wanted any more."""


class Repeated(metaclass=abc.ABCMeta):
    """Something that is done again and again, sooner after a failure.

    :ivar failures: how many attempts have failed since the last that did not
    :ivar failing_since: when the first of them began, seconds of
        ``time.monotonic()``
    """

    #: Pause after a first failure, in seconds; it doubles with each further
    #: one, up to the longest.
    FIRST_PAUSE = 1.0

    #: Where the end of an outage is told, and in which words.
    log: logging.KeywordArgumentAdapter
    again: str

    def __init__(self):
        self.failures = 0
        self.failing_since = 0.0

    @abc.abstractmethod
    def interval(self) -> float:
        """Seconds from one attempt to the next."""

    def longest_pause(self) -> float:
        """Seconds of pause after any number of failures; the interval."""
        return self.interval()

    def hurries(self) -> bool:
        """Whether the next attempt comes sooner after a failure."""
        return True

    def rest(self, took: float) -> float:
        """Seconds of pause after an attempt that took so long, at least.

        :param took: seconds
        """
        return took

    def _count_failure(self, began: float) -> None:
        """An attempt has failed.

        :param began: when it began, seconds of ``time.monotonic()``
        """
        if not self.failures:
            self.failing_since = began
        self.failures += 1

    def _end_failures(self) -> None:
        """An attempt has not failed; the log is told if others had."""
        if self.failures:
            self.log.info('%s, after %d failed attempts in %.0f s',
                          self.again, self.failures,
                          time.monotonic() - self.failing_since)
        self.failures = 0

    def pause(self, took: float) -> float:
        """Seconds until the next attempt.

        :param took: seconds that the last one took
        """
        if self.failures and self.hurries():
            pause = min(
                self.FIRST_PAUSE * 2 ** min(self.failures - 1, 32),
                self.longest_pause())
        else:
            pause = max(self.interval() - took, self.rest(took))
        # Processes that started together do not stay together.
        return pause * random.uniform(0.9, 1.1)


class Refresher(Repeated, ty.Generic[Value]):
    """The thread that reads in one process, and what it has read."""

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
        self._tried = threading.Event()
        self._wanted = threading.Event()
        self._done = threading.Condition()
        self._done_began = 0.0

    @abc.abstractmethod
    def first_timeout(self) -> float:
        """Seconds that callers wait for the first reading."""

    @abc.abstractmethod
    def read(self) -> Value:
        """Read, in the thread.

        :raises Stopped: if it was interrupted
        """

    def close(self) -> None:
        """Close connections, after a failure and at the end."""

    def succeeded(self, took: float) -> None:
        """Tell the log, if there is anything more to tell.

        :param took: seconds that reading took
        """

    def failed(self, exc: Exception) -> None:
        """Tell the log about a failure; ``failures`` counts it already."""

    def get(self) -> Value | None:
        """See :meth:`Source.get`."""
        if self._thread is None or not self._thread.is_alive():
            self._start()
        if not self._tried.is_set():
            remaining = self._wait_until - time.monotonic()
            if remaining > 0:
                self._tried.wait(remaining)
        return self.value

    def renew(self, since: float, timeout: float) -> Value | None:
        """See :meth:`Source.renew`."""
        self.get()
        deadline = time.monotonic() + timeout
        with self._done:
            while self._done_began < since:
                self._wanted.set()
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not self._done.wait(remaining):
                    return None
            return None if self.failures else self.value

    def stop(self) -> None:
        """End the thread, after the request that is under way."""
        with self.lock:
            self.stopped.set()
            self._wanted.set()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _start(self) -> None:
        with self.lock:
            if self.stopped.is_set() or (
                    self._thread is not None and self._thread.is_alive()):
                return
            if self._thread is None:
                self._wait_until = time.monotonic() + self.first_timeout()
            thread = threading.Thread(
                target=self._run, name=self.name, daemon=True)
            thread.start()
            self._thread = thread

    def _tell(self, function: Callable[..., None], *args) -> None:
        """Nothing that is only told may end the thread."""
        try:
            function(*args)
        except Exception:
            self.log.exception('%s goes on', self.name)

    def _run(self) -> None:
        while True:
            self._wanted.clear()
            if self.stopped.is_set():
                break
            began = time.monotonic()
            try:
                self.value = self.read()
            except Stopped:
                break
            except Exception as exc:
                self._count_failure(began)
                self._tell(self.close)
                self._tell(self.failed, exc)
            else:
                self._end_failures()
                self._tell(self.succeeded, time.monotonic() - began)
            self._tried.set()
            with self._done:
                self._done_began = began
                self._done.notify_all()
            self._wanted.wait(self.pause(time.monotonic() - began))
        self.close()


class Source(ty.Generic[Value], metaclass=abc.ABCMeta):
    """Has the latest value at hand, in every process that asks for it.

    The first call of :meth:`get` in a process starts the thread that reads
    there.  An object that was used before a fork starts anew in the child.
    Several threads may use it.
    """

    def __init__(self):
        # By process. No lock is held when one is added: a fork could leave it
        # locked in the child for ever.
        self._refreshers: dict[int, Refresher[Value]] = {}

    @abc.abstractmethod
    def _make_refresher(self) -> Refresher[Value]:
        """A refresher for this process."""

    def get(self) -> Value | None:
        """The latest value, however old, or None if there was none yet.

        Returns at once, but for a bounded time after the first call in a
        process: until then it waits for the first reading to succeed or fail.
        """
        return self.refresher().get()

    def renew(self, since: float, timeout: float) -> Value | None:
        """A value that was read after a moment.

        :param since: seconds of ``time.monotonic()``; reading must have begun
            after it
        :param timeout: seconds to wait at most
        :returns: None if there is none in time, or reading failed
        """
        return self.refresher().renew(since, timeout)

    def stop(self) -> None:
        """End the thread of this process; the next :meth:`get` starts anew."""
        refresher = self._refreshers.pop(os.getpid(), None)
        if refresher is not None:
            refresher.stop()

    def refresher(self) -> Refresher[Value]:
        """What reads in this process."""
        pid = os.getpid()
        refresher = self._refreshers.get(pid)
        if refresher is None:
            for parent in list(self._refreshers):
                if parent != pid:
                    self._refreshers.pop(parent, None)
            refresher = self._refreshers.setdefault(
                pid, self._make_refresher())
        return refresher
