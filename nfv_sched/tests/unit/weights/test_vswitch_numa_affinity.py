# SPDX-License-Identifier: Apache-2.0
"""The weigher, through Nova's own handler among Nova's own weighers."""

from nova.scheduler import weights as nova_weights

from nfv_sched.filters import vswitch_numa_affinity as vswitch_filter
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.weights import vswitch_numa_affinity


class TestVSwitchNUMAAffinityWeigher(base.TestCase):

    def setUp(self):
        super().setUp()
        self.handler = nova_weights.HostWeightHandler()
        self.weighers = [cls() for cls in self.handler.get_matching_classes(
            ['nova.scheduler.weights.all_weighers',
             'nfv_sched.weights.all_weighers'])]

    def _order(self, hosts, spec):
        return [weighed.obj.host for weighed in
                self.handler.get_weighed_objects(self.weighers, hosts, spec)]

    def _cloud(self):
        full = clouds.host('full', free={1: 1})
        room = clouds.host('room')
        unknown = clouds.host('unknown', switch=None)
        # Nova's own weighers favour the other two.
        full.free_ram_mb = unknown.free_ram_mb = 500000
        full.free_disk_mb = unknown.free_disk_mb = 500000
        full.vcpus_total = unknown.vcpus_total = 64
        return [full, unknown, room]

    def test_prefer_outweighs_resources(self):
        self.assertEqual(
            'room', self._order(self._cloud(), clouds.spec('prefer'))[0])

    def test_after_the_filter(self):
        hosts, spec = self._cloud(), clouds.spec('prefer')
        passed = vswitch_filter.VSwitchNUMAAffinityFilter().filter_all(
            hosts, spec)
        self.assertEqual(3, len(passed))
        self.assertEqual('room', self._order(passed, spec)[0])

    def test_others_are_not_weighed(self):
        for spec in (clouds.spec(), clouds.spec('strict'),
                     clouds.spec('nonsense')):
            weigher = vswitch_numa_affinity.VSwitchNUMAAffinityWeigher()
            self.assertEqual(
                [0.0], clouds.weigh(weigher, spec, *self._cloud()[2:]))

    def test_part_of_the_guest(self):
        weigher = vswitch_numa_affinity.VSwitchNUMAAffinityWeigher()
        self.assertEqual([0.5], clouds.weigh(
            weigher, clouds.spec('prefer', cells=2), clouds.host()))

    def test_servers_without_room_gather(self):
        # Servers of one request share the limits of a host: one without room
        # at the switch costs the others there their place at it.
        hosts = [clouds.host(name) for name in ('one', 'two')]
        hosts.append(clouds.host('away', free={1: 1}))
        for host in hosts:
            host.stats = {'num_instances': 0}
        away = hosts[2]
        # Nova's own weighers favour the others.
        away.free_ram_mb = away.free_disk_mb = 0
        spec = clouds.spec('prefer')
        instance = vswitch_filter.VSwitchNUMAAffinityFilter()
        chosen = []
        for index in range(8):
            instance.run_filter_for_index(index)
            passed = instance.filter_all(hosts, spec)
            best = self.handler.get_weighed_objects(
                self.weighers, passed, spec)[0].obj
            best.consume_from_request(spec)
            chosen.append(best.host)
        self.assertEqual({'one', 'two'}, set(chosen[:4]))
        self.assertEqual(['away', 'away'], chosen[4:6])
        # One of the two hosts keeps its servers where they are.
        self.assertEqual(1, len(set(chosen[6:])))
