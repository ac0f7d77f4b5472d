# SPDX-License-Identifier: Apache-2.0
"""The commands about hosts: which, in what order, and what is said."""

import dataclasses
import json
import os
import re

from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.commands import base


def made_cloud(**fields):
    """Hosts a, b and c: pinned and floating guests, and none."""
    return snapshots.cloud([
        snapshots.host('a', [
            snapshots.node(0, 4, 1, pinned=frozenset([1, 2]),
                           physnets=frozenset(['nfv_vswitch', 'physnet0'])),
            snapshots.node(1, 4, 1, pinned=frozenset([5]), pages=())],
            aggregates=('dpdk',), cpu_ratio=2.0,
            network=snapshot.HostNetwork(vswitch_ports=6, dhcp_servers=1)),
        snapshots.host('b', [snapshots.node(cores=4, threads=1)],
                       zone='edge', enabled=False, disabled_reason='repair'),
        snapshot.Host(name='c', hypervisor='c', uuid='c' * 32, vcpus=4,
                      vcpus_used=1, cpu_ratio=4.0, up=False)], [
        snapshots.server('router', {0: [1]}, 'a'),
        snapshots.server('db', {0: [2], 1: [5]}, 'a'),
        snapshots.server('web', host='a'),
        snapshots.server('mail', host='c')], **fields)


class _CommandTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.file = self.save_cloud(made_cloud())

    def host(self, *args):
        return self.run_command('host', *args, '--from', self.file)


class ListTest(_CommandTest):

    def rows(self, *args):
        return self.csv_rows(self.shown(
            'host', 'list', '-f', 'csv', *args, '--from', self.file))

    def test_more_used_than_there_is(self):
        """Pages are gone after a reboot, CPUs out of the set: it is shown."""
        cloud = made_cloud()
        host, *rest = cloud.hosts
        node = dataclasses.replace(
            host.nodes[0], pinned=frozenset(range(10)), pages=(
                snapshot.Pages(size=1048576, total=7, used=8, reserved=1),
                snapshot.Pages(size=2048, total=0, used=3)))
        file.save(dataclasses.replace(cloud, hosts=(dataclasses.replace(
            host, nodes=(node, *host.nodes[1:])), *rest)), self.file)
        for command in (('list', '-f', 'csv', '--host', 'a'), ('show', 'a'),
                        ('map', '--host', 'a')):
            out = self.host(*command)[1]
            for used, total in ((8, 6), (3, 0), (10, 3)):
                self.assertRegex(out, f'{used}(/| of |,){total}')
        self.assertEqual([(8, 6, 0), (3, 0, 0)], [
            (each['used'], each['total'], each['free']) for each in json.loads(
                self.host('list', '-f', 'json')[1])['numa_nodes'][0]['pages']])
        for form in ('svg', 'html'):
            self.assertEqual(0, self.host('map', '--format', form)[0])

    def test_full(self):
        for percent in ('200', '-3', 'nan', 'x'):
            self.refused(f'{percent!r} is not a percentage from 0 to 100',
                         'host', 'list', f'--full={percent}')

    def test_chosen(self):
        for args, hosts in (
                (['--host', 'a'], 'a'), (['--host', '[bc]'], 'bc'),
                (['--az', 'edge'], 'b'), (['--aggregate', 'd*'], 'a'),
                (['--host', 'b', '--host', 'c'], 'bc'),
                (['--az', 'nova', '--host', 'a'], 'a')):
            self.assertEqual(set(hosts), {
                row['Host'] for row in self.rows(*args)}, args)

    def test_worst_is_the_order_of_the_map(self):
        file.save(snapshots.cloud([snapshots.host(name, [
            snapshots.node(number, 8, 1, pinned=frozenset(range(
                number * 8 + 1, number * 8 + 1 + count)))
            for number, count in enumerate(counts)]) for name, counts in (
                ('full', (7, 7)), ('empty', (0, 0)), ('left', (7, 6)),
                ('b', (5, 5)), ('a', (5, 5)), ('halves', (4, 4)))]),
            self.file)
        order = ['halves', 'a', 'b', 'left', 'empty', 'full']
        self.assertEqual(order, list(dict.fromkeys(
            row['Host'] for row in self.rows('--sort', 'worst'))))
        self.assertEqual(order, re.findall(
            '<section[^>]* id="host-([a-z]+)"',
            self.host('map', '--format', 'html')[1]))
        self.assertEqual(sorted(order), list(dict.fromkeys(
            row['Host'] for row in self.rows('--sort', 'name'))))

    def test_not_all_was_read(self):
        file.save(made_cloud(missing=snapshots.missing(
            'Cell 2 does not answer')), self.file)
        code, out, err = self.host('list')
        self.assertEqual((1, 'error: Cell 2 does not answer\n'), (code, err))
        self.assertIn('router', out)


