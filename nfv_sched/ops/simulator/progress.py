# SPDX-License-Identifier: Apache-2.0
"""Show progress on stderr: a bar on a terminal, otherwise lines of text.

Nothing is shown for work that takes less than :data:`DELAY` seconds.
"""

from collections.abc import Callable, Iterator
import contextlib
import sys
import time

DELAY = 2.0  # seconds until anything is shown
INTERVAL = 5.0  # seconds between two lines


@contextlib.contextmanager
def _lines(start: float) -> Iterator[Callable]:
    """Print a line every few seconds, and one at the end of each work."""
    latest: tuple[int, int | None, str] | None = None
    printed = None

    def show() -> None:
        nonlocal printed
        if latest != printed:
            printed = finished, total, what = latest
            print(f'{what} ...' if total is None
                  else f'{finished} of {total} {what} done',
                  file=sys.stderr, flush=True)

    def update(finished: int, total: int | None,
               what: str = 'servers') -> None:
        nonlocal latest, printed, start
        if printed is not None and latest[2] != what:
            show()
            printed = None
        latest = finished, total, what
        now = time.monotonic()
        if now >= start:
            start = now + INTERVAL
            show()

    yield update
    if printed is not None:
        show()


@contextlib.contextmanager
def _bar(start: float) -> Iterator[Callable]:
    from rich import console
    from rich import progress
    bar = progress.Progress(
        progress.TextColumn('{task.description}'), progress.BarColumn(),
        progress.MofNCompleteColumn(), progress.TimeRemainingColumn(),
        console=console.Console(stderr=True), transient=True)

    def update(finished: int, total: int | None,
               what: str = 'servers') -> None:
        if not bar.tasks and time.monotonic() < start:
            return
        # rich keeps the total of a task for which None is given.
        if total is None and bar.tasks and bar.tasks[0].total is not None:
            bar.remove_task(bar.tasks[0].id)
        if not bar.tasks:
            bar.add_task('', total=total)
            bar.start()
        bar.update(bar.tasks[0].id, completed=finished, total=total,
                   description=what[:1].upper() + what[1:])

    try:
        yield update
    finally:
        if bar.tasks:
            bar.stop()


def shown() -> contextlib.AbstractContextManager[Callable]:
    """Show progress by a function of (number done, total, plural noun).

    The total is None if it is not known, the noun then "searching for moves".
    """
    display = _bar if sys.stderr.isatty() else _lines
    return display(time.monotonic() + DELAY)
