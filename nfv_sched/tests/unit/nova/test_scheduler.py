# SPDX-License-Identifier: Apache-2.0

"""What Nova tells without having been made for it."""

import fixtures
from nova import objects

from nfv_sched.limits import names
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.tests import base as unit_base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.ops.simulator import base
from nfv_sched.tests.unit.ops.simulator import test_network

MANAGER = nova_internals.SchedulerManager


class PlacementAnswersTest(base.SimulatorTestCase):
    """Nova's own scheduler tells what Placement says."""

    def setUp(self):
        super().setUp()
        self.calls = []
        # To put back what is there at the end.
        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.manager.SchedulerManager._schedule',
            MANAGER._schedule))

    def answered(self, spec_obj, summaries):
        self.calls.append((spec_obj, summaries))

    def watch(self):
        nova_scheduler.watch_requests(self.answered)

    def boot(self):
        result = self.run_cloud(self.cloud(
            '- {boot: s, flavor: f, networks: [lan], host: east}',
            test_network.OPTIONS % 'ledger: placement' + test_network.HEAD))
        self.assertEqual(['east'], [
            outcome.destination for outcome in result.outcomes])
        return result

    def test_told(self):
        """Once for each request, however often that was wanted."""
        for _ in range(3):
            self.watch()
        result = self.boot()
        (spec, summaries), = self.calls
        self.assertIsInstance(spec, nova_internals.objects.RequestSpec)
        east, = [host for host in result.hosts if host.name == 'east']
        summary = summaries[names.provider_uuid(east.uuid)]
        self.assertEqual([names.TRAIT], summary['traits'])
        self.assertEqual({'capacity': 250, 'used': 0},
                         summary['resources'][names.PORTS])

    def test_ours_stays(self):
        """What others want to know as well changes nothing for us."""
        method = MANAGER._schedule
        self.watch()
        self.assertIsNot(method, MANAGER._schedule)
        for _ in range(2):
            result = self.boot()
            self.assertEqual(
                1, result.loads['east'].claimed[names.PORTS])
        self.assertEqual(2, len(self.calls))

    def test_nothing_that_is_told_breaks_nova(self):
        def fail(*args):
            raise ZeroDivisionError

        nova_scheduler.watch_requests(fail)
        self.boot()
        self.assertIn('What Placement has answered cannot', self.log.output)

    def test_another_nova(self):
        """What is not as it is known stays as it is."""
        def unknown(self, context, spec_obj):
            return iter(())

        for other in unknown, None:
            MANAGER._schedule = other
            self.watch()
            self.assertIs(other, MANAGER._schedule)


class Listener(nova_scheduler.ConsumeListener):
    def __init__(self, name, calls):
        self.name = name
        self.calls = calls

    def before_placed(self, host_state):
        self.calls.append(f'{self.name} before')

    def after_placed(self, host_state, spec_obj):
        self.calls.append(f'{self.name} after')


class PlacedTest(unit_base.TestCase):
    """Whoever else wraps the method of a host is called, too."""

    def test_others_in_between(self):
        calls = []
        host, spec = clouds.host(), clouds.spec()

        def wrap(name):
            method = host.consume_from_request

            def consume_from_request(spec_obj):
                calls.append(name)
                method(spec_obj)

            host.consume_from_request = consume_from_request

        wrap('other')
        first, second = (Listener(name, calls) for name in ('first', 'second'))
        nova_scheduler.when_placed(host, first)
        wrap('another')
        nova_scheduler.when_placed(host, second)
        nova_scheduler.when_placed(host, second)
        host.consume_from_request(spec)
        self.assertEqual(
            ['another', 'first before', 'second before', 'other',
             'first after', 'second after'], calls)
        self.assertEqual(1, host.num_instances)

    def test_one_that_raises(self):
        host, calls = clouds.host(), []
        broken = Listener('broken', None)
        nova_scheduler.when_placed(host, broken)
        nova_scheduler.when_placed(host, Listener('sound', calls))
        host.consume_from_request(clouds.spec())
        self.assertEqual(['sound before', 'sound after'], calls)
        self.assertEqual(1, host.num_instances)
        self.assertIn('cannot be noted', self.log.output)


class AggregatesTest(unit_base.TestCase):

    def test_odd(self):
        """What cannot be read is no aggregate."""
        values = nova_scheduler.PerAggregates(
            lambda host: nova_scheduler.aggregate_limit(host, 'limit', 7.0))
        for odd in (5, None, [None], [object()]):
            host = clouds.host()
            host.aggregates = odd
            self.assertEqual(7.0, values.for_host(host))
            self.assertEqual(2.0, nova_scheduler.weight_multiplier(
                host, 'multiplier', 2.0))

    def test_no_number_is_logged_once(self):
        """Limits may be read for each host of each request."""
        host = clouds.host()
        host.aggregates = [objects.Aggregate(metadata={'limit': 'loads'})]
        for _ in range(3):
            self.assertEqual(
                7.0, nova_scheduler.aggregate_limit(host, 'limit', 7.0))
        self.assertEqual(1, self.log.output.count('limit=loads'))
