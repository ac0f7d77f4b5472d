# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses
import os
import pathlib

import fixtures

from nfv_sched.ops.answers.capacity import quota
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.tests import snapshots
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
        self.file = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'cloud')
        file.save(CLOUD, self.file)

    def run_command(self, *args):
        return super().run_command('capacity', *args, '--from', self.file)

    def table(self, *args):
        code, out, err = self.run_command(*args, '-f', 'csv')
        self.assertEqual((0, ''), (code, err))
        return self.csv_rows(out)

    def test_project(self):
        """Hosts that are kept for others are left out, in all figures."""
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

    def test_project_name_like_metadata(self):
        """In a live cloud it is looked up all the same."""
        cloud = dataclasses.replace(CLOUD, aggregates=(snapshot.Aggregate(
            name='a', hosts=('six',), metadata={'kind': 'telco'}),))
        self.useFixture(fixtures.MockPatchObject(
            source, 'reader', lambda arguments: lambda: cloud))
        self.useFixture(fixtures.MockPatchObject(
            quota, 'keystone', contextlib.nullcontext))
        self.useFixture(fixtures.MockPatchObject(
            quota, 'project_id',
            lambda connection, name: {'telco': 'b'}[name]))
        self.useFixture(fixtures.MockPatchObject(
            quota, 'from_nova', lambda project: lambda flavor:
            quota.ProjectAllowance((quota.ResourceLimit(
                project, 9, 2, flavor.vcpus),))))
        code, out, err = super().run_command(
            'capacity', 'list', '--project', 'telco', '-f', 'csv')
        self.assertEqual((0, ''), (code, err))
        self.assertEqual(
            [('vrouter.4', 9, 1, 2, 9, 4), ('fw.6', 2, 1, 2, 9, 6)],
            [(row['Flavor'], row['Fits'], row['Quota allows'],
              row['Quota b used'], row['Quota b limit'],
              row['Quota b needed']) for row in self.csv_rows(out)])

    def test_project_of_a_server(self):
        file.save(dataclasses.replace(CLOUD, servers=(snapshot.Server(
            uuid='b' * 32, name='x', project='gamma', host=None,
            flavor=FLAVORS[0]),)), self.file)
        self.assertEqual(2, len(self.table('list', '--project', 'gamma')))

    def test_mix_that_nova_refuses(self):
        odd = small_clouds.flavor(name='odd', hw__cpu_thread_policy='x')
        file.save(dataclasses.replace(CLOUD, flavors=(*FLAVORS, odd)),
                  self.file)
        code, out, err = self.run_command('list', '--mix', 'fw.6=1,odd=1')
        self.assertEqual((2, ''), (code, out))
        self.assertTrue(err.startswith('error: --mix: odd: '), err)

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

    def with_ports(self):
        """A server of vrouter.4 has a VF, which no host has."""
        server = dataclasses.replace(
            SMALL, name='like', flavor=small_clouds.flavor(name='vrouter.4'),
            ports=(snapshot.Port(id='p', network='n', vnic_type='direct',
                                 physnet='data', rules=0),))
        file.save(dataclasses.replace(
            CLOUD, servers=(server,), networks=(snapshot.Network(
                id='n', name='fast', physnet='data'),
                snapshot.Network(id='m', name='mgmt'))), self.file)

    def test_numa_policy_of_network(self):
        """The networks of a cloud file may have a PCI NUMA policy."""
        self.file += '.yaml'
        pathlib.Path(self.file).write_text(NETWORKS)
        for network, fits in (('near', 3), ('anywhere', 4)):
            code, out, err = self.run_command(
                'list', '--network', network, '-f', 'csv')
            self.assertEqual(0, code, err)
            self.assertEqual(fits, self.csv_rows(out)[0]['Fits'])

    def test_networks_that_are_not_there(self):
        self.with_ports()
        for args, word in ((('--network', 'fsat'), 'did you mean fast?'),
                           (('--network', 'fast,vnic-type=x'), 'vNIC type'),
                           (('--like', 'nobody'), "no server named 'nobody'"),
                           (('--like', 'like', '--network', 'fast'),
                            'not allowed with')):
            code, out, err = self.run_command('list', *args)
            self.assertEqual((2, ''), (code, out))
            self.assertIn(word, err)

    def test_next_with_emulator_threads(self):
        """CPUs for these leave with the server, too."""
        node, = SMALL.nodes
        file.save(dataclasses.replace(CLOUD, servers=(dataclasses.replace(
            SMALL, nodes=(dataclasses.replace(
                node, reserved=frozenset([3])),)),)), self.file)
        _code, out, _err = self.run_command(
            'show', 'vrouter.4', '--next', '--host', 'one')
        self.assertIn('small: 2 pCPUs on node 0', out)

    def test_next_with_ports(self):
        """A server makes room for guests with as many ports as it has."""
        file.save(dataclasses.replace(
            CLOUD, hosts=(small_clouds.host(network=snapshot.HostNetwork(
                vswitch_ports=5, security_rules=0)),),
            aggregates=(), servers=(dataclasses.replace(
                SMALL, nodes=None, ports=(snapshot.Port(id='p', rules=0),)),),
            options={**CLOUD.options, 'nfv_sched': {
                'vswitch_ports_per_node': 8, 'vswitch_physical_ports': 1}},
        ), self.file)
        for ports, fits, leaving in (
                ('1', 2, 'small'), ('2', 1, '')):
            row, = self.table('show', 'vrouter.4', '--next', '--ports', ports)
            self.assertEqual((fits, leaving), (row['Fits'], row['Next']))

    def test_next_for_a_project(self):
        """No server need leave a host that is kept for others."""
        file.save(dataclasses.replace(
            CLOUD, options={**CLOUD.options, 'filter_scheduler': {
                'enabled_filters': [
                    *small_clouds.FILTERS, 'AggregateMultiTenancyIsolation']}},
            servers=(SMALL, dataclasses.replace(
                SMALL, uuid='d' * 32, name='other', host=None, nodes=None,
                project='gamma')),
            aggregates=(snapshot.Aggregate(
                name='ours', hosts=('one',), metadata={
                    'filter_tenant_id': 'beta'}),)), self.file)
        for project, leaving in (('beta', 'small'), ('gamma', '')):
            row, = self.table('show', 'vrouter.4', '--next', '--host', 'one',
                              '--project', project)
            self.assertEqual(leaving, row['Next'], project)

    def test_usage(self):
        for args, text in (
                (('show', 'x'), "no flavor named 'x'"),
                (('list', '--flavor', 'x'), "no flavor named 'x'"),
                (('list', '--host', 'x'), "no host named 'x'"),
                (('list', '--mix', 'x=1'), "no flavor named 'x'"),
                (('list', '--mix', 'fw.6'), "FLAVOR=N needed, not 'fw.6'"),
                (('list', '--mix', 'fw.6=1', '--by', 'host'),
                 '--mix goes with neither --by nor --survive'),
                *((('list', '--image-property', given), text)
                  for given, text in (
                      ('hw_firmware=x', 'no image property'),
                      ('hw_firmware_type=x', 'does not take'),
                      ('x', 'KEY=VALUE')))):
            code, _out, err = self.run_command(*args)
            self.assertEqual(2, code)
            self.assertIn(text, err)

    def test_odd_records(self):
        """One clear error, and no figures."""
        file.save(dataclasses.replace(CLOUD, hosts=(dataclasses.replace(
            small_clouds.host('one'), stats={'num_instances': 'x'}),)),
            self.file)
        for args in (('list',), ('list', '--mix', 'fw.6=1'),
                     ('show', 'fw.6')):
            self.assertEqual(
                (1, '', "error: host one: num_instances of its stats is not a "
                 "number: 'x'\n"), self.run_command(*args))

    def test_placement_unread(self):
        """Counted all the same, with the code that says so."""
        file.save(dataclasses.replace(
            CLOUD, missing=snapshots.missing('Placement: not there'),
            hosts=tuple([dataclasses.replace(host, providers=())
                         for host in CLOUD.hosts])), self.file)
        code, out, err = self.run_command('list', '-f', 'value', '-c', 'Fits')
        self.assertEqual((1, '9\n2\n', 'error: Placement: not there\n'),
                         (code, out, err))

    def test_unread(self):
        self.file = '/nowhere'
        code, out, err = self.run_command('list')
        self.assertEqual((1, ''), (code, out))
        self.assertIn('/nowhere', err)


