# SPDX-License-Identifier: Apache-2.0
"""The weigher that keeps room for large guests, on real hosts and claims."""

import dataclasses

from nfv_sched.tests.functional import base


@dataclasses.dataclass(frozen=True)
class Row:
    """Where a guest of 2 vCPUs goes.

    All hosts have two NUMA nodes with four CPUs for pinned guests and two
    pages of 1 GiB each.  Nova by itself prefers ``host1``, which has more
    memory.

    :ivar title: the row in words
    :ivar used: host -> vCPUs of the pinned guests that are there already, one
        after the other; Nova puts each on the emptiest node
    :ivar host: where it goes
    :ivar nodes: its NUMA nodes there, by Nova's own order
    """

    title: str
    used: dict[str, tuple[int, ...]]
    host: str
    nodes: tuple[int, ...]


ROWS = (
    Row('the fuller host', {'host2': (3, 2)}, 'host2', (1,)),
    Row('the fuller node, which Nova takes if it is the only one',
        {'host1': (2,), 'host2': (2, 3)}, 'host2', (0,)),
    Row('the other node of a host that is in use',
        {'host2': (2,)}, 'host2', (1,)),
    Row('one CPU more is used', {'host1': (2, 1), 'host2': (2, 2)},
        'host2', (0,)),
    Row('not where it does not fit', {'host2': (3, 3)}, 'host1', (0,)),
)


class WeigherTestCase(base.NFVCloudTestCase):

    extra_filters = ['NFVTopologyFilter']
    huge_pages = 2

    def configure(self):
        super().configure()
        self.flags(numa_fragmentation_weight_multiplier=100.0,
                   group='nfv_sched')

    def setUp(self):
        super().setUp()
        self.start_host('host1', memory_gib=64, switch=())
        self.start_host('host2', memory_gib=16, switch=())

    def run_rows(self):
        guest = self.flavor()
        for row in ROWS:
            with self.row(row.title):
                for host, sizes in row.used.items():
                    for vcpus in sizes:
                        self.boot(self.flavor(vcpus=vcpus), host=host)
                self.assertPlaced(
                    self.boot(guest), list(row.nodes), row.host)
            self.delete_all()


class WeigherTest(WeigherTestCase):

    def test_rows(self):
        self.run_rows()


class StockFilterTest(WeigherTestCase):
    """The weigher alone, with Nova's own NUMA filter."""

    extra_filters = ['NUMATopologyFilter']

    def test_rows(self):
        self.run_rows()
