# SPDX-License-Identifier: Apache-2.0
"""The metadata definitions in a real Glance.

Loaded by its own tool beside its own ones, and read by its API, which gives
Horizon the keys of one type of resource.  In processes of their own: Glance
and Nova have options of the same names.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

import fixtures
import testtools

import nfv_sched
from nfv_sched.ops.metadefs import metadefs

_OURS = (pathlib.Path(nfv_sched.__file__).parents[1] / 'etc' / 'nfv_sched' /
         'metadefs')
# Where pip puts those of Glance.
_THEIRS = pathlib.Path(sys.prefix) / 'etc' / 'glance' / 'metadefs'

_MANAGE = """\
import sys
from glance.cmd import manage
sys.exit(manage.main())
"""

# Answers GET /v2/metadefs/namespaces and, for each namespace, GET
# /v2/metadefs/namespaces/NAME, with ?resource_type=TYPE for each of its types.
_READ = """\
import json
import sys
from glance.api.v2 import metadef_namespaces
from glance.common import config
from glance import context
import webob
config.parse_args(['--config-file', sys.argv[1]])
api = metadef_namespaces.create_resource()
schema = metadef_namespaces.get_schema()

def answer(action, *args):
    request = webob.Request.blank('/v2/metadefs/namespaces')
    request.context = context.RequestContext(
        is_admin=True, roles=['admin'], project_id='project')
    response = webob.Response(request=request)
    found = getattr(api.controller, action)(request, *args)
    getattr(api.serializer, action)(response, found)
    return json.loads(response.body)

found = {}
for each in answer('index', None, 1000)['namespaces']:
    name = each['namespace']
    namespace = answer('show', name)
    schema.validate(namespace)
    namespace['shown'] = {
        type['name']: answer('show', name, {'resource_type': type['name']})[
            'properties']
        for type in namespace.get('resource_type_associations', ())
        if 'properties' in namespace}
    found[name] = namespace
print('FOUND', json.dumps(found))
"""


class GlanceTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.conf = os.path.join(self.directory, 'glance-api.conf')
        with open(self.conf, 'w') as conf:
            conf.write('[database]\nsqlite_synchronous = false\n'
                       'connection = sqlite:///'
                       f'{self.directory}/glance.sqlite\n')

    def run_python(self, code, *args):
        """What a process prints."""
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', code, *args],
            capture_output=True, text=True, timeout=280)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def manage(self, *args):
        """Run glance-manage db."""
        self.run_python(_MANAGE, '--config-file', self.conf, 'db', *args)

    def read(self):
        """Namespace -> what the API answers."""
        out = self.run_python(_READ, self.conf)
        return json.loads(out.partition('FOUND ')[2])

    def test_load(self):
        self.manage('sync')
        self.manage('load_metadefs', '--path', str(_THEIRS))
        self.manage('load_metadefs', '--path', str(_OURS), '--merge')
        found = self.read()
        self.assertGreater(len(found), 30)
        shown = collections.Counter(
            (resource, key) for namespace in found.values()
            for resource, keys in namespace['shown'].items() for key in keys)
        for namespace in metadefs.namespaces():
            there = found[namespace.name]
            self.assertEqual(
                (namespace.title, namespace.description, 'public', True),
                (there['display_name'], there['description'],
                 there['visibility'], there['protected']))
            self.assertEqual(namespace.properties, there['properties'])
            # What Horizon shows has the prefix.
            self.assertEqual(
                {resource: {prefix + name
                            for name in namespace.properties}
                 for resource, prefix in namespace.associations},
                {resource: set(keys)
                 for resource, keys in there['shown'].items()})
            # Glance has no others of them, but for a policy that it lacks.
            self.assertEqual(
                {}, {(resource, key): shown[resource, key]
                     for resource, keys in there['shown'].items()
                     for key in keys if shown[resource, key] > 1
                     and key not in ('hw:cpu_policy', 'hw_cpu_policy')})
        self.assertEqual(
            ['shared', 'dedicated'], found['OS::Compute::CPUPinning'][
                'shown'][metadefs.FLAVOR]['hw:cpu_policy']['enum'])

        # As after an upgrade, or with a place more.
        for namespace in metadefs.namespaces({'place': ['osd']}):
            path = pathlib.Path(self.directory, namespace.file)
            path.write_text(namespace.text())
        self.manage('load_metadefs', '--path', self.directory, '--merge',
                    '--prefer_new')
        again = self.read()
        added = again['OS::Compute::NFVPlacement']['shown'][
            metadefs.FLAVOR].keys() - found['OS::Compute::NFVPlacement'][
                'shown'][metadefs.FLAVOR].keys()
        self.assertEqual({'nfv:numa_affinity.osd',
                          'nfv:numa_anti_affinity.osd'}, added)
        self.assertEqual(found.keys(), again.keys())
