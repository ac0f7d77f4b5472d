# SPDX-License-Identifier: Apache-2.0
"""Large files of every kind, which may come from a few compressed kilobytes.

What takes time or memory out of proportion to the size of a file does not show
in the small files of the other tests.  The limit of memory is theirs; that of
time is many times what is needed, so that a slow machine fails no test, and
still too short for what grows with the square of the size.
"""

import gzip
import json
import uuid

from nfv_sched.ops.cli import documents
from nfv_sched.ops.profile import document as profile_document
from nfv_sched.ops.snapshot import codec
from nfv_sched.ops.snapshot import file
from nfv_sched.ops.snapshot import snapshot
from nfv_sched.tests.fuzz import test_files
from nfv_sched.tests.unit.ops.commands import test_bad_snapshots
from nfv_sched.tests.unit.ops.execution import migrating_nova
from nfv_sched.tests.unit.ops.profile import machines

#: Seconds on a CPU.
_SECONDS = 40
#: Items of which one is enough for an error.
_MANY = 2_000_000


def _id(number):
    return str(uuid.UUID(int=number))


class GrowthTest(test_files.FilesTestCase):

    def packed(self, name, document, **lists):
        """Write a compressed document.

        :param lists: text of a list in the document -> items in its place, as
            JSON
        """
        text = json.dumps(document)
        for key, items in lists.items():
            text = text.replace(f'"{key}"', f'[{items}]')
        return self.write(name, gzip.compress(text.encode(), 1))

    def refuse(self, path, message, *command):
        """Run a command that says in a line what is wrong with a file."""
        code, _out, err = self.check(*command, seconds=_SECONDS)
        self.assertEqual((1, f'error: {path}: {message}\n'), (code, err))

    def snapshot(self):
        return {'format': file.FORMAT, 'version': snapshot.VERSION,
                'cloud': codec.encode(test_bad_snapshots.CLOUD)}

    def test_chain_of_providers(self):
        """Each resource provider is the child of the one before."""
        document = self.snapshot()
        host = document['cloud']['hosts'][0]
        providers = host['providers'] = host['providers'][:1]
        parent = host['uuid']
        for number in range(1, 100_000):
            providers.append(
                {'uuid': _id(number), 'name': 'p', 'parent': parent})
            parent = _id(number)
        path = self.packed('cloud.json.gz', document)
        code, out, err = self.check('host', 'list', '--from', path,
                                    seconds=_SECONDS)
        self.assertEqual((0, ''), (code, err))
        self.assertIn(host['name'], out)

    def test_wrong_plan(self):
        plan = migrating_nova.document('a live two')
        server, = plan['servers']
        for field, value, message in (
                ('servers', 'X', 'servers[0]: must be an object, not 1'),
                ('servers', [{**server, 'related': 'X'}],
                 'servers[0].related[0]: must be text, not 1'),
                ('failed', 'X', 'failed[0]: must be text, not 1')):
            path = self.packed('plan.json', {**plan, field: value},
                               X=','.join(['1'] * _MANY))
            self.refuse(path, message, 'plan', 'run', path, '--dry-run')

    def profile(self):
        return {'schema': documents.VERSION, **documents.builtins_of(
            profile_document.profiled(machines.derive(
                machines.machine(cores=4), shared=True)))}

    def test_wrong_profile(self):
        start = self.good('cloud.json')
        profile = self.profile()
        node = profile['numa_nodes'][0]
        for field, value, message in (
                ('numa_nodes', 'X',
                 'numa_nodes[0]: must be an object, not 1'),
                ('numa_nodes', [{**node, 'cores': 'X'}],
                 'numa_nodes[0].cores[0]: must be a list, not 1')):
            path = self.packed('profile.json', {**profile, field: value},
                               X=','.join(['1'] * _MANY))
            self.refuse(path, message, 'host', 'list', '--add-hosts',
                        f'2:{path}', '--from', start)
