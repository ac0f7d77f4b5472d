# SPDX-License-Identifier: Apache-2.0
"""The decision journal of a real scheduler."""

import os

import fixtures

from nfv_sched.ops.journal import journal
from nfv_sched import process
from nfv_sched.tests.functional import base

FILTERS = ['NFVTopologyFilter', 'VSwitchNUMAAffinityFilter']


class JournalTest(base.NFVCloudTestCase):

    def configure(self):
        super().configure()
        self.directory = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'journal')
        self.flags(decision_journal=self.directory, group='nfv_sched')
        self.addCleanup(process.STATE.reset)

    def refusals(self, server):
        process.STATE.journal.stop()
        return journal.read(self.directory, server).refusals

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
        self.assertEqual(1, len(journal.read(self.directory).refusals))

    def test_several_servers(self):
        """A later one fails, and takes the earlier ones with it."""
        self.start_host('alpha', switch=[1])
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        servers = self.boot_many(strict, 3, expect='ERROR')
        uuids = {server['id'] for server in servers}
        for uuid in uuids:
            refusal, = self.refusals(uuid)
            self.assertEqual(uuids, {refusal.server, *refusal.before})
