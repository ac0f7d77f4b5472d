# SPDX-License-Identifier: Apache-2.0
"""Why there is no room, in words."""

from nfv_sched.base import reasons
from nfv_sched.fit.numa import pci
from nfv_sched.fit.numa import shortage
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.fit.numa import base

# Of any rule.
POLICY = reasons.CAPACITY + 1


class TestCapacity(tests_base.TestCase):

    def reason(self, host, guest, **kwargs):
        reason = shortage.capacity_reason(
            base.evaluation(host, guest), **kwargs)
        return str(reason), reason.rank

    def lack(self, host, guest, free=None, requests=(), **kwargs):
        found = base.evaluation(host, guest)
        lack = shortage.capacity_reason(
            found, devices=base.devices(found, free, *requests)
            if requests else None, **kwargs).shortage
        return lack.amount.resource, lack.amount.needed, lack.free

    def test_only_nodes_near_the_networks_count(self):
        """The others may have more CPUs free; pages are named then."""
        host = clouds.host_topology(free={0: 0, 1: 1})
        self.assertEqual(
            (reasons.Resource.DEDICATED_CPUS, 2, 0),
            self.lack(host, clouds.guest(), groups=[0b01]))
        base.with_pages(host, [4, 2048], [4, 2048])
        host.cells[0].mempages[1].used = host.cells[0].mempages[1].total
        guest = clouds.guest(memory=4)
        guest.cells[0].pagesize = 2048
        self.assertEqual((reasons.Resource.PAGES, 4, 0),
                         self.lack(host, guest, groups=[0b01]))
        self.assertEqual((reasons.Resource.DEDICATED_CPUS, 2, 1),
                         self.lack(host, guest))
        self.assertEqual((reasons.Resource.NUMA_NODES, 1, 0),
                         self.lack(host, guest, groups=[0b01, 0b10]))

    def test_the_host_cell_that_lacks_least(self):
        """Pages are named where a node lacks nothing else."""
        resource = reasons.Resource
        for cpus, used, lack in (
                ((2, 0), (1, 0), (resource.PAGES, 4, 2)),
                ((2, 1), (2, 0), (resource.DEDICATED_CPUS, 2, 1)),
                ((0, 1), (1, 0), (resource.DEDICATED_CPUS, 2, 1)),
                ((0, 0), (1, 2), (resource.PAGES, 4, 2))):
            host = clouds.host_topology(free=dict(enumerate(cpus)))
            for cell, pages in zip(host.cells, used):
                cell.mempages = base.pages(kb4=1024, kb2048=2 - pages)
            guest = clouds.guest(memory=4)
            guest.cells[0].pagesize = 2048
            self.assertEqual(lack, self.lack(host, guest))

    def test_only_nodes_near_the_devices_count(self):
        host = clouds.host_topology(free={0: 0, 1: 1})
        request = clouds.pci_request(1, pci.REQUIRED)
        self.assertEqual(
            (reasons.Resource.DEDICATED_CPUS, 2, 0),
            self.lack(host, clouds.guest(), {0: 1}, [request]))
        # Where no node has them, CPUs are said of all.
        self.assertEqual(
            (reasons.Resource.DEDICATED_CPUS, 2, 1),
            self.lack(host, clouds.guest(), {None: 1}, [request]))

    def test_devices_and_what_goes_with_them(self):
        """CPUs are named only if they are missing where devices are."""
        for cpus, beside in (({1: 0}, (
                reasons.Amount(reasons.Resource.DEDICATED_CPUS, 2),)),
                ({}, ())):
            found = base.evaluation(
                clouds.host_topology(free=cpus), clouds.guest())
            devices = base.devices(found, {0: 1, 1: 2 if cpus else 1},
                                   clouds.pci_request(2, pci.REQUIRED))
            lack = shortage.capacity_reason(found, devices=devices).shortage
            self.assertEqual(
                (2, 1, beside, not cpus),
                (lack.amount.needed, lack.free, lack.beside,
                 lack.devices.alone))
            self.assertTrue(lack.of_node)

    def test_conflicting_networks_without_devices(self):
        text, _rank = self.reason(
            clouds.host_topology(nodes=3), clouds.guest(cells=2),
            groups=[0b001, 0b010, 0b100])
        self.assertIn('near the networks of the request', text)
        self.assertNotIn('PCI', text)

    def test_texts(self):
        """Of what one guest cell lacks, and several, near networks."""
        pages = clouds.host_topology()
        for cell in pages.cells:
            cell.mempages = base.pages(kb4=1024, kb2048=cell.id)
        large = clouds.guest(memory=4)
        large.cells[0].pagesize = 2048
        threads = clouds.guest()
        threads.cells[0].cpu_thread_policy = 'require'
        one, two, host = (
            clouds.guest(), clouds.guest(cells=2), clouds.host_topology)
        for on_host, guest, groups, need, rank in (
                (host(free={0: 0, 1: 1}), one, (),
                 '2 dedicated CPUs on one NUMA node needed, 1 free', 1),
                (host(), threads, (),
                 '2 CPUs under the thread policy on one NUMA node needed, '
                 '0 free', 0),
                (pages, large, (),
                 '4 MiB in pages of 2 MiB on one NUMA node needed, '
                 '2 MiB free', 2),
                (host(), clouds.guest(cells=3), (),
                 '3 NUMA nodes needed, has 2', 2),
                (host(free={0: 1}), two, (),
                 'needs 2 NUMA nodes that have each 2 free dedicated CPUs, '
                 '1 has', 1),
                # Two fit the same host cell only.
                (host(nodes=3, free={1: 1, 2: 1}), base.unlike_guest(2, 2, 1),
                 (), 'a NUMA node for each guest NUMA node needed, the guest '
                 'NUMA nodes compete for the same', 3),
                (host(free={1: 1}), one, [0b10],
                 '2 dedicated CPUs on one NUMA node near the networks of the '
                 'request needed, 1 free', 1),
                (host(), one, [0b01, 0b10],
                 'needs a NUMA node near the networks of the request, has '
                 'none', 0)):
            self.assertEqual((f'NUMA topology: {need}', rank), self.reason(
                on_host, guest, groups=groups))

    def test_every_rule_has_words(self):
        codes = [code for code in range(1, 8)]
        self.assertEqual(codes, sorted(shortage.CAPACITY_TEXT))


