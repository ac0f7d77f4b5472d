# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.plans import document
from nfv_sched.ops.plans import drain
from nfv_sched.ops.plans import replanning
from nfv_sched.ops.plans import rolling
from nfv_sched.tests.unit.ops.plans import running
from nfv_sched.tests.unit.ops.plans import test_making_room

OPTIONS = document.DrainOptions(make_room=True, relax=True, shelve=True)


class ReplanningTest(running.RunningTestCase):

    def test_drain_options(self):
        """A server elsewhere that makes room is none of those to be moved."""
        cloud = self.running(*test_making_room.TIGHT, 'b p1 one')
        server = next(each for each in cloud.servers if each.name == 'a')
        plan = document.drained(drain.plan(
            cloud, 'one', uuids={server.uuid}, make_room=True), cloud, OPTIONS)
        self.assertEqual(['u', 'a'], [each.server for each in plan.servers])
        self.assertEqual(
            ('host', 'drain', '--make-room', '--relax', '--shelve',
             f'--server={server.uuid}', '--', 'one'),
            document.moves_of_drain(plan).command)
        self.assertEqual(plan, replanning.plan_again(plan, cloud).content)

    def test_options_of_rounds(self):
        cloud = self.running(*test_making_room.TIGHT)
        plan = document.rolled(rolling.plan(
            cloud, ['one'], make_room=True), cloud, OPTIONS)
        self.assertEqual(
            ('host', 'drain', '--at-once=1', '--make-room', '--relax',
             '--shelve', '--', 'one'),
            document.moves_of_round(plan, 1).command)
