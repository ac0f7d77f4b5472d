# SPDX-License-Identifier: Apache-2.0
"""Count servers where OpenStack Blazar keeps hosts for reservations."""

import dataclasses

import testtools

from nfv_sched.ops.answers.capacity import smallest_move
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import document
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import blazar_clouds
from nfv_sched.tests.unit.ops import small_clouds

Kind = document.BindingKind
HINTS = {'reservation': [blazar_clouds.WHOLE]}
OF_WHOLE = {'project': 'alpha', 'hints': HINTS}


class StandInTest(base.TestCase):

    path = blazar_clouds.STAND_IN

    def setUp(self):
        super().setUp()
        blazar_clouds.enable(self, self.path)
        self.cloud = blazar_clouds.cloud(self.path)

    def count(self, number=0, **kwargs):
        found, = capacity.capacities(
            self.cloud, [self.cloud.flavors[number]],
            capacity.NewServers(**kwargs))
        return found, {name: host.fits for name, host in found.hosts.items()
                       if host.fits}

    def test_no_reservation(self):
        found, fits = self.count()
        self.assertEqual({'other': 4}, fits)
        self.assertEqual({Kind.RESERVED: 12}, small_clouds.losses_of(found))
        for name, text in (
                ('free', 'in the free pool, for reservations only'),
                ('slots', 'in the free pool, for reservations only'),
                ('whole', f'reserved by {blazar_clouds.WHOLE} for project '
                 'alpha')):
            limit, = found.hosts[name].limits
            self.assertEqual((Kind.RESERVED, text, None, True), (
                limit.kind, limit.why, limit.name, limit.alone))

    def test_reservation_of_hosts(self):
        self.assertEqual({'whole': 4}, self.count(**OF_WHOLE)[1])
        for kwargs, text in (
                ({'hints': HINTS}, f'reservation {blazar_clouds.WHOLE} is for '
                 'project alpha'),
                ({'hints': {'reservation': [blazar_clouds.LATER]},
                  'project': 'alpha'},
                 f'not in reservation {blazar_clouds.LATER}')):
            found, fits = self.count(**kwargs)
            self.assertEqual({}, fits)
            self.assertEqual(
                [(Kind.FILTER, 'BlazarFilter', text)],
                [(each.kind, each.name, each.why)
                 for each in found.hosts['whole'].limits])

    def test_next(self):
        """Without the hint it does not help that a server leaves."""
        server = snapshot.Server(
            uuid='a' * 32, name='old', host='whole', cell='cell1',
            state='active', flavor=small_clouds.flavor(),
            allocations={self.cloud.hosts[1].uuid: {'PCPU': 4}}, nodes=(
                snapshot.GuestNode(
                    host_node=1, pins={cpu: 8 + cpu for cpu in range(4)},
                    dedicated=frozenset(range(4)), memory=2048,
                    cpu_policy='dedicated'),))
        hosts = list(self.cloud.hosts)
        hosts[1] = dataclasses.replace(small_clouds.host(
            'whole', small_clouds.node(0, range(8)),
            small_clouds.node(1, range(6))), aggregates=hosts[1].aggregates)
        cloud = dataclasses.replace(
            self.cloud, hosts=tuple(hosts), servers=(server,))
        for kwargs, found in ((OF_WHOLE, {'whole': server}), ({}, {})):
            self.assertEqual(found, dict(smallest_move.find(
                cloud, cloud.flavors[0], capacity.NewServers(**kwargs),
                hosts=('whole',))))


@testtools.skipUnless(blazar_clouds.IS_INSTALLED,
                      'blazar-nova is not installed')
class BlazarNovaTest(StandInTest):
    path = blazar_clouds.REAL
