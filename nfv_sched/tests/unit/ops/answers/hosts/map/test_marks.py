# SPDX-License-Identifier: Apache-2.0
"""Letters and colours of guests."""

from nfv_sched.ops.answers.hosts.map import marks
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.hosts.map import maps


class SignsTest(base.TestCase):

    def view(self, count, *more):
        cloud = snapshots.cloud(
            [snapshots.host(nodes=[snapshots.node(0, count + 1, 1, 1)])],
            [*more, *(snapshots.server(
                f'{number:04}', {0: [number + 1]},
                created='2026') for number in range(count))])
        return maps.views(cloud)[0]

    def test_letters(self):
        found = [each.text for each in marks.of_host(self.view(760)).values()]
        self.assertEqual(['A', 'B', 'Z', 'AA', 'AZ', 'BA', 'ZZ', 'AAA'], [
            found[number] for number in (0, 1, 25, 26, 51, 52, 701, 702)])
        self.assertEqual(760, len(set(found)))

    def test_a_new_guest_changes_nothing(self):
        """The youngest comes last, so two maps can be compared."""
        before = marks.of_host(self.view(30))
        after = marks.of_host(self.view(30, snapshots.server(
            '0', {0: [31]}, created='2027')))
        self.assertEqual(before, {
            uuid: after[uuid] for uuid in before})

    def test_only_who_is_pinned(self):
        found = self.view(1, snapshots.server('floats'),
                          snapshots.server('shares', shared={0: 2}))
        self.assertEqual(['', '', 'A'], sorted(
            each.text for each in marks.of_host(found).values()))

    def test_others(self):
        """CPUs that are not Nova's have a letter and colour of their own."""
        _cloud, views = maps.with_facts()
        self.assertEqual([True, False], [
            marks.has_others([view]) for view in views])
        cpu = views[0].numa_nodes[0].cores[0].cpus[0]
        self.assertEqual(marks.Sign('n', 'n'), marks.sign(cpu, {}))
        found = [sign for sign, _kind, _meaning in marks.key(True)]
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(['n'], found[len(marks.key(False)):])

    def test_colours(self):
        self.assertEqual(list('01234501'), [
            each.kind for each in marks.of_host(self.view(8)).values()])
