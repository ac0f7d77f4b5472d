# SPDX-License-Identifier: Apache-2.0
"""Machines are read from ``/sys``."""

import os
import shutil

import fixtures

from nfv_sched.ops.answers.machine import read
from nfv_sched.ops.answers.machine import values
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.machine import trees


class SysTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.root = self.useFixture(fixtures.TempDir()).path

    def machine(self, *args, **kwargs):
        trees.machine(self.root, *args, **kwargs)
        return read.machine(root=self.root)

    def refused(self):
        return str(self.assertRaises(
            values.MachineError, read.machine, root=self.root))

    def test_this_machine(self):
        found = read.machine()
        self.assertLessEqual(os.sched_getaffinity(0), found.cpus)
        self.assertGreater(found.memory, 0)

    def test_two_sockets(self):
        found = self.machine({
            0: (1024, [(0, 4), (1, 5)]), 1: (2048, [(2, 6), (3, 7)])},
            offline=(8, 9), nics=[
                ('0000:3b:00.0', ['net/ens1f0'], 0),
                ('0000:af:00.0', [], 1),
                ('0000:00:03.0', ['virtio0/net/eth0'], -1)])
        first, second = found.nodes
        self.assertEqual(
            (values.Core(cpus=(0, 4), socket=0),
             values.Core(cpus=(1, 5), socket=0)), first.cores)
        self.assertEqual((1, 2048, {2, 3, 6, 7}),
                         (second.number, second.memory, second.cpus))
        self.assertEqual({8: None, 9: None}, found.offline)
        self.assertEqual({2048, 1048576}, found.page_sizes)
        self.assertEqual('intel', found.vendor)
        self.assertEqual({0: 2, 1: 2}, found.sockets())
        self.assertEqual((
            values.NIC(name='0000:af:00.0', address='0000:af:00.0', node=1),
            values.NIC(name='ens1f0', address='0000:3b:00.0', node=0),
            values.NIC(name='eth0', address='0000:00:03.0')), found.nics)

    def test_no_vfs(self):
        trees.write(self.root, 'bus/pci/devices/0000:3b:02.0/physfn', '')
        found = self.machine({0: (1024, [(0,)])},
                             nics=[('0000:3b:02.0', ['net/ens1f0v0'], 0)])
        self.assertEqual((), found.nics)

    def test_nic_with_vfs(self):
        folder = 'bus/pci/devices/0000:af:00.0'
        trees.write(self.root, f'{folder}/sriov_totalvfs', '64')
        trees.write(self.root, f'{folder}/sriov_numvfs', '8')
        trees.write(self.root, f'{folder}/sriov_vf_device', '154c')
        nic, = self.machine({0: (1024, [(0,)])}, nics=[
            ('0000:af:00.0', ['net/ens6f0'], 0)]).nics
        self.assertEqual(
            (8, 64, '154c'), (nic.vfs, nic.most_vfs, nic.vf_product))

    def test_nodes_that_lack_something(self):
        found = self.machine({
            0: (1024, [(0,)]), 2: (0, [(1,)]), 8: (512, [])}, sizes=(2048,),
            modalias='cpu:type:x86,ven0002fam0019mod0001:feature:,0000')
        self.assertEqual([0, 2, 8], [node.number for node in found.nodes])
        self.assertEqual([True, False, False],
                         [node.usable for node in found.nodes])
        self.assertEqual(({2048}, 'amd'), (found.page_sizes, found.vendor))

    def test_offline_sibling(self):
        """The kernel lists only those that are online."""
        trees.write(self.root, 'devices/system/cpu/cpu3/node1/cpulist', '0')
        trees.write(self.root, 'devices/system/cpu/cpu1/cpufreq/'
                               'scaling_governor', 'powersave')
        found = self.machine({0: (1024, [(0, 2), (1,)])}, offline=(3,))
        # But where it is, and that there are siblings.
        self.assertEqual(({3: 1}, 2), (found.offline, found.core_threads))
        self.assertEqual({1: 'powersave'}, found.governors)
        self.assertEqual([(0, 2), (1,)],
                         [core.cpus for core in found.nodes[0].cores])
        trees.write(self.root, 'devices/system/cpu/smt/control', 'on')
        found = self.machine({0: (1024, [(0,), (1,)])}, offline=(2, 3))
        self.assertEqual((1, 2), (found.threads, found.core_threads))

    def test_without_numa(self):
        """A kernel without NUMA: one node, as libvirt sees it."""
        trees.machine(self.root, {0: (1024, [(0, 2), (1, 3)])}, sizes=())
        shutil.rmtree(os.path.join(self.root, 'devices/system/node'))
        trees.write(self.root, 'kernel/mm/hugepages/hugepages-2048kB/'
                               'nr_hugepages', '0')
        self.assertIn('--node-memory', self.refused())
        found = read.machine(root=self.root, memory=[1024])
        self.assertEqual([(0, [(0, 2), (1, 3)])], [
            (node.number, [core.cpus for core in node.cores])
            for node in found.nodes])
        self.assertEqual({2048}, found.page_sizes)

    def test_cpus_in_no_node(self):
        trees.machine(self.root, {0: (1024, [(0,), (1,)])})
        trees.write(self.root, 'devices/system/node/node0/cpulist', '1')
        self.assertIn('in no NUMA node: CPU 0.', self.refused())

    def test_list_with_a_nul(self):
        trees.machine(self.root, {0: (1024, [(0,), (1,)])})
        before = read.machine(root=self.root)
        trees.write(self.root, 'devices/system/node/node0/cpulist',
                    '0-1\n\0')
        self.assertEqual(before, read.machine(root=self.root))

    def test_broken(self):
        self.assertIn('has no devices/system/cpu', self.refused())
        trees.machine(self.root, {0: (1024, [(0, 1)])})
        siblings = 'devices/system/cpu/cpu0/topology/thread_siblings_list'
        for path, text, told in (
            (siblings, '0-x', "'0-x' is not a list of CPUs"),
            (siblings, '0-64', 'cannot have 65 sibling threads'),
            (siblings, '1', 'CPU 0 is not among its own sibling threads'),
            ('devices/system/node/node0/meminfo', 'nothing',
             'meminfo has no MemTotal'),
            ('devices/system/node/node0/meminfo',
             f'Node 0 MemTotal: {"9" * 5000} kB', 'meminfo has no MemTotal'),
            ('devices/system/cpu/cpu1/topology/physical_package_id', 'x',
             'physical_package_id is not a number'),
            ('devices/system/cpu/online', '0-99999999999',
             'is not a list of CPUs'),
        ):
            with open(os.path.join(self.root, path),
                      encoding='utf-8') as file:
                before = file.read().strip()
            trees.write(self.root, path, text)
            self.assertIn(told, self.refused())
            trees.write(self.root, path, before)
        path = os.path.join(self.root, siblings)
        os.unlink(path)
        os.mkfifo(path)
        # It is as good as empty.
        self.assertIn('not among its own sibling', self.refused())
        os.unlink(path)
        self.assertIn('No such file', self.refused())
