# SPDX-License-Identifier: Apache-2.0

"""A key of a cloud file is written once, in a type."""

from collections.abc import Mapping
import dataclasses
import typing as ty

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import schema
from nfv_sched.ops.cloud import values
from nfv_sched.tests import base


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Disk:
    size: values.GiB
    fast: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    owner: values.Names
    node: values.Count | None
    disks: tuple[_Disk, ...] = ()
    shelf: ty.Annotated[int, values.within(1, 9)] | None = None
    colour: ty.Literal['red', 'blue'] = 'red'
    near: Mapping[values.HostName, values.HostName] = dataclasses.field(
        default_factory=dict)
    hosts: tuple[values.HostName, ...] = ()
    cores: values.PerNode[values.Count] = 0
    line: int = schema.line()
    size: int = schema.worked_out(0)


class SchemaTestCase(base.TimedTestCase):

    GOOD = {'owner': 'me', 'node': None}

    def setUp(self):
        super().setUp()
        self.begin()

    def begin(self):
        self.found = problems.Problems('box', {('node',): 7, (): 3})

    def problems(self, **data):
        schema.check(self.found, _Box, {**self.GOOD, **data})
        return str(self.assertRaises(problems.InputError,
                                     self.found.stop_if_wrong))

    def box(self, **data):
        data = {**self.GOOD, **data}
        schema.check(self.found, _Box, data)
        self.found.stop_if_wrong()
        return schema.read(self.found, _Box, data)

    def test_values(self):
        box = self.box(disks=[{'size': '1.5 TiB'}, {'size': 7, 'fast': True}],
                       cores=[1, 2])
        self.assertEqual((_Disk(size=1536), _Disk(size=7, fast=True)),
                         box.disks)
        self.assertEqual((('me',), None, None, 'red', (1, 2), 3, 0),
                         (box.owner, box.node, box.shelf, box.colour,
                          box.cores, box.line, box.size))

    def test_problems(self):
        for data, message in (
                ({'nodes': 1}, "nodes: unknown key; did you mean 'node'?"),
                ({'line': 1}, 'line: unknown key'),
                ({'size': 1}, 'size: unknown key'),
                ({'shelf': None}, 'shelf: must be a whole number, not noth'),
                ({'shelf': 10}, 'shelf: must be at most 9, not 10'),
                ({'node': 'x'}, "box:7: node: must be a whole number or null"),
                ({'owner': []}, 'owner: must not be empty'),
                ({'owner': ''}, 'owner: must not be empty'),
                ({'owner': 1}, 'owner: must be text or a list, not 1'),
                ({'colour': 'bleu'}, "of red, blue; did you mean 'blue'?"),
                ({'disks': [{}]}, "box:3: disks[0]: 'size' is missing"),
                ({'cores': [-1]}, 'cores[0]: must be at least 0')):
            with self.subTest(data=data):
                self.begin()
                self.assertIn(message, self.problems(**data))

    def test_values_that_cannot_be_read(self):
        self.box(disks=[{'size': 1}, {'size': 'much'}])
        error = self.assertRaises(problems.InputError,
                                  self.found.stop_if_wrong)
        self.assertIn("disks[1].size: 'much' is not a size", str(error))

    def test_names(self):
        box = self.box(hosts=['a', 'b'], near={'c': 'd'})
        self.assertEqual(
            {(('hosts', 0), 'host', 'a'), (('hosts', 1), 'host', 'b'),
             (('near', 'c'), 'host', 'c'), (('near', 'c'), 'host', 'd')},
            set(schema.names_in(_Box, box, ())))

    def test_marks(self):
        self.assertEqual(['cores'],
                         schema.keys_with(_Box, values.PER_NODE))

    def test_actions(self):
        for action, kind in actions.TYPES.items():
            self.assertIn(action, schema.for_type(kind)['required'])

    def test_types_have_schemas(self):
        for kind in (model.CloudFile, *actions.TYPES.values()):
            self.assertIs(False, schema.for_type(kind)['additionalProperties'])
