# SPDX-License-Identifier: Apache-2.0

from nfv_sched.ops.answers.capacity import mix
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import small_clouds


class TestMix(base.TestCase):

    def times(self, cloud, *wanted, **kwargs):
        return mix.times(cloud, [
            (small_clouds.flavor(vcpus, name=str(vcpus)), count)
            for vcpus, count in wanted], **kwargs)

    def test_the_number_of_guests_counts(self):
        filters = [*small_clouds.FILTERS, 'NumInstancesFilter']
        cloud = small_clouds.cloud(small_clouds.host(), filter_scheduler={
            'enabled_filters': filters, 'max_instances_per_host': 3})
        self.assertEqual(1, self.times(cloud, (6, 1), (2, 1)))
