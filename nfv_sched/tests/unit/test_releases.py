# SPDX-License-Identifier: Apache-2.0
"""What is said of supported releases and Pythons is the same everywhere."""

import configparser
import pathlib
import re
import subprocess

from packaging import requirements
from packaging import utils

import nfv_sched
from nfv_sched.nova import features
from nfv_sched.tests import base

_ROOT = pathlib.Path(nfv_sched.__file__).parents[1]


def _text(name):
    return (_ROOT / name).read_text()


def pinned_versions(path):
    return {utils.canonicalize_name(name): version
            for name, version in re.findall(
                r'^([\w.-]+)==(\S+)$', path.read_text(), re.MULTILINE)}


def _requirements(text):
    return [requirements.Requirement(line) for line in (
        line.partition('#')[0].strip() for line in text.splitlines()) if line]


class ReleasesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.constraints = {
            path.stem.partition('-')[2]: path
            for path in sorted(_ROOT.glob('constraints*.txt'))
            if not path.stem.startswith('constraints-live')}
        self.setup = configparser.ConfigParser(
            delimiters='=', interpolation=None)
        self.setup.optionxform = str
        self.setup.read(_ROOT / 'setup.cfg')

    def bash(self, script):
        """What functions of tools/lib/environment.sh print."""
        return subprocess.run(
            ['bash', '-ec', f'ROOT={_ROOT}\n'
             f'. "$ROOT/tools/lib/environment.sh"\n{script}'],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_bounds(self):
        """The constraints of each release satisfy what is required."""
        extra = self.setup['extras']['ops']
        nova, = [required for required in _requirements(
            _text('requirements.txt')) if required.name == 'nova']
        # Of a release that has reached its end.
        self.assertNotIn('30.3.0', nova.specifier)
        for release, path in self.constraints.items():
            pins = pinned_versions(path)
            for required in _requirements(
                    f'{_text("requirements.txt")}\n'
                    f'{_text("test-requirements.txt")}\n{extra}'):
                self.assertIn(
                    pins[utils.canonicalize_name(required.name)],
                    required.specifier, (release, required.name))

    def test_live(self):
        """No package is pinned in both files of a release."""
        for path in _ROOT.glob('constraints-live*.txt'):
            both = pinned_versions(_ROOT / path.name.replace('-live', ''))
            live = pinned_versions(path)
            self.assertTrue(live)
            self.assertEqual(set(), both.keys() & live.keys())

    def test_nova(self):
        """Each supported Nova has constraints, and a name."""
        names = {int(pinned_versions(path)['nova'].partition('.')[0]): name
                 for name, path in self.constraints.items()}
        self.assertEqual(list(features.RELEASES), sorted(names))
        for major, name in names.items():
            for given in (major, name or '2026.2'):
                self.assertEqual(
                    name, self.bash(f'release_name {given}').stdout.strip())
        for refused in ('30', '2024.2', 'master', "''"):
            answer = self.bash(f'release_name {refused}')
            self.assertEqual(1, answer.returncode)
            self.assertIn('does not support OpenStack', answer.stdout)

    def test_texts(self):
        """README and the release note of 1.0 name the supported releases."""
        names = {pinned_versions(path)['nova'].partition('.')[0]:
                 name or '2026.2' for name, path in self.constraints.items()}
        note, = (_ROOT / 'releasenotes' / 'notes').glob('nfv-sched-1-0-*.yaml')
        for text in (_text('README.md'), note.read_text()):
            self.assertEqual(names, dict(re.findall(
                r'\b(\d\d)\s+\((20\d\d\.\d)\)', text)))

    def test_environments(self):
        releases = sorted(filter(None, self.constraints))
        script = re.search(r'^RELEASES=\((.*)\)$', _text('.ci/run'), re.M)
        self.assertEqual(releases, script[1].split())
        tox = configparser.ConfigParser(interpolation=None)
        tox.read(_ROOT / 'tox.ini')
        self.assertEqual(releases, re.findall(
            r'^(\d\S+): \S+constraints-\1\.txt$',
            tox['nova']['constraints'], re.M))
        sections = re.findall(r'^\[testenv:(\w+)\{,(-2.*)\}\]$',
                              _text('tox.ini'), re.M)
        suffixes_by_name = dict(sections)
        live, = re.findall(r'-(2[\d.]+)', suffixes_by_name.pop('live'))
        self.assertIn(live, releases)
        self.assertTrue((_ROOT / f'constraints-live-{live}.txt').is_file())
        self.assertEqual(
            {'py3', 'functional', 'equivalence', 'simulate', 'wheel', 'venv'},
            set(suffixes_by_name))
        for name, suffixes in suffixes_by_name.items():
            self.assertEqual(releases, re.findall(r'-(2[\d.]+)', suffixes),
                             name)

    def test_gate(self):
        """Functional tests that are named by .ci/run are there."""
        functional = _ROOT / 'nfv_sched' / 'tests' / 'functional'
        for variable in ('GATE_FUNCTIONAL', 'LONG_FUNCTIONAL'):
            script = re.search(fr'^{variable}=\((.*?)\)$', _text('.ci/run'),
                               re.M | re.S)
            names = script[1].split()
            self.assertEqual(sorted(set(names)), names)
            for name in names:
                self.assertTrue((functional / f'test_{name}.py').is_file(),
                                name)

    def test_pythons(self):
        metadata = self.setup['metadata']
        pythons = re.findall(r':: (3\.\d+)', metadata['classifiers'])
        self.assertEqual(f'>={pythons[0]}', metadata['python_requires'])
        script = re.search(r'^PYTHONS=\((.*)\)$', _text('.ci/run'), re.M)
        self.assertEqual(pythons, script[1].split())
        for python in pythons:
            self.assertIn(f'python{python}', _text('tools/lib/environment.sh'))
            for name in ('functional', 'venv'):
                self.assertRegex(
                    _text('tox.ini'), fr'(?m)^\[testenv:{name}\{{.*'
                    fr'-py{python.replace(".", "")}[,}}]')
