# SPDX-License-Identifier: Apache-2.0
"""Guests with a CPU thread policy."""

from nova import objects

from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.rules import threads as threads_rule
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.fit.numa import base as numa_base
from nfv_sched.tests.unit.fit.rules import base as rules_base


class TestThreads(base.JointTestCase):

    def test_guests_that_are_not_pinned(self):
        guest = objects.InstanceNUMATopology(cells=[objects.InstanceNUMACell(
            id=0, cpuset={0, 1}, pcpuset=set(), memory=512)])
        spec = strategies.request_spec(guest, None, {
            'hw:cpu_thread_policy': 'isolate'})
        topology = clouds.host_topology(switch=None, threads=2)
        self.assertEqual(['host1'], self.passing(
            [strategies.host_state(topology)], spec, self.filters[-1:]))


class TestRule(base.JointTestCase):
    def of(self, policy, cpus='dedicated', numa=True):
        """Whether it wants siblings, and cores; None if there is no rule."""
        guest = clouds.guest()
        guest.cells[0].cpu_policy = cpus
        guest.cells[0].cpu_thread_policy = policy
        spec = strategies.request_spec(guest if numa else None, None, {
            'hw:cpu_policy': cpus, 'hw:cpu_thread_policy': policy})
        for rule in rules_base.rules_of(spec):
            self.assertIsInstance(rule, threads_rule.ThreadsRule)
            self.assertFalse(rule.ours)
            return rule.siblings, rule.isolates
        return None

    def test_from_request(self):
        for policy, expected in (('prefer', None), ('require', (True, False)),
                                 ('isolate', (False, True))):
            self.assertEqual(expected, self.of(policy))
        self.assertIsNone(self.of('isolate', 'shared'))

    def test_guest_without_numa_topology(self):
        """The compute node gives it one, which Placement knows already."""
        self.assertEqual((True, False), self.of('require', numa=False))
        self.assertIsNone(self.of('isolate', numa=False))


class TestBroken(base.JointTestCase):
    """A guest that runs already; the cores of node 0 are 0-1 and 2-3."""

    def violation_reason(self, policy, *pins, others=()):
        host = clouds.host_topology(switch=None, threads=2)
        guest = clouds.guest(vcpus=len(pins))
        guest.cells[0].cpu_thread_policy = policy
        of_guest, = rules_base.rules_of(strategies.request_spec(
            guest, None, {'hw:cpu_policy': 'dedicated',
                          'hw:cpu_thread_policy': policy}))
        found = of_guest.violation_reason(None, numa_base.guest_on_host(
            numa_base.evaluation(host, guest)), numa_rule.Pinning(
                (0,), (pins,), frozenset(others)))
        return found and str(found)

    def test_require(self):
        for pins in ((0, 1), (2,), (0, 1, 3), (0, 1, 2, 3)):
            self.assertIsNone(self.violation_reason('require', *pins), pins)
        self.assertEqual(
            'hw:cpu_thread_policy=require: vCPUs on sibling threads needed, '
            '2 are alone on their core',
            self.violation_reason('require', 0, 2))

    def test_isolate(self):
        self.assertIsNone(self.violation_reason('isolate', 0, 3))
        self.assertIsNone(self.violation_reason('isolate', 0, others=(2, 3)))
        for pins, others in (((0, 1), ()), ((0,), (1,)), ((0, 2), (3,))):
            self.assertEqual(
                'hw:cpu_thread_policy=isolate: cores of its own needed, one '
                'is shared',
                self.violation_reason('isolate', *pins, others=others))
