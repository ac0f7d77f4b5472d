# SPDX-License-Identifier: Apache-2.0
"""Each key of Helion / Titanium Carrier Grade, and what becomes of it.

What the API says of a key is asked of the validators that are installed.
"""

from nfv_sched.nova import flavors
from nfv_sched.ops.answers.flavors.lint import all_rules
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.answers.flavors import translate
from nfv_sched.ops.answers.flavors import translations
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base

SAME, CHANGED, RENAMED, COMBINATION = (
    translations.SAME, translations.CHANGED, translations.RENAMED,
    translations.COMBINATION)
HOST, SERVICE, NONE = (
    translations.HOST, translations.SERVICE, translations.NONE)

_PCI = {'nfv:pci_numa_affinity': 'strict',
        'hw:pci_numa_affinity_policy': 'required'}
_SHARED = {'nfv:shared_vcpu': '0', 'hw:cpu_policy': 'mixed',
           'hw:cpu_dedicated_mask': '^0'}
_RESET = {'hw:watchdog_action': 'reset'}
_TPM = {'hw:tpm_version': '2.0', 'hw:tpm_model': 'tpm-crb'}
_REALTIME = {'hw:cpu_realtime': 'true', 'hw:emulator_threads_policy': 'share'}

#: Key, value, what it becomes (None for the same), kind.
FLAVORS = (
    *((key, value, None, SAME) for key, value in (
        ('hw:cpu_policy', 'dedicated'), ('hw:cpu_thread_policy', 'require'),
        ('hw:mem_page_size', 'small'), ('hw:numa_nodes', '2'),
        ('hw:numa_cpus.0', '0-3'), ('hw:numa_mem.1', '512'),
        ('hw:cpu_realtime', 'false'), ('hw:cpu_realtime_mask', '^0'),
        ('aggregate_instance_extra_specs:storage', 'local_lvm'),
        ('pci_passthrough:alias', 'nic:1'),
        ('quota:disk_read_bytes_sec', '1024'),
        ('quota:disk_total_iops_sec', '1024'))),
    ('hw:mem_page_size', '2048', {'hw:mem_page_size': '2MB'}, CHANGED),
    ('hw:mem_page_size', '1048576', {'hw:mem_page_size': '1GB'}, CHANGED),
    ('hw:numa_node.0', '1', {'nfv:numa_node.0': '1'}, RENAMED),
    ('hw:wrs:vswitch_numa_affinity', 'prefer',
     {'nfv:vswitch_numa_affinity': 'prefer'}, RENAMED),
    ('hw:wrs:pci_numa_affinity', 'strict', _PCI, RENAMED),
    ('hw:wrs:shared_vcpu', '0', _SHARED, COMBINATION),
    ('hw:wrs:min_vcpus', '1', {}, NONE),
    ('hw:cpu_realtime', 'true', _REALTIME, COMBINATION),
    ('hw:wrs:vcpu:scheduler', 'fifo:99:1', {}, COMBINATION),
    ('hw:cpu_model', 'Haswell', {}, HOST),
    ('hw:wrs:nested_vmx', 'true', {'trait:HW_CPU_X86_VMX': 'required'}, HOST),
    ('hw:hpet', 'true', {}, COMBINATION),
    ('sw:wrs:guest:hpet', 'true', {}, COMBINATION),
    *((f'hw:cache_{name}.0', '1', {}, NONE) for name in (
        'l3', 'l3_code', 'l3_data', 'vcpus')),
    ('hw:pci_irq_affinity_mask', '0', {}, NONE),
    ('hw:wrs:live_migration_timeout', '180', {}, HOST),
    ('hw:wrs:live_migration_max_downtime', '500', {}, HOST),
    ('hw:wrs:live_migration_auto_converge', 'true', {}, HOST),
    ('hw:wrs:live_migration_tunnel', 'true', {}, HOST),
    ('sw:wrs:auto_recovery', 'true', {}, SERVICE),
    ('sw:wrs:guest:heartbeat', 'true', _RESET, COMBINATION),
    ('sw:wrs:vtpm', 'true', _TPM, COMBINATION),
    ('sw:wrs:srv_grp_messaging', 'true', {}, NONE),
    ('hw:wrs:nic_isolation', 'true', {}, NONE),
    # Intel
    ('hw:capabilities:cpu_info:features', 'aes',
     {'trait:HW_CPU_X86_AESNI': 'required'}, COMBINATION),
    ('hw:capabilities:cpu_info:features', '<in> avx2',
     {'trait:HW_CPU_X86_AVX2': 'required'}, COMBINATION),
    ('hw:capabilities:cpu_info:features', 'own',
     {'capabilities:cpu_info:features': 'own'}, COMBINATION),
    ('hw:numa_mempolicy', 'strict', {}, NONE),
)

