# SPDX-License-Identifier: Apache-2.0
"""``nfv-sched plan run`` where others act, or answers do not come."""

from nfv_sched.tests.unit.ops.commands import test_plan_run
from nfv_sched.tests.unit.ops.execution import migrating_nova


class ConfirmedLateTest(test_plan_run.PlanRunTestCase):

    def test_migration_first(self):
        """Nova confirms the migration before the server shows it."""
        self.plan('a cold two')
        states = iter(['VERIFY_RESIZE'] * 4)

        def show(found):
            status, body = found
            if 'server' in body and self.nova.migrations and (
                    self.nova.migrations[0]['status'] == 'confirmed'):
                body = {'server': {**body['server'], 'status': next(
                    states, 'ACTIVE')}}
            return status, body

        self.nova.faults['servers'] = show
        self.carry_out()
        self.assertEqual({'a': 'two'}, self.hosts())
        self.assertEqual('unused', next(states, 'unused'))
