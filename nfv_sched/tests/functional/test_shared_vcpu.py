# SPDX-License-Identifier: Apache-2.0

"""Pinned guests with one vCPU on shared CPUs.

Where that vCPU runs is read from the topology that the claim stored and from
the domain that libvirt got.  Every host NUMA node has one shared core.
"""

from nfv_sched.tests.functional import base

POLICY = 'nfv:shared_vcpu'


class SharedVCPUTestCase(base.PCI, base.WholePluginTestCase):

    def shared(self, vcpu=0, vcpus=2, **more):
        specs = {'hw__cpu_policy': 'mixed',
                 'hw__cpu_dedicated_mask': '^%d' % vcpu,
                 'nfv__shared_vcpu': str(vcpu)}
        specs.update(more)
        return self.flavor(vcpus=vcpus, **specs)

    def assertShared(self, server, vcpu, node, nodes=None):
        """Assert where a guest and its shared vCPU are.

        :param node: host NUMA node of the shared vCPU
        """
        self.assertPlaced(server, nodes or [node])
        cpus = self.domain_cpus(server)
        expected = {vcpu: {cpu for cpu in self.shared_cpus(2)
                           if self.node_of(cpu) == node}}
        expected.update((vcpu, {cpu})
                        for vcpu, cpu in self.pins(server).items())
        self.assertEqual(set(cpus), set(expected))
        self.assertNotIn(vcpu, self.pins(server))
        self.assertEqual(expected, cpus)


class RulesTest(SharedVCPUTestCase):

    def test_placement(self):
        self.start_host('host1')

        with self.row('one guest node'):
            flavor = self.shared(0, vcpus=3)
            servers = [self.boot(flavor) for _ in range(2)]
            self.assertEqual([[0], [1]], sorted(map(self.nodes, servers)))
            for server in servers:
                self.assertShared(server, 0, self.nodes(server)[0])
            self.assertEqual(4, self.usages()['host1']['PCPU'])
            self.assertEqual(2, self.usages()['host1']['VCPU'])

        with self.row('mapped to node 1'):
            flavor = self.shared(2, vcpus=3, nfv__numa_node_0='1')
            self.assertShared(self.boot(flavor), 2, 1)

        with self.row('spelled as in carrier grade'):
            flavor = self.flavor(
                hw__cpu_policy='mixed', hw__cpu_dedicated_mask='^1',
                hw__wrs__shared_vcpu='1', vcpus=3)
            self.assertShared(self.boot(flavor), 1, 0)

        with self.row('in the second guest node'):
            # Asymmetric, so that the shared vCPU is not in the first node
            # by the way Nova divides them.
            flavor = self.shared(3, vcpus=5, hw__numa_nodes='2',
                                 hw__numa_cpus_0='0-2', hw__numa_mem_0='128',
                                 hw__numa_cpus_1='3,4', hw__numa_mem_1='128')
            server = self.boot(flavor)
            self.assertShared(server, 3, self.nodes(server)[1],
                              self.nodes(server))

        with self.row('near the switch'):
            flavor = self.shared(0, nfv__vswitch_numa_affinity='strict')
            for _ in range(2):
                self.assertShared(self.boot(flavor), 0, 1)

        with self.row('thread policy prefer'):
            flavor = self.shared(0, hw__cpu_thread_policy='prefer')
            self.assertEqual('ACTIVE', self.boot(flavor)['status'])

        self.assertNothingLeft()

    def test_refusals(self):
        self.start_host('host1')
        mixed = {'hw:cpu_policy': 'mixed', 'hw:numa_nodes': '1'}
        for title, vcpus, specs, words in (
                ('dedicated guest', 2,
                 {'hw:cpu_policy': 'dedicated', POLICY: '0'},
                 ['hw:cpu_policy=mixed', 'hw:cpu_dedicated_mask=^0']),
                ('guest without a CPU policy', 2, {POLICY: '1'},
                 ['hw:cpu_policy=mixed', 'hw:cpu_dedicated_mask=^1']),
                ('shared guest', 2,
                 {'hw:cpu_policy': 'shared', 'hw:numa_nodes': '1',
                  POLICY: '1'},
                 ['hw:cpu_policy=mixed']),
                ('another vCPU is shared', 3,
                 dict(mixed, **{'hw:cpu_dedicated_mask': '^1', POLICY: '0'}),
                 ['hw:cpu_dedicated_mask']),
                ('no such vCPU', 3,
                 dict(mixed, **{'hw:cpu_dedicated_mask': '^1', POLICY: '7'}),
                 ['=7']),
                ('only vCPU of its guest node', 3,
                 dict(mixed, **{
                     'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0',
                     'hw:numa_cpus.1': '1,2', 'hw:numa_mem.0': '128',
                     'hw:numa_mem.1': '128', 'hw:cpu_dedicated_mask': '^0',
                     POLICY: '0'}),
                 []),
                ('isolate', 3,
                 dict(mixed, **{'hw:cpu_dedicated_mask': '^0', POLICY: '0',
                                'hw:cpu_thread_policy': 'isolate'}),
                 ['hw:cpu_thread_policy'])):
            with self.row(title):
                server = self.boot(self.flavor_with(specs, vcpus=vcpus),
                                   expect='ERROR')
                self.assertRefused(server, POLICY, *words)
        with self.row('require'):
            # Placement refuses hosts without hyperthreading; see also
            # HyperthreadedCapTest.
            flavor = self.shared(0, hw__cpu_thread_policy='require', vcpus=3)
            self.assertRefused(self.boot(flavor, expect='ERROR'))
        self.assertNothingLeft()


