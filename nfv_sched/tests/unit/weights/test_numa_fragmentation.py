# SPDX-License-Identifier: Apache-2.0
"""The weigher that keeps room for large guests."""

import fixtures
from nova import objects
from nova.scheduler import weights as nova_weights

from nfv_sched.fit.numa import fragmentation
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.weights import numa_fragmentation

OPTION = 'numa_fragmentation_weight_multiplier'


class WeigherTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.flags(**{OPTION: 100.0})
        self.weigher = numa_fragmentation.NUMAFragmentationWeigher()

    def enable(self, *filters, **options):
        self.flags('filter_scheduler', enabled_filters=filters)
        self.flags(**options)

    def order(self, spec, *hosts):
        found = clouds.weigh(self.weigher, spec, *hosts)
        return [host.host for _weight, host in sorted(
            zip(found, hosts), key=lambda item: -item[0])]

    def hosts(self, **hosts):
        """Hosts by name, with the free CPUs of each node."""
        return [clouds.host(name, nodes=len(free), free=dict(enumerate(free)))
                for name, free in hosts.items()]


class TestOrder(WeigherTestCase):

    def test_fullest_first(self):
        """By the node that the claim chooses: the emptiest, or the fullest."""
        hosts = self.hosts(empty=(4, 4), half=(4, 0), full=(2, 0),
                           wide=(2, 2), most=(3, 2))
        pair = self.hosts(uneven=(4, 2), even=(2, 2))
        for packing, first in ((False, ['uneven', 'even']),
                               (True, ['even', 'uneven'])):
            self.flags('compute',
                       packing_host_numa_cells_allocation_strategy=packing)
            self.assertEqual(['full', 'half', 'wide', 'most', 'empty'],
                             self.order(clouds.spec(), *hosts))
            self.assertEqual(first, self.order(clouds.spec(), *pair))

    def test_networks(self):
        """The claim follows them, if a filter hands limits to it."""
        near = clouds.host('near', physnets={'foo': (1,)}, free={0: 2})
        far = clouds.host('far', physnets={'foo': (0,)}, free={0: 2})
        for filters, expected in (
                (('NUMATopologyFilter',), ['near', 'far']),
                (('NFVTopologyFilter',), ['near', 'far']),
                ((), ['far', 'near'])):
            self.enable(*filters)
            spec = clouds.spec(network=clouds.network('foo'))
            self.assertEqual(expected, self.order(spec, far, near))

    def test_devices(self):
        """A guest without them keeps away; one with them has to."""
        hosts = [clouds.host('has', devices={0: 2, 1: 2}, free={1: 0}),
                 clouds.host('lacks', devices={}, free={1: 0})]
        self.assertEqual(['lacks', 'has'],
                         self.order(clouds.spec(), *hosts))
        spec = clouds.spec(devices=[clouds.pci_request()])
        self.assertEqual(['has', 'lacks'], self.order(spec, *hosts))

    def test_policies(self):
        """The node where the claim is held to."""
        self.enable('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')
        hosts = self.hosts(one=(2, 4), two=(4, 2))
        self.assertEqual(['one', 'two'],
                         self.order(clouds.spec('strict'), *hosts))
        self.assertEqual(['two', 'one'], self.order(
            clouds.spec(nodes={0: 0}), *hosts))

    def test_outweighs_novas(self):
        """And a preference outweighs it."""
        handler = nova_weights.HostWeightHandler()
        weighers = [cls() for cls in handler.get_matching_classes(
            ['nova.scheduler.weights.all_weighers',
             'nfv_sched.weights.all_weighers'])]
        hosts = self.hosts(free=(4, 4), used=(4, 1), far=(2, 1))
        hosts[0].free_ram_mb = 500000

        def best(spec):
            return handler.get_weighed_objects(
                weighers, hosts, spec)[0].obj.host

        self.assertEqual('far', best(clouds.spec()))
        self.enable('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')
        self.assertEqual('free', best(clouds.spec('prefer')))
        self.flags(**{OPTION: 0.0})
        self.assertEqual('free', best(clouds.spec()))


class TestNothingToWeigh(WeigherTestCase):
    """All hosts weigh the same, and nothing raises."""

    def assertEqualWeights(self, spec, *hosts):
        found = clouds.weigh(self.weigher, spec, *hosts)
        self.assertEqual([found[0]] * len(hosts), found)

    def test_requests(self):
        hosts = self.hosts(one=(4, 4), two=(4, 1))
        for spec in (clouds.spec(numa=False), clouds.spec('nonsense')):
            self.assertEqualWeights(spec, *hosts)
        self.assertEqual([], clouds.weigh(self.weigher, clouds.spec()))
        self.assertEqualWeights('nonsense', *hosts)
        self.assertIn('cannot be read', self.log.output)

    def test_off(self):
        """Nothing is worked out."""
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.scheduler.notes.note_of', None))
        self.flags(**{OPTION: 0.0})
        self.assertEqual([0.0, 0.0], clouds.weigh(
            self.weigher, clouds.spec(), *self.hosts(one=(4,), two=(1,))))

    def test_host_that_cannot_be_read(self):
        """It is as bad as the worst."""
        bad, none, full = self.hosts(bad=(4, 4), none=(4, 4), full=(0, 0))
        bad.numa_topology = 'nonsense'
        none.numa_topology = None
        one, two = self.hosts(one=(4, 4), two=(2, 2))
        found = clouds.weigh(
            self.weigher, clouds.spec(), bad, one, none, full, two)
        self.assertEqual([found[1]] * 4, found[:4])
        self.assertTrue(found[1] < found[4] < 0)
        self.assertIn('Host bad cannot be weighed', self.log.output)


class TestMultiplier(WeigherTestCase):

    def test_aggregates(self):
        """Only hosts that count are looked at."""
        self.flags(**{OPTION: 0.0})
        looked_at = []
        real = fragmentation.lost

        def lost(host, *args):
            looked_at.append(host.cells[0].memory)
            return real(host, *args)

        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.fit.numa.fragmentation.lost', lost))
        off, on = self.hosts(off=(2, 2), on=(4, 4))
        on.numa_topology.cells[0].memory = 4444
        on.aggregates = [objects.Aggregate(metadata={OPTION: '5'})]
        found = clouds.weigh(self.weigher, clouds.spec(), off, on)
        self.assertEqual(1, len(set(found)))
        self.assertEqual([4444], looked_at)
        self.assertEqual([0.0, 5.0], [
            self.weigher.weight_multiplier(host) for host in (off, on)])