class APITest(base.CommandTestCase):
    """With an account of the API alone."""

    def setUp(self):
        super().setUp()
        self.read = self.api_shows(small_clouds.by_api(CLOUD))

    def capacity(self, *args):
        return self.run_command('capacity', 'list', '--api', *args)

    def table(self, *args):
        code, out, err = self.capacity(*args, '-f', 'csv')
        self.assertEqual(0, code)
        self.assertEqual(
            'note: no more than this fits: pinning, pages, NUMA nodes, '
            "devices, networks and filters are not looked at, and Nova's "
            'options are not known\n', err)
        return self.csv_rows(out)

    def test_list(self):
        """What Placement says of the whole cloud."""
        self.assertEqual([
            {'Flavor': flavor.name, 'Flavor ID': flavor.id, 'At most': most,
             'Hosts with capacity': 3, 'Error': ''}
            for flavor, most in zip(FLAVORS, (10, 5))], self.table())
        self.assertEqual(('hosts', 'flavors'), self.read.call_args.args[1])

    def test_columns(self):
        code, out, _err = self.capacity('-f', 'csv')
        self.assertEqual(0, code)
        self.assertEqual(
            '"Flavor","Flavor ID","At most","Hosts with capacity","Error"',
            out.splitlines()[0])

    def test_by(self):
        self.assertEqual(
            [('nfv', 6), ('', 4)],
            [(row['Aggregate'], row['At most']) for row in self.table(
                '--flavor', 'v*', '--by', 'aggregate')])
        self.assertEqual(
            [('two', 4), ('six', 4)],
            [(row['Host'], row['At most']) for row in self.table(
                '--flavor', 'v*', '--by', 'host', '--host', '[ts]*')])

    def test_hosts(self):
        for args, most in ((('--az', 'east'), 4), (('--host', 'one'), 2),
                           (('--aggregate', 'nfv'), 6)):
            row, = self.table('--flavor', 'v*', *args)
            self.assertEqual(most, row['At most'])

    def test_placement_unread(self):
        """A host of which nothing is known is no host without room."""
        cloud = small_clouds.by_api(CLOUD)
        one, *others = cloud.hosts
        for missing, hosts, exit_code in (
                ((), ['one', 'two', 'six'], 0),
                ((snapshot.Missing(kind=snapshot.MissingKind.PROVIDERS,
                                   uuids=(one.uuid,)),),
                 ['two', 'six'], 1)):
            self.read.return_value = dataclasses.replace(
                cloud, missing=missing, hosts=(
                    dataclasses.replace(one, providers=()), *others))
            code, out, err = self.capacity(
                '--by', 'host', '--flavor', 'v*', '-f', 'csv')
            self.assertEqual(exit_code, code)
            self.assertEqual(hosts, [
                row['Host'] for row in self.csv_rows(out)])
            for text in missing:
                self.assertIn(f'error: {text}', err)

    def test_refused_options(self):
        for option, *args in (
                ('--empty',), ('--survive', '0'), ('--mix', 'fw.6=1'),
                ('--ports', '0'), ('--network', 'n'),
                ('--like', 's'), ('--image-property', 'a=b')):
            code, out, err = self.capacity(option, *args)
            self.assertEqual((2, ''), (code, out))
            self.assertIn(f'error: {option} does not go with --api: ', err)
            self.assertEqual(1, len(err.splitlines()))
        self.read.assert_not_called()
