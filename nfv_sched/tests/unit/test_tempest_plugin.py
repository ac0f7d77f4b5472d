# SPDX-License-Identifier: Apache-2.0
"""Tempest finds the plugin, its options and its tests."""

from importlib import metadata
from importlib import util
import unittest

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


@testtools.skipUnless(HAVE_TEMPEST, 'tempest is not installed')
class TempestPluginTest(base.TimedTestCase):

    def setUp(self):
        super().setUp()
        entry_point, = metadata.entry_points(
            group='tempest.test_plugins', name='nfv_sched')
        self.plugin = entry_point.load()()

    def parsed(self):
        conf = cfg.ConfigOpts()
        self.plugin.register_opts(conf)
        conf([], default_config_files=[])
        return conf

    def test_defaults_describe_a_plain_host(self):
        conf = self.parsed()
        self.assertTrue(conf.service_available.nfv_sched)
        self.assertEqual({'*': '1'}, conf.nfv_sched.numa_nodes)
        self.assertEqual({'*': '0'}, conf.nfv_sched.vswitch_nodes)
        self.assertFalse(conf.nfv_sched.ledger)

    def test_listed_options_are_those_registered(self):
        conf = self.parsed()
        for group, options in self.plugin.get_opt_lists():
            for option in options:
                self.assertIn(option.dest, conf[group])

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
        self.assertGreater(len(tests), 5)
        ids = []
        for test in tests:
            method = getattr(test, test._testMethodName)
            marks = getattr(method, '__testtools_attrs', set())
            found = [mark for mark in marks if mark.startswith('id-')]
            self.assertEqual(1, len(found), test.id())
            ids += found
        self.assertEqual(len(ids), len(set(ids)))