class OneSharedNodeTest(SharedVCPUTestCase):
    """Only node 1 has shared CPUs."""

    def shared_cpus(self, nodes):
        return {5}

    def test_only_one_node_has_shared_cpus(self):
        self.start_host('host1', switch=[0])

        with self.row('the node with shared CPUs'):
            for _ in range(2):
                self.assertShared(self.boot(self.shared(0)), 0, 1)

        with self.row('mapped to the other: refused'):
            flavor = self.shared(0, nfv__numa_node_0='0')
            self.assertRefused(self.boot(flavor, expect='ERROR'), 'nfv:')

        with self.row('the switch is on the other: refused'):
            flavor = self.shared(0, nfv__vswitch_numa_affinity='strict')
            self.assertRefused(self.boot(flavor, expect='ERROR'), 'nfv:')

        with self.row('the guest nodes change places'):
            # Nothing holds the claim to that, whatever comes in between.
            flavor = self.shared(0, vcpus=4, hw__numa_nodes='2')
            server = self.boot(flavor, expect=('ACTIVE', 'ERROR'))
            if server['status'] == 'ACTIVE':
                self.assertShared(server, 0, 1, [1, 0])
            else:
                self.assertRefused(server, POLICY)
            self.flags(strict_enforcement='predicted', group='nfv_sched')
            self.assertShared(self.boot(flavor), 0, 1, [1, 0])
            self.flags(strict_enforcement='claim', group='nfv_sched')

        with self.row('node 1 full'):
            filler = self.flavor(vcpus=4, nfv__numa_node_0='1')
            self.assertEqual([[1]], self.occupy(filler, 'host1'))
            self.assertRefused(self.boot(self.shared(0), expect='ERROR'))

        self.assertNothingLeft()


class CapTest(base.CappedCPUs, SharedVCPUTestCase):
    """Two shared vCPUs for the one shared core of a node."""

    def test_cap(self):
        self.start_host('host1')
        flavor = self.shared(0)

        with self.row('one by one'):
            servers = [self.boot(flavor) for _ in range(4)]
            self.assertEqual([[0], [0], [1], [1]],
                             sorted(map(self.nodes, servers)))
            before = self.usages()
            self.assertRefused(self.boot(flavor, expect='ERROR'), POLICY)
            self.assertEqual(before, self.usages())

        with self.row('in one request'):
            servers = self.boot_many(flavor, 4)
            self.assertEqual([[0], [0], [1], [1]],
                             sorted(map(self.nodes, servers)))
        with self.row('too many in one request'):
            self.boot_many(flavor, 5, expect='ERROR')
            self.assertEqual({'host1': {}}, self.usages())

        with self.row('shared guests count'):
            plain = self.flavor(vcpus=1, hw__cpu_policy='shared',
                                nfv__numa_node_0='1')
            self.assertEqual([[1], [1]],
                             self.occupy(plain, 'host1', times=2))
            for _ in range(2):
                self.assertShared(self.boot(flavor), 0, 0)
            self.assertRefused(self.boot(flavor, expect='ERROR'), POLICY)
            # The cap is for guests with a shared vCPU only.
            self.assertEqual([[1]], self.occupy(plain, 'host1'))

        with self.row('two shared vCPUs in one guest'):
            # Nova lets no guest overcommit a CPU against itself.
            flavor2 = self.shared(0, vcpus=4,
                                  hw__cpu_dedicated_mask='^0-1')
            self.assertRefused(self.boot(flavor2, expect='ERROR'))

        with self.row('an aggregate sets its own'):
            aggregate = self.admin_api.post_aggregate(
                {'aggregate': {'name': 'roomy'}})
            self.admin_api.add_host_to_aggregate(aggregate['id'], 'host1')
            self.admin_api.post_aggregate_action(
                aggregate['id'], {'set_metadata': {
                    'metadata': {'shared_vcpus_per_core': '3'}}})
            mapped = self.shared(0, nfv__numa_node_0='1')
            for _ in range(3):
                self.assertShared(self.boot(mapped), 0, 1)
            self.assertRefused(self.boot(mapped, expect='ERROR'))
            self.admin_api.post_aggregate_action(
                aggregate['id'], {'set_metadata': {
                    'metadata': {'shared_vcpus_per_core': None}}})

        with self.row('no limit'):
            self.flags(shared_vcpus_per_core=0, group='nfv_sched')
            mapped = self.shared(0, nfv__numa_node_0='1')
            for _ in range(4):
                self.assertShared(self.boot(mapped), 0, 1)

        self.assertNothingLeft()


class HyperthreadedCapTest(base.CappedCPUs, SharedVCPUTestCase):
    """The two threads of a shared core are one core."""

    node_cores = 3
    node_threads = 2

    def test_cap(self):
        self.start_host('host1')
        mapped = self.shared(0, nfv__numa_node_0='1')
        for _ in range(2):
            self.assertShared(self.boot(mapped), 0, 1)
        self.assertRefused(self.boot(mapped, expect='ERROR'))
        self.assertShared(self.boot(self.shared(0)), 0, 0)
        flavor = self.shared(0, hw__cpu_thread_policy='require', vcpus=3)
        self.assertRefused(self.boot(flavor, expect='ERROR'), POLICY,
                           'hw:cpu_thread_policy')
