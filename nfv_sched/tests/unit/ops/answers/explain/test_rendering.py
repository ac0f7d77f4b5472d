# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.model.verdicts import values
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.explain import clouds


def host(name, *texts, misses=(), rank=None, present=False):
    return clouds.verdict(
        name, *map(clouds.lack, misses), *[
            values.refusal(f'F{number}Filter', text)
            for number, text in enumerate(texts)],
        runs_there=present, passes=rank is not None, rank=rank)


def answer(**fields):
    return dataclasses.replace(clouds.NOT_ASKED, **fields)


def stage(name, hosts_in=None, hosts_out=None, refuses_alone=0):
    return document.FilterStage(
        filter=name, hosts_in=hosts_in, hosts_out=hosts_out,
        refuses_alone=refuses_alone, error=None)


def destination(host, numa_nodes=None, cpus=()):
    return document.Destination(
        host=host, host_id='', numa_nodes=numa_nodes, cpus=cpus,
        pci_devices=(), failed_claims=())


def order(hosts, *weighers, equal=1, subset=1, read_at=None, age=None):
    """The order of hosts.

    :param hosts: name -> weight
    :param weighers: (name, raw, normalized, multiplier for each host), and
        the host that is first without it
    """
    return document.HostOrder(
        hosts=tuple([document.HostTotal(host=name, weight=weight)
                     for name, weight in hosts.items()]),
        weighers=tuple([document.WeigherWeights(
            weigher=weigher, first_without_it=other, weights=tuple([
                document.HostWeight(
                    host=name, raw=raw, normalized=normalized,
                    multiplier=multiplier, weight=normalized * multiplier)
                for name, (raw, normalized, multiplier)
                in zip(hosts, weights)]))
            for weigher, weights, other in weighers]),
        equal_hosts=equal, host_subset_size=subset, read_at=read_at,
        age_seconds=age)


ASKED = answer(queries=(values.PlacementQuery(needs=()),))


def required(text, missing, without):
    return values.StageRequirement(
        need=values.placement_need(text, 'resource'),
        hosts_missing_it=missing, hosts_without_it=without)


def removed(text):
    return values.StageRemoval(
        need=values.placement_need(text, 'resource'), hosts=1)


