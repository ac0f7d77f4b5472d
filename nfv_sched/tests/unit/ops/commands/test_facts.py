# SPDX-License-Identifier: Apache-2.0
"""Facts about machines are found by the names of hosts, and checked."""

import json
import os

from nfv_sched.ops.cli import errors
from nfv_sched.ops.commands import hosts as hosts_command
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.commands import base


def lscpu(cores=2, threads=2, **fields):
    """Return what ``lscpu -J -e`` prints on a host with one NUMA node."""
    return json.dumps({'cpus': [
        {'cpu': cpu, 'node': 0, 'socket': 0, 'core': cpu % cores,
         'online': True, **fields} for cpu in range(cores * threads)]})


class FactsTest(base.CommandTestCase):

    # CPUs 0 and 2, 1 and 3 are siblings; 0 is not Nova's.
    NODE = snapshots.node(0, 2, 2, 1, shared=0,
                          dedicated=frozenset([1, 2, 3]))

    def setUp(self):
        super().setUp()
        self.warnings = []

    def write(self, **files):
        for name, text in files.items():
            self.write_file(name.replace('_json', '.json'), text)

    def machines(self, *hosts):
        hosts = hosts or (snapshots.host('a', [self.NODE]),
                          snapshots.host('b', [self.NODE]))
        found = hosts_command.machines(
            hosts_command.fact_files(self.folder), snapshots.cloud(hosts),
            hosts, self.warnings.append)
        return {host.hypervisor: sorted(found[host.uuid].cpus)
                for host in hosts if host.uuid in found}

    def error(self, *hosts):
        return str(self.assertRaises(
            errors.CloudUnreadError, self.machines, *hosts))

    def test_names(self):
        self.write(a_json=lscpu(), b=lscpu(), c='of no host')
        self.assertEqual({'a': [0, 1, 2, 3], 'b': [0, 1, 2, 3]},
                         self.machines())
        os.remove(self.in_folder('b'))
        self.assertEqual(['a'], list(self.machines()))
        self.assertEqual([], self.warnings)

    def test_formats(self):
        """Those of host profile; memory need not be known."""
        self.write(a='# CPU,Node,Socket,Core,Online\n0,0,0,0,Y\n1,0,0,1,Y\n'
                     '2,0,0,0,Y\n3,0,0,1,Y\n', b_json=json.dumps({
                         'numa_topology': {
                             'ram': [{'numa_node': 0, 'size_kb': 1024}],
                             'cpus': [{'cpu': core, 'numa_node': 0,
                                       'thread_siblings': [core, core + 2]}
                                      for core in range(2)], 'nics': []},
                         'inventory': {}}))
        self.assertEqual(['a', 'b'], list(self.machines()))

    def test_without(self):
        self.assertIsNone(hosts_command.fact_files(None))
        self.assertEqual({}, hosts_command.machines(
            None, snapshots.cloud(), [], self.warnings.append))
        self.assertEqual([], self.warnings)

    def test_compute_nodes(self):
        """Several of a service are told apart by their own names."""
        self.write(x=lscpu(), a=lscpu())
        self.assertEqual(['x'], list(self.machines(*(
            snapshots.host('a', [self.NODE], uuid=name, hypervisor=name)
            for name in 'xy'))))

    def test_one_of_several_compute_nodes(self):
        """If only one is to be shown it has its own name all the same."""
        self.write(a=lscpu())
        hosts = [snapshots.host('a', [self.NODE], uuid=name, hypervisor=name)
                 for name in 'xy']
        self.assertEqual({}, hosts_command.machines(
            hosts_command.fact_files(self.folder), snapshots.cloud(hosts),
            hosts[:1], self.warnings.append))
        self.assertEqual(1, len(self.warnings))

    def test_name_of_the_service(self):
        """Unless there are several it counts, not that of the node."""
        self.write(a=lscpu(), x='of no host')
        self.assertEqual(['x'], list(self.machines(
            snapshots.host('a', [self.NODE], hypervisor='x'))))

    def test_names_of_hosts_lead_nowhere_else(self):
        os.mkdir(self.in_folder('in'))
        self.write(a=lscpu())
        host = snapshots.host('../a', [self.NODE])
        self.assertEqual({}, hosts_command.machines(
            hosts_command.fact_files(self.in_folder('in')),
            snapshots.cloud([host]), [host], self.warnings.append))

    def test_contradictions(self):
        self.write(a_json=lscpu(cores=1), b=lscpu(node=1))
        self.assertEqual({}, self.machines())
        self.assertEqual([
            f'a is shown without {self.in_folder("a.json")}, which '
            'contradicts Nova: CPU 2-3 of node 0 missing; CPU 0-3 of node 0 '
            'with other siblings',
            f'b is shown without {self.in_folder("b")}, which contradicts '
            'Nova: CPU 1-3 on node 1 instead of 0'], self.warnings)

    def test_no_host(self):
        """A folder for which there is no host is not what was meant."""
        self.write(c=lscpu())
        self.assertEqual({}, self.machines())
        self.assertEqual(
            ['no file of --facts is named after a host that is shown'],
            self.warnings)
        os.remove(self.in_folder('c'))
        self.assertEqual({}, self.machines())
        self.assertEqual(2, len(self.warnings))

    def test_no_folder(self):
        self.write(a=lscpu())
        folder = self.folder
        for name, error in (('x', 'No such file or directory'),
                            ('a', 'Not a directory')):
            self.folder = os.path.join(folder, name)
            self.assertEqual(f'{self.folder}: {error}', self.error())

    def test_a_folder(self):
        os.mkdir(self.in_folder('a'))
        self.assertEqual(
            f'{self.in_folder("a")}: is a directory, not a file; --sys is for '
            'a copy of /sys', self.error())

    def test_a_pipe(self):
        """Nobody may ever write to it."""
        os.mkfifo(self.in_folder('a'))
        self.assertIn(self.in_folder('a'), self.error())

    def test_two_files(self):
        self.write(a=lscpu(), a_json=lscpu())
        path = self.in_folder('a')
        self.assertEqual(f'{path}.json and {path} are both of host a',
                         self.error())

    def test_not_sound(self):
        for text, error in (
                ('', 'is neither JSON nor'), ('{}', 'not from lscpu'),
                ('{"cpus": []}', 'there is no CPU'),
                ('{"lscpu": []}', 'known; give what "lscpu -J -e=CPU,NODE,'),
                (lscpu(cpu=1), 'CPU 1 is there twice')):
            self.write(a=text)
            found = self.error()
            self.assertEqual(self.in_folder('a'), found.partition(': ')[0])
            self.assertIn(error, found)
