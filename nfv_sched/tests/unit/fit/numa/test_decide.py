# SPDX-License-Identifier: Apache-2.0
"""What becomes of a guest on a host."""

import itertools
import typing as ty

from nova import objects
from nova.virt import hardware
import testtools

from nfv_sched.base import reasons
from nfv_sched.fit.numa import decide
from nfv_sched.fit.rules import place
from nfv_sched.fit.rules import vswitch
from nfv_sched.nova import scheduler
from nfv_sched.tests import base as tests_base
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.fit.numa import base as numa_base


class TestNovaSearch(base.FilterTestCase):
    """Where Nova's search over permutations would break a promise."""

    def test_labels_that_lead_to_stale_pins(self):
        # Labels on nodes 1 and 3 of an empty host make Nova choose node 3
        # with the pins of node 2, which cannot be recorded.
        self.flags(expose_reasons='none')
        two = clouds.guest(cells=2)
        for switch in itertools.combinations(range(4), 2):
            host = clouds.host(nodes=4, switch=switch)
            spec = clouds.spec('strict', cells=2)
            if not self.passing([host], spec):
                continue
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            placed = hardware.numa_fit_instance_to_host(
                strategies.clone(host.numa_topology), two.obj_clone(),
                provider_mapping=None, limits=limits)
            self.assertEqual(set(switch), {c.id for c in placed.cells})
            hardware.numa_usage_from_instance_numa(
                host.numa_topology, placed)

    def test_prefer_where_nova_mistakes_the_guest_nodes(self):
        # No host node has room for the third guest node; Nova's search takes
        # another one for it.
        guest = clouds.guest(cells=3)
        for cell, cpus in zip(guest.cells, ({0, 1}, {2}, {3, 4, 5, 6})):
            cell.pcpuset = cpus
        free = {node: 3 for node in range(3)}
        prefer = {'nfv:vswitch_numa_affinity': 'prefer'}
        for enabled, specs in (
                ([self.stock], {}), ([self.topology], {}),
                ([self.topology, self.vswitch], prefer),
                ([self.vswitch], prefer)):
            host = clouds.host(nodes=3, free=free)
            spec = strategies.request_spec(guest.obj_clone(), None, specs)
            self.assertEqual(['host1'], self.passing([host], spec, enabled))
            self.assertEqual(3, len(self.node_of(host, guest.obj_clone())))

    def test_unlike_guest_nodes_may_be_taken_for_each_other(self):
        guest = clouds.guest(cells=2)
        guest.cells[1].pcpuset = {2}
        host = clouds.host(nodes=3, switch=(0, 1), node_labels=False)
        for specs in ({'nfv:vswitch_numa_affinity': 'strict'},
                      {'nfv:numa_node.1': '0'}):
            self.refusal([host], strategies.request_spec(guest, None, specs))

    def test_large_pages_of_several_sizes(self):
        # Node 0 has 4 KiB and 2 MiB pages, node 1 only 2 MiB: "large" fits
        # node 1 once Nova has narrowed it to 2 MiB on node 0.
        topology = clouds.host_topology(switch=(0,))
        pages = [objects.NUMAPagesTopology(
            size_kb=size, total=1024, used=0, reserved=0)
            for size in (4, 2048)]
        topology.cells[0].mempages = pages
        topology.cells[1].mempages = pages[1:]
        guest = clouds.guest()
        guest.cells[0].pagesize = -2
        for specs in ({'nfv:vswitch_numa_affinity': 'strict'},
                      {'nfv:numa_node.0': '0'}):
            host = strategies.host_state(strategies.clone(topology))
            self.assertEqual(['host1'], self.passing(
                [host], strategies.request_spec(guest, None, specs)))
            self.assertTrue(
                host.limits['numa_topology'].network_metadata.physnets)


class Networks(ty.NamedTuple):
    physnets: frozenset[str] = frozenset()
    tunneled: bool = False
    tunnel_uncertain: bool = False


NO_NETWORKS = Networks()


def terms(*rules, **more):
    return decide.Terms(rules, **{
        'steered': True, 'names': numa_base.NAMES, **more})


