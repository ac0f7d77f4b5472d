# SPDX-License-Identifier: Apache-2.0
"""Filters in shadow, in a real scheduler."""

import fixtures

from nfv_sched.ops.answers.journal import reading
from nfv_sched.scheduler import process
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_ledger
from nfv_sched.tests.unit.filters import test_shadow

VSWITCH = 'VSwitchNUMAAffinityFilter'
WEIGHER = 'VSwitchNUMAAffinityWeigher'


class ShadowedPolicyTest(base.NFVCloudTestCase):
    """Servers go where they go without the filter, whatever it says."""

    def configure(self):
        super().configure()
        self.flags(shadow=[VSWITCH, WEIGHER], group='nfv_sched')
        self.addCleanup(process.STATE.reset)

    def setUp(self):
        super().setUp()
        self.record_selections()
        self.strict = self.flavor(nfv__vswitch_numa_affinity='strict')

    def test_boot(self):
        self.start_host('host1', switch=[1])
        # Nova's own order of NUMA nodes counts, though the switch is on 1.
        for number, node in enumerate((0, 1, 0, 1), 1):
            self.assertPlaced(self.boot(self.strict), [node])
            self.assertEqual(set(), self.labels())
            self.assertEqual((number, 0, 0), test_shadow.counted(VSWITCH))

    def test_refused(self):
        """By a host that says nothing of a switch."""
        self.start_host('host1', switch=None)
        self.assertPlaced(self.boot(self.strict), [0])
        self.assertEqual((1, 1, 0), test_shadow.counted(VSWITCH))
        self.assertEqual((1, 1, 0), test_shadow.counted())

    def test_journal(self):
        """Why it would have been refused, and by which request."""
        directory = self.useFixture(fixtures.TempDir()).path
        self.flags(decision_journal=directory, decision_journal_placed=True,
                   group='nfv_sched')
        self.start_host('host1', switch=None)
        strict = self.boot(self.strict)
        plain = self.boot(self.flavor())
        content = reading.read(directory)
        self.assertEqual((), content.refusals)
        first, second = content.placed
        self.assertEqual(
            (strict['id'], 'host1', 'refused', (VSWITCH,)),
            (first.server, first.host, first.change, first.by))
        self.assertRegex(first.request, '^req-')
        reason, = first.reasons
        self.assertEqual('nfv:vswitch_numa_affinity=strict', reason.policy)
        self.assertEqual((plain['id'], (), ''), (
            second.server, second.shadow, second.change))
        self.assertEqual('NFVTopologyFilter', second.passes[0].filter)

    def test_elsewhere(self):
        self.start_host('host1', switch=None)
        self.boot(self.strict, host='host1')
        self.start_host('host2')
        # One of two hosts that are asked for by name would be refused, too.
        self.boot(self.strict, host='host2')
        self.assertEqual((2, 1, 0), test_shadow.counted())
        places = [self.host(self.boot(self.strict)) for _ in range(2)]
        self.assertEqual((4, 1, places.count('host1')), test_shadow.counted())

    def test_moves(self):
        self.start_two(switch=None)
        server = self.boot(self.strict)
        server = self.live_migrate(server)
        self.assertEqual('ACTIVE', server['status'])
        server = self.cold_migrate(server)
        self.assertEqual('VERIFY_RESIZE', server['status'])
        self.assertEqual((3, 3, 0), test_shadow.counted())

    def test_several_servers(self):
        self.start_host('host1', switch=[1])
        servers = self.boot_many(self.strict, 4)
        self.assertEqual([0, 0, 1, 1], sorted(
            self.nodes(server)[0] for server in servers))
        self.assertEqual(4, test_shadow.counted()[0])


class ShadowedLimitTest(test_ledger.LedgerTestCase):
    """Limits that are not kept, and of which the ledger knows nothing."""

    hosts = ('host1',)
    limits = {**test_ledger.LedgerTestCase.limits,
              'shadow': ['VSwitchPortLimitFilter', 'SecurityRuleLimitFilter']}

    def test_boot(self):
        self.guest(nics=2)
        self.assertEqual((0, 0), self.used('host1'))
        self.assertEqual((1, 0, 0), test_shadow.counted(
            'VSwitchPortLimitFilter'))
        # 6 ports are left for guests.
        self.publish()
        self.guest(nics=5)
        self.assertEqual((0, 0), self.used('host1'))
        self.assertEqual((2, 1, 0), test_shadow.counted(
            'VSwitchPortLimitFilter'))
        self.assertEqual((2, 1, 0), test_shadow.counted())
