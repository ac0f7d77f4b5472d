# SPDX-License-Identifier: Apache-2.0
"""What stands for Nova's table of aggregates answers as the database does."""

import random

from nova import context as nova_context
from nova import objects
from nova import test
from oslo_utils import uuidutils

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals

KEYS = ('filter_tenant_id', 'filter_tenant_id_2', 'owner', 'ssd',
        'trait:HW_CPU_X86_VMX', 'trait:CUSTOM_FAST', 'xtrait:CUSTOM_FAST')
VALUES = ('alpha', 'beta', 'required', 'alpha,beta')


class AggregatesTest(test.TestCase):

    def setUp(self):
        super().setUp()
        self.context = nova_context.get_admin_context()

    def aggregates(self, rng):
        found = []
        for number in range(rng.randrange(6)):
            metadata = {key: rng.choice(VALUES) for key in
                        rng.sample(KEYS, rng.randrange(len(KEYS)))}
            made = objects.Aggregate(
                self.context, name=f'a{number}',
                uuid=uuidutils.generate_uuid(), metadata=metadata)
            made.create()
            found.append(snapshot.Aggregate(
                name=made.name, uuid=made.uuid, metadata=metadata))
        return found

    def answers(self):
        """What Nova's request filters may ask."""
        listed = objects.AggregateList
        by_metadata = {
            (key, value): {each.uuid: dict(each.metadata) for each in
                           listed.get_by_metadata(self.context, key=key,
                                                  value=value)}
            for key in (None, *KEYS) for value in (None, *VALUES)
            if key or value}
        others = {
            ignored: {each.uuid for each in
                      listed.get_non_matching_by_metadata_keys(
                          self.context, list(ignored), 'trait:',
                          value='required')}
            for ignored in ((), KEYS[4:5], KEYS[4:6], KEYS)}
        return by_metadata, others

    def test_random_aggregates(self):
        rng = random.Random(3)
        some = 0
        for _case in range(30):
            found = self.aggregates(rng)
            expected = self.answers()
            with nova_internals.offline(found):
                self.assertEqual(expected, self.answers())
            some += sum(map(bool, expected[1].values()))
            self.assertEqual(expected, self.answers())
            for each in objects.AggregateList.get_all(self.context):
                each.destroy()
        self.assertGreater(some, 20)
