# SPDX-License-Identifier: Apache-2.0
"""What the plugin makes of nova.conf, as Nova reads it, and that it undoes it.
"""

import shutil

from nova.virt import hardware

from nfv_sched.ops.simulator import configuration
from nfv_sched.tests.devstack import base
from nfv_sched import weights

OURS = configuration.our_filters()[1:]  # without NFVTopologyFilter
OUR_WEIGHERS = {cls.__name__ for cls in weights.all_weighers()}
#: The filters of others.conf, and one that somebody has added.
LATE = ('ComputeFilter,AggregateInstanceExtraSpecsFilter,LicenceFilter,'
        'NUMATopologyFilter,ComputeCapabilitiesFilter,PciPassthroughFilter,'
        'Late')
STOCK_WEIGHERS = {'RAMWeigher', 'CPUWeigher', 'BuildFailureWeigher'}


class TestFilters(base.TestCase):
    def weighers(self):
        return {type(w).__name__ for w in self.host_manager().weighers}

    def test_devstack(self):
        self.given('controller.conf', base.CONTROLLER)
        self.run_phases('stack/post-config')
        self.assertEqual(
            ['ComputeFilter', 'ComputeCapabilitiesFilter',
             'ImagePropertiesFilter', 'ServerGroupAntiAffinityFilter',
             'ServerGroupAffinityFilter', 'SameHostFilter',
             'DifferentHostFilter', 'PciPassthroughFilter',
             'NFVTopologyFilter'] + OURS, self.enabled_filters())
        self.assertLessEqual(
            OUR_WEIGHERS | STOCK_WEIGHERS, self.weighers())
        # For plugins that come later.
        self.assertEqual(
            self.enabled_filters(),
            self.variables()['NOVA_FILTERS'].split(','))

    def test_other_plugins(self):
        self.given('others.conf', base.CONTROLLER)
        # Where both were enabled, ours goes where Nova's was.
        self.edit(('NUMATopologyFilter, ',
                   'NFVTopologyFilter,NUMATopologyFilter, '))
        self.run_phases('stack/post-config')
        self.assertEqual(
            ['ComputeFilter', 'AggregateInstanceExtraSpecsFilter',
             'LicenceFilter', 'NFVTopologyFilter',
             'ComputeCapabilitiesFilter', 'PciPassthroughFilter'] + OURS,
            self.enabled_filters())
        self.assertLessEqual(
            OUR_WEIGHERS | STOCK_WEIGHERS | {'LicenceWeigher'},
            self.weighers())

    def test_chosen_filters(self):
        self.given('others.conf', base.CONTROLLER,
                   NFV_SCHED_FILTERS='VSwitchPortLimitFilter,LicenceFilter')
        self.run_phases('stack/post-config')
        self.assertEqual(
            ['ComputeFilter', 'AggregateInstanceExtraSpecsFilter',
             'LicenceFilter', 'NUMATopologyFilter',
             'ComputeCapabilitiesFilter', 'PciPassthroughFilter',
             'VSwitchPortLimitFilter'], self.enabled_filters())

    def test_replaced_by_local_conf(self):
        """local.conf is merged after the plugin has written."""
        self.given('controller.conf', base.CONTROLLER)
        self.run_phases('stack/post-config')
        self.assertNotIn('WARNING', self.run_phases('stack/extra'))
        self.edit(('VSwitchNUMAAffinityFilter,', ''))
        self.assertIn(
            'These filters are not enabled: VSwitchNUMAAffinityFilter. ',
            self.run_phases('stack/extra'))


