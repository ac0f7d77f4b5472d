# SPDX-License-Identifier: Apache-2.0
"""What a process keeps beyond its requests."""

from concurrent import futures
import multiprocessing
import threading

from nfv_sched.scheduler import process
from nfv_sched.tests import base

FORK = multiprocessing.get_context('fork')


class Lookups:
    """Look-ups with connections that can be closed."""

    closed = False

    def close(self):
        self.closed = True


class ProcessTest(base.TestCase):

    def fill(self):
        state = process.STATE
        state.add_pass('AFilter', 1, 0.1)
        state.refusals.append(process.LoggedRefusal(0, None, 'AFilter', ''))
        return state.lookups_in_neutron(Lookups)

    def contents(self):
        state = process.STATE
        return (dict(state.passes), list(state.refusals),
                state.lookups)

    def test_reset(self):
        """One call forgets everything, and ends what was started."""
        state, lookups = process.STATE, self.fill()
        self.assertNotIn(None, self.contents())
        state.reset()
        self.assertIs(state, process.STATE)
        self.assertEqual(({}, [], None), self.contents())
        self.assertTrue(lookups.closed)

    def test_lookups_are_made_once(self):
        count = 8
        gate, calls = threading.Barrier(count), []

        def make():
            calls.append(Lookups())
            return calls[-1]

        def use(_number):
            gate.wait()
            return process.STATE.lookups_in_neutron(make)

        with futures.ThreadPoolExecutor(count) as pool:
            self.assertEqual(1, len(set(pool.map(use, range(count)))))
        self.assertEqual(1, len(calls))

    def test_fork(self):
        """A worker has what its parent had, and does not share it."""
        self.fill()
        before = self.contents()
        queue = FORK.SimpleQueue()

        def work():
            queue.put(len(process.STATE.refusals))
            process.STATE.reset()

        worker = FORK.Process(target=work)
        worker.start()
        worker.join()
        self.assertEqual(1, queue.get())
        self.assertEqual(before, self.contents())
