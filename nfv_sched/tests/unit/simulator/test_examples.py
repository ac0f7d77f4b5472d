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

"""The examples do what they say."""

import re

from nfv_sched.simulator import examples
from nfv_sched.simulator import loader
from nfv_sched.tests.unit.simulator import base


class ExamplesTestCase(base.SimulatorTestCase):

    def check(self, text: str, seed: int = 0):
        result = self.run_cloud(text, seed)
        self.assertEqual([], list(result.failures))
        self.assertGreater(result.checks, 0)
        return result

    def text(self, name: str) -> str:
        return loader.read(str(examples.find()[name]))

    def test_there_are_three(self):
        found = examples.find()
        self.assertEqual(['carrier-grade', 'thousand-hosts', 'two-hosts'],
                         list(found))
        for path in found.values():
            self.assertTrue(examples.description(path))

    def test_carrier_grade(self):
        result = self.check(self.text('carrier-grade'))
        placed = [s for s in result.servers if s.host is not None]
        self.assertEqual(6, len(placed))

    def test_two_hosts(self):
        for seed in range(5):
            self.check(self.text('two-hosts'), seed)

    def test_thousand_hosts(self):
        text = self.text('thousand-hosts')
        cloud = loader.loads(text)
        self.assertEqual(1000, cloud.host_count)
        self.assertEqual(200, sum(len(s.targets) for s in cloud.steps))
        # The same with a twentieth of everything.
        self.check(re.sub(
            r'(count|placed): (\d+)',
            lambda m: f'{m[1]}: {int(m[2]) // 20}', text))
