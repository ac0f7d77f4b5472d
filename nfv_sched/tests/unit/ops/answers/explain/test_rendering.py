# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.ops.answers.explain import causes
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.answers.explain import relaxation
from nfv_sched.ops.answers.explain import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.explain import clouds
from nfv_sched.tests.unit.ops.answers.explain import test_explanation
from nfv_sched.tests.unit.ops import small_clouds


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
        need=values.PlacementNeed(text, 'resource'),
        hosts_missing_it=missing, hosts_without_it=without)


def removed(text):
    return values.StageRemoval(
        need=values.PlacementNeed(text, 'resource'), hosts=1)


class TextTest(base.TimedTestCase):

    def text(self, width=120, options=None, **fields):
        found = clouds.explained(**{'placement': ASKED, **fields})
        return tables.render(rendering.text(
            found, rendering.best_first(found, found.hosts),
            **{'details': True, **(options or {})}), width)

    def test_refused(self):
        stages = stage('AFilter', 2, 2), stage('BFilter', 2, 0, 3)
        found = self.text(
            asks_for='4 vCPUs', reason='no room', assumed=('no networks',),
            placement=dataclasses.replace(
                ASKED, hosts=3, hosts_left=2, requirements=(
                    required('PCPU=4', 1, 3), required('trait X', 0, 2)),
                removed=(removed('VCPU=4'),), max_placement_results=2,
                hosts_cut_off=1),
            filters=stages,
            hosts=(host('far', 'a', 'b', misses=('PCPU 4 needed, 2 free',)),
                   host('near', 'too [small]', 'too [small]')),
            nearest=('near', 'far'), changes_tried=2, changes=(
                clouds.change('2 vCPUs'),))
        for line in (
                'It does not fit: no room', 'Assumed: no networks',
                'VCPU=4: 1 host\n', 'max_placement_results = 2 has cut off 1 ',
                'F0, F1: too [small]', 'Nearest: near, far',
                'Placement: PCPU 4 needed, 2 free'):
            self.assertIn(line, found)
        self.assertNotIn('AFilter', found)
        self.assertLess(found.index('2 filters'),
                        found.index('Placement + 2 filters'))
        self.assertIn('AFilter', self.text(
            filters=stages, options={'all_filters': True}))
        parts = [found.index(title) for title in (
            'no room', 'It would fit if', 'Verdict', 'What removed them')]
        self.assertEqual(sorted(parts), parts)
        for size, shown in ((0, False), (relaxation.FLAVOR, True)):
            self.assertIs(shown, 'No change of the request' in self.text(
                changes_tried=2, changes=(dataclasses.replace(
                    clouds.change('x'), size=size),)))
        for error in (None, 'KeyError'):
            self.assertIs(error is not None, 'What removed them' in self.text(
                options={'details': False}, filters=(dataclasses.replace(
                    stages[0], error=error),)))

    def test_nothing_weighed(self):
        for hosts, expected in (('a', 'Only one host passes'),
                                ('abc', '3 hosts pass the filters, and no')):
            self.assertIn(expected, self.text(fits=True, hosts=tuple([
                host(name, rank=n) for n, name in enumerate(hosts, 1)]),
                weighing=order(dict.fromkeys(hosts, 0.0))))

    def test_in_shadow(self):
        self.assertRegex(
            self.text(fits=True, hosts=(
                clouds.verdict('a', passes=True, rank=1, refusals_in_shadow=(
                    values.refusal('SomeFilter', 'no switch'),)),)),
            'a +passes, first +Some, which is in shadow: no switch')

    def test_fits(self):
        found = self.text(
            fits=True,
            destinations=(destination('h1', (0,), (1, 2, 3, 7, 9, 10)),),
            hosts=(host('h2', rank=2, present=True), host('h1', rank=1)),
            weighing=order(
                {'h1': 1000.0, 'h2': 1.0},
                ('WWeigher', ((1, 1, 1000.0), (0, 0, 1000.0)), 'h2'),
                ('Idle', ((1, 0, 1.0), (1, 0, 1.0)), None),
                equal=2, subset=3))
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
        for width in 80, None:
            found = self.text(
                width, fits=True, hosts=tuple(
                    host(name, rank=n) for n, name in enumerate(names, 1)),
                weighing=order(dict.fromkeys(names, 1.0),
                               ('DiskWeigher', weights, None)))
            for name, weight in zip(names, ('1024000', f'1{"0" * 15}', '0')):
                self.assertRegex(found, f'DiskWeigher +{name} ' + (
                    '' if width else f' +{weight} +1 +-0.5 +-0.5 '))

    def test_old_weights(self):
        for age, said in ((None, None), (59, None), (60, '1 minute'),
                          (7300, '2 hours'), (259300, '3 days')):
            found = self.text(
                fits=True, hosts=(host('a', rank=1), host('b', rank=2)),
                weighing=order(
                    {'a': 1.0, 'b': 0.0}, ('W', ((1.0, 1.0, 1.0),) * 2, None),
                    read_at='2026-01-02T03:04:05Z', age=age))
            self.assertEqual(said is not None, 'io_workload' in found)
            self.assertIn(f'{said} ago, at 2026-' if said else '', found)

    def test_found_by_the_second_query(self):
        """What the first finds no host for has removed none."""
        asked = answer(
            queries=ASKED.queries * 2, hosts=2, hosts_left=2, asks_again=True,
            requirements=(required('PCPU=4', 1, 2),))
        self.assertNotIn('PCPU=4', self.text(placement=asked))
        found = self.text(placement=dataclasses.replace(
            asked, hosts_left=1, removed=(removed('no trait X'),)))
        self.assertIn('no trait X: 1 host\n', found)
        self.assertNotIn('PCPU=4: 1 host', found)
        self.assertIn('Asked of Placement first', found)

    def test_long_lists(self):
        many = {'hosts': tuple(
            host(f'h{number:03}', 'full ' * 60) for number in range(50))}
        found = self.text(**many)
        self.assertIn('30 hosts more', found)
        self.assertNotIn('h020', found)
        self.assertIn('h049', self.text(
            options={'most': None}, **many))
        self.assertLessEqual(max(map(len, found.splitlines())), 120)

    def test_refused_by_the_api(self):
        """No host was looked at."""
        found = self.text(
            reason='the Nova API refuses the flavor', hosts=(host('a'),),
            placement=answer(hosts=1), changes=(clouds.change(
                'without the PCI devices'),))
        self.assertNotIn('Placement', found)
        self.assertNotIn('not considered', found)
        self.assertIn('without the PCI devices', found)

    def test_several_servers(self):
        """One host for the first says nothing about the one refused."""
        for places, *texts in (
            ((), 'It does not fit: full'),
            ((destination('a'),), 'It does not fit (server 2 of 3): full',
             'For the first server: Only one host passes')):
            found = self.text(
                reason='full', count=3, destinations=places, hosts=tuple([
                    host(place.host, rank=1) for place in places]),
                weighing=order({'a': 0.0}) if places else None)
            for text in texts:
                self.assertIn(text, found)


