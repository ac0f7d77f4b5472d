# SPDX-License-Identifier: Apache-2.0
"""The filter in place of Nova's NUMATopologyFilter."""

import fixtures

from nfv_sched.filters import nfv_topology
from nfv_sched.tests import cards
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestInPlaceOfNovas(base.FilterTestCase):
    """It does what Nova's filter does, where nothing else is asked."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('nova.virt.hardware'))

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
        host.numa_topology = None
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(numa=False)))


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
