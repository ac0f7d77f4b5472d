# SPDX-License-Identifier: Apache-2.0
"""Guests with one vCPU on shared CPUs."""

from nova import objects

from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.numa import topology
from nfv_sched.fit.rules import shared_vcpu
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.fit.numa import base as numa_base
from nfv_sched.tests.unit.fit.rules import base as rules_base


class TestSharedVCPU(base.SharedVCPUTestCase):

    def test_no_shared_cpus_on_the_node(self):
        # Nova's search takes one guest cell for another, and would accept.
        host = self.host()
        for cell in host.numa_topology.cells:
            cell.cpuset = set()
        guest = objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=index, cpuset=shared, pcpuset=dedicated, memory=512,
                cpu_policy='mixed')
            for index, (shared, dedicated) in enumerate((
                (set(), {1}), ({0}, {2})))])
        self.refusal([host], strategies.request_spec(guest, None, self.KEYS))


class SharedVCPUTest(base.EnforcementTestCase):
    """A shared vCPU in a guest of several NUMA nodes."""

    def test_only_some_host_nodes_have_shared_cpus(self):
        topology = clouds.host_topology(nodes=4, switch=None)
        for cell in topology.cells:
            cell.network_metadata = objects.NetworkMetadata(
                physnets=set(), tunneled=False)
        shared = topology.cells[2]
        shared.cpuset, shared.pcpuset = {8, 9}, {10, 11}
        guest = objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=number, cpuset=cpuset, pcpuset=pcpuset, memory=512,
                cpu_policy='mixed')
            for number, (cpuset, pcpuset) in enumerate(
                (({0}, {1, 2}), (set(), {3, 4})))])
        host = strategies.host_state(topology, 16.0, 1.0)
        spec = strategies.request_spec(
            guest, None, {'nfv:shared_vcpu': '0', 'hw:cpu_policy': 'mixed'})
        self.assertEqual(['host1'], self.passing([host], spec))
        nodes, _devices = self.claimed(host, spec)
        self.assertEqual(2, nodes[0])


class TestRule(base.SharedVCPUTestCase):
    def rule(self):
        found, = rules_base.rules_of(self.spec())
        self.assertIsInstance(found, shared_vcpu.SharedVCPURule)
        return found

    def test_of(self):
        rule = self.rule()
        self.assertEqual(('nfv:shared_vcpu=0', 0, 1, True), (
            rule.text, rule.cell, rule.shared, rule.strict))

    def test_ratio(self):
        """So many vCPUs for each core, and not more than Nova allows."""
        rule = self.rule()
        for threads, ratio, limit, expected in (
                (1, 16.0, 4.0, 4.0), (2, 16.0, 4.0, 2.0),
                (1, 2.0, 4.0, 2.0), (1, 16.0, float('inf'), 16.0)):
            view = topology.host_topology(
                self.host(threads=threads).numa_topology)
            asked = []
            self.assertEqual(expected, rule.cpu_ratio(
                view, ratio, lambda name: asked.append(name) or limit))
            self.assertEqual(['shared_vcpus_per_core'], asked)

    def test_broken(self):
        """Whether there is room does not matter: it is there."""
        host = self.host((99, 99)).numa_topology
        host.cells[1].cpuset = set()
        guest_on_host = numa_base.guest_on_host(numa_base.evaluation(
            host, self.spec().numa_topology))
        for cell, said in (
                (0, None),
                (1, 'nfv:shared_vcpu=0: 1 shared CPUs on its NUMA node '
                    'needed, node 1 has 0')):
            broken = self.rule().violation_reason(
                None, guest_on_host, numa_rule.Pinning((cell,), ((),)))
            self.assertEqual(said, broken and str(broken))

    def test_left(self):
        """Room beside the guest on the host cell that it takes."""
        rule = self.rule()
        found = numa_base.evaluation(
            self.host((3, 8)).numa_topology, self.spec().numa_topology, 2.0)
        for chosen, left in (((0,), 0.5), ((1,), 0.0), (None, 0.0)):
            self.assertEqual(left, rule.left(found, chosen))
