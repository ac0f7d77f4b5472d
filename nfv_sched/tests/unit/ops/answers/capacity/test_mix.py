# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.answers.capacity import mix
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import servers
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import small_clouds


class TestMix(base.TestCase):

    def times(self, cloud, *wanted, **kwargs):
        return mix.times(cloud, [
            (small_clouds.flavor(vcpus, name=str(vcpus)), count)
            for vcpus, count in wanted], **kwargs)

    def test_guests_share_a_host(self):
        """Of 16 CPUs, six and two times two leave six on the other node."""
        cloud = small_clouds.cloud(small_clouds.host())
        self.assertEqual(2, self.times(cloud, (6, 1), (2, 1)))
        self.assertEqual(1, self.times(cloud, (6, 1), (4, 1)))
        self.assertEqual(0, self.times(cloud, (6, 3)))

    def test_several_hosts(self):
        cloud = small_clouds.cloud(small_clouds.host('one'),
                                   small_clouds.host('two'))
        self.assertEqual(4, self.times(cloud, (6, 1), (2, 1)))
        self.assertEqual(2, self.times(
            cloud, (6, 1), (2, 1), hosts={'two'}))

    def test_the_number_of_guests_counts(self):
        filters = [*small_clouds.FILTERS, 'NumInstancesFilter']
        cloud = small_clouds.cloud(small_clouds.host(), filter_scheduler={
            'enabled_filters': filters, 'max_instances_per_host': 3})
        self.assertEqual(1, self.times(cloud, (6, 1), (2, 1)))

    def test_empty(self):
        cloud = small_clouds.cloud(small_clouds.host(
            'one', small_clouds.node(0, range(8)),
            small_clouds.node(1, range(8))))
        self.assertEqual(0, self.times(cloud, (4, 1)))
        self.assertEqual(4, self.times(cloud, (4, 1), empty=True))

    def test_project(self):
        cloud = small_clouds.cloud(
            small_clouds.host('one'), small_clouds.host('two'),
            filters=(*small_clouds.FILTERS, 'AggregateMultiTenancyIsolation'),
            aggregates=(snapshot.Aggregate(name='a', hosts=('one',), metadata={
                'filter_tenant_id': 'alpha'}),))
        for project, times in (('alpha', 8), ('beta', 4), (None, 4)):
            self.assertEqual(times, self.times(
                cloud, (4, 1), project=project), project)

    def test_a_flavor_that_the_api_refuses(self):
        exc = self.assertRaises(
            servers.Refused, mix.times,
            small_clouds.cloud(small_clouds.host()),
            [(small_clouds.flavor(), 1),
             (small_clouds.flavor(hw__cpu_thread_policy='x', name='odd'), 1)])
        self.assertIn('odd: ', str(exc))
