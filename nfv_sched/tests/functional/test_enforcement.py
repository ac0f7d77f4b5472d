# SPDX-License-Identifier: Apache-2.0

"""What the claim on the compute node is held to."""

from nova.scheduler import filters

from nfv_sched.tests.functional import base


class DropFirstCandidate(filters.BaseHostFilter):
    """An operator's own filter that rules an allocation candidate out."""

    def host_passes(self, host_state, spec_obj):
        if len(host_state.allocation_candidates) > 1:
            del host_state.allocation_candidates[0]
        return True


class LimitsTest(base.PCI, base.WholePluginTestCase):
    """The labels that reach the claim, and where the guest ends."""

    def setUp(self):
        super().setUp()
        self.record_selections()

    def test_two_nodes(self):
        self.start_host('host1', devices={'nics': [1, 1], 'vfs': [0] * 4})

        with self.row('strict'):
            server = self.boot(self.flavor(
                nfv__vswitch_numa_affinity='strict'))
            self.assertPlaced(server, [1])
            self.assertEqual({'nfv_vswitch'}, self.labels())

        with self.row('mapped'):
            server = self.boot(self.flavor(nfv__numa_node_0='1'))
            self.assertPlaced(server, [1])
            self.assertEqual({'nfv_node1'}, self.labels())

        with self.row('strict and mapped'):
            server = self.boot(self.flavor(
                nfv__vswitch_numa_affinity='strict', nfv__numa_node_0='1'))
            self.assertPlaced(server, [1])
            self.assertEqual({'nfv_vswitch', 'nfv_node1'}, self.labels())

        with self.row('Nova prefers a local device: its own limits'):
            self.boot(self.pci_flavor('nic-preferred:1'))
            self.assertEqual(set(), self.labels())

        with self.row('our preference'):
            server = self.boot(self.pci_flavor(
                'nic-preferred:1', nfv__pci_numa_affinity='prefer'))
            self.assertPlaced(server, [1], devices=[1])
            self.assertEqual({'nfv_node1'}, self.labels())

        with self.row('isolate, two guest nodes on as many host nodes'):
            server = self.boot(self.flavor(
                vcpus=4, hw__numa_nodes='2', hw__cpu_thread_policy='isolate',
                nfv__numa_node_0='0', nfv__numa_node_1='1'))
            self.assertPlaced(server, [0, 1])

    def test_isolate_on_four_nodes(self):
        self.start_host('host1', nodes=4, switch=[0, 2])
        isolate = {'vcpus': 4, 'hw__numa_nodes': '2',
                   'hw__cpu_thread_policy': 'isolate'}

        with self.row('strict: refused'):
            self.assertRefused(
                self.boot(self.flavor(
                    nfv__vswitch_numa_affinity='strict', **isolate),
                    expect='ERROR'),
                'nfv:vswitch_numa_affinity=strict',
                'a claim that pins no CPUs of other NUMA nodes')

        with self.row('prefer: no labels of several nodes'):
            server = self.boot(self.flavor(
                nfv__vswitch_numa_affinity='prefer', **isolate))
            self.assertEqual(2, len(set(self.nodes(server))))
            self.assertLess(len(self.labels()), 2)

        with self.row('one guest node'):
            server = self.boot(self.flavor(
                hw__cpu_thread_policy='isolate',
                nfv__vswitch_numa_affinity='strict'))
            self.assertIn(self.nodes(server), ([0], [2]))


class ClaimedCandidateTest(base.PCI, base.WholePluginTestCase):
    """The limits are for the allocation candidate that was claimed."""

    in_placement = True
    extra_filters = base.WholePluginTestCase.extra_filters + [
        'DropFirstCandidate']
    available_filters = base.WholePluginTestCase.available_filters + [
        f'{__name__}.DropFirstCandidate']

    def test_candidate_dropped_after_ours(self):
        self.start_host('host1', devices={'nics': [0, 1]})
        flavor = self.pci_flavor('nic-preferred:1',
                                 nfv__pci_numa_affinity='prefer')
        server = self.boot(flavor)
        self.assertPlaced(server, self.nodes(server),
                          devices=self.nodes(server))
        self.assertNothingLeft()


class UnshelveTest(base.PCI, base.WholePluginTestCase):
    """Unshelving follows the PCI policy of the request, not of the alias."""

    def test_device_without_numa_information(self):
        self.start_host('host1', devices={'nics': [1]})
        self.start_host('host2', devices={'nics': [1, None]})
        flavor = self.strict_pci('nic-required:1',
                                 hw__pci_numa_affinity_policy='legacy')
        server = self.boot(flavor, host='host1')
        self.assertPlaced(server, [1], 'host1', [1])
        self._shelve_server(server)
        other = self.boot(flavor, host='host1')
        self.assertPlaced(other, [1], 'host1', [1])
        self.api.post_server_action(server['id'], {'unshelve': None})
        self.assertEqual('SHELVED_OFFLOADED', self.show(server)['status'])
        self.delete_all([other['id']])
        self._unshelve_server(server)
        self.assertPlaced(server, [1], 'host1', [1])


class SharedCPUsOnOneNodeTest(base.WholePluginTestCase):
    """A guest with several nodes needs shared CPUs for one of them only."""

    def shared_cpus(self, nodes):
        return {(nodes - 1) * self.node_cpus}

    def test_shared_vcpu(self):
        self.start_host('host1')
        server = self.boot(self.flavor(
            vcpus=4, hw__numa_nodes='2', hw__cpu_policy='mixed',
            hw__cpu_dedicated_mask='^0', nfv__shared_vcpu='0'))
        self.assertPlaced(server, [1, 0])
        self.assertEqual({self.node_cpus}, self.domain_cpus(server)[0])
