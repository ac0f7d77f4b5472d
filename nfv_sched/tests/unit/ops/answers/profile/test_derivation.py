# SPDX-License-Identifier: Apache-2.0
"""Profiles of generated machines are sound, and Nova takes them."""

import dataclasses
import os
import pathlib

import fixtures
import hypothesis
from hypothesis import strategies as st
from nova.pci import whitelist
from nova.virt import hardware
from oslo_serialization import jsonutils

from nfv_sched.base import cpu_spec
from nfv_sched.nova import compute_conf
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import check
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import configuration
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import derivation as profiles
from nfv_sched.ops.answers.profile import tables
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.profile import machines

CONF = base.CONF

#: For what takes many choices to generate.
CHECKS = list(hypothesis.HealthCheck)


class ProfileTestCase(base.TestCase):

    def profile(self, data, **limits):
        machine = data.draw(machines.machines(**limits))
        chosen = data.draw(machines.chosen(machine))
        try:
            return machine, chosen, profiles.derive(machine, chosen)
        except choices.ProfileError as exc:
            self.assertNotIn('\n', str(exc))
            hypothesis.reject()

    def conf(self, text, name='nova.conf'):
        path = os.path.join(self.useFixture(fixtures.TempDir()).path, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def compare(self, text, of=None, **chosen):
        return check.compare(
            [self.conf(text)], choices.Choices(**chosen),
            machines.machine() if of is None else of)


class GeneratedTest(ProfileTestCase):

    @hypothesis.settings(max_examples=60, suppress_health_check=CHECKS)
    @hypothesis.given(st.data())
    def test_each_cpu_has_one_function(self, data):
        machine, chosen, found = self.profile(data)
        given = {}
        for node in found.numa_nodes:
            for function, numbers in node.cpus.items():
                for cpu in numbers:
                    # None has two.
                    self.assertNotIn(cpu, given)
                    given[cpu] = function
        self.assertEqual(machine.cpus, set(given))
        for node in machine.nodes:
            for core in node.cores:
                self.assertEqual(1, len({given[cpu] for cpu in core.cpus}))
        # Guests are nowhere else, and only where they have memory.
        shared = set(found.nova.cpu_shared_set)
        dedicated = set(found.nova.cpu_dedicated_set)
        self.assertEqual(set(), shared & dedicated)
        self.assertTrue(shared | dedicated)
        for cpu in dedicated:
            self.assertEqual(cpus.GUESTS, given[cpu])
        for node in machine.nodes:
            if not node.usable:
                self.assertEqual(set(), dedicated & node.cpus)
        self.assertEqual(
            {cpu for cpu, function in given.items()
             if function == cpus.SWITCH},
            {bit for bit in range(max(given) + 1) if int(
                found.ovs_other_config.get(
                    'pmd-cpu-mask', '0'), 16) >> bit & 1})

    @hypothesis.settings(max_examples=60, suppress_health_check=CHECKS)
    @hypothesis.given(st.data())
    def test_memory_adds_up(self, data):
        machine, chosen, found = self.profile(data)
        for node, own in zip(machine.nodes, found.numa_nodes):
            pages = sum(each.size_kib * each.total
                        for each in own.pages) // 1024
            self.assertLessEqual(own.kept_memory_mib + pages, node.memory)
            self.assertEqual(own.switch_memory_mib, sum(
                each.size_kib * each.switch for each in own.pages) // 1024)
            for each in own.pages:
                self.assertGreaterEqual(each.servers, 0)
        self.assertEqual(
            sum(node.kept_memory_mib + node.switch_memory_mib
                for node in found.numa_nodes),
            found.nova.reserved_host_memory_mib)
        self.assertEqual(found.nova.reserved_host_memory_mib - sum(
            node.switch_memory_mib for node in found.numa_nodes),
            found.platform_memory_mib)
        # DPDK refuses numbers for more nodes than it knows.
        numbers = found.ovs_other_config.get('dpdk-socket-mem', '1')
        self.assertNotEqual('0', numbers.rpartition(',')[2])
        if numbers != '1':
            self.assertEqual(
                {node.node: node.switch_memory_mib for node in found.numa_nodes
                 if node.switch_memory_mib},
                {node: int(mib) for node, mib in enumerate(
                    numbers.split(',')) if mib != '0'})

    @hypothesis.settings(max_examples=15, suppress_health_check=CHECKS)
    @hypothesis.given(st.data())
    def test_nova_reads_it(self, data):
        machine, chosen, found = self.profile(data)
        path = self.conf(configuration.nova_conf(found))
        compared = check.compare([path], chosen, machine)
        self.assertEqual(((), ()), (
            compared.start_errors, compared.differences))
        # What Nova's own functions make of it.
        CONF([], project='nova', default_config_files=[path])
        self.assertEqual(set(found.nova.cpu_shared_set) or None,
                         hardware.get_cpu_shared_set())
        self.assertEqual(set(found.nova.cpu_dedicated_set) or None,
                         hardware.get_cpu_dedicated_set())
        pages = hardware.numa_get_reserved_huge_pages()
        self.assertEqual(machines.reserved(found), {
            (node, size): count for node, sizes in pages.items()
            for size, count in sizes.items()})
        self.assertEqual(found.nova.reserved_host_memory_mib,
                         CONF.reserved_host_memory_mb)
        # Each text can be made.
        for render in (configuration.kernel, configuration.tuned,
                       configuration.ovs, configuration.ansible,
                       tables.text, tables.rows):
            self.assertTrue(render(found))

    def test_device_spec(self):
        """It is for the VFs of a NIC, as Nova reads it."""
        nova = machines.derive(
            switch_nics=(choices.ChosenNIC(name='ens1f0', physnet='both'),),
            sriov_nics=(choices.ChosenNIC(name='ens6f0', physnet='both'),
                        choices.ChosenNIC(name='eth0', physnet='far'))).nova
        self.assertEqual((0, 1), nova.physnets['both'])
        self.assertNotIn('far', nova.physnets)
        spec, by_name = nova.device_spec
        self.assertEqual({'devname': 'eth0', 'physical_network': 'far'},
                         jsonutils.loads(by_name))
        self.useFixture(fixtures.MonkeyPatch(
            'nova.pci.utils.is_physical_function', lambda *address: True))
        devices = whitelist.Whitelist([spec])
        vf = {'vendor_id': '8086', 'product_id': '154c',
              'address': '0000:af:02.1', 'parent_addr': '0000:af:00.0'}
        self.assertEqual({'physical_network': 'both'},
                         devices.device_assignable(vf).get_tags())
        for change in {'parent_addr': '0000:af:00.1'}, {'product_id': '1572'}:
            self.assertFalse(devices.device_assignable({**vf, **change}))


class RefusalTest(base.TestCase):

    def refused(self, of=None, **chosen):
        return str(self.assertRaises(
            choices.ProfileError, machines.derive, of, **chosen))

    def test_no_cpu_left(self):
        of = machines.machine(cores=2, nodes=1)
        self.assertEqual(
            'NUMA node 0 has 1 core left, but 2 wanted for: switch',
            self.refused(of))
        self.assertEqual('no CPU is left for servers',
                         self.refused(of, switch_cores=1))
        self.assertIn('wanted for: shared', self.refused(
            of, switch_cores=1, shared=True))

    def test_no_cpu_left_for_osds(self):
        """All that they want is told, and what others have left."""
        def refused(left, wanted, nodes=1, node=None, threads=2, count=1,
                    **chosen):
            self.assertEqual(
                f'NUMA node {node or 0} has {left} left, but {wanted} '
                'wanted for: ceph', self.refused(
                    machines.machine(cores=2, nodes=nodes, threads=threads),
                    osds={'ssd': count}, ceph_node=node, **chosen))

        refused('1 core', 2, switch_cores=0)
        refused('0 cores', 2, switch_cores=1)
        refused('1 core', 16, switch_cores=0, count=8)
        # Of these on each of two nodes, two on the first.
        refused('1 core', 4, switch_cores=0, nodes=2, count=3)
        refused('2 cores', 6, switch_cores=0, nodes=2, count=3, node=1)

    def test_node_that_cannot_be_used(self):
        for chosen, told in (
            ({'switch_cores': {7: 1}}, 'the switch cannot be on NUMA node 7'),
            ({'osds': {'hdd': 1}, 'ceph_node': 7},
             'the OSDs cannot be on NUMA node 7'),
            ({'switch_nics': (choices.ChosenNIC(name='ens9'),)},
             'there is no NIC ens9; there are: ens1f0, ens6f0, eth0'),
            ({'switch_nics': (choices.ChosenNIC(
                name='ens1f0', physnet='nfv_node0'),)},
             'nfv_node0 is the name of a label'),
            ({'sriov_nics': (choices.ChosenNIC(name='ens6f0', vfs=8),
                             choices.ChosenNIC(name='0000:af:00.0'))},
             '--sriov-nic names a NIC twice'),
        ):
            self.assertIn(told, self.refused(**chosen))

    def test_facts_without_nics(self):
        """As those of lscpu: what has the NUMA node of a NIC is named."""
        message = self.refused(machines.machine(nics=()), switch_nics=(
            choices.ChosenNIC(name='ens9'),))
        for text in ('Ironic', '--sys', '--vswitch-cores NODE:N', 'physical',
                     '/sys/class/net/ens9/device/numa_node'):
            self.assertIn(text, message)

    def test_little_memory(self):
        self.assertEqual(
            'NUMA node 0 has 8192 MiB of memory, but 8192 MiB are kept and '
            '1024 MiB are for the switch',
            self.refused(machines.machine(memory=8192)))
        self.assertIn('no NUMA node has both', self.refused(
            machines.machine(memory=0)))
        for chosen in ({}, {'guest_gb': 2.0}):
            self.assertIn('NUMA node 0 has 2048 MiB of memory', self.refused(
                machines.machine(memory=2048), layout=choices.FLOATING,
                network_node=True, **chosen))

    def test_much_for_osds(self):
        """Also what is kept besides counts."""
        osds = {'hdd': 20}
        machines.derive(machines.machine(memory=70 * machines.GIB), osds=osds)
        self.assertIn('more than 80 %', self.refused(
            machines.machine(memory=69 * machines.GIB), osds=osds))


class WarningTest(base.TestCase):
    def warned(self, of=None, **chosen):
        found = machines.derive(of, **chosen)
        for warning in found.warnings:
            self.assertTrue(warning.do)
        return machines.texts(found)

    def test_fine(self):
        self.assertEqual([], self.warned(machines.machine(
            threads=1), switch_nics=(choices.ChosenNIC(name='ens1f0'),)))

    def only(self, expected, of=None, **chosen):
        of = of or machines.machine(threads=1)
        warned = self.warned(of, **chosen)
        self.assertEqual(1, len(warned), warned)
        self.assertIn(expected, warned[0])

    def test_small(self):
        self.assertEqual(
            ['1 socket, fewer than 2',
             'fewer than 8 cores on socket 0 (7)',
             '16384 MiB of memory, less than 32768'],
            self.warned(machines.machine(
                cores=7, nodes=1, threads=1, memory=16384)))

    def test_several_nodes_of_a_socket(self):
        node = values.MachineNode(number=0, memory=65536, cores=tuple(
            values.Core(cpus=(cpu,), socket=0) for cpu in range(8)))
        self.assertEqual(['1 socket, fewer than 2'], self.warned(
            machines.machine(nodes=(node, values.MachineNode(
                number=1, memory=65536, cores=tuple(
                    values.Core(cpus=(cpu,), socket=0)
                    for cpu in range(8, 16)))))))

    def test_network(self):
        self.only('an MTU of 9000', mtus=frozenset({1500, 9000}))
        self.assertEqual([], self.warned(
            machines.machine(threads=1), mtus=frozenset({1500})))
        nic = choices.ChosenNIC(name='ens6f0', physnet='a')
        of = machines.machine(threads=1, nics=(values.NIC(
            name='ens6f0', node=0, vfs=4, most_vfs=64, vf_product='1'),))
        self.only('4 VFs of NIC ens6f0, not 0', of, switch_nics=(nic,))
        for vfs, warned in ((None, []), (8, []), (
                3, ['4 VFs of NIC ens6f0, not 3'])):
            self.assertEqual(warned, self.warned(of, sriov_nics=(
                dataclasses.replace(nic, vfs=vfs),)))

    def test_cpus(self):
        self.only('hw:cpu_thread_policy=isolate', machines.machine())
        self.only('offline CPUs: 90, 91', machines.machine(
            threads=1, offline={90: None, 91: 1}))
        self.only('no CPU is left for pinned servers on NUMA node 1',
                  machines.machine(cores=8, threads=1), switch_cores={1: 8})

    def test_memory(self):
        of = machines.machine(threads=1)
        first, second = of.nodes
        self.only('NUMA nodes differ in memory: node 0 131072 MiB, node 1 '
                  '65536 MiB', machines.machine(nodes=(
                      first, values.MachineNode(number=1, cores=second.cores,
                                                memory=65536))))
        # Firmware keeps some of it.
        self.assertEqual([], self.warned(machines.machine(nodes=(
            first, values.MachineNode(number=1, cores=second.cores,
                                      memory=130500)))))
        self.only('only the sum of the memory is known',
                  machines.machine(threads=1, even_memory=True))
        self.only('NUMA node 2 has memory, but no CPUs', machines.machine(
            nodes=(first, second, values.MachineNode(number=2, memory=1024))))
        self.only('NUMA node 2 has CPUs, but no memory', machines.machine(
            nodes=(first, second, values.MachineNode(number=2, cores=tuple(
                values.Core(cpus=(cpu,), socket=2)
                for cpu in range(100, 108))))))

    def test_pages(self):
        of = machines.machine(threads=1, page_sizes=frozenset((2048,)))
        self.only('so pages of 2M are used', of)
        self.only('there are no pages of 1G (flag pdpe1gb)', of,
                  pages=((1048576, 0.5),))
        self.assertEqual([], self.warned(of, pages=((2048, 1.0),)))
        self.assertEqual([], self.warned(
            machines.machine(threads=1, page_sizes=None)))
        # Arm with pages of 64 KiB, which knows no such flag.
        arm = machines.machine(threads=1, vendor='', page_sizes=frozenset((
            2048, 524288, 16777216)))
        self.only('there are no pages of 1G, so pages of 512M are used', arm)
        self.only('there are no pages of 1G', arm, pages=((1048576, 1.0),))
        self.assertEqual([], self.warned(arm, pages=((524288, 0.5),)))

    def test_doubtful_threads(self):
        for known, times in ((None, 1), (4, 0)):
            self.assertEqual(times, sum(
                'by numbers that on some' in text for text in self.warned(
                    machines.machine(threads=4, core_threads=known))))

    def test_switch(self):
        self.only('no core for the virtual switch', switch_cores=0)
        self.only('9 cores for the virtual switch, more than 8',
                  switch_cores={0: 5, 1: 4})
        self.assertEqual([], self.warned(
            machines.machine(threads=1), switch_cores={0: 4, 1: 4}))
        self.only('NIC ens6f0 is on NUMA node 1, which has no core',
                  switch_cores={0: 2},
                  switch_nics=(choices.ChosenNIC(name='ens6f0'),))
        self.only('the NUMA node of NIC eth0 is not known',
                  switch_nics=(choices.ChosenNIC(name='eth0'),))

    def test_vfs(self):
        for name, vfs, node, expected in (
            ('ens6f0', 64, 0, 'NIC ens6f0 is on NUMA node 1, which has no '),
            ('eth0', 99, 0, 'the NUMA node of NIC eth0 is not known'),
            ('ens6f0', 65, 1, '65 VFs of NIC ens6f0, which has 64 at most'),
        ):
            self.only(expected, switch_cores={node: 2}, sriov_nics=(
                choices.ChosenNIC(name=name, vfs=vfs),))
        nics = [choices.ChosenNIC(name=name) for name in ('ens1f0', 'ens6f0')]
        self.only('NIC ens1f0 is of the switch', switch_nics=nics,
                  sriov_nics=nics)

    def test_ceph(self):
        workload = {'guest_gb': 2.0, 'layout': choices.FLOATING}
        self.only('OSDs on disks of several types: hdd, ssd',
                  osds={'hdd': 1, 'ssd': 1}, **workload)
        self.only('NVMe devices with 1 OSD each',
                  osds={'nvme': 1}, **workload)
        self.assertEqual([], self.warned(
            machines.machine(threads=1), osds={'nvme': 4}, osds_per_device=4,
            **workload))
        self.only('what servers need is not known',
                  osds={'hdd': 1}, ceph_node=0)
        self.only('a CPU allocation ratio of 20, more than 16',
                  utilisation=0.05, **workload)
        self.assertEqual([], self.warned(
            machines.machine(threads=1), utilisation=0.0625, **workload))

    def test_ceph_node(self):
        """Whoever names none is told where the OSDs are."""
        osds = {'hdd': 2}
        self.only('no --ceph-node: OSDs have cores on NUMA node 0, 1',
                  osds=osds, guest_gb=2.0)
        for of, node in ((machines.machine(threads=1), 1),
                         (machines.machine(threads=1, nodes=1), None)):
            self.assertNotIn('ceph-node', ''.join(self.warned(
                of, osds=osds, ceph_node=node, guest_gb=2.0)))


class CheckTest(ProfileTestCase):

    def differences(self, text, of=None, **chosen):
        return [
            (each.option if each.section == 'DEFAULT' else
             f'[{each.section}] {each.option}', each.has, each.should_have)
            for each in self.compare(text, of, **chosen).differences]

    def test_each_option(self):
        good = configuration.nova_conf(machines.derive(
            shared=True, guest_gb=2.0, utilisation=0.5,
            layout=choices.EVERY_NODE))
        for old, new, expected in (
            ('cpu_shared_set = 3,16,31,44', 'cpu_shared_set = 3',
             ('[compute] cpu_shared_set', '3', '3,16,31,44')),
            ('cpu_shared_set = 3,16,31,44', '',
             ('[compute] cpu_shared_set', None, '3,16,31,44')),
            ('cpu_shared_set = 3,16,31,44',
             'cpu_shared_set = 3,16,30-31,^30,44', None),
            ('reserved_host_memory_mb = ', 'reserved_host_memory_mb = 1',
             ('reserved_host_memory_mb', '157344', '57344')),
            ('reserved_huge_pages = node:1,size:1GB,count:1', '',
             ('reserved_huge_pages', 'node:0,size:1GB,count:1',
              'node:0,size:1GB,count:1; node:1,size:1GB,count:1')),
            ('node:1,size:1GB', 'node:1,size:1048576', None),
            ('cpu_allocation_ratio = 2', 'cpu_allocation_ratio = 4',
             ('cpu_allocation_ratio', '4', '2')),
            ('[compute]', 'vcpu_pin_set = 4-5\n[compute]',
             ('vcpu_pin_set', '4-5', None)),
            (',nfv_node1', '',
             ('[neutron_physnet_nfv_node1] numa_nodes',
              'not in [neutron] physnets', '1')),
            (',nfv_node1', ',nfv_node1,nfv_node2',
             ('[neutron_physnet_nfv_node2] numa_nodes', None,
              'not in [neutron] physnets')),
            (',nfv_node1', ',nfv_node1,physnet0', None),
            # Of an operator's own place, and of one that is not here any more.
            (',nfv_node1', ',nfv_node1,nfv_node_backup', None),
            (',nfv_node1', ',nfv_node1,nfv_osd',
             ('[neutron_physnet_nfv_osd] numa_nodes', None,
              'not in [neutron] physnets')),
            ('[neutron_physnet_nfv_vswitch]\nnuma_nodes = 0,1',
             '[neutron_physnet_nfv_vswitch]\nnuma_nodes = 1',
             ('[neutron_physnet_nfv_vswitch] numa_nodes', '1', '0,1')),
        ):
            self.assertIn(old, good)
            found = self.differences(
                good.replace(old, new), shared=True, guest_gb=2.0,
                utilisation=0.5, layout=choices.EVERY_NODE)
            if expected is None:
                self.assertEqual([], found, new)
                continue
            self.assertEqual(1, len(found), found)
            self.assertEqual(expected, found[0])

    def test_ratio_that_is_not_the_profiles(self):
        good = configuration.nova_conf(machines.derive())
        self.assertEqual([], self.differences(
            good.replace('[DEFAULT]', '[DEFAULT]\ncpu_allocation_ratio = 1')))

    def test_wrong_section(self):
        good = configuration.nova_conf(machines.derive())
        for text, expected in (
            ('[compute]\nreserved_host_memory_mb = 1\n',
             ('compute', 'reserved_host_memory_mb', '1', 'DEFAULT')),
            ('[libvirt]\ncpu_dedicated_set = 3\ncpu_dedicated_set = 4\n',
             ('libvirt', 'cpu_dedicated_set', '3; 4', 'compute')),
            ('[default]\nphysnets = a\n',
             ('default', 'physnets', 'a', 'neutron')),
            ('[cpu_mode]\ncpu_power_management = true\n',
             ('cpu_mode', 'cpu_power_management', 'true', 'libvirt')),
        ):
            self.assertEqual([expected], [
                (each.section, each.option, each.has, each.belongs)
                for each in self.compare(good + text).differences], text)
        self.assertEqual((), self.compare(
            good.replace('[compute]', '[Compute]')).differences)

    def test_folder(self):
        """As oslo.config reads --config-dir: in the order of the names."""
        good = configuration.nova_conf(machines.derive())
        path = self.conf(good, '10-nova.conf')
        folder = os.path.dirname(path)
        for name, text in (
                ('20-more.conf', 'reserved_host_memory_mb = 1'),
                ('05-first.conf', 'reserved_host_memory_mb = 2'),
                ('30-off.conf.bak', 'reserved_host_memory_mb = 3')):
            pathlib.Path(folder, name).write_text(f'[DEFAULT]\n{text}\n')
        for paths, has in (([folder], '1'), ([folder, path], None),
                           ([path, folder], '1')):
            self.assertEqual([has] if has else [], [
                each.has for each in check.compare(
                    paths, choices.Choices(),
                    machines.machine()).differences])
        self.assertRaises(
            compute_conf.OptionsError, check.compare,
            [self.useFixture(fixtures.TempDir()).path], choices.Choices(),
            machines.machine())


class StartTest(ProfileTestCase):
    """What nova-compute itself refuses, by its own code."""

    POWER = '[libvirt]\ncpu_power_management = true\n'
    GOVERNOR = f'{POWER}cpu_power_management_strategy = governor\n'

    def errors(self, text, of=None):
        return self.compare(text, of).start_errors

    def test_refused(self):
        off = machines.machine(offline={56: 0, 57: 1})
        governors = machines.machine(governors={4: 'powersave', 5: 'other'})
        sets = '[compute]\ncpu_shared_set = 1-3\ncpu_dedicated_set = '
        for text, starts, word, of in (
            (f'reserved_host_cpus = 2\n{sets}4-5', False,
             'reserved_host_cpus', None),
            (f'{sets}3-5', False, 'must be disjoint', None),
            (f'vcpu_pin_set = 4\n{sets}5', False, 'vcpu_pin_set', None),
            (f'{sets}5-x', False, "Invalid range expression '5-x'", None),
            (f'{sets}^5', False, 'No CPUs available', None),
            ('reserved_huge_pages = size:1GB', False, 'reserved_huge_pages',
             None),
            ('[libvirt]\ncpu_models = Nehalem', False, 'cpu_models', None),
            ('[libvirt]\ncpu_mode = custom', False, 'cpu_models', None),
            (f'{sets}4-60', True, 'configured cpuset(s): 4-60', None),
            (f'{sets}4,56', True, 'Available cpuset(s): 0-55,', off),
            ('[compute]\ncpu_shared_set = 4,56', True, 'is not online', off),
            ('vcpu_pin_set = 4,90', True, "Invalid 'vcpu_pin_set'", None),
            (f'{sets}4,90\n{self.POWER}', False, 'there is no CPU 90', off),
            (f'{sets}4,56\n{self.GOVERNOR}', False, 'need to be online', off),
            (f'{sets}4-6\n{self.POWER}', False, 'same governor', governors),
            ('[neutron]\nphysnets = a', True, "'a' was listed", None),
            ('[neutron]\nphysnets = a\n[neutron_physnet_a]\n'
             'numa_nodes = 7', True, 'node 7', None),
            ('[neutron_tunnel]\nnuma_nodes = 7', True, 'node 7', None),
        ):
            found = self.errors(f'[DEFAULT]\n{text}\n', of)
            self.assertIn(starts, [each.starts for each in found], text)
            self.assertIn(word, found[0].reason)
            # What does not matter is not said twice.
            self.assertLessEqual(len(found), 2, found)

    def test_accepted(self):
        off = machines.machine(offline={56: 0, 57: 1}, governors={4: 'other'})
        sets = '[compute]\ncpu_shared_set = 1-3\ncpu_dedicated_set = '
        for text, of in (
            ('', None), (f'{sets}4-5', None), ('reserved_host_cpus = 2', None),
            (f'{sets}4,56\n{self.POWER}', off),
            # Nova leaves CPU 0 on, and says so in its log.
            (f'{sets}0,4\n{self.POWER}', off),
            (f'{sets}0,4\n{self.GOVERNOR}', off),
            ('[libvirt]\ncpu_mode = custom\ncpu_models = Nehalem', None),
        ):
            self.assertEqual((), self.errors(f'[DEFAULT]\n{text}\n', of),
                             text)
        # The configuration of this process is again what it was.
        self.assertIs(CONF, hardware.CONF)

    def test_what_cannot_be_read(self):
        found = self.compare('[DEFAULT]\nreserved_huge_pages = size:1GB\n')
        self.assertEqual(((), 1),
                         (found.differences, len(found.start_errors)))


class PowerTest(ProfileTestCase):
    """Nova switches off dedicated CPUs that no server has."""

    @hypothesis.settings(max_examples=60, suppress_health_check=CHECKS)
    @hypothesis.given(st.data())
    def test_same_answer_with_each_server(self, data):
        """As with all CPUs online, or none."""
        machine, chosen, found = self.profile(
            data, most_nodes=4, most_cores=6)
        nova = found.nova
        cores = [core for node in machine.nodes for core in node.cores]
        if data.draw(st.booleans()):
            nova = dataclasses.replace(
                nova, cpu_shared_set=(), cpu_dedicated_set=tuple(sorted(
                    cpu for core in data.draw(st.sets(
                        st.sampled_from(cores), min_size=1))
                    for cpu in core.cpus)))
        dedicated = set(nova.cpu_dedicated_set)
        path = self.conf('[compute]\ncpu_dedicated_set = '
                         f'{cpu_spec.to_text(dedicated) or 0}\n'
                         'cpu_shared_set = '
                         f'{cpu_spec.to_text(nova.cpu_shared_set)}\n'
                         f'{StartTest.POWER}')
        down = data.draw(st.one_of(
            st.just(dedicated - {0}), st.sets(
                st.sampled_from(sorted(dedicated) or [0]))))
        down = (down & machine.cpus) - {0}
        known = data.draw(st.booleans())
        machine = dataclasses.replace(machine, offline={}, core_threads=max(
            len(core.cpus) for core in cores))
        seen = dataclasses.replace(machine, offline={
            cpu: node.number if known else None for node in machine.nodes
            for cpu in node.cpus & down}, nodes=tuple(dataclasses.replace(
                node, cores=tuple(
                    dataclasses.replace(core, cpus=cpus) for core
                    in node.cores if (cpus := tuple(
                        cpu for cpu in core.cpus if cpu not in down))))
                for node in machine.nodes))
        expected = check.compare([path], chosen, machine)
        try:
            found = check.compare([path], chosen, seen)
        except choices.ProfileError:
            self.assertFalse(down)
            return
        self.assertEqual(down, set(found.powered_down))
        self.assertEqual(expected.start_errors, found.start_errors)
        self.assertEqual(
            () if down else expected.warnings, found.warnings)
        if found.compares:
            self.assertEqual(expected.differences, found.differences)

    def test_idle_host(self):
        """All dedicated CPUs are off, those of a whole NUMA node, too."""
        machine = machines.machine()
        found = machines.derive()
        text = configuration.nova_conf(found) + StartTest.POWER
        off = set(found.nova.cpu_dedicated_set)
        first, second = machine.nodes
        for known in (True, False):
            idle = dataclasses.replace(machine, core_threads=2, offline={
                cpu: int(cpu in second.cpus) if known else None
                for cpu in off}, nodes=(
                    dataclasses.replace(first, cores=first.cores[:3]),
                    # Without a node, nor is its memory known.
                    *((dataclasses.replace(second, cores=()),)
                      if known else ())))
            compared = self.compare(text, idle)
            self.assertEqual((off, (), (), known), (
                set(compared.powered_down), compared.start_errors,
                compared.differences, compared.compares))

    def test_facts_of_online_cpus_alone(self):
        machine = machines.machine()
        text = configuration.nova_conf(machines.derive()) + StartTest.POWER
        self.assertRaises(
            values.MachineError, self.compare, text, dataclasses.replace(
                machine, nodes=machine.nodes[:1], knows_offline=False))