class TestDevices(tests_base.TestCase):

    def reason(self, free, *requests, masks=(0b11,), **kwargs):
        found = base.evaluation(
            clouds.host_topology(), clouds.guest(cells=len(masks)))
        reason = shortage.devices_reason(
            found, base.devices(found, free, *requests), masks, 'p', POLICY,
            **kwargs)
        return reason and (reason.shortage.amount.needed,
                           reason.shortage.free)

    def test_near(self):
        for policy, free, lack in (
                (pci.REQUIRED, {0: 1, 1: 2}, (3, 2)),
                (pci.LEGACY, {0: 1, None: 1}, (3, 2)),
                (pci.PREFERRED, {0: 1, 1: 1}, (3, 2)),
                (pci.REQUIRED, {1: 3}, None),
                (pci.LEGACY, {0: 1, None: 2}, None),
                (pci.PREFERRED, {0: 1, 1: 2}, None)):
            self.assertEqual(
                lack, self.reason(free, clouds.pci_request(3, policy)))

    def test_texts(self):
        """The only node that the guest fits is named."""
        host = clouds.host_topology(nodes=3)
        found = base.evaluation(host, clouds.guest())
        two = base.evaluation(host, clouds.guest(cells=2))
        for evaluation, masks, text in (
                (found, (0b101,),
                 'p: 3 VFs (vf) on one NUMA node over there needed under PCI '
                 'NUMA policy required, 2 free; 4 free VFs are on NUMA nodes '
                 '1, 2'),
                (found, (0b100,),
                 'p: needs a NUMA node over there that has 3 free VFs (vf) '
                 'under PCI NUMA policy required and 2 free dedicated CPUs, '
                 '1 free on NUMA node 2; 5 free VFs are on NUMA nodes 0, 1'),
                (two, (0b101, 0b101),
                 'p: needs 2 NUMA nodes over there that have 4 free VFs (vf) '
                 'under PCI NUMA policy required and each 2 free dedicated '
                 'CPUs, 3 free on NUMA nodes 0, 2; 3 free VFs are on NUMA '
                 'node 1')):
            self.assertEqual(text, str(shortage.devices_reason(
                evaluation, base.devices(
                    evaluation, {0: 2, 1: 3, 2: 1}, clouds.pci_request(
                        len(masks) + 2, pci.REQUIRED)),
                masks, 'p', POLICY, ['over there'],
                empty=masks if masks == (0b101,) else None)))
