# SPDX-License-Identifier: Apache-2.0
"""The checks of filters, weighers, options and validators on real files."""

import functools
import os
import re

import fixtures
import nova.conf
from oslo_upgradecheck import upgradecheck

from nfv_sched.checks import scheduler
from nfv_sched.fit import rules
from nfv_sched.nova import behaviour
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.simulator import configuration
from nfv_sched.scheduler import validators as nfv_validators
from nfv_sched.tests import base
from nfv_sched.tests.unit import test_example_rule
from nfv_sched import weights

CONF = nova.conf.CONF

STOCK = ('ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,'
         'ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter')
PLUGIN = ','.join(name for name in configuration.our_filters()
                  if name not in scheduler.LIMITS)
LIMITS = ','.join(scheduler.LIMITS)
AVAILABLE = """\
available_filters = nova.scheduler.filters.all_filters
available_filters = nfv_sched.filters.all_filters
"""
WEIGHERS = """\
weight_classes = nova.scheduler.weights.all_weighers,\
nfv_sched.weights.all_weighers
"""

NOVA_WEIGHERS = 'weight_classes = nova.scheduler.weights.all_weighers\n'


class CheckTestCase(base.TestCase):
    def read(self, filters='', options=''):
        self.path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'nova.conf')
        with open(self.path, 'w') as nova_conf:
            nova_conf.write(f'[filter_scheduler]\n{filters}\n{options}\n')
        CONF(['--config-file', self.path], project='nova')

    def assertResult(self, code, result, *texts):
        self.assertEqual(code, result.code, result.details)
        for text in texts:
            self.assertIn(text, result.details)

    assertSuccess = functools.partialmethod(
        assertResult, upgradecheck.Code.SUCCESS)
    assertWarning = functools.partialmethod(
        assertResult, upgradecheck.Code.WARNING)
    assertFailure = functools.partialmethod(
        assertResult, upgradecheck.Code.FAILURE)


