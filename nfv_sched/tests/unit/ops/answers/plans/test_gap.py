# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import failover
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests.unit.ops.answers.plans import running

_Kind = snapshot.MissingKind


def replaced(cloud, **changes):
    """A cloud whose hosts and servers lack something.

    :param changes: ``host__`` or ``server__`` and a field -> its value
    """
    for kind in ('host', 'server'):
        fields = {name.removeprefix(f'{kind}__'): value
                  for name, value in changes.items()
                  if name.startswith(f'{kind}__')}
        cloud = dataclasses.replace(cloud, **{f'{kind}s': tuple(
            dataclasses.replace(each, **fields)
            for each in getattr(cloud, f'{kind}s'))})
    return dataclasses.replace(cloud, **{
        name: value for name, value in changes.items() if '__' not in name})


class GapTest(running.RunningTestCase):

    def setUp(self):
        super().setUp()
        self.cloud_read = self.running('a p1 one', 'b p2 two')

    def kinds(self, hosts=None, **changes):
        return {each.kind: each.names for each in gap.of_cloud(
            replaced(self.cloud_read, **changes), hosts)}

    def test_nothing(self):
        self.assertEqual({}, self.kinds())

    def test_neutron(self):
        """It matters where servers have ports, or a filter counts them."""
        self.assertEqual({}, self.kinds(host__network=None))
        port = (snapshot.Port(id='p', network='n'),)
        self.assertEqual({gap.GapKind.NEUTRON: ()}, self.kinds(
            host__network=None, server__ports=port))
        for name in ('VSwitchPortLimitFilter', 'SecurityRuleLimitFilter'):
            self.assertEqual({gap.GapKind.NEUTRON: ()}, self.kinds(
                host__network=None, options={
                    'filter_scheduler': {'enabled_filters': [name]}}))

    def test_ports(self):
        """Only those of servers that the plan moves."""
        self.assertEqual(
            {gap.GapKind.PORTS: ('a', 'b')}, self.kinds(server__ports=None))
        self.assertEqual(
            {gap.GapKind.PORTS: ('b',)},
            self.kinds(hosts=['two'], server__ports=None))
        port = (snapshot.Port(id='p', has_allocation=True),)
        self.assertEqual({gap.GapKind.PORT_RESOURCES: ('a',)},
                         self.kinds(hosts=['one'], server__ports=port))

    def test_placement(self):
        self.assertEqual({gap.GapKind.PLACEMENT: ()},
                         self.kinds(host__providers=()))
        first, *others = self.cloud_read.hosts
        missing, = gap.of_cloud(dataclasses.replace(
            self.cloud_read, hosts=(
                dataclasses.replace(first, providers=()), *others)))
        self.assertEqual(
            document.UnreadData(
                kind=gap.GapKind.PLACEMENT, names=(first.name,)), missing)

    def test_others(self):
        self.assertEqual({gap.GapKind.FLAVORS: ()}, self.kinds(flavors=()))
        self.assertEqual({}, self.kinds(moves=None))
        self.assertEqual({gap.GapKind.MIGRATIONS: ()}, self.kinds(
            moves=None, server__state=snapshot.RESIZED))
        self.assertEqual(
            {gap.GapKind.CELL: ('west', 'east'), gap.GapKind.RECORD: ('no',)},
            self.kinds(missing=(
                snapshot.Missing(kind=_Kind.SILENT_CELL, cell='west'),
                snapshot.Missing(kind=_Kind.CELL, cell='east', text='no'),
                snapshot.Missing(kind=_Kind.OTHER, text='no'))))

    def test_sentence_about_a_cell(self):
        """A text, as older files have it, or another name is no cell."""
        sentence = 'Cell west cannot be read: no'
        for missing in (
                snapshot.Missing(kind=_Kind.OTHER, text=sentence),
                snapshot.Missing(kind=_Kind.HOST, hosts=(sentence,))):
            self.assertEqual({gap.GapKind.RECORD: (str(missing),)},
                             self.kinds(missing=(missing,)))

    def test_plans(self):
        cloud = self.running('a p1 one', 'b p4 two', 'c p4 three',
                             'd p2 two', 'e p2 three')
        flavor = next(each for each in cloud.flavors if each.name == 'p3')
        now = defrag.plan(cloud, flavor, 1)
        self.assertTrue(drain.plan(cloud, 'one').exact)
        self.assertTrue(now.exact)
        cloud = replaced(cloud, host__network=None, server__ports=None)
        missing = gap.of_cloud(cloud, ['one'])
        self.assertEqual([gap.GapKind.NEUTRON, gap.GapKind.PORTS],
                         [each.kind for each in missing])
        plan = drain.plan(cloud, 'one')
        self.assertEqual((False, missing), (plan.exact, plan.unread))
        sentences = list(map(rendering.gap_text, missing))
        text = tables.render(rendering.drain_text(plan))
        again = defrag.plan(cloud, flavor, now.fits_before)
        self.assertFalse(again.exact)
        found = failover.check(cloud, ['one'])
        self.assertEqual(missing, found.hosts[0].unread)
        lost = tables.render(rendering.failover_text(found))
        for sentence in sentences:
            self.assertIn(sentence, text)
            self.assertIn(sentence, lost)
        self.assertIn(sentences[0], rendering.defrag_text(again))

    def test_sentences(self):
        for kind in gap.GapKind:
            self.assertTrue(rendering.gap_text(document.UnreadData(
                kind=kind, names=('x1',))).endswith('.'))
        self.assertEqual(
            'Resource providers in Placement of x1, x2 were not read: '
            'inventories and traits are not known.',
            rendering.gap_text(document.UnreadData(
                kind=gap.GapKind.PLACEMENT, names=('x1', 'x2'))))
