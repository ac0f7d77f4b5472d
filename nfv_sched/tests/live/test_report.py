# SPDX-License-Identifier: Apache-2.0
"""What Nova's guru meditation report tells of nfv-sched."""

import os
import signal
import sys

from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import errors
from nfv_sched.tests.live.bed import processes

#: The last part of the section.
_LAST = 'Time of filters:'

#: Whether a process can stand still for ever while it makes a report, whatever
#: sections that has: Python takes a lock to look at the threads, and collects
#: garbage meanwhile. See https://github.com/python/cpython/issues/106883
_CAN_FREEZE = sys.version_info < (3, 12)
_ATTEMPTS = 3

# Seconds. Workers with nothing to do log a line each ten or so.
_REPORTED = 60
_LOGGED = 30
_REPLACED = 30
_PAUSE = 0.25


class ReportTest(base.LiveTestCase):

    def written(self, service, since) -> str:
        """What a scheduler has written since."""
        return ''.join(self.bed.scheduler_lines(
            {service.name: since[service.name]}))

    def reports(self, service) -> list[str]:
        """What the workers of a scheduler report.

        :returns: a report for each; none if Python froze one, which is
            replaced then
        """
        pids = service.worker_pids
        self.assertTrue(pids)
        since = self.bed.scheduler_logs()
        for pid in pids:
            os.kill(pid, signal.SIGUSR2)

        def told():
            texts = self.written(service, since).split('Guru Meditation')[1:]
            texts = [text for text in texts if _LAST in text]
            return texts if len(texts) == len(pids) else None
        try:
            texts = self.bed.wait_until(
                told, _REPORTED, f'reports of {service.name}', _PAUSE)
        except errors.BedError as exc:
            frozen = self.silent(service, pids) if _CAN_FREEZE else set()
            if not frozen:
                self.fail(str(exc))
            self.replace(service, frozen)
            return []
        self.assertEqual(pids, service.worker_pids)
        return texts

    def silent(self, service, pids) -> set[int]:
        """Those of the workers that log nothing any more."""
        since = self.bed.scheduler_logs()

        def found():
            # Date, time and process ID begin each line.
            words = [line.split(None, 3)[:3] for line in
                     self.written(service, since).splitlines()]
            return set(map(str, pids)) - {
                each[2] for each in words if len(each) == 3}
        processes.wait(lambda: not found(), _LOGGED, _PAUSE)
        return {int(pid) for pid in found()}

    def replace(self, service, pids) -> None:
        """Kill workers, and wait until their parent has made others."""
        count = len(service.worker_pids)
        for pid in pids:
            service.kill_worker(pid)
        self.wait_until(
            lambda: len(service.worker_pids) == count
            and not pids.intersection(service.worker_pids),
            _REPLACED, f'new workers of {service.name}')

    def told(self):
        """A server that was refused, and the reports of all workers then.

        :returns: (server, texts)
        """
        for _attempt in range(_ATTEMPTS):
            server = self.request(self.flavor(7, **base.STRICT))
            self.assertEqual('ERROR', self.settled(server).status)
            told = [self.reports(service) for service in self.bed.schedulers]
            if all(told):
                return server, [text for texts in told for text in texts]
        self.fail(f'a worker froze at each of {_ATTEMPTS} attempts')

    def test_each_worker_tells(self):
        server, told = self.told()
        for text in told:
            self.assertEqual(1, text.count(_LAST))
            self.assertNotIn('not known:', text)
        refused, = [text for text in told if server.id in text.partition(
            'Last refusals:')[2]]
        self.assertIn('dedicated CPUs on one NUMA node needed', refused)
        times = refused.partition(_LAST)[2]
        self.assertRegex(times, r'NFVTopologyFilter: \d+ passes, \d+ hosts')
