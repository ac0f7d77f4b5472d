# SPDX-License-Identifier: Apache-2.0
"""What filters and weighers in shadow would have changed, in figures."""

from nfv_sched.ops.answers.journal import document
from nfv_sched.ops.answers.journal import rendering
from nfv_sched.tests import base
from nfv_sched.tests.unit.journal import test_entry


class ReportTest(base.TestCase):

    PLACED = (
        test_entry.placed(1),
        test_entry.placed(2),
        test_entry.placed(3, change='elsewhere', by=('Weigher',),
                          host='other'),
        test_entry.placed(4, change='elsewhere'),
        test_entry.placed(5, change='', by=()),
        test_entry.placed(6, shadow=()))

    def test_all(self):
        report = document.shadow_report(self.PLACED)
        self.assertEqual((5, 2, 2), (
            report.servers, report.refused, report.elsewhere))
        self.assertEqual(
            [('First', 5, 2, 1), ('Weigher', 5, 0, 1)],
            [(each.name, each.servers, each.refused, each.elsewhere)
             for each in report.counts])
        # Of a server that would have gone elsewhere only what its own host
        # would have been refused for.
        self.assertEqual(
            [('First', 'nfv:key=strict', 2, 1)],
            [(each.filter, each.policy, each.refused, each.elsewhere)
             for each in report.reasons])
        self.assertEqual(
            '2 of 5 servers placed from 2026-01-02T03:04:05.001Z to '
            '2026-01-02T03:04:05.005Z would have been refused, and 2 would '
            'have gone to another host.', rendering.shadow_text(report)[0])

    def test_refusals(self):
        refused = (test_entry.numbered(1), *[
            test_entry.other(number, 'placement') for number in (2, 4)],
            test_entry.other(3, 'filter', filter='ComputeFilter'))
        report = document.shadow_report(self.PLACED, refused=refused)
        self.assertEqual(
            [('placement', None, 2), ('nfv-sched', 'Second', 1),
             ('filter', 'ComputeFilter', 1)],
            [(each.refused_by, each.filter, each.servers)
             for each in report.refusals])
        self.assertEqual(
            '4 servers found no host: 2 by placement, 1 by Second, '
            '1 by ComputeFilter.', rendering.shadow_text(report)[1])
        self.assertEqual('1 server found no host: 1 by placement.',
                         rendering.shadow_text(document.shadow_report(
                             (), '2026-01-02T03:04:05.004Z', refused))[1])
        self.assertEqual(1, len(rendering.shadow_text(
            document.shadow_report(()))))
