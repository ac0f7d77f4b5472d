# SPDX-License-Identifier: Apache-2.0
"""Whether a host can take a guest, whoever asks."""

from nfv_sched.base import reasons
from nfv_sched.fit import decide
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit import rules
from nfv_sched.fit.rules import shared_vcpu
from nfv_sched.fit.rules import threads
from nfv_sched.fit.rules import vswitch
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import notes
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.fit.numa import base as numa_base


def reason(decision):
    return decision.reason and reasons.resolve(decision.reason)


def limit(name):
    return {'shared_vcpus_per_core': 1.0}[name]


class DecideTestCase(base.TestCase):

    def read(self, spec):
        note = notes.note_of(spec)
        self.request = note.read(spec)
        self.terms = active_rules.for_request(note, self.request)
        return self.request, self.terms

    def resources(self, numa_topology, devices=None, cpu_ratio=1.0,
                  ram_ratio=1.0, **more):
        """Return the resources of a host; devices are free VFs, by node."""
        pools = None
        if devices is not None:
            pools = clouds.pci_stats(numa_topology, devices).pools
        return decide.HostResources(
            numa_topology, cpu_ratio, ram_ratio, pools, **more)

    def decide(self, spec, devices=None, mapping=None, **host):
        request, terms = self.read(spec)
        self.host = self.resources(clouds.host_topology(**host), devices)
        return decide.decide(self.host, request, mapping, terms)

    def assertRefused(self, filters, order, decision):
        self.assertFalse(decision.accepted)
        self.assertEqual(filters, decision.refused_by)
        self.assertEqual(order, reason(decision).order)


class DecideTest(DecideTestCase):

    def setUp(self):
        super().setUp()
        self.flags(
            group='filter_scheduler', enabled_filters=rules.filters())

    def test_what_the_host_does_not_report(self):
        for spec in clouds.spec(), clouds.spec('strict'):
            request, terms = self.read(spec)
            for host in (self.resources(None),
                         self.resources(clouds.host_topology(),
                                        cpu_ratio=None),
                         self.resources(clouds.host_topology(),
                                        ram_ratio=None)):
                self.assertRefused(
                    numa_decide.FIT, reasons.HOST,
                    decide.decide(host, request, {}, terms))

    def test_guest_without_numa_topology(self):
        self.assertTrue(self.decide(clouds.spec(numa=False)).accepted)
        request, terms = self.read(clouds.spec(numa=False))
        self.assertTrue(decide.decide(
            self.resources(None), request, {}, terms).accepted)

    def test_ratio_lowered_by_a_rule(self):
        """The rule is named if Nova's ratio would do."""
        host = clouds.host_topology()
        for cell in host.cells:
            cell.cpuset = {100 + cell.id}
            cell.siblings.append(cell.cpuset)
            cell.cpu_usage = 1
        guest = clouds.guest()
        guest.cells[0].cpuset = {0}
        guest.cells[0].pcpuset = {1}
        guest.cells[0].cpu_policy = 'mixed'
        spec = clouds.spec(extra_specs={
            'hw:cpu_policy': 'mixed', 'nfv:shared_vcpu': '0'})
        spec.numa_topology = guest
        request, terms = self.read(spec)
        self.assertRefused(
            shared_vcpu.SharedVCPURule.filters,
            shared_vcpu.SharedVCPURule.order, decide.decide(
                self.resources(host, cpu_ratio=2.0, limit=limit),
                request, {}, terms))
        self.assertTrue(decide.decide(
            self.resources(host, cpu_ratio=2.0), request, {},
            terms).accepted)


