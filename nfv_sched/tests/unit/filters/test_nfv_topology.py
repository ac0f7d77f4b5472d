# SPDX-License-Identifier: Apache-2.0
"""The filter in place of Nova's NUMATopologyFilter."""

import fixtures
from nova import objects
import testtools

from nfv_sched.filters import nfv_topology
from nfv_sched.nova import scheduler
from nfv_sched.tests import cards
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestNothingThere(base.FilterTestCase):
    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='none')

    def test_host_without_numa_topology(self):
        host = clouds.host()
        host.numa_topology = None
        self.assertEqual([], self.passing([host], clouds.spec()))
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(numa=False)))

    def test_no_allocation_candidates(self):
        host = clouds.host()
        host.allocation_candidates = []
        self.assertEqual([], self.passing([host], clouds.spec()))


class TestInPlaceOfNovas(base.FilterTestCase):
    """It does what Nova's filter does, where nothing else is asked."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('nova.virt.hardware'))

    def test_same_hosts_and_limits(self):
        pages = clouds.guest()
        pages.cells[0].pagesize = 4
        isolated = clouds.guest()
        isolated.cells[0].cpu_thread_policy = 'isolate'
        foo = clouds.network('foo')
        seen = set()
        for guest, network, host in (
                (clouds.guest(), None, {}),
                (clouds.guest(), None, {'free': {0: 1, 1: 1}}),
                (clouds.guest(), foo, {'physnets': {'foo': (1,)}}),
                (clouds.guest(), foo, {'physnets': {'foo': (1,)},
                                       'free': {1: 1}}),
                (clouds.guest(), foo, {}),
                (clouds.guest(), clouds.network(tunneled=True),
                 {'tunnel': (1,), 'free': {1: 1}}),
                (clouds.guest(cells=2), None, {}),
                (clouds.guest(cells=2), None, {'free': {0: 1}}),
                (clouds.guest(cells=3), None, {}),
                (pages, None, {}), (isolated, None, {'free': {0: 2}})):
            answers = []
            for instance in (self.stock, self.topology):
                state = clouds.host(**host)
                spec = strategies.request_spec(guest, network)
                answers.append((
                    instance.host_passes(state, spec),
                    {name: limits.obj_to_primitive()
                     for name, limits in state.limits.items()}))
            self.assertEqual(*answers)
            seen.add(answers[0][0])
        self.assertEqual({True, False}, seen)

    def test_guest_without_numa_topology(self):
        spec = clouds.spec(numa=False)
        for host in clouds.host(), clouds.host(free={0: 0, 1: 0}):
            for instance in (self.stock, self.topology):
                self.assertTrue(instance.host_passes(host, spec))
                self.assertEqual({}, host.limits)

    def test_guest_without_numa_topology_on_an_odd_host(self):
        """Nothing of the host is looked at."""
        host = clouds.host()
        del host.numa_topology.cells[0]._obj_cpuset
        for numa, passes in ((True, False), (False, True)):
            self.assertIs(passes, self.topology.host_passes(
                host, clouds.spec(numa=numa)))


class TestBeyondNovas(base.FilterTestCase):

    def test_mapping(self):
        """It is kept if this is the only filter."""
        only = [nfv_topology.NFVTopologyFilter()]
        for free, passed in (({}, ['host1']), ({1: 1}, [])):
            self.flags(expose_reasons='none')
            host = clouds.host(free=free)
            self.assertEqual(passed, self.passing(
                [host], clouds.spec(nodes={0: 1}), only))
            if passed:
                self.assertEqual([1], self.node_of(host))

    def test_other_rules_are_for_their_filters(self):
        host = clouds.host(free={1: 0})
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec('strict'), [self.topology]))
        self.assertEqual([0], self.node_of(host))

    @testtools.skipIf(scheduler.pinned_guests_need_cell_memory(),
                      'this Nova looks at no pages of a guest without a size')
    def test_a_claim_that_would_take_long(self):
        """The first eight nodes are full, and Nova begins with them."""
        topology = clouds.host_topology(nodes=16)
        for cell in topology.cells[:8]:
            cell.mempages = [objects.NUMAPagesTopology(
                size_kb=4, total=8192 * 256, used=8192 * 256, reserved=0)]
        self.assertIn('a claim of reasonable length needed', self.refusal(
            [strategies.host_state(topology)],
            clouds.spec(cells=8, vcpus=1), [self.topology]))


class TestCards(base.JointTestCase):
    """A PF and VFs of one card for the same server."""

    CARD = cards.Card(vfs=2, tags={'physical_network': 'data'})

    def host(self, *of_host):
        host = clouds.host()
        self.made = cards.pci_stats(host.numa_topology, of_host)
        host.pci_stats = cards.as_scheduled(self.made)
        return host

    @staticmethod
    def spec(pf_first=True, **kwargs):
        pf = clouds.pci_request(alias='nic', dev_type='type-PF',
                                product_id='1572')
        vf = clouds.pci_request(alias=None)
        vf.spec = [{'physical_network': 'data', 'remote_managed': 'False'}]
        return clouds.spec(
            devices=[pf, vf] if pf_first else [vf, pf], **kwargs)

    def test_refused_as_the_claim_would_fail(self):
        """Nova's filter passes both hosts; one would lose its VFs."""
        strict = {'extra_specs': base.PCI_STRICT}
        for kwargs, of_host, passes in (
                ({}, [self.CARD], False),
                ({}, [self.CARD, self.CARD], True),
                # A PF of which Nova takes the VF that the port needs.
                ({}, [self.CARD, self.CARD._replace(vfs=0)], False),
                ({'pf_first': False},
                 [self.CARD, self.CARD._replace(vfs=0)], True),
                ({'numa': False}, [self.CARD], False),
                ({'numa': False}, [self.CARD, self.CARD], True),
                (strict, [self.CARD], False),
                (strict, [self.CARD, self.CARD], True)):
            host, spec = self.host(*of_host), self.spec(**kwargs)
            requests = spec.pci_requests.requests
            self.assertTrue(host.pci_stats.support_requests(requests, None))
            self.flags(expose_reasons='none')
            for enabled in (None, self.filters[:1], self.filters[2:3]):
                # PCINUMAAffinityFilter has no say without its key.
                if enabled == self.filters[2:3] and kwargs is not strict:
                    continue
                self.assertEqual(['host1'] * passes, self.passing(
                    [self.host(*of_host)], self.spec(**kwargs), enabled))
            self.assertEqual(passes, cards.claims(self.made, requests))

    def test_the_claim_decides_where(self):
        """It takes the NUMA node that Nova's filter finds first."""
        elsewhere = [self.CARD._replace(node=1, vfs=1)] * 2
        host = self.host(self.CARD._replace(vfs=7), *elsewhere)
        self.assertIn('the same card', self.refusal([host], self.spec()))
        self.assertEqual(['host1'], self.passing(
            [self.host(*elsewhere)], self.spec()))