class TextTest(base.TimedTestCase):

    def text(self, found, **options):
        return tables.render(rendering.text(
            found, [host.host for host in found.hosts], **options), 120)

    def test_refused(self):
        found = self.text(clouds.explained(
            subject='Server s', asks_for='4 vCPUs', reason='no room',
            assumed=('no networks',),
            placement=dataclasses.replace(
                ASKED, hosts=3, hosts_left=2, requirements=(
                    required('PCPU=4', 1, 3),
                    required('trait X', 0, 2)),
                removed=(removed('VCPU=4'),), max_placement_results=2,
                hosts_cut_off=1),
            filters=(
                stage('AFilter', 2, 2), stage('BFilter', 2, 0, 3)),
            hosts=(host('far', 'a', 'b', misses=('PCPU 4 needed, 2 free',)),
                   host('near', 'too [small]', 'too [small]')),
            nearest=('near', 'far'), changes_tried=2, changes=(
                clouds.change('2 vCPUs'),)))
        for line in (
                'It does not fit: no room', 'Assumed: no networks',
                'VCPU=4: 1 host\n', 'max_placement_results = 2 has cut off 1 ',
                'F0, F1: too [small]', 'Nearest: near, far',
                'Placement: PCPU 4 needed, 2 free'):
            self.assertIn(line, found)
        self.assertNotIn('AFilter', found)
        self.assertLess(found.index('2 filters'),
                        found.index('Placement + 2 filters'))
        self.assertIn('AFilter', self.text(clouds.explained(
            filters=(stage('AFilter'),),
            placement=ASKED), all_filters=True))

    def test_nothing_weighed(self):
        for hosts, expected in (('a', 'Only one host passes'),
                                ('abc', '3 hosts pass the filters, and no')):
            self.assertIn(expected, self.text(clouds.explained(
                fits=True, placement=ASKED, hosts=tuple([
                    host(name, rank=n) for n, name in enumerate(hosts, 1)]),
                weighing=order(dict.fromkeys(hosts, 0.0)))))

    def test_in_shadow(self):
        text = self.text(clouds.explained(
            fits=True, placement=ASKED, hosts=(
                clouds.verdict('a', passes=True, rank=1, refusals_in_shadow=(
                    values.refusal('SomeFilter', 'no switch'),)),)))
        self.assertRegex(
            text, 'a +passes, first +Some, which is in shadow: no switch')

    def test_fits(self):
        found = self.text(clouds.explained(
            subject='Server s', asks_for='4 vCPUs', fits=True,
            placement=ASKED,
            destinations=(destination('h1', (0,), (1, 2, 3, 7, 9, 10)),),
            hosts=(host('h2', rank=2, present=True), host('h1', rank=1)),
            weighing=order(
                {'h1': 1000.0, 'h2': 1.0},
                ('WWeigher', ((1, 1, 1000.0), (0, 0, 1000.0)), 'h2'),
                ('Idle', ((1, 0, 1.0), (1, 0, 1.0)), None),
                equal=2, subset=3)))
        for text in ('It fits.', 'NUMA node 0, CPUs 1-3,7,9-10.',
                     'without it h2 first', 'h2 *', '2 hosts are equal',
                     'one of the first 3'):
            self.assertIn(text, found)
        self.assertRegex(found, 'WWeigher +h1 +1 +1 +1000 +1000 ')
        self.assertNotIn('Idle', found)

    def test_weights_are_readable(self):
        """No powers of ten, and each host has its row, however narrow."""
        names = [f'cmp{n}.region1.example.net' for n in (1, 2, 3)]
        weights = [(raw, 1.0, -0.5) for raw in (1024000.0, 1e15, -0.00001)]
        parts = rendering.text(clouds.explained(
            subject='Server s', fits=True, placement=ASKED,
            hosts=tuple(host(name, rank=n) for n, name in enumerate(names, 1)),
            weighing=order(dict.fromkeys(names, 1.0),
                           ('DiskWeigher', weights, None))), names)
        narrow = tables.render(parts, 80)
        for name, weight in zip(names, ('1024000', '1000000000000000', '0')):
            self.assertRegex(narrow, f'DiskWeigher +{name} ')
            self.assertRegex(
                tables.render(parts),
                f'DiskWeigher +{name} +{weight} +1 +-0.5 +-0.5 ')

    def test_one_host_for_the_first_server(self):
        """Which says nothing about the one that does not fit."""
        found = self.text(clouds.explained(
            subject='Flavor f', fits=False, placement=ASKED, count=3,
            destinations=(destination('h1'),), hosts=(host('h1', rank=1),),
            weighing=order({'h1': 0.0})))
        self.assertIn('For the first server: Only one host passes', found)

    def test_old_weights(self):
        for age, said in ((None, None), (59, None), (60, '1 minute'),
                          (7300, '2 hours'), (259300, '3 days')):
            found = self.text(clouds.explained(
                subject='Server s', fits=True, placement=ASKED,
                hosts=(host('a', rank=1), host('b', rank=2)),
                weighing=order(
                    {'a': 1.0, 'b': 0.0}, ('W', ((1.0, 1.0, 1.0),) * 2, None),
                    read_at='2026-01-02T03:04:05Z', age=age)))
            self.assertEqual(said is not None, 'io_workload' in found)
            self.assertIn(f'{said} ago, at 2026-' if said else '', found)

    def test_found_by_the_second_query(self):
        """What the first finds no host for has removed none."""
        asked = answer(
            queries=ASKED.queries * 2, hosts=2, hosts_left=2, asks_again=True,
            requirements=(required('PCPU=4', 1, 2),))
        found = self.text(clouds.explained(placement=asked))
        self.assertNotIn('PCPU=4', found)
        found = self.text(clouds.explained(
            placement=dataclasses.replace(
                asked, hosts_left=1, removed=(removed('no trait X'),))))
        self.assertIn('no trait X: 1 host\n', found)
        self.assertNotIn('PCPU=4: 1 host', found)
        self.assertIn('Asked of Placement first', found)

    def test_long_lists(self):
        many = clouds.explained(
            placement=ASKED, hosts=tuple(
                host(f'h{number:03}', 'full ' * 60) for number in range(50)))
        found = self.text(many)
        self.assertIn('30 hosts more', found)
        self.assertNotIn('h020', found)
        self.assertIn('h049', self.text(many, everything=True))
        self.assertTrue(all(len(line) <= 120
                            for line in found.splitlines()))

    def test_refused_by_the_api(self):
        """No host was looked at."""
        found = self.text(clouds.explained(
            reason='the Nova API refuses the flavor',
            hosts=(host('a'),), placement=answer(hosts=1),
            changes=(clouds.change(
                'without the PCI devices'),)))
        self.assertNotIn('Placement', found)
        self.assertNotIn('not considered', found)
        self.assertIn('without the PCI devices', found)

    def test_several_servers(self):
        for places, text in (
            ((), 'It does not fit: full'),
            ((destination('a'),),
             'It does not fit (server 2 of 3): full')):
            self.assertIn(text, self.text(clouds.explained(
                reason='full', count=3, destinations=places)))


class RowsTest(base.TimedTestCase):

    def test_chosen_hosts(self):
        found = clouds.explained(
            hosts=(host('a', 'x'), host('b')))
        self.assertEqual(
            [('a', 'id of a', True, 'F0Filter', False, '', 'F0: x')],
            rendering.host_rows(found, ['a']))
