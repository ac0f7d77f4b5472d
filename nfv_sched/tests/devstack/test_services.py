# SPDX-License-Identifier: Apache-2.0
"""What the plugin installs, runs, creates, and tells Tempest."""

import os
import re
import shutil
import subprocess

from nova.api.validation.extra_specs import validators
from nova import objects
from nova.virt import hardware
from oslo_config import cfg

from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.tests.devstack import base
from nfv_sched.tests.tempest import config as tempest_config

SETTING = re.compile(r'\bNFV_SCHED_[A-Z_]+\b')


class TestDocuments(base.TestCase):
    """README.md and the samples of local.conf."""

    def settings_of(self, name):
        text = (base.REPOSITORY / 'devstack' / name).read_text()
        return set(SETTING.findall(
            text.replace('`..._', '`NFV_SCHED_')))

    def test_settings(self):
        # These are for the tests.
        known = self.settings_of('settings') - {
            'NFV_SCHED_DIR', 'NFV_SCHED_SYSFS', 'NFV_SCHED_BIN_DIR'}
        self.assertIn('NFV_SCHED_LEDGER', known)
        self.assertEqual(
            known, self.settings_of('README.md') - {
                'NFV_SCHED_DEVSTACK', 'NFV_SCHED_URL'})
        for sample in (base.REPOSITORY / 'devstack').glob('local.conf.*'):
            used = self.settings_of(sample.name) - {'NFV_SCHED_URL'}
            self.assertNotEqual(set(), used)
            self.assertLessEqual(used, known)


class TestInstall(base.TestCase):

    def installed(self):
        path = self.directory / 'installed'
        return path.read_text().split() if path.exists() else []

    def test_where_filters_and_validators_run(self):
        for services in ('n-sch', 'n-api', base.ALL_IN_ONE):
            self.given('controller.conf', services)
            (self.directory / 'installed').unlink(missing_ok=True)
            self.run_phases('stack/install')
            self.assertEqual([f'{base.REPOSITORY}[ops]'], self.installed())
        (self.directory / 'installed').unlink()
        shutil.rmtree(self.bin)
        self.bin.mkdir()
        self.given('compute.conf', 'n-cpu,tempest')
        self.run_phases('stack/install')
        self.assertEqual([], self.installed())
        self.assertEqual([], list(self.bin.iterdir()))


class TestCommands(base.TestCase):
    def links(self):
        return {path.name: os.readlink(path) for path in self.bin.iterdir()
                if path.is_symlink()}

    def test_linked_and_unlinked(self):
        self.given('controller.conf')
        venv = self.settings['NOVA_BIN_DIR']
        wanted = {name: f'{venv}/{name}'
                  for name in ('nfv-sched', 'nfv-sched-status')}
        # Left over from another place.
        (self.bin / 'nfv-sched').symlink_to('/nonexistent/nfv-sched')
        for _ in range(2):
            self.run_phases('stack/install')
            self.assertEqual(wanted, self.links())
        shown = subprocess.run(
            [self.bin / 'nfv-sched-status', 'upgrade', '--help'],
            env=self.environment, stdout=subprocess.PIPE, text=True,
            check=True)
        self.assertIn('exit codes:', shown.stdout)
        self.run_phases('unstack', 'clean')
        self.assertEqual({}, self.links())


class TestLedger(base.TestCase):
    def is_announced(self):
        path = self.directory / 'summary'
        return path.exists() and 'Starting nfv-sched-ledger' in (
            path.read_text().splitlines())

    def running(self):
        path = self.directory / 'running'
        if not path.exists():
            return {}
        return {p.name: p.read_text().strip() for p in path.iterdir()}

    def test_started_and_stopped(self):
        self.given('controller.conf')
        self.run_phases(*base.STACK[:-2])
        self.assertEqual({}, self.running())
        self.assertFalse(self.is_announced())
        self.run_phases('stack/extra')
        self.assertTrue(self.is_announced())
        program = f'{self.settings["NOVA_BIN_DIR"]}/nfv-sched-ledger'
        self.assertEqual(
            {'nfv-sched-ledger': f'{program} --config-file {self.nova_conf}'},
            self.running())
        self.run_phases('unstack')
        self.assertEqual({}, self.running())

    def test_stopped_whatever_the_settings_say_by_then(self):
        self.given('controller.conf')
        self.run_phases('stack/post-config', 'stack/extra')
        self.settings['NFV_SCHED_LEDGER'] = 'none'
        self.run_phases('unstack')
        self.assertEqual({}, self.running())

    def test_not_started(self):
        for name, settings in (
            ('compute.conf', {'services': 'n-cpu'}),
            ('controller.conf', {'NFV_SCHED_LEDGER': 'none'}),
            ('controller.conf', {'NFV_SCHED_LEDGER': 'placement',
                                 'DISABLED_SERVICES': 'nfv-sched-ledger'}),
        ):
            self.given(name, **settings)
            output = self.run_phases('stack/post-config')
            self.run_phases('stack/extra')
            self.assertEqual({}, self.running())
            self.assertFalse(self.is_announced())
        self.assertIn(
            'The service nfv-sched-ledger is disabled here', output)

    def placement_conf(self):
        sections = base.parse(
            (self.directory / 'etc' / 'placement.conf').read_text())
        self.assertEqual({'auth_strategy': ['keystone']},
                         sections.pop('api'))
        return sections.get('placement', {})

    def test_placement(self):
        """Placement lets Nova try again after a conflict, and not itself."""
        path = self.directory / 'etc' / 'placement.conf'
        for services, settings, wanted in (
            (base.ALL_IN_ONE, {}, {'allocation_conflict_retry_count': ['1']}),
            (base.ALL_IN_ONE, {'NFV_SCHED_LEDGER': 'none'}, {}),
            ('n-sch,n-api', {'NFV_SCHED_LEDGER': 'placement'}, {}),
        ):
            path.write_text('[api]\nauth_strategy = keystone\n')
            self.given('controller.conf', services, **settings)
            for _ in range(2):
                self.run_phases('stack/post-config')
                self.assertEqual(wanted, self.placement_conf())
            self.run_phases('unstack', 'clean')
            self.assertEqual('[api]\nauth_strategy = keystone\n',
                             path.read_text())
            del self.settings['ENABLED_SERVICES']
            self.settings.pop('NFV_SCHED_LEDGER', None)


