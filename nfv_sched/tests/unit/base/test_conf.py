# SPDX-License-Identifier: Apache-2.0
"""The options."""

from oslo_config import cfg

from nfv_sched.base import conf
from nfv_sched.tests import base
from nfv_sched.weights import all_weighers


class TestOptions(base.TestCase):

    def setUp(self):
        super().setUp()
        (self.group, self.options), = conf.list_opts()

    def test_registered(self):
        """What is listed can be read, with its default, and nothing else."""
        registered = cfg.ConfigOpts()
        conf.register_opts(registered)
        conf.register_opts(registered)  # as each module does
        registered([])
        self.assertEqual('nfv_sched', self.group.name)
        self.assertEqual({option.dest for option in self.options},
                         set(registered.nfv_sched))
        for option in self.options:
            self.assertEqual(
                option.default, registered.nfv_sched[option.dest])

    def test_help(self):
        for option in self.options:
            self.assertGreater(len(option.help.strip()), 40, option.name)

    def test_names_are_unique(self):
        names = [option.name for option in self.options]
        self.assertEqual(len(names), len(set(names)))

    def test_each_weigher_has_a_multiplier(self):
        names = {option.dest for option in self.options}
        self.assertEqual(
            {cls.multiplier for cls in all_weighers()},
            {name for name in names if name.endswith('_weight_multiplier')})

    def test_labels_cannot_be_lists(self):
        """They are names of physical networks."""
        for name in ('vswitch_label', 'node_label_prefix'):
            for value in ('a,b', 'a b', ''):
                self.assertRaises(ValueError, self.flags, **{name: value})
            self.flags(**{name: 'ovs-dpdk'})
