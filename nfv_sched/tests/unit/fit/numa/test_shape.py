# SPDX-License-Identifier: Apache-2.0
"""Which hosts are decided about together.

Generated hosts, and that they come out the same, are in the equivalence tests.
"""

from nova import objects

from nfv_sched.fit.numa import decide
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import shape
from nfv_sched.fit.numa import topology
from nfv_sched.fit.rules import vswitch
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.fit.numa import base


class ShapeTestCase(tests_base.TestCase):

    def shape(self, host=None, guest=None, rules=(), demands=(), mapping=None,
              **evaluation):
        return shape.host_shape(
            base.evaluation(host or clouds.host_topology(),
                            guest or clouds.guest(), **evaluation),
            decide.Terms(rules, True, base.NAMES), demands, mapping)


class TestHosts(ShapeTestCase):

    def test_alike(self):
        """How much is free matters as far as the guest fits."""
        one = self.shape(clouds.host_topology(free={1: 1}))
        self.assertIsNotNone(one)
        self.assertEqual(
            one, self.shape(clouds.host_topology(free={0: 3, 1: 0})))
        wide = clouds.host_topology(free={1: 1})
        wide.cells[0].memory, wide.cells[0].memory_usage = 65536, 1024
        self.assertEqual(one, self.shape(wide))

    def test_what_differs(self):
        other = clouds.host_topology()
        other.cells[1].pcpuset = set()
        rule = vswitch.VSwitchRule('switch')
        shapes = [self.shape(), self.shape(rules=(rule,))] + [
            self.shape(host) for host in (
                clouds.host_topology(free={0: 1}),
                clouds.host_topology(free={1: 1}),
                clouds.host_topology(free={0: 3}),  # Nova tries node 1 first
                clouds.host_topology(nodes=3),
                clouds.host_topology(switch=(0,)),
                clouds.host_topology(node_labels=False),
                clouds.host_topology(tunnel=(0,)),
                clouds.host_topology(physnets={'foo': (0,)}),
                other)]
        self.assertEqual(len(shapes), len(set(shapes)))

    def test_order_of_a_guest_that_fits_one_node_only(self):
        self.assertEqual(
            self.shape(clouds.host_topology(free={0: 1, 1: 2})),
            self.shape(clouds.host_topology(free={0: 1, 1: 3})))

    def test_what_the_guest_could_get_on_an_empty_host(self):
        small = clouds.host_topology(free={1: 1})
        small.cells[1].pcpuset = {4}
        self.assertNotEqual(
            self.shape(small), self.shape(clouds.host_topology(free={1: 1})))

    def test_none(self):
        """Where the course of Nova's search matters, or there is no room."""
        large = clouds.guest()
        large.cells[0].pagesize = topology.PAGES_LARGE
        mixed = clouds.guest(cells=2)
        for cell in mixed.cells:
            cell.cpu_policy = 'mixed'
        for host, guest in (
                (None, large), (None, mixed),
                (clouds.host_topology(free={0: 1}), clouds.guest(cells=2)),
                (clouds.host_topology(free={0: 1}),
                 base.unlike_guest(2, 1))):
            self.assertIsNone(self.shape(host, guest))
        self.assertIsNone(self.shape(pristine=topology.guest(large)))


class TestDevices(ShapeTestCase):

    def of(self, free, *requests, mapping=None, sockets=(0, 1), **tags):
        host = clouds.host_topology()
        for cell, socket in zip(host.cells, sockets):
            cell.socket = socket
        return self.shape(
            host, pools=clouds.pci_stats(host, free, **tags).pools,
            demands=pci.demands(requests or [clouds.pci_request(2)]),
            mapping=mapping)

    def test_more_than_are_asked_for(self):
        self.assertEqual(self.of({1: 3}), self.of({1: 64}))
        several = [self.of({1: count}) for count in range(4)]
        self.assertEqual(4, len(set(several)))

    def test_what_differs(self):
        shapes = [self.of({1: 9}), self.of({0: 9}), self.of({None: 9}),
                  self.of({0: 9, 1: 9}), self.of({1: 9}, trusted='true')]
        self.assertEqual(5, len(set(shapes)))

    def test_nobody_asks_for_devices(self):
        host = clouds.host_topology()
        self.assertEqual(
            self.shape(pools=clouds.pci_stats(host, {1: 1}).pools),
            self.shape(pools=clouds.pci_stats(host, {1: 5}).pools))

    def test_sockets(self):
        """They matter to those who ask for one."""
        for policy, alike in (('socket', False), ('required', True)):
            request = clouds.pci_request(1, policy)
            self.assertEqual(alike, self.of({1: 9}, request) == self.of(
                {1: 9}, request, sockets=(0, 0)))

    def test_providers(self):
        """Not what they are called, but which are the same."""
        request = clouds.pci_request(1)
        key = f'{request.request_id}-0'
        one, other, wrong = (
            self.of({1: 9}, request, mapping={key: [mapped]},
                    rp_uuid=provider)
            for mapped, provider in (('a', 'a'), ('b', 'b'), ('a', 'b')))
        self.assertEqual(one, other)
        self.assertNotEqual(one, wrong)

    def test_odd_pools(self):
        host = clouds.host_topology()
        demands = pci.demands([clouds.pci_request()])
        for pools in ([{'numa_node': 0}],
                      [{'count': 1, 'numa_node': 0, 'product_id': ['x']}]):
            self.assertIsNone(self.shape(host, pools=pools, demands=demands))
        self.assertIsNotNone(self.shape(host, demands=demands))

    def test_of_devices(self):
        """More than are asked for are as good as one more."""
        host = topology.host_topology(clouds.host_topology())
        demands = pci.demands([clouds.pci_request(2)])

        def of(count=7, node=1, product='x'):
            return shape.of_devices(
                [{'count': count, 'numa_node': node, 'product_id': product}],
                demands, None, host.cells)

        self.assertEqual(of(), of(count=3))
        self.assertEqual({of()}, {of(count=8)})
        for different in ({'count': 2}, {'node': 0}, {'product': 'y'}):
            self.assertNotEqual(of(), of(**different))
        self.assertRaises(
            KeyError, shape.of_devices, [{'numa_node': 1}], (), None,
            host.cells)


class TestEmptyRequest(ShapeTestCase):

    def test_it_can_be_a_key(self):
        guest = objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=0, cpuset={0}, pcpuset=set(), memory=512)])
        host = clouds.host_topology()
        for cell in host.cells:
            cell.cpuset = cell.pcpuset
        self.assertEqual(1, {self.shape(host, guest): 1}[
            self.shape(host, guest)])
