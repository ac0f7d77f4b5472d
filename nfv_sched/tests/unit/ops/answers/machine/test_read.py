# SPDX-License-Identifier: Apache-2.0
"""Machines are read from files of lscpu, libvirt, Ironic and Ansible."""

import json
import os

import fixtures
import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import read
from nfv_sched.ops.answers.machine import values
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.machine import trees

#: As util-linux 2.38 prints it, and with texts as older releases do.
LIST = {'cpus': [
    {'cpu': 0, 'node': 0, 'socket': 0, 'core': 0, 'online': True},
    {'cpu': 1, 'node': 1, 'socket': 1, 'core': 1, 'online': True},
    {'cpu': 2, 'node': 0, 'socket': 0, 'core': 0, 'online': True},
    {'cpu': 3, 'node': None, 'socket': None, 'core': None, 'online': False}]}
OLD_LIST = {'cpus': [
    {'cpu': '0', 'node': '0', 'socket': '0', 'core': '0', 'online': 'yes'},
    {'cpu': '1', 'node': '1', 'socket': '1', 'core': '1', 'online': 'yes'},
    {'cpu': '2', 'node': '0', 'socket': '0', 'core': '0', 'online': 'yes'},
    {'cpu': '3', 'node': '-', 'socket': '-', 'core': '-', 'online': 'no'}]}
PARSABLE = """\
# The following is the parsable format, which can be fed to other
# programs. Each different item in every column has an unique ID
# starting usually from zero.
# CPU,Node,Socket,Core,Online
0,0,0,0,Y
1,1,1,1,Y
2,0,0,0,Y
3,,,,N
"""
#: What a release before has without options: other columns, caches.
PARSABLE_DEFAULT = """\
# CPU,Core,Socket,Node,,L1d,L1i,L2,L3
0,0,0,0,,0,0,0,0
1,1,1,1,,1,1,1,0
2,0,0,0,,0,0,0,0
"""
SUMMARY = {'lscpu': [
    {'field': 'Architecture:', 'data': 'x86_64', 'children': [
        {'field': 'Address sizes:', 'data': '46 bits physical'}]},
    {'field': 'CPU(s):', 'data': '3', 'children': [
        {'field': 'On-line CPU(s) list:', 'data': '0,1'},
        {'field': 'Off-line CPU(s) list:', 'data': '2'}]},
    {'field': 'Vendor ID:', 'data': 'GenuineIntel', 'children': [
        {'field': 'Thread(s) per core:', 'data': '1'},
        {'field': 'Flags:', 'data': 'fpu vme pse pdpe1gb'}]},
    {'field': 'NUMA:', 'data': None, 'children': [
        {'field': 'NUMA node0 CPU(s):', 'data': '0'},
        {'field': 'NUMA node1 CPU(s):', 'data': '1'}]}]}
IRONIC = {
    'inventory': {'cpu': {
        'model_name': 'Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz',
        'flags': ['fpu', 'pse', 'vmx']}},
    'numa_topology': {
        'ram': [{'numa_node': 0, 'size_kb': 99289532},
                {'numa_node': 1, 'size_kb': 100663296}],
        # The number of a core is that within its socket.
        'cpus': [{'cpu': 0, 'numa_node': 0, 'thread_siblings': [2, 0]},
                 {'cpu': 0, 'numa_node': 1, 'thread_siblings': [1, 3]}],
        'nics': [{'name': 'p2p1', 'numa_node': 0},
                 {'name': 'p2p2', 'numa_node': 1},
                 {'name': 'em1', 'numa_node': -1}]}}
