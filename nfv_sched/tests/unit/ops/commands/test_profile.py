# SPDX-License-Identifier: Apache-2.0
"""``nfv-sched host profile``, from files of facts and copies of ``/sys``."""

import json
import os

import fixtures

from nfv_sched.ops.cli import formats
from nfv_sched.ops.commands import host_profile
from nfv_sched.tests.unit.ops.commands import base

CORES = [[(node * 14 + core, node * 14 + core + 28) for core in range(14)]
         for node in range(2)]
IRONIC = {
    'inventory': {'cpu': {'model_name': 'Intel(R) Xeon(R) CPU E5-2680 v4',
                          'flags': ['pse', 'pdpe1gb']}},
    'plugin_data': {'numa_topology': {
        'ram': [{'numa_node': node, 'size_kb': 128 * 2 ** 20}
                for node in range(2)],
        'cpus': [{'cpu': number, 'numa_node': node, 'thread_siblings': core}
                 for node in range(2)
                 for number, core in enumerate(CORES[node])],
        'nics': [{'name': 'ens1f0', 'numa_node': 0},
                 {'name': 'ens6f0', 'numa_node': 1}]}}}
ROLE = {'NovaComputeCpuDedicatedSet': ['2-13,30-41', '16-27,44-55,^55'],
        'OvsPmdCoreList': '1,29,15,43', 'OvsDpdkSocketMemory': '1536,1024',
        'NovaComputeCpuSharedSet': [0, 14, 28, 42],
        'NovaReservedHostMemory': 8192}
PINNED, *_ = ROLE
FILES = host_profile.ProfileHost.formats.keys() - formats.LIST.keys()


class ProfileTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.facts = self.write_file('ironic.json', IRONIC)

    def profile(self, *args, code=0, facts=None):
        out, warnings = self.warned(*args, code=code, facts=facts)
        if not FILES.intersection(args):
            self.assertEqual([], warnings)
        return out

    def warned(self, *args, code=0, facts=None):
        status, out, err = self.run_command(
            'host', 'profile', '--facts', facts or self.facts, *args)
        warnings = err.splitlines()
        self.assertEqual((code, []), (status, [
            line for line in warnings if not line.startswith('warning: ')]),
            out)
        return out, warnings

    def refused(self, code, *args):
        status, out, err = self.run_command('host', 'profile', *args)
        self.assertEqual((code, ''), (status, out), err)
        return err

    def test_warnings_beside_files(self):
        expected = [f"{found['warning']}. Do: {found['do']}."
                    for found in json.loads(self.profile(
                        '--shared', '-f', 'json'))['warnings']]
        self.assertEqual(2, len(expected))
        for formatter in FILES:
            self.assertEqual(
                [f'warning: {text}' for text in expected],
                self.warned('--shared', '-f', formatter)[1], formatter)

    def test_check(self):
        good = self.profile('--shared', '-f', 'nova.conf')
        path = self.write_file('nova.conf', good)
        self.assertIn(
            'nova.conf is as the profile has it.\n\nWarning: 0 MiB of small',
            self.profile('--shared', '--check', path))
        out = self.profile('--check', path, code=3)
        self.assertIn('Should have', out)
        self.assertIn('[compute] cpu_shared_set', out)
        # Another file of the same service has the rest.
        more = self.write_file(
            'more.conf', '[DEFAULT]\nreserved_host_memory_mb = 1\n')
        self.assertEqual('1\n', self.profile(
            '--shared', '--check', path, '--check', more, '-f', 'value',
            '-c', 'Has', code=3))
        self.assertIn('--check has no format ovs', self.refused(
            2, '--facts', self.facts, '--check', path, '-f', 'ovs'))

    def test_tripleo(self):
        for content in (
                {'parameter_defaults': {
                    'NovaReservedHostMemory': 1, 'ControllerParameters': {},
                    'ComputeOvsDpdkParameters': ROLE}},
                {'parameter_defaults': ROLE},
                {'parameter_defaults': {
                    PINNED: ROLE[PINNED], 'B': {'Nova': 1}, 'C': {
                        key: ROLE[key] for key in ROLE if key != PINNED}}},
                [{'name': 'C'}, {'name': 'D', 'RoleParametersDefault': ROLE}]):
            facts = '--facts', self.write_file('role.yaml', content)
            table = self.profile(*facts)
            for line in ('platform +- +55\n', 'switch +1,29 +15,43\n',
                         'shared +0,28 +14,42\n',
                         'servers +2-13,30-41 +16-27,44-54\n',
                         'reserved_host_memory_mb = 10752\n',
                         'node:0,size:1GB,count:2\n', 'mem = 1536,1024\n'):
                self.assertRegex(table, line)
        path = self.write_file(
            'nova.conf', self.profile(*facts, '-f', 'nova.conf'))
        self.assertIn('nova.conf is as the profile has it.\n',
                      self.profile(*facts, '--check', path))
        for args in (('--vswitch-cores', '2'), ('--layout', 'floating')):
            self.assertIn('those of a TripleO role', self.refused(
                2, '--facts', self.facts, *facts, *args))
        self.assertIn('sibling threads of the CPUs are not known',
                      self.refused(1, *facts))

    def test_wrong_roles(self):
        for content, code, told in (
            ('parameter_defaults: {', 1, 'role.yaml:1: not valid YAML'),
            ('parameter_defaults: 7', 1, f'{PINNED}, not none'),
            ({'A': ROLE, 'B': ROLE}, 1, f'one role with {PINNED}, not A, B'),
            ({PINNED: None}, 1, f'{PINNED}, not none'),
            ({PINNED: '0,2-14,16-28,30-42,44-55',
              'NovaComputeCpuSharedSet': None}, 2, 'leaves the host no CPU'),
            ({PINNED: '0-99999999'}, 1, f"{PINNED}: '0-99999999' is not a l"),
            ({PINNED: {'0': [1]}}, 1, 'is not a list of CPUs'),
            ({'OvsDpdkSocketMemory': '1,-1'}, 1, "is '-1', not a number"),
            ({'OvsDpdkSocketMemory': 10 ** 9}, 2, 'NUMA node 0 has 131072'),
            ({'OvsPmdCoreList': '2,99'}, 2, 'CPU 2,99 of the TripleO role'),
        ):
            path = self.write_file('role.yaml', content if isinstance(
                content, str) else {'parameter_defaults': content if (
                    'A' in content) else {**ROLE, **content}})
            err = self.refused(code, '--facts', self.facts, '--facts', path)
            self.assertIn(told, err)
            self.assertEqual(1, err.count('\n'), err)

    def test_vfs(self):
        nics = '--sriov-nic', '\\\U0001f600=ens6f0:8', '--shared'
        path = self.write_file(
            'nova.conf', self.profile(*nics, '-f', 'nova.conf'))
        self.assertIn('nova.conf is as the profile has it.\n',
                      self.profile(*nics, '--check', path))
        self.assertIn(
            ': echo 8 > /sys/class/net/ens6f0/device/sriov_numvfs\n',
            self.profile(*nics, '-f', 'kernel'))
        # The order of the keys is another.
        path = self.write_file(
            'list.conf', '[pci]\ndevice_spec = [{"address": ":0a:00."}, '
            '{"physical_network": "a", "devname": "ens6f0"}]\n')
        for physnet, differs in ('a', False), ('b', True):
            self.assertEqual(differs, '[pci] device_spec' in self.profile(
                '--sriov-nic', f'{physnet}=ens6f0', '--check', path, code=3))
        path = self.write_file('bad.conf', '[pci]\ndevice_spec = {\n')
        self.assertIn('bad.conf: ', self.refused(
            1, '--facts', self.facts, '--check', path))

    def test_nova_conf_that_nova_refuses(self):
        good = self.profile('--shared', '-f', 'nova.conf')
        path = self.write_file(
            'nova.conf', f'[DEFAULT]\nreserved_host_cpus = 2\n{good}\n'
            '[libvirt]\ncpu_shared_set = 4\n')
        table = self.profile('--shared', '--check', path, code=3)
        self.assertIn("nova-compute does not start: The 'reserved_host_cpus'",
                      table)
        self.assertIn('not set; Nova reads it in [compute]', table)
        document = json.loads(self.profile(
            '--shared', '--check', path, '-f', 'json', code=3))
        self.assertEqual([False], [each['starts'] for each
                                   in document['start_errors']])
        status, out, err = self.run_command(
            'host', 'profile', '--facts', self.facts, '--shared', '--check',
            path, '-f', 'csv')
        self.assertIn('nova-compute does not start: ', err)
        self.assertEqual(3, status)
        for text in ('[compute]\ncpu_shared_set = 3-x\n',
                     '[DEFAULT]\nreserved_huge_pages = node:0,size:'
                     f'{"9" * 400}GB,count:1\n',
                     '[neutron]\nphysnets = a\n'
                     '[neutron_physnet_a]\nnuma_nodes = x\n'):
            self.profile('--check', self.write_file('nova.conf', text), code=3)

    def test_switched_off(self):
        """Nova has done it; the facts are of now."""
        def check(switched):
            cpus = [{'cpu': cpu, 'node': None, 'socket': None, 'core': None,
                     'online': False} if cpu in switched else
                    {'cpu': cpu, 'node': node, 'socket': node,
                     'core': core[0], 'online': True}
                    for node in range(2) for core in CORES[node]
                    for cpu in core]
            facts = self.write_file('lscpu.json', {'cpus': cpus})
            status, out, err = self.run_command(
                'host', 'profile', '--facts', facts, '--node-memory',
                '128,128', '--check', path)
            return status, out.partition('\nWarning: ')[0], err

        path = self.write_file('nova.conf', self.profile(
            '-f', 'nova.conf') + '\n[libvirt]\ncpu_power_management = true\n')
        good = 'nova.conf is as the profile has it.\n'
        self.assertEqual((0, good, ''), check(()))
        self.assertEqual((0, f'{good}Nova has switched off CPU 10,38 '
                          '([libvirt] cpu_power_management), which count as '
                          'there.\n', ''), check((10, 38)))
        # CPU 0 is on: it may be the sibling of the one that is off.
        path = self.write_file(
            'nova.conf', '[compute]\ncpu_dedicated_set = 28\n'
            '[libvirt]\ncpu_power_management = true\n')
        status, out, err = check((28,))
        self.assertEqual((1, ''), (status, out))
        self.assertIn('nothing is compared', err)

    def test_unreadable_nova_conf(self):
        # No driver is loaded.
        self.useFixture(fixtures.MonkeyPatch(
            'oslo_config.cfg.ConfigOpts._open_source_from_opt_group', None))
        for content in ('cpu_shared_set', '[DEFAULT]\n'
                        'reserved_host_memory_mb = much\n',
                        '[compute]\ncpu_shared_set = 3-99999999999\n',
                        '[compute]\ncpu_dedicated_set = 3-65536\n',
                        '[DEFAULT]\nreserved_host_memory_mb = $x\n',
                        '[DEFAULT]\nconfig_source = remote\n[remote]\n'
                        'driver = remote_file\nuri = http://nowhere/x\n',
                        '[DEFAULT]\ncpu_allocation_ratio = $nothing\n'):
            path = self.write_file('nova.conf', content)
            err = self.refused(1, '--facts', self.facts, '--check', path)
            self.assertRegex(err, f'^error: .*{path}.*\n$')
            self.assertNotIn('internal', err)
        pipe = f'{self.folder}/pipe'
        os.mkfifo(pipe)
        for words in (('--facts', self.facts, '--check', pipe),
                      ('--facts', pipe)):
            self.assertEqual(f'error: {pipe}: is a named pipe\n',
                             self.refused(1, *words))
        self.assertRegex(self.refused(
            1, '--facts', self.facts, '--check', f'{self.folder}/none'),
            '^error: .*none')

    def test_wrong_command_lines(self):
        for args, told in (
            (('--vswitch-cores', 'two'), "'two' is not a number of cores"),
            (('--vswitch-cores', '0:2,1'), "'1' is not NODE:CORES"),
            (('--vswitch-cores', '0:2,0:1'), 'NUMA node 0 is there twice'),
            (('--vswitch-cores', '-1'), "'-1' is not a number of cores"),
            (('--vswitch-nic', '=x y='), 'is not NIC or PHYSNET=NIC'),
            (('--sriov-nic', 'x=$y:8'), "'$y' is not a NIC"),
            (('--sriov-nic', 'ens6f0:0'), "'0' is not a number of VFs"),
            (('--sriov-nic', 'ens6f0:65536'), 'a number of VFs from 1 to'),
            (('--pages', '3M'), "'3M' is not one of 16G, 2G, 1G, "),
            (('--pages', '1G:80%,2M:30%'), 'is more than 100%'),
            (('--pages', '1G:x'), 'is not a percentage'),
            (('--pages', '1G,1G'), '1G is there twice'),
            (('--mtu', '9000,1'), "'1' is not an MTU from 68"),
            (('--osds', '3:tape'), "'tape' is not one of hdd, ssd, nvme"),
            (('--osds', '3,4:hdd'), 'hdd is there twice'),
            (('--utilisation', '90'), "'90' is not a utilisation"),
            (('--utilisation', 'nan'), "'nan' is not a utilisation"),
            (('--guest-gb', '0'), "'0' is not a memory size in GB"),
            (('--node-memory', '128,inf'),
             "'inf' is not a memory size in GiB"),
            (('--vswitch-label', 'a,b'), "'a,b' is not a label"),
            (('--vswitch-nic', 'a$b=ens1f0'), 'is not NIC or PHYSNET=NIC'),
        ):
            err = self.refused(2, *args)
            self.assertIn(told, err, args)

    def test_labels_with_the_same_name(self):
        for label, more in (('nfv_node1', ()), ('n0', (
                '--node-label-prefix', 'n')), ('nfv_osd', ('--osds', '2'))):
            self.assertIn(
                f'{label} cannot be the label of the switch', self.refused(
                    2, '--facts', self.facts, '--vswitch-label', label,
                    *more))
