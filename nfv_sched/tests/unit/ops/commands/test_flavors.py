# SPDX-License-Identifier: Apache-2.0
"""Commands that look at flavors, of clouds and of files."""

import dataclasses
import json
import os
import re
import subprocess

from osc_lib import utils
import yaml

from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import file
from nfv_sched.ops.commands import flavor_file as flavors_file
from nfv_sched.tests.unit.ops.answers.plans import test_rendering
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds

GOOD = small_clouds.flavor(name='good', hw__mem_page_size='1GB', memory=2048,
                           nfv__vswitch_numa_affinity='strict')
BAD = small_clouds.flavor(name='bad', hw__cpu_polcy='x')
LARGE = small_clouds.flavor(9, name='large')
ODD = small_clouds.flavor(5, name='odd', nfv__vswitch_numa_affinity='prefer')
CLOUD = small_clouds.cloud(small_clouds.host('one'), small_clouds.host('two'),
                           flavors=(GOOD, BAD, LARGE, ODD))

#: The same flavor, as others write it.
LISTED = {'ID': '7', 'Name': 'f', 'RAM': 2048, 'Disk': 20, 'Ephemeral': 0,
          'VCPUs': 4, 'Is Public': True, 'Swap': 0, 'RXTX Factor': 1.0,
          'Properties': {'hw:numa_nodes': '2'}}
SHOWN = {'OS-FLV-DISABLED:disabled': False, 'OS-FLV-EXT-DATA:ephemeral': 0,
         'access_project_ids': None, 'description': None, 'disk': 20,
         'id': '7', 'name': 'f', 'os-flavor-access:is_public': True,
         'properties': {'hw:numa_nodes': '2'}, 'ram': 2048,
         'rxtx_factor': 1.0, 'swap': '', 'vcpus': 4}
API = {'id': '7', 'name': 'f', 'vcpus': 4, 'ram': 2048, 'disk': 20,
       'OS-FLV-EXT-DATA:ephemeral': 0, 'swap': 0,
       'os-flavor-access:is_public': True,
       'extra_specs': {'hw:numa_nodes': '2'}}
PLAIN = {'f': {'vcpus': 4, 'memory': '2 GiB', 'disk': 20, 'id': 7,
               'extra_specs': {'hw:numa_nodes': 2}}}


