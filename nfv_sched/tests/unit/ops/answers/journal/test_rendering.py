# SPDX-License-Identifier: Apache-2.0
"""Refusals as text."""

import textwrap

from nfv_sched.journal import entry
from nfv_sched.ops.answers.journal import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.tests import base
from nfv_sched.tests.unit.journal import test_entry

FLAVOR = entry.RefusedFlavor(
    name='fw', vcpus=4, memory=4096,
    extra_specs={'nfv:b': '1', 'hw:cpu_policy': 'mixed'})


class TextTest(base.TimedTestCase):

    def text(self, **fields):
        return tables.render(
            rendering.text(test_entry.refusal(**fields)), 79)

    def cell(self, value, title, full=False):
        column, = [each for each in rendering.columns(full)
                   if each.title == title]
        return column.cell(value)

    def test_text(self):
        self.assertEqual(textwrap.dedent("""\
            2026-01-02T03:04:05.678Z Second refused the last host
            Server    uuid-1
            With it   uuid-0
            Request   req-1
            Project   unknown
            Flavor    fw: 4 vCPUs, 4096 MiB, hw:cpu_policy=mixed, nfv:b=1
            Filters   First: 4 hosts, 2 left
                      Second: 2 hosts, 0 left
            First
              nfv:key=strict: 2 CPUs needed, 1 free
                on First-0, First-1
            Second
              nfv:key=strict: 2 CPUs needed, 1 free
                on Second-0, Second-1
            """), self.text(flavor=FLAVOR))

    def test_placement(self):
        value = test_entry.other(1, 'placement', queries=(
            'required=HW_CPU&resources=PCPU:4', 'resources=VCPU:4'))
        self.assertEqual(textwrap.dedent("""\
            2026-01-02T03:04:05.001Z Placement had no allocation candidates
            Server    server-1
            With it   before-1
            Request   req-1
            Project   unknown
            Asked     required=HW_CPU
                      resources=PCPU:4
            or        resources=VCPU:4
            """), tables.render([part for part in rendering.text(value)
                                 if 'Flavor' not in str(part)], 79))
        self.assertEqual('Placement', self.cell(value, 'Filter'))
        self.assertEqual(
            'no allocation candidates for required=HW_CPU&resources=PCPU:4 or '
            'resources=VCPU:4', self.cell(value, 'Reason', True))

    def test_others(self):
        for by, name, text, more in (
                ('placement-error', 'Placement', 'could not be asked', {}),
                ('claim', 'claim', 'of 3 that passed all filters', {
                    'passes': (entry.Pass(filter='F', hosts=4, left=3),)}),
                ('nova', 'Nova', 'No such host', {'message': 'No such host'}),
                ('nova', 'Nova', 'is allowed', {})):
            value = test_entry.other(1, by, **more)
            self.assertEqual(name, self.cell(value, 'Filter'))
            self.assertIn(text, self.cell(value, 'Reason'))
            self.assertIn(text, tables.render(rendering.text(value)))

    def test_many_hosts(self):
        text = self.text(hosts=100, unnamed=1)
        self.assertLess(max(map(len, text.splitlines())), 80)
        self.assertIn('Second-99\n', text)
        self.assertIn('and 1 host that had no space', text)
