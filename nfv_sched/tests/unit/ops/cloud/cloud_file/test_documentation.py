# SPDX-License-Identifier: Apache-2.0
"""What a cloud file may have is in the documentation."""

import os

import nfv_sched
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud import schema
from nfv_sched.tests import base

_PAGE = os.path.join(
    os.path.dirname(os.path.dirname(nfv_sched.__file__)), 'doc', 'source',
    'reference', 'simulator.rst')


def _keys(value):
    if isinstance(value, dict):
        for name, item in value.items():
            if name == 'properties':
                yield from item
            yield from _keys(item)


class DocumentationTest(base.TimedTestCase):

    def test_fields(self):
        with open(_PAGE) as page:
            text = page.read()
        keys = {key for kind in (model.CloudFile, *actions.TYPES.values())
                for key in _keys(schema.for_type(kind))}
        self.assertGreater(len(keys), 80)
        self.assertEqual([], sorted(
            key for key in keys if f'``{key}``' not in text
            and f'``{key}:' not in text))
