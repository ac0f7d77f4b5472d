# SPDX-License-Identifier: Apache-2.0

"""CPU thread policies on hosts with and without hyperthreading.

The rows are those of the guides, on the CPUs that claims have pinned.
"""

from nfv_sched.tests.functional import base

THREADS = 'hw:cpu_thread_policy'


class ThreadPolicyTestCase(base.WholePluginTestCase):

    def threads(self, policy, vcpus, **more):
        return self.flavor(vcpus=vcpus, hw__cpu_thread_policy=policy, **more)

    def cores(self, server):
        return sorted(cpu // self.node_threads
                      for cpu in self.pins(server).values())

    def taken(self, host='host1'):
        return set().union(*(
            cell.pinned_cpus for cell in self.topology(host).cells))


class NoHyperthreadingTest(ThreadPolicyTestCase):
    """Four dedicated cores and a shared one on each of two nodes."""

    def test_policies(self):
        self.start_host('host1')

        for vcpus in (2, 3):
            with self.row('require, %d vCPUs: refused' % vcpus):
                # Nova asks Placement for a host with hyperthreading, and
                # for one without if it has enough shared CPUs.
                server = self.boot(self.threads('require', vcpus),
                                   expect='ERROR')
                self.assertRefused(
                    server, *[THREADS + '=require'] * (vcpus == 2))

        with self.row('isolate, 3 vCPUs'):
            server = self.boot(self.threads('isolate', 3))
            self.assertPlaced(server, self.nodes(server))
            self.assertEqual(3, len(set(self.cores(server))))
            self.assertEqual(set(self.pins(server).values()), self.taken())

        with self.row('prefer, 2 vCPUs'):
            server = self.boot(self.threads('prefer', 2))
            self.assertEqual(2, len(set(self.cores(server))))

        with self.row('isolate, as many as cores'):
            flavor = self.threads('isolate', 4)
            servers = [self.boot(flavor) for _ in range(2)]
            self.assertEqual([[0], [1]], sorted(map(self.nodes, servers)))
            self.assertRefused(self.boot(flavor, expect='ERROR'))

        with self.row('isolate, near the switch'):
            flavor = self.threads('isolate', 2,
                                  nfv__vswitch_numa_affinity='strict')
            self.assertPlaced(self.boot(flavor), [1])

        self.assertNothingLeft()


class HyperthreadingTest(ThreadPolicyTestCase):
    """Two dedicated cores and a shared one on each of two nodes."""

    node_cores = 3
    node_threads = 2

    def test_policies(self):
        self.start_host('host1')

        for vcpus in (3, 4):
            with self.row('require, %d vCPUs' % vcpus):
                server = self.boot(self.threads('require', vcpus))
                # Pairs of siblings, and half of one if need be.
                cores = self.cores(server)
                self.assertEqual(vcpus, len(cores))
                self.assertEqual(2, len(set(cores)))

        with self.row('prefer, 2 vCPUs: siblings'):
            server = self.boot(self.threads('prefer', 2))
            self.assertEqual(1, len(set(self.cores(server))))

        with self.row('no policy, 2 vCPUs: siblings'):
            server = self.boot(self.flavor(vcpus=2))
            self.assertEqual(1, len(set(self.cores(server))))

        with self.row('require, near the switch'):
            flavor = self.threads('require', 4,
                                  nfv__vswitch_numa_affinity='strict')
            self.assertPlaced(self.boot(flavor), [1])
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               'nfv:vswitch_numa_affinity=strict')

        with self.row('require, only single threads are left'):
            self.occupy(self.flavor(vcpus=3), 'host1', times=2)
            self.assertRefused(
                self.boot(self.threads('require', 2), expect='ERROR'))

        for vcpus in (1, 2):
            with self.row('isolate, %d vCPUs: refused' % vcpus):
                server = self.boot(self.threads('isolate', vcpus),
                                   expect='ERROR')
                self.assertRefused(server, THREADS + '=isolate')

        self.assertNothingLeft()


class IsolationTest(ThreadPolicyTestCase):
    """Hyperthreading, and CPUs for shared and pinned guests alike.

    Five cores of node 0 and nine of node 1: one and two guests with four
    isolated vCPUs.
    """

    node_cores = 9
    node_threads = 2

    def declare_cpus(self, shared, dedicated):
        self.flags(vcpu_pin_set='8-35')

    def test_isolation(self):
        self.start_host('host1')
        isolate = self.threads('isolate', 4)

        with self.row('one by one'):
            servers = [self.boot(isolate) for _ in range(3)]
            self.assertEqual([[0], [1], [1]],
                             sorted(map(self.nodes, servers)))
            cores = sum(map(self.cores, servers), [])
            self.assertEqual(12, len(set(cores)))
            before = self.usages()
            self.assertRefused(self.boot(isolate, expect='ERROR'))
            self.assertEqual(before, self.usages())

            # A core is left on each node, and the siblings are taken.
            self.assertEqual(
                {2 * core + thread for core in cores for thread in (0, 1)},
                self.taken())
            self.assertRefused(
                self.boot(self.threads('prefer', 3), expect='ERROR'))
            for _ in range(2):
                server = self.boot(self.threads('require', 2))
                self.assertFalse(set(self.cores(server)) & set(cores))
            self.assertRefused(
                self.boot(self.threads('prefer', 1), expect='ERROR'))

        with self.row('in one request'):
            servers = self.boot_many(isolate, 3)
            self.assertEqual(
                12, len(set(sum(map(self.cores, servers), []))))
        with self.row('too many in one request'):
            self.boot_many(isolate, 4, expect='ERROR')
            self.assertEqual({'host1': {}}, self.usages())

        with self.row('near the switch'):
            flavor = self.threads('isolate', 4,
                                  nfv__vswitch_numa_affinity='strict')
            for _ in range(2):
                self.assertPlaced(self.boot(flavor), [1])
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               'nfv:vswitch_numa_affinity=strict')
            self.assertPlaced(self.boot(isolate), [0])

        self.assertNothingLeft()
