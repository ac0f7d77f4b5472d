# SPDX-License-Identifier: Apache-2.0
import json
import os

import fixtures

from nfv_sched.ops.cloud import file
from nfv_sched.tests.unit.ops.answers.plans import test_defrag
from nfv_sched.tests.unit.ops.commands import base


class DefragTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.file = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'cloud')
        one, two = test_defrag.ONE, test_defrag.TWO
        file.save(test_defrag.cloud([one, two], [
            test_defrag.running('a', one, 0, (1, 5)),
            test_defrag.running('b', two, 0, (1, 5), state='stopped')]),
            self.file)

    def run_plan(self, *args):
        return self.run_command('cloud', 'defrag', '--flavor', 'pinned.6',
                                *args, '--from', self.file)

    def test_text(self):
        code, out, err = self.run_plan()
        self.assertEqual((0, ''), (code, err))
        self.assertIn('0 more pinned.6 fit now, 1 after 1 live migration, '
                      'and no fewer do.', out)
        self.assertIn('1 on one', out)
        self.assertIn('1 server cannot be moved: it is stopped', out)

    def test_none_needed(self):
        code, out, _err = self.run_command(
            'cloud', 'defrag', '--flavor', 'pinned.2', '--from', self.file)
        self.assertEqual(0, code)
        self.assertIn('no move is needed', out)

    def test_not_enough(self):
        code, out, _err = self.run_plan('--count', '2')
        self.assertEqual(3, code)
        self.assertIn('no moves were found that make room for 2.', out)

    def test_nothing_helps(self):
        code, out, _err = self.run_plan('--avoid', 'a')
        self.assertEqual(3, code)
        self.assertIn('no moves were found that make room for more', out)
        self.assertIn('1 server cannot be moved: as --avoid says', out)

    def test_commands(self):
        code, out, _err = self.run_plan('-f', 'commands')
        self.assertEqual(0, code)
        command, = out.splitlines()
        self.assertIn('server migrate --live-migration --host two', command)
        self.assertEqual(3, self.run_plan('-f', 'commands', '--count', '2')[0])

    def test_document(self):
        code, out, _err = self.run_plan('-f', 'json')
        self.assertEqual(0, code)
        found = json.loads(out)
        self.assertEqual((0, 1, True, True), tuple(
            found[name] for name in (
                'fits_before', 'fits_after', 'exact', 'enough')))
        gain, = found['moves'][0]['gains']
        self.assertEqual(('one', 1), (gain['host'], gain['servers']))
        self.assertTrue(gain['host_id'])

    def test_rows(self):
        code, out, _err = self.run_plan('-f', 'value', '-c', 'Server',
                                        '-c', 'To')
        self.assertEqual((0, 'a two\n'), (code, out))

    def test_bad_usage(self):
        for args, text in (
                (('--count', '0'), 'a number from 1 is needed'),
                (('--flavor', 'x'), "no flavor named 'x'"),
                (('--ports', '1001'), '--ports: 1000 at most')):
            code, _out, err = self.run_plan(*args)
            self.assertEqual(2, code)
            self.assertIn(text, err)
