# SPDX-License-Identifier: Apache-2.0
"""A server that a live migration has led away from the switch, and back."""

import dataclasses

import fixtures

from nfv_sched.nova import scheduler
from nfv_sched.ops.answers.audit import all_checks
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.model import movable
from nfv_sched.ops.serve.metrics import rendering as metrics
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.answers.plans import running

#: Value of the option -> head of a cloud.
HEADS = {value: running.HEAD.replace(
    'options:\n', 'options:\n'
    f'  nfv_sched: {{moves_without_limits: {value}}}\n')
    for value in ('accept', 'refuse')}


class AstrayTest(running.RunningTestCase):
    """As with a Nova whose live migrations lose limits."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            scheduler, 'live_migration_carries_limits', lambda: False))
        self.astray = self.running(
            'a strict one', 'b strict two', head=HEADS['accept'],
            steps='- {live_migrate: a, host: two, expect: {nodes: [1]}}')

    def broken(self, cloud):
        return [each.server for each in all_checks.findings(cloud)
                if each.kind == values.POLICY]

    def test_found_and_counted(self):
        self.assertEqual(['a'], self.broken(self.astray))
        samples = [sample for family in metrics.families(
            self.astray, (), (), findings=all_checks.findings(self.astray))
            for sample in family.samples]
        self.assertIn(
            ({'kind': values.POLICY}, 1),
            [(each.labels, each.value) for each in samples])

    def test_refused_by_default(self):
        refused = self.running(
            'a strict one', head=running.HEAD,
            steps="- {live_migrate: a, expect: {refused: 1, "
                  "reason: 'this Nova loses them'}}")
        self.assertEqual([], self.broken(refused))

    def test_brought_back(self):
        """Cold, whatever becomes of live migrations, and that server only."""
        strays = [each.uuid for each in self.astray.servers
                  if each.name == 'a']
        refuse = dataclasses.replace(self.astray, options=self.running(
            'a strict one', head=HEADS['refuse']).options)
        for cloud in (self.astray, refuse):
            plan = drain.plan(cloud, 'two', uuids=strays)
            (guest,) = plan.servers
            self.assertEqual(
                ('a', movable.COLD, movable.ObstacleKind.LIMITS),
                (guest.server, guest.how, guest.obstacle.kind))
            self.assertEqual((1, True), (plan.others, plan.exact))
            commands = '\n'.join(rendering.commands(
                plan_file.moves_of(plan)))
            self.assertIn('server migrate', commands)
            self.assertNotIn('--disable', commands)
            with start.started(cloud) as state:
                simulation = engine.Simulation(state)
                simulation.step(actions.ColdMove(
                    action='cold_migrate', number=1, targets=('a',),
                    host=guest.destination))
                self.assertEqual([], simulation.run().failures)
                self.assertEqual([], self.broken(record.cloud(state)))

    def test_live_where_no_label_is_needed(self):
        head = HEADS['refuse'].replace(
            'platform_cores: 0,', 'platform_cores: 0, switch_nodes: [0, 1],')
        for host, kind in ((running.HEAD, movable.COLD),
                           (head, movable.LIVE)):
            plan = drain.plan(self.running('a strict one', head=host), 'one')
            self.assertEqual([kind], [each.how for each in plan.servers])