CAPABILITIES = """\
<capabilities>

  <host>
    <uuid>3d3c1d11-e3a4-11e6-aaaa-001e67a5a4c9</uuid>
    <cpu>
      <arch>x86_64</arch>
      <vendor>Intel</vendor>
      <pages unit='KiB' size='4'/>
      <pages unit='KiB' size='2048'/>
      <pages unit='KiB' size='1048576'/>
    </cpu>
    <topology>
      <cells num='2'>
        <cell id='0'>
          <memory unit='KiB'>99289532</memory>
          <pages unit='KiB' size='4'>24822383</pages>
          <distances>
            <sibling id='0' value='10'/>
          </distances>
          <cpus num='3'>
            <cpu id='0' socket_id='0' die_id='0' core_id='0' siblings='0,2'/>
            <cpu id='2' socket_id='0' die_id='0' core_id='0' siblings='0,2'/>
            <cpu id='3'/>
          </cpus>
        </cell>
        <cell id='8'>
          <memory unit='KiB'>100663296</memory>
          <cpus num='1'>
            <cpu id='1' socket_id='1' die_id='0' core_id='0' siblings='1'/>
          </cpus>
        </cell>
      </cells>
    </topology>
  </host>
</capabilities>

"""
ANSIBLE = {'ansible_facts': {
    'ansible_memtotal_mb': 257401, 'ansible_processor': [
        '0', 'AuthenticAMD', 'AMD EPYC 7302P 16-Core Processor'],
    'ansible_interfaces': ['lo', 'ens1f0', 'br-ex'],
    'ansible_lo': {'device': 'lo', 'type': 'loopback'},
    'ansible_br_ex': {'device': 'br-ex', 'type': 'bridge'},
    'ansible_ens1f0': {'device': 'ens1f0', 'pciid': '0000:3b:00.0'}},
    'changed': False}


class ReadTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def path(self, content, name='facts'):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(content if isinstance(content, str)
                       else json.dumps(content))
        return path

    def cores(self, machine):
        return {node.number: [core.cpus for core in node.cores]
                for node in machine.nodes}

    def refused(self, *contents, **kwargs):
        return str(self.assertRaises(
            values.MachineError, read.machine, [
                self.path(content, f'f{number}')
                for number, content in enumerate(contents)], **kwargs))


