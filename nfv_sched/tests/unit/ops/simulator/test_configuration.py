# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses
import random

import fixtures
from nova import exception

from nfv_sched.fit import rules
from nfv_sched.ops.answers.simulation import reading
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.simulator import configuration
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit import test_example_rule

LIMITS = ['VSwitchPortLimitFilter', 'SecurityRuleLimitFilter']


class OurFiltersTest(base.TestCase):

    ours = rules.filters()

    def test_filters_without_rules(self):
        nova = 'nova.scheduler.filters'
        self.useFixture(test_example_rule.Installed({'nfv_sched.filters': {
            'one': f'{nova}.num_instances_filter:NumInstancesFilter',
            'two': f'{nova}.all_hosts_filter:AllHostsFilter'}}))
        self.assertEqual(
            [*self.ours, test_example_rule.EVEN, 'AllHostsFilter',
             'NumInstancesFilter', *LIMITS], configuration.our_filters())

    def test_rule_without_filter(self):
        self.useFixture(test_example_rule.Installed({'nfv_sched.filters': {
            test_example_rule.EVEN: 'nfv_sched.no:Filter'}}))
        self.assertEqual(self.ours + LIMITS, configuration.our_filters())

    def test_other_packages_before_limits(self):
        self.useFixture(test_example_rule.Installed())
        self.assertEqual([*self.ours, test_example_rule.EVEN, *LIMITS],
                         configuration.our_filters())


class OptionsWithoutValueTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = snapshots.cloud([snapshots.host()])

    def test_snapshot(self):
        """Nova would take null for the name of a filter."""
        for value in (None, [None]):
            changed = scenario.Scenario(cloud=dataclasses.replace(
                self.cloud, options={
                    'filter_scheduler': {'enabled_filters': value}}))
            with configuration.defaults(), configuration.overrides(changed):
                self.assertIn(
                    'ComputeFilter',
                    configuration.CONF.filter_scheduler.enabled_filters)

    def test_cloud_file(self):
        changed = scenario.Scenario(cloud=dataclasses.replace(
            self.cloud, options={
                'filter_scheduler': {'enabled_filters': None}}),
            lines={('filter_scheduler', 'enabled_filters'): 3})
        with configuration.defaults():
            error = self.assertRaises(
                problems.InputError,
                configuration.overrides(changed).__enter__)
        self.assertIn('must have a value', str(error))


class RestoreTest(base.TestCase):
    #: Options that the cloud and the file of these tests set.
    OPTIONS = (
        ('DEFAULT', 'service_down_time'),
        ('DEFAULT', 'default_availability_zone'),
        ('filter_scheduler', 'available_filters'),
        ('filter_scheduler', 'enabled_filters'),
        ('filter_scheduler', 'weight_classes'),
        ('filter_scheduler', 'ram_weight_multiplier'),
        ('filter_scheduler', 'host_subset_size'),
        ('nfv_sched', 'expose_reasons'))
    CLOUD = snapshots.cloud([snapshots.host()], options={
        'filter_scheduler': {
            'enabled_filters': ['ComputeFilter'],
            'ram_weight_multiplier': 5.0}})

    def setUp(self):
        super().setUp()
        self.conf = configuration.CONF
        with configuration.defaults():
            pass  # registers the options
        for group, name, value in (
                ('filter_scheduler', 'enabled_filters', ['ComputeFilter']),
                ('filter_scheduler', 'host_subset_size', 7)):
            self.conf.set_override(name, value, group=group)
            self.addCleanup(self.conf.clear_override, name, group=group)
        self.conf.set_default('expose_reasons', 'summary', group='nfv_sched')
        self.addCleanup(
            self.conf.clear_default, 'expose_reasons', group='nfv_sched')
        self.before = self.all()

    def all(self):
        """All that a simulation may change for the process."""
        options = {}
        for group, name in self.OPTIONS:
            section = self.conf if group == 'DEFAULT' else self.conf[group]
            options[group, name] = section[name]
        with contextlib.suppress(AttributeError):
            options['files'] = self.conf.config_file
        return (options, hash(random.getstate()),
                list(nova_internals.request_filter.ALL_REQUEST_FILTERS))

    def file(self, text):
        path = f'{self.useFixture(fixtures.TempDir()).path}/nova.conf'
        with open(path, 'w') as target:
            target.write(text)
        return path

    @contextlib.contextmanager
    def loaded(self, text, *config_files):
        with reading.loaded(
                self.file(text), config_files=config_files) as state:
            yield state

    def test_snapshot(self):
        with start.started(self.CLOUD, seed=3):
            self.assertNotEqual(self.before, self.all())
            self.assertEqual(
                5.0, self.conf.filter_scheduler.ram_weight_multiplier)
        self.assertEqual(self.before, self.all())

    def test_error_within(self):
        for error in (exception.NovaException, KeyboardInterrupt):
            with (contextlib.suppress(error), start.started(self.CLOUD)):
                raise error()
            self.assertEqual(self.before, self.all())

    def test_error_at_the_beginning(self):
        host = snapshots.host(stats={'num_instances': 'many'})
        for found in (
            snapshots.cloud([snapshots.host()], options={
                'DEFAULT': {'default_availability_zone': 'here'},
                'filter_scheduler': {'host_subset_size': 'few'}}),
            snapshots.cloud([snapshots.host()], options={
                'filter_scheduler': {'enabled_filters': ['NoFilter']}}),
            snapshots.cloud([host]),
        ):
            self.assertRaises(
                problems.InputError, start.started(found).__enter__)
            self.assertEqual(self.before, self.all())

    def test_configuration_files(self):
        cloud = 'hosts: [{name: a, cores: 8, memory: 8 GiB}]\n' \
                'flavors: {f: {vcpus: 1, memory: 512}}\nsteps: []\n'
        first = self.file('[DEFAULT]\ndefault_availability_zone = first\n')
        self.addCleanup(self.conf.clear)
        self.conf([], default_config_files=[first], default_config_dirs=[])
        self.before = self.all()
        second = self.file('[filter_scheduler]\nram_weight_multiplier = 9\n')
        with self.loaded(cloud, second):
            self.assertEqual(
                (9.0, 'nova'),
                (self.conf.filter_scheduler.ram_weight_multiplier,
                 self.conf.default_availability_zone))
        self.assertEqual(self.before, self.all())
        self.assertEqual('first', self.conf.default_availability_zone)
        for text, path in (('no cloud', second), (cloud, '/no/such/file'),
                           (cloud, self.file('not a section'))):
            self.assertRaises(
                problems.InputError, self.loaded(text, path).__enter__)
            self.assertEqual(self.before, self.all())


class OneCloudTest(base.TestCase):
    """A process has one configuration of Nova."""

    def test_second(self):
        cloud = RestoreTest.CLOUD
        with start.started(cloud) as state:
            error = self.assertRaises(
                configuration.CloudOpenError, start.started(cloud).__enter__)
            self.assertIn('close it', str(error))
            # The first goes on.
            self.assertEqual(['ComputeFilter'], [
                type(each).__name__ for each in state.manager.enabled_filters])
            self.assertEqual(
                5.0, configuration.CONF.filter_scheduler.ram_weight_multiplier)
        with start.started(cloud):
            pass
