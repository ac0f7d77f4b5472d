# SPDX-License-Identifier: Apache-2.0
"""The formulae and worked examples of the guides, to the last digit."""

from nfv_sched.base import cpu_spec
from nfv_sched.ops.answers.profile import ceph
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import memory
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.profile import machines

GIB = machines.GIB
_1G = 1048576


def lists(profile):
    return [{function: cpu_spec.to_text(numbers)
             for function, numbers in node.cpus.items() if numbers}
            for node in profile.numa_nodes]


class HCGTest(base.TestCase):
    """Two sockets of 14 cores with threads, 128 GiB each."""

    def test_network_node(self):
        found = machines.derive(shared=True, network_node=True)
        self.assertEqual(12288 + 4000, found.nova.reserved_host_memory_mib)
        # 4000 MiB are not whole pages.
        self.assertEqual([120 - 4, 126],
                         [node.page_count(_1G) for node in found.numa_nodes])

    def test_small_huge_pages(self):
        """The page of 1 GiB of the switch is fixed."""
        found = machines.derive(pages=((2048, 1.0),))
        self.assertEqual({_1G: 1, 2048: 119 * 512},
                         machines.pages(found.numa_nodes[0]))
        self.assertEqual({_1G: 1}, machines.pages(
            found.numa_nodes[0], 'switch'))

    def test_no_pages_of_1g(self):
        found = machines.derive(machines.machine(
            page_sizes=frozenset((2048,))))
        self.assertEqual({2048: 120 * 512},
                         machines.pages(found.numa_nodes[0]))
        self.assertEqual({(0, 2048): 512, (1, 2048): 512},
                         machines.reserved(found))

    def test_switch_by_node(self):
        found = machines.derive(switch_cores={0: 2, 1: 1})
        self.assertEqual(['1-2,29-30', '14,42'],
                         [node[cpus.SWITCH] for node in lists(found)])
        self.assertEqual((0, 1), found.nova.physnets['nfv_vswitch'])


class TripleOTest(base.TestCase):
    """What TripleO derived."""

    def test_socket_memory(self):
        for mtus, size in (((), 1024), ((1500,), 2048), ((9000,), 3072),
                           ((1500, 9000), 4096)):
            self.assertEqual(size, memory.socket_memory(frozenset(mtus)))

    def test_switch_without_nics(self):
        """The cores of other nodes are spare ones."""
        found = machines.derive(layout=choices.EVERY_NODE, switch_cores=1,
                                mtus=frozenset((1500,)))
        self.assertEqual('2048,1024',
                         found.ovs_other_config['dpdk-socket-mem'])

    def test_pages(self):
        for size, part, pages in ((256, 0.5, 126), (256, 0.8, 201),
                                  (255.9, 1.0, 251), (4, 1.0, 0)):
            self.assertEqual(pages, memory.tripleo_pages(
                int(size * GIB), part))
        found = machines.derive(layout=choices.EVERY_NODE,
                                pages=((_1G, 0.8),))
        self.assertEqual([100, 101],
                         sorted(node.page_count(_1G)
                                for node in found.numa_nodes))


class HyperConvergedTest(base.TestCase):
    """Red Hat's guide, and what TripleO made of it."""

    # GB, CPUs, OSDs, GB of a guest, utilisation: guests, vCPUs, MB, ratio
    GUIDE = (
        (256, 56, 10, 2, 1.0, 90, 46, 75000, 0.821429),
        (256, 56, 10, 2, 0.1, 90, 460, 75000, 8.214286),
        (256, 56, 36, 1, 0.05, 98, 400, 157000, 7.142857))

    def test_guide_as_a_profile(self):
        for _gb, _cpus, osds, guest, part, *expected in self.GUIDE:
            found = machines.derive(
                layout=choices.FLOATING, guest_gb=guest, utilisation=part,
                osds={'hdd': osds}, gb_per_osd=3, mb_per_gb=1000)
            self.assertEqual(expected, [
                found.servers_by_memory, found.server_vcpus,
                found.nova.reserved_host_memory_mib,
                found.nova.cpu_allocation_ratio])
            self.assertEqual('0-55',
                             cpu_spec.to_text(found.nova.cpu_shared_set))
            self.assertEqual((), found.nova.cpu_dedicated_set)

    def plan(self, osds, **chosen):
        return ceph.plan(choices.Choices(
            layout=choices.FLOATING, osds={'hdd': osds}, **chosen),
            256 * GIB, 56)

    def test_measured(self):
        """5 GB for an OSD, which is the default."""
        found = self.plan(10, guest_gb=2)
        self.assertEqual((82, 93184, 0.821429), (
            found.guests, found.osd_memory + found.overhead,
            round(found.ratio, 6)))
        error = self.assertRaises(choices.ProfileError, self.plan, 36,
                                  guest_gb=1, utilisation=0.05)
        self.assertIn('209920 MB would be kept from servers, more than 80 %',
                      str(error))

    def test_without_workload(self):
        found = machines.derive(layout=choices.FLOATING,
                                osds={'hdd': 10})
        self.assertEqual(51200, found.nova.reserved_host_memory_mib)
        self.assertIsNone(found.nova.cpu_allocation_ratio)

    def test_too_little(self):
        for osds, guest, told in (
            (60, None, '60 OSDs need 300 GB of memory, but 256'),
            (30, 8, 'the CPU allocation ratio would be 0.46, less'),
        ):
            self.assertIn(told, str(self.assertRaises(
                choices.ProfileError, self.plan, osds, guest_gb=guest)))

    def test_vcpus(self):
        for osds, per_device, count in (
            ({'hdd': 3}, 1, 1), ({'ssd': 3}, 1, 4), ({'nvme': 4}, 4, 3),
            ({'nvme': 4}, 1, 4), ({'nvme': 4, 'hdd': 2}, 4, 1),
            ({'ssd': 2, 'hdd': 0}, 4, 4), ({}, 1, 1),
        ):
            self.assertEqual(count, ceph.vcpus_per_osd(choices.Choices(
                osds=osds, osds_per_device=per_device)))

    def test_cores_of_their_own(self):
        found = machines.derive(
            shared=True, guest_gb=8, utilisation=0.9,
            osds={'nvme': 4}, osds_per_device=4, ceph_node=1)
        self.assertEqual([
            {'platform': '0,28', 'switch': '1-2,29-30', 'shared': '3,31',
             'guests': '4-13,32-41'},
            {'ceph': '14-19,42-47', 'shared': '20,48',
             'guests': '21-27,49-55'}], lists(found))
        self.assertEqual((1,), found.nova.physnets['nfv_osd'])
        # 256 GB - 12 for platform and switch - 20 for OSDs: 26 guests.
        self.assertEqual(26, found.servers_by_memory)
        self.assertEqual((12 + 20 + 13) * GIB,
                         found.nova.reserved_host_memory_mib)
        self.assertEqual(round(1 / 0.9, 6), found.nova.cpu_allocation_ratio)
        self.assertEqual([8 * GIB + 6656, 2 * GIB + 20 * GIB + 6656],
                         [node.kept_memory_mib for node in found.numa_nodes])

    def test_on_all_nodes(self):
        found = machines.derive(osds={'hdd': 10})
        self.assertEqual([6, 6], [
            len(found.numa_nodes[node].cpus[cpus.CEPH]) for node in (0, 1)])
        self.assertEqual((0, 1), found.nova.physnets['nfv_osd'])
