# SPDX-License-Identifier: Apache-2.0
"""What becomes of a guest on a host."""

import itertools
import typing as ty

from nova import objects

from nfv_sched.base import reasons
from nfv_sched.fit.numa import decide
from nfv_sched.fit.rules import place
from nfv_sched.fit.rules import vswitch
from nfv_sched.tests import base as tests_base
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.fit.numa import base as numa_base


class TestNovaSearch(base.FilterTestCase):
    """Where Nova's search over permutations would break a promise."""

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

    def test_no_more_labels_than_needed(self):
        self.assertAccepted([], self.decide(switch(False), switch=(0, 1)))

    def test_one_of_two(self):
        """The first in the order of reasons."""
        for rules in itertools.permutations((switch(False), away(False))):
            decision = self.decide(*rules, physnets={'nfv_osd': (1,)})
            self.assertEqual(
                {'switch': 1.0, 'away': 0.0}, decision.degrees)
            self.assertEqual(1.0, decision.value)

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
