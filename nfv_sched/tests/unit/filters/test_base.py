# SPDX-License-Identifier: Apache-2.0
"""What all filters have in common."""

import threading
from unittest import mock

from nova import exception
from nova.scheduler import filters as nova_filters

from nfv_sched.filters import all_filters
from nfv_sched.filters import nfv_topology
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import refusals
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base
from nfv_sched.tests.unit import test_house


class TestThreads(base.FilterTestCase):
    """Filters are shared by the threads of a scheduler."""

    def test_requests_do_not_see_each_other(self):
        wrong = []

        def work(number):
            for _ in range(60):
                switch = (number % 2,)
                host = clouds.host(f'host{number}', switch=switch)
                full = clouds.host(f'full{number}', switch=switch,
                                   free={0: 0, 1: 0})
                spec = clouds.spec('strict')
                if self.passing([full, host], spec) != [f'host{number}']:
                    wrong.append(number)
                if self.node_of(host) != [number % 2]:
                    wrong.append(number)
                try:
                    self.passing([clouds.host(free={1: number % 3 % 2})],
                                 clouds.spec('strict'))
                    wrong.append(number)
                except exception.NoValidHost as error:
                    if f'{number % 3 % 2} free' not in str(error):
                        wrong.append(str(error))

        threads = [threading.Thread(target=work, args=(number,))
                   for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)


class TestPrepared(base.FilterTestCase):
    """What is the same for all hosts of a pass."""

    def setUp(self):
        super().setUp()
        self.hosts = [clouds.host('one'), clouds.host('two')]
        self.spec = clouds.spec('strict')

    def run_with(self, cls, **kwargs):
        with mock.patch.object(
                active_rules, 'for_request', **kwargs) as mocked:
            return cls().filter_all(self.hosts, self.spec), mocked

    def test_once(self):
        for cls in (nfv_topology.NFVTopologyFilter,
                    vswitch_numa_affinity.VSwitchNUMAAffinityFilter):
            passed, mocked = self.run_with(
                cls, wraps=active_rules.for_request)
            self.assertEqual(self.hosts, passed)
            mocked.assert_called_once()

    def test_cannot_be_worked_out(self):
        passed, _mocked = self.run_with(
            vswitch_numa_affinity.VSwitchNUMAAffinityFilter,
            side_effect=RuntimeError('odd'))
        self.assertEqual([], passed)
        rejected = notes.note_of(self.spec).rejected
        self.assertEqual(['one', 'two'], [host for host, _why in rejected])
        for _host, why in rejected:
            self.assertIn('see the log', str(refusals.resolve(why)))


class TestLoading(tests_base.TestCase):

    def test_nova_loads_the_filters(self):
        classes = nova_filters.HostFilterHandler().get_matching_classes(
            ['nova.scheduler.filters.all_filters',
             'nfv_sched.filters.all_filters'])
        self.assertIn(nfv_topology.NFVTopologyFilter, classes)
        self.assertIn(vswitch_numa_affinity.VSwitchNUMAAffinityFilter,
                      classes)

    def test_names(self):
        self.assertEqual(
            sorted(test_house.entry_points(
                test_house.ROOT)['nfv_sched.filters']),
            [cls.__name__ for cls in all_filters()])
