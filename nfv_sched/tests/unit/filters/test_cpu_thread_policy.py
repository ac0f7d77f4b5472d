# SPDX-License-Identifier: Apache-2.0
"""The filter of CPU thread policies."""

from nfv_sched.filters import cpu_thread_policy
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestCPUThreadPolicyFilter(base.JointTestCase):

    def setUp(self):
        super().setUp()
        self.filters = [cpu_thread_policy.CPUThreadPolicyFilter()]

    def spec(self, policy, **extra_specs):
        guest = clouds.guest()
        guest.cells[0].cpu_thread_policy = policy
        return strategies.request_spec(guest, None, extra_specs)

    def passes(self, host, spec):
        return self.filters[0].host_passes(host, spec)

    def test_requests_that_it_looks_at(self):
        for looked, policy in ((False, None), (False, 'prefer'),
                               (True, 'require'), (True, 'isolate')):
            self.assertEqual(looked, base.looks_at(
                self.filters[0], self.spec(policy)))

    def test_free_cpus_are_for_others_to_count(self):
        host = clouds.host(threads=2, free={0: 0, 1: 0})
        self.assertTrue(self.passes(host, self.spec('require')))
        self.assertEqual({}, host.limits)

    def test_host_without_numa_topology(self):
        host = clouds.host()
        host.numa_topology = None
        self.assertTrue(self.passes(host, self.spec('require')))

    def test_guest_without_numa_topology(self):
        """Nova makes one of the keys only on the compute node."""
        spec = clouds.spec(numa=False, extra_specs={
            'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': 'require'})
        self.assertEqual([False, True], [
            self.passes(clouds.host(threads=threads), spec)
            for threads in (1, 2)])

    def test_reasons(self):
        for policy, threads, text in (
                ('require', 1, 'a host with sibling threads needed (1 host)'),
                ('isolate', 2, 'a host without sibling threads needed, Nova '
                 'cannot keep the siblings of dedicated CPUs idle '
                 '(1 host)')):
            self.assertEqual(
                f'No valid host was found. hw:cpu_thread_policy={policy}: '
                f'{text}', self.refusal(
                    [clouds.host(threads=threads)], self.spec(policy)))
