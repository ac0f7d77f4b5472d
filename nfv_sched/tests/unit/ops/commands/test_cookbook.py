# SPDX-License-Identifier: Apache-2.0
"""The flavor cookbook and the page for tenants say what is so.

Their flavors are those of an example, their commands are read by the
openstack client itself, and the faults that they quote are the simulator's.
"""

import functools
import importlib.metadata
import json
import pathlib
import re
import shlex
import types

import yaml

import nfv_sched
from nfv_sched.base import reasons
from nfv_sched.ops.cloud.cloud_file import examples
from nfv_sched.ops.commands import flavor_file as flavors_file
from nfv_sched.ops.simulator import scheduler
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit import test_documentation

_PAGES = pathlib.Path(nfv_sched.__file__).parents[1] / 'doc/source/user'
_NOVA = 'No valid host was found.'
#: Entry points of the client's commands that the pages use.
_GROUPS = ('openstack.compute.v2', 'openstack.network.v2')

# Clients up to 2025.1 ask it whether networks are Neutron's.
_APP = types.SimpleNamespace(client_manager=types.SimpleNamespace(
    is_network_endpoint_enabled=lambda: True))


@functools.cache
def _text(name):
    return (_PAGES / f'{name}.rst').read_text(encoding='utf-8')


def _commands(page):
    """Yield (name, parsed arguments) of each openstack command of a page."""
    entries = {entry.name: entry for group in _GROUPS
               for entry in importlib.metadata.entry_points(group=group)}
    for block in test_documentation.blocks(_text(page), 'console'):
        for line in re.sub(r'\\\n\s*', '', block).splitlines():
            match shlex.split(line.removeprefix('$ ')):
                case ['openstack', *words]:
                    pass
                case _:
                    continue
            if words[0] == '--os-compute-api-version':
                del words[:2]
            for length in (3, 2):
                entry = entries.get('_'.join(words[:length]))
                if entry is not None:
                    break
            yield entry.name, entry.load()(_APP, None).get_parser(
                'openstack').parse_args(words[length:])


def _faults(page):
    return [' '.join(block.split())
            for block in test_documentation.blocks(_text(page), 'text')]


class PageTestCase(base.CommandTestCase):

    def servers(self, example, level=reasons.POLICY):
        out = self.shown('simulation', 'run', '--example', example,
                         '--reasons', level, '-f', 'json')
        return {each['server']: each for each in json.loads(out)['servers']}

    def faults_of(self, example, level=reasons.POLICY):
        return {name: f'{_NOVA} {server["reason"]}'
                for name, server in self.servers(example, level).items()
                if server['reason']}


class CookbookTest(PageTestCase):

    def setUp(self):
        super().setUp()
        self.path = str(examples.find()['cookbook'])
        self.flavors = {each.name: each
                        for each in flavors_file.flavors(self.path)}

    def test_flavors_are_those_of_the_example(self):
        created = {
            arguments.name: (
                arguments.vcpus, arguments.ram, arguments.disk,
                arguments.properties)
            for name, arguments in _commands('cookbook')
            if name == 'flavor_create'}
        self.assertEqual({
            each.name: (each.vcpus, each.memory, each.disk,
                        dict(each.extra_specs))
            for each in self.flavors.values()}, created)

    def test_every_key_has_a_reason(self):
        sections = re.split(r'^\.\. _cookbook-\w+:$', _text('cookbook'),
                            flags=re.MULTILINE)[1:]
        self.assertEqual(len(self.flavors), len(sections))
        for flavor, section in zip(self.flavors.values(), sorted(
                sections, key=lambda each: list(self.flavors).index(
                    re.search(r'flavor create (\S+)', each)[1]))):
            rows = re.findall(r'^   \* - (.*)', section, re.MULTILINE)
            explained = re.findall('``(.+?)``', ' '.join(rows))
            for key, value in flavor.extra_specs.items():
                generic = re.sub(r'(hw:numa_(?:cpus|mem))\.\d', r'\1.N', key)
                self.assertTrue(
                    f'{key}={value}' in explained or generic in explained,
                    (flavor.name, key))

    def test_servers_of_the_page(self):
        with open(self.path, encoding='utf-8') as stream:
            cloud = yaml.safe_load(stream)
        zones = {each['name'] for each in cloud['aggregates']}
        ports = set()
        flavors = []
        for name, arguments in _commands('cookbook'):
            if name == 'port_create':
                ports.add(arguments.name)
            elif name == 'server_create':
                flavors.append(arguments.flavor)
                self.assertIn(arguments.availability_zone, zones)
                self.assertEqual(set(), {
                    nic['port-id'] for nic in arguments.nics or ()
                    if isinstance(nic, dict) and nic.get('port-id')} - ports)
        self.assertEqual(sorted(self.flavors), sorted(flavors))

    def test_each_boots(self):
        servers = self.servers('cookbook').values()
        self.assertEqual(set(self.flavors), {
            each['flavor'] for each in servers if each['host']})

    def test_lint(self):
        for args in (('--file', self.path),
                     ('--all', '--hosts', '--from', self.path)):
            out, _err = self.exits(0, 'flavor', 'lint', *args, '-f', 'json')
            result = json.loads(out)
            self.assertEqual(len(self.flavors), result['flavors_checked'])
            self.assertEqual([], [each for each in result['findings']
                                  if each['severity'] != 'note'])

    def test_faults(self):
        self.assertEqual(
            {*self.faults_of('cookbook').values(),
             f'{_NOVA} {scheduler.NOT_ENOUGH}'}, set(_faults('cookbook')))


class TenantsTest(PageTestCase):

    def test_faults(self):
        refused = self.faults_of('refusals')
        # Nova, or Placement, refuses this one without a reason.
        del refused['large']
        quoted = _faults('tenants')
        self.assertEqual(set(), set(refused.values()) - set(quoted))
        levels = {self.faults_of('refusals', level)['no-room']
                  for level in (reasons.SUMMARY, reasons.HOSTS)}
        self.assertEqual(
            set(), set(quoted) - levels - set(refused.values()) - set(
                self.faults_of('cookbook').values()) - {
                    f'{_NOVA} {scheduler.NOT_ENOUGH}'})

    def test_levels(self):
        _, _, section = _text('tenants').partition('How much you are told\n')
        wanted = {
            level: self.faults_of('refusals', level)['no-room']
            for level in (reasons.POLICY, reasons.SUMMARY, reasons.HOSTS)}
        wanted[reasons.NONE] = f'{_NOVA} {scheduler.NOT_ENOUGH}'
        self.assertEqual(wanted, {
            level: ' '.join(fault.split()) for level, fault in re.findall(
                r'^``(\w+)``.*\n    \.\. code-block:: text\n\n'
                r'((?:       .+\n)+)', section, re.MULTILINE)})

    def test_commands(self):
        self.assertEqual(
            ['flavor_show', 'server_show', 'server_event_list'],
            [name for name, _arguments in _commands('tenants')])