class LscpuTest(ReadTestCase):

    def test_lists(self):
        for content, offline in ((LIST, {3}), (OLD_LIST, {3}),
                                 (PARSABLE, {3}), (PARSABLE_DEFAULT, set())):
            found = read.machine([self.path(content)], memory=[1024, 2048])
            self.assertEqual({0: [(0, 2)], 1: [(1,)]}, self.cores(found))
            self.assertEqual(dict.fromkeys(offline), found.offline)
            self.assertEqual({0: 1, 1: 1}, found.sockets())
            self.assertEqual([1024, 2048],
                             [node.memory for node in found.nodes])
            self.assertIsNone(found.page_sizes)

    def test_no_memory(self):
        self.assertIn('add --node-memory', self.refused(LIST))
        self.assertIn('memory of 1 NUMA nodes is given, but it has 2 with '
                      'CPUs online', self.refused(LIST, memory=[1024]))

    def test_cores_of_sockets_with_the_same_number(self):
        """Some releases number the cores of each socket from 0 on."""
        rows = [dict(row, core=0) for row in LIST['cpus'][:3]]
        found = read.machine([self.path({'cpus': rows})], memory=[1, 1])
        self.assertEqual({0: [(0, 2)], 1: [(1,)]}, self.cores(found))

    def test_summary(self):
        found = read.machine([self.path(SUMMARY)], memory=[1024, 1024])
        self.assertEqual({0: [(0,)], 1: [(1,)]}, self.cores(found))
        self.assertEqual(({2: None}, 'intel', {2048, 1048576}), (
            found.offline, found.vendor, found.page_sizes))

    def test_flat_summary(self):
        """As from util-linux 2.38; and without siblings it is not enough."""
        content = {'lscpu': [
            {'field': 'On-line CPU(s) list:', 'data': '0,1'},
            {'field': 'Vendor ID:', 'data': 'AuthenticAMD'},
            {'field': 'Thread(s) per core:', 'data': '1'},
            {'field': 'Flags:', 'data': 'pse'},
            {'field': 'NUMA node0 CPU(s):', 'data': '0,1'}]}
        found = read.machine([self.path(content)], memory=[1024])
        self.assertEqual({0: [(0,), (1,)]}, self.cores(found))
        self.assertEqual(({2048}, 'amd'), (found.page_sizes, found.vendor))
        content['lscpu'][2]['data'] = '2'
        self.assertIn('sibling threads of the CPUs are not known; give what '
                      f'"{facts.LSCPU}"', self.refused(content))

    def test_together(self):
        found = read.machine([self.path(SUMMARY, 'summary'),
                              self.path(LIST, 'list')], memory=[1, 1])
        # The first that knows something counts.
        self.assertEqual({0: [(0,)], 1: [(1,)]}, self.cores(found))
        found = read.machine([self.path(LIST, 'list'), self.path(
            json.dumps(SUMMARY).replace('"data": "1"', '"data": "2"'),
            'summary')], memory=[1, 1])
        self.assertEqual({0: [(0, 2)], 1: [(1,)]}, self.cores(found))
        self.assertEqual('intel', found.vendor)

    def test_wrong(self):
        for content, told in (
            ({'cpus': []}, 'there is no CPU'),
            ({'cpus': [1]}, '"cpus" is not a list of CPUs'),
            ({'cpus': [{'cpu': 0, 'node': 0}]}, 'CPU and CORE are needed'),
            *(({'cpus': [{'cpu': cpu, 'core': cpu, 'socket': cpu % sockets}
                         for cpu in (0, 1)]}, 'the column NODE is needed')
              for sockets in (1, 2)),
            ({'cpus': [{'cpu': 'x', 'core': 0, 'node': 0}]},
             "'x', not a number"),
            ({'cpus': [{'cpu': None, 'core': 0, 'node': 0}]},
             'None is not a CPU'),
            ({'cpus': [{'cpu': -1, 'core': 0, 'node': 0}]},
             '-1 is not a CPU'),
            ({'cpus': [{'cpu': 1, 'core': 0, 'node': 0}] * 2},
             'CPU 1 is there twice'),
            ('# CPU,Core,Socket\n0,0\n', "'0,0' has not the columns"),
            ({'lscpu': [{'field': 'Thread(s) per core:', 'data': '1'},
                        {'field': 'On-line CPU(s) list:', 'data': 'a'}]},
             "'a' is not a list of CPUs"),
            ({'lscpu': [{'field': f'NUMA node{"9" * 5000} CPU(s):',
                         'data': '0'}]}, 'it has 0'),
        ):
            self.assertIn(told, self.refused(content, memory=[1]))

    def test_bare_dash(self):
        """As util-linux before 2.41 has it, for the cells of numbers."""
        for content in (LIST, {'cpus': [
                dict(row, node=None) for row in LIST['cpus']]}):
            text = json.dumps(content, indent=1)
            for dashes in (text.replace('null', '-'),
                           json.dumps(content).replace('null', '-'),
                           text.replace('null', '"-"')):
                self.assertIn('-', dashes)
                count = len({row['node'] for row in content['cpus'][:3]})
                self.assertEqual(
                    read.machine([self.path(text)], memory=[1] * count),
                    read.machine([self.path(dashes)], memory=[1] * count))

    def test_without_numa(self):
        """It is one node, as libvirt and so Nova see it."""
        rows = [dict(row, node=None) for row in LIST['cpus']]
        found = read.machine([self.path({'cpus': rows})], memory=[1])
        self.assertEqual({0: [(0, 2), (1,)]}, self.cores(found))
        # One of several CPUs never vanishes.
        rows[0]['node'] = 1
        self.assertIn('online, but in no NUMA node: CPU 1-2.',
                      self.refused({'cpus': rows}, memory=[1]))

    @hypothesis.settings(max_examples=60, deadline=None)
    @hypothesis.given(st.data())
    def test_cores_of_clusters_with_the_same_numbers(self, data):
        """Told apart by caches, columns, the summary, or refused."""
        clusters = data.draw(st.integers(1, 4))
        cores, threads = data.draw(st.integers(1, 4)), data.draw(
            st.sampled_from((1, 1, 2, 4)))
        unknown = data.draw(st.booleans())
        rows, expected = [], []
        for cluster in range(clusters):
            for core in range(cores):
                first = len(rows)
                expected.append(tuple(range(first, first + threads)))
                rows += [{'cpu': first + thread, 'node': 0, 'socket': 0,
                          'core': -1 if unknown else core,
                          'online': True, 'cluster': cluster,
                          'l1d:l1i:l2:l3': f'{len(expected)}:0:{cluster}:0'}
                         for thread in range(threads)]
        without = data.draw(st.sets(st.sampled_from((
            'cluster', 'l1d:l1i:l2:l3'))))
        rows = [{name: cell for name, cell in row.items()
                 if name not in without} for row in rows]
        summary = data.draw(st.booleans())
        paths = [self.path({'cpus': rows}, 'list')] + ([self.path(
            {'lscpu': [{'field': 'Thread(s) per core:',
                        'data': str(threads)}]}, 'summary')]
            if summary else [])
        try:
            found = read.machine(paths, memory=[1024])
        except values.MachineError as exc:
            self.assertIn(facts.LSCPU, str(exc))
            found = None
        if 'l1d:l1i:l2:l3' not in without or summary and threads == 1 or (
                'cluster' not in without and not unknown):
            self.assertEqual({0: expected}, self.cores(found))
        elif found is not None and (unknown or summary):
            self.assertEqual({0: expected}, self.cores(found))
        if found is not None:
            self.assertEqual(
                threads if summary or 'l1d:l1i:l2:l3' not in without
                else None, found.core_threads)

    def test_more_threads_than_the_cpu_can_have(self):
        rows = [{'cpu': cpu, 'core': 0, 'node': 0} for cpu in range(9)]
        vendor = {'lscpu': [{'field': 'Vendor ID:', 'data': 'AuthenticAMD'}]}
        for count, also in ((9, ()), (3, (vendor,))):
            self.assertIn('these numbers of cores are not unique',
                          self.refused({'cpus': rows[:count]}, *also,
                                       memory=[1]))
        self.assertIsNone(read.machine(
            [self.path({'cpus': rows[:4]})], memory=[1]).core_threads)

    def test_only_online(self):
        """What lscpu -p prints does not show whether CPUs are offline."""
        text = PARSABLE.replace('3,,,,N\n', '')
        for content, known in ((LIST, True), (PARSABLE, True), (text, False)):
            self.assertEqual(known, read.machine(
                [self.path(content)], memory=[1, 1]).knows_offline)

    def test_core_on_two_nodes(self):
        rows = [{'cpu': cpu, 'core': 0, 'node': cpu} for cpu in (0, 1)]
        self.assertIn('the sibling threads 0, 1 are on several NUMA nodes',
                      self.refused({'cpus': rows}, memory=[1, 1]))


