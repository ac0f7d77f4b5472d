# SPDX-License-Identifier: Apache-2.0
"""Classes that come from entry points."""

import os

import fixtures

from nfv_sched.base import extensions
from nfv_sched.tests import base

GROUP = 'nfv_sched.tests'


class TestClasses(base.TestCase):

    def install(self, *lines):
        site = self.useFixture(fixtures.TempDir()).path
        info = os.path.join(site, 'nfvx-1.0.dist-info')
        os.mkdir(info)
        for name, content in (
                ('METADATA', ('Name: nfvx', 'Version: 1.0')),
                ('entry_points.txt', (f'[{GROUP}]', *lines))):
            with open(os.path.join(info, name), 'w') as target:
                target.write('\n'.join([*content, '']))
        self.useFixture(fixtures.PythonPathEntry(site))
        # stevedore remembers what it has found, in the process and in files.
        self.useFixture(fixtures.MockPatch(
            'stevedore.extension.ExtensionManager.ENTRY_POINT_CACHE', {}))
        self.useFixture(fixtures.EnvironmentVariable(
            'XDG_CACHE_HOME', self.useFixture(fixtures.TempDir()).path))

    def test_in_order_of_names(self):
        self.install('b = nfv_sched.base.conf:list_opts',
                     'a = nfv_sched.base.strings:brief',
                     'c = nfv_sched.base.strings:some')
        self.assertEqual(
            ['brief', 'list_opts', 'some'],
            [cls.__name__ for cls in extensions.classes(GROUP)])

    def test_one_that_cannot_be_loaded(self):
        self.install('a = nfv_sched.no_such:thing',
                     'b = nfv_sched.base.strings:some',
                     'c = nfv_sched.base.strings:no_such')
        self.assertEqual(
            ['some'], [cls.__name__ for cls in extensions.classes(GROUP)])
        for name in 'ac':
            self.assertIn(f'{name} of {GROUP} cannot be loaded',
                          self.log.output)

    def test_none(self):
        self.assertEqual([], extensions.classes('nfv_sched.no_such_group'))
