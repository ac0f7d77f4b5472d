# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.ops.answers.explain import causes
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.answers.explain import tenant
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.explain import clouds
from nfv_sched.tests.unit.ops.answers.explain import test_explanation
from nfv_sched.tests.unit.ops import small_clouds

_FLAVOR = snapshot.Flavor(name='f', vcpus=4, memory=512, extra_specs={
    'pci_passthrough:alias': 'gpu:1,nic:3'})
_SUBJECT = subject.ExplainSubject(
    text='Flavor f', requested=request.BootRequest(flavor=_FLAVOR))


class TextTest(base.TimedTestCase):

    def needs(self, *hosts):
        lines = tenant.text(clouds.explained(
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
            need = values.placement_need('secret', kind, **fields)
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
             'It could be placed with one of these changes:', '- b'],
            tenant.text(clouds.explained(changes=(
                *[clouds.change(text, requested=request.BootRequest(
                    flavor=dataclasses.replace(_FLAVOR, **fields)))
                  for text, fields in (
                      ('2 vCPUs', {'vcpus': 2}),
                      ('1 device', {'extra_specs': {
                          'pci_passthrough:alias': 'gpu:1,nic:1'}}))],
                clouds.change('h enabled', requested=_SUBJECT.requested,
                              enabled=('h',)),
                clouds.change('b', requested=_SUBJECT.requested))), _SUBJECT))

    def test_not_refused(self):
        self.assertEqual(
            ['A new server of the flavor f can be placed now.'],
            tenant.text(clouds.explained(fits=True), _SUBJECT))


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
            text = '\n'.join(tenant.text(found, asked))
            for name in names:
                self.assertNotIn(name, text)
            texts.add(text)
        self.assertEqual(1, len(texts))
