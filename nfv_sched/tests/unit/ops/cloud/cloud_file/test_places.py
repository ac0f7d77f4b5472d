# SPDX-License-Identifier: Apache-2.0
"""Places of hosts in cloud files."""

from nfv_sched.tests.unit.ops.simulator import base

HEAD = base.CLOUD.replace(
    '    switch_nodes: [0]\n',
    '    switch_nodes: [0]\n    places: {osd: [0], nvme: [0, 1]}\n') + """\
  quiet:
    vcpus: 2
    memory: 1 GiB
    extra_specs:
      hw:cpu_policy: dedicated
      nfv:numa_anti_affinity.osd: strict
"""


class PlacesTestCase(base.SimulatorTestCase):

    def failures(self, flavor, expect, host='east'):
        return self.run_cloud(self.cloud(
            f'- {{boot: s, flavor: {flavor}, host: {host}, '
            f'expect: {{places: {expect}}}}}\n', HEAD)).failures

    def test_expectations(self):
        for flavor, expect in (
                ('quiet', '{osd: remote}'),
                ('quiet', '{osd: remote, nvme: local}'),
                ('two', '{osd: partial, nvme: local}')):
            self.assertEqual([], list(self.failures(flavor, expect)))

    def test_expectations_that_are_not_met(self):
        for host, got in (
                ('east', 'expected osd local, got s on east nodes [1] '
                         '(remote) (osd remote, nvme local)'),
                ('west', 'expected osd local, got s on west')):
            failure, = self.failures('quiet', '{osd: local}', host)
            self.assertIn(got, failure)