class FlavorFileTest(base.CommandTestCase):

    def read(self, content):
        return flavors_file.flavors(self.write_file('file', content))

    def test_sources(self):
        seen = set()
        for data in ([LISTED], SHOWN, {'flavor': API}, {'flavors': [API]},
                     PLAIN, {'flavors': PLAIN, 'hosts': []}):
            for content in (data, yaml.safe_dump(data)):
                flavor, = self.read(content)
                seen.add(str(flavor))
                self.assertEqual(
                    ('f', '7', 4, 2048, 20, 0, 0, True,
                     {'hw:numa_nodes': '2'}),
                    (flavor.name, flavor.id, flavor.vcpus, flavor.memory,
                     flavor.disk, flavor.ephemeral, flavor.swap,
                     flavor.public, dict(flavor.extra_specs)))
        self.assertEqual(1, len(seen))

    def test_properties_left_out(self):
        """A list without --long and an old API do not say that there are none.

        A cloud file does.
        """
        names = {'Properties', 'properties', 'extra_specs'}
        for data in (LISTED, SHOWN, API):
            for key, value in data.items():
                if key in names:
                    without = {each: data[each] for each in data
                               if each != key}
                    error = self.assertRaises(
                        errors.CommandError, self.read, [without])
                    self.assertIn('--long', str(error))
                    empty, = self.read([{**without, key: {}}])
                    self.assertEqual({}, empty.extra_specs)
        flavor, = self.read('f: {vcpus: 1, ram: 1}')
        self.assertEqual({}, flavor.extra_specs)

    def test_values(self):
        """As the client would send them."""
        flavor, = self.read('f: {vcpus: 1, ram: 1, properties: '
                            '{a: true, b: 1.5, c: 2, d: x}}')
        self.assertEqual({'a': 'true', 'b': '1.5', 'c': '2', 'd': 'x'},
                         flavor.extra_specs)

    def test_properties_as_one_text(self):
        """As the client prints them without -f json."""
        for specs in (
            {}, {'a': ''}, {'hw:numa_nodes': '2'},
            {'hw:cpu_policy': 'dedicated', 'hw:numa_cpus.0': '0,1, 3',
             'mine:a b': "it's, or x = 'y'", 'trait:CUSTOM_X': 'required'},
        ):
            # Not every python-openstackclient prints JSON as an object.
            flavor, = self.read([{**LISTED, 'Properties': utils.format_dict(
                specs)}])
            self.assertEqual(specs, flavor.extra_specs)
        image = flavors_file.image(self.write_file('file', {
            'properties': "hw_cpu_policy='dedicated', min='1'"}))
        self.assertEqual({'hw_cpu_policy': 'dedicated', 'min': '1'},
                         image.properties)

    def test_odd_files(self):
        for content, said in (
            ('', 'no flavors'), ('x', 'no flavors'), ('{', 'YAML'),
            ('[1]', '[0] is not a flavor'), ('{"f": 1}', 'is not a flavor'),
            ('[' * 100000, 'nested too deeply'),
            ('[{"vcpus": 1, "ram": 1}]', 'no name'),
            ('f: {ram: 1}', "'f' is not a flavor"),
            ('f: {vcpus: 1, ram: 1}\ng: {ram: 1}', "'g' is not a flavor"),
            # As Heat, Terraform and Ansible have them.
            ('version: x\nresources: {f: {properties: {ram: 1, vcpus: 1}}}',
             'flavors are in resources.f.properties: '),
            ('{"resource": {"flavor_v2": {"f": {"vcpus": "4"}}}}',
             'flavors are in resource.flavor_v2.f: '),
            ('- name: x\n  os.flavor: {vcpus: 1, ram: 1}',
             'flavors are in [0].os.flavor: '),
            ('my_flavors: [{name: f, vcpus: 1, ram: 1}]',
             'flavors are in my_flavors[0]: '),
            ('{"a": {"b c": {"vcpus": 1}}}', "flavors are in a.'b c': "),
            ('f: {vcpus: 1}', 'ram must be a number from 1'),
            ('f: {vcpus: 0, ram: 1}', 'vcpus'),
            ('f: {vcpus: true, ram: 1}', 'vcpus'),
            ('f: {vcpus: 99999, ram: 1}', 'vcpus'),
            ('f: {vcpus: 1, ram: 1 parsec}', 'is not a size'),
            ('f: {vcpus: 1, ram: -1}', 'ram'),
            ('f: {vcpus: 1, ram: 1.5}', 'ram'),
            ('f: {vcpus: 1, ram: 1, disk: x}', 'disk'),
            ('f: {vcpus: 1, ram: 1, properties: 5}', 'properties must be'),
            ('f: {vcpus: 1, ram: 1, properties: "a=b"}', 'properties must'),
            ('f: {vcpus: 1, ram: 1, properties: "a=\'b\' c=\'d\'"}',
             'properties must'),
            ('f: {vcpus: 1, ram: 1, properties: "a=\'b\', a=\'c\'"}',
             'properties must'),
            ('f: {vcpus: 1, ram: 1, properties: {a: [1]}}',
             'a must be a text'),
            ('f: {vcpus: 1, ram: 1, properties: {a: null}}',
             'a must be a text'),
            ('[{"name": "f", "vcpus": 1, "ram": 1}, '
             '{"name": "f", "vcpus": 1, "ram": 1}]', 'several flavors'),
        ):
            error = self.assertRaises(errors.CommandError, self.read,
                                      content)
            self.assertIn(said, str(error), content[:50])
            self.assertEqual(1, len(str(error).splitlines()))

    def test_image(self):
        for content, image_id in (
            ({'hw_cpu_policy': 'dedicated', 'min': 1}, ''),
            ({'id': 'a' * 32, 'name': 'cirros', 'properties': {
                'hw_cpu_policy': 'dedicated', 'min': 1, 'stores': []}},
             'a' * 32),
            # An answer of Glance, and what the SDK makes of one.
            ({'id': 'a' * 32, 'name': 'x', 'status': 'active', 'tags': [],
              'hw_cpu_policy': 'dedicated', 'min': '1', 'owner': 'b' * 32,
              'os_hidden': False}, 'a' * 32),
            ({'images': [{'id': 'a' * 32, 'disk_format': 'raw', 'min': '1',
                          'properties': {'hw_cpu_policy': 'dedicated'}}]},
             'a' * 32)):
            self.assertEqual(
                (image_id, {'hw_cpu_policy': 'dedicated', 'min': '1'}, 0, 0),
                flavors_file.image(self.write_file('file', content)))
        for content in ('x', '[]', '', {'properties': {}, 'min_ram': -1},
                        {'properties': {}, 'id': '--os-auth-url=x'},
                        {'properties': {}, 'size': 'x'},
                        {'images': [{'id': 'a' * 32}, {'id': 'b' * 32}]},
                        [{'ID': 'a' * 32, 'Name': 'x', 'Status': 'active'}],
                        {'resources': {'i': {'properties': {}}}}):
            self.assertRaises(errors.CommandError, flavors_file.image,
                              self.write_file('file', content))

    def test_image_needs(self):
        cases = (
            ({'min_ram': 512, 'min_disk': 3, 'size': None}, (512, 3)),
            ({'min_ram': '512', 'min_disk': 3, 'size': 3 << 30}, (512, 3)),
            ({'min_disk': 3, 'size': (3 << 30) + 1}, (0, 4)))
        for fields, needs in cases:
            found = flavors_file.image(self.write_file(
                'file', {'properties': {}, **fields}))
            self.assertEqual(needs, (found.memory, found.disk))


class LintTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.file = self.save_cloud(CLOUD)

    def test_keys_of_bare_metal(self):
        """Ironic boots nodes as these say, whatever the API checks."""
        path = self.write_file('file', {'bm': {
            'vcpus': 1, 'ram': 1, 'properties': {
                'resources:CUSTOM_BAREMETAL': '1',
                'capabilities:boot_mode': 'uefi',
                'capabilites:cpu_info:model': 'x'}}})
        _code, out, _err = self.run_command(
            'flavor', 'lint', '--file', path, '-f', 'json')
        advice = {each['key']: each['do']
                  for each in json.loads(out)['findings']}
        self.assertIn('Ironic', advice['capabilities:boot_mode'])
        self.assertNotIn('Ironic', advice['capabilites:cpu_info:model'])

    def lint(self, *args, code=0):
        return self.shown(
            'flavor', 'lint', *args, '--from', self.file, code=code)

    def test_long_extra_specs(self):
        good = next(each for each in CLOUD.flavors if each.name == 'good')
        for key, value in (('nfv:vswitch_numa_affinity', 'x' * 100_000),
                           ('trait:CUSTOM_' + 'X' * 100_000, 'required'),
                           ('foo' * 50_000, 'x' * 100_000)):
            cloud = dataclasses.replace(CLOUD, flavors=(dataclasses.replace(
                good, extra_specs={**good.extra_specs, key: value}),))
            file.save(cloud, self.file)
            for command in (('flavor', 'lint'), ('flavor', 'explain')):
                for form in ('table', 'json'):
                    out = self.shown(*command, 'good', '--from', self.file,
                                     '-f', form, code=3)
                    self.assertLess(len(out), 10_000)

    def findings(self, *args, code=0):
        document = json.loads(self.lint(*args, '-f', 'json', code=code))
        return [(each['flavor'], each['severity'], each['rule'])
                for each in document['findings']]

    def test_file(self):
        """Flavors of a file are counted on hosts of a cloud."""
        path = self.write_file('file', {'flavors': {
            'a': {'vcpus': 9, 'ram': 1024, 'properties': {
                'hw:cpu_policy': 'dedicated'}},
            'b': {'vcpus': 1, 'ram': 1024, 'properties': {'hw:x': '1'}}}})
        self.assertEqual(
            [('a', 'error', 'no-host')], self.findings(
                '--file', path, 'a', '--hosts', code=3))

    def test_image(self):
        path = self.write_file('file', {'properties': {'hw_numa_node.0': '1'}})
        self.assertEqual(
            [('good', 'warning', 'image-dropped')],
            self.findings('good', '--image', path))

    def test_usage(self):
        for args, said in (
            ((), 'NAME, --all or --file needed'),
            (('file.json',), 'flavors of a file need --file FILE'),
            (('good', '--all'), 'either NAME or --all'),
            (('good', '--image-property', 'x'), 'KEY=VALUE needed'),
            (('good', '-c', 'x'), 'no column x'),
        ):
            self.refused(said, 'flavor', 'lint', *args, '--from', self.file)

    def test_unread(self):
        for args in (('good', '--from', '/nowhere'),
                     ('--file', '/nowhere'),
                     ('--file', self.write_file('file', 'x')),
                     ('good', '--from', self.file, '--image', '/nowhere')):
            err = self.refused('', 'flavor', 'lint', *args, code=1)
            self.assertEqual(1, len(err.splitlines()))

    def test_hostile_flavors(self):
        """Nothing breaks, and nothing takes long or much memory."""
        evil = '\x1b[31m\r\n\u202e; reboot `reboot`'
        specs = (
            {evil: evil}, {'hw:numa_nodes': '9' * 30},
            {'hw:numa_cpus.0': '0-4000000000'},
            {'hw:cpu_realtime': 'yes',
             'hw:cpu_realtime_mask': '^0-4000000000'},
            {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^'},
            {'pci_passthrough:alias': 'nic:999999999'},
            {'pci_passthrough:alias': 'nic'},
            {'pci_passthrough:alias': ':,:'},
            {'resources:VCPU': '9' * 40}, {'resources:PCPU': 'x'},
            {'hw:mem_page_size': '9' * 40}, {'hw:mem_page_size': '0'},
            {'hw:cpu_sockets': 'x'}, {'hw:pmem': evil}, {'': ''},
            {'nfv:numa_node.9999': '9999'}, {'nfv:' + 'x' * 300: 'x'},
            {'hw:cpu_max_sockets': '-1'}, {'trait:x': 'forbidden'},
            {'group_policy': 'x', 'resources1:VCPU': '1'},
            {'accel:device_profile': evil}, {'hw:tpm_version': '9'})
        path = self.write_file('file', {
            f'f{number}': {'vcpus': 65535 if number % 2 else 4,
                           'ram': 2 ** 31 - 1 if number % 3 else 1024,
                           'properties': each}
            for number, each in enumerate(specs)})
        for args in ((), ('--hosts', '--used')):
            for command in ('lint', 'translate'):
                if args and command == 'translate':
                    args = ('-f', 'commands')
                out = self.shown('flavor', command, '--file', path, '--from',
                                 self.file, *args, code=3)
                self.assertIsNone(re.search(
                    '[\x00-\x09\x0b-\x1f\u202e]', out))


class TranslateTest(base.CommandTestCase):

    SPECS = {'hw:cpu_policy': 'dedicated', 'hw:wrs:shared_vcpu': '0',
             'hw:wrs:min_vcpus': '2', 'hw:numa_node.0': '1'}

    def setUp(self):
        super().setUp()
        self.file = self.write_file('file', {'old one': {
            'vcpus': 4, 'ram': 1024, 'properties': self.SPECS}})

    def translate(self, *args, code=3):
        return self.shown('flavor', 'translate', *args, code=code)

    def test_commands_run_twice(self):
        program = self.write_file('openstack', """#!/bin/sh
cd "${0%/*}"
echo "$*" >> calls
case "$*" in
*"flavor show"*) test -e exists;;
*"flavor create"*) test ! -e exists && echo yes > exists;;
*"flavor set"*) test -e exists;;
*) exit 9;;
esac
""")
        os.chmod(program, 0o700)
        out = self.translate('--file', self.file, '-f', 'commands')
        for calls in (['show', 'create', 'set'], ['show', 'set']):
            subprocess.run(
                ['sh'], input=out, text=True, check=True, timeout=60,
                env={'PATH': f'{self.folder}:{os.environ["PATH"]}'})
            log = self.in_folder('calls')
            with open(log) as opened:
                self.assertEqual(calls, [
                    line.split()[3] for line in opened])
            os.remove(log)

    def test_commands_stop(self):
        program = self.write_file('openstack', """#!/bin/sh
cd "${0%/*}"
echo "$*" >> calls
case "$*" in *"flavor set"*) exit 1;; esac
""")
        os.chmod(program, 0o700)
        path = self.write_file('file', {name: {
            'vcpus': 1, 'ram': 1, 'properties': {'hw:numa_node.0': '1'}}
            for name in ('a', 'b')})
        out = self.translate('--file', path, '-f', 'commands', code=0)
        done = subprocess.run(
            ['sh'], input=out, text=True, timeout=60,
            env={'PATH': f'{self.folder}:{os.environ["PATH"]}'})
        self.assertEqual(1, done.returncode)
        with open(self.in_folder('calls')) as opened:
            self.assertEqual(['show', 'set'], [
                line.split()[3] for line in opened])

    def test_commands_are_harmless(self):
        evil = "x\nreboot; `reboot` $(reboot) '\u2028reboot"
        path = self.write_file('evil', {evil: {'vcpus': 1, 'ram': 1}})
        self.refused(
            'name must be printable characters', 'flavor', 'translate',
            '--file', path, '-f', 'commands', code=1)
        path = self.write_file('evil', {'evil': {
            'vcpus': 1, 'ram': 1, 'properties': {
                'hw:numa_node.0': evil, f'hw:{evil}': evil,
                'hw:cpu_model': evil}}})
        out = self.translate('--file', path, '-f', 'commands')
        # This one has errors.
        self.assertEqual([], self.lines(out))
        evil = "x; `reboot` $(reboot) '"
        path = self.write_file('evil', {evil: {
            'vcpus': 1, 'ram': 1, 'properties': {
                'hw:numa_node.0': '1'}}})
        out = self.translate('--file', path, '-f', 'commands', code=0)
        (_version, create), (_version, properties) = test_rendering.parsed(
            self.lines(out))
        self.assertEqual((evil, evil), (create.name, properties.flavor))
        self.assertIn('nfv:numa_node.0', properties.properties)

    def test_commands_that_cannot_be_shown(self):
        """They are comments: what is pasted is what was seen."""
        path = self.write_file('file', {'a': {
            'vcpus': 1, 'ram': 1024, 'properties': {
                'hw:cpu_policy': 'dedicated', 'trait:CUSTOM_A': 'required',
                'custom:note': 'a\u200bb'}}})
        out = self.translate('--file', path, '-f', 'commands', code=0)
        self.assertEqual([], self.lines(out))
        self.assertIn(r'a\u200bb', out)

    def lines(self, out):
        lines = re.sub('(?m)^(#.*|if .*|fi)\n', '', out)
        return ['openstack' + each for each in re.split(
            r'\n *openstack', '\n' + lines)[1:]]