class PlainTest(DecideTestCase):
    """Requests for which Nova's own rules are all there is."""

    def test_devices_of_like_hosts(self):
        """They are read once; the figures in a reason are each host's own."""
        shared = {}
        request, terms = self.read(
            clouds.spec(devices=[clouds.pci_request(9)]))
        texts = set()
        for free in 1, 2:
            host = self.resources(
                clouds.host_topology(), {0: free}, shared=shared)
            decision = decide.decide(host, request, {}, terms)
            texts.add(reason(decision))
        self.assertEqual(2, len(texts))
        for _ in range(2):
            host = self.resources(
                clouds.host_topology(), {0: 30}, shared=shared)
            self.assertTrue(
                decide.decide(host, request, {}, terms).accepted)
        self.assertEqual(3, len(shared))

    def test_a_closer_look(self):
        """Nova's claim would search for too long."""
        self.flags(group='filter_scheduler',
                   enabled_filters=['NFVTopologyFilter'])
        numa_topology = clouds.host_topology(nodes=16)
        for cell in numa_topology.cells[:8]:
            cell.mempages = numa_base.pages(kb4=0)
        request, terms = self.read(clouds.spec(cells=8, vcpus=1))
        self.assertRefused(
            numa_decide.FIT, reasons.ENFORCEMENT, decide.decide(
                self.resources(numa_topology), request, {}, terms))


class ExpectedCellsTest(DecideTestCase):

    def expected(self, spec, **host):
        self.flags(group='filter_scheduler', enabled_filters=[
            'NFVTopologyFilter', 'VSwitchNUMAAffinityFilter'])
        decision = self.decide(spec, **host)
        self.assertTrue(decision.accepted)
        if self.request.guest is not None:
            self.host.read()
            self.host.evaluate(self.request, self.terms.sorting)
        return decide.expected_cells(self.host, self.request, {}, decision)

    def test_where_the_guest_comes_to_be(self):
        foo = clouds.network('foo')
        tunnel = clouds.network(tunneled=True)
        for spec, host, cells in (
                (clouds.spec(), {}, (0,)),
                (clouds.spec('strict'), {}, (1,)),
                (clouds.spec(network=foo), {'physnets': {'foo': (1,)}}, (1,)),
                (clouds.spec(network=tunnel), {'tunnel': (1,)}, (1,)),
                (clouds.spec(network=tunnel, move=True),
                 {'tunnel': (0,), 'free': {0: 1}}, (1,)),
                (clouds.spec(devices=[clouds.pci_request(1, 'required')]),
                 {'devices': {1: 1}}, (1,))):
            self.assertEqual(cells, self.expected(spec, **host))

    def test_guest_without_numa_topology(self):
        self.assertIsNone(self.expected(clouds.spec(numa=False)))

    def test_no_limits(self):
        """The claim does not know of the networks then."""
        spec = clouds.spec(network=clouds.network('foo'))
        self.assertEqual((1,), self.expected(
            spec, physnets={'foo': (1,)}))
        self.assertEqual((0,), decide.expected_cells(
            self.host, self.request, {}, None))


class BrokenRulesTest(DecideTestCase):
    def violation_reason(self, rules, guest=None, chosen=None, **more):
        """Orders of the rules that are not kept."""
        pinning = None if chosen is None else numa_rule.Pinning(
            chosen, [()] * len(chosen), frozenset())
        return [each.order for each in decide.broken_rules(
            rules, topology.host_topology(clouds.host_topology()),
            numa_base.NAMES, guest and topology.guest(guest), pinning,
            **more)]

    def test_where_the_server_is(self):
        rule = vswitch.VSwitchRule('switch', True)
        for chosen, orders in (((1,), []), ((0,), [rule.order])):
            self.assertEqual(orders, self.violation_reason(
                [rule], clouds.guest(), chosen))

    def test_never(self):
        rule = threads.ThreadsRule('threads', True, siblings=True)
        for networks_known in True, False:
            self.assertEqual([rule.order], self.violation_reason(
                [rule], clouds.guest(), (0,),
                networks_known=networks_known))

    def test_what_the_host_does_not_declare(self):
        """It may be known from the networks of the server."""
        rule = vswitch.VSwitchRule('switch', True)
        host = topology.host_topology(clouds.host_topology(switch=None))
        pinning = numa_rule.Pinning((0,), [()], frozenset())
        for networks_known in True, False:
            self.assertEqual(networks_known, bool(list(decide.broken_rules(
                [rule], host, numa_base.NAMES,
                topology.guest(clouds.guest()), pinning,
                networks_known=networks_known))))

    def test_guest_without_numa_topology(self):
        rule = vswitch.VSwitchRule('switch', True)
        self.assertEqual([rule.order], self.violation_reason([rule]))
