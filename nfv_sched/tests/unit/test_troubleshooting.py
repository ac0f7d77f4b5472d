# SPDX-License-Identifier: Apache-2.0
"""Every reason that the code can give is explained in the documentation.

The texts of the reasons are read from the source: what is constant in a
reason, in its order, must be in an entry of the page, and each entry must be
about a reason.
"""

import ast
import itertools
import os
import re

import nfv_sched
from nfv_sched.filters import security_rule_limit
from nfv_sched.filters import vswitch_port_limit
from nfv_sched.fit.numa import shortage
from nfv_sched.tests import base

_PACKAGE = os.path.dirname(nfv_sched.__file__)
_PAGE = os.path.join(os.path.dirname(_PACKAGE), 'doc', 'source', 'reference',
                     'reasons.rst')
_BEGIN = 'What the reasons mean\n'
_END = 'Not from nfv-sched\n'

# What gives reasons, and which arguments make the text.
_CALLS = {
    'Reason': slice(1, 4),
    'RequestError': slice(1, 2),
    'Fault': slice(1, 2),
    '_allowed': slice(0, 1),  # of filters/network.py
}
# Too little of a text is constant for it to say which entry is about it.
_VAGUE = re.compile(r'(needed|has|free|NUMA nodes?| )*')


def _constants(node):
    """Alternatives of what is constant in an expression, in order."""
    if isinstance(node, ast.Constant):
        return [[node.value]] if isinstance(node.value, str) else [[]]
    if isinstance(node, ast.JoinedStr):
        parts = [_constants(value) for value in node.values
                 if isinstance(value, ast.Constant)]
        return _in_order(parts)
    if isinstance(node, ast.IfExp):
        return _constants(node.body) + _constants(node.orelse)
    return [[]]


def _in_order(parts):
    return [list(itertools.chain.from_iterable(choice))
            for choice in itertools.product(*parts)]


def _texts(tree):
    """Constant parts of all reasons in a module."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, 'attr', getattr(node.func, 'id', ''))
        if name in _CALLS:
            yield from _in_order(
                [_constants(arg) for arg in node.args[_CALLS[name]]])


def _reasons():
    for directory, _directories, names in os.walk(_PACKAGE):
        if 'tests' in os.path.relpath(directory, _PACKAGE).split(os.sep):
            continue
        for name in sorted(names):
            if name.endswith('.py') and 'simulator' not in directory:
                path = os.path.join(directory, name)
                with open(path) as source:
                    tree = ast.parse(source.read())
                for parts in _texts(tree):
                    yield os.path.relpath(path, _PACKAGE), [
                        part.strip(' ,:;=') for part in parts
                        if part.strip(' ,:;=')]


def _page():
    with open(_PAGE) as page:
        text = page.read()
    return text[text.index(_BEGIN):text.index(_END)]


def _entries(text):
    """The reasons that the page has entries for."""
    for line, following in itertools.pairwise(text.splitlines()):
        if line.startswith('``') and following.startswith('    '):
            yield from re.findall('``(.+?)``', line)


def _about(entry, parts):
    """Whether all parts are in an entry, one after the other."""
    position = 0
    for part in parts:
        position = entry.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


class TroubleshootingTest(base.TimedTestCase):

    def setUp(self):
        super().setUp()
        self.page = _page()
        self.entries = list(_entries(self.page))
        self.reasons = list(_reasons())

    def test_something_is_compared(self):
        self.assertGreater(len(self.reasons), 50)
        self.assertGreater(len(self.entries), 50)
        files = {path for path, _parts in self.reasons}
        for path in ('base/extra_specs.py', 'fit/request.py', 'fit/decide.py',
                     'filters/base.py', 'limits/decide.py',
                     'fit/numa/shortage.py', 'fit/numa/decide.py',
                     'fit/numa/rule.py',
                     'fit/rules/pci.py'):
            self.assertIn(path, files)

    def test_every_reason_has_an_entry(self):
        missing = [
            f'{path}: {" ... ".join(parts)}' for path, parts in self.reasons
            if not any(_about(entry, parts) for entry in self.entries)]
        self.assertEqual([], missing)

    def test_every_entry_has_a_reason(self):
        telling = [parts for _path, parts in self.reasons
                   if not _VAGUE.fullmatch(' '.join(parts))]
        stale = [entry for entry in self.entries
                 if not any(_about(entry, parts) for parts in telling)]
        # These have only their nouns and numbers.
        for noun in (vswitch_port_limit.VSwitchPortLimitFilter.counted.noun,
                     security_rule_limit.SecurityRuleLimitFilter.counted.noun):
            stale.remove(f'{noun}: N needed, M of L free')
        stale.remove('...: N VFs on physnet P needed, M free')
        stale.remove('...: N NUMA nodes needed, has M')
        self.assertEqual([], stale)

    def test_kinds_of_room(self):
        words = ' '.join(self.page.split())
        for need, _have in shortage.CAPACITY_TEXT.values():
            self.assertIn(need.replace('{}', 'N').removeprefix('N '), words)
