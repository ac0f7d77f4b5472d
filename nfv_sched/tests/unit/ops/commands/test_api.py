# SPDX-License-Identifier: Apache-2.0
"""Commands that read a cloud by its API alone."""

import json
import os
import re
import subprocess
import sys

import fixtures
from testtools import matchers

from nfv_sched.tests.unit.limits import neutron_api
from nfv_sched.tests.unit.ops.cloud import nova_api
from nfv_sched.tests.unit.ops.commands import base


class APITestCase(base.CommandTestCase):
    """A test with a cloud that has only its API."""

    def setUp(self):
        super().setUp()
        for name in list(os.environ):
            if name.startswith('OS_'):
                self.useFixture(fixtures.EnvironmentVariable(name))
        # No clouds.yaml of somebody.
        self.useFixture(fixtures.EnvironmentVariable('HOME', self.folder))
        self.api = nova_api.start(self)
        self.nova = self.api.nova
        self.log_in()

    def log_in(self, **kwargs):
        for name, value in self.api.variables(**kwargs).items():
            self.useFixture(fixtures.EnvironmentVariable(name, value))

    def error_line(self, *args, code=1):
        line, = self.refused('', *args, code=code).splitlines()
        self.assertThat(line, matchers.StartsWith('error: '))
        return line.removeprefix('error: ')


class FlavorTest(APITestCase):

    def setUp(self):
        super().setUp()
        self.good = nova_api.flavor('good', hw__cpu_policy='dedicated')
        self.bad = nova_api.flavor('bad', hw__cpu_polcy='dedicated')
        self.old = nova_api.flavor(
            'old', hw__wrs__vswitch_numa_affinity='strict')
        self.nova.flavors = [self.good, self.bad, self.old]

    def lint(self, *args, code):
        return json.loads(self.shown(
            'flavor', 'lint', '--api', *args, '-f', 'json', code=code))

    def test_lint(self):
        self.nova.max_limit = 2
        found = self.lint('--all', code=3)
        self.assertEqual(3, found['flavors_checked'])
        self.assertEqual(
            [('bad', 'hw:cpu_polcy')],
            [(each['flavor'], each['key']) for each in found['findings']
             if each['severity'] == 'error'])
        # At this microversion flavors come with their extra specs, and
        # administrators see those of others.
        (resource, query, microversion), _page = self.nova.requests
        self.assertEqual(
            ('flavors', ['None'], 'compute 2.61'),
            (resource, query['is_public'], microversion))
        # Nothing else is read.
        self.assertEqual(
            ['/identity/v3/auth/tokens'],
            [resource for resource, _query in self.api.requests])
        self.lint('good', code=0)

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
        self.nova.servers = [nova_api.server('vm-1', self.good)]
        path = self.write_file('flavors.json', {'flavors': [self.good]})
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
        self.assertEqual('compute 2.69', version)

    def test_translate(self):
        out = self.shown('flavor', 'translate', 'old', '--api', '-f',
                         'commands')
        self.assertIn('--property nfv:vswitch_numa_affinity=strict', out)

    def test_named_account(self):
        for name in self.api.variables():
            self.useFixture(fixtures.EnvironmentVariable(name))
        variables = self.api.variables()
        path = self.write_file('clouds.yaml', {'clouds': {'east': {
            'region_name': 'RegionOne', 'auth': {
                name.removeprefix('OS_').lower(): value
                for name, value in variables.items()}}}})
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', path))
        self.lint('good', '--os-cloud', 'east', code=0)
        self.assertIn('Cloud west was not found', self.error_line(
            'flavor', 'lint', '--all', '--api', '--os-cloud', 'west'))

    def test_not_read(self):
        lint = 'flavor', 'lint', '--all', '--api'
        self.nova.stop()
        self.assertEqual(
            f'the compute API cannot be read: {self.nova.url} does not answer '
            '(connection refused)', self.error_line(*lint))
        self.log_in(password='wrong')
        self.assertEqual(
            f'the compute API cannot be read: {self.api.url} does not accept '
            'the account (HTTP 401): --os-cloud or the OS_* variables',
            self.error_line(*lint))
        for name in self.api.variables():
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.assertIn('no account for the API, see --os-cloud',
                      self.error_line(*lint))

    def test_client(self):
        """``openstack nfv ...``, with the account that it has."""
        code, out, err = self.openstack()
        self.assertEqual((3, ''), (code, err), out)
        self.assertEqual(3, json.loads(out)['flavors_checked'])
        code, out, err = self.openstack('--os-password', 'wrong')
        self.assertEqual(1, code, out)
        self.assertIn(' does not accept the account (HTTP 401)', err)
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
        out, err = self.exits(3, 'agent', 'rebalance', '--api', '-f', 'json')
        self.assertEqual(
            'note: limits of virtual switches are in nova.conf, and were not '
            'looked at\n', err)
        self.assertEqual(2, len(json.loads(out)['moves']), out)
        self.assertEqual([], self.nova.requests)
        out, _err = self.exits(
            3, 'agent', 'rebalance', '--api', '-f', 'commands')
        first, second = (agent['id'] for agent in self.api.agents[:2])
        self.assertEqual(2, out.count(f'remove router --l3 -- {first} '))
        self.assertEqual(2, out.count(f'add router --l3 -- {second} '))

    def test_hidden(self):
        """Neutron shows agents to administrators; to others it has none."""
        self.api.agents = []
        self.assertIn('the account needs the role admin', self.error_line(
            'agent', 'rebalance', '--api'))

    def test_unreadable(self):
        self.api.faults['ports'] = lambda handler, query, body: handler.reply(
            {}, 403)
        line = self.error_line('agent', 'rebalance', '--api')
        self.assertIn('the network API cannot be read: GET ports: 403', line)
        self.api.stop()
        self.assertIn('the network API cannot be read: ', self.error_line(
            'agent', 'rebalance', '--api'))


