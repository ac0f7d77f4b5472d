# SPDX-License-Identifier: Apache-2.0
"""The decision journal of a real scheduler."""

import os

import fixtures

from nfv_sched.ops.answers.journal import reading
from nfv_sched.scheduler import process
from nfv_sched.tests.functional import base

FILTERS = ['NFVTopologyFilter', 'VSwitchNUMAAffinityFilter']


class JournalTestCase(base.NFVCloudTestCase):

    def configure(self):
        super().configure()
        self.directory = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'journal')
        self.flags(decision_journal=self.directory, group='nfv_sched')
        self.addCleanup(process.STATE.reset)

    def refusals(self, server):
        return reading.read(self.directory, server=server).refusals


class JournalTest(JournalTestCase):

    def test_why_was_it_refused_then(self):
        """Also if the tenant was told nothing, and there is room now."""
        self.flags(expose_reasons='none', group='nfv_sched')
        for name in ('alpha', 'beta'):
            self.start_host(name, switch=[1])
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        for name in ('alpha', 'beta'):
            self.occupy(strict, name, times=2)
        server = self.boot(strict, expect='ERROR')
        project = self.show(server)['tenant_id']
        self.delete_all()

        refusal, = self.refusals(server['id'])
        self.assertEqual(server['id'], refusal.server)
        self.assertRegex(refusal.request, '^req-')
        self.assertEqual(project, refusal.project)
        self.assertEqual('VSwitchNUMAAffinityFilter', refusal.filter)
        self.assertEqual(
            [('NFVTopologyFilter', 2, 2),
             ('VSwitchNUMAAffinityFilter', 2, 0)],
            [(each.filter, each.hosts, each.left) for each in refusal.passes
             if each.filter in FILTERS])
        reason, = refusal.reasons
        self.assertEqual({'alpha', 'beta'}, set(reason.hosts))
        self.assertEqual(
            'nfv:vswitch_numa_affinity=strict: 2 dedicated CPUs on one NUMA '
            'node with the virtual switch needed, 0 free', str(reason))
        self.assertEqual(
            (base.GUEST_VCPUS, 'strict'),
            (refusal.flavor.vcpus,
             refusal.flavor.extra_specs['nfv:vswitch_numa_affinity']))
        self.assertEqual(1, len(reading.read(self.directory).refusals))

    def test_several_servers(self):
        """A later one fails, and takes the earlier ones with it."""
        self.start_host('alpha', switch=[1])
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        servers = self.boot_many(strict, 3, expect='ERROR')
        uuids = {server['id'] for server in servers}
        for uuid in uuids:
            refusal, = self.refusals(uuid)
            self.assertEqual(uuids, {refusal.server, *refusal.before})


class OtherRefusalsTest(JournalTestCase):
    """Refusals by Placement and by filters of Nova."""

    def setUp(self):
        super().setUp()
        for name in ('alpha', 'beta'):
            self.start_host(name, switch=[1])

    def refuse(self, **extra_specs):
        """Boot a server without a valid host, and return its refusal."""
        server = self.boot(self.flavor(**extra_specs), expect='ERROR')
        refusal, = self.refusals(server['id'])
        self.assertEqual(server['id'], refusal.server)
        self.assertRegex(refusal.request, '^req-')
        self.assertEqual(self.show(server)['tenant_id'], refusal.project)
        self.assertEqual(base.GUEST_VCPUS, refusal.flavor.vcpus)
        self.assertEqual(1, len(reading.read(self.directory).refusals))
        return refusal

    def test_placement(self):
        refusal = self.refuse(trait__HW_CPU_X86_SGX='required')
        self.assertEqual('placement', refusal.by)
        self.assertEqual(('', ()), (refusal.filter, refusal.passes))
        query = refusal.queries[0]
        self.assertIn('HW_CPU_X86_SGX', query)
        self.assertRegex(query, f'PCPU:{base.GUEST_VCPUS}')

    def test_placement_error(self):
        refusal = self.refuse(trait__CUSTOM_UNKNOWN='required')
        self.assertEqual('placement-error', refusal.by)
        self.assertIn('CUSTOM_UNKNOWN', refusal.queries[0])

    def test_filter_of_nova(self):
        refusal = self.refuse(capabilities__hypervisor_type='ironic')
        name = 'ComputeCapabilitiesFilter'
        self.assertEqual(('filter', name), (refusal.by, refusal.filter))
        *before, last = refusal.passes
        self.assertEqual((name, 2, 0), (last.filter, last.hosts, last.left))
        self.assertEqual({(2, 2)}, {
            (each.hosts, each.left) for each in before})
        reason, = refusal.reasons
        self.assertEqual((name, {'alpha', 'beta'}),
                         (reason.filter, set(reason.hosts)))

    def test_claim(self):
        """Others are faster."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.utils.claim_resources',
            lambda *args, **kwargs: False))
        refusal = self.refuse()
        self.assertEqual(('claim', ''), (refusal.by, refusal.filter))
        self.assertEqual((2, 2), (refusal.passes[-1].hosts,
                                  refusal.passes[-1].left))
        self.assertIn('resources=', refusal.queries[0])

    def test_no_such_host(self):
        """It is deleted between the API's check and the scheduler's."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.host_manager.HostManager.'
            'get_compute_nodes_by_host_or_node', lambda *args, **kwargs: []))
        server = self.boot(self.flavor(), host='alpha', expect='ERROR')
        refusal, = self.refusals(server['id'])
        self.assertEqual('nova', refusal.by)
        self.assertIn('No such host', refusal.message)

    def test_several_servers(self):
        """Only a later one finds no host; the first is undone."""
        self.api.microversion = '2.64'
        group = self.api.post_server_groups(
            {'name': 'apart', 'policy': 'anti-affinity'})
        self.api.microversion = self.microversion
        body = self._build_server(
            image_uuid=base.IMAGE, flavor_id=self.flavor(), networks='none')
        answer = self.api.api_post('/servers', {
            'server': {**body, 'min_count': 3, 'max_count': 3,
                       'return_reservation_id': True},
            'os:scheduler_hints': {'group': group['id']}}).body
        servers = self.admin_api.api_get(
            '/servers/detail?reservation_id=%s' % answer['reservation_id']
        ).body['servers']
        self.booted += [server['id'] for server in servers]
        for server in servers:
            self.wait_for(server, 'ERROR')
        uuids = {server['id'] for server in servers}
        refusal, = self.refusals(servers[0]['id'])
        self.assertEqual(uuids, {refusal.server, *refusal.before})
        self.assertEqual(('filter', 'ServerGroupAntiAffinityFilter'), (
            refusal.by, refusal.filter))

    def test_once(self):
        """The refusal by a filter of nfv-sched, whoever raises the error."""
        for expose in ('none', 'hosts'):
            self.flags(expose_reasons=expose, group='nfv_sched')
            server = self.boot(self.flavor(
                nfv__vswitch_numa_affinity='strict', hw__numa_nodes='2'),
                expect='ERROR')
            refusal, = self.refusals(server['id'])
            self.assertEqual('', refusal.by)
            process.STATE.reset()

    def test_without_a_journal(self):
        self.flags(decision_journal=None, group='nfv_sched')
        self.boot(self.flavor(trait__HW_CPU_X86_SGX='required'),
                  expect='ERROR')
        self.assertFalse(os.path.exists(self.directory))
