# SPDX-License-Identifier: Apache-2.0
"""What Placement said of the ledgers to a request."""

import fixtures
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.ledger import reader
from nfv_sched.limits import names
from nfv_sched.tests import base

SUMMARY = {'traits': [names.TRAIT], 'resources': {
    names.PORTS: {'capacity': 10, 'used': 4}}}


class ReadingTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nfv_sched'))
        reader.MALFORMED_LOGGED.clear()

    def left(self, summary, resource_class=names.PORTS):
        return reader.Reading(
            {names.provider_uuid(uuids.node): summary}).left(
            uuids.node, resource_class)

    def test_left(self):
        self.assertEqual(6, self.left(SUMMARY))
        self.assertEqual(0, self.left(SUMMARY, names.RULES))
        self.assertIsNone(self.left({**SUMMARY, 'traits': ['X']}))
        for node in (uuids.node, None):
            self.assertIsNone(reader.Reading({}).left(node, names.PORTS))
        self.assertEqual('', self.log.output)

    def test_malformed(self):
        """Whatever it is, it is one line in the log."""
        for summary in (
            {}, [], 'x', {'traits': None}, {'traits': [names.TRAIT]},
            {**SUMMARY, 'resources': []},
            {**SUMMARY, 'resources': {names.PORTS: {'used': 1}}},
            {**SUMMARY, 'resources': {names.PORTS: {
                'capacity': '9', 'used': 1}}},
            {**SUMMARY, 'resources': {names.PORTS: {
                'capacity': float('inf'), 'used': 1}}},
        ):
            self.assertIsNone(self.left(summary), summary)
        self.assertEqual(1, self.log.output.count('is malformed'))
