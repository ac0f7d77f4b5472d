# SPDX-License-Identifier: Apache-2.0

"""Virtual switch affinity for several guests in one request.

Nova filters the hosts once per guest, and once more when all are placed; the
claims get what the filters left in the limits at the very end.
"""

import collections

from nfv_sched.tests.functional import base


class MultiCreate:
    """The cases; subclasses say how the weighers order the hosts."""

    def setUp(self):
        super().setUp()
        self.start_two(switch=[1])
        self.strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.prefer = self.flavor(nfv__vswitch_numa_affinity='prefer')

    def where(self, servers):
        return collections.Counter(
            (self.host(server), *self.nodes(server)) for server in servers)

    def test_guests_of_one_kind(self):
        for title, flavor in (('strict', self.strict),
                              ('prefer', self.prefer)):
            with self.row('two ' + title):
                servers = self.boot_many(flavor, 2)
                self.assertEqual([[1], [1]], list(map(self.nodes, servers)))
            with self.row('all switch nodes filled, ' + title):
                servers = self.boot_many(flavor, 4)
                self.assertEqual({('host1', 1): 2, ('host2', 1): 2},
                                 self.where(servers))

        with self.row('strict guests that do not fit'):
            # All or nothing, and nothing is left behind in Placement.
            servers = self.boot_many(self.strict, 5, expect='ERROR')
            self.assertEqual(5, len(servers))
            self.assertEqual({'host1': {}, 'host2': {}}, self.usages())
            for server in servers:
                self.assertRefused(server, 'virtual switch')
            # The cloud is as free as before.
            self.assertEqual({('host1', 1): 2, ('host2', 1): 2},
                             self.where(self.boot_many(self.strict, 4)))


class SpreadTest(MultiCreate, base.NFVCloudTestCase):
    """Nova's default: the emptier host first."""

    def test_guests_beside_others(self):
        with self.row('three strict guests fit beside one'):
            self.occupy(self.strict, 'host1')
            servers = self.boot_many(self.strict, 3)
            self.assertEqual({('host1', 1): 1, ('host2', 1): 2},
                             self.where(servers))

        with self.row('four do not'):
            self.occupy(self.strict, 'host1')
            before = self.usages()
            self.boot_many(self.strict, 4, expect='ERROR')
            self.assertEqual(before, self.usages())

        with self.row('prefer guests that spill over'):
            # More guests than switch nodes can take: all run all the same.
            # The claims of one request on one host share its limits.  A host
            # that takes guests of both kinds lets its claims choose.
            servers = self.boot_many(self.prefer, 6)
            found = self.where(servers)
            self.assertEqual(6, sum(found.values()))
            self.assertEqual(
                {('host1', 1), ('host2', 1)},
                {place for place in found if place[1] == 1})

        with self.row('prefer guests with the switch nodes full'):
            for host in ('host1', 'host2'):
                self.occupy(self.strict, host, times=2)
            servers = self.boot_many(self.prefer, 4)
            self.assertEqual({('host1', 0): 2, ('host2', 0): 2},
                             self.where(servers))


class PackTest(MultiCreate, base.NFVCloudTestCase):
    """The fuller host first, until its switch node is full."""

    def configure(self):
        self.flags(ram_weight_multiplier=-1.0, cpu_weight_multiplier=-1.0,
                   disk_weight_multiplier=-1.0, group='filter_scheduler')


class SwitchLabelTest(MultiCreate, base.NFVCloudTestCase):
    """Hosts that declare the switch but do not name their nodes."""

    def start_host(self, name, **kwargs):
        super().start_host(name, labels=base.SWITCH_LABEL, **kwargs)