class TestOptions(base.TestCase):
    def test_defaults(self):
        self.given('controller.conf', base.CONTROLLER)
        self.run_phases('stack/post-config')
        conf = self.load()
        self.assertEqual(254, conf.nfv_sched.vswitch_ports_per_node)
        self.assertTrue(conf.workarounds.disable_fallback_pcpu_query)
        self.assertEqual(10, conf.scheduler.max_attempts)
        self.assertEqual(
            {'scheduler': {'max_attempts': ['10']}}, base.parse(
                (self.nova_conf.parent / 'nova_cell1.conf').read_text()))

    def test_attempts_of_others(self):
        self.given('controller.conf', base.CONTROLLER)
        with open(self.nova_conf, 'a') as nova_conf:
            nova_conf.write('[scheduler]\nmax_attempts = 20\n')
        self.run_phases('stack/post-config')
        self.assertEqual(20, self.load().scheduler.max_attempts)
        self.assertEqual(
            {'scheduler': {'max_attempts': ['20']}}, base.parse(
                (self.nova_conf.parent / 'nova_cell1.conf').read_text()))

    def test_settings(self):
        given = {
            'vswitch_label': 'my_switch',
            'node_label_prefix': 'my_node',
            'vswitch_ports_per_node': 20,
            'vswitch_physical_ports': 2,
            'vnics_per_guest': 3,
            'sriov_vfs_per_guest': 4,
            'pci_nics_per_guest': 5,
            'network_services_per_node': 6,
            'security_rules_per_node': 700,
            'security_rules_per_port': 80,
            'expose_reasons': 'hosts',
        }
        self.given(
            'others.conf', base.CONTROLLER,
            NFV_SCHED_DISABLE_FALLBACK_PCPU_QUERY='no',
            **{f'NFV_SCHED_{name.upper()}': value
               for name, value in given.items()})
        self.run_phases('stack/pre-install', 'stack/post-config')
        conf = self.load()
        for name, value in given.items():
            self.assertEqual(value, conf.nfv_sched[name], name)
        self.assertFalse(conf.workarounds.disable_fallback_pcpu_query)

    def test_others_are_kept(self):
        self.given('others.conf')
        before = base.parse(self.text())
        self.run_phases('stack/post-config')
        after = base.parse(self.text())
        changed = {
            (section, option)
            for section, options in before.items()
            for option, values in options.items()
            if after[section].get(option) != values}
        self.assertEqual(
            {('filter_scheduler', 'available_filters'),
             ('filter_scheduler', 'enabled_filters'),
             ('filter_scheduler', 'weight_classes'),
             ('neutron', 'physnets'),
             ('workarounds', 'disable_fallback_pcpu_query')}, changed)
        conf = self.load()
        self.assertEqual(6, conf.nfv_sched.vnics_per_guest)
        self.assertEqual(2, len(conf.pci.alias))

    def test_neutron_configured_meanwhile(self):
        """Neither DevStack's background job nor the plugin loses a line."""
        self.given('controller.conf')
        self.run_phases('stack/post-config')
        conf = self.load()
        self.assertEqual('RegionOne',
                         base.parse(self.text())['neutron']['region_name'][0])
        self.assertIn('nfv_vswitch', conf.neutron.physnets)

    def test_wrong_values(self):
        for name, value in (
                ('NFV_SCHED_LEDGER', 'database'),
                ('NFV_SCHED_VSWITCH_PORTS_PER_NODE', 'lots'),
                ('NFV_SCHED_SECURITY_RULES_PER_PORT', '1,5'),
                ('NFV_SCHED_EXPOSE_REASONS', 'all')):
            self.given('controller.conf', **{name: value})
            self.assertIn(f'{name}={value} must be',
                          self.run_phases('stack/pre-install', fails=True))
            del self.settings[name]
        for value in '-1', '2.5', '10':
            self.given('controller.conf', NFV_SCHED_VNICS_PER_GUEST=value)
            self.run_phases('stack/pre-install')

    def test_no_nova(self):
        programs = self.directory / 'nova-bin'
        programs.mkdir()
        python = programs / 'python3'
        python.write_text('#!/bin/sh\nexec /bin/false\n')
        python.chmod(0o755)
        self.given('controller.conf', NOVA_BIN_DIR=programs)
        self.assertIn("cannot read Nova's default options; is Nova installed",
                      self.run_phases('stack/post-config', fails=True))


