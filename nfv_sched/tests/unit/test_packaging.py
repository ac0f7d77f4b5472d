# SPDX-License-Identifier: Apache-2.0
"""Versions and files of packages that are built with and without git."""

import configparser
from importlib import metadata
from importlib import util
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import fixtures
import testtools

import nfv_sched

from nfv_sched.tests import base

_ROOT = pathlib.Path(nfv_sched.__file__).parents[1]

#: Of the release that is being developed.
_SETUP = configparser.ConfigParser(interpolation=None)
_SETUP.read(_ROOT / 'setup.cfg')
_VERSION = _SETUP['metadata']['version']

#: What setup.py needs.
_FILES = ('LICENSE', 'MANIFEST.in', 'README.md', 'pyproject.toml',
          'requirements.txt', 'setup.cfg', 'setup.py')
#: Whether the tools of this environment can build: pbr needs pkg_resources
#: before 7.1, which newer releases of setuptools do not have; setuptools
#: before 70.1 needs the package wheel, which a new environment does not have.
CAN_BUILD = (
    util.find_spec('pkg_resources') is not None or tuple(
        map(int, metadata.version('pbr').split('.')[:2])) >= (7, 1)
) and bool(metadata.entry_points(
    group='distutils.commands', name='bdist_wheel'))
_GENERATED = shutil.ignore_patterns('__pycache__', '*.sample', '*.swp')


class PackagingTest(base.TimedTestCase):

    def setUp(self):
        super().setUp()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.tree = self.top / 'tree'
        self.tree.mkdir()
        for name in _FILES:
            shutil.copy(_ROOT / name, self.tree)
        for name in ('GIT_DIR', 'PBR_VERSION', 'OSLO_PACKAGE_VERSION'):
            self.useFixture(fixtures.EnvironmentVariable(name))

    def git(self, *arguments, tree=None):
        subprocess.run(
            ['git', '-c', 'user.name=x', '-c', 'user.email=x@x.test',
             *arguments], cwd=tree or self.tree, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def commit(self, tree=None):
        self.git('init', '--quiet', tree=tree)
        self.git('add', '--all', tree=tree)
        self.git('commit', '--allow-empty', '--message', 'x', tree=tree)

    def version(self):
        return subprocess.run(
            [sys.executable, '-W', 'ignore', 'setup.py', '--version'],
            cwd=self.tree, check=True, stdout=subprocess.PIPE,
            text=True).stdout.split()[-1]

    def copy_all(self):
        """Complete the tree; only then is there something to install."""
        for name in ('nfv_sched', 'etc'):
            shutil.copytree(_ROOT / name, self.tree / name, ignore=_GENERATED)

    def test_without_git(self):
        self.assertEqual(_VERSION, self.version())

    def test_inside_another_clone(self):
        self.commit(self.top)
        self.git('tag', '--annotate', '--message', 'x', '7.0.0',
                 tree=self.top)
        self.assertEqual(_VERSION, self.version())

    def test_clone(self):
        """A version of the release being developed, also of depth 1."""
        self.commit()
        self.assertEqual(f'{_VERSION}.dev0', self.version())
        for count in (1, 2):
            self.commit()
            self.assertEqual(f'{_VERSION}.dev{count}', self.version())

    def test_tag(self):
        for tag in (('0.9.0',),
                    ('--annotate', '--message', 'x', _VERSION)):
            self.commit()
            self.git('tag', *tag)
            self.assertEqual(tag[-1], self.version())

    def test_source_distribution(self):
        (self.tree / 'PKG-INFO').write_text(
            'Metadata-Version: 2.1\nName: nfv-sched\nVersion: 1.2.3\n')
        self.assertEqual('1.2.3', self.version())

    @testtools.skipUnless(CAN_BUILD, 'setuptools cannot build wheels here')
    def test_files_without_git(self):
        """pip installs all files of an exported tree."""
        self.copy_all()
        subprocess.run(
            [sys.executable, '-m', 'pip', '--quiet',
             '--disable-pip-version-check', 'wheel', '--no-deps',
             '--no-build-isolation', '--no-index',
             '--wheel-dir', self.top / 'wheel', self.tree], check=True,
            cwd=self.top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wheel, = os.listdir(self.top / 'wheel')
        self.assertEqual(f'nfv_sched-{_VERSION}-py3-none-any.whl', wheel)
        with zipfile.ZipFile(self.top / 'wheel' / wheel) as archive:
            names = {name.rpartition('.data/data/')[2]
                     for name in archive.namelist()}
        self.assertEqual(set(), {
            path.relative_to(self.tree).as_posix()
            for name in ('nfv_sched', 'etc')
            for path in (self.tree / name).rglob('*')
            if path.is_file()} - names)
