# SPDX-License-Identifier: Apache-2.0
"""Snapshots as files, and files that are none."""

import gzip
import json
import os
import pathlib
import random
import time

import fixtures

from nfv_sched.base import files
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

CLOUD = snapshot.Cloud(
    taken='2026-01-02T03:04:05Z', missing=(snapshot.Missing(
        kind=snapshot.MissingKind.CELL, cell='cell2', text='no'),),
    options={'nfv_sched': {'ledger': 'none', 'numbers': [1, 2]}},
    hosts=(snapshot.Host(
        name='a', hypervisor='a', uuid='1' * 32, nodes=(snapshot.Node(
            number=0, memory=1024, dedicated=frozenset(range(8)),
            siblings=(frozenset({0, 1}), frozenset({2, 3}))),)),),
    servers=(snapshot.Server(
        uuid='2' * 32, name='b', host='a',
        flavor=snapshot.Flavor(name='f', vcpus=1, memory=512)),))


UUID = '0f6f2f9c-6f0c-4f5e-8f0e-2d8c3f1b7a55'


class FileTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.path = os.path.join(self.folder, 'cloud.json.gz')
        self.write = pathlib.Path(self.path).write_bytes
        self.read = pathlib.Path(self.path).read_bytes

    def write_cloud(self, version=snapshot.VERSION, **fields):
        self.write(json.dumps({
            'format': file.FORMAT, 'version': version,
            'cloud': {'taken': 'x', **fields}}).encode())

    def refused(self, said, path=None):
        error = self.assertRaises(
            file.FileError, file.load, path or self.path)
        self.assertIn(path or self.path, str(error))
        self.assertIn(said, str(error))
        self.assertNotIn('\n', str(error))
        self.assertLess(len(str(error)), 300)

    def test_same_snapshot_same_file(self):
        contents = []
        for _ in range(2):
            file.save(CLOUD, self.path)
            contents.append(self.read())
        self.assertEqual(*contents)

    def test_not_written(self):
        file.save(CLOUD, self.path)
        broken = snapshot.Cloud(taken='x', options={'a': {'b': object()}})
        self.assertRaises(ValueError, file.save, broken, self.path)
        self.assertEqual(CLOUD, file.load(self.path))
        self.assertEqual(['cloud.json.gz'], os.listdir(self.folder))
        self.assertIn('No such file', str(self.assertRaises(
            atomic_file.WriteError, file.save, CLOUD,
            os.path.join(self.folder, 'none', 'x'))))

    def test_no_snapshot(self):
        for content in (b'', b'{}', b'[]', b'null', b'\x00\xff', b'{"a":',
                        b'[' * 100000, b'hosts:\n- name: a\n',
                        b'{"a": NaN}', b'{"a": 1e999}', b'["\\ud800"]',
                        b'[1' + b'0' * 5000 + b']'):
            self.write(content)
            self.refused(file.NEITHER)
        self.refused('No such file', os.path.join(self.folder, 'none'))
        self.refused('Is a directory', self.folder)

    def test_cut_off(self):
        file.save(CLOUD, self.path)
        content = self.read()
        for size in (3, 20, len(content) // 2, len(content) - 1):
            self.write(content[:size])
            self.refused('damaged gzip file: it is cut off')
        middle = len(content) // 2
        self.write(content[:middle] + b'\x00\x00' + content[middle + 2:])
        self.refused('damaged')

    def test_other_versions(self):
        for version in (0, 3, '1', '2', None):
            self.write_cloud(version)
            self.refused(f'version {version!r}; this release of nfv-sched '
                         'reads versions 1 and 2')

    def test_version_1(self):
        """Its sentences are texts, whatever they say."""
        sentences = ['Cell x cannot be read: no', 'Placement-az1-3', '',
                     'mysql://nova:secret@db']
        for missing in sentences, []:
            self.write_cloud(1, missing=missing)
            cloud = file.load(self.path)
            self.assertEqual(snapshots.missing(*(
                text.replace('nova:secret', '***') for text in missing)),
                cloud.missing)
            file.save(cloud, self.path)
            self.assertEqual(cloud, file.load(self.path))
        self.write_cloud(1)
        self.assertEqual((), file.load(self.path).missing)
        for missing, said in (('x', 'missing: must be a list'),
                              ([1], 'missing[0].text: must be text'),
                              ([{'kind': 'cell'}], 'missing[0].text: must')):
            self.write_cloud(1, missing=missing)
            self.refused(said)

    def test_bomb(self):
        self.write(gzip.compress(b' ' * (2 << 20)))
        with files.limited(1):
            self.refused('has more than 1 MiB; --max-file-size raises')
        for content in (b'[' + b'[],' * 40000 + b'1]', b'{"a":{}},' * 40000):
            self.write(content)
            with files.limited(1):
                self.refused('has more than 65536 items')

    def test_members(self):
        """A file may have several members of gzip, and zeros at its end."""
        content = json.dumps({
            'format': file.FORMAT, 'version': snapshot.VERSION,
            'cloud': codec.encode(CLOUD)}).encode()
        empty = gzip.compress(b'')
        members = (gzip.compress(content[:100]) + empty
                   + gzip.compress(content[100:]))
        for more in (b'', empty, b'\0' * 10240, b'\0' * 99 + empty):
            self.write(members + more)
            self.assertEqual(CLOUD, file.load(self.path))
        for wrong, said in (
                (members[:-1], 'damaged gzip file'),
                (members + b'x' * 20, 'damaged gzip file'),
                (members[:-5] + b'x' + members[-4:], 'damaged gzip file'),
                (empty * 65 + members, 'has more than 64 members of gzip'),
                (members + empty * 65, 'has more than 64 members of gzip')):
            self.write(wrong)
            with files.limited(1):
                self.refused(said)
        # It has few bytes on the disk.
        self.write(members)
        os.truncate(self.path, 20 << 20)
        with files.limited(1):
            self.refused('has more than 1 MiB; --max-file-size raises')

    def test_incompressible(self):
        content = random.Random(1).randbytes(1 << 20)
        path = os.path.join(self.folder, 'random')
        with gzip.open(path, 'wb', 0) as stream:
            stream.write(content)
        with files.limited(1):
            self.assertEqual(content, files.read(path))

    def test_cpus(self):
        """A list of CPUs is read in linear time, and counted."""
        host = {'name': 'h', 'hypervisor': 'h', 'uuid': UUID, 'nodes': [
            {'number': number, 'memory': 1, 'dedicated': f'{number}-65535'}
            for number in range(4)]}

        self.write_cloud(hosts=[host])
        with files.limited(1):
            self.refused('CPUs in its lists')
        file.load(self.path)
        host['nodes'] = [{'number': 0, 'memory': 1,
                          'dedicated': ','.join(['0-65535'] * 20000)}]
        self.write_cloud(hosts=[host])
        began = time.monotonic()
        self.refused('dedicated: must be numbers such as 0-3,8')
        self.assertLess(time.monotonic() - began, 5)

    def test_many_messages(self):
        """Masking the secrets of messages takes time."""
        self.write_cloud(1, missing=['a'] * 3000)
        missing = file.load(self.path).missing
        self.assertEqual(snapshots.missing(*['a'] * 1000), missing[:-1])
        self.assertEqual(snapshot.MissingKind.OTHER, missing[-1].kind)
        self.assertIn('2000', missing[-1].text)

    def test_long(self):
        for cloud, said in (
                ({'hosts': [{'name': 'x' * 10 ** 6}]},
                 'hosts[0].name: must have 255 characters at most'),
                ({'taken': 'x' * 10 ** 6}, 'taken: must have'),
                ({'y' * 10 ** 6: 1}, 'unknown key'),
                ({'options': {'a': {'b': [[[]] * 3]}}}, None),
                ({'options': {'a': {'b': 'x' * 10 ** 6}}},
                 'has a text of more than'),
                ({'options': {'a': {'b': 10 ** 4000}}},
                 'has a number of more than')):
            self.write_cloud(**cloud)
            if said is None:
                file.load(self.path)
                continue
            self.refused(said)
        self.write_cloud('x' * 300000)
        self.refused('')
