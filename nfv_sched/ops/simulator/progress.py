# SPDX-License-Identifier: Apache-2.0

"""Show progress on stderr: a bar on a terminal, otherwise lines of text.

Nothing is shown for work that takes less than :data:`DELAY` seconds.
"""

from collections.abc import Iterator
import contextlib
import sys
import time

from rich import console as rich_console
from rich import progress as rich_progress

DELAY = 2.0  # seconds until anything is shown
INTERVAL = 5.0  # seconds between two lines


class _ProgressLine:
    """A display that prints a line of text every few seconds.

    If a line was printed for a kind of work, another one is printed at its
    end, so that the last line does not look unfinished.
    """

    def __init__(self, began: float):
        self._next = began + DELAY
        self._latest: tuple[int, int | None, str] | None = None
        self._printed: tuple[int, int | None, str] | None = None

    def update(self, finished: int, total: int | None, what: str,
               now: float) -> None:
        if self._latest is not None and self._latest[2] != what:
            self.finish()
        self._latest = finished, total, what
        if now >= self._next:
            self._next = now + INTERVAL
            self._print()

    def _print(self) -> None:
        if self._latest is None or self._latest == self._printed:
            return
        self._printed = self._latest
        finished, total, what = self._latest
        print(f'{what} ...' if total is None
              else f'{finished} of {total} {what} done',
              file=sys.stderr, flush=True)

    def finish(self) -> None:
        if self._printed is not None and self._printed != self._latest:
            self._print()
        self._printed = self._latest = None

    def close(self) -> None:
        pass


class _Bar:
    """A progress bar that appears after a delay."""

    def __init__(self, began: float):
        self._began = began
        self._bar: rich_progress.Progress | None = None
        self._task = rich_progress.TaskID(0)

    def update(self, finished: int, total: int | None, what: str,
               now: float) -> None:
        if self._bar is None:
            if now < self._began + DELAY:
                return
            self._bar = rich_progress.Progress(
                rich_progress.TextColumn('{task.description}'),
                rich_progress.BarColumn(),
                rich_progress.MofNCompleteColumn(),
                rich_progress.TimeRemainingColumn(),
                console=rich_console.Console(stderr=True), transient=True)
            self._task = self._bar.add_task('', total=total)
            self._bar.start()
        # rich keeps the total of a task for which None is given.
        if total is None and self._bar.tasks[0].total is not None:
            self._bar.remove_task(self._task)
            self._task = self._bar.add_task('', total=None)
        self._bar.update(
            self._task, completed=finished, total=total,
            description=what[:1].upper() + what[1:])

    def finish(self) -> None:
        pass

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextlib.contextmanager
def shown() -> Iterator:
    """Show progress within this context.

    :returns: context with a function of (number done, total, plural noun for
        the work; ``servers`` by default); the total is None, and the noun a
        phrase, such as "searching for moves", if the amount is not known
    """
    began = time.monotonic()
    display = _Bar(began) if sys.stderr.isatty() else _ProgressLine(began)
    try:
        yield lambda finished, total, what='servers': display.update(
            finished, total, what, time.monotonic())
        display.finish()
    finally:
        display.close()
