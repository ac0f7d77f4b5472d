# SPDX-License-Identifier: Apache-2.0

import dataclasses
import pathlib

import fixtures

from nfv_sched.base import strings
from nfv_sched.ops.answers.capacity import quota
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.ops.model.requests import nova_account
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.cloud import nova_api
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds

FLAVORS = (small_clouds.flavor(name='vrouter.4'),
           small_clouds.flavor(6, name='fw.6',
                               nfv__vswitch_numa_affinity='strict'))
CLOUD = small_clouds.cloud(
    small_clouds.host('one', small_clouds.node(0, range(5)),
                      small_clouds.node(1, range(3))),
    small_clouds.host('two', zone='east'), small_clouds.host('six'),
    aggregates=(snapshot.Aggregate(name='nfv', hosts=('one', 'two')),),
    flavors=FLAVORS)

#: ID of a project that has nothing.
PROJECT = 'c' * 32

#: With one of the CPUs of host one.
SMALL = snapshot.Server(
    uuid='a' * 32, name='small', host='one', cell='cell1', state='active',
    flavor=small_clouds.flavor(1), nodes=(snapshot.GuestNode(
        host_node=0, pins={0: 2}, dedicated=frozenset((0,)), memory=512,
        cpu_policy='dedicated'),))


#: Node 0 has three free CPUs, and node 1 six and all virtual functions.
NETWORKS = """\
hosts:
- name: one
  cores: 6
  threads: 1
  memory: 16 GiB
  numa_nodes: 2
  pci_devices:
  - {type: VF, node: 1, count: 4, physical_network: data}
networks:
  near: {physical_network: data, vnic_type: direct}
  anywhere: {physical_network: data, vnic_type: direct, numa_policy: preferred}
flavors:
  pinned:
    vcpus: 2
    memory: 1 GiB
    extra_specs: {'hw:cpu_policy': dedicated}
steps: []
"""


class CapacityTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.file = self.save_cloud(CLOUD)

    def run_command(self, *args):
        return super().run_command('capacity', *args, '--from', self.file)

    def table(self, *args):
        return self.csv_rows(self.shown(*args, '-f', 'csv'))

    def test_project(self):
        file.save(dataclasses.replace(
            CLOUD, options={**CLOUD.options, 'filter_scheduler': {
                'enabled_filters': [
                    *small_clouds.FILTERS, 'AggregateMultiTenancyIsolation']}},
            aggregates=(snapshot.Aggregate(
                name='ours', hosts=('six',), metadata={
                    'filter_tenant_id': 'alpha, beta'}),)), self.file)
        row, = self.table('list', '--flavor', 'v*', '--project', 'beta',
                          '--empty')
        self.assertEqual((9, 12), (row['Fits'], row['If empty']))
        code, out, err = self.run_command(
            'list', '--flavor', 'v*', '--project', PROJECT, '--empty',
            '-f', 'csv')
        row, = self.csv_rows(out)
        self.assertEqual(
            (5, 8, 4, 1),
            (row['Fits'], row['If empty'],
             row['Lost to AggregateMultiTenancyIsolation'],
             row['Lost to pCPUs on one NUMA node']))
        self.assertIn('Isolation": 4', row['Lost capacity by cause'])
        text = 'no server and no aggregate is of project'
        self.assertEqual((0, f'note: {text} {PROJECT}\n'), (code, err))
        self.assertEqual(
            (2, '', f'error: {text} gamma; with --from, --project needs the '
             'ID of the project\n'),
            self.run_command('list', '--project', 'gamma'))
        row, = self.table('list', '--mix', 'vrouter.4=1', '--project', 'beta')
        self.assertEqual(9, row['Fits'])
        row = self.table('show', 'vrouter.4', '--project', 'beta',
                         '--host', 'six')[0]
        self.assertEqual(4, row['Fits'])

    def test_project_of_a_server(self):
        file.save(dataclasses.replace(CLOUD, servers=(snapshot.Server(
            uuid='b' * 32, name='x', project='gamma', host=None,
            flavor=FLAVORS[0]),)), self.file)
        self.assertEqual(2, len(self.table('list', '--project', 'gamma')))

    def test_mix_that_nova_refuses(self):
        odd = small_clouds.flavor(name='odd', hw__cpu_thread_policy='x')
        file.save(dataclasses.replace(CLOUD, flavors=(*FLAVORS, odd)),
                  self.file)
        self.refused('error: --mix: odd: ', 'list', '--mix', 'fw.6=1,odd=1')

    def test_several_compute_nodes_of_a_service(self):
        cloud = dataclasses.replace(CLOUD, hosts=(
            *CLOUD.hosts, dataclasses.replace(
                CLOUD.hosts[2], uuid='c' * 32, hypervisor='six-2',
                providers=())))
        file.save(cloud, self.file)
        code, out, err = self.run_command(
            'list', '--flavor', 'v*', '--by', 'host', '-f', 'csv')
        self.assertEqual(
            (0, 'note: of the 2 compute nodes of six only the first is '
             'looked at\n'), (code, err))
        self.assertEqual({'one': 1, 'two': 4, 'six': 4}, {
            row['Host']: row['Fits'] for row in self.csv_rows(out)})

    def test_numa_policy_of_network(self):
        """The networks of a cloud file may have a PCI NUMA policy."""
        self.file += '.yaml'
        pathlib.Path(self.file).write_text(NETWORKS)
        for network, fits in (('near', 3), ('anywhere', 4)):
            out, _err = self.exits(
                0, 'list', '--network', network, '-f', 'csv')
            self.assertEqual(fits, self.csv_rows(out)[0]['Fits'])

    def test_networks_that_are_not_there(self):
        file.save(dataclasses.replace(
            CLOUD, servers=(dataclasses.replace(SMALL, name='like'),),
            networks=(snapshot.Network(id='n', name='fast'),)), self.file)
        for args, word in ((('--network', 'fsat'), 'did you mean fast?'),
                           (('--network', 'fast,vnic-type=x'), 'vNIC type'),
                           (('--like', 'nobody'), "no server named 'nobody'"),
                           (('--like', 'like', '--network', 'fast'),
                            'not allowed with')):
            self.refused(word, 'list', *args)

    def test_next_with_emulator_threads(self):
        """CPUs for these leave with the server, too."""
        node, = SMALL.nodes
        file.save(dataclasses.replace(CLOUD, servers=(dataclasses.replace(
            SMALL, nodes=(dataclasses.replace(
                node, reserved=frozenset([3])),)),)), self.file)
        _code, out, _err = self.run_command(
            'show', 'vrouter.4', '--next', '--host', 'one')
        self.assertIn('small: 2 pCPUs on node 0', out)

    def test_usage(self):
        for args, text in (
                (('list', '--mix', 'fw.6'), "FLAVOR=N needed, not 'fw.6'"),
                (('list', '--mix', 'fw.6=1', '--by', 'host'),
                 '--mix goes with neither --by nor --survive'),
                *((('list', '--image-property', given), text)
                  for given, text in (
                      ('hw_firmware=x', 'no image property'),
                      ('hw_firmware_type=x', 'does not take'),
                      ('x', 'KEY=VALUE')))):
            self.refused(text, *args)

    def test_placement_unread(self):
        file.save(dataclasses.replace(
            CLOUD, missing=snapshots.missing('Placement: not there'),
            hosts=tuple([dataclasses.replace(host, providers=())
                         for host in CLOUD.hosts])), self.file)
        code, out, err = self.run_command('list', '-f', 'value', '-c', 'Fits')
        self.assertEqual((1, '9\n2\n', 'error: Placement: not there\n'),
                         (code, out, err))


