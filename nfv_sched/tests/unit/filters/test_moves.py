# SPDX-License-Identifier: Apache-2.0
"""Filters on moves, whose networks Nova tells wrongly."""

import fixtures

from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestMoves(base.FilterTestCase):
    """A move, of which Nova says that a tunnelled network is used."""

    def test_tunnel_elsewhere(self):
        topology = {'physnets': {'bar': (1,)}, 'tunnel': (0,)}
        network = clouds.network('bar', tunneled=True)
        host = clouds.host(**topology)
        self.assertFalse(self.stock.host_passes(
            host, clouds.spec(network=network, move=True)))
        for networks in (['a'], ['a', 'b']):
            host = clouds.host(**topology)
            self.assertEqual(['host1'], self.passing([host], clouds.spec(
                network=network, move=True, networks=networks)))
            self.assertEqual([1], self.node_of(host))

    def test_believed_where_it_can_be_kept(self):
        host = clouds.host(physnets={'bar': (1,)}, tunnel=(1,))
        self.passing([host], clouds.spec(
            network=clouds.network('bar', tunneled=True), move=True,
            networks=['a', 'b']))
        self.assertTrue(
            host.limits['numa_topology'].network_metadata.tunneled)

    def test_true_of_a_new_server(self):
        self.flags(expose_reasons='none')
        self.assertEqual([], self.passing(
            [clouds.host(physnets={'bar': (1,)}, tunnel=(0,))],
            clouds.spec(network=clouds.network('bar', tunneled=True))))

    def test_strict_on_a_move(self):
        host = clouds.host(tunnel=(0,))
        self.assertEqual(['host1'], self.passing([host], clouds.spec(
            'strict', network=clouds.network(tunneled=True), move=True,
            networks=['a'])))
        self.assertEqual([1], self.node_of(host))

    def test_limits_that_a_live_migration_loses(self):
        self.lose_limits()
        live = {'move': True, 'live': True}
        self.assertIn('this Nova loses them', self.refusal(
            [clouds.host()], clouds.spec('strict', **live)))
        for moves, switch, spec in (
                ('refuse', (0, 1), clouds.spec('strict', **live)),
                ('refuse', (1,), clouds.spec('prefer', **live)),
                ('refuse', (1,), clouds.spec('strict', move=True)),
                ('accept', (1,), clouds.spec('strict', **live))):
            self.flags(moves_without_limits=moves)
            self.assertEqual(['host1'], self.passing(
                [clouds.host(switch=switch)], spec))

    def test_live_migrations_are_told_apart(self):
        """By Nova's database, once, and only if it matters."""
        self.lose_limits()
        self.flags(expose_reasons='none')
        asked = []
        for answer, passing in ((True, []), (False, ['host1'])):
            self.useFixture(fixtures.MockPatchObject(
                nova_scheduler, 'may_be_live_migration',
                lambda uuid: asked.append(uuid) or answer))
            spec = clouds.spec('strict', move=True, live=None)
            for _ in range(2):
                self.assertEqual(passing, self.passing([clouds.host()], spec))
            self.assertEqual([spec.instance_uuid], asked)
            asked.clear()
        for spec in (clouds.spec('strict'),
                     clouds.spec('prefer', move=True, live=None)):
            self.assertEqual(['host1'], self.passing([clouds.host()], spec))
        self.assertEqual([], asked)

    def lose_limits(self):
        """Lose the limits in live migrations, as Nova does before 2026.2."""
        self.useFixture(fixtures.MockPatchObject(
            nova_scheduler, 'live_migration_carries_limits', lambda: False))
