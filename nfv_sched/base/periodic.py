# SPDX-License-Identifier: Apache-2.0
"""Attempt a task again and again, with shorter pauses after a failure."""

import abc
import random
import time

from oslo_log import log as logging


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
        return took

    def _count_failure(self, began: float) -> None:
        if not self.failures:
            self.failing_since = began
        self.failures += 1

    def _end_failures(self) -> None:
        if self.failures:
            self.log.info('%s, after %d failed attempts in %.0f s',
                          self.again, self.failures,
                          time.monotonic() - self.failing_since)
        self.failures = 0

    def pause(self, took: float) -> float:
        """Return the seconds to the next attempt; the last took ``took``."""
        if self.failures and self.hurries():
            pause = min(
                self.FIRST_PAUSE * 2 ** min(self.failures - 1, 32),
                self.longest_pause())
        else:
            pause = max(self.interval() - took, self.least_pause(took))
        # So that processes that started together do not read all at once.
        return pause * random.uniform(0.9, 1.1)