class FiltersTest(CheckTestCase):

    def check(self, enabled, available=AVAILABLE):
        self.read(f'{available}enabled_filters = {enabled}')
        return scheduler.filters(CONF)

    def test_enabled(self):
        nova = 'available_filters = nova.scheduler.filters.'
        ours = 'available_filters = nfv_sched.filters.'
        compute = f'{nova}compute_filter.ComputeFilter\n'
        for check, enabled, available, *texts in (
                (self.assertSuccess,
                 f'{STOCK},PciPassthroughFilter,{PLUGIN},{LIMITS}', AVAILABLE,
                 'Enabled: NFVTopologyFilter', 'SecurityRuleLimitFilter.'),
                (self.assertSuccess, f'{STOCK},NFVTopologyFilter', AVAILABLE,
                 'Not enabled, so not enforced: nfv:vswitch_numa_affinity, '
                 'nfv:pci_numa_affinity, ',
                 ', limits of ports, limits of security-group rules.'),
                (self.assertSuccess, 'ComputeFilter,NFVTopologyFilter',
                 f'{compute}{ours}nfv_topology.NFVTopologyFilter\n'),
                # Rules of all guests, and limits, need no topology.
                (self.assertSuccess,
                 f'{STOCK},NUMATopologyFilter,CPUThreadPolicyFilter',
                 AVAILABLE),
                (self.assertSuccess, f'{STOCK},{LIMITS}', AVAILABLE),
                (self.assertWarning, f'{STOCK},NUMATopologyFilter', '',
                 'No filter of nfv-sched is enabled',
                 'nfv_sched.filters.all_filters'),
                (self.assertWarning, f'{STOCK},VSwitchNUMAAffinityFilter',
                 AVAILABLE, 'VSwitchNUMAAffinityFilter enabled without '
                 'NFVTopologyFilter', 'nfv:numa_node.N is not kept',
                 'no filter looks'),
                (self.assertWarning, f'{STOCK},{PLUGIN}', AVAILABLE,
                 'add PciPassthroughFilter'),
                (self.assertFailure, f'{STOCK},{PLUGIN}',
                 f'{ours}all_filters\n', 'enabled_filters has ComputeFilter, ',
                 f'{nova}all_filters;'),
                (self.assertFailure, f'{STOCK},NFVTopologyFilter', '',
                 'enabled_filters has NFVTopologyFilter, which',
                 f'{ours}all_filters;'),
                (self.assertFailure, f'{STOCK},NFVTopologyFilter', compute,
                 'nova.scheduler.filters.all_filters and '
                 'nfv_sched.filters.all'),
                # Only what is missing is lost.
                (self.assertFailure, 'ComputeFilter,NFVTopologyFilter',
                 compute, f'add lines {ours}all_filters;'),
                (self.assertFailure, 'ComputeFilter,ComputFilter', '',
                 'has ComputFilter, which', 'check the spelling'),
                (self.assertFailure, f'{STOCK},NFVTopologyFilter',
                 f'{AVAILABLE}available_filters = other_plugin.all_filters\n',
                 'other_plugin.all_filters cannot be loaded')):
            with self.subTest(enabled, available=available):
                check(self.check(enabled, available), *texts)

    def test_beside_the_stock_filter(self):
        """It would write over labels; those in shadow write none."""
        for ours in ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter',
                     'NFVTopologyFilter, SharedVCPUFilter'):
            enabled = f'{STOCK},NUMATopologyFilter,{ours}'
            self.assertFailure(
                self.check(enabled), 'NUMATopologyFilter beside filters')
            self.flags(shadow=ours.split(', '))
            self.assertSuccess(self.check(enabled))
            self.flags(shadow=[])

    def test_limits_that_live_migrations_lose(self):
        self.useFixture(fixtures.MockPatchObject(
            nova_scheduler, 'live_migration_carries_limits', lambda: False))
        carries = self.useFixture(fixtures.MockPatchObject(
            behaviour, 'live_migration_carries_limits')).mock
        carries.return_value = False
        enabled = f'{STOCK},PciPassthroughFilter,{PLUGIN}'
        lost = 'Live migrations of servers with strict policies are refused'
        self.assertSuccess(self.check(enabled), lost)
        self.assertNotIn(lost, self.check(STOCK).details)
        options = 'moves_without_limits = accept'
        self.read(f'{AVAILABLE}enabled_filters = {enabled}',
                  f'[nfv_sched]\n{options}')
        self.assertWarning(scheduler.filters(CONF), options, '2153425')
        carries.return_value = True
        result = scheduler.filters(CONF)
        self.assertSuccess(result)
        self.assertNotIn('2153425', result.details)
        self.flags(moves_without_limits='refuse')
        self.assertWarning(
            scheduler.filters(CONF), f'set [nfv_sched] {options}')
        self.useFixture(fixtures.MockPatchObject(
            nova_scheduler, 'live_migration_carries_limits', lambda: True))
        result = scheduler.filters(CONF)
        self.assertSuccess(result)
        self.assertNotIn('2153425', result.details)

    def test_all_findings_are_told_failures_first(self):
        result = self.check(
            f'{STOCK},{PLUGIN},NUMATopologyFilter,Typo')
        self.assertFailure(result)
        lines = result.details.splitlines()
        self.assertEqual(3, len(lines), lines)
        self.assertIn('Typo', lines[0])
        self.assertIn('write over', lines[1])
        self.assertIn('add PciPassthroughFilter', lines[2])