class ShowTest(_CommandTest):

    def test_ambiguous(self):
        file.save(snapshots.cloud([
            snapshots.host('a', uuid=name * 32, hypervisor=name)
            for name in 'ef']), self.file)
        self.assertEqual(
            (2, "error: several compute nodes of host 'a': a (e), a (f)\n"),
            self.host('show', 'a')[::2])
        self.assertEqual(0, self.host('show', 'a (f)')[0])
        self.assertEqual(0, self.host('show', 'e' * 32)[0])


class FactsTest(_CommandTest):
    """CPUs of a host that are not Nova's, by --facts."""

    def setUp(self):
        super().setUp()
        # Of host a Nova has two of its CPUs.
        file.save(snapshots.cloud([snapshots.host('a', [snapshots.node(
            0, 4, 1, 1, shared=0, dedicated=frozenset([1, 2]))]),
            snapshots.host('b', [snapshots.node(0, 4, 1, 1)])]), self.file)

    def write(self, *cpus):
        os.makedirs(self.in_folder('facts'))
        self.write_file('facts/a.json', {'cpus': [
            {'cpu': cpu, 'node': 0, 'socket': 0, 'core': cpu % 4,
             'online': True} for cpu in cpus]})

    def seen(self, *args):
        return self.host(*args, '--facts', self.in_folder('facts'))

    def test_map(self):
        self.write(*range(8))
        self.assertIn('    nn .n .n nn\n', self.seen('map')[1])

    def test_show(self):
        self.write(*range(4))
        code, out, err = self.seen('show', 'a')
        self.assertEqual((0, ''), (code, err))
        for text in ("CPU 0  not Nova's", 'CPU 1  free',
                     'pCPUs: 0 of 2 used; largest fit 2'):
            self.assertIn(text, out)
        found = json.loads(self.seen('show', 'a', '-f', 'json')[1])
        self.assertEqual([
            {'cpus': [{'cpu': 0, 'state': "not Nova's", 'users': []}]},
            {'cpus': [{'cpu': 1, 'state': 'free', 'users': []}]}],
            found['numa_nodes'][0]['cores'][:2])
        self.assertEqual(2, found['cpus_not_for_servers'])


class MapTest(_CommandTest):

    def test_order(self):
        cloud = file.load(self.file)
        file.save(dataclasses.replace(cloud, hosts=cloud.hosts[::-1]),
                  self.file)
        names = sorted(host.name for host in cloud.hosts)
        out = self.host('map')[1]
        self.assertEqual(names, re.findall('(?m)^([a-z]+): ', out))
        out = self.host('map', '--format', 'svg')[1]
        self.assertEqual(names, re.findall(
            '<text class="host"[^>]*>([a-z]+)<', out))

    def test_no_such_folder(self):
        code, out, err = self.host('map', '-o', f'{self.file}/x')
        self.assertEqual(1, code)
        self.assertIn('Not a directory', err)
