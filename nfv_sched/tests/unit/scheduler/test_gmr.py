# SPDX-License-Identifier: Apache-2.0
"""The section of nfv-sched in Nova's guru meditation report."""

import re
import sys
import threading
from unittest import mock

import fixtures
from nova import exception
from nova.scheduler import filters as nova_filters
from nova import version
from oslo_reports.generators import threading as threading_generator
from oslo_reports import guru_meditation_report as gmr

from nfv_sched.filters import nfv_topology
from nfv_sched.scheduler import gmr as nfv_gmr
from nfv_sched.scheduler import process
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds


class MeditationTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        # Whatever other tests have left.
        process.STATE.reset()
        self.useFixture(fixtures.MockPatchObject(
            gmr.TextGuruMeditation, 'persistent_sections', [], create=True))
        # NOTE: oslo.reports asks each object of the process whether it is a
        # greenlet, and a weak reference that another test has left raises.
        self.useFixture(fixtures.MockPatchObject(
            threading_generator, '_find_objects', return_value=[]))

    def parts(self):
        """Title of a part -> its lines."""
        return dict(nfv_gmr.section().data)


class ReportTest(MeditationTestCase):
    """The report as Nova makes it, once Nova has loaded the filters."""

    def report(self):
        """The section, and what is after it, after a request was refused."""
        handler = nova_filters.HostFilterHandler()
        classes = handler.get_matching_classes(
            ['nova.scheduler.filters.all_filters',
             'nfv_sched.filters.all_filters'])
        filters = [cls() for cls in classes
                   if cls.__name__ in ('NFVTopologyFilter',
                                       'VSwitchNUMAAffinityFilter')]
        self.flags('filter_scheduler', enabled_filters=[
            type(each).__name__ for each in filters], weight_classes=[
                'nova.scheduler.weights.ram.RAMWeigher',
                'nfv_sched.weights.router.RouterWeigher'])
        spec = clouds.spec('strict')
        spec.instance_uuid = 'a-server'
        hosts = [clouds.host('full', free={0: 1, 1: 1})]
        self.assertRaises(
            exception.NoValidHost, handler.get_filtered_objects, filters,
            hosts, spec)
        report = gmr.TextGuruMeditation(version).run()
        return report.partition('nfv-sched')[2]

    def test_report(self):
        text = self.report()
        for line in ('Look-ups in Neutron:\n'
                     '  nothing was looked up in this process yet\n',
                     ' a-server NFVTopologyFilter: NUMA topology: 2 ',
                     'Time of filters:\n  NFVTopologyFilter: 1 passes, 1 '):
            self.assertIn(line, text)
        self.assertIsNotNone(re.search(
            r'Versions:\n  nfv-sched \d+.*\n  nova \d+\.', text), text)

    def test_registered_once(self):
        for _ in range(3):
            nfv_topology.NFVTopologyFilter()
        self.assertEqual(
            [(nfv_gmr.TITLE, nfv_gmr.section)],
            list(map(tuple, gmr.TextGuruMeditation.persistent_sections)))

    def test_no_reports(self):
        """A process that makes none, such as a tool."""
        with mock.patch.dict(sys.modules):
            del sys.modules['oslo_reports.guru_meditation_report']
            nfv_topology.NFVTopologyFilter()
            self.assertNotIn('oslo_reports.guru_meditation_report',
                             sys.modules)
        self.assertEqual([], gmr.TextGuruMeditation.persistent_sections)

    def test_other_library(self):
        """A filter is made, whatever has become of the library."""
        with mock.patch.dict(sys.modules, {
                'oslo_reports.guru_meditation_report': object()}):
            nfv_topology.NFVTopologyFilter()
        self.assertIn('will not include nfv-sched', self.log.output)


class BrokenTest(MeditationTestCase):
    """A part that fails costs itself only."""

    def check(self, title, place, value):
        """Break one source; the others are told as before."""
        before = self.parts()
        with mock.patch(place, value):
            text = str(self.report())
            after = self.parts()
        self.assertIn('not known: ', after[title][-1])
        self.assertIn(after[title][-1], text)
        for other, lines in before.items():
            if other != title:
                self.assertEqual(lines, after[other])

    def report(self):
        nfv_gmr.register()
        return gmr.TextGuruMeditation(version).run()

    def test_sources(self):
        def fail(*_args, **_kwargs):
            raise ZeroDivisionError('two\nlines')

        for title, place in (
            ('Versions', 'importlib.metadata.version'),
            ('In shadow', 'nfv_sched.scheduler.process.Process.in_shadow'),
        ):
            self.check(title, place, fail)
            with mock.patch(place, fail):
                self.assertEqual('not known: ZeroDivisionError: two lines',
                                 self.parts()[title][-1])

    def test_values(self):
        for title, place, value in (
            ('Look-ups in Neutron', 'lookups', 1),
            ('Last refusals', 'refusals', [None]),
            ('Time of filters', 'passes', None),
        ):
            self.check(title, f'nfv_sched.scheduler.process.STATE.{place}',
                       value)

    def test_exception_without_words(self):
        class OddError(Exception):
            def __str__(self):
                raise self

        def fail(*_args):
            raise OddError

        with mock.patch('nfv_sched.scheduler.process.Process.in_shadow', fail):
            self.assertEqual(['not known: OddError'],
                             self.parts()['In shadow'])


class PartsTest(MeditationTestCase):

    def test_lookups(self):
        process.STATE.lookups_in_neutron(mock.Mock)
        lookups = process.STATE.lookups
        lookups.failures, lookups.last_error = 0, ''
        self.assertEqual(['0 failures since the last answer'],
                         self.parts()['Look-ups in Neutron'])
        lookups.failures, lookups.last_error = 2, 'no route'
        self.assertEqual(
            ['2 failures since the last answer', 'last error: no route'],
            self.parts()['Look-ups in Neutron'])

    def test_nothing_is_started(self):
        before = threading.active_count()
        self.parts()
        self.assertEqual(before, threading.active_count())
        self.assertIsNone(process.STATE.lookups)

    def test_refusals(self):
        for number in range(25):
            process.STATE.refusals.append(process.LoggedRefusal(
                number, f'server{number}', 'AFilter', 'no\nroom'))
        lines = self.parts()['Last refusals']
        self.assertEqual(20, len(lines))
        self.assertEqual(
            '1970-01-01T00:00:24.000Z server24 AFilter: no room', lines[0])

    def test_times(self):
        process.STATE.add_pass('AFilter', 100, 0.001)
        process.STATE.add_pass('AFilter', 300, 0.003)
        self.assertEqual(
            ['AFilter: 2 passes, 400 hosts, mean 2.000 ms, longest 3.000 ms, '
             '10.0 us a host'], self.parts()['Time of filters'])
