# SPDX-License-Identifier: Apache-2.0
"""Tempest finds the plugin, its options and its tests."""

from importlib import metadata
from importlib import util
import pathlib
import unittest

import fixtures
from oslo_config import cfg
import testtools

from nfv_sched.tests import base

HAVE_TEMPEST = util.find_spec('tempest') is not None


def _tests(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from _tests(item)
        else:
            yield item


class TempestTestCase(base.TimedTestCase):

    def setUp(self):
        super().setUp()
        entry_point, = metadata.entry_points(
            group='tempest.test_plugins', name='nfv_sched')
        self.plugin = entry_point.load()()

    def parsed(self, text=''):
        """The options of the plugin in a tempest.conf of their own."""
        conf = cfg.ConfigOpts()
        self.plugin.register_opts(conf)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join('conf'))
        path.write_text(text, encoding='utf-8')
        conf([], default_config_files=[str(path)])
        return conf


@testtools.skipUnless(HAVE_TEMPEST, 'tempest is not installed')
class TempestPluginTest(TempestTestCase):

    def test_defaults_describe_a_plain_host(self):
        conf = self.parsed()
        self.assertTrue(conf.service_available.nfv_sched)
        self.assertEqual({'*': '1'}, conf.nfv_sched.numa_nodes)
        self.assertEqual({'*': '0'}, conf.nfv_sched.vswitch_nodes)
        self.assertFalse(conf.nfv_sched.ledger)

    def test_options_of_a_cloud(self):
        conf = self.parsed(
            '[nfv_sched]\n'
            'vswitch_nodes = one:1,two:0+1\n'
            'hyperthreading = some\n')
        self.assertEqual({'one': '1', 'two': '0+1'},
                         conf.nfv_sched.vswitch_nodes)
        self.assertEqual('some', conf.nfv_sched.hyperthreading)

    def test_listed_options_are_those_registered(self):
        conf = self.parsed()
        for group, options in self.plugin.get_opt_lists():
            for option in options:
                self.assertIn(option.dest, conf[group])

    def test_default_filters_are_those_of_the_package(self):
        filters = metadata.entry_points(group='nfv_sched.filters').names
        self.assertEqual(
            filters, set(self.parsed().nfv_sched.enabled_filters))

    def test_nodes_of_a_host(self):
        from nfv_sched.tests.tempest.tests.api import base
        option = {'one': '1', 'two': '0+1', 'none': ''}
        for host, nodes in (('one', {1}), ('two', {0, 1}), ('none', set()),
                            ('other', set())):
            self.assertEqual(nodes, base.parse_nodes(option, host))
        self.assertEqual({3}, base.parse_nodes({'*': '3'}, 'other'))

    def test_every_test_has_an_id_of_its_own(self):
        loader = unittest.TestLoader()
        where, top = self.plugin.load_tests()
        tests = list(_tests(loader.discover(where, top_level_dir=top)))
        self.assertEqual([], loader.errors)
        self.assertGreater(len(tests), 30)
        ids = []
        for test in tests:
            method = getattr(test, test._testMethodName)
            marks = getattr(method, '__testtools_attrs', set())
            found = [mark for mark in marks if mark.startswith('id-')]
            self.assertEqual(1, len(found), test.id())
            ids += found
        self.assertEqual(len(ids), len(set(ids)))


@testtools.skipUnless(HAVE_TEMPEST, 'tempest is not installed')
class ThreadPolicyReasonsTest(TempestTestCase):
    """Reasons are expected only where Placement leaves a host to a filter."""

    REASON = (
        'nfv:shared_vcpu=0: not possible with hw:cpu_thread_policy=isolate '
        'or require')

    def run_against(self, described, isolate, require):
        """Run the test of Tempest on a cloud.

        :param described: what tempest.conf says of the cloud
        :param isolate: whether it has hosts without sibling threads
        :param require: whether it has hosts with sibling threads
        """
        from nfv_sched.tests.tempest.tests.api import base
        from nfv_sched.tests.tempest.tests.api import test_cpu_policies
        conf = self.parsed(f'[nfv_sched]\nhyperthreading = {described}\n')
        for module in (base, test_cpu_policies):
            self.useFixture(fixtures.MockPatchObject(module, 'CONF', conf))
        left = {'isolate': isolate, 'require': require}
        asked = []

        def boot_refused(policy):
            asked.append(policy)
            return base.NO_VALID_HOST + self.REASON * left[policy]

        test = test_cpu_policies.SharedVCPUTest('test_thread_policy_negative')
        test.flavor = lambda **specs: specs['hw:cpu_thread_policy']
        test.boot_refused = boot_refused
        test.test_thread_policy_negative()
        self.assertEqual(['isolate', 'require'], asked)

    def test_clouds(self):
        for described, isolate, require in (
                ('none', True, False), ('all', False, True),
                ('some', True, True), ('unknown', False, False),
                ('unknown', True, False)):
            self.run_against(described, isolate, require)

    def test_lost_reason(self):
        for described, isolate, require in (
                ('none', False, False), ('all', False, False),
                ('some', True, False), ('some', False, True)):
            self.assertRaises(AssertionError, self.run_against, described,
                              isolate, require)
