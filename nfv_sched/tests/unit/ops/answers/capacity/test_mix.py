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
        self.assertEqual(1, self.times(
            small_clouds.crowded(3), (6, 1), (2, 1)))
