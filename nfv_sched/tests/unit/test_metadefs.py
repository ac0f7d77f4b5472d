# SPDX-License-Identifier: Apache-2.0
"""Metadata definitions: that they are of what Nova and the filters know."""

import inspect
import math
import pathlib
import re
import runpy
import types

from nova.api.validation.extra_specs import validators
from nova import exception
from nova import objects

import nfv_sched
from nfv_sched.base import conf
from nfv_sched.base import extra_specs
from nfv_sched.limits import options as limits
from nfv_sched.scheduler import validators as nfv_validators
from nfv_sched.tests import base
from nfv_sched.weights import all_weighers

_ROOT = pathlib.Path(nfv_sched.__file__).parents[1]
_SCRIPT = _ROOT / 'tools' / 'save_metadefs.py'

metadefs = types.SimpleNamespace(**runpy.run_path(str(_SCRIPT)))


def accepts(key, value):
    try:
        validators.validate(key, str(value))
    except exception.ValidationError:
        return False
    return True


class TestFiles(base.TestCase):

    def test_committed(self):
        self.assertEqual(
            {each.file: each.text() for each in metadefs.namespaces()},
            {path.name: path.read_text()
             for path in metadefs.FOLDER.iterdir()},
            'tools/regenerate metadefs writes them')

    def test_lengths(self):
        """What Glance's database and API take."""
        for namespace in metadefs.namespaces():
            self.assertLessEqual(len(namespace.name), 80)
            self.assertLessEqual(len(namespace.title), 80)
            self.assertLessEqual(len(namespace.description), 500)
            for name in namespace.properties:
                self.assertLessEqual(len(name), 80)

    def test_plain(self):
        """Horizon shows texts as they are."""
        for namespace in metadefs.namespaces():
            for name, schema in namespace.properties.items():
                for text in schema['title'], schema['description']:
                    self.assertEqual([], re.findall(
                        r'[`{}\n]|\*\*|  |^ | $|:doc:', text), name)
                self.assertTrue(schema['description'].endswith('.'), name)


class TestFlavors(base.TestCase):
    """Through Nova's own registry of validators."""

    def setUp(self):
        super().setUp()
        self.keys = {
            association.prefix + name: schema
            for namespace in metadefs.namespaces()
            for association in namespace.associations
            if association.resource == metadefs.FLAVOR
            for name, schema in namespace.properties.items()}

    def test_every_key_of_ours(self):
        """None is missing, and none is there that Nova would refuse."""
        all_ends = {'': [''], 'N': ['0', '1', '2', '3'],
                    'PLACE': ['vswitch']}
        for known in extra_specs.keys():
            dot = known.find('.') + 1
            key, ends = known, all_ends['']
            if dot:
                key, ends = known[:dot], all_ends[known[dot:]]
            found = [name for name in self.keys if name.startswith(key)]
            self.assertEqual([key + end for end in ends], found)
        self.assertEqual([], [
            key for key in self.keys if not key.startswith(
                (extra_specs.NAMESPACE, 'hw:'))])

    def test_values(self):
        """What is offered Nova accepts, and nothing beyond it."""
        for key, schema in self.keys.items():
            if 'enum' in schema:
                self.assertEqual('string', schema['type'], key)
                good, bad = schema['enum'], ['nonsense', '']
            elif schema['type'] == 'integer':
                good = [schema['minimum'], schema.get('maximum', 99)]
                bad = [schema['minimum'] - 1, 'x']
                if 'maximum' in schema:
                    bad.append(schema['maximum'] + 1)
            else:
                values = ('0', '7', '0-3,8', '^0', '9999', 'x', '', '^', '-')
                good = [value for value in values
                        if re.search(schema['pattern'], value)]
                bad = [value for value in values if value not in good]
                self.assertTrue(good and bad, key)
            for value in good:
                self.assertTrue(accepts(key, value), (key, value))
            for value in bad:
                self.assertFalse(accepts(key, value), (key, value))

    def test_descriptions(self):
        for validator in nfv_validators.register():
            schema = self.keys.get(validator.name)
            if schema is not None:
                self.assertEqual(validator.description.replace('`', ''),
                                 schema['description'])


class TestImages(base.TestCase):

    def test_properties(self):
        """Those that Nova reads, and no others."""
        known = objects.ImageMetaProps.fields
        for namespace in metadefs.namespaces():
            for name in namespace.properties:
                image_property = 'hw_' + name.partition('.')[0]
                of_images = any(
                    association == (metadefs.IMAGE, 'hw_')
                    for association in namespace.associations)
                self.assertEqual(of_images, image_property in known, name)


class TestAggregates(base.TestCase):

    def setUp(self):
        super().setUp()
        self.metadata, = [
            namespace.properties for namespace in metadefs.namespaces()
            if namespace.associations == ((metadefs.AGGREGATE, ''),)]

    def test_all(self):
        """What the code looks up in aggregates."""
        self.assertEqual(
            {*inspect.signature(limits.Limits).parameters,
             'shared_vcpus_per_core',
             *(weigher.multiplier for weigher in all_weighers())},
            set(self.metadata))

    def test_several_aggregates(self):
        for name, schema in self.metadata.items():
            text = schema['description']
            if 'weight_multiplier' in name:
                self.assertNotIn('several', text)
            elif name == 'vswitch_physical_ports':
                self.assertIn('Of several aggregates the highest', text)
            else:
                self.assertIn('Of several aggregates the lowest', text)

    def test_defaults(self):
        (_group, options), = conf.list_opts()
        for option in options:
            if option.dest in self.metadata:
                schema = self.metadata[option.dest]
                self.assertIn(f'nova.conf: {option.default:g}.',
                              schema['description'])
                self.assertNotIn('Related', schema['description'])
                self.assertTrue(math.isfinite(option.default))
