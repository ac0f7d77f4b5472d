#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Commands in the documentation that make or change flavors.

The usual client asks for a microversion at which Nova's API checks no extra
specs, unless it is told another one.
"""

import pathlib
import re

import testtools

import nfv_sched
from nfv_sched.checks import flavors

_ROOT = pathlib.Path(nfv_sched.__file__).parents[1]
_PLACES = ('*.md', '*.rst', 'devstack/*', 'doc/source/**/*.rst',
           'etc/**/*', 'releasenotes/**/*.yaml')

# The options of the client are before the command, and may be on other lines.
_COMMAND = re.compile(
    r'\bopenstack(?P<options>(?:\s+-\S+(?:\s+[^-\s]\S*)?)*?)\s+'
    r'flavor\s+(?P<verb>set|create)\b(?P<rest>.*)')
_CHECKED = re.compile(r'--os-compute-api-version[ =]2\.(8[6-9]|9\d)\b')


def _unchecked(text):
    """Commands that give flavors extra specs that nobody checks."""
    for command in _COMMAND.finditer(re.sub(r'\\\n\s*', '', text)):
        if (command['verb'] == 'set' or '--property' in command['rest']) and (
                not _CHECKED.search(command['options'])):
            yield command.group()


class FlavorCommandsTest(testtools.TestCase):

    def test_every_command_is_checked(self):
        found = 0
        for place in _PLACES:
            for path in _ROOT.glob(place):
                if path.is_file():
                    text = path.read_text(encoding='utf-8')
                    self.assertEqual([], list(_unchecked(text)), path)
                    found += len(_COMMAND.findall(
                        re.sub(r'\\\n\s*', '', text)))
        self.assertGreater(found, 3)

    def test_advice(self):
        self.assertEqual([], list(_unchecked(flavors.ADVICE)))

    def test_what_is_found(self):
        version = '--os-compute-api-version'
        for text in (
            'openstack flavor set small --property nfv:shared_vcpu=0',
            'openstack \\\n    flavor set \\\n  --property hw:x=1 small',
            '``openstack flavor\nset``',
            'openstack flavor create --vcpus 1 \\\n --property nfv:x=1 small',
            f'openstack --os-cloud admin {version} 2.61 flavor set small',
            f'openstack {version} 2.9 flavor set small',
        ):
            self.assertEqual(1, len(list(_unchecked(text))), text)
        for text in (
            f'openstack {version} 2.86 flavor set --property hw:x=1 small',
            f'openstack --os-cloud admin {version}=2.96 \\\n   flavor create '
            '--property hw:x=1 small',
            'openstack flavor create --vcpus 1 small',
            'openstack flavor unset --property nfv:x small',
            'openstack aggregate set --property x=1 rack',
        ):
            self.assertEqual([], list(_unchecked(text)), text)