_FLAVOR = snapshot.Flavor(name='f', vcpus=4, memory=512, extra_specs={
    'pci_passthrough:alias': 'gpu:1,nic:3'})
_SUBJECT = subject.ExplainSubject(
    text='Flavor f', requested=request.BootRequest(flavor=_FLAVOR))


class TenantTest(base.TimedTestCase):

    def needs(self, *hosts):
        lines = rendering.tenant_text(clouds.explained(
            causes=causes.find(hosts, ())), _SUBJECT)
        return [line.removeprefix('- ') for line in lines
                if line.startswith('- ')]

    def test_placement(self):
        for kind, fields, text in (
                ('resource', {'resources': {'PCPU': 4}},
                 '4 dedicated CPUs needed'),
                ('trait', {'traits': ('A',)}, 'the trait A needed'),
                ('forbidden_trait', {'traits': ('A',)},
                 'not the trait A needed'),
                ('group', {'resources': {'VF': 1}, 'traits': ('A',),
                           'forbidden_traits': ('B',)},
                 '1 VF and the trait A and not the trait B needed'),
                ('aggregate', {'aggregates': ('secret',)},
                 'a host in the zone, or for the project, of the server '
                 'needed'),
                ('tree', {'host': 'secret'},
                 'a host in the zone, or for the project, of the server '
                 'needed'),
                ('unknown', {},
                 'a host that the operator of the cloud must look at')):
            need = values.PlacementNeed('secret', kind, **fields)
            self.assertEqual([text], self.needs(clouds.verdict(
                'h', clouds.lack('', need, 2))))

    def test_filters(self):
        for fields, text in (
                ({'text': 'secret'},
                 'a host that the operator of the cloud must look at'),
                ({'text': 'raised secret', 'raised': True},
                 'a host that the operator of the cloud must look at'),
                ({'text': 'service disabled: secret',
                  'kind': 'disabled'},
                 'hosts that would do are not in service'),
                ({'text': 'flavor: bad key',
                  'kind': 'request'}, 'flavor: bad key'),
                ({'text': 'a needed, secret', 'need': 'a needed',
                  'policy': 'p=strict'}, 'p=strict: a needed')):
            self.assertEqual([text], self.needs(clouds.verdict(
                'h', values.refusal('F', **fields))))

    def test_changes(self):
        """No amounts that are free, and no hosts."""
        self.assertEqual(
            ['A new server of the flavor f cannot be placed now.',
             'It could be placed with one of these changes:', '- b',
             'It could be placed if it were smaller.'],
            rendering.tenant_text(clouds.explained(changes=(
                *[clouds.change(text, requested=request.BootRequest(
                    flavor=dataclasses.replace(_FLAVOR, **fields)))
                  for text, fields in (
                      ('2 vCPUs', {'vcpus': 2}),
                      ('1 device', {'extra_specs': {
                          'pci_passthrough:alias': 'gpu:1,nic:1'}}))],
                clouds.change('h enabled', requested=_SUBJECT.requested,
                              enabled=('h',)),
                clouds.change('b', requested=_SUBJECT.requested))), _SUBJECT))

    def test_flavors(self):
        """Of one that runs no more, with what to ask for."""
        subject = dataclasses.replace(_SUBJECT, server=snapshots.server('s'))
        other = dataclasses.replace(_FLAVOR, name='g', vcpus=1)
        self.assertEqual(
            ['The server s cannot be placed now.',
             'With the same ports it could be placed now if its flavor were '
             'g.', 'Otherwise ask those who run the cloud, and name the '
             f'server: {subject.server.uuid}.'],
            rendering.tenant_text(clouds.explained(changes=(
                clouds.change('h enabled', requested=_SUBJECT.requested,
                              enabled=('h',)),
                clouds.change('flavor g', requested=request.BootRequest(
                    flavor=other)))), subject))

    def test_not_refused(self):
        self.assertEqual(
            ['A new server of the flavor f can be placed now.'],
            rendering.tenant_text(clouds.explained(fits=True), _SUBJECT))


class OthersTest(test_explanation.ExplanationTestCase):

    def test_what_others_use(self):
        """The text is the same whatever others have, if it does not fit."""
        texts = set()
        for names, used in ((('alpha', 'beta'), (3, 4, 4, 3)),
                            (('gamma', 'delta', 'eps'), (5, 5, 6, 4, 3, 3))):
            cloud = small_clouds.cloud(*[
                small_clouds.host(name, *[
                    small_clouds.node(node, range(used[2 * number + node]))
                    for node in range(2)])
                for number, name in enumerate(names)],
                flavors=(small_clouds.flavor(
                    6, nfv__vswitch_numa_affinity='strict'),))
            with start.started(cloud) as state:
                asked = subject.flavor(cloud, state, 'pinned')
                found = explanation.explain(state, asked)
            self.assertFalse(found.fits)
            text = '\n'.join(rendering.tenant_text(found, asked))
            for name in names:
                self.assertNotIn(name, text)
            texts.add(text)
        self.assertEqual(1, len(texts))
