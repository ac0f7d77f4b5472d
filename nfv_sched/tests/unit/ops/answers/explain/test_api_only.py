# SPDX-License-Identifier: Apache-2.0
"""What Placement finds, where only the API of a cloud is known."""

import dataclasses

from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.cloud import api_only
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.ops.model.requests import request
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops import small_clouds


def by_placement(cloud, of, name, **options):
    """The explanation for a cloud of which the API is known.

    :param of: ``subject.flavor`` or ``subject.server``
    """
    with start.started(api_only.startable(cloud)) as state:
        return explanation.explain_placement(
            state, of(cloud, state, name, **options))


class PlacementTest(base.TestCase):

    def assertSameStage(self, cloud, of, name):
        """The API tells the same of Placement as the whole cloud."""
        with start.started(cloud) as state:
            asked = of(cloud, state, name)
            wanted = explanation.explain(
                state, asked.text, asked.requested, present=asked.present,
                relax_seconds=0)
        found = by_placement(small_clouds.by_api(cloud), of, name)
        self.assertEqual(
            (wanted.subject, wanted.placement),
            (found.subject, found.placement))
        self.assertEqual(
            [(host.name, host.present, host.found, host.misses)
             for host in wanted.hosts],
            [(host.name, host.present, host.found, host.misses)
             for host in found.hosts])
        if not found.placement.left:
            self.assertEqual((False, wanted.reason),
                             (found.fits, found.reason))

    def test_as_of_the_whole_cloud(self):
        for example in ('carrier-grade', 'hyper-converged',
                        'platform/aggregates', 'platform/availability-zones',
                        'platform/cpu-features', 'platform/evacuate'):
            cloud = source.load(str(examples.find()[example]))
            for of, names in (
                (subject.flavor, [each.name for each in cloud.flavors
                                  if api_only.ALIAS not in each.extra_specs]),
                (subject.server, [each.uuid for each in cloud.servers[:8]]),
            ):
                for name in names:
                    with self.subTest(example=example, name=name):
                        self.assertSameStage(cloud, of, name)


class ExplanationTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cloud = small_clouds.by_api(small_clouds.cloud(
            small_clouds.host('one'),
            small_clouds.host('two', small_clouds.node(0, range(6))),
            flavors=(small_clouds.flavor(4, name='four'),
                     small_clouds.flavor(40, name='many'))))

    def test_found(self):
        """No filter was asked: nothing is said of them."""
        found = by_placement(self.cloud, subject.flavor, 'four')
        self.assertEqual((None, ''), (found.fits, found.reason))
        self.assertEqual((None, None, ()), (
            found.filters, found.weighing, found.relaxations))
        one, two = found.hosts
        self.assertEqual((True, None, None),
                         (one.found, one.refusals, one.passed))
        self.assertEqual(('PCPU 4 needed, 2 free',), two.misses)
        self.assertIn('[scheduler]', found.assumed[0])

    def test_not_found(self):
        found = by_placement(self.cloud, subject.flavor, 'many')
        self.assertIs(False, found.fits)
        self.assertIn('Placement has no host with', found.reason)

    def test_devices_are_left_out(self):
        """They are named in what it asks for, and as left out."""
        four = self.cloud.flavors[0]
        cloud = dataclasses.replace(self.cloud, flavors=(dataclasses.replace(
            four, extra_specs={**four.extra_specs,
                               api_only.ALIAS: 'nic:1'}),))
        found = by_placement(cloud, subject.flavor, 'four')
        self.assertEqual((None, 1), (found.fits, found.placement.left))
        self.assertIn('pci_passthrough:alias=nic:1', found.request)
        self.assertIn('PCI devices are not looked at', found.assumed[1])

    def test_refused(self):
        """What Nova's API refuses, Placement is not asked for."""
        cloud = dataclasses.replace(self.cloud, flavors=(
            small_clouds.flavor(4, name='odd', hw__cpu_policy='none'),))
        found = by_placement(cloud, subject.flavor, 'odd')
        self.assertIs(False, found.fits)
        self.assertIn('none', found.reason)
        self.assertEqual((), found.placement.queries)

    def test_hosts_that_placement_fails_for(self):
        """They are left out, and not others without resource providers."""
        unread = self.cloud.hosts[0]
        cloud = dataclasses.replace(self.cloud, hosts=tuple(
            dataclasses.replace(host, providers=())
            for host in self.cloud.hosts))
        for missing in (
                (), snapshots.missing('Placement cannot be read for 1 host'),
                (snapshot.Missing(kind=snapshot.MissingKind.SILENT_HOSTS,
                                  hosts=('Placement-az1-3', unread.name)),)):
            self.assertEqual(cloud.hosts, api_only.known(
                dataclasses.replace(cloud, missing=missing)).hosts)
        self.assertEqual(cloud.hosts[1:], api_only.known(dataclasses.replace(
            cloud, missing=(snapshot.Missing(
                kind=snapshot.MissingKind.PROVIDERS, uuids=(unread.uuid,)),
            ))).hosts)

    def test_no_such_flavor(self):
        with self.assertRaisesRegex(request.ExplainError, 'no flavor'):
            by_placement(self.cloud, subject.flavor, 'nothing')
