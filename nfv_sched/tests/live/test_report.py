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
"""What Nova's guru meditation report tells of nfv-sched."""

import os
import signal

from nfv_sched.tests.live import base

#: The last part of the section.
_LAST = 'Time of filters:'


class ReportTest(base.LiveTestCase):

    def reports(self, service, since):
        """What a scheduler has written since, report by report."""
        with open(service.log, 'rb') as log:
            log.seek(since[service.name])
            text = log.read().decode(errors='replace')
        return text.split('Guru Meditation')[1:]

    def test_each_worker_tells(self):
        server = self.request(self.flavor(7, **base.STRICT))
        self.assertEqual('ERROR', self.settled(server).status)
        since = self.bed.scheduler_logs()
        told = []
        for service in self.bed.schedulers:
            pids = service.worker_pids
            self.assertTrue(pids)
            for pid in pids:
                os.kill(pid, signal.SIGUSR2)
            self.wait_until(
                lambda: sum(_LAST in text for text in self.reports(
                    service, since)) == len(pids),
                60, f'reports of {service.name}')
            told.extend(text for text in self.reports(service, since)
                        if _LAST in text)
            self.assertEqual(pids, service.worker_pids)
        for text in told:
            self.assertEqual(1, text.count(_LAST))
            self.assertIn('  NFVTopologyFilter\n', text)
            self.assertIn('VSwitchNUMAAffinityWeigher, multiplier', text)
            self.assertNotIn('not known:', text)
        refused, = [text for text in told if server.id in text.partition(
            'Last refusals:')[2]]
        self.assertIn('dedicated CPUs on one NUMA node needed', refused)
        times = refused.partition(_LAST)[2]
        self.assertRegex(times, r'NFVTopologyFilter: \d+ passes, \d+ hosts')
