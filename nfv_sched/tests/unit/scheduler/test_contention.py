# SPDX-License-Identifier: Apache-2.0
"""The way in which Nova uses the list that is put in its place.

If this fails with a new release of Nova, see what has become of the course of
a request there: whether a host is still looked at right before it is claimed.
"""

import ast
import inspect
import textwrap
from unittest import mock

from nova import exception
from nova.scheduler import host_manager
from nova.scheduler import manager

from nfv_sched.scheduler import contention
from nfv_sched.tests import base

_CANDIDATES = 'allocation_candidates'


def _is_candidates(node):
    return isinstance(node, ast.Attribute) and node.attr == _CANDIDATES


def _uses(function):
    """How a function of Nova uses the candidates of a host, in order."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(
                node.test, ast.UnaryOp) and isinstance(
                node.test.op, ast.Not) and _is_candidates(node.test.operand):
            found.append((node.lineno, 'looked at'))
        elif isinstance(node, ast.Subscript) and _is_candidates(
                node.value) and getattr(node.slice, 'value', None) == 0:
            found.append((node.lineno, 'the first'))
        elif isinstance(node, ast.Call) and getattr(
                node.func, 'attr', '') in (
                    'claim_resources', '_consume_selected_host',
                    '_get_alternate_hosts'):
            found.append((node.lineno, node.func.attr))
    total = sum(map(_is_candidates, ast.walk(tree)))
    return [what for _line, what in sorted(found)], total


class NovaTest(base.TestCase):

    def test_claim(self):
        """Given, looked at once, and the first is claimed right after."""
        uses, total = _uses(manager.SchedulerManager._schedule)
        self.assertEqual(
            ['looked at', 'the first', 'claim_resources',
             '_consume_selected_host', '_get_alternate_hosts'], uses)
        self.assertEqual(3, total)

    def test_alternates(self):
        """Looked at again, when the server is placed already."""
        uses, total = _uses(manager.SchedulerManager._get_alternate_hosts)
        self.assertEqual(['looked at', 'the first'], uses)
        self.assertEqual(2, total)

    def test_nothing_else(self):
        """But a copy before the filters, and how many there are."""
        for cls, known in ((manager.SchedulerManager, 5),
                           (host_manager.HostState, 2)):
            tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
            self.assertEqual(
                known, sum(map(_is_candidates, ast.walk(tree))), cls)


class ContestedTest(base.TestCase):

    def test_truth(self):
        for answer in True, False:
            self.assertIs(answer, bool(
                contention.Contested([{}], mock.sentinel.network,
                                     lambda: answer)))
        self.assertFalse(
            contention.Contested([], mock.sentinel.network, lambda: True))

    def test_no_error_reaches_the_claim(self):
        """Nova claims the host if it cannot be told whether there is room."""
        for error in ZeroDivisionError, exception.NoValidHost(reason='full'):
            with self.subTest(error):
                self.assertTrue(contention.Contested(
                    [{}], mock.sentinel.network,
                    mock.Mock(side_effect=error)))
                self.assertIn('Room on a host cannot be taken',
                              self.log.output)
