# SPDX-License-Identifier: Apache-2.0
"""The image that Containerfile makes.

``tox -e container`` builds it, or installs what it installs. Here its steps
are done with the libraries of the tests, and without a network.
"""

import fnmatch
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import fixtures
import testtools

import nfv_sched
from nfv_sched.tests import base
from nfv_sched.tests.unit import test_packaging

_ROOT = pathlib.Path(nfv_sched.__file__).parents[1]


def instructions():
    text = (_ROOT / 'Containerfile').read_text().replace('\\\n', '')
    return [shlex.split(line, comments=True) for line in text.splitlines()
            if line and not line.startswith('#')]


def copied():
    return [(words[1:-1], words[-1]) for words in instructions()
            if words[0] == 'COPY' and not words[1].startswith('--')]


class ContainerTest(base.TimedTestCase):

    def words(self, name):
        return [words[1:] for words in instructions() if words[0] == name]

    def test_base(self):
        """Full names of images with the same supported Python."""
        names = [words[0] for words in self.words('FROM')]
        self.assertEqual(2, len(names))
        versions = {re.fullmatch(
            r'docker\.io/library/python:(3\.\d+)(-slim)?-bookworm', name)[1]
            for name in names}
        self.assertEqual(1, len(versions))
        self.assertIn(f':: {versions.pop()}\n',
                      (_ROOT / 'setup.cfg').read_text())
        self.assertIn('-slim-', names[-1])

    def test_user(self):
        """No name, so that Kubernetes, too, can tell that it is not root."""
        (user,), = self.words('USER')
        self.assertRegex(user, r'^[1-9]\d+:[1-9]\d+$')
        self.assertEqual('USER', instructions()[-2][0])

    def test_constraints(self):
        """What is installed besides is pinned for each release."""
        (name, _, default), = [words[0].partition('=')
                               for words in self.words('ARG')
                               if '=' in words[0]]
        self.assertEqual('CONSTRAINTS', name)
        self.assertTrue((_ROOT / default).is_file())
        install, = self.words('RUN')
        self.assertLessEqual({'--upgrade-deps', '--constraint'}, set(install))
        self.assertEqual('/src/$CONSTRAINTS',
                         install[install.index('--constraint') + 1])
        self.assertEqual('/src[ops]', install[-1])

    def test_ignored(self):
        patterns = {pattern for sources, _ in copied() for pattern in sources}
        lines = (_ROOT / '.dockerignore').read_text().splitlines()
        self.assertEqual(patterns, {
            line.removeprefix('!') for line in lines if line[:1] == '!'})
        self.assertIn('*', lines)
        names = os.listdir(_ROOT)
        for pattern in patterns:
            self.assertTrue(fnmatch.filter(names, pattern), pattern)

    @testtools.skipUnless(test_packaging.CAN_BUILD,
                          'setuptools cannot build wheels here')
    def test_steps(self):
        """What is copied can be installed, and its programs start."""
        top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (top / 'src').mkdir()
        for patterns, target in copied():
            for pattern in patterns:
                for path in _ROOT.glob(pattern):
                    if path.is_dir():
                        shutil.copytree(
                            path, f'{top}{target}',
                            ignore=shutil.ignore_patterns('__pycache__'))
                    else:
                        shutil.copy(path, f'{top}{target}')
        environment = {'PATH': os.environ['PATH'], 'LC_ALL': 'C.UTF-8'}
        subprocess.run(
            [sys.executable, '-m', 'pip', '--quiet',
             '--disable-pip-version-check', 'install', '--no-deps',
             '--no-build-isolation', '--no-index', '--ignore-installed',
             '--root-user-action=ignore', '--prefix', top / 'opt',
             f'{top}/src[ops]'], check=True, cwd=top, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        packages, = (top / 'opt').glob('lib/python3*/site-packages')
        environment['PYTHONPATH'] = os.pathsep.join(
            [str(packages), *filter(None, sys.path)])
        command, = self.words('CMD')
        self.assertEqual(
            ['nfv-sched', '--help'],
            re.findall(r'[\w-]+', ' '.join(command)))

        def run(*words):
            return subprocess.run(
                [sys.executable, '-W', 'ignore', *words], cwd=top, text=True,
                env=environment, timeout=300, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT)

        for program in ('nfv-sched', 'nfv-sched-ledger', 'nfv-sched-status'):
            done = run(top / 'opt/bin' / program, '--help')
            self.assertEqual(0, done.returncode, done.stdout)
            self.assertIn(f'usage: {program} ', done.stdout)
        done = run('-c', 'import nfv_sched; print(nfv_sched.__file__)')
        self.assertTrue(done.stdout.startswith(str(packages)))
