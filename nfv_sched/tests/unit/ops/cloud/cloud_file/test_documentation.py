# SPDX-License-Identifier: Apache-2.0
"""What a cloud file may have is in the documentation."""

import dataclasses
import os

import nfv_sched
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.tests import base

_PAGE = os.path.join(
    os.path.dirname(os.path.dirname(nfv_sched.__file__)), 'doc', 'source',
    'reference', 'simulator.rst')


def _keys(kind):
    return {field.name for field in dataclasses.fields(kind)
            if not field.metadata.get('internal')}


class DocumentationTest(base.TimedTestCase):

    def test_fields(self):
        with open(_PAGE) as page:
            text = page.read()
        keys = set().union(*(
            _keys(kind) for module in (actions, model)
            for kind in vars(module).values()
            if dataclasses.is_dataclass(kind))) | actions.TYPES.keys()
        self.assertGreater(len(keys), 80)
        self.assertEqual([], sorted(
            key for key in keys if f'``{key}``' not in text
            and f'``{key}:' not in text))
