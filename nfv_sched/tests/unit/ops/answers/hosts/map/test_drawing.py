# SPDX-License-Identifier: Apache-2.0
"""Where things are on the picture of a NUMA node."""

import itertools

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.answers.hosts.map import drawing
from nfv_sched.ops.answers.hosts.map import marks
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.hosts.map import maps


def drawn(node, *servers, **host):
    (view,) = maps.views(snapshots.cloud(
        [snapshots.host(nodes=[node], **host)], servers))
    return drawing.node(view.numa_nodes[0], marks.of_host(view))


def boxes(found):
    """Where each CPU is: (left, top, right, bottom)."""
    shapes = {name: box for name, _class, box in drawing.shapes([found], [])}
    for row in found.rows:
        for shape, left, _title in row.tiles:
            x, y, width, height = shapes[shape]
            yield left + x, row.y + y, left + x + width, row.y + y + height


class NodeTest(base.TestCase):

    @hypothesis.given(st.integers(1, 40), st.sampled_from((1, 2, 4, 8)))
    def test_nothing_overlaps(self, cores, threads):
        found = drawn(snapshots.node(0, cores, threads, 1))
        places = list(boxes(found))
        self.assertEqual(cores * threads, len(places))
        for left, top, right, bottom in places:
            self.assertGreaterEqual(left, 0)
            self.assertLessEqual(right + 2 * drawing.MARGIN, drawing.WIDTH)
            self.assertGreater(top, drawing.HEAD - 1)
            self.assertLess(bottom, found.bars[0][0] - 8)
        for one, other in itertools.combinations(places, 2):
            self.assertTrue(
                one[2] <= other[0] or other[2] <= one[0] or
                one[3] <= other[1] or other[3] <= one[1], (one, other))

    def test_signs(self):
        """Letters of one character stand in one text for each row."""
        node = snapshots.node(0, 4, 2, 1, pinned=frozenset([1, 5, 2]))
        (row,) = drawn(node, snapshots.server('a', {0: [1, 5]})).rows
        self.assertEqual([('ssAA?', 5)], [
            (text, len(xs.split())) for _y, xs, text in row.letters])
        self.assertEqual(['bs', 'bs', 'b0', 'b0', 'bu', 'bf', 'bf', 'bf'],
                         [shape for shape, _x, _title in row.tiles])
        self.assertEqual([0, 1, 2, 3], [cpu for _x, cpu in row.numbers])
        self.assertEqual('CPU 5: a vCPU 1', row.tiles[3][-1])

    def test_letters_of_several_characters(self):
        node = snapshots.node(0, 40, 1, 1)
        rows = drawn(node, *(snapshots.server(f'{number:02}', {0: [number]})
                             for number in range(1, 29))).rows
        self.assertEqual(['AA', 'AB'], [
            text for row in rows for _x, _y, text in row.words])

    def test_long_name(self):
        found = drawn(snapshots.node(0, 4, 1, 1),
                      snapshots.server('x' * 300, {0: [1]}))
        self.assertLess(len(found.rows[0].tiles[1][-1]), 50)

    def test_bars(self):
        """As long as used; something of it shows what is used at all."""
        node = snapshots.node(shared_used=16, memory=1, pages=(
            snapshot.Pages(size=4, total=1000, used=1),
            snapshot.Pages(size=2048, total=0),
            snapshot.Pages(size=1048576, total=11, used=5, reserved=1)))
        width = drawing.BAR_WIDTH
        self.assertEqual(
            [('4K', 1, '0/3 MiB used'), ('1G', width // 2, '5/10 pages used'),
             ('shared', width, '16/2 vCPUs used')],
            [bar[1:] for bar in drawn(node).bars])

    def test_devices(self):
        """A tab for each PF: its VFs, or that it is used as a whole."""
        def device(number, kind, pf=None, **fields):
            return snapshot.Device(
                address=f'0000:0{number}', vendor='8086', product='1',
                kind=kind, node=0, parent=pf and f'0000:0{pf}', **fields)

        found = drawn(snapshots.node(), devices=[
            device(1, 'type-PF', status='unavailable'),
            device(2, 'type-VF', 1), device(3, 'type-VF', 1,
                                            status='allocated'),
            device(4, 'type-PF', status='allocated'),
            device(5, 'type-VF', 4, status='unavailable'),
            device(6, 'type-PF')])
        self.assertEqual(
            [('01', 'VF 1/2'), ('04', 'PF 1/1'), ('06', 'PF 0/1')],
            [tab[2:4] for tab in found.tabs])

    def test_many_devices(self):
        """Tabs that find no room are in a further row."""
        found = drawn(snapshots.node(), devices=[snapshot.Device(
            address=f'0000:{number:02}', vendor='8086', product='1',
            kind='type-PF', node=0) for number in range(9)])
        places = {(x, y) for x, y, *_texts in found.tabs}
        self.assertEqual(9, len(places))
        lefts, tops = zip(*places)
        self.assertGreater(found.height, max(tops) + drawing.TAB_HEIGHT)
        self.assertLess(max(lefts) + drawing.TAB_WIDTH, drawing.WIDTH)

    def test_shortened(self):
        for text, width, short in (
                ('abc', 3, 'abc'), ('abcd', 3, 'ab\u2026'),
                ('\U0001f600' * 3, 6, '\U0001f600' * 3),
                ('\U0001f600' * 4, 6, '\U0001f600' * 2 + '\u2026'),
                ('a\ufdfa', 6, 'a\u2026')):
            self.assertEqual(short, drawing.shortened(text, width))
