# SPDX-License-Identifier: Apache-2.0
"""The NUMA node within the host, with numa_fragmentation_within_host."""

from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class WithinHostTestCase(base.FilterTestCase):

    def setUp(self):
        super().setUp()
        self.flags('filter_scheduler', enabled_filters=(
            'NFVTopologyFilter', 'VSwitchNUMAAffinityFilter',
            'PCINUMAAffinityFilter'))
        self.flags(numa_fragmentation_within_host=True)

    def physnets(self, host):
        limits = host.limits['numa_topology']
        if 'network_metadata' not in limits or not limits.network_metadata:
            return set()
        return set(limits.network_metadata.physnets)

    def check(self, spec, node, labels, guest=None, filters=(), **host):
        """Where the claim puts a guest, and with which labels."""
        found = clouds.host(**host)
        self.assertEqual(['host1'], self.passing(
            [found], spec, [self.topology, *filters]))
        self.assertEqual(set(labels), self.physnets(found))
        self.assertEqual(node, sorted(self.node_of(found, guest)))


class TestChoice(WithinHostTestCase):

    def test_no_labels_where_nova_does_as_well(self):
        self.check(clouds.spec(), [0], [], free={})
        self.check(clouds.spec(), [0], [], free={1: 1})
        self.check(clouds.spec(), [1], [], free={0: 1})
        self.flags('compute',
                   packing_host_numa_cells_allocation_strategy=True)
        self.check(clouds.spec(), [1], [], free={1: 2})

    def test_host_without_labels(self):
        """Nova's order counts, and the host is accepted."""
        self.check(clouds.spec(), [0], [], free={1: 2}, node_labels=False)

    def test_only_with_its_filter(self):
        self.flags('filter_scheduler', enabled_filters=(
            'VSwitchNUMAAffinityFilter',))
        found = clouds.host(free={1: 2})
        self.passing([found], clouds.spec('prefer'), [self.vswitch])
        self.assertEqual({'nfv_vswitch'}, self.physnets(found))

    def test_several_guest_nodes(self):
        guest = clouds.guest(cells=2)
        self.check(clouds.spec(cells=2), [1, 3],
                   ['nfv_node1', 'nfv_node3'], guest=guest, nodes=4,
                   free={1: 2, 3: 3})
        self.check(clouds.spec(cells=2), [0, 1], [], guest=guest,
                   free={1: 2})

    def test_networks(self):
        """The labels come on top of what the networks ask for."""
        near = {'foo': (0, 1)}
        self.check(clouds.spec(network=clouds.network('foo')), [1],
                   ['foo', 'nfv_node1'], nodes=3, physnets=near,
                   free={1: 3, 2: 2})

    def test_devices(self):
        """Where they are, and away from them."""
        devices = [clouds.pci_request()]
        self.check(clouds.spec(devices=devices), [0], [], devices={0: 1},
                   free={1: 2})
        self.check(clouds.spec(), [2], ['nfv_node2'], nodes=3,
                   devices={0: 1}, free={2: 2})


class TestPolicies(WithinHostTestCase):
    """What the request asks for comes first."""

    def test_strict(self):
        self.check(clouds.spec('strict'), [1], ['nfv_vswitch'],
                   free={0: 2}, filters=[self.vswitch])
        self.check(clouds.spec('strict'), [2], ['nfv_vswitch', 'nfv_node2'],
                   nodes=3, switch=(1, 2), free={0: 2, 2: 3},
                   filters=[self.vswitch])
        self.check(clouds.spec(nodes={0: 0}), [0], ['nfv_node0'],
                   free={1: 2})

    def test_preferred(self):
        self.check(clouds.spec('prefer'), [1], ['nfv_vswitch'],
                   free={0: 2}, filters=[self.vswitch])

    def test_device_that_nova_prefers(self):
        """No guest loses its device for room; no key of ours is there."""
        spec = clouds.spec(devices=[clouds.pci_request(policy='preferred')])
        self.check(spec, [0], [], devices={0: 1}, free={1: 2})
        # Without any device near, there is nothing to lose.
        spec = clouds.spec(devices=[clouds.pci_request(policy='preferred')])
        self.check(spec, [2], ['nfv_node2'], nodes=3, devices={0: 1},
                   free={0: 1, 2: 2})


class TestMultiCreate(WithinHostTestCase):
    """The servers of one request share the limits of a host."""

    def boot(self, host, spec, times):
        for index in range(times):
            spec.instance_uuid = '0000000%d-0000-4000-8000-000000000000' % (
                index)
            self.assertEqual(['host1'], self.passing(
                [host], spec, [self.topology], index))
            host.consume_from_request(spec)

    def test_both_fit(self):
        host = clouds.host(free={0: 8, 1: 4}, cpus=8)
        self.boot(host, clouds.spec(), 2)
        self.assertEqual({'nfv_node1'}, self.physnets(host))

    def test_node_fills_up(self):
        """The labels are dropped, so that the limits hold for both."""
        host = clouds.host(free={0: 8, 1: 2}, cpus=8)
        self.boot(host, clouds.spec(), 2)
        self.assertEqual(set(), self.physnets(host))
