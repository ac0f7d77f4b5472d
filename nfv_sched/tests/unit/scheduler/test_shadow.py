# SPDX-License-Identifier: Apache-2.0
"""Which filters and weighers are in shadow on a host."""

from nova import objects

from nfv_sched.scheduler import shadow
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds

ONE, TWO = 'VSwitchNUMAAffinityFilter', 'RouterWeigher'


def host(name, *lists, **metadata):
    """A host in an aggregate for each list."""
    state = clouds.host(name)
    state.aggregates = [
        objects.Aggregate(id=number, metadata={'shadow': text})
        for number, text in enumerate(lists)]
    state.aggregates.append(objects.Aggregate(id=99, metadata=metadata))
    return state


class InShadowTest(base.TestCase):

    def test_nothing(self):
        """Aggregates without the key make no difference."""
        found = shadow.InShadow([host('a', color='blue')])
        self.assertFalse(found.anywhere)
        self.assertEqual(frozenset(), found.on(host('b')))

    def test_option(self):
        self.flags(shadow=[ONE])
        hosts = [host('a'), host('b')]
        found = shadow.InShadow(hosts)
        self.assertTrue(found.anywhere)
        self.assertEqual([({ONE}, hosts)], list(found.groups(hosts)))

    def test_aggregates(self):
        self.flags(shadow=[ONE])
        hosts = [host('a'), host('b', ''), host('c', f' {TWO} ,{ONE}'),
                 host('d', ONE, TWO), host('e', '', ONE)]
        found = shadow.InShadow(hosts)
        self.assertEqual(
            [{ONE}, set(), {ONE, TWO}, {ONE, TWO}, {ONE}],
            [found.on(each) for each in hosts])
        self.assertEqual(
            [['a', 'e'], ['b'], ['c', 'd']],
            [[each.host for each in some]
             for _names, some in found.groups(hosts)])

    def test_aggregates_that_cannot_be_read(self):
        self.flags(shadow=[ONE])
        for aggregates in (None, 5, [object()], [objects.Aggregate(id=1)]):
            odd = clouds.host()
            odd.aggregates = aggregates
            self.assertEqual({ONE}, shadow.InShadow([odd]).on(odd))

    def test_unknown(self):
        self.assertEqual(['ComputeFilter', 'x'], shadow.unknown(
            ['x', ONE, 'ComputeFilter', TWO]))