class WeighersTest(CheckTestCase):

    def check(self, weighers=WEIGHERS, options='', more='', filters=PLUGIN):
        self.read(f'{AVAILABLE}enabled_filters = {STOCK},{filters}\n'
                  f'{weighers}{more}', f'[nfv_sched]\n{options}')
        return scheduler.weighers(CONF)

    def test_no_class(self):
        """An entry point of anything else is no weigher."""
        self.useFixture(test_example_rule.Installed(
            {'nfv_sched.weighers': {'broken': 'os.path:join'}}))
        self.assertSuccess(self.check(), 'EvenNodesWeigher')

    def test_as_documented(self):
        self.assertSuccess(
            self.check(), *(cls.__name__ for cls in weights.all_weighers()))

    def test_warnings(self):
        option = 'numa_fragmentation_weight_multiplier'
        for weighers, options, more, *texts in (
                ('', '', '', 'without VSwitchNUMAAffinityWeigher: '
                 'nfv:vswitch_numa_affinity', 'without PCINUMAAffinityWeigher',
                 'without PlaceNUMAAffinityWeigher: nfv:numa_affinity.PLACE',
                 'Add nfv_sched.weights.all_weighers'),
                ('weight_classes = nfv_sched.weights.all_weighers\n', '', '',
                 'lacks nova.scheduler.weights.all_weighers'),
                (NOVA_WEIGHERS, f'{option}=100', '',
                 f'{option} is set, but its weigher is not loaded: add '
                 'nfv_sched.weights.all_weighers'),
                (WEIGHERS, '', 'ram_weight_multiplier = -2000\n',
                 'most of it from [filter_scheduler] ram_weight_multiplier',
                 'Set vswitch_numa_affinity_weight_multiplier above',
                 'Set pci_numa_affinity_weight_multiplier above'),
                (WEIGHERS, 'vswitch_numa_affinity_weight_multiplier=0', '',
                 'vswitch_numa_affinity_weight_multiplier is 0'),
                (WEIGHERS, 'router_weight_multiplier=5000', '',
                 'most of it from [nfv_sched] router_weight_multiplier'),
                (WEIGHERS, '[metrics]\nweight_multiplier=-5000', '',
                 'most of it from [metrics] weight_multiplier')):
            with self.subTest(weighers, options=options, more=more):
                self.assertWarning(
                    self.check(weighers, options, more), *texts)
        self.assertSuccess(self.check(options=f'{option}=100'))

    def test_only_weighers_of_enabled_filters(self):
        """What no filter keeps strictly need not be preferred either."""
        self.assertSuccess(self.check('', filters='NFVTopologyFilter'))
        result = self.check('', filters=(
            'NFVTopologyFilter,PCINUMAAffinityFilter'))
        self.assertWarning(result, 'without PCINUMAAffinityWeigher')
        self.assertNotIn('VSwitchNUMAAffinityWeigher', result.details)
        self.assertSuccess(self.check(
            options='vswitch_numa_affinity_weight_multiplier=0',
            filters='NFVTopologyFilter,PciPassthroughFilter,'
                    'PCINUMAAffinityFilter'))

    def test_needs_of_network(self):
        """Neutron and the ledger are checked for whoever needs them."""
        for filters, weighers, limits, weighs in (
                (PLUGIN, NOVA_WEIGHERS, False, False),
                (LIMITS, NOVA_WEIGHERS, True, False),
                (PLUGIN, WEIGHERS, False, True),
                ('SecurityRuleLimitFilter', WEIGHERS, True, True)):
            self.check(weighers, filters=filters)
            self.assertEqual((limits, weighs), (
                scheduler.limits_network(CONF),
                scheduler.weighs_network(CONF)))
        self.flags(dhcp_server_weight_multiplier=0.0,
                   router_weight_multiplier=0.0)
        self.assertTrue(scheduler.weighs_network(CONF))
        self.flags(vswitch_port_weight_multiplier=0.0)
        self.assertFalse(scheduler.weighs_network(CONF))

    def test_not_importable(self):
        self.assertFailure(
            self.check(WEIGHERS.replace('all_weighers\n', 'all_weigher\n')),
            'nfv_sched.weights.all_weigher cannot be loaded')

    def test_multipliers(self):
        result = self.check(options='pci_numa_affinity_weight_multiplier=3')
        self.assertWarning(result, 'pci_numa_affinity=prefer can be outw')
        self.assertNotIn('vswitch', result.details)
        result = self.check(
            options='place_numa_affinity_weight_multiplier=0')
        self.assertWarning(
            result, 'place_numa_affinity_weight_multiplier is 0: '
            'nfv:numa_affinity.PLACE=prefer does not choose')
        self.assertNotIn('vswitch', result.details)
        # Nova means these to outweigh everything.
        self.assertSuccess(
            self.check(more='build_failure_weight_multiplier = 1e9\n'))

    def test_multiplier_as_told(self):
        """As much as the others is not enough, and any more is."""
        option = 'pci_numa_affinity_weight_multiplier'
        found = re.search(f'Set {option} above ([0-9.]+)\\.', self.check(
            options=f'{option}=3').details)
        most = found.group(1)
        self.assertWarning(self.check(options=f'{option}={most}'),
                           'pci_numa_affinity=prefer can be outw')
        self.assertSuccess(self.check(options=f'{option}={most}1'))


