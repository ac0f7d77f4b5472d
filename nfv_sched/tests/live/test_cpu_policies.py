# SPDX-License-Identifier: Apache-2.0
"""Thread policies and shared vCPUs, by the pins of real claims.

compute-right has no hyperthreading.  The first core of each NUMA node is
shared; six dedicated CPUs are left.
"""

from nfv_sched.tests.live import base

THREADS = 'hw:cpu_thread_policy'
MIXED = {'hw:cpu_policy': 'mixed', 'hw:numa_nodes': '1',
         'hw:cpu_dedicated_mask': '^0', 'nfv:shared_vcpu': '0'}


class ThreadPolicyTest(base.LiveTestCase):

    def flavor_of(self, policy: str, vcpus: int):
        return self.flavor(vcpus, **base.pinned(**{THREADS: policy}))

    def pins(self, server) -> list[int]:
        """Host CPUs of the guest's vCPUs."""
        return sorted(cpu for node in self.nodes(server)
                      for cpu in node['cpu_pinning'].values())

    def test_require_without_hyperthreading(self):
        """Placement does not offer the host, so that no filter is asked."""
        for vcpus in (2, 3):
            self.boot_refused(
                self.flavor_of('require', vcpus), host=base.RIGHT)

    def test_require_takes_siblings(self):
        """CPU 2n and the next one are threads of one core."""
        server = self.boot(self.flavor_of('require', 4), host=base.LEFT)
        pins = self.pins(server)
        self.assertEqual(4, len(pins))
        self.assertEqual(2, len({cpu // 2 for cpu in pins}))

    def test_require_with_an_odd_number(self):
        server = self.boot(self.flavor_of('require', 3), host=base.LEFT)
        self.assertEqual(3, len(self.pins(server)))
        self.assertEqual(2, len({cpu // 2 for cpu in self.pins(server)}))

    def test_isolate_without_hyperthreading(self):
        """As many as there are cores for, and no more."""
        flavor = self.flavor_of('isolate', 3)
        for _ in range(4):
            self.boot(flavor, host=base.RIGHT)
        self.boot_refused(flavor, host=base.RIGHT)

    def test_isolate_goes_where_it_can(self):
        """Only one host has no sibling threads."""
        server = self.boot(self.flavor_of('isolate', 2))
        self.assertEqual(base.RIGHT, server.compute_host)

    def test_isolate_with_hyperthreading(self):
        self.boot_refused(self.flavor_of('isolate', 2), host=base.LEFT)

    def test_prefer(self):
        for host in (base.LEFT, base.RIGHT):
            server = self.boot(self.flavor_of('prefer', 2), host=host)
            self.assertEqual(2, len(self.pins(server)))


class SharedVCPUTest(base.LiveTestCase):

    def test_shared_vcpu(self):
        server = self.boot(self.flavor(3, **MIXED))
        node, = self.nodes(server)
        self.assertEqual([0, 1, 2], sorted(node['vcpu_set']))
        self.assertEqual({'1', '2'}, set(node['cpu_pinning']))

    def test_with_the_switch(self):
        flavor = self.flavor(**MIXED, **{base.VSWITCH: 'strict'})
        for host in (base.LEFT, base.RIGHT):
            self.assert_strict(self.boot(flavor, host=host))

    def test_dedicated_guest(self):
        message = self.boot_refused(self.flavor(
            **base.pinned(**{'nfv:shared_vcpu': '0'})))
        self.assertIn('nfv:shared_vcpu=0', message)

    def test_thread_policies(self):
        for policy in ('isolate', 'require'):
            message = self.boot_refused(
                self.flavor(**MIXED, **{THREADS: policy}))
            self.assertIn('nfv:shared_vcpu=0', message)
            self.assertIn(THREADS, message)