class TestCompute(base.TestCase):
    """Labels and CPU sets."""

    def declared(self):
        """The NUMA nodes of each physical network, as Nova reads them."""
        conf = self.load()
        return {physnet: conf[f'neutron_physnet_{physnet}'].numa_nodes
                for physnet in conf.neutron.physnets}

    def cpus(self):
        self.load()
        return (hardware.get_cpu_dedicated_set(),
                hardware.get_cpu_shared_set())

    def test_compute_node_only(self):
        """No option of the scheduler is written there."""
        self.given('compute.conf', 'n-cpu,ovn-controller',
                   NFV_SCHED_VSWITCH_NUMA_NODES='0,1')
        self.run_phases(*base.STACK)
        self.assertEqual(
            {'physnet0': [1], 'nfv_vswitch': [0, 1], 'nfv_node0': [0],
             'nfv_node1': [1]}, self.declared())
        self.assertEqual(({2, 3, 6, 7}, {0, 1, 4, 5}), self.cpus())
        written = set(base.parse(self.text()))
        self.assertFalse(
            written & {'filter_scheduler', 'nfv_sched', 'workarounds'})
        self.assertEqual('n-cpu,ovn-controller',
                         self.variables()['ENABLED_SERVICES'])
        self.assertFalse((self.directory / 'installed').exists())

    def test_controller_only(self):
        """No host is described where there is no nova-compute."""
        self.given('controller.conf', base.CONTROLLER)
        self.run_phases(*base.STACK)
        self.assertEqual({}, self.declared())
        self.assertEqual((None, None), self.cpus())

    def test_label_of_others(self):
        """What says where the switch runs is kept, or overridden."""
        self.given('compute.conf')
        with self.nova_conf.open('a') as nova_conf:
            nova_conf.write('[neutron_physnet_nfv_vswitch]\nnuma_nodes = 1\n')
        self.run_phases('stack/post-config')
        self.assertEqual([1], self.declared()['nfv_vswitch'])
        self.settings['NFV_SCHED_VSWITCH_NUMA_NODES'] = '0'
        self.run_phases('stack/post-config')
        self.assertEqual([0], self.declared()['nfv_vswitch'])
        self.run_phases('clean')
        conf = self.load()
        self.assertEqual([1], conf.neutron_physnet_nfv_vswitch.numa_nodes)

    def test_kernel_without_numa(self):
        self.given('controller.conf')
        self.machine([[['0'], ['1'], ['2'], ['3']]])
        shutil.rmtree(self.directory / 'sys' / 'node')
        online = self.directory / 'sys' / 'cpu' / 'online'
        online.write_text('0-3\n')
        self.run_phases('stack/post-config')
        self.assertEqual({'nfv_vswitch': [0], 'nfv_node0': [0]},
                         self.declared())
        self.assertEqual(({2, 3}, {0, 1}), self.cpus())

    def test_threads_of_a_core_stay_together(self):
        self.given('controller.conf')
        self.machine([[['0', '8'], ['1', '9'], ['2', '10']],
                      [['4', '12'], ['5', '13']]])
        self.run_phases('stack/post-config')
        self.assertEqual(({2, 10, 5, 13}, {0, 8, 1, 9, 4, 12}), self.cpus())

    def test_one_core(self):
        """Nothing can be dedicated, so all CPUs are left to all guests."""
        self.given('controller.conf')
        self.machine([[['0', '1']]])
        self.assertIn('No NUMA node of this machine has two cores',
                      self.run_phases('stack/post-config'))
        self.assertEqual((None, None), self.cpus())

    def test_given_cpus(self):
        for settings, wanted in (
                ({'CPU_DEDICATED_SET': '1-3,^2,5', 'CPU_SHARED_SET': '0,4'},
                 ({1, 3, 5}, {0, 4})),
                ({'CPU_DEDICATED_SET': '1-7'}, (set(range(1, 8)), None)),
                ({'CPU_SHARED_SET': 'none'}, (None, None))):
            self.given('controller.conf', **{
                f'NFV_SCHED_{name}': value
                for name, value in settings.items()})
            self.run_phases('stack/pre-install', 'stack/post-config')
            self.assertEqual(wanted, self.cpus())
            for name in settings:
                del self.settings[f'NFV_SCHED_{name}']

    def test_wrong_settings(self):
        for settings, message in (
                ({'VSWITCH_NUMA_NODES': '0,2'},
                 'NFV_SCHED_VSWITCH_NUMA_NODES=0,2: this machine has no '
                 'NUMA node 2 with CPUs (it has: 0 1)'),
                ({'CPU_DEDICATED_SET': '2-9'},
                 'NFV_SCHED_CPU_DEDICATED_SET=2-9: this machine has no CPU '
                 '8 that is online (it has: 0 1 2 3 4 5 6 7)'),
                ({'CPU_SHARED_SET': 'all'},
                 'NFV_SCHED_CPU_SHARED_SET=all is not a set of CPUs'),
                ({'CPU_DEDICATED_SET': '2,^2'},
                 'NFV_SCHED_CPU_DEDICATED_SET=2,^2 is not a set of CPUs'),
                ({'CPU_DEDICATED_SET': '2-7', 'CPU_SHARED_SET': '0-3'},
                 'have CPUs in common: 2 3')):
            self.given('controller.conf', **{
                f'NFV_SCHED_{name}': value
                for name, value in settings.items()})
            printed = self.run_phases('stack/pre-install', fails=True)
            self.assertIn(message, printed)
            for name in settings:
                del self.settings[f'NFV_SCHED_{name}']


