# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.model.counting import document
from nfv_sched.ops.model.counting import losses
from nfv_sched.tests import base


def limit(name):
    return document.LostLimit(document.BindingKind.POLICY, name)


class TestAttribute(base.TestCase):

    def attribute(self, gains):
        """Number of servers by the label of each cause.

        :param gains: names of lifted limits, a letter each -> servers that fit
        """
        names = max(gains, key=len)

        def gain(lifted):
            return max(count for letters, count in gains.items()
                       if {limit(each) for each in letters} <= lifted)

        return {(' or ' if cause.any_one else ' and ').join(
            each.label for each in cause.limits): count
            for cause, count in losses.attribute(
                [limit(each) for each in names], gain).items()}

    def test_two_limits(self):
        for expected, gains in (
                ({}, {'': 0, 'ab': 0}),
                ({'a': 3}, {'': 0, 'a': 3, 'ab': 3}),
                ({'a': 3, 'b': 2}, {'': 0, 'a': 3, 'b': 2, 'ab': 5}),
                ({'a and b': 4}, {'': 0, 'ab': 4}),
                ({'a': 1, 'a and b': 4}, {'': 0, 'a': 1, 'ab': 5}),
                ({'a or b': 3}, {'': 0, 'a': 3, 'b': 3, 'ab': 3}),
                ({'a': 2, 'a or b': 3},
                 {'': 0, 'a': 5, 'b': 3, 'ab': 5}),
                ({'a': 3, 'b': 1, 'a or b': 2},
                 {'': 0, 'a': 5, 'b': 3, 'ab': 6})):
            with self.subTest(gains):
                self.assertEqual(expected, self.attribute(gains))

    def test_three_limits(self):
        for expected, gains in (
                ({'a': 3, 'b and c': 2},
                 {'': 0, 'a': 3, 'bc': 2, 'abc': 5}),
                ({'a and b and c': 2}, {'': 0, 'abc': 2}),
                ({'a or b or c': 1}, {'': 0, 'a': 1, 'b': 1, 'c': 1,
                                      'abc': 1}),
                # Any two would do: the first are named.
                ({'a and b': 1}, {'': 0, 'ab': 1, 'bc': 1, 'ac': 1,
                                  'abc': 1}),
                # Each alone has a server, any two no more, all of them two.
                ({'a': 1, 'b': 1}, {'': 0, 'a': 1, 'b': 1, 'c': 1,
                                    'abc': 2})):
            with self.subTest(gains):
                self.assertEqual(expected, self.attribute(gains))
