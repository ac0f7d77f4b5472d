# SPDX-License-Identifier: Apache-2.0
"""Base of the tests that read changed files and answers.

``NFV_SCHED_FUZZ_SECONDS`` says how long each reader is tried: 4 seconds are
about a minute for all, 240 about an hour.  Hypothesis makes the cases and
prints the smallest one that fails.
"""

from collections.abc import Callable, Iterator
import contextlib
import os
import random
import re
import resource
import signal
import sys
import time
import typing as ty

import hypothesis
from hypothesis import strategies as st
from testtools import content

from nfv_sched.tests.fuzz import mutations
from nfv_sched.tests.unit.ops.commands import watched

SECONDS = float(os.environ.get('NFV_SCHED_FUZZ_SECONDS', '4'))

#: Cases between two looks at the clock.
_ROUND = 25
#: Seconds on a CPU that a case may take.
MAX_SECONDS = 10
#: Bytes that the process may grow by, with all that it remembers.
MAX_MEMORY = 1 << 30

# Of Python, the cache of stevedore (which it has unless Python itself is in
# /tmp), and temporary files of metrics and plans, which name no folder.
_ALLOWED = re.compile(
    r'/__pycache__/|/python-entrypoints(/|$)|^\.(\w+\.prom|plan)\.\w+$')
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class _TooLong(BaseException):
    """A case takes too long; what is tested must not catch it."""


def cases(run: Callable[[random.Random], None],
          seconds: float = SECONDS) -> int:
    """Run cases until the time is over, and return how many there were."""
    deadline = time.monotonic() + seconds
    count = 0

    @hypothesis.settings(max_examples=_ROUND)
    @hypothesis.given(st.randoms())
    def case(chance):
        nonlocal count
        run(chance)
        count += 1

    seed = 0
    while time.monotonic() < deadline:
        hypothesis.seed(seed)(case)()
        seed += 1
    return count


def count_cases(test: ty.Any, run: Callable[[random.Random], None]) -> None:
    """Run cases; ``stestr last --all-attachments`` shows how many."""
    test.addDetail('cases', content.text_content(f'{cases(run)}\n'))


class Watch:
    """Events of this process that a reader of files must not cause."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self.events: list[tuple[str, str]] = []

    def install(self) -> None:
        """Begin; an audit hook cannot be removed."""
        sys.addaudithook(self._note)

    @contextlib.contextmanager
    def watching(self, folder: str) -> Iterator[None]:
        """Note events within this context but for writes to a folder."""
        self.events.clear()
        self._folder = folder
        try:
            yield
        finally:
            self._folder = None

    def _note(self, event: str, values: tuple) -> None:
        if self._folder is None:
            return
        if watched.is_noted(event, values, mutations.MARKER):
            self.events.append((event, repr(values)[:300]))
        elif event == 'open' and isinstance(values[0], str) and (
                values[2] & _WRITING and not values[0].startswith(
                    (self._folder, os.devnull))
                and not _ALLOWED.search(values[0])):
            self.events.append((event, repr(values)[:300]))


WATCH = Watch()
WATCH.install()


def _size() -> int:
    with open('/proc/self/statm', encoding='ascii') as file:
        return int(file.read().split()[0]) * resource.getpagesize()


@contextlib.contextmanager
def memory_limited() -> Iterator[None]:
    """Limit the growth of the process within this context."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_size() + MAX_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def time_limited(seconds: float = MAX_SECONDS) -> Iterator[None]:
    """Limit the time on a CPU within this context."""
    def stop(_number: int, _frame: ty.Any) -> None:
        raise _TooLong()

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except _TooLong:
        raise AssertionError(f'takes more than {seconds} s') from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