#: Property, value, what it becomes, kind, whether Nova reads it.
IMAGES = (
    *((key, value, None, SAME, True) for key, value in (
        ('hw_mem_page_size', '2048'), ('hw_cpu_policy', 'dedicated'),
        ('hw_cpu_thread_policy', 'require'), ('hw_numa_nodes', '1'),
        ('hw_numa_cpus.0', '0-3'), ('hw_numa_mem.0', '512'),
        ('hw_cpu_realtime_mask', '^0'),
        ('hw_vif_multiqueue_enabled', 'true'))),
    ('hw_vif_model', 'avp', {'hw_vif_model': 'virtio',
                             'hw_vif_multiqueue_enabled': 'true'},
     COMBINATION, True),
    ('hw_numa_node.0', '1', {}, NONE, False),
    ('hw_cpu_model', 'Haswell', {}, HOST, False),
    ('hw_wrs_live_migration_timeout', '180', {}, HOST, False),
    ('hw_wrs_live_migration_max_downtime', '500', {}, HOST, False),
    ('hw_wrs_live_migration_other', '1', {}, NONE, False),
    ('sw_wrs_auto_recovery', 'true', {}, SERVICE, False),
)


def flavor(specs, vcpus=4):
    return snapshot.Flavor(
        name='f', vcpus=vcpus, memory=4096, extra_specs=specs)


def translated(specs):
    return translate.flavor(flavor(specs))


class TableTest(base.TestCase):

    def test_every_row_is_tested(self):
        for where, rows in ((translations.FLAVOR, FLAVORS),
                            (translations.IMAGE, IMAGES)):
            found = {translations.find(where, row[0]).key for row in rows}
            self.assertEqual(
                {each.key for each in translations.TABLE
                 if each.where == where} - {'sw_wrs_*'}, found)

    def test_flavors(self):
        for key, value, becomes, kind in FLAVORS:
            found = translated({key: value})
            line = found.keys[0]
            self.assertEqual(
                (key, value, {key: value} if becomes is None else becomes,
                 kind), (line.key, line.value, line.becomes, line.kind))
            if not line.becomes:
                self.assertTrue(line.do, key)
            for new, text in found.extra_specs.items():
                self.assertIsNone(flavors.refusal(new, text), (key, new))
                self.assertTrue(any(
                    spec.is_of(new) for spec in flavors.specs()), new)

    def test_images(self):
        for key, value, becomes, kind, reads in IMAGES:
            line, = translate.image('i', {key: value}).keys
            self.assertEqual(
                ({key: value} if becomes is None else becomes, kind),
                (line.becomes, line.kind))
            self.assertEqual(reads, flavors.reads_property(key, value), key)
            for new, text in line.becomes.items():
                self.assertTrue(flavors.reads_property(new, text))
                flavors.image({new: text})

    def test_varying(self):
        for key in ('hw:numa_node.', 'hw:numa_node.x', 'hw:numa_node',
                    'hw:numa_node.1.2', 'quota:dis'):
            self.assertIsNone(translations.find(translations.FLAVOR, key), key)
        self.assertEqual('hw:numa_node.N', translations.find(
            translations.FLAVOR, 'hw:numa_node.12').key)


