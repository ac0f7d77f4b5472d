# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nova import objects

from nfv_sched.ops.cloud import blazar
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import blazar_clouds
from nfv_sched.tests.unit.ops import small_clouds

WHOLE = blazar.BlazarReservation(
    id=blazar_clouds.WHOLE, project_id='alpha', kind='host')
SLOTS = blazar.BlazarReservation(
    id=blazar_clouds.SLOTS, project_id='beta', kind='instance')


class HostsTest(base.TimedTestCase):

    def test_hosts(self):
        self.assertEqual(
            {'free': (), 'whole': (WHOLE,), 'slots': (SLOTS,)},
            blazar.hosts(blazar_clouds.cloud()))

    def test_free_pool_with_another_name(self):
        """The resource provider shows that a host is Blazar's."""
        cloud = blazar_clouds.cloud(None)
        cloud = dataclasses.replace(cloud, aggregates=cloud.aggregates[1:])
        self.assertEqual(['free', 'whole', 'slots'], [*blazar.hosts(cloud)])

    def test_placement_unread(self):
        """The free pool is known by its name, if there is a reservation."""
        cloud = blazar_clouds.cloud(None)
        cloud = dataclasses.replace(cloud, hosts=tuple(
            dataclasses.replace(host, providers=()) for host in cloud.hosts))
        self.assertEqual(['free', 'whole', 'slots'], [*blazar.hosts(cloud)])

    def test_name_of_the_free_pool(self):
        """It means nothing without Blazar."""
        aggregates = (snapshot.Aggregate(name='freepool', hosts=('one',)),)
        for filters, hosts in (((), {}), (('BlazarFilter',), {'one': ()})):
            self.assertEqual(hosts, blazar.hosts(small_clouds.cloud(
                small_clouds.host('one'), filters=filters,
                aggregates=aggregates)))

    def test_provider_of_another_host(self):
        """Only a child with the name that Blazar gives it counts."""
        host = small_clouds.host('one')
        for name, parent in (('blazar_two', host.uuid), ('blazar_one', None)):
            self.assertEqual({}, blazar.hosts(small_clouds.cloud(
                dataclasses.replace(host, providers=(
                    *host.providers, snapshot.Provider(
                        uuid='1' * 32, name=name, parent=parent))))))


class RefusalTest(base.TimedTestCase):

    def refusal(self, *aggregates, flavor=None, **hints):
        return blazar.refusal(
            [snapshot.Aggregate(name=name, metadata=metadata)
             for name, metadata in aggregates], objects.RequestSpec(
                flavor=objects.Flavor(extra_specs=flavor or {}),
                scheduler_hints=hints))

    def test_reserved(self):
        whole = ('r', {'blazar:owner': 'p', 'availability_zone': 'blazar_r'})
        slots = ('s', {'blazar:owner': 'q', 'reservation': 's'})
        self.assertEqual(('reserved by r for project p', True),
                         self.refusal(whole))
        self.assertEqual(('in the free pool, for reservations only', True),
                         self.refusal(('freepool', {}), slots))

    def test_hint(self):
        whole = ('r', {'blazar:owner': 'p', 'availability_zone': 'blazar_r'})
        for wanted, text in ((['r'], 'reservation r is for project p'),
                             (['s'], 'not in reservation s'),
                             (['s', 't'], 'not in reservation s or t')):
            self.assertEqual((text, False), self.refusal(
                whole, reservation=wanted))

    def test_preemptible(self):
        """Blazar may keep such servers to the free pool."""
        self.assertEqual(('', False), self.refusal(
            flavor={'blazar:preemptible': 'true'}))
        self.assertEqual(self.refusal(), self.refusal(
            flavor={'blazar:preemptible': 'false'}))
