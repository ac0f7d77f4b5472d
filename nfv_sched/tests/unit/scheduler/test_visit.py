# SPDX-License-Identifier: Apache-2.0
"""What is known of a host holds until something that it depends on changes."""

from unittest import mock

from nfv_sched.base import reasons
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.ledger import reader
from nfv_sched.limits import names
from nfv_sched.nova import scheduler
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


class NodesTest(base.TestCase):
    """What the allocation candidates take of NUMA nodes."""

    def setUp(self):
        super().setUp()
        self.flags(enabled_filters=['NFVTopologyFilter',
                                    'VSwitchNUMAAffinityFilter'],
                   group='filter_scheduler')

    def judge(self, spec, free=999, labels_lost=False, index=0, **topology):
        """Return what the first candidate takes, or the reason."""
        if index == 0:
            self.host = clouds.host(**topology)
        uuid = names.provider_uuid(self.host.uuid)
        self.host.allocation_candidates = [
            {'mappings': {}, 'allocations': {uuid: {'resources': {
                names.PORTS: 1, names.node_cpus(7): 1}}}}]
        note = notes.note_of(spec)
        note.ledgers = reader.Reading({uuid: {
            'traits': [names.TRAIT], 'resources': {
                name: {'capacity': free, 'used': 0} for node in range(2)
                for name in (names.node_cpus(node),
                             names.node_pages(node, 2048))}}})
        note.begin(index, spec)
        request = note.read(spec)
        with mock.patch.object(scheduler, 'live_migration_carries_limits',
                               return_value=not labels_lost):
            decision = visit.for_host(self.host, note).judge(
                self.host, request, active_rules.for_request(
                    note, request, 'NFVTopologyFilter', True))
        if not decision.accepted:
            return str(reasons.resolve(decision.reason))
        return {
            name.removeprefix('CUSTOM_NFV_NODE'): amount for name, amount in
            self.host.allocation_candidates[0]['allocations'][uuid][
                'resources'].items() if name != names.PORTS}

    def test_amounts(self):
        self.flags(moves_without_limits='accept', group='nfv_sched')
        emulator, pages, unlike = [
            clouds.spec('strict', cells=cells) for cells in (1, 1, 2)]
        emulator.numa_topology.emulator_threads_policy = 'isolate'
        pages.numa_topology.cells[0].pagesize = 2048
        unlike.numa_topology.cells[1].memory = 256
        both = {'switch': (0, 1)}
        live = clouds.spec('strict', move=True, live=True)
        for title, spec, expected, more in (
                ('strict', clouds.spec('strict'), {'1_PCPU': 2}, {}),
                ('a choice', clouds.spec('strict'), {}, both),
                ('prefer', clouds.spec('prefer'), {'7_PCPU': 1}, {}),
                ('mapping', clouds.spec(nodes={0: 0}), {'0_PCPU': 2}, both),
                ('all nodes', clouds.spec('strict', cells=2),
                 {'0_PCPU': 2, '1_PCPU': 2}, both),
                ('unlike nodes', unlike, {}, both),
                ('emulator threads', emulator, {'1_PCPU': 3}, {}),
                ('pages', pages, {'1_PCPU': 2, '1_PAGES_2048': 256},
                 {'pages': 512}),
                ('live migration', live, {'1_PCPU': 2}, {}),
                ('labels lost', clouds.spec('strict', move=True, live=True),
                 {'7_PCPU': 1}, {'labels_lost': True})):
            self.assertEqual(expected, self.judge(spec, **more), title)

    def test_granted_to_others(self):
        reason = ('nfv:vswitch_numa_affinity=strict: 2 dedicated CPUs of one '
                  'host NUMA node needed, 1 of node 1 not granted to others '
                  'yet')
        self.assertEqual(reason, self.judge(clouds.spec('strict'), 1))
        spec = clouds.spec('strict')
        self.assertEqual({'1_PCPU': 2}, self.judge(spec, 3))
        self.host.consume_from_request(spec)
        # The host has four CPUs there, but Placement only one more.
        self.assertEqual(reason, self.judge(spec, 3, index=1))