class TranslateTest(base.TestCase):

    def test_what_nova_has_already_stays(self):
        """Such as a flavor that somebody began to translate by hand."""
        for specs in (
            {'sw:wrs:guest:heartbeat': 'true', 'hw:watchdog_action': 'pause'},
            {'sw:wrs:vtpm': 'true', 'hw:tpm_version': '1.2'},
        ):
            (_old, _yes), (key, value) = specs.items()
            for each in (specs, dict(reversed(specs.items()))):
                found = translated(each)
                self.assertEqual({key: value}, found.extra_specs)
                self.assertEqual([], [line for line in found.keys
                                      if line.lost])

    def test_contradictions(self):
        """The newer key stays, in whatever order, and it is told."""
        cases = (
            ('hw:wrs:vswitch_numa_affinity', 'nfv:vswitch_numa_affinity',
             ('strict', 'prefer')),
            ('hw:wrs:pci_numa_affinity', 'nfv:pci_numa_affinity',
             ('strict', 'prefer')),
            ('hw:wrs:shared_vcpu', 'nfv:shared_vcpu', ('0', '1')),
            ('hw:numa_node.0', 'nfv:numa_node.0', ('0', '1')))
        for old, new, other in cases:
            specs = {old: other[0], new: other[1], 'hw:numa_nodes': '1'}
            for each in (specs, dict(reversed(specs.items()))):
                found = translated(each)
                self.assertEqual({new: other[1], 'hw:numa_nodes': '1'},
                                 found.extra_specs)
                line, = (line for line in found.keys if line.lost)
                self.assertEqual(old, line.key)
                self.assertIn(f'{new}={other[1]} contradicts it', line.do)
            found = translated(
                {old: other[0], new: other[0], 'hw:numa_nodes': '1'})
            self.assertEqual([], [line for line in found.keys if line.lost])
            self.assertEqual(other[0], found.extra_specs[new])

    def test_cpu_policy_that_it_never_went_with(self):
        found = translated(
            {'hw:cpu_policy': 'shared', 'hw:wrs:shared_vcpu': '0'})
        self.assertEqual({'hw:cpu_policy': 'shared'}, found.extra_specs)
        self.assertEqual(['hw:wrs:shared_vcpu'], [
            line.key for line in found.keys if line.lost])

    def test_errors_afterwards(self):
        for specs, key in (
                ({'hw:wrs:pci_numa_affinity': 'strict', 'hw:numa_nodes': '1',
                  'hw:pci_numa_affinity_policy': 'preferred'},
                 'nfv:pci_numa_affinity'),
                ({'hw:wrs:shared_vcpu': '9'}, 'hw:cpu_dedicated_mask'),
                ({'hw:cpu_policy': 'x'}, 'hw:cpu_policy')):
            found = translated(specs)
            self.assertEqual(key, found.errors[0].key, found.errors)
        self.assertEqual((), translated({
            'hw:cpu_policy': 'dedicated', 'hw:wrs:shared_vcpu': '0'}).errors)

    def test_many_keys(self):
        found = translated({f'hw:wrs:x{number}': '1' for number in range(257)})
        self.assertEqual(1, len(found.errors))
        self.assertEqual(({}, ()), (found.set, found.unset))

    def test_misspelt(self):
        """A line of the table for several keys takes those of Nova only."""
        line, = translated({'quota:disk_read_byte_sec': '1'}).keys
        self.assertEqual((translate.UNKNOWN, True), (line.kind, line.lost))

    def test_key_of_titanium_that_is_not_in_the_table(self):
        """Nova's API takes any sw:wrs: key, and nothing reads it."""
        for key in ('sw:wrs:auto_recover', 'sw:wrs:x', 'hw:wrs:x'):
            found = translated({key: '1'})
            line, = found.keys
            self.assertEqual((translate.UNKNOWN, True, {}), (
                line.kind, line.lost, line.becomes))
            self.assertEqual(({}, (key,)), (found.set, found.unset))

    def becomes(self, **specs):
        """All keys of a flavor after that; ``__`` for a colon."""
        return dict(translated({key.replace('__', ':'): value for key, value
                                in specs.items()}).extra_specs)

    def test_shared_vcpu(self):
        specs = {'hw:cpu_policy': 'dedicated', 'hw:wrs:shared_vcpu': '0'}
        for each in (specs, dict(reversed(specs.items()))):
            found = translated(each)
            self.assertEqual(_SHARED, found.extra_specs)
            self.assertEqual(_SHARED, found.set)
            self.assertEqual(('hw:wrs:shared_vcpu',), found.unset)

    def test_shared_vcpu_in_real_time(self):
        """Nova takes one mask only: that of realtime vCPUs says all."""
        found = self.becomes(
            hw__cpu_policy='dedicated', hw__wrs__shared_vcpu='0',
            hw__cpu_realtime='true', hw__cpu_realtime_mask='^0')
        self.assertNotIn('hw:cpu_dedicated_mask', found)
        self.assertEqual('mixed', found['hw:cpu_policy'])
        self.assertEqual([], self.errors(found))

    def test_real_time_without_more_than_the_shared_vcpu(self):
        """Others that are not real-time would lose their pins."""
        for mask, floating in (('^0-1', 'vCPUs 0 would'), ('^1', None),
                               ('^0-2', 'vCPUs 0, 2 would'), ('2-3', '0')):
            found = translated({
                'hw:cpu_policy': 'dedicated', 'hw:wrs:shared_vcpu': '1',
                'hw:cpu_realtime': 'true', 'hw:cpu_realtime_mask': mask})
            lost = [line for line in found.keys if line.lost]
            self.assertEqual((), found.errors)
            if floating is None:
                self.assertEqual([], lost)
                continue
            line, = lost
            self.assertEqual('hw:wrs:shared_vcpu', line.key)
            self.assertIn(floating, line.do)

    def test_model_of_a_tpm_without_a_version(self):
        """Nova ignores it."""
        specs = {'sw:wrs:vtpm': 'true', 'hw:tpm_model': 'tpm-tis'}
        for each in (specs, dict(reversed(specs.items()))):
            self.assertEqual(
                {'hw:tpm_version': '2.0', 'hw:tpm_model': 'tpm-tis'},
                translated(each).extra_specs)

    def test_what_is_set_stays(self):
        found = self.becomes(
            hw__wrs__pci_numa_affinity='prefer', hw__numa_nodes='1',
            hw__pci_numa_affinity_policy='legacy')
        self.assertEqual('legacy', found['hw:pci_numa_affinity_policy'])
        found = self.becomes(
            hw__wrs__shared_vcpu='0', hw__cpu_dedicated_mask='1-3')
        self.assertEqual('1-3', found['hw:cpu_dedicated_mask'])
        found = self.becomes(hw__cpu_realtime='yes',
                             hw__emulator_threads_policy='isolate')
        self.assertEqual('isolate', found['hw:emulator_threads_policy'])

    def test_numa_node(self):
        """The product gave guests one where Nova gives none."""
        found = translated({'hw:wrs:vswitch_numa_affinity': 'strict'})
        self.assertEqual('1', found.extra_specs['hw:numa_nodes'])
        self.assertIsNone(found.keys[-1].key)
        for key, value in (('hw:numa_nodes', '2'),
                           ('hw:mem_page_size', '2048'),
                           ('hw:cpu_policy', 'dedicated')):
            found = self.becomes(
                hw__wrs__vswitch_numa_affinity='strict', **{key: value})
            self.assertEqual('2' if key == 'hw:numa_nodes' else None,
                             found.get('hw:numa_nodes'), key)
        self.assertEqual({}, self.becomes(hw__cpu_model='x'))

    def test_lost(self):
        """What leaves something to do."""
        for key, value, lost in (
            ('hw:wrs:min_vcpus', '1', True), ('hw:hpet', 'true', True),
            ('hw:hpet', 'False', False), ('sw:wrs:vtpm', 'no', False),
            ('sw:wrs:vtpm', 'true', False), ('hw:cpu_model', 'x', True),
            ('sw:wrs:vtpm', '0', False), ('hw:hpet', '0', False),
            ('hw:wrs:live_migration_timeout', '0', True),
            ('hw:wrs:shared_vcpu', '0', False),
            ('hw:numa_mempolicy', 'strict', False),
            ('hw:numa_mempolicy', 'prefer', True),
            ('hw:x', '1', True),
            ('hw:cpu_policy', 'shared', False),
            ('hw:cpu_policy', 'x', False), ('mine', '1', False),
        ):
            line = translated({key: value}).keys[0]
            self.assertEqual(lost, line.lost, (key, value))

    def test_strict_about_devices(self):
        """As Titanium was, if a flavor is one of its flavors."""
        alias = {'pci_passthrough:alias': 'nic:1'}
        for more, told in (
            ({'sw:wrs:auto_recovery': 'true'}, True), ({}, False),
            ({'hw:wrs:pci_numa_affinity': 'prefer'}, False),
            ({'hw:wrs:min_vcpus': '1',
              'hw:pci_numa_affinity_policy': 'preferred'}, False),
        ):
            line = next(each for each in translated({**alias, **more}).keys
                        if each.key in alias)
            self.assertEqual(
                told, 'nfv:pci_numa_affinity=strict' in (line.do or ''), more)
            self.assertEqual((False, alias), (line.lost, line.becomes))

    def errors(self, specs, vcpus=4):
        return [each for each in all_rules.lint([flavor(specs, vcpus)])
                if each.severity == values.ERROR]

    def test_nothing_is_wrong_with_it(self):
        """Flavors that made sense there make sense here."""
        pinned = {'hw:cpu_policy': 'dedicated'}
        for specs in (
            {**pinned, 'hw:wrs:vswitch_numa_affinity': 'strict',
             'hw:wrs:pci_numa_affinity': 'strict',
             'pci_passthrough:alias': 'nic:2', 'hw:mem_page_size': '1048576'},
            {**pinned, 'hw:wrs:shared_vcpu': '3', 'hw:numa_node.0': '1'},
            {**pinned, 'hw:cpu_thread_policy': 'isolate',
             'hw:cpu_model': 'Haswell', 'sw:wrs:auto_recovery': 'true'},
            {**pinned, 'hw:wrs:min_vcpus': '1', 'hw:cpu_realtime': 'true',
             'hw:cpu_realtime_mask': '^0', 'sw:wrs:vtpm': 'true'},
            {**pinned, 'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0',
             'hw:numa_cpus.1': '1-3', 'hw:numa_mem.0': '1024',
             'hw:numa_mem.1': '3072', 'hw:numa_node.0': '1',
             'hw:numa_node.1': '0', 'hw:cache_l3.0': '1024'},
            {'hw:wrs:vswitch_numa_affinity': 'prefer', 'hw:hpet': 'true',
             'sw:wrs:guest:heartbeat': 'true', 'hw:numa_mempolicy': 'strict'},
            {key: value for key, value, _becomes, kind in FLAVORS
             if kind in (HOST, SERVICE, NONE, COMBINATION) and
             key != 'hw:cpu_realtime'},
        ):
            self.assertEqual(
                [], self.errors(translated(specs).extra_specs), specs)