class IronicTest(ReadTestCase):

    def test_data(self):
        """Of introspection, and of the inventory of newer releases."""
        newer = {'inventory': IRONIC['inventory'], 'plugin_data': {
            'numa_topology': IRONIC['numa_topology'], 'valid_macs': []}}
        for content in (IRONIC, newer, {'data': IRONIC}):
            found = read.machine([self.path(content)])
            self.assertEqual({0: [(0, 2)], 1: [(1, 3)]}, self.cores(found))
            self.assertEqual([96962, 98304],
                             [node.memory for node in found.nodes])
            # The kernel does not know where the first is.
            self.assertEqual((values.NIC(name='em1'),
                              values.NIC(name='p2p1', node=0),
                              values.NIC(name='p2p2', node=1)), found.nics)
            self.assertEqual({0: 1, 1: 1}, found.sockets())
        found = read.machine([self.path(newer)])
        self.assertEqual(('intel', {2048}), (found.vendor, found.page_sizes))

    def test_wrong(self):
        self.assertIn('collector numa-topology',
                      self.refused({'inventory': {}}))
        self.assertIn('numa_topology is malformed',
                      self.refused({'numa_topology': 1}))
        for name, entries, told in (
            ('ram', [{'numa_node': 0}], 'an entry without size_kb'),
            ('ram', [{'numa_node': 0, 'size_kb': -1}], 'cannot have -1 MiB'),
            ('cpus', [{'numa_node': 0, 'thread_siblings': [True]}],
             'a core without thread_siblings'),
            ('cpus', [{'numa_node': 0, 'thread_siblings': list(range(65))}],
             'cannot have 65 sibling threads'),
            ('cpus', [{'numa_node': 1024, 'thread_siblings': [0]}],
             'NUMA node 1024 is out of range'),
            ('cpus', [], 'sibling threads of the CPUs are not known'),
        ):
            self.assertIn(told, self.refused({'numa_topology': {
                **IRONIC['numa_topology'], name: entries}}))

    def test_cores_that_ironic_joins(self):
        """Then others must tell the cores; memory and NICs are right."""
        topology = IRONIC['numa_topology']
        for sockets, number in ((4, 0), (2, -1)):
            inventory = {'cpu': {'socket_count': sockets}}
            content = {'inventory': inventory, 'numa_topology': {
                **topology, 'cpus': [dict(each, cpu=number)
                                     for each in topology['cpus']]}}
            self.assertIn(f'for one core; give what "{facts.LSCPU}"',
                          self.refused(content))
            found = read.machine([self.path(content),
                                  self.path(LIST, 'list')])
            self.assertEqual({0: [(0, 2)], 1: [(1,)]}, self.cores(found))
            self.assertEqual(3, len(found.nics))


