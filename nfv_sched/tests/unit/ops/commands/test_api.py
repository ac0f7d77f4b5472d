# SPDX-License-Identifier: Apache-2.0
"""Commands that read a cloud by its API alone."""

import json
import os
import re
import subprocess
import sys

import fixtures
from testtools import matchers
import yaml

from nfv_sched.tests.unit.limits import neutron_api
from nfv_sched.tests.unit.ops.cloud import nova_api
from nfv_sched.tests.unit.ops.commands import base


class APITestCase(base.CommandTestCase):
    """A test with a cloud that has only its API."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        for name in list(os.environ):
            if name.startswith('OS_'):
                self.useFixture(fixtures.EnvironmentVariable(name))
        # No clouds.yaml of somebody.
        self.useFixture(fixtures.EnvironmentVariable('HOME', self.folder))
        self.api = nova_api.CloudAPI()
        self.api.start()
        self.addCleanup(self.api.stop)
        self.nova = self.api.nova
        self.log_in()

    def log_in(self, **kwargs):
        """Set the variables of the account."""
        for name, value in self.api.variables(**kwargs).items():
            self.useFixture(fixtures.EnvironmentVariable(name, value))

    def refused(self, *args, code=1):
        """The one line that a command ends with."""
        found, out, err = self.run_command(*args)
        self.assertEqual((code, ''), (found, out), err)
        line, = err.splitlines()
        self.assertThat(line, matchers.StartsWith('error: '))
        return line.removeprefix('error: ')


class SilentCellTest(APITestCase):
    """The cell of a host does not answer."""

    def test_named_host(self):
        """It is not said to be wrong: it may be there."""
        self.nova.hypervisors = [nova_api.hypervisor('h1')]
        self.nova.services = [nova_api.service('h1'), {
            'binary': 'nova-compute', 'host': 'h2', 'status': 'UNKNOWN'}]
        for args in (('capacity', 'list', '--host', 'h2'),
                     ('server', 'explain', 'vm')):
            code, out, err = self.run_command(*args, '--api')
            self.assertEqual((1, ''), (code, out))
            wrong, *left_out = err.splitlines()
            self.assertIn('no ', wrong)
            self.assertIn('such as that of h2', ''.join(left_out))


class FlavorTest(APITestCase):

    def setUp(self):
        super().setUp()
        self.good = nova_api.flavor('good', hw__cpu_policy='dedicated')
        self.bad = nova_api.flavor('bad', hw__cpu_polcy='dedicated')
        self.old = nova_api.flavor(
            'old', hw__wrs__vswitch_numa_affinity='strict')
        self.nova.flavors = [self.good, self.bad, self.old]

    def lint(self, *args, code):
        found, out, err = self.run_command(
            'flavor', 'lint', '--api', *args, '-f', 'json')
        self.assertEqual((code, ''), (found, err), out)
        return json.loads(out)

    def test_lint(self):
        found = self.lint('--all', code=3)
        self.assertEqual(3, found['flavors_checked'])
        self.assertEqual(
            [('bad', 'hw:cpu_polcy')],
            [(each['flavor'], each['key']) for each in found['findings']
             if each['severity'] == 'error'])
        self.lint('good', code=0)
        # At this microversion flavors come with their extra specs, and
        # administrators see those of others.
        (resource, query, microversion), _again = self.nova.requests
        self.assertEqual(
            ('flavors', ['None'], 'compute 2.61'),
            (resource, query['is_public'], microversion))

    def test_nothing_else_is_read(self):
        self.lint('--all', code=3)
        self.assertEqual(
            ['/identity/v3/auth/tokens'],
            [resource for resource, _query in self.api.requests])

    def test_pages(self):
        """Each flavor once, however few Nova gives at a time."""
        self.nova.max_limit = 1
        self.assertEqual(3, self.lint('--all', code=3)['flavors_checked'])
        self.assertEqual(3, len(self.nova.requests))

    def test_used(self):
        self.nova.servers = [nova_api.server('vm-1', self.good),
                             nova_api.server('vm-2', self.good)]
        self.nova.servers[0]['flavor']['extra_specs'] = {}
        found = self.lint('good', '--used', code=0)
        self.assertIn(
            'in use by 2 servers, booted when it was different: 1',
            [each['finding'] for each in found['findings']])
        self.assertEqual(['1'], self.nova.requests[2][1]['all_tenants'])

    def test_used_of_file(self):
        """Flavors of a file, and servers of the cloud."""
        self.nova.servers = [nova_api.server('vm-1', self.good)]
        path = os.path.join(self.folder, 'flavors.json')
        with open(path, 'w') as stream:
            json.dump({'flavors': [self.good]}, stream)
        self.lint('--file', path, '--used', code=0)
        self.assertEqual(
            ['services', 'servers'],
            [asked[0] for asked in self.nova.requests])

    def test_used_in_silent_cell(self):
        """Nova leaves out its servers and does not say so, but of hosts."""
        self.nova.services = [nova_api.service('h1'), {
            'binary': 'nova-compute', 'host': 'h2', 'status': 'UNKNOWN'}]
        code, out, err = self.run_command(
            'flavor', 'lint', 'good', '--api', '--used')
        self.assertEqual(
            (1, 'error: 1 host and all servers there are left out: cells do '
             'not answer, such as that of h2\n'), (code, err), out)
        version, = (version for resource, _query, version in
                    self.nova.requests if resource == 'services')
        self.assertEqual('compute 2.100', version)

    def test_translate(self):
        code, out, err = self.run_command(
            'flavor', 'translate', 'old', '--api', '-f', 'commands')
        self.assertEqual((0, ''), (code, err), out)
        self.assertIn('--property nfv:vswitch_numa_affinity=strict', out)

    def test_named_account(self):
        for name in self.api.variables():
            self.useFixture(fixtures.EnvironmentVariable(name))
        variables = self.api.variables()
        path = os.path.join(self.folder, 'clouds.yaml')
        with open(path, 'w') as stream:
            yaml.safe_dump({'clouds': {'east': {
                'region_name': 'RegionOne', 'auth': {
                    name.removeprefix('OS_').lower(): value
                    for name, value in variables.items()}}}}, stream)
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', path))
        self.lint('good', '--os-cloud', 'east', code=0)
        self.assertIn('Cloud west was not found', self.refused(
            'flavor', 'lint', '--all', '--api', '--os-cloud', 'west'))

    def test_answers(self):
        """What is no list of flavors is one error."""
        for answer, said in (
            ((403, {}), 'GET /flavors/detail: 403 Forbidden; the account '
             'needs a role'),
            ((406, {}), 'microversion 2.61 is needed'),
            ((500, {}), '500 Internal Server Error'),
            ((200, b'<html>'), 'malformed flavors'),
            ((200, []), 'malformed flavors'),
            ((200, {'flavors': [{'id': 'x'}]}), 'malformed flavors'),
            ((200, {'flavors': [{**self.good, 'vcpus': 'x'}]}),
             'malformed flavors'),
            ((200, {'flavors': [{
                key: value for key, value in self.good.items()
                if key != 'extra_specs'}]}), 'no extra specs'),
        ):
            self.nova.answers['flavors'] = answer
            line = self.refused('flavor', 'lint', '--all', '--api')
            self.assertIn('the compute API ', line)
            self.assertIn(said, line)
            # A role is told of only where it is missing.
            self.assertEqual('403' in said, 'role' in line)

    def test_unreachable(self):
        self.nova.stop()
        self.assertEqual(
            f'the compute API cannot be read: {self.nova.url} does not answer '
            '(connection refused)', self.refused(
                'flavor', 'lint', '--all', '--api'))

    def test_wrong_password(self):
        self.log_in(password='wrong')
        line = self.refused('flavor', 'lint', '--all', '--api')
        self.assertEqual(
            f'the compute API cannot be read: {self.api.url} does not accept '
            'the account (HTTP 401): --os-cloud or the OS_* variables', line)

    def test_no_account(self):
        for name in self.api.variables():
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.assertIn('no account for the API, see --os-cloud', self.refused(
            'flavor', 'lint', '--all', '--api'))

    def test_client(self):
        """``openstack nfv ...``, with the account that it has."""
        code, out, err = self.openstack()
        self.assertEqual((3, ''), (code, err), out)
        self.assertEqual(3, json.loads(out)['flavors_checked'])
        refused = (1, 'error: the compute API cannot be read: '
                   f'{self.api.url} does not accept the account (HTTP 401): '
                   '--os-cloud or the OS_* variables\n')
        code, out, err = self.openstack('--os-password', 'wrong')
        self.assertEqual(refused, (code, err), out)
        self.log_in(password='wrong')
        code, out, err = self.openstack()
        self.assertEqual(refused, (code, err), out)
        self.useFixture(fixtures.EnvironmentVariable('OS_AUTH_URL'))
        code, out, err = self.openstack()
        self.assertEqual(1, code, out)
        self.assertIn('error: no account for the API, see --os-cloud', err)

    def openstack(self, *options):
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-m', 'openstackclient.shell',
             *options, 'nfv', 'flavor', 'lint', '--all', '--api', '-f',
             'json'],
            capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL)
        self.assertNotIn('Traceback', done.stderr)
        # On a busy machine it takes so long that it shows its progress.
        err = re.sub(r'(?m)^\d+ of \d+ flavors done\n', '', done.stderr)
        return done.returncode, done.stdout, err


class RebalanceTest(APITestCase):

    def setUp(self):
        super().setUp()
        self.routers = [neutron_api.router(f'r{number}')
                        for number in range(6)]
        self.api.agents = [
            neutron_api.agent('L3 agent', 'one', agent_mode='legacy'),
            neutron_api.agent('L3 agent', 'two', agent_mode='legacy'),
            neutron_api.agent(
                'Open vSwitch agent', 'one', bridge_mappings={}),
            neutron_api.agent(
                'Open vSwitch agent', 'two', bridge_mappings={})]
        self.api.served = {self.api.agents[0]['id']: self.routers}

    def test_plan(self):
        """Neutron alone is asked, and what is not known is told."""
        code, out, err = self.run_command(
            'agent', 'rebalance', '--api', '-f', 'json')
        self.assertEqual(3, code, err)
        self.assertEqual(
            'note: limits of virtual switches are in nova.conf, and were not '
            'looked at\n', err)
        self.assertEqual(2, len(json.loads(out)['moves']), out)
        self.assertEqual([], self.nova.requests)
        code, out, _err = self.run_command(
            'agent', 'rebalance', '--api', '-f', 'commands')
        self.assertEqual(3, code)
        first, second = (agent['id'] for agent in self.api.agents[:2])
        self.assertEqual(2, out.count(f'remove router --l3 -- {first} '))
        self.assertEqual(2, out.count(f'add router --l3 -- {second} '))

    def test_nothing_to_move(self):
        code, out, err = self.run_command(
            'agent', 'rebalance', '--api', '--threshold', '6')
        self.assertEqual((0, ''), (code, err))
        self.assertIn('Routers on 2 agents: 6-0; nothing to move.', out)

    def test_hidden(self):
        """Neutron shows agents to administrators; to others it has none."""
        self.api.agents = []
        self.assertIn('the account needs the role admin', self.refused(
            'agent', 'rebalance', '--api'))

    def test_unreadable(self):
        self.api.faults['ports'] = lambda handler, query, body: handler.reply(
            {}, 403)
        line = self.refused('agent', 'rebalance', '--api')
        self.assertIn('the network API cannot be read: GET ports: 403', line)
        self.api.stop()
        self.assertIn('the network API cannot be read: ', self.refused(
            'agent', 'rebalance', '--api'))


class PlacementTestCase(APITestCase):
    """A test with two hosts of which Placement knows."""

    def setUp(self):
        super().setUp()
        pinned = nova_api.flavor('pinned', hw__cpu_policy='dedicated')
        self.nova.flavors = [pinned]
        for number, (host, used) in enumerate((('h1', 4), ('h2', 12))):
            uuid = f'{number:08d}-0000-4000-8000-000000000000'
            self.nova.hypervisors.append(nova_api.hypervisor(host, id=uuid))
            self.nova.services.append(nova_api.service(host))
            self.api.placement.add(
                uuid, PCPU=9, MEMORY_MB=20001, DISK_GB=2001,
                allocations={f'{number}': {'PCPU': used}})


class PlacementTest(PlacementTestCase):
    """What Placement alone says, from answers of Nova and Placement."""

    def test_capacity(self):
        code, out, err = self.run_command(
            'capacity', 'list', '--api', '--by', 'host', '-f', 'json')
        self.assertEqual(0, code, err)
        self.assertIn('note: no more than this fits', err)
        self.assertEqual(
            [('h1', 3), ('h2', 1)],
            [(row['host'], row['at_most'])
             for row in json.loads(out)['capacities']])

    def test_explain(self):
        self.nova.flavors[0]['vcpus'] = 8
        code, out, err = self.run_command(
            'flavor', 'explain', 'pinned', '--api')
        self.assertEqual((0, ''), (code, err))
        self.assertIn('Placement returns 1 host;', out)
        self.assertIn('PCPU 8 needed, 4 free', out)
        self.nova.flavors[0]['ram'] = 10 ** 6
        code, out, err = self.run_command(
            'flavor', 'explain', 'pinned', '--api')
        self.assertEqual((3, ''), (code, err))

    def test_image(self):
        """By its name, from Glance, for what Placement needs of it."""
        image = {'id': 'e6b1f4c5-7f8f-4f5a-9ad3-5e53d0a6a2f1', 'name': 'fw-1',
                 'trait:CUSTOM_FAST': 'required', 'hw_odd': 'x', 'size': 7,
                 'visibility': 'public'}
        self.api.glance.images = [image]
        for name in ('fw-1', image['id']):
            code, out, err = self.run_command(
                'flavor', 'explain', 'pinned', '--api', '--image', name)
            self.assertEqual((3, ''), (code, err))
            self.assertIn('CUSTOM_FAST', out)
        self.assertEqual(
            "no image named 'fw-2'; did you mean fw-1?", self.refused(
                'flavor', 'explain', 'pinned', '--api', '--image', 'fw-2',
                code=2))
        self.api.glance.images = [image, {**image, 'id': 'other'}]
        self.assertEqual(
            f"several images named 'fw-1': {image['id']}, other", self.refused(
                'flavor', 'explain', 'pinned', '--api', '--image', 'fw-1',
                code=2))
        self.api.glance.status = 403
        self.assertIn('the image API cannot be read: ', self.refused(
            'flavor', 'explain', 'pinned', '--api', '--image', 'fw-1'))

    def test_tenant(self):
        """Who may not list hosts gets a line, not a figure."""
        self.api.placement.answers = {'resource_providers': (403, {})}
        line = self.refused('capacity', 'list', '--api')
        self.assertIn('such as admin', line)


class HostTest(PlacementTestCase):
    """A host with its servers, as far as the API shows them."""

    def setUp(self):
        super().setUp()
        self.nova.aggregates = [nova_api.aggregate(1, 'dpdk', ['h1'])]
        self.nova.servers = [
            nova_api.placed_server(name, self.nova.flavors[0], host)
            for name, host in (('fw', 'h1'), ('web', 'h1'), ('dns', 'h2'))]
        self.nova.topologies['id-of-fw'] = nova_api.topology(
            nova_api.numa_node(1, {0: 8, 1: 9, 2: 10}, [3], 2048),
            page_size=1048576)

    LIMITS = ('NUMA nodes, CPUs, pages and PCI devices of the host, and which '
              'of them are free, are not known: the API does not show them')

    def show(self, *args, code=0, host='h1'):
        found, out, err = self.run_command(
            'host', 'show', host, '--api', '-f', 'json', *args)
        self.assertEqual(code, found, err)
        return json.loads(out), err

    def test_table(self):
        code, out, err = self.run_command('host', 'show', 'h1', '--api')
        self.assertEqual((0, ''), (code, err))
        self.assertEqual([
            ['Field', 'Value'], ['Host', 'h1'], ['State', 'up'],
            ['Availability zone', 'nova'], ['Aggregates', 'dpdk'],
            ['pCPUs', 'not known'], ['Memory MiB', '1024 of 4096 used'],
            ['Ports', 'not known'], ['DHCP servers', 'not known'],
            ['Routers', 'not known'], ['CPUs not for servers', 'not known'],
            ['Notes', self.LIMITS],
            ['Servers', 'fw: 4 vCPUs, 2048 MiB, node 1: 3 pinned on CPU 8-10, '
             '1 shared, 1G pages'],
            ['web: 4 vCPUs, 2048 MiB, floats over the host'],
        ], base.cells(out))
        code, out, err = self.run_command(
            'host', 'show', 'h1', '--api', '-f', 'shell')
        self.assertEqual((0, ''), (code, err))
        self.assertIn('\npcpus=None\n', out)
        self.assertIn('\nnuma_nodes=None\n', out)

    def test_json(self):
        found, err = self.show()
        self.assertEqual('', err)
        self.assertEqual(dict.fromkeys((
            'pcpus', 'pcpus_used', 'largest_fit', 'wholeness', 'network',
            'small_pages', 'cpus_not_for_servers', 'numa_nodes',
            'devices_without_node')), {
                key: value for key, value in found.items() if value is None
                and key not in ('cell', 'disabled_reason')})
        self.assertEqual([self.LIMITS], found['notes'])
        self.assertEqual({'web': [], 'fw': [{
            'node': 1, 'pinned_vcpus': 3, 'pins': [
                {'vcpu': 0, 'cpu': 8}, {'vcpu': 1, 'cpu': 9},
                {'vcpu': 2, 'cpu': 10}],
            'shared_vcpus': 1, 'memory_mib': 2048,
            'page_size_kib': 1048576}]}, {
                each['server']: each['numa_nodes']
                for each in found['servers']})
        self.assertEqual({None}, {
            each['remote'] for each in found['servers']})

    def test_requests(self):
        """One for each server of the host, and none to Placement."""
        self.api.placement.stop()
        self.show()
        self.assertEqual(['compute 2.78'] * 2, [
            version for resource, _query, version in self.nova.requests
            if resource == 'topologies'])

    def test_hidden(self):
        """A note with the number, and no error."""
        self.nova.topologies = {
            'id-of-fw': (404, {}), 'id-of-web': (404, {})}
        found, err = self.show()
        self.assertEqual('', err)
        self.assertEqual(
            {'NUMA topology of 2 servers not known, such as of id-of-fw: 404 '
             'Not Found; deleted meanwhile, perhaps', self.LIMITS},
            set(found['notes']))
        self.assertEqual([None, None], [
            each['numa_nodes'] for each in found['servers']])
        self.assertIn('fw: 4 vCPUs, 2048 MiB, NUMA nodes not known',
                      self.run_command('host', 'show', 'h1', '--api')[1])

    def test_malformed(self):
        """It is named, and all else is shown."""
        self.nova.topologies['id-of-fw'] = (200, {})
        found, err = self.show(code=1)
        self.assertEqual(
            "error: Server id-of-fw is left out, its record is malformed: "
            "KeyError: 'nodes'\n", err)
        self.assertEqual(
            ['web'], [each['server'] for each in found['servers']])

    def test_unknown(self):
        self.assertEqual("no host named 'h3'", self.refused(
            'host', 'show', 'h3', '--api', code=2))
        self.nova.services.append({
            'binary': 'nova-compute', 'host': 'h3', 'status': 'UNKNOWN'})
        code, out, err = self.run_command('host', 'show', 'h3', '--api')
        self.assertEqual((1, ''), (code, out))
        self.assertIn('such as that of h3', err)
        self.assertEqual([], [
            resource for resource, *_others in self.nova.requests
            if resource in ('servers', 'topologies')])

    def test_refused(self):
        for args, said in (
                (('--facts', self.folder), '--facts: the API does not show'),
                (('--add-hosts', '1:h1'), '--add-hosts, --remove-host and'),
                (('--remove-host', 'h2'), '--add-hosts, --remove-host and')):
            self.assertIn(said, self.refused(
                'host', 'show', 'h1', '--api', *args, code=2))
        self.assertEqual([], self.api.requests)


class QuotaTest(PlacementTestCase):
    """What the quota of a project allows, by the API."""

    ID = 'a' * 32
    #: It could be a formula, a URL, another column or a line.
    NAME = '=1+1|x,"é/../..\n?a=b'

    def setUp(self):
        super().setUp()
        self.api.projects = [
            {'id': self.ID, 'name': self.NAME},
            {'id': 'b' * 32, 'name': 'twin'},
            {'id': 'c' * 32, 'name': 'twin'}]
        self.nova.quota_sets[self.ID] = nova_api.quota_set(
            instances=(10, 3), cores=(20, 9), ram=(-1, 9000))

    def rows(self, *args, code=0):
        found, out, err = self.run_command(
            'capacity', 'list', '--api', *args, '-f', 'csv')
        self.assertEqual(code, found, err)
        return self.csv_rows(out), err.splitlines()[1:]

    def test_allows(self):
        """By name and by ID, the least that any resource allows."""
        for project in (self.NAME, self.ID):
            rows, errors = self.rows('--project', project)
            self.assertEqual([], errors)
            self.assertEqual([{
                'Flavor': 'pinned', 'Flavor ID': 'id-of-pinned', 'At most': 4,
                'Quota allows': 2, 'Quota instances used': 3,
                'Quota instances limit': 10, 'Quota instances needed': 1,
                'Quota cores used': 9, 'Quota cores limit': 20,
                'Quota cores needed': 4, 'Quota ram MiB used': 9000,
                'Quota ram MiB limit': '', 'Quota ram MiB needed': 2048,
                'Hosts with capacity': 2, 'Error': ''}], rows)
            table = self.run_command('capacity', 'list', '--api', '--project',
                                     project)[1]
            self.assertIn('cores 9/20', table)
        self.nova.quota_sets[self.ID] = nova_api.quota_set(
            instances=(5, 3), cores=(20, 9), ram=(9000, 9500))
        row, = self.rows('--project', self.ID)[0]
        self.assertEqual((0, 9500, 9000), (
            row['Quota allows'], row['Quota ram MiB used'],
            row['Quota ram MiB limit']))
        self.nova.quota_sets[self.ID] = nova_api.quota_set(
            instances=(5, 3), cores=(18, 9), ram=(-1, 0))
        row, = self.rows('--project', self.ID)[0]
        self.assertEqual((2, 3, 5, 9, 18), (
            row['Quota allows'], row['Quota instances used'],
            row['Quota instances limit'], row['Quota cores used'],
            row['Quota cores limit']))
        self.nova.quota_sets[self.ID] = nova_api.quota_set(
            instances=(-1, 3), cores=(-1, 9), ram=(-1, 0))
        row, = self.rows('--project', self.ID)[0]
        self.assertEqual(('', 3, ''), (
            row['Quota allows'], row['Quota instances used'],
            row['Quota instances limit']))

    def test_document(self):
        code, out, err = self.run_command(
            'capacity', 'list', '--api', '--project', self.NAME, '-f', 'json',
            '--by', 'host')
        self.assertEqual(0, code, err)
        self.assertEqual([{'allows': 2, 'resources': [
            {'resource': 'instances', 'limit': 10, 'used': 3, 'needed': 1},
            {'resource': 'cores', 'limit': 20, 'used': 9, 'needed': 4},
            {'resource': 'ram', 'limit': None, 'used': 9000, 'needed': 2048},
        ]}] * 2, [row['quota'] for row in json.loads(out)['capacities']])

    def test_unknown_projects(self):
        for name, message in (
                ('twins', "no project named 'twins'; did you mean twin?"),
                ('twin', "several projects named 'twin': " + ', '.join(
                    (32 * 'b', 32 * 'c'))),
                ('d' * 32, f"no project named {'d' * 32!r}")):
            self.assertIn(message, self.refused(
                'capacity', 'list', '--api', '--project', name, code=2))

    def test_keystone_refuses(self):
        """An ID is enough."""
        self.api.faults['identity/v3/projects'] = None
        self.assertEqual([2], [row['Quota allows'] for row in self.rows(
            '--project', self.ID)[0]])
        self.assertThat(self.refused(
            'capacity', 'list', '--api', '--project', 'telco'),
            matchers.MatchesRegex(
                '--project telco: Keystone cannot be read: .*404.*; the ID '
                'of the project is enough'))

    def test_quota_unread(self):
        """All else is shown."""
        for status, answer, message in (
                (403, {}, 'GET /os-quota-sets/a+/detail: 403'),
                (200, {'quota_set': {}}, 'malformed answer: KeyError'),
                (200, {'quota_set': {'cores': 3}}, 'malformed answer: '),
                (200, b'{', 'malformed answer: ')):
            self.nova.answers['os-quota-sets'] = (status, answer)
            (row,), (error,) = self.rows('--project', self.ID, code=1)
            self.assertEqual((4, ''), (row['At most'], row['Quota allows']))
            self.assertThat(error, matchers.MatchesRegex(
                'error: the quota of project a+ cannot be read: ' + message))

    def test_path(self):
        """No name leads elsewhere."""
        self.api.projects = [{'id': '../x?y', 'name': 'odd'}]
        self.nova.quota_sets['../x?y'] = self.nova.quota_sets[self.ID]
        self.assertEqual([2], [row['Quota allows'] for row in self.rows(
            '--project', 'odd')[0]])
        self.api.projects = [{'id': None, 'name': 'odd'}]
        self.assertIn(
            'Keystone cannot be read: malformed answer', self.refused(
                'capacity', 'list', '--api', '--project', 'odd'))


class CommandLineTest(APITestCase):

    def test_not_enough(self):
        """What needs NUMA nodes says so, before anything is asked."""
        for args in (
            ('capacity', 'show', 'f'), ('host', 'list'), ('cloud', 'audit',),
            ('cloud', 'defrag', '--flavor', 'f'), ('cloud', 'failover'),
            ('host', 'drain', 'h'),
            ('metrics', '--textfile', 'x'),
            ('flavor', 'lint', '--all', '--hosts'),
        ):
            for option in (('--api',), ('--os-cloud', 'x')):
                line = self.refused(*args, *option, code=2)
                if 'x' in option and args[1] in ('defrag', 'drain'):
                    self.assertIn('--os-cloud is for --run', line)
                    continue
                self.assertIn('the API shows no NUMA nodes', line)
                self.assertIn('"host show" shows what the API has', line)
                self.assertIn('--from FILE', line)
        self.assertEqual([], self.api.requests)

    def test_contradictions(self):
        for args, said in (
            (('--api', '--from', 'x'), 'either --api, or --from'),
            (('--api', '--config-file', 'x'), 'either --api, or --from'),
            (('--os-cloud', 'x', '--from', 'x'),
             'either --os-cloud, or --from'),
        ):
            self.assertIn(said, self.refused(
                'flavor', 'lint', '--all', *args, code=2))

    def test_help(self):
        """The option is shown where it can be used."""
        for args, shown in ((('flavor', 'lint'), True),
                            (('flavor', 'translate'), True),
                            (('agent', 'rebalance'), True),
                            (('flavor', 'explain'), True),
                            (('server', 'explain'), True),
                            (('capacity', 'list'), True),
                            (('host', 'show'), True),
                            (('capacity', 'show'), False)):
            _code, out, _err = self.run_command(*args, '--help')
            self.assertEqual(shown, '--api' in out)
            self.assertEqual(shown, '--os-cloud' in out)
        for args in (('host', 'drain'), ('cloud', 'defrag')):
            _code, out, _err = self.run_command(*args, '--help')
            self.assertIn('[--os-cloud NAME] [--yes]', ' '.join(out.split()))
            self.assertNotIn('--api', out)
