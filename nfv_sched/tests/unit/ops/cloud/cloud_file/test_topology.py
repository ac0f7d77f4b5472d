# SPDX-License-Identifier: Apache-2.0

"""Hosts come out with the CPUs, siblings and pages that are asked for."""

from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.simulator import restore_hosts
from nfv_sched.tests.unit.ops.simulator import base

_REST = """\
flavors: {f: {vcpus: 1, memory: 1 GiB}}
steps: []
"""


class TopologyTestCase(base.SimulatorTestCase):

    def scenario(self, host: str):
        return loader.loads('hosts: [{name: h, ' + host + '}]\n' + _REST)

    def host(self, host: str):
        return self.scenario(host).cloud.hosts[0]

    def test_adjacent_siblings(self):
        host = self.host('cores: 4, threads: 2, memory: 8 GiB, '
                         'siblings: adjacent, switch_nodes: []')
        first, second = host.nodes
        self.assertEqual(frozenset(range(2, 8)), first.dedicated)
        self.assertEqual(frozenset(range(8, 16)), second.dedicated)
        self.assertIn(frozenset((8, 9)), second.siblings)

    def test_odd_shapes(self):
        for nodes in (1, 3, 4, 8, 16):
            for threads in (1, 2, 4):
                with self.subTest(nodes=nodes, threads=threads):
                    host = self.host(
                        f'numa_nodes: {nodes}, cores: 4, threads: {threads},'
                        ' memory: 4 GiB, nodes_per_socket: 2')
                    self.assertEqual(nodes, len(host.nodes))
                    every = [cpu for node in host.nodes
                             for cpu in node.shared | node.dedicated]
                    # But for the cores of the host itself, and the switch.
                    self.assertEqual(nodes * 4 * threads - 3 * threads,
                                     len(set(every)))
                    self.assertEqual(len(set(every)), len(every))
                    self.assertEqual((nodes - 1) // 2, host.nodes[-1].socket)
                    topology = restore_hosts.topology(host.nodes)
                    self.assertEqual(threads > 1, topology.has_threads)

    def test_nodes_that_differ(self):
        host = self.host('cores: [4, 6], memory: [8 GiB, 2048], '
                         'pages: [{1G: 2}, {2M: 256}]')
        first, second = host.nodes
        self.assertEqual(1, len(first.dedicated))
        self.assertEqual(6, len(second.dedicated))
        self.assertEqual((8192, 2048), (first.memory, second.memory))
        self.assertEqual([(4, 1572864), (1048576, 2)],
                         [(p.size, p.total) for p in first.pages])
        self.assertEqual([(4, 393216), (2048, 256)],
                         [(p.size, p.total) for p in second.pages])

    def test_explicit_sets(self):
        host = self.host("cores: 4, memory: 4 GiB, "
                         "dedicated_cpus: '1-3,^2,5-7', shared_cpus: 4")
        first, second = host.nodes
        self.assertEqual(frozenset((1, 3)), first.dedicated)
        self.assertEqual(frozenset((5, 6, 7)), second.dedicated)
        self.assertEqual(frozenset((4,)), second.shared)

    def test_legacy_pinning(self):
        host = self.host('cores: 4, memory: 4 GiB, legacy_pinning: true, '
                         'shared_cores_per_node: 1')
        for node in host.nodes:
            self.assertEqual(node.shared, node.dedicated)
        provider, = host.providers
        self.assertNotIn('PCPU', provider.inventories)
        self.assertEqual(5, provider.inventories['VCPU'].total)

    def test_labels(self):
        host = self.host('cores: 4, memory: 4 GiB, switch_nodes: [1], '
                         'physical_networks: {p: [0]}, tunnel_nodes: [1]')
        first, second = host.nodes
        self.assertEqual(frozenset(('nfv_node0', 'p')), first.physnets)
        self.assertEqual(frozenset(('nfv_node1', 'nfv_vswitch')),
                         second.physnets)
        self.assertEqual((False, True), (first.tunneled, second.tunneled))

    def test_no_node_labels(self):
        host = self.host('cores: 4, memory: 4 GiB, node_labels: false')
        self.assertEqual(frozenset(('nfv_vswitch',)), host.nodes[0].physnets)
        self.assertEqual(frozenset(), host.nodes[1].physnets)

    def test_numbered_names(self):
        scenario = self.scenario("cores: 4, memory: 4 GiB, count: 3")
        self.assertEqual(['h-1', 'h-2', 'h-3'],
                         [host.name for host in scenario.cloud.hosts])
        self.assertEqual({'h'}, set(scenario.alike.values()))
        scenario = loader.loads(
            "hosts: [{name: 'c{n:03}x', count: 2, cores: 4, memory: 9000}]\n" +
            _REST)
        self.assertEqual(['c001x', 'c002x'],
                         [host.name for host in scenario.cloud.hosts])