class RuleOfAnotherPackageTest(CheckTestCase):
    """A rule that is installed is checked like those of nfv-sched."""

    def setUp(self):
        super().setUp()
        self.useFixture(test_example_rule.Installed())

    def read_enabled(self, *filters, weighers=WEIGHERS, options=''):
        names = ','.join([STOCK, 'PciPassthroughFilter', *filters])
        self.read(f'{AVAILABLE}enabled_filters = {names}\n{weighers}',
                  options)

    def test_not_enabled(self):
        self.read_enabled(PLUGIN)
        self.assertSuccess(scheduler.filters(CONF),
                           'so not enforced: nfvx:even_nodes, limits of '
                           'ports')
        self.assertSuccess(scheduler.weighers(CONF), 'EvenNodesWeigher')

    def test_without_topology_filter(self):
        self.read_enabled('EvenNodesFilter')
        self.assertWarning(
            scheduler.filters(CONF),
            'EvenNodesFilter enabled without NFVTopologyFilter')

    def test_without_weigher(self):
        self.read_enabled(PLUGIN, 'EvenNodesFilter', weighers='')
        self.assertWarning(
            scheduler.weighers(CONF), 'EvenNodesFilter is enabled without '
            'EvenNodesWeigher: nfvx:even_nodes=prefer chooses NUMA nodes')

    def test_not_registered(self):
        """Without its entry point, the filter and the weigher keep nothing."""
        self.useFixture(fixtures.MockPatchObject(
            rules, 'classes', return_value=tuple(
                cls for cls in rules.classes() if cls.name != 'even_nodes')))
        self.read_enabled(PLUGIN, 'EvenNodesFilter')
        self.assertSuccess(scheduler.filters(CONF))
        self.assertSuccess(scheduler.weighers(CONF), 'EvenNodesWeigher')

    def test_without_key(self):
        """What reads no extra spec is told by the name of its rule."""
        rule, = (cls for cls in rules.classes() if cls.name == 'even_nodes')
        self.useFixture(fixtures.MockPatchObject(rule, 'keys', ()))
        self.read_enabled(PLUGIN)
        self.assertSuccess(scheduler.filters(CONF),
                           'so not enforced: even_nodes, limits of ports')

    def test_multiplier(self):
        self.read_enabled(PLUGIN, 'EvenNodesFilter')
        self.assertSuccess(scheduler.weighers(CONF))
        self.read_enabled(
            PLUGIN, 'EvenNodesFilter',
            options='[nfvx]\neven_nodes_weight_multiplier = 0\n')
        self.assertWarning(
            scheduler.weighers(CONF),
            '[nfvx] even_nodes_weight_multiplier is 0: '
            'nfvx:even_nodes=prefer does not choose hosts')


class OptionsTest(CheckTestCase):

    def check(self, options):
        self.read(options=f'[nfv_sched]\n{options}')
        return scheduler.options(CONF)

    def test_defaults(self):
        self.assertSuccess(self.check(''), 'options are valid')

    def test_invalid(self):
        self.assertFailure(
            self.check('ledger = plcement\nneutron_page_size = 0\n'
                       'vswitch_label = two words\n'
                       'router_weight_multiplier = much'),
            '[nfv_sched] ledger: Valid values are [none, placement], but '
            "found 'plcement'.",
            '[nfv_sched] neutron_page_size: ',
            '[nfv_sched] vswitch_label: ',
            '[nfv_sched] router_weight_multiplier: ')

    def test_unknown(self):
        self.assertWarning(
            self.check('vswitch_ports_per_nod = 9\nabcdefghij = 1'),
            'vswitch_ports_per_nod in',
            'is it vswitch_ports_per_node?',
            'abcdefghij in', 'has no effect.')
        self.assertIn(self.path, scheduler.options(CONF).details)
        self.assertSuccess(self.check('vswitch-ports-per-node = 9'))

    def test_unknown_in_directory(self):
        directory = self.useFixture(fixtures.TempDir()).path
        with open(os.path.join(directory, 'nfv.conf'), 'w') as nova_conf:
            nova_conf.write('[nfv_sched]\nledgr = none\n')
        CONF(['--config-dir', directory], project='nova',
             default_config_files=[])
        self.assertWarning(
            scheduler.options(CONF), 'nfv.conf', 'is it ledger?')

    def test_contradictions(self):
        self.assertFailure(
            self.check('vswitch_label = nfv_node1'),
            'also the label of a NUMA node')
        self.assertSuccess(self.check('vswitch_label = 1'))
        self.assertWarning(
            self.check('vswitch_ports_per_node = 4'), 'leaves no port')
        self.assertSuccess(self.check('vswitch_ports_per_node = 0'))


