# SPDX-License-Identifier: Apache-2.0
"""Base class of the tests of the DevStack plugin.

The phases of the plugin run in bash, with a stand-in for the functions of
DevStack, on copies of nova.conf; what comes out is read by Nova.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import fixtures
from nova.conf import neutron as neutron_conf
from nova.scheduler import host_manager
from oslo_config import iniparser

from nfv_sched.tests import base

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parents[2]

CONTROLLER = 'n-api,n-sch,n-cond,placement-api,q-svc,tempest'
ALL_IN_ONE = CONTROLLER + ',n-cpu'

# The phases of stack.sh.
STACK = ('stack/pre-install', 'stack/install', 'stack/post-config',
         'stack/extra', 'stack/test-config')


class _Parser(iniparser.BaseParser):
    """Reads a file as oslo.config does."""

    def __init__(self, text):
        super().__init__()
        self.sections = {}
        self._section = None
        self.parse(text.splitlines(keepends=True))

    def new_section(self, section):
        self._section = section
        self.sections.setdefault(section, {})

    def assignment(self, key, value):
        options = self.sections[self._section]
        options.setdefault(key, []).append('\n'.join(value))


def parse(text):
    """The options of a file: section -> option -> values."""
    return _Parser(text).sections


class TestCase(base.TestCase):
    """A machine with DevStack."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        self.nova_conf = self.directory / 'etc' / 'nova' / 'nova.conf'
        self.nova_conf.parent.mkdir(parents=True)
        # Nova's source; of it, where drivers are.
        self.drivers = self.directory / 'nova' / 'nova' / 'virt'
        self.drivers.mkdir(parents=True)
        # Of a local.conf, before the settings.
        self.localrc = ''
        # What DevStack calls the directory of Nova's programs.
        self.bin = self.directory / 'bin'
        self.bin.mkdir()
        self.settings = {'NOVA_BIN_DIR': os.path.dirname(sys.executable),
                         'NFV_SCHED_BIN_DIR': str(self.bin),
                         'NFV_SCHED_SYSFS': str(self.directory / 'sys')}
        self.machine([[['0'], ['1'], ['2'], ['3']],
                      [['4'], ['5'], ['6'], ['7']]])
        self.environment = dict(os.environ, PYTHONPATH=str(REPOSITORY))

    def machine(self, nodes):
        """Describe the machine as the kernel does.

        :param nodes: for each NUMA node its cores, each a list of the CPUs
            that are its threads
        """
        top = self.directory / 'sys'
        shutil.rmtree(top, ignore_errors=True)
        for number, cores in enumerate(nodes):
            node = top / 'node' / f'node{number}'
            node.mkdir(parents=True)
            cpus = [cpu for core in cores for cpu in core]
            (node / 'cpulist').write_text(','.join(cpus) + '\n')
            for core in cores:
                for cpu in core:
                    topology = top / 'cpu' / f'cpu{cpu}' / 'topology'
                    topology.mkdir(parents=True)
                    (topology / 'thread_siblings_list').write_text(
                        ','.join(core) + '\n')

    def given(self, name, services=ALL_IN_ONE, **settings):
        """Start with a nova.conf and with settings of local.conf."""
        shutil.copy(HERE / 'files' / name, self.nova_conf)
        self.settings.update(ENABLED_SERVICES=services, **settings)

    def given_sample(self, name):
        """Take the localrc of a sample; return what it adds to nova.conf."""
        text = (REPOSITORY / 'devstack' / name).read_text()
        parts = re.split(r'^\[\[(.*)\]\]\n', text, flags=re.MULTILINE)
        sections = dict(zip(parts[1::2], parts[2::2]))
        self.localrc = sections.pop('local|localrc').replace(
            '$NFV_SCHED_URL', 'https://example.org/nfv-sched')
        added = sections.pop('post-config|$NOVA_CONF')
        self.assertEqual({}, sections)
        return added

    def run_phases(self, *phases, fails=False):
        lines = [f"{name}='{value}'\n"
                 for name, value in self.settings.items()]
        (self.directory / 'localrc').write_text(self.localrc + ''.join(lines))
        done = subprocess.run(
            [HERE / 'standin' / 'run', self.directory, *phases],
            env=self.environment, cwd=self.directory, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        if fails:
            self.assertNotEqual(0, done.returncode, done.stdout)
        else:
            self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def text(self):
        return self.nova_conf.read_text()

    def edit(self, *replacements):
        """Change nova.conf, as an operator or another plugin might."""
        text = self.text()
        for old, new in replacements:
            self.assertEqual(1, text.count(old), old)
            text = text.replace(old, new)
        self.nova_conf.write_text(text)

    def original(self, name):
        return (HERE / 'files' / name).read_text()

    def variables(self):
        lines = (self.directory / 'variables').read_text().splitlines()
        return dict(line.split('=', 1) for line in lines)

    def load(self, path=None):
        """Have Nova read nova.conf, and return Nova's configuration."""
        conf = base.CONF
        conf(['--config-file', str(path or self.nova_conf)],
             project='nova', default_config_files=[], default_config_dirs=[])
        neutron_conf.register_dynamic_opts(conf)
        return conf

    def host_manager(self):
        """Return Nova's loader of filters and weighers, without a database."""
        self.load()
        manager = host_manager.HostManager
        for method in ('refresh_cells_caches', '_init_aggregates',
                       '_init_instance_info'):
            self.useFixture(fixtures.MockPatchObject(manager, method))
        return manager()

    def enabled_filters(self):
        return [type(f).__name__ for f in self.host_manager().enabled_filters]