def switch(strict=True):
    return vswitch.VSwitchRule('switch', strict)


def away(strict=True):
    return place.PlaceRule('away', strict, place='osd', away=True)


class DecideTestCase(tests_base.TestCase):

    def decide(self, *rules, guest=None, networks=NO_NETWORKS, given=None,
               held=None, how=None, **host):
        """The decision about a host with the switch on node 1."""
        self.found = numa_base.evaluation(
            clouds.host_topology(**host), guest or clouds.guest())
        devices = given and numa_base.devices(self.found, *given)
        return decide.decide(
            self.found, networks, terms(*rules, **how or {}), devices,
            held=held)

    def assertAccepted(self, labels, decision, strict=()):
        self.assertTrue(decision.accepted, decision)
        self.assertEqual((set(labels), set(strict)), (
            decision.labels, decision.strict_labels))

    def assertRefused(self, by, reason, decision):
        self.assertFalse(decision.accepted)
        self.assertEqual(by, decision.refused_by)
        self.assertEqual(reason, str(reasons.resolve(decision.reason)))


class TestStrict(DecideTestCase):

    def test_held_by_the_label(self):
        self.assertAccepted(['nfv_vswitch'], self.decide(switch()),
                            ['nfv_vswitch'])

    def test_held_by_node_labels(self):
        self.assertAccepted(['nfv_node1'], self.decide(
            away(), physnets={'nfv_osd': (0,)}), ['nfv_node1'])

    def test_no_rule_is_left_anything(self):
        self.assertRefused(
            decide.FIT, 'NUMA topology: 2 dedicated CPUs on one NUMA node '
            'needed, 1 free', self.decide(switch(), free={0: 1, 1: 1}))

    def test_the_rule_that_is_left_nothing_refuses(self):
        places = {'nfv_osd': (1,)}
        for rules, by in (((switch(), away()), away()),
                          ((away(), switch()), switch())):
            decision = self.decide(*rules, physnets=places)
            self.assertFalse(decision.accepted)
            self.assertEqual(by.filters, decision.refused_by)

    def test_the_rule_that_lacks_something_refuses(self):
        self.assertRefused(
            switch().filters, 'switch: a host that declares where its '
            'virtual switch runs needed, no label or network affinity',
            self.decide(switch(), switch=None))

    def test_not_held(self):
        """It would come true on the host as it is, and only there."""
        host = {'node_labels': False, 'physnets': {'nfv_osd': (0,)},
                'switch': None, 'free': {0: 2}}
        self.assertRefused(
            away().filters, 'away: labels nfv_node0, nfv_node1, ... needed '
            'to hold the server on its host NUMA nodes, the host declares '
            'none for them', self.decide(away(), **host))
        enough = {'predicted_is_enough': True}
        self.assertAccepted([], self.decide(away(), how=enough, **host))
        host['free'] = {1: 2}
        self.assertFalse(self.decide(away(), how=enough, **host).accepted)

    def test_limits_that_are_lost(self):
        lost = {'limits_lost': True}
        self.assertRefused(
            switch().filters, 'switch: a claim that keeps it without labels '
            'needed for a live migration, this Nova loses them: migrate the '
            'server cold',
            self.decide(switch(), how=lost))
        self.assertTrue(
            self.decide(switch(), how=lost, switch=(0, 1)).accepted)

    @testtools.skipIf(scheduler.pinned_guests_need_cell_memory(),
                      'this Nova looks at no pages of a server without a size')
    def test_a_claim_that_would_take_long(self):
        guest = clouds.guest(cells=8, vcpus=1)
        host = clouds.host_topology(nodes=16)
        for cell in host.cells[:8]:
            cell.mempages[0].used = cell.mempages[0].total
        decision = decide.decide(
            numa_base.evaluation(host, guest), NO_NETWORKS, terms())
        self.assertFalse(decision.accepted)
        self.assertIn('a claim of reasonable length needed',
                      str(reasons.resolve(decision.reason)))
        self.assertTrue(decide.decide(
            numa_base.evaluation(clouds.host_topology(nodes=16), guest),
            NO_NETWORKS, terms()).accepted)

    def test_strict_text(self):
        """The rules in the order of reasons, whatever that of filters."""
        self.assertTrue(terms(away(False), switch()).strict)
        self.assertFalse(terms(away(False), switch(False)).strict)
        places = {'nfv_osd': (0,)}
        decision = self.decide(
            away(), switch(), how={'limits_lost': True}, physnets=places)
        self.assertEqual(
            'switch, away', reasons.resolve(decision.reason).policy)


