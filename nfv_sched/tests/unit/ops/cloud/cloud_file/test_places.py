# SPDX-License-Identifier: Apache-2.0
"""Places of hosts in cloud files: expectations and what is shown."""

from nfv_sched.ops.answers.simulation import report
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

    def run_steps(self, steps):
        return self.run_cloud(self.cloud(steps, HEAD))

    def failures(self, flavor, expect, host='east'):
        return self.run_steps(
            f'- {{boot: s, flavor: {flavor}, host: {host}, '
            f'expect: {{places: {expect}}}}}\n').failures

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

    def test_tables(self):
        result = self.run_steps("""\
            - {boot: a, flavor: quiet, host: east}
            - {boot: b, flavor: quiet, host: west}
            """)
        for make in (report.servers, report.steps):
            titles, rows = self.shown(make(result))
            column = titles.index('Places')
            self.assertEqual(titles.index('vSwitch') + 1, column)
            self.assertEqual(['osd remote, nvme local', ''],
                             [row[column] for row in rows])
        titles, rows = self.shown(report.hosts(result))
        column = titles.index('Places')
        self.assertEqual(['osd, nvme', 'nvme', '', ''],
                         [row[column] for row in rows])
        # As in the table of "host list".
        self.assertEqual('Switch', titles[column - 1])
        self.assertEqual(['yes', 'no', 'no', 'yes'],
                         [row[column - 1] for row in rows])

    def test_document(self):
        doc = report.cloud_document(
            self.run_steps('- {boot: a, flavor: quiet, host: east}\n'),
            ('servers', 'hosts', 'steps'))
        self.assertEqual({'osd': 'remote', 'nvme': 'local'},
                         dict(doc.servers[0].places))
        self.assertEqual({'osd': 'remote', 'nvme': 'local'},
                         dict(doc.steps[0].places))
        self.assertEqual(
            [('osd', 'nvme'), ('nvme',), (), ()],
            [node.places for host in doc.hosts for node in host.numa_nodes])

    def test_no_column_without_places(self):
        result = self.run_cloud(self.cloud('- {boot: a, flavor: pinned}\n'))
        for table in (report.servers(result), report.steps(result),
                      report.hosts(result)):
            self.assertNotIn('Places', self.shown(table)[0])
