# SPDX-License-Identifier: Apache-2.0
"""Commands in the documentation print what the documentation shows.

``tools/update-docs`` writes into the documentation what they print.
"""

import functools
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import textwrap

import fixtures

from nfv_sched.nova import scheduler
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.tests import documented
from nfv_sched.tests.unit.ops.commands import base

WIDTH = documented.WIDTH
#: Commands that plan live migrations.
_PLANS = (['host', 'drain'], ['cloud', 'defrag'])
#: What README shows as a picture.
PICTURE = documented.ROOT / 'doc' / 'source' / 'session.svg'
SESSION = ('nfv-sched host drain compute-1 --from telco',
           'nfv-sched cloud failover --from telco')
MAP_PICTURE = PICTURE.parent / 'tasks' / 'host-map.svg'
MAP = "nfv-sched host map --from telco --host 'compute-[12]' --format svg"
METRICS = 'nfv-sched metrics --from telco --failover'
DASHBOARD = PICTURE.parent / 'reference' / 'dashboard.svg'
UPDATE = 'NFV_SCHED_UPDATE_DOCS'

_simulate = source._simulate


@functools.cache
def _simulated(path: str) -> snapshot.Cloud:
    """Return the cloud of a file, whose steps are run once for all pages."""
    return _simulate(path)


class DocumentedCommandsTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            source, '_simulate', _simulated))
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', str(WIDTH)))
        self.useFixture(fixtures.EnvironmentVariable('NO_COLOR', '1'))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(documented.ROOT)
        self.code = None
        self._printed: dict[str, tuple[int, list[str]]] = {}

    def printed(self, text: str) -> list[str]:
        """Run a command as in a clone, once; return output, then errors."""
        if text == 'echo $?':
            return [str(self.code)]
        if text not in self._printed:
            self._printed[text] = self.run_in_clone(text)
        self.code, lines = self._printed[text]
        return lines

    def run_in_clone(self, text: str) -> tuple[int, list[str]]:
        text, pipe, rest = text.partition(' | ')
        program, *arguments = shlex.split(text)
        self.assertEqual('nfv-sched', program, text)
        code, out, err = self.run_command(*arguments)
        self.assertNotIn(code, (1, 2), f'{text}: {err}')
        if pipe:
            out = subprocess.run(
                rest, shell=True, input=out, capture_output=True, text=True,
                check=True).stdout
        # A terminal breaks long messages.
        err = [part for line in err.splitlines()
               for part in textwrap.wrap(line, WIDTH)]
        return code, [
            line.rstrip() for line in (*out.rstrip().splitlines(), *err)]

    def plans_differ(self, text: str) -> bool:
        """Return whether Nova's live migrations allow other plans here."""
        # NOTE: Before bug 2153425 was fixed, a plan has fewer of them.
        return shlex.split(text)[1:3] in _PLANS and (
            not scheduler.live_migration_carries_limits())

    def test_outputs(self):
        """They are those of the documentation, or are written there."""
        differences = []
        for path in documented.pages():
            if os.environ.get(UPDATE):
                documented.rewrite(path, self.printed)
            for block in documented.blocks(path):
                if block.is_ours and block.reason is None:
                    for command in block.commands():
                        output = self.printed(command.text)
                        if not command.prints(output) and (
                                not self.plans_differ(command.text)):
                            differences.append('\n'.join(
                                (f'{block.where}: {command.text}', *output)))
        self.assertEqual('', '\n\n'.join(differences),
                         'tools/regenerate outputs writes what is printed')

    def test_session(self):
        if any(map(self.plans_differ, SESSION)):
            self.skipTest('bug 2153425: plans have fewer live migrations')
        lines = []
        for text in SESSION:
            lines += [f'$ {text}', *self.printed(text), '']
        if os.environ.get(UPDATE):
            documented.draw(PICTURE, lines[:-1])
        self.assertEqual([line for line in lines if line],
                         documented.drawn(PICTURE),
                         'tools/regenerate outputs draws it')

    def test_map(self):
        lines = [re.sub('As of [^<]*', 'The example telco', line)
                 for line in self.printed(MAP)]
        if os.environ.get(UPDATE):
            MAP_PICTURE.write_text('\n'.join(lines) + '\n')
        self.assertEqual(MAP_PICTURE.read_text().splitlines(), lines,
                         'tools/regenerate outputs draws it')

    def test_dashboard(self):
        draw = runpy.run_path(str(
            documented.ROOT / 'tools' / 'draw_dashboard.py'))['draw']
        picture = draw('\n'.join(self.printed(METRICS)) + '\n')
        if os.environ.get(UPDATE):
            DASHBOARD.write_text(picture)
        self.assertEqual(DASHBOARD.read_text(), picture,
                         'tools/regenerate outputs draws it')

    def test_reasons(self):
        """Only what needs something else than a clone is not run."""
        run = 0
        for path in documented.pages():
            for block in documented.blocks(path):
                if block.reason is None:
                    run += block.is_ours
                else:
                    self.assertTrue(block.is_ours, block.where)
        self.assertGreater(run, 20)


class BlocksTest(base.base.TestCase):
    """What is found in a page, and how it is compared and rewritten."""

    PAGE = '''\
Text

.. code-block:: console

   $ nfv-sched host list \\
      --from telco
   old

   $ echo $?
   0

.. not run: a live cloud

.. code-block:: console

   $ nfv-sched host list

.. code-block:: console

   $ openstack server list
'''

    def page(self, text: str, name: str = 'page.rst') -> pathlib.Path:
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path) / name
        path.write_text(text, encoding='utf-8')
        return path

    def test_blocks(self):
        run, not_run, other = documented.blocks(self.page(self.PAGE))
        self.assertTrue(run.is_ours and not_run.is_ours)
        self.assertFalse(other.is_ours)
        self.assertEqual((None, 'a live cloud', None), (
            run.reason, not_run.reason, other.reason))
        first, second = run.commands()
        self.assertEqual(('nfv-sched host list --from telco', ['old']),
                         (first.text, first.output))
        self.assertEqual(('echo $?', ['0']), (second.text, second.output))

    def test_rewritten(self):
        path = self.page(self.PAGE)
        documented.rewrite(path, lambda text: ['new', '', '* end'] if (
            'host list' in text) else ['3'])
        self.assertEqual(self.PAGE.replace(
            '   old\n\n', '   new\n\n   * end\n').replace('   0\n', '   3\n'),
            path.read_text(encoding='utf-8'))

    def test_markdown(self):
        page = ('<!-- not run: a live cloud -->\n```console\n'
                '$ nfv-sched host list\n```\n'
                '\n```console\n$ nfv-sched cloud audit --from telco\n```\n')
        path = self.page(page, 'page.md')
        documented.rewrite(path, lambda text: [text])
        self.assertEqual(page.replace(
            'telco\n', 'telco\nnfv-sched cloud audit --from telco\n'),
            path.read_text(encoding='utf-8'))

    def test_left_out(self):
        command = documented.Command(
            ['$ x'], ['head', '...', '[tail]', 'in 0.1 s'])
        for output, same in (
            (['head', '1', '2', '[tail]', 'in 3.2 s'], True),
            (['head', '[tail]', 'in 0.1 s'], True),
            (['head', '1', 't', 'in 0.1 s'], False),
            (['a', 'head', '[tail]', 'in 0.1 s'], False),
        ):
            self.assertEqual(same, command.prints(output), output)
        self.assertEqual(['a', '...', 'd', 'e'], command.shortened(
            ['a', 'b', 'c', 'd', 'e']))