class TestPreferred(DecideTestCase):

    def test_come_true(self):
        decision = self.decide(switch(False))
        self.assertAccepted(['nfv_vswitch'], decision)
        self.assertEqual({'switch': 1.0}, decision.degrees)
        self.assertEqual(1.0, decision.value)

    def test_no_more_labels_than_needed(self):
        self.assertAccepted([], self.decide(switch(False), switch=(0, 1)))

    def test_not_possible(self):
        for host in ({'free': {1: 1}}, {'switch': None}):
            decision = self.decide(switch(False), **host)
            self.assertAccepted([], decision)
            self.assertEqual({'switch': 0.0}, decision.degrees)

    def test_in_part(self):
        decision = self.decide(switch(False), guest=clouds.guest(cells=2),
                               nodes=4, switch=(2,))
        self.assertEqual({'switch': 0.5}, decision.degrees)
        self.assertAccepted(['nfv_vswitch'], decision)

    def test_one_of_two(self):
        """The first in the order of reasons."""
        for rules in itertools.permutations((switch(False), away(False))):
            decision = self.decide(*rules, physnets={'nfv_osd': (1,)})
            self.assertEqual(
                {'switch': 1.0, 'away': 0.0}, decision.degrees)
            self.assertEqual(1.0, decision.value)

    def test_beside_what_must_be(self):
        decision = self.decide(
            switch(False), away(), physnets={'nfv_osd': (1,)})
        self.assertAccepted(['nfv_node0'], decision, ['nfv_node0'])
        self.assertEqual(0.0, decision.degrees['switch'])

    def test_not_steered(self):
        """Nothing is told to the claim; hosts are ranked."""
        decision = self.decide(switch(False), how={'steered': False})
        self.assertAccepted([], decision)
        self.assertEqual({'switch': 0.0}, decision.degrees)


class TestHeld(DecideTestCase):
    """Another server of the request is on the host already."""

    def test_strict(self):
        """They share the labels, or the host is refused."""
        places = {'nfv_osd': (0,)}
        held = self.decide(away(), nodes=3, physnets=places)
        self.assertAccepted(['nfv_node1'], held, ['nfv_node1'])
        self.assertAccepted(['nfv_node1'], self.decide(
            away(), nodes=3, physnets=places, held=held), ['nfv_node1'])
        self.assertRefused(
            away().filters, 'away: the NUMA nodes of the other servers of '
            'the request on this host needed, full', self.decide(
                away(), nodes=3, physnets=places, free={1: 1}, held=held))

    def test_preferred(self):
        """The limits of the other are lost, and the decision says so."""
        held = self.decide(switch(False))
        again = self.decide(switch(False), held=held)
        self.assertAccepted(['nfv_vswitch'], again)
        self.assertIsNone(again.displaces)
        spilt = self.decide(switch(False), free={1: 1}, held=held)
        self.assertAccepted([], spilt)
        self.assertIs(held, spilt.displaces)


class TestNetworks(DecideTestCase):

    def test_untrue_tunnel(self):
        """On a move it is not known to be used, and only preferred."""
        uncertain = Networks(tunneled=True, tunnel_uncertain=True)
        for tunnel, free, ignored in (
                ((1,), {}, False), ((0,), {0: 1}, True)):
            decision = self.decide(
                networks=uncertain, tunnel=tunnel, free=free)
            self.assertAccepted([], decision)
            self.assertEqual(ignored, decision.ignore_tunnel)
        self.assertFalse(self.decide(
            networks=Networks(tunneled=True), tunnel=(0,),
            free={0: 1}).accepted)
        self.assertTrue(self.decide(
            switch(), networks=uncertain, tunnel=(0,)).ignore_tunnel)