class TestTwice(base.TestCase):
    """Running the plugin again, and undoing it."""

    def assert_undone(self, name):
        """Only what DevStack itself has written remains."""
        original = base.parse(self.original(name))
        original.setdefault('neutron', {})['region_name'] = ['RegionOne']
        self.assertEqual(original, base.parse(self.text()))

    def check(self, name):
        """Run twice, which changes nothing more, and undo it."""
        self.given(name)
        self.run_phases(*base.STACK)
        once = self.text()
        self.assertNotEqual(self.original(name), once)
        self.run_phases(*base.STACK)
        self.assertEqual(once, self.text())
        self.run_phases('unstack', 'clean')
        self.assert_undone(name)
        self.assertEqual(self.comments(self.original(name)),
                         self.comments(self.text()))
        # DevStack makes, and removes, that of the cell.
        self.assertEqual({'nova.conf', 'nova_cell1.conf'}, {
            path.name for path in self.nova_conf.parent.iterdir()})
        undone = self.text()
        self.run_phases('clean')
        self.assertEqual(undone, self.text())

    @staticmethod
    def comments(text):
        return [line for line in text.splitlines() if line.startswith('#')]

    def test_other_plugins(self):
        self.check('others.conf')

    def test_compute_node(self):
        self.check('compute.conf')

    def test_bare(self):
        self.check('bare.conf')

    def test_undo_with_other_settings(self):
        """What was written is undone, not what would be written now."""
        self.given('others.conf')
        self.run_phases('stack/post-config')
        self.settings.update(NFV_SCHED_VSWITCH_LABEL='ovs',
                             NFV_SCHED_LEDGER='none')
        self.run_phases('unstack', 'clean')
        self.assert_undone('others.conf')

    def test_undo_without_anything(self):
        self.given('others.conf')
        self.run_phases('unstack', 'clean')
        self.assertEqual(self.original('others.conf'), self.text())
        self.nova_conf.unlink()
        self.run_phases('unstack', 'clean')

    def test_undo_leaves_what_others_have_added_since(self):
        self.given('others.conf')
        self.run_phases('stack/post-config')
        self.edit(
            ('SecurityRuleLimitFilter', 'SecurityRuleLimitFilter,Late'),
            ('all_weighers\n', 'all_weighers,late.Weigher\n'),
            ('available_filters = nfv_sched.filters.all_filters\n',
             'available_filters = nfv_sched.filters.all_filters\n'
             'available_filters = late.Filter\n'),
            ('vswitch_label = nfv_vswitch', 'vswitch_label = x\nlate = 1'))
        # Another run does not take theirs for what there was at first.
        self.run_phases('stack/post-config')
        self.run_phases('clean')
        options = base.parse(self.text())
        self.assertEqual([LATE],
                         options['filter_scheduler']['enabled_filters'])
        self.assertEqual(
            ['nova.scheduler.weights.all_weighers,'
             'nfv_sched.tests.devstack.others.LicenceWeigher,late.Weigher'],
            options['filter_scheduler']['weight_classes'])
        self.assertEqual(
            ['nova.scheduler.filters.all_filters',
             'nfv_sched.tests.devstack.others.LicenceFilter', 'late.Filter'],
            options['filter_scheduler']['available_filters'])
        self.assertEqual(['1'], options['nfv_sched']['late'])

    def test_lost_record(self):
        self.given('controller.conf')
        self.run_phases('stack/post-config')
        (self.nova_conf.parent / 'nfv-sched-devstack.ini').unlink()
        self.assertIn(
            'nfv-sched-devstack.ini is gone, so it is not known what',
            self.run_phases('stack/post-config', fails=True))
        # Cleaning goes on: DevStack removes the directory in the end.
        self.assertIn(
            'nfv-sched-devstack.ini is gone, so what the plugin nfv-sched',
            self.run_phases('clean'))