class LibvirtTest(ReadTestCase):

    def test_capabilities(self):
        found = read.machine([self.path(CAPABILITIES)])
        self.assertEqual(values.Machine(
            nodes=(values.MachineNode(number=0, memory=96962, cores=(
                values.Core(cpus=(0, 2), socket=0),)),
                values.MachineNode(number=8, memory=98304, cores=(
                    values.Core(cpus=(1,), socket=1),))),
            page_sizes=frozenset((2048, 1048576)), vendor='intel',
            offline={3: 0}, core_threads=2), found)

    def test_wrong(self):
        for old, new, told in (
            ('<capabilities>', '<!DOCTYPE a [<!ENTITY b "c">]><capabilities>',
             'has a document type'),
            ('capabilities>', 'domain>', 'not what "virsh capabilities"'),
            ('</capabilities>', '', 'is not XML: '),
            ("<cell id='8'>", "<cell>", 'the id of a cell is '),
            ("<cell id='8'>", "<cell id='1024'>", '1024 is out of range'),
            ("unit='KiB'>100663296", "unit='pt'>100663296", 'no memory'),
            ("unit='KiB'>100663296", "unit='KiB'>much", "'much', not a"),
            ("siblings='1'", "siblings='0-64'", 'cannot have 65'),
            ("siblings='1'", "siblings='x'", 'not a list of CPUs'),
            ("<cpu id='1'", "<cpu id='0'", 'CPU 0 is there twice'),
            ('>Intel<', '>&b;<', 'is not XML: undefined entity'),
        ):
            self.assertIn(old, CAPABILITIES)
            self.assertIn(told, self.refused(
                CAPABILITIES.replace(old, new)), new)


