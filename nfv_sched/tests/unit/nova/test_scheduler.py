# SPDX-License-Identifier: Apache-2.0

"""What Nova tells without having been made for it."""

import copy
import threading

import fixtures
from nova import objects
from nova.scheduler import host_manager

from nfv_sched.limits import options
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds


class Listener(nova_scheduler.ConsumeListener):
    def __init__(self, name, calls):
        self.name = name
        self.calls = calls

    def before_placed(self, host_state):
        self.calls.append(f'{self.name} before')

    def after_placed(self, host_state, spec_obj):
        self.calls.append(f'{self.name} after')


class PlacedTest(base.TestCase):
    """Whoever else wraps the method of a host is called, too."""

    def test_others_in_between(self):
        calls = []
        host, spec = clouds.host(), clouds.spec()
        # Filters have done so when they were made.
        nova_scheduler.when_placed(clouds.host(), Listener('any', []))

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
            ['another', 'other', 'first before', 'second before',
             'first after', 'second after'], calls)
        self.assertEqual(1, host.num_instances)

    def test_another_wraps_the_class(self):
        calls = []
        host = clouds.host()
        nova_scheduler.when_placed(host, Listener('first', calls))
        wrapped = type(host).consume_from_request
        self.useFixture(fixtures.MockPatchObject(
            type(host), 'consume_from_request',
            lambda host, spec_obj: wrapped(host, spec_obj)))
        nova_scheduler.when_placed(host, Listener('second', calls))
        host.consume_from_request(clouds.spec())
        self.assertEqual(['first before', 'second before', 'first after',
                          'second after'], calls)

    def test_copy(self):
        """A filter may hand on a copy, and the HostState may be gone."""
        for duplicate in copy.copy, copy.deepcopy:
            calls = []
            host = clouds.host()
            both = Listener('both', calls)
            nova_scheduler.when_placed(host, both)
            copied = duplicate(host)
            for listener in both, Listener('copy', calls):
                nova_scheduler.when_placed(copied, listener)
            copied.consume_from_request(clouds.spec())
            self.assertEqual(['both before', 'copy before', 'both after',
                              'copy after'], calls)
            self.assertEqual(
                (0, 1), (host.num_instances, copied.num_instances))
            calls.clear()
            host.consume_from_request(clouds.spec())
            self.assertEqual(['both before', 'both after'], calls)

    def test_classes_of_other_host_managers(self):
        class Calling(host_manager.HostState):
            def consume_from_request(self, spec_obj):
                super().consume_from_request(spec_obj)

        class Other(host_manager.HostState):
            def consume_from_request(self, spec_obj):
                pass

        for number in range(2):
            for host_class in Calling, host_manager.HostState, Other:
                calls = []
                host = clouds.host()
                host.__class__ = host_class
                nova_scheduler.when_placed(host, Listener(number, calls))
                for _ in range(2):
                    host.consume_from_request(clouds.spec())
                self.assertEqual(
                    2 * [f'{number} before', f'{number} after'], calls)

    def test_requests_at_once(self):
        """They share the HostState; another is told meanwhile."""
        calls = []

        class Waiting(host_manager.HostState):
            def consume_from_request(self, spec_obj):
                if spec_obj is first:
                    nova_scheduler.when_placed(self, Listener('two', calls))
                    thread = threading.Thread(
                        target=self.consume_from_request, args=[second])
                    thread.start()
                    thread.join()

        first, second = clouds.spec(), clouds.spec()
        host = clouds.host()
        host.__class__ = Waiting
        nova_scheduler.when_placed(host, Listener('one', calls))
        host.consume_from_request(first)
        both = ['one before', 'two before', 'one after', 'two after']
        self.assertEqual(['one before', *both, 'one after'], calls)
        calls.clear()
        host.consume_from_request(second)
        self.assertEqual(both, calls)

    def test_one_that_raises(self):
        host, calls = clouds.host(), []
        broken = Listener('broken', None)
        nova_scheduler.when_placed(host, broken)
        nova_scheduler.when_placed(host, Listener('sound', calls))
        host.consume_from_request(clouds.spec())
        self.assertEqual(['sound before', 'sound after'], calls)
        self.assertEqual(1, host.num_instances)
        self.assertIn('cannot be noted', self.log.output)


class AggregatesTest(base.TestCase):

    def test_odd(self):
        """What cannot be read is no aggregate."""
        values = options.PerAggregates(
            lambda host: options.aggregate_limit(host, 'limit', 7.0))
        for odd in (5, None, [None], [object()]):
            host = clouds.host()
            host.aggregates = odd
            self.assertEqual(7.0, values.for_host(host))
            self.assertEqual(2.0, nova_scheduler.weight_multiplier(
                host, 'multiplier', 2.0))

    def test_no_number_is_logged_once(self):
        host = clouds.host()
        host.aggregates = [objects.Aggregate(metadata={'limit': 'loads'})]
        for _ in range(3):
            self.assertEqual(
                7.0, options.aggregate_limit(host, 'limit', 7.0))
        self.assertEqual(1, self.log.output.count('limit=loads'))