class TestFlavors(base.TestCase):

    def flavors(self):
        return {
            path.name: dict(line.split('=', 1)
                            for line in path.read_text().splitlines())
            for path in (self.directory / 'flavors').iterdir()}

    def test_created(self):
        """Nova's API accepts them, and so do Nova and the filters."""
        self.given('controller.conf')
        self.run_phases('stack/extra')
        flavors = self.flavors()
        self.assertEqual(
            {'nfv.vswitch-strict', 'nfv.vswitch-prefer', 'nfv.pci-strict',
             'nfv.pci-prefer', 'nfv.shared-vcpu', 'nfv.node0',
             'nfv.two-nodes'}, set(flavors))
        used = set()
        for name, extra_specs in flavors.items():
            for key, value in extra_specs.items():
                validators.validate(key, value)
            parsed = nfv_extra_specs.parse(extra_specs)
            self.assertEqual((), tuple(parsed.errors), name)
            used.update(k for k in extra_specs if k.startswith('nfv:'))
            vcpus = 2 if name in ('nfv.shared-vcpu', 'nfv.two-nodes') else 1
            flavor = objects.Flavor(vcpus=vcpus, memory_mb=512,
                                    extra_specs=extra_specs)
            topology = hardware.numa_get_constraints(
                flavor, objects.ImageMeta.from_dict({'properties': {}}))
            self.assertIsNotNone(topology, name)
        self.assertEqual({'nfv:vswitch_numa_affinity',
                          'nfv:pci_numa_affinity', 'nfv:shared_vcpu',
                          'nfv:numa_node.0'}, used)
        calls = (self.directory / 'openstack').read_text().splitlines()
        for call in calls:
            self.assertIn('--os-compute-api-version 2.86', call)
        created = [call for call in calls if 'flavor create' in call]
        for call in created:
            vcpus = 2 if call.endswith(('shared-vcpu', 'two-nodes')) else 1
            self.assertIn(f' --vcpus {vcpus} ', call)

    def test_not_wanted(self):
        for services, wanted in ('n-cpu', 'True'), (base.ALL_IN_ONE, 'False'):
            self.given('controller.conf', services, NFV_SCHED_FLAVORS=wanted)
            self.run_phases('stack/extra')
        self.assertFalse((self.directory / 'openstack').exists())


class TestTempest(base.TestCase):

    def tempest_conf(self):
        path = self.directory / 'etc' / 'tempest.conf'
        if not path.exists():
            return {}
        return {section: {key: values[-1] for key, values in options.items()}
                for section, options in base.parse(path.read_text()).items()}

    def test_understood(self):
        self.given('controller.conf', NFV_SCHED_VSWITCH_NUMA_NODES='0,1')
        self.run_phases(*base.STACK)
        conf = cfg.ConfigOpts()
        conf.register_opt(tempest_config.SERVICE_OPTION,
                          group='service_available')
        conf.register_opts(tempest_config.OPTIONS, tempest_config.GROUP)
        conf(['--config-file', str(self.directory / 'etc' / 'tempest.conf')],
             project='tempest')
        self.assertTrue(conf.service_available.nfv_sched)
        self.assertEqual(set(), set(
            self.tempest_conf()['nfv_sched']) - set(conf.nfv_sched))
        enabled = self.enabled_filters()
        self.assertEqual(enabled, conf.nfv_sched.enabled_filters)
        self.assertEqual(
            ','.join(enabled), self.tempest_conf()['compute-feature-enabled'][
                'scheduler_enabled_filters'])
        self.assertEqual(
            ({'*': '2'}, {'*': '0+1'}, 8, True, True, True, True),
            tuple(conf.nfv_sched[name] for name in (
                'numa_nodes', 'vswitch_nodes', 'vnics_per_guest',
                'ledger', 'node_labels', 'dedicated_cpus', 'shared_cpus')))

    def test_other_machine(self):
        self.given('controller.conf', NFV_SCHED_LEDGER='none',
                   NFV_SCHED_CPU_DEDICATED_SET='1-3')
        self.machine([[['0', '4'], ['1', '5'], ['2', '6'], ['3', '7']]])
        self.run_phases(*base.STACK)
        described = self.tempest_conf()['nfv_sched']
        self.assertEqual(
            ('*:1', '*:0', 'True', 'False', 'False'),
            tuple(described[name] for name in (
                'numa_nodes', 'vswitch_nodes', 'dedicated_cpus',
                'shared_cpus', 'ledger')))
        # Less than two of a NUMA node.
        self.settings['NFV_SCHED_CPU_DEDICATED_SET'] = '1'
        self.given('controller.conf')
        self.run_phases(*base.STACK)
        self.assertEqual('False',
                         self.tempest_conf()['nfv_sched']['dedicated_cpus'])

    def test_not_wanted(self):
        for services, wanted in ('n-sch', 'True'), (base.ALL_IN_ONE, 'False'):
            self.given('controller.conf', services, NFV_SCHED_TEMPEST=wanted)
            self.run_phases(*base.STACK)
            self.assertEqual({}, self.tempest_conf())
            self.assertEqual('', self.variables()['TEMPEST_PLUGINS'])
