# SPDX-License-Identifier: Apache-2.0
"""What is known of a host holds until something that it depends on changes."""

from unittest import mock

from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import visit
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds

_DECIDE = 'nfv_sched.fit.numa.decide.decide'


class VisitTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.host = clouds.host(devices={1: 4})
        self.host.allocation_candidates = [{'mappings': {}}]
        self.spec = clouds.spec('strict', devices=[clouds.pci_request()])

    def judge(self, name='VSwitchNUMAAffinityFilter'):
        """What a filter is told."""
        note = notes.note_of(self.spec)
        request = note.read(self.spec)
        return visit.for_host(self.host, note).judge(
            self.host, request,
            active_rules.for_request(note, request, name, True))

    def preview(self):
        """What a weigher is told."""
        note = notes.note_of(self.spec)
        request = note.read(self.spec)
        return visit.for_host(self.host, note).decision(
            self.host, request,
            active_rules.for_request(
                note, request, 'VSwitchNUMAAffinityFilter'))

    @property
    def labels(self):
        limits = self.host.limits.get('numa_topology')
        if limits is None:
            return None
        if 'network_metadata' not in limits:
            return set()
        return limits.network_metadata.physnets

    def test_decided_once(self):
        first = self.judge()
        self.assertTrue(first.accepted)
        with mock.patch(_DECIDE, side_effect=AssertionError):
            self.assertIs(first, self.judge())
            self.assertIs(first, self.preview())

    def test_a_preview_leaves_the_host_alone(self):
        self.host.allocation_candidates *= 2
        before = list(self.host.allocation_candidates)
        self.assertTrue(self.preview().accepted)
        self.assertIsNone(self.labels)
        self.assertEqual(before, self.host.allocation_candidates)
        self.judge()
        self.assertEqual({clouds.VSWITCH}, self.labels)

    def test_what_it_depends_on(self):
        changes = {
            'numa_topology': clouds.host_topology(free={1: 1}),
            'pci_stats': clouds.pci_stats(None, {0: 1}),
            'cpu_allocation_ratio': 4.0,
            'ram_allocation_ratio': 1.5,
            'allocation_candidates': [{'mappings': {'': ['other']}}],
        }
        for name, value in changes.items():
            self.judge()
            setattr(self.host, name, value)
            note = notes.note_of(self.spec)
            note.decisions.clear()
            with mock.patch(_DECIDE, wraps=numa_decide.decide) as decide:
                self.judge()
            decide.assert_called_once()

    def test_full_meanwhile(self):
        self.assertTrue(self.judge().accepted)
        self.host.numa_topology = clouds.host_topology(free={1: 1})
        self.assertFalse(self.judge().accepted)
        self.assertFalse(self.preview().accepted)

    def test_limits_replaced_by_another_filter(self):
        self.judge()
        self.host.limits = {'disk_gb': 10}
        self.judge()
        self.assertEqual({clouds.VSWITCH}, self.labels)
        self.assertEqual(10, self.host.limits['disk_gb'])

    def test_another_request(self):
        self.assertTrue(self.judge().accepted)
        self.spec = clouds.spec('strict', vcpus=64)
        self.assertFalse(self.judge().accepted)

    def test_a_filter_that_is_not_enabled(self):
        """Its rules count from the first time that it runs."""
        for name, labels in (('NFVTopologyFilter', set()),
                             ('VSwitchNUMAAffinityFilter', {clouds.VSWITCH}),
                             ('NFVTopologyFilter', {clouds.VSWITCH})):
            self.assertTrue(self.judge(name).accepted)
            self.assertEqual(labels, self.labels)
