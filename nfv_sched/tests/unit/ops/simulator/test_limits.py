# SPDX-License-Identifier: Apache-2.0
"""YAML and extra specs that are made to occupy their reader."""

import time

import fixtures

from nfv_sched.base import files
from nfv_sched.nova import flavors
from nfv_sched.ops.cloud.cloud_file import text
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state
from nfv_sched.tests import base


def doubled(line, start, levels=20):
    """Lines in which each name stands for eight of the name before."""
    return start + ''.join(
        f'n{level}: &n{level} ' + line % ','.join([f'*n{level - 1}'] * 8)
        + '\n' for level in range(1, levels))


class YAMLTest(base.TestCase):

    def refused(self, content):
        began = time.monotonic()
        with files.limited(16):
            error = self.assertRaises(
                problems.InputError, text.parse, content, 'cloud.yaml')
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn('cloud.yaml:', str(error))
        self.assertLess(len(str(error)), 300)
        return str(error)

    def test_aliases(self):
        for content in (
                doubled('[%s]', 'n0: &n0 [x]\n'),
                doubled('{<<: [%s]}', 'n0: &n0 {x: 1}\n'),
                doubled('{<<: [%s]}', 'n0: &n0 {}\n'),
                'a: &a {%s}\n%s' % (
                    ', '.join(f'k{number}: 1' for number in range(5000)),
                    ''.join(f'b{number}: {{<<: *a}}\n'
                            for number in range(5000)))):
            self.assertIn('items, with those of aliases',
                          self.refused(content))
        for content in ('&a [*a]', 'a: &a {<<: *a}', 'a: &a {b: *a}'):
            self.assertIn('contains itself', self.refused(content))

    def test_merge_keys(self):
        data, marks = text.parse(
            'a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\n'
            'c:\n  <<: [*a, *b]\n  z: 3\n', 'f')
        self.assertEqual({'x': 1, 'y': 1, 'z': 3}, data['c'])
        self.assertEqual(5, marks['c', 'z'])
        self.assertEqual(1, marks['c', 'x'])

    def test_limits(self):
        for content, said in (
                ('[' * 100000, 'nested too deeply'),
                ('- ' * 100000, 'nested too deeply'),
                ('- x\n' * 50000, 'more than 32768 items'),
                ('#' * (2 << 20), 'more than 1048576 characters'),
                ('a: ' + 'x' * (1 << 19), 'has a text of more than'),
                ('a: ' + ':'.join(['59'] * 5000), 'more than 64 digits'),
                ('a: 1' + '0' * 4000, 'more than 64 digits'),
                ('a: !!bool x', 'is not of the type'),
                ('a: !!timestamp x', 'is not of the type'),
                ('x' * 1000 + ': 1\n' + 'x' * 1000 + ': 1', 'x')):
            self.assertIn(said, self.refused(content))

    def test_many_keys(self):
        """Duplicate keys are found in linear time."""
        content = ''.join(f'k{number}: 1\n' for number in range(15000))
        self.assertEqual(15000, len(text.parse(content, 'f')[0]))
        self.assertIn("the key 'k7' is given twice",
                      self.refused(content + 'k7: 1\n'))


class CPUSetTest(base.TestCase):
    @staticmethod
    def flavor(specs):
        return state.nova_flavor(snapshot.Flavor(
            name='f', vcpus=4, memory=1024, extra_specs=specs))

    def test_flavor(self):
        """One flavor is refused, whatever script and form of numbers."""
        for key, value in (
                ('hw:numa_cpus.0', '0-99999999999'),
                ('hw:numa_cpus.3', '0-9_9_9_9_9_9_9_9_9_9'),
                ('hw:cpu_dedicated_mask', '^0-+99999999999'),
                ('hw:cpu_realtime_mask', '^0,^1-' + '\u0669' * 11),
                ('hw:cpu_realtime_mask', '0-99999999999,x'),
                ('hw:cpu_dedicated_mask', ','.join(['0-65000'] * 1000)),
                ('hw:numa_nodes', '99999999999'),
                ('hw:mem_page_size', '9' * 200),
                ('hw:mem_page_size', f'{"9" * 400}TB'),
                ('pci_passthrough:alias', ','.join(['a:1'] * 5000))):
            self.assertRaises(
                servers.Refused, request.constraints, self.flavor({
                    'hw:cpu_policy': 'mixed', 'hw:numa_nodes': '4',
                    'hw:cpu_realtime': 'yes', key: value}),
                nova_internals.image_meta({}))
        for name, value in (('hw_numa_cpus.0', '0-99999999999'),
                            ('hw_cpu_realtime_mask', '^0-99999999999'),
                            ('hw_numa_nodes', 99999999999),
                            ('hw_mem_page_size', f'{"9" * 400}TB')):
            self.assertRaises(
                ValueError, nova_internals.image_meta, {name: value})
            self.assertRaises(
                flavors.ImageError, flavors.image, {name: str(value)})

    def test_many(self):
        specs = {f'trait:CUSTOM_{number}': 'required' for number in range(257)}
        self.assertIn('257 extra specs', flavors.unreadable(specs))
        del specs['trait:CUSTOM_0']
        self.assertIsNone(flavors.unreadable(specs))
        self.assertIsNotNone(flavors.unreadable({'x' * 256: '1'}))

    def test_overflow(self):
        """As of a number that Nova's arithmetic does not take."""
        def overflow(flavor, image):
            raise OverflowError('infinity')

        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ops.simulator.nova_internals.numa_get_constraints',
            overflow))
        self.assertRaises(
            servers.Refused, request.constraints,
            self.flavor({}), nova_internals.image_meta({}))

    def test_allowed(self):
        for value in ('0-3', '^0', '0,2-5,^3', '0-65535'):
            self.assertIsNone(
                flavors.oversized('hw:cpu_dedicated_mask', value))

    def test_validator(self):
        """Nova's pattern is not given what it takes minutes for."""
        value = '0' + ',1-2' * 60 + '!'
        for key in ('hw:numa_cpus.0', 'hw:cpu_dedicated_mask',
                    'hw:cpu_realtime_mask'):
            self.assertIn('not a set of CPUs', flavors.refusal(key, value))
            self.assertIsNone(flavors.refusal(key, value[:-1]))
