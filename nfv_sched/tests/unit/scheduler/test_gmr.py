# SPDX-License-Identifier: Apache-2.0
"""The section of nfv-sched in Nova's guru meditation report."""

import re
import sys
import threading
import time
from unittest import mock

from nova import exception
from nova.scheduler import filters as nova_filters
from nova import version
from oslo_reports.generators import threading as threading_generator
from oslo_reports import guru_meditation_report as gmr

from nfv_sched.base import periodic
from nfv_sched.filters import nfv_topology
from nfv_sched.scheduler import figures as network_limits_figures
from nfv_sched.scheduler import gmr as nfv_gmr
from nfv_sched.scheduler import process
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds


class MeditationTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        # Whatever other tests have left.
        process.STATE.reset()
        network_limits_figures.process_sources()
        sections = mock.patch.object(
            gmr.TextGuruMeditation, 'persistent_sections', [], create=True)
        sections.start()
        self.addCleanup(sections.stop)
        # NOTE: oslo.reports asks each object of the process whether it is a
        # greenlet, and a weak reference that another test has left raises.
        greenlets = mock.patch.object(
            threading_generator, '_find_objects', return_value=[])
        greenlets.start()
        self.addCleanup(greenlets.stop)

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
        for line in ('Figures from Neutron:\n'
                     '  not asked for in this process yet\n',
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
            ('Figures from Neutron',
             'nfv_sched.ledger.neutron.SnapshotSource.peek'),
            ('Time of filters', 'nfv_sched.scheduler.filter_stats.Times.all'),
        ):
            self.check(title, place, fail)
            with mock.patch(place, fail):
                self.assertEqual('not known: ZeroDivisionError: two lines',
                                 self.parts()[title][-1])

    def test_values(self):
        for title, place, value in (
            ('Last refusals', 'refusals', [None]),
            ('Time of filters', 'times', None),
        ):
            self.check(title, f'nfv_sched.scheduler.process.STATE.{place}',
                       value)

    def test_exception_without_words(self):
        class OddError(Exception):
            def __str__(self):
                raise self

        def fail(*_args):
            raise OddError

        with mock.patch('nfv_sched.scheduler.filter_stats.Times.all', fail):
            self.assertEqual(['not known: OddError'],
                             self.parts()['Time of filters'])


class PartsTest(MeditationTestCase):

    def test_figures(self):
        class Refresher(periodic.Refresher):
            name = 'test'

            def interval(self):
                return 60.0

            def first_timeout(self):
                return 0.0

            def read(self):
                raise OSError('no route')

        refresher = Refresher()
        figures = network_limits_figures.process_sources().figures
        with mock.patch.object(figures, 'peek', lambda: refresher):
            self.assertEqual(
                ['not read yet'], self.parts()['Figures from Neutron'])
            refresher.get()
            deadline = time.monotonic() + 60
            while not refresher.failures and time.monotonic() < deadline:
                time.sleep(0.01)
            refresher.stop()
            self.assertEqual(
                ['not read yet', '1 failed attempts since, for 0 s',
                 'last error: OSError: no route'],
                self.parts()['Figures from Neutron'])
            for age, told in ((0, ''), (1000, ', too old to count')):
                refresher.value = mock.Mock(
                    age=lambda age=age: age, hosts={1: 2}, ports={})
                self.assertIn(f'{age} s old{told}: 1 hosts, 0 ports',
                              self.parts()['Figures from Neutron'])

    def test_nothing_is_started(self):
        before = threading.active_count()
        self.parts()
        self.assertEqual(before, threading.active_count())
        self.assertIsNone(
            network_limits_figures.process_sources().figures.peek())

    def test_refusals(self):
        """The last twenty, the newest first."""
        for number in range(25):
            process.STATE.refusals.append(process.LoggedRefusal(
                number, f'server{number}', 'AFilter', 'no\nroom'))
        lines = self.parts()['Last refusals']
        self.assertEqual(20, len(lines))
        self.assertEqual(
            '1970-01-01T00:00:24.000Z server24 AFilter: no room', lines[0])

    def test_times(self):
        process.STATE.times.add('AFilter', 100, 0.001)
        process.STATE.times.add('AFilter', 300, 0.003)
        self.assertEqual(
            ['AFilter: 2 passes, 400 hosts, mean 2.000 ms, longest 3.000 ms, '
             '10.0 us a host'], self.parts()['Time of filters'])