class QuotaTest(base.CommandTestCase):
    """What the quota of a project allows, which Keystone names."""

    ID = 'a' * 32
    #: It could be a formula, a URL, another column or a line.
    NAME = '=1+1|x,"é/../..\n?a=b'

    def setUp(self):
        super().setUp()
        self.api = nova_api.start(self)
        self.api.projects = [
            {'id': self.ID, 'name': self.NAME},
            {'id': 'b' * 32, 'name': 'twin'},
            {'id': 'c' * 32, 'name': 'twin'}]
        self.quotas = {self.ID: {
            'instances': (10, 3), 'cores': (20, 9), 'ram': (-1, 9000)}}
        # Metadata with such a value make no ID of it in a live cloud.
        cloud = dataclasses.replace(CLOUD, aggregates=(snapshot.Aggregate(
            name='a', hosts=('six',), metadata={'kind': self.NAME}),))
        connected = self.api.connect()
        for of, name, value in (
                (source, 'reader', lambda arguments: lambda: cloud),
                (nova_account.ks_loading, 'load_auth_from_conf_options',
                 lambda *args: None),
                (nova_account.ks_loading, 'load_session_from_conf_options',
                 lambda *args, **kwargs: connected.session),
                (nova_account.sdk_connection, 'Connection',
                 lambda **kwargs: connected),
                (quota, 'from_nova', self.from_nova)):
            self.useFixture(fixtures.MockPatchObject(of, name, value))

    def from_nova(self, project):
        quotas = self.quotas[project]
        return lambda flavor: quota.allowance({
            'instances': 1, 'cores': flavor.vcpus, 'ram': flavor.memory},
            quotas)

    def allowed(self, project, *args):
        return self.run_command(
            'capacity', 'list', '--flavor', 'v*', '--project', project, *args)

    def row(self, project):
        row, = self.csv_rows(self.shown(
            'capacity', 'list', '--flavor', 'v*', '--project', project, '-f',
            'csv'))
        return {name.removeprefix('Quota '): value
                for name, value in row.items() if name.startswith('Quota ')}

    def test_allows(self):
        """By name and by ID, the least that any resource allows."""
        for project in (self.NAME, self.ID):
            self.assertEqual({
                'allows': 2, 'instances used': 3, 'instances limit': 10,
                'instances needed': 1, 'cores used': 9, 'cores limit': 20,
                'cores needed': 4, 'ram MiB used': 9000, 'ram MiB limit': '',
                'ram MiB needed': 2048}, self.row(project))
            self.assertIn('cores 9/20', self.allowed(project)[1])
        self.quotas[self.ID]['cores'] = (8, 9)
        self.assertEqual(0, self.row(self.ID)['allows'])
        self.quotas[self.ID] = dict.fromkeys(
            self.quotas[self.ID], (-1, 3))
        self.assertEqual('', self.row(self.ID)['allows'])
        self.assertIn('unlimited', self.allowed(self.ID)[1])

    def test_unknown_projects(self):
        for name, message in (
                ('twins', "no project named 'twins'; did you mean twin?"),
                ('twin', "several projects named 'twin': " + ', '.join(
                    (32 * 'b', 32 * 'c'))),
                ('d' * 32, f"no project named {'d' * 32!r}; there are: "
                           f'{strings.line(self.NAME)}, twin')):
            self.assertEqual((2, '', f'error: {message}\n'),
                             self.allowed(name))

    def test_keystone_refuses(self):
        self.api.faults['identity/v3/projects'] = None
        self.assertEqual(2, self.row(self.ID)['allows'])
        code, out, err = self.allowed('telco')
        self.assertEqual((1, ''), (code, out))
        self.assertRegex(
            err, '^error: --project telco: Keystone cannot be read: .*404.*; '
            'the ID of the project is enough\n$')

    def test_odd_projects(self):
        """No name leads elsewhere."""
        self.api.projects = [{'id': '../x?y', 'name': 'odd'}]
        self.quotas['../x?y'] = self.quotas[self.ID]
        self.assertEqual(2, self.row('odd')['allows'])
        self.api.projects = [{'id': None, 'name': 'odd'}]
        code, _out, err = self.allowed('odd')
        self.assertEqual(1, code)
        self.assertIn('Keystone cannot be read: malformed URL or answer', err)
