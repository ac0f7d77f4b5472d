# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts import memory
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

GIB = 1024


def host(reserved=None, small=8, huge_reserved=1, size=4, used=0,
         reserved_pages=0):
    """A host of two NUMA nodes with 8 GiB of small pages each.

    :param reserved: MiB that Placement has as reserved
    :param used: small pages on each node that are used
    :param reserved_pages: small pages on each node that are reserved
    """
    pages = tuple(each for each in (
        small and snapshot.Pages(
            size=size, total=small * GIB * 1024 // size, used=used,
            reserved=reserved_pages),
        snapshot.Pages(size=GIB * 1024, total=96, reserved=huge_reserved))
        if each)
    made = snapshots.host(nodes=[
        snapshots.node(number, pages=pages) for number in (0, 1)])
    return made if reserved is None else dataclasses.replace(
        made, providers=(snapshot.Provider(
            uuid=made.uuid, name=made.name, inventories={
                'MEMORY_MB': snapshot.Inventory(
                    total=208 * GIB, reserved=reserved)}),))


class SmallPagesTest(base.TestCase):

    def test_floating(self):
        """Servers on NUMA nodes are recorded by the host."""
        floating = [snapshots.server(f's{number}') for number in range(3)]
        small = memory.small_pages(
            host(reserved=6 * GIB, huge_reserved=1, used=GIB * 256),
            [*floating, snapshots.server('pinned', {0: [1]})])
        # 2 GiB of the reserve are huge pages of the switch.
        self.assertEqual(document.SmallPagesUse(
            size_kib=4, total_mib=16 * GIB, reserved_mib=4 * GIB,
            used_on_nodes_mib=2 * GIB, used_without_nodes_mib=3 * GIB,
            free_mib=7 * GIB), small)
        self.assertEqual(10 * GIB, small.available_mib)

    def test_reserve_used(self):
        floating = [snapshots.server(f's{number}') for number in range(3)]
        small = memory.small_pages(host(reserved=18 * GIB), floating)
        self.assertEqual((0, -3 * GIB), (small.available_mib, small.free_mib))

    def test_reserved_small_pages(self):
        """They are part of the reserve, not more of it."""
        for reserved, expected in ((3, 4), (5, 5)):
            self.assertEqual(expected * GIB, memory.small_pages(
                host(reserved=reserved * GIB, huge_reserved=0,
                     reserved_pages=2 * GIB * 256), ()).reserved_mib)

    def test_without_placement(self):
        """The host itself counts what is reserved as used."""
        made = dataclasses.replace(
            host(huge_reserved=0), memory_used=5 * GIB)
        self.assertEqual(4 * GIB, memory.small_pages(
            made, [snapshots.server()]).reserved_mib)

    def test_other_sizes(self):
        self.assertEqual((64, 16 * GIB), (
            memory.small_pages(host(size=64), ()).size_kib,
            memory.small_pages(host(size=64), ()).total_mib))
        self.assertIsNone(memory.small_pages(host(small=0), ()))
        self.assertIsNone(memory.small_pages(dataclasses.replace(
            host(), nodes=None), ()))
