# SPDX-License-Identifier: Apache-2.0

import gc
import pathlib
import shlex

import fixtures

from nfv_sched.journal import entry
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.commands import source
from nfv_sched.ops.model.requests import nova_account
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.cloud import nova_api
from nfv_sched.tests.unit.ops.commands import test_journal
from nfv_sched.tests.unit.ops.commands import test_simulate

CLOUD = """\
hosts:
  - name: h
    count: 2
    cores: 8
    memory: 32 GiB
    shared_cores_per_node: 0
  - {name: fast, cores: 4, memory: 8 GiB, traits: [CUSTOM_FAST]}
flavors:
  pinned:
    vcpus: 5
    memory: 1 GiB
    extra_specs:
      hw:cpu_policy: dedicated
      nfv:vswitch_numa_affinity: strict
  fast:
    vcpus: 8
    memory: 1 GiB
    extra_specs: {hw:cpu_policy: dedicated, 'trait:CUSTOM_FAST': required}
networks:
  tun: {tunneled: true}
steps:
  - {boot: s, flavor: pinned, count: 3, networks: [tun]}
"""


class ExplainTest(test_simulate.SimulateTestCase):

    def explain(self, kind, *args):
        return self.run_command(
            kind, 'explain', *args, '--from', self.file(CLOUD))

    def test_garbage_collections(self):
        before = gc.get_threshold()
        while_running = []
        real = explanation.explain

        def explain(*args, **kwargs):
            while_running.append(gc.get_threshold())
            return real(*args, **kwargs)

        with fixtures.MonkeyPatch(
                'nfv_sched.ops.answers.explain.explanation.explain', explain):
            self.explain('flavor', 'fast', '--try-seconds', '0')
        self.assertLess(before[0], while_running[0][0])
        self.assertEqual(before, gc.get_threshold())
        code, _out, _err = self.explain('flavor', 'unknown')
        self.assertEqual((2, before), (code, gc.get_threshold()))

    def test_next_steps(self):
        """What is printed can be run as it is, however narrow it is."""
        for args, network in ((('server', 's-3', '--network', 'tun'), 'tun'),
                              (('server', 's-3'), None)):
            _code, out, _err = self.explain(*args, '--try-seconds', '0',
                                            '--max-width', '40')
            lines = [line.strip() for line in out.splitlines()
                     if line.startswith('  nfv-sched ')]
            self.assertEqual(1, len(lines))
            for line in lines:
                program, *words = shlex.split(line)
                self.assertEqual(network is not None, network in words)
                code, out, _err = self.run_command(*words)
                self.assertIn(code, (0, 3), line)
                self.assertIn('h-1', out)

    def test_usage(self):
        cloud = self.file(CLOUD)
        for args, text in (
                (('flavor', 'fast', '--count', '0'), '--count: 1 to'),
                (('flavor', 'fast', '--count', '1001'), '1000 needed'),
                (('flavor', 'fast', '--host', 'x*'), "no host matches 'x*'"),
                (('flavor', 'fast', '--image-property', 'x'), 'KEY=VALUE'),
                (('flavor', 'fast', '--network', 'n,x'), '--network n,x'),
                (('flavor', 'fast', '--network', 'tin'), 'did you mean tun?'),
                (('server', 's-3', '--network', 'tin'), 'did you mean tun?'),
                (('server', 's-3', '--full'), '--full needs --then'),
                (('server', 's-3', '--for-tenant', '--then'),
                 '--for-tenant does not go with --then'),
                (('server', 's-3', '--journal', '/x'),
                 '--journal needs --then')):
            kind, *more = args
            self.refused(text, kind, 'explain', *more, '--from', cloud)


class ImageTest(test_simulate.SimulateTestCase):
    """By its name or ID, from Glance, for what Placement needs of it."""

    def setUp(self):
        super().setUp()
        self.api = nova_api.start(self)
        cloud = source.load(self.file(CLOUD))
        self.useFixture(fixtures.MockPatchObject(
            source, 'reader', lambda arguments: lambda: cloud))
        self.useFixture(fixtures.MockPatchObject(
            nova_account, 'reading', lambda *_args: self.api.connect()))

    def explain(self, name):
        return self.run_command(
            'flavor', 'explain', 'pinned', '--image', name,
            '--try-seconds', '0')

    def test_image(self):
        image = {'id': 'e6b1f4c5-7f8f-4f5a-9ad3-5e53d0a6a2f1', 'name': 'fw-1',
                 'trait:CUSTOM_OTHER': 'required', 'hw_odd': 'x', 'size': 7,
                 'visibility': 'public'}
        self.api.glance.images = [image]
        for name in ('fw-1', image['id']):
            code, out, err = self.explain(name)
            self.assertEqual((3, ''), (code, err))
            self.assertIn('CUSTOM_OTHER', out)
        self.assertEqual(
            (2, '', "error: no image named 'fw-2'; did you mean fw-1?\n"),
            self.explain('fw-2'))
        self.api.glance.images = [image, {**image, 'id': 'other'}]
        self.assertEqual(
            (2, '', f"error: several images named 'fw-1': {image['id']}, "
             'other\n'), self.explain('fw-1'))
        self.api.glance.status = 403
        code, out, err = self.explain('fw-1')
        self.assertEqual((1, ''), (code, out))
        self.assertIn('error: the image API cannot be read: ', err)


class ThenTest(test_simulate.SimulateTestCase):
    """What the decision journal says."""

    UUID = '8b1d6a52-0e0b-4b5a-9a55-2f7a51f0c111'

    def setUp(self):
        super().setUp()
        test_journal.write(self.folder, *(
            test_entry.refusal(server=server)
            for server in (self.UUID, 'other', self.UUID)))

    def then(self, server, *args):
        return self.run_command('server', 'explain', server, '--then',
                                '--journal', self.folder, *args)

    def test_perhaps_removed(self):
        """Only where there is none does it matter what was removed."""
        path = pathlib.Path(
            self.folder, 'refusals-20260102T030405Z-2-0123abcd.jsonl')
        path.write_bytes(test_entry.line(entry.Lost(time='t', removed=7)))
        for server, note in (
                (self.UUID, ''),
                (self.UUID[::-1].replace('-', ''),
                 '7 older refusals were removed to make room\n')):
            _code, _out, err = self.then(server)
            self.assertEqual(note, err)

    def test_by_name(self):
        cloud = self.file(CLOUD)
        self.assertEqual((0, ''), self.then('s-3', '--from', cloud)[::2])
        self.assertEqual((2, "error: no server named 'nobody'; there are: "
                          's-1, s-2, s-3\n'),
                         self.then('nobody', '--from', cloud)[::2])
