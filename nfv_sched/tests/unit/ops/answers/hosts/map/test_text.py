# SPDX-License-Identifier: Apache-2.0
"""The map for terminals."""

import unicodedata

from nfv_sched.ops.answers.hosts.map import text
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.hosts.map import maps


def drawn(cloud):
    return ''.join(text.render(cloud, maps.views(cloud)))


class TextTest(base.TestCase):

    def test_odd(self):
        lines = drawn(maps.odd()).splitlines()
        self.assertIn('    ss A- Be !. ?. C. .. ..', lines)
        self.assertIn('    ss ss ss ss ss ss ss ss', lines)
        self.assertIn('   C* far: 1 vCPU, node 0; device 0000:01:00.0 is '
                      'near node 1', lines)
        self.assertIn('  node 0: 7/14 pCPUs, fits 7, virtual switch', lines)
        self.assertIn('  node 1: no pCPUs', lines)
        self.assertIn('plain: down', lines)
        self.assertIn('  availability zone: nova', lines)
        self.assertIn('  ! node 0: CPU 3 taken by several servers', lines)
        self.assertIn('      floats: 1 vCPU, floating', lines)

    def test_facts(self):
        cloud, views = maps.with_facts()
        lines = ''.join(text.render(cloud, views)).splitlines()
        self.assertIn('    nn A. An .n', lines)
        self.assertIn('    .. . .', lines)
        self.assertIn("n  not Nova's: in none of its sets of CPUs", lines)
        self.assertIn('4 CPUs not for servers', lines[0])

    def test_wide(self):
        cloud = snapshots.cloud([snapshots.host(
            nodes=[snapshots.node(0, 128, 2, 1)])])
        self.assertLessEqual(max(map(len, drawn(cloud).splitlines())), 80)

    def test_names_on_a_terminal(self):
        chars = set(drawn(maps.hostile())) - {'\n'}
        self.assertEqual([], [char for char in chars if (
            unicodedata.category(char) in ('Cc', 'Cs') or char == '\u202e')])
