# SPDX-License-Identifier: Apache-2.0
"""The check of flavors, on Nova's own database."""

from nova.db.api import api as api_db
from nova.db.api import models
from oslo_db.sqlalchemy import enginefacade
from oslo_db.sqlalchemy import test_fixtures
from oslo_upgradecheck import upgradecheck

from nfv_sched.checks import computes
from nfv_sched.checks import findings
from nfv_sched.nova import database
from nfv_sched.tests import base

SUCCESS = upgradecheck.Code.SUCCESS
WARNING = upgradecheck.Code.WARNING


class FlavorsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.flags('api_database', connection='sqlite://')
        self.useFixture(test_fixtures.ReplaceEngineFacadeFixture(
            api_db.context_manager, enginefacade.transaction_context()))
        database.register_profiler()
        api_db.configure(base.CONF)
        self.engine = api_db.get_engine()
        self.addCleanup(self.engine.dispose)
        models.BASE.metadata.create_all(self.engine)

    def make(self, name, disabled=False, is_public=True, **extra_specs):
        with self.engine.begin() as connection:
            made = connection.execute(
                models.Flavors.__table__.insert().values(
                    name=name, flavorid=name, vcpus=1, memory_mb=64,
                    root_gb=0, ephemeral_gb=0, swap=0, rxtx_factor=1,
                    vcpu_weight=0, disabled=disabled, is_public=is_public))
            for key, value in extra_specs.items():
                connection.execute(
                    models.FlavorExtraSpecs.__table__.insert().values(
                        flavor_id=made.inserted_primary_key[0],
                        key=key.replace('__', ':'), value=value))

    def assertCheck(self, code, *lines):
        result = computes.flavors()
        self.assertEqual(code, result.code, result.details)
        self.assertEqual(list(lines), result.details.splitlines())

    def test_well(self):
        self.assertCheck(
            SUCCESS,
            'The extra specs of nfv-sched are right in all 0 flavors.')
        self.make('plain')
        self.make('strict', nfv__vswitch_numa_affinity='strict',
                  hw__wrs__vcpus='1', hw__cpu_policy='dedicated')
        self.assertCheck(
            SUCCESS,
            'The extra specs of nfv-sched are right in all 2 flavors.')

    def test_wrong(self):
        self.make('b', nfv__vswitch_affinity='strict')
        self.make('a', nfv__vswitch_affinity='prefer', is_public=False)
        self.make('right', nfv__vswitch_numa_affinity='prefer')
        self.make('c', nfv__shared_vcpu='all', disabled=True)
        self.assertCheck(
            WARNING,
            "c: nfv:shared_vcpu='all' is not the index of a vCPU.",
            'a, b: unknown key nfv:vswitch_affinity, did you mean '
            'nfv:vswitch_numa_affinity.',
            computes.ADVICE)
        self.assertIn('--os-compute-api-version 2.86', computes.ADVICE)

    def test_places(self):
        """Keys that a rule reads by itself."""
        self.make('at', **{'nfv__numa_affinity.osd': 'strict'})
        self.make('nowhere', **{'nfv__numa_affinity.a.b': 'strict'})
        self.make('both', **{'nfv__numa_affinity.osd': 'strict',
                             'nfv__numa_anti_affinity.osd': 'prefer'})
        self.assertCheck(
            WARNING,
            "nowhere: 'nfv:numa_affinity.a.b' does not name a place.",
            'both: nfv:numa_anti_affinity.osd=prefer contradicts '
            'nfv:numa_affinity.osd=strict.', computes.ADVICE)

    def test_many(self):
        for number in range(7):
            self.make(f'flavor{number}', nfv__foo='1')
        names = ', '.join(f'flavor{number}' for number in range(5))
        line = (f'{names} and 2 more: unknown key nfv:foo, see the flavor '
                'extra specs of nfv-sched.')
        self.assertCheck(WARNING, line, computes.ADVICE)
        for number in range(12):
            self.make(f'other{number}', **{f'nfv__z{number}': '1'})
        lines = computes.flavors().details.splitlines()
        self.assertEqual(12, len(lines))
        self.assertEqual(line, lines[0])
        self.assertEqual(['3 more mistakes in flavors.', computes.ADVICE],
                         lines[-2:])

    def test_retries(self):
        """Pinned servers need more attempts than Nova makes by default."""
        well = (SUCCESS, '[scheduler] max_attempts is enough here; '
                'nova-conductor needs the same.')
        self.make('shared', hw__cpu_policy='shared')
        for attempts, flavor, found in (
                (3, 'plain', well),
                (3, 'pinned', (WARNING, (
                    '[scheduler] max_attempts is 3: of servers with pinned '
                    'CPUs (pinned) that are booted at the same moment, some '
                    'end in ERROR. Set 10 where nova-scheduler and '
                    'nova-conductor run.'))),
                (10, 'mixed', well)):
            self.make(flavor, **{} if flavor == 'plain' else {
                'hw__cpu_policy': flavor.replace('pinned', 'dedicated')})
            self.flags('scheduler', max_attempts=attempts)
            result = computes.retries(base.CONF)
            self.assertEqual(found, (result.code, result.details))


class UnreadTest(base.TestCase):

    def test_no_database(self):
        error = self.assertRaises(findings.UnreadError, computes.flavors)
        self.assertIn("Flavors could not be checked, because Nova's database "
                      'cannot be read: see [api_database] connection: ',
                      str(error))
