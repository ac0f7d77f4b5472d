# SPDX-License-Identifier: Apache-2.0
"""Guests with their PCI devices."""

import functools

import fixtures
from nova import objects
from nova.pci import request as pci_request
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from oslo_serialization import jsonutils

from nfv_sched.filters import nfv_topology
from nfv_sched.fit.numa import rule as numa_rule
from nfv_sched.fit.rules import pci
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit.fit.numa import base as numa_base
from nfv_sched.tests.unit.fit.rules import base as rules_base

STRICT = base.PCI_STRICT
PREFER = base.PCI_PREFER


def set_alias(test, policy, name='vf'):
    test.flags(alias=[jsonutils.dumps({
        'name': name, 'vendor_id': '8086', 'product_id': '1515',
        'numa_policy': policy})], group='pci')
    nova_scheduler.forget_pci_aliases()
    test.addCleanup(nova_scheduler.forget_pci_aliases)


class TestPCI(base.PCITestCase):

    def test_strict_with_fewer_devices_than_asked_for(self):
        # Nova leaves out the provider on the other node, and the guest gets
        # one device instead of two.
        spec = self.spec(STRICT, 'required', 2)
        request = spec.pci_requests.requests[0]
        host = base.provide(clouds.host(devices={0: 2, 1: 2}), spec, ())
        host.allocation_candidates = [{'allocations': {}, 'mappings': {
            f'{request.request_id}-0': ['provider0'],
            f'{request.request_id}-1': ['provider1']}}]
        self.refusal([host], spec)

    def test_the_claim_of_a_move_knows_the_alias_only(self):
        # The policy of the flavor is in the request, but the claim makes the
        # requests anew from the aliases.
        for alias, policy, passes in (
                ('required', 'required', True), ('legacy', 'required', True),
                ('preferred', 'required', False),
                ('socket', 'required', False), (None, 'required', False),
                ('preferred', 'preferred', False)):
            set_alias(self, alias or 'required', 'vf' if alias else 'other')
            host = clouds.host(devices={0: 2, 1: 1})
            for cell in host.numa_topology.cells:
                cell.socket = 0
            spec = self.spec(STRICT, policy, move=True)
            if passes:
                self.assertEqual(['host1'], self.passing([host], spec))
            else:
                self.assertIn('aliases', self.refusal([host], spec))

    def test_placement_does_not_fix_the_device_of_a_move(self):
        set_alias(self, 'preferred')
        spec = self.spec(STRICT, 'preferred', move=True)
        host = base.provide(
            clouds.host(devices={0: 1, 1: 1}), spec, (0, 1))
        self.assertIn('aliases', self.refusal([host], spec))

    def test_local_candidate_first(self):
        # One node has the devices of two kinds, the other those of one.
        spec = self.spec(PREFER, 'preferred')
        other = clouds.pci_request(1, 'preferred', product_id='1572')
        spec.pci_requests.requests.append(other)
        request = spec.pci_requests.requests[0]
        host = clouds.host(devices={0: 1, 1: 1})
        host.pci_stats.pools.append(dict(
            host.pci_stats.pools[1], product_id='1572'))
        for number, pool in enumerate(host.pci_stats.pools):
            pool['rp_uuid'] = f'provider{number}'
        host.allocation_candidates = [
            {'allocations': {}, 'mappings': {
                f'{request.request_id}-0': [f'provider{number}'],
                f'{other.request_id}-0': ['provider2']}}
            for number in (0, 1)]
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual(2, len(host.allocation_candidates))
        self.assertEqual(([1], [1, 1]), self.claimed(host, spec))

    def test_preferred_and_several_candidates(self):
        """What Nova's search for one leaves behind counts for the next."""
        host = objects.NUMATopology(cells=[objects.NUMACell(
            id=node, cpuset={2 * node, 2 * node + 1}, pcpuset=set(),
            memory=8192, cpu_usage=0, memory_usage=0, pinned_cpus=set(),
            siblings=[{2 * node}, {2 * node + 1}], mempages=pages, socket=0)
            for node, pages in enumerate(([], [], [
                objects.NUMAPagesTopology(
                    size_kb=4, total=8192 * 256, used=0, reserved=0)]))])
        guest = objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=index, cpuset=cpuset, pcpuset=set(), memory=128)
            for index, cpuset in enumerate(({0}, {1, 2}))])
        for topology in (numa_topology_filter.NUMATopologyFilter(),
                         nfv_topology.NFVTopologyFilter()):
            state = strategies.host_state(
                strategies.clone(host), 4.0, 1.5, candidates=[
                    {'allocations': {}, 'mappings': {'': [strategies.ROOT]}}
                    for _ in range(3)])
            state.pci_stats = clouds.pci_stats(state.numa_topology, {0: 1})
            spec = strategies.request_spec(
                strategies.clone(guest), None, {},
                pci=[clouds.pci_request(policy='preferred')])
            self.assertTrue(topology.host_passes(state, spec))
            self.assertTrue(pci_passthrough_filter.PciPassthroughFilter()
                            .host_passes(state, spec))

    def test_guest_without_numa_topology(self):
        self.assertIn('set hw:numa_nodes', self.refusal(
            [clouds.host(devices={0: 1})], self.spec(STRICT, numa=False)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host(devices={0: 1}, nodes=1)],
            self.spec(STRICT, numa=False)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host(devices={0: 1})], self.spec(PREFER, numa=False)))