class AnsibleTest(ReadTestCase):

    def test_facts_alone(self):
        self.assertIn('NUMA nodes and sibling threads of the CPUs are not '
                      'known', self.refused(ANSIBLE))

    def test_with_lscpu(self):
        for content in (
            ANSIBLE, f'compute-1 | SUCCESS => {json.dumps(ANSIBLE)}',
            ANSIBLE['ansible_facts'], {'ansible_facts': {
                name.removeprefix('ansible_'): value for name, value
                in ANSIBLE['ansible_facts'].items()}},
            {'compute-1': ANSIBLE},
        ):
            found = read.machine([self.path(LIST, 'list'),
                                  self.path(content)])
            self.assertEqual([128700, 128700],
                             [node.memory for node in found.nodes])
            self.assertTrue(found.even_memory)
            self.assertEqual('amd', found.vendor)
            self.assertEqual((values.NIC(
                name='ens1f0', address='0000:3b:00.0'),), found.nics)

    def test_several_hosts(self):
        text = json.dumps(ANSIBLE, indent=1)
        for content in (
            ''.join(f'compute-{number} | SUCCESS => {text}\n'
                    for number in (1, 2)),
            {'compute-1': ANSIBLE, 'compute-2': ANSIBLE},
        ):
            self.assertIn(
                'has the facts of 2 hosts: compute-1, compute-2; for one of '
                'them: "ansible compute-1 -m setup', self.refused(content))

    def test_wrong(self):
        self.assertIn("ansible_memtotal_mb is 'much', not a number",
                      self.refused({'ansible_memtotal_mb': 'much'}))
        self.assertIn('it cannot have -1 MiB', self.refused(
            LIST, {'ansible_memtotal_mb': -1}))


class FileTest(ReadTestCase):

    def test_unknown(self):
        for content, told in (
            ('', '"lscpu -p": the file is empty'),
            ('cpus: []', '"lscpu -p": not JSON from line 1, column 1 on'),
            ('{"cpus": [', 'is neither'),
            ('[]', 'not from lscpu, Ironic'), ({}, 'not from lscpu'),
            ('#\n', 'is neither JSON'), ('null', 'not from lscpu'),
            ('[' * 100000, 'is neither JSON'),
            ('Architecture:   x86_64\n', 'is what "lscpu" prints'),
            ('CPU NODE SOCKET CORE ONLINE\n  0    0      0    0    yes\n',
             'is what "lscpu -e" prints'),
            ('available: 2 nodes (0-1)\n', '"numactl -H" prints'),
            ('processor\t: 0\n', '"cat /proc/cpuinfo" prints'),
            ('CPU model:           x86_64\n', '"virsh nodeinfo" prints'),
        ):
            text = self.refused(content)
            self.assertIn(told, text)
            self.assertIn(facts.LSCPU, text)
            self.assertIn(f'{self.folder}/f0: ', text)

    def test_unreadable(self):
        self.assertIn('No such file', str(self.assertRaises(
            values.MachineError, read.load, f'{self.folder}/none')))
        self.assertIn('--sys', str(self.assertRaises(
            values.MachineError, read.load, self.folder)))
        path = os.path.join(self.folder, 'raw')
        with open(path, 'wb') as file:
            file.write(b'\xff\xfe')
        self.assertIn('is not valid UTF-8', str(self.assertRaises(
            values.MachineError, read.load, path)))

    def test_files_before_sys(self):
        root = os.path.join(self.folder, 'sys')
        trees.machine(root, {0: (4096, [(0, 1)]), 1: (4096, [(2, 3)])},
                      nics=[('0000:3b:00.0', ['net/ens1f0'], 1)])
        found = read.machine([self.path(ANSIBLE)], root)
        # Ansible knows the NIC, but not where it is.
        self.assertEqual(1, found.nics[0].node)
        self.assertEqual([4096, 4096],
                         [node.memory for node in found.nodes])
        found = read.machine([], root, [1, 2])
        self.assertEqual([1, 2], [node.memory for node in found.nodes])
