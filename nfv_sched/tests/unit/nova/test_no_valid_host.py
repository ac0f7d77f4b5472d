# SPDX-License-Identifier: Apache-2.0
"""Following requests in nova-scheduler."""

import pathlib
import types

import fixtures
from nova import exception
from nova.scheduler.client import report
from nova.scheduler import host_manager
from nova.scheduler import manager
from nova.scheduler import utils
from oslo_messaging.rpc import dispatcher
from oslo_messaging.rpc import server as rpc_server

from nfv_sched.nova import no_valid_host
from nfv_sched.tests import base


class Filter:
    """A filter that passes some hosts."""

    def __init__(self, names):
        self.names = names

    def run_filter_for_index(self, index):
        return True

    def filter_all(self, filter_obj_list, spec_obj):
        return (host for host in filter_obj_list if host.host in self.names)


class Last(Filter):
    """Another one."""


class FollowTest(base.TestCase):
    """A scheduler whose ``select_destinations`` is one of ours."""

    def setUp(self):
        super().setUp()
        self.refusals, self.answers = [], []
        self.spec = types.SimpleNamespace(instance_uuid='uuid')
        self.wanted = True
        self.filters = [Filter('ab'), Last('')]
        for owner, name, method in (
                (manager.SchedulerManager, 'select_destinations',
                 rpc_server.expected_exceptions(exception.NoValidHost)(
                     lambda *args, **kwargs: self.select())),
                (report.SchedulerReportClient, 'get_allocation_candidates',
                 lambda client, context, resources: self.answer)):
            # MonkeyPatch would wrap what is there, and look like it.
            self.useFixture(fixtures.MockPatchObject(owner, name, method))
        for _ in range(2):
            no_valid_host.watch(
                lambda *args: self.answers.append(args),
                lambda: self.wanted, lambda *args: self.refused(*args),
                lambda spec_obj: self.tenant_reason(spec_obj))
        self.answer = [{}], {}, '1.36'
        self.hosts = [types.SimpleNamespace(host=name) for name in 'abc']

    def tenant_reason(self, spec_obj):
        return ''

    def refused(self, followed, message):
        self.refusals.append((followed, message))

    def query(self, resources=None):
        return report.SchedulerReportClient.get_allocation_candidates(
            None, None, resources or utils.ResourceRequest())

    def filter(self):
        hosts = self.hosts
        for each in self.filters:
            hosts = list(each.filter_all(hosts, self.spec))
            if not hosts:
                break
        return hosts

    def select(self):
        self.query()
        if not self.filter():
            raise exception.NoValidHost(reason='none')

    def manager(self):
        return types.SimpleNamespace(host_manager=types.SimpleNamespace(
            enabled_filters=self.filters))

    def schedule(self):
        try:
            manager.SchedulerManager.select_destinations(
                self.manager(), None, spec_obj=self.spec,
                instance_uuids=['uuid'])
        except dispatcher.ExpectedException:
            pass
        if not self.refusals:
            return None
        (followed, self.message), = self.refusals
        return followed

    def test_filters(self):
        followed = self.schedule()
        self.assertEqual('none', self.message)
        self.assertEqual((self.spec, ('uuid',), True, False, True), (
            followed.spec_obj, followed.servers, followed.filtered,
            followed.passed, followed.answered))
        self.assertEqual(
            [('Filter', 3, 2, ['c']), ('Last', 2, 0, ['a', 'b'])],
            [(run.filter, len(run.given), len(run.left), run.refused)
             for run in followed.runs])
        # They are wrapped once.
        self.refusals.clear()
        self.assertEqual(2, len(self.schedule().runs))

    def read_by_client(self):
        error = self.assertRaises(
            dispatcher.ExpectedException,
            manager.SchedulerManager.select_destinations,
            self.manager(), None, spec_obj=self.spec)
        return error.exc_info[1].kwargs['reason']

    def test_reason_for_the_client(self):
        for self.wanted in True, False:
            self.tenant_reason = lambda spec_obj: ''
            self.assertEqual('none', self.read_by_client())
            self.tenant_reason = lambda spec_obj: 'ours'
            self.assertEqual('ours', self.read_by_client())
            self.tenant_reason = lambda spec_obj: 1 / 0
            self.assertEqual('none', self.read_by_client())
        self.assertIn('cannot be told', self.log.output)

    def test_filters_with_a_host(self):
        self.filters.pop()
        self.assertIsNone(self.schedule())

    def test_several_servers(self):
        """What counts is the last pass of the filters."""
        def select():
            self.filters[1].names = 'ab'
            self.query()
            self.filter()
            self.filter()  # alternates
            self.spec.instance_uuid = 'second'
            self.filters[1].names = ''
            FollowTest.select(self)

        self.select = select
        followed = self.schedule()
        self.assertEqual([2, 0], [len(run.left) for run in followed.runs])
        self.assertFalse(followed.passed)

    def test_forced_host(self):
        """Nova runs no filters then: it could not be claimed."""
        def select():
            self.query()
            raise exception.NoValidHost(reason='')

        self.select = select
        self.answer = [{'allocations': {}}], {}, '1.36'
        for forced in True, False:
            self.refusals.clear()
            self.spec.force_hosts = ['a'] if forced else None
            followed = self.schedule()
            self.assertEqual((True, forced),
                             (followed.filtered, followed.passed))

    def test_no_answer_to_the_second_query(self):
        """What the first one had does not count: Nova raises."""
        def select():
            self.query()
            self.answer = None, None, None
            self.query()
            raise TypeError

        self.select = select
        self.answer = [{'allocations': {}}], {}, '1.36'
        self.assertRaises(TypeError, self.schedule)
        (followed, _message), = self.refusals
        self.assertEqual((False, False),
                         (followed.answered, followed.filtered))

    def test_queries(self):
        """In words of Placement, without the limit."""
        def select():
            for enabled in True, False:
                resources = utils.ResourceRequest()
                resources._add_resource(
                    'PCPU' if enabled else 'VCPU', 2)
                resources._add_trait('HW_NUMA_ROOT', 'required')
                self.query(resources)
            raise exception.NoValidHost(reason='')

        self.select = select
        self.answer = [], {}, '1.36'
        followed = self.schedule()
        self.assertEqual(
            ('required=HW_NUMA_ROOT&resources=PCPU:2',
             'required=HW_NUMA_ROOT&resources=VCPU:2'), followed.queries())
        self.assertEqual((True, False, ''), (
            followed.answered, followed.filtered, self.message))

    def test_answers(self):
        """Nova merges the summaries of both queries."""
        def select():
            for self.answer in (([], {'a': 1, 'b': 2}, '1.36'),
                                ([], {'b': 3}, '1.36')):
                self.query()

        self.select = select
        for self.wanted in True, False:
            self.answers.clear()
            self.schedule()
            self.assertEqual([
                (self.spec, {'a': 1, 'b': 2}), (self.spec, {'a': 1, 'b': 3})],
                self.answers)
        self.query()  # of none of its requests
        self.assertEqual(2, len(self.answers))

    def test_wrapped(self):
        """No others than README says."""
        readme = pathlib.Path(__file__).parents[4] / 'README.md'
        text = readme.read_text()
        for name in no_valid_host.WRAPPED:
            self.assertIn(f'`{name}`', text)
        self.assertEqual(set(no_valid_host.WRAPPED), {
            f'{cls.__name__}.{name}'
            for cls in (manager.SchedulerManager, report.SchedulerReportClient,
                        host_manager.HostManager, host_manager.HostState)
            for name, value in vars(cls).items()
            if hasattr(value, '_nfv_sched_followed')})

    def test_no_answer(self):
        for self.answer in None, (None, None, None):
            def select():
                self.query()
                raise TypeError

            self.select = select
            self.refusals.clear()
            self.assertRaises(TypeError, self.schedule)
            (followed, message), = self.refusals
            self.assertEqual((False, ''), (followed.answered, message))

    def test_another_error(self):
        def select():
            raise ZeroDivisionError

        self.select = select
        self.assertRaises(ZeroDivisionError, self.schedule)
        self.assertEqual([], self.refusals)

    def test_not_wanted(self):
        """Then nothing is touched, whatever has been before."""
        self.wanted = False
        self.assertIsNone(self.schedule())
        self.assertEqual({'names'}, set(vars(self.filters[0])))
        self.wanted = True
        self.assertIsNotNone(self.schedule())
        self.wanted = False
        self.refusals.clear()
        self.assertIsNone(self.schedule())

    def test_nothing_breaks_nova(self):
        def fail(*args):
            raise ZeroDivisionError

        self.refused = fail
        self.assertIsNone(self.schedule())
        self.assertIn('Why there is no valid host cannot be noted',
                      self.log.output)
        self.filters = [Odd(), *self.filters]
        self.assertIsNone(self.schedule())
        self.assertIn('What Odd does cannot be noted', self.log.output)
        self.useFixture(fixtures.MockPatchObject(
            no_valid_host.FollowedRequest, 'queried', side_effect=fail))
        self.schedule()
        self.assertIn('What Placement was asked cannot be noted',
                      self.log.output)

    def test_another_nova(self):
        """What is not there is not wrapped."""
        self.useFixture(fixtures.MockPatchObject(
            manager, 'SchedulerManager', None))
        self.useFixture(fixtures.MockPatchObject(manager, 'report', None))
        no_valid_host.watch(
            print, bool, self.refused, self.tenant_reason)


class Odd:
    """A filter to which nothing can be added."""

    __slots__ = ()

    def filter_all(self, filter_obj_list, spec_obj):
        return filter_obj_list
