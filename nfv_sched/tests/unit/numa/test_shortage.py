# SPDX-License-Identifier: Apache-2.0
"""Why there is no room, in words."""

from nfv_sched.numa import pci
from nfv_sched.numa import shortage
from nfv_sched import reasons
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.numa import base

# Of any rule.
POLICY = reasons.CAPACITY + 1


class TestCapacity(tests_base.TestCase):

    def reason(self, host, guest, **kwargs):
        reason = shortage.capacity_reason(
            base.evaluation(host, guest), **kwargs)
        return str(reason), reason.rank

    def test_what_one_guest_cell_lacks(self):
        pages = clouds.host_topology()
        for cell in pages.cells:
            cell.mempages = base.pages(kb4=1024, kb2048=cell.id)
        large = clouds.guest(memory=4)
        large.cells[0].pagesize = 2048
        threads = clouds.guest()
        threads.cells[0].cpu_thread_policy = 'require'
        for host, guest, need, rank in (
                (clouds.host_topology(free={0: 0, 1: 1}), clouds.guest(),
                 '2 dedicated CPUs on one NUMA node needed, 1 free', 1),
                (clouds.host_topology(), threads,
                 '2 CPUs under the thread policy on one NUMA node needed, '
                 '0 free', 0),
                (pages, large,
                 '4 MiB in pages of the requested size on one NUMA node '
                 'needed, 2 MiB free', 2)):
            self.assertEqual(
                (f'NUMA topology: {need}', rank), self.reason(host, guest))

    def test_every_rule_has_words(self):
        codes = [code for code in range(1, 8)]
        self.assertEqual(codes, sorted(shortage.CAPACITY_TEXT))

    def test_the_best_host_cell_counts(self):
        """One that comes as far in Nova's rules, and has the most."""
        host = clouds.host_topology(nodes=3, free={0: 1, 1: 0, 2: 1})
        self.assertEqual(
            ('NUMA topology: 2 dedicated CPUs on one NUMA node needed, '
             '1 free', 1), self.reason(host, clouds.guest()))

    def test_host_cells_that_count(self):
        self.assertEqual(
            ('p: 2 dedicated CPUs on one NUMA node over there needed, '
             '1 free', 1),
            self.reason(clouds.host_topology(free={1: 1}), clouds.guest(),
                        policy='p', within=0b10, where=' over there'))

    def test_order(self):
        found = base.evaluation(
            clouds.host_topology(free={0: 0, 1: 0}), clouds.guest())
        self.assertEqual(
            [reasons.CAPACITY, POLICY],
            [shortage.capacity_reason(found).order,
             shortage.capacity_reason(found, order=POLICY).order])

    def test_too_few_host_cells(self):
        self.assertEqual(
            ('NUMA topology: 3 NUMA nodes needed, has 2', 2),
            self.reason(clouds.host_topology(), clouds.guest(cells=3)))

    def test_too_few_with_room(self):
        self.assertEqual(
            ('NUMA topology: room for the guest on 2 NUMA nodes needed, '
             '1 have room', 1),
            self.reason(clouds.host_topology(free={0: 1}),
                        clouds.guest(cells=2)))

    def test_guest_cells_that_compete(self):
        """Two fit the same host cell only."""
        host = clouds.host_topology(nodes=3, free={1: 1, 2: 1})
        text, rank = self.reason(
            host, base.unlike_guest(2, 2, 1))
        self.assertEqual(
            ('NUMA topology: a NUMA node for each guest NUMA node needed, '
             'the guest NUMA nodes compete for the same', 3), (text, rank))

    def test_networks(self):
        self.assertEqual(
            ('NUMA topology: 2 dedicated CPUs on one NUMA node near the '
             'networks of the request needed, 1 free', 1),
            self.reason(clouds.host_topology(free={1: 1}), clouds.guest(),
                        groups=[0b10]))
        self.assertEqual(
            ('NUMA topology: NUMA nodes with room that are also near the '
             'networks and PCI devices of the request needed, none', 2),
            self.reason(clouds.host_topology(), clouds.guest(),
                        groups=[0b01, 0b10]))

    def test_devices(self):
        found = base.evaluation(clouds.host_topology(), clouds.guest())
        given = base.devices(found, {1: 1}, clouds.pci_request(2, 'required'))
        self.assertEqual(
            'nics: 2 VFs on one NUMA node with room needed, 1 free',
            str(shortage.capacity_reason(
                found, devices=given, pci_policy='nics')))


class TestDevices(tests_base.TestCase):

    def reason(self, free, *requests, masks=(0b11,), **kwargs):
        found = base.evaluation(
            clouds.host_topology(), clouds.guest(cells=len(masks)))
        reason = shortage.devices_reason(
            base.devices(found, free, *requests), masks, 'p', POLICY,
            **kwargs)
        return reason and str(reason)

    def test_near(self):
        for policy, free, text in (
                (pci.REQUIRED, {0: 1, 1: 2},
                 'p: 3 VFs on one NUMA node with room needed, 2 free'),
                (pci.LEGACY, {0: 1, None: 1},
                 'p: 3 VFs on one NUMA node with room needed, 2 free'),
                (pci.PREFERRED, {0: 1, 1: 1}, 'p: 3 VFs needed, 2 free'),
                (pci.REQUIRED, {1: 3}, None),
                (pci.LEGACY, {0: 1, None: 2}, None),
                (pci.PREFERRED, {0: 1, 1: 2}, None)):
            self.assertEqual(
                text, self.reason(free, clouds.pci_request(3, policy)))

    def test_socket(self):
        """All host cells of this host are on sockets of their own."""
        self.assertEqual(
            'p: 2 VFs on one NUMA node with room needed, 1 free',
            self.reason({0: 1, 1: 1}, clouds.pci_request(2, pci.SOCKET)))

    def test_several_guest_cells(self):
        request = clouds.pci_request(3, pci.REQUIRED)
        self.assertIsNone(
            self.reason({0: 1, 1: 2}, request, masks=(0b11, 0b11)))
        self.assertEqual(
            'p: 3 VFs on 2 NUMA nodes with room needed, 2 free on NUMA nodes '
            '0, 1', self.reason({0: 1, 1: 1}, request, masks=(0b11, 0b11)))

    def test_the_only_node_with_room_is_named(self):
        self.assertEqual(
            'p: 2 VFs on one NUMA node over there with room needed, 1 free '
            'on NUMA node 1',
            self.reason({0: 5, 1: 1}, clouds.pci_request(2, pci.REQUIRED),
                        masks=(0b10,), where=' over there'))

    def test_local(self):
        """Whatever Nova's own policy says."""
        for policy in (pci.LEGACY, pci.PREFERRED, pci.SOCKET):
            self.assertEqual(
                'p: 2 VFs on one NUMA node with room needed, 1 free',
                self.reason({0: 1, 1: 1, None: 4},
                            clouds.pci_request(2, policy), local=True))

    def test_the_request_that_lacks_devices(self):
        self.assertEqual(
            'p: 9 VFs on one NUMA node with room needed, 4 free',
            self.reason({1: 4}, clouds.pci_request(1, pci.REQUIRED),
                        clouds.pci_request(9, pci.REQUIRED)))