class MoveTestCase(base.EnforcementTestCase):

    def assert_move(self, policy, devices, passes, reason):
        host = clouds.host(devices=devices)
        spec = clouds.spec(extra_specs=STRICT, move=True, devices=[
            clouds.pci_request(policy=policy)])
        if passes:
            self.assertEqual(['host1'], self.passing([host], spec))
        else:
            self.assertIn(reason, self.refusal([host], spec))


class UnshelveTest(MoveTestCase):
    """Unshelving follows the policy of the request, moves that of the alias.

    The scheduler cannot tell them apart.
    """

    def test_the_weaker_policy_counts(self):
        for alias in ('required', 'socket'):
            set_alias(self, alias)
            for policy, devices, passes in (
                    ('legacy', {0: 1, 1: 1, None: 1}, False),
                    ('preferred', {0: 1, 1: 1}, False),
                    ('legacy', {0: 1, 1: 1}, True),
                    ('required', {0: 1, 1: 1, None: 1}, True)):
                self.assert_move(policy, devices, passes,
                                 'nfv:pci_numa_affinity=strict')


class AliasReaderTest(MoveTestCase):
    """Nova's reader of aliases under either of its names.

    It is private, and has no cache, on Nova 29 and until 31.3.0.
    """

    NAMES = ('get_alias_from_config', '_get_alias_from_config')

    def test_names(self):
        reader = next(getattr(pci_request, name) for name in self.NAMES
                      if hasattr(pci_request, name))
        plain = getattr(reader, '__wrapped__', reader)
        self.addCleanup(nova_scheduler.forget_pci_aliases)
        for name, function in (
                ('get_alias_from_config', functools.cache(plain)),
                ('_get_alias_from_config', plain)):
            for each in self.NAMES:
                if each == name or hasattr(pci_request, each):
                    self.useFixture(fixtures.MonkeyPatch(
                        f'nova.pci.request.{each}',
                        function if each == name
                        else fixtures.MonkeyPatch.delete))
            self.assertEqual(
                [name], [each for each in self.NAMES
                         if hasattr(pci_request, each)])
            for policy, passes in (('required', True), ('preferred', False)):
                set_alias(self, policy)
                self.assertEqual(
                    policy, nova_scheduler.pci_alias_policy('vf'))
                self.assert_move('required', {0: 2, 1: 1}, passes, 'aliases')


class TestRule(base.PCITestCase):
    def guest_on_host(self, free, count=1, policy='preferred'):
        found = numa_base.evaluation(clouds.host_topology(), clouds.guest())
        return numa_base.guest_on_host(found, free and numa_base.devices(
            found, free, clouds.pci_request(count, policy)))

    def test_of(self):
        """A key of ours, or a preference of Nova's own."""
        for keys, policy, expected in (
                (STRICT, 'legacy', ('nfv:pci_numa_affinity=strict', True,
                                    True)),
                ({'hw:wrs:pci_numa_affinity': 'prefer'}, 'required',
                 ('hw:wrs:pci_numa_affinity=prefer', False, True)),
                ({}, 'preferred', ('hw:pci_numa_affinity_policy=preferred',
                                   False, False)),
                ({}, 'required', None), ({}, 'socket', None),
                ({'hw:pci_numa_affinity_policy': 'required'}, 'required',
                 None)):
            found = [(rule.text, rule.strict, rule.ours)
                     for rule in rules_base.rules_of(self.spec(keys, policy))
                     if isinstance(rule, pci.PCIRule)]
            self.assertEqual([expected] if expected else [], found)

    def test_no_devices(self):
        self.assertEqual(
            (), rules_base.rules_of(clouds.spec(extra_specs=STRICT)))

    def test_degree(self):
        """The part of the devices that are near."""
        rule, = rules_base.rules_of(self.spec(PREFER, 'preferred', 4))
        for free, degrees in (({0: 4}, [1.0, 0.0]), ({0: 1, 1: 3},
                                                     [0.25, 0.75])):
            guest_on_host = self.guest_on_host(free, 4)
            self.assertEqual(degrees, [
                rule.degree(None, guest_on_host, (cell,))
                for cell in range(2)])
            self.assertEqual([degree == 1 for degree in degrees], [
                rule.is_satisfied(None, guest_on_host, (cell,))
                for cell in range(2)])
        self.assertEqual(
            0.0, rule.degree(None, self.guest_on_host(None), (0,)))

    def test_broken(self):
        rule, = rules_base.rules_of(self.spec(STRICT, 'preferred', 4))
        for free, text in (
                ({0: 1, 1: 3}, 'all PCI devices on its NUMA nodes needed, '
                 '3 of 4 are'), ({1: 4}, 'None')):
            self.assertIn(text, str(rule.violation_reason(
                None, self.guest_on_host(free, 4),
                numa_rule.Pinning((1,), ((),)))))

    def test_always(self):
        """By Nova's own policy, without any label."""
        rule, = rules_base.rules_of(self.spec(STRICT))
        for policy, free, always in (
                ('required', {0: 1, None: 1}, True),
                ('legacy', {0: 1, 1: 1}, True),
                ('legacy', {0: 1, None: 1}, False),
                ('socket', {0: 1}, True), ('preferred', {0: 1}, False)):
            self.assertEqual(always, rule.is_always_satisfied(
                None, self.guest_on_host(free, policy=policy), []))