class CommandLineTest(APITestCase):

    def test_not_enough(self):
        """What needs hosts says what to do, before anything is asked."""
        for args in (
            ('capacity', 'list'), ('capacity', 'show', 'f'),
            ('flavor', 'explain', 'f'), ('server', 'explain', 's'),
            ('server', 'explain', 's', '--then'), ('host', 'list'),
            ('host', 'show', 'h'), ('host', 'map'), ('cloud', 'audit'),
            ('cloud', 'defrag', '--flavor', 'f'), ('cloud', 'failover'),
            ('host', 'drain', 'h'),
            ('metrics', '--textfile', 'x'),
            ('flavor', 'lint', '--all', '--hosts'),
            ('flavor', 'lint', '--all', '--used', '--remove-host', 'h'),
            ('agent', 'rebalance', '--add-hosts', '1:h'),
            ('agent', 'rebalance', '--limit', 'vnics_per_guest=2'),
        ):
            for option in (('--api',), ('--os-cloud', 'x')):
                line = self.error_line(*args, *option, code=2)
                if 'x' in option and args[1] in ('defrag', 'drain'):
                    self.assertIn('--os-cloud is for --run', line)
                    continue
                for said in ('the API shows no NUMA nodes', '"openstack nfv '
                             'snapshot save FILE"', '--from FILE'):
                    self.assertIn(said, line)
        self.assertEqual([], self.api.requests)

    def test_contradictions(self):
        for args, said in (
            (('--api', '--from', 'x'), 'either --api, or --from'),
            (('--api', '--config-file', 'x'), 'either --api, or --from'),
            (('--os-cloud', 'x', '--from', 'x'),
             'either --os-cloud, or --from'),
        ):
            self.assertIn(said, self.error_line(
                'flavor', 'lint', '--all', *args, code=2))

    def test_help(self):
        for args, shown in ((('flavor', 'lint'), True),
                            (('flavor', 'translate'), True),
                            (('agent', 'rebalance'), True),
                            (('flavor', 'explain'), False),
                            (('capacity', 'list'), False)):
            _code, out, _err = self.run_command('help', *args)
            self.assertEqual(shown, '--api' in out)
            self.assertEqual(shown, '--os-cloud' in out)
        for args in (('host', 'drain'), ('cloud', 'defrag')):
            _code, out, _err = self.run_command('help', *args)
            self.assertIn('[--os-cloud NAME] [--yes]', ' '.join(out.split()))
            self.assertNotIn('--api', out)
