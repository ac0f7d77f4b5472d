# SPDX-License-Identifier: Apache-2.0
"""Steps of bringing a bed up or down, shown as they go, in parallel."""

from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
import dataclasses
import graphlib
import sys
import threading
import time


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """Something to do once the steps whose names it needs are done."""

    function: Callable[[], object]
    needs: Sequence[str] = ()


class Progress:
    """Lines with the seconds since the beginning."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._begun = time.monotonic()
        self._lock = threading.Lock()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._begun

    def say(self, text: str) -> None:
        with self._lock:
            print(f'[{self.elapsed:6.1f} s] {text}', file=self._stream,
                  flush=True)

    def run(self, steps: Mapping[str, Step], threads: int = 8) -> None:
        """Do steps, each as soon as those it needs are done.

        After a failure no further step is begun; those under way are waited
        for.

        :raises: what the first failed step raised
        """
        order = graphlib.TopologicalSorter(
            {name: step.needs for name, step in steps.items()})
        order.prepare()
        running: dict[futures.Future, str] = {}
        with futures.ThreadPoolExecutor(threads) as pool:
            while order.is_active():
                for name in order.get_ready():
                    running[pool.submit(self._one, name, steps[name])] = name
                finished = futures.wait(
                    running, return_when=futures.FIRST_COMPLETED).done
                for future in finished:
                    name = running.pop(future)
                    if future.exception():
                        for other in running:
                            other.cancel()
                        raise future.exception()
                    order.done(name)

    def _one(self, name: str, step: Step) -> None:
        began = time.monotonic()
        try:
            step.function()
        except BaseException:
            self.say(f'{name}: FAILED')
            raise
        self.say(f'{name}: done in {time.monotonic() - began:.1f} s')