class ShadowTest(CheckTestCase):
    OURS = 'NFVTopologyFilter,VSwitchNUMAAffinityFilter'

    def filters(self, enabled, shadow):
        self.read(f'{AVAILABLE}enabled_filters = {STOCK},{enabled}',
                  f'[nfv_sched]\nshadow = {shadow}')
        return scheduler.filters(CONF)

    def weighers(self, shadow, weighers=WEIGHERS):
        self.read(f'{AVAILABLE}{weighers}enabled_filters = {STOCK},'
                  f'{self.OURS}', f'[nfv_sched]\nshadow = {shadow}')
        return scheduler.weighers(CONF)

    def test_named(self):
        self.assertSuccess(
            self.filters(self.OURS, 'VSwitchNUMAAffinityFilter'),
            'In shadow, so without effect: VSwitchNUMAAffinityFilter.')
        self.assertSuccess(
            self.weighers('VSwitchNUMAAffinityWeigher'),
            'In shadow, so without effect: VSwitchNUMAAffinityWeigher.')

    def test_unknown(self):
        self.read(options='[nfv_sched]\nshadow = ComputeFilter,'
                          'VSwitchNUMAAffinityFiltr')
        self.assertFailure(
            scheduler.options(CONF),
            '[nfv_sched] shadow has ComputeFilter, which is not a filter or '
            'weigher of nfv-sched and has no effect',
            'is it VSwitchNUMAAffinityFilter?')

    def test_not_enabled(self):
        self.assertWarning(
            self.filters(self.OURS, 'PCINUMAAffinityFilter'),
            '[nfv_sched] shadow has PCINUMAAffinityFilter, which decides '
            'nothing until it is enabled')
        self.assertWarning(
            self.weighers('RouterWeigher', ''),
            '[nfv_sched] shadow has RouterWeigher, which weighs nothing')

    def test_topology(self):
        """Somebody has to look whether guests fit."""
        self.assertWarning(
            self.filters(self.OURS, self.OURS), 'NFVTopologyFilter is in '
            'shadow, and no other filter looks', 'enable NUMATopologyFilter')
        self.assertSuccess(self.filters(
            f'NUMATopologyFilter,{self.OURS}', self.OURS))

    def test_weigher_of_a_filter_in_shadow(self):
        self.assertWarning(self.weighers('', NOVA_WEIGHERS),
                           'without VSwitchNUMAAffinityWeigher')
        self.assertSuccess(
            self.weighers('VSwitchNUMAAffinityFilter', NOVA_WEIGHERS))


class ValidatorsTest(CheckTestCase):

    def test_loaded(self):
        self.assertSuccess(
            scheduler.validators(),
            f'Nova knows {len(nfv_validators.register())} keys')

    def test_not_loaded(self):
        # Nova's registry, as in an environment without our entry point.
        from nova.api.validation.extra_specs import validators
        self.useFixture(fixtures.MockPatchObject(
            validators, 'VALIDATORS', {
                name: validator
                for name, validator in validators.VALIDATORS.items()
                if name != 'hw:wrs:shared_vcpu'}))
        self.assertFailure(
            scheduler.validators(), 'does not know hw:wrs:shared_vcpu',
            'environment of nova-api')
