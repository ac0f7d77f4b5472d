# SPDX-License-Identifier: Apache-2.0
"""Audits and action plans of Watcher.

API, decision engine, data model, planner and applier are Watcher's own, in
this process, with its own emulators of Nova and Placement.  Nothing imports
Nova: ``nfv-sched`` is another process, as it always is for Watcher.
"""

from importlib import metadata
from importlib import util
import pathlib
import re
import subprocess
import sysconfig
import time

import fixtures
from keystoneauth1 import loading
from oslo_config import cfg
import testtools

import nfv_sched
from nfv_sched.ops.cloud import file
from nfv_sched.ops.run import values
from nfv_sched.tests.unit.limits import neutron_api

WATCHER = util.find_spec('watcher') is not None
if WATCHER:
    from watcher.decision_engine.loading import default as watcher_loading
    from watcher import objects
    from watcher.tests.functional import base as watcher_base
    from watcher.tests.functional import topology

    from nfv_sched.ops.serve.watcher import agents
    from nfv_sched.ops.serve.watcher import defrag
    from nfv_sched.ops.serve.watcher import drain
    from nfv_sched.ops.serve.watcher import planner
    from nfv_sched.ops.serve.watcher import rearrange

#: Seconds that an audit or an action plan may take.
_TIMEOUT = 240
_COMMAND = pathlib.Path(sysconfig.get_path('scripts'), 'nfv-sched')


def _topology(cloud):
    return topology.ComputeTopology(
        compute_nodes=[topology.ComputeNode(hostname=host.name, uuid=host.uuid)
                       for host in cloud.hosts],
        instances=[topology.Instance(
            uuid=server.uuid, name=server.name, host=server.host,
            state=server.state, project_id=topology.DEFAULT_PROJECT_ID)
            for server in cloud.servers if server.host])


@testtools.skipUnless(WATCHER, 'python-watcher is not installed')
class StrategyTestCase(watcher_base.WatcherFunctionalTestCase if WATCHER
                       else testtools.TestCase):
    COMPUTE_TOPOLOGY = topology.ComputeTopology() if WATCHER else None
    #: Class of the strategy.
    STRATEGY: type
    #: Name of an example.
    EXAMPLE: str

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = fixtures.TempDir()
        folder.setUp()
        cls.addClassCleanup(folder.cleanUp)
        cls.path = f'{folder.path}/cloud.json.gz'
        subprocess.run(
            [_COMMAND, 'simulation', 'run', '--example', cls.EXAMPLE,
             '--save', cls.path],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.cloud = file.load(cls.path)
        cls.uuids = {server.name: server.uuid for server in cls.cloud.servers}

    def setUp(self):
        super().setUp()
        self.load_topology(_topology(self.cloud))
        self.configure(snapshot=self.path)

    def configure(self, **options):
        group = f'watcher_strategies.{self.STRATEGY.NAME}'
        cfg.CONF.register_opts(self.STRATEGY.get_config_opts(), group)
        self.flags(group=group, **options)

    def post(self, scope=None, **parameters):
        audit = {'parameters': parameters, 'audit_type': 'ONESHOT'}
        chosen = {'goal': self.STRATEGY.GOAL, 'strategy': self.STRATEGY.NAME}
        if scope is None:
            return self.admin_api.post('/audits', {**audit, **chosen})
        answer = self.admin_api.post('/audit_templates', {
            'name': self.id(), 'scope': [{'compute': scope}], **chosen})
        self.assertEqual(201, answer.status_code, answer.text)
        return self.admin_api.post('/audits', {
            **audit, 'audit_template_uuid': answer.json()['uuid']})

    def audit(self, scope=None, **parameters):
        answer = self.post(scope, **parameters)
        self.assertEqual(201, answer.status_code, answer.text)
        self.assertEqual('SUCCEEDED', self.end_of(answer.json()['uuid']))
        plan, = self.admin_api.get(
            f'/action_plans/detail?audit_uuid={answer.json()["uuid"]}',
        ).json()['action_plans']
        return plan, self.actions(plan)

    def actions(self, plan):
        """Return the actions of a plan, each after the one before it."""
        by_parents = {
            tuple(action['parents']): action for action in self.admin_api.get(
                f'/actions/detail?action_plan_uuid={plan["uuid"]}',
            ).json()['actions']}
        actions, parents = [], ()
        while parents in by_parents:
            actions.append(by_parents.pop(parents))
            parents = (actions[-1]['uuid'],)
        self.assertEqual({}, by_parents)
        return actions

    def failed_audit(self, scope=None, **parameters):
        answer = self.post(scope, **parameters)
        self.assertEqual(201, answer.status_code, answer.text)
        self.assertEqual('FAILED', self.end_of(answer.json()['uuid']))
        return self.env.stdlog.logger.output

    def end_of(self, audit):
        end = time.monotonic() + _TIMEOUT
        while True:
            state = self.admin_api.get(f'/audits/{audit}').json()['state']
            if state not in ('PENDING', 'ONGOING'):
                return state
            if time.monotonic() > end:
                self.fail(self.env.stdlog.logger.output)
            time.sleep(0.1)

    def execute(self, plan):
        answer = self.admin_api.patch(f'/action_plans/{plan["uuid"]}', [
            {'op': 'replace', 'path': '/state', 'value': 'PENDING'}])
        self.assertEqual(200, answer.status_code, answer.text)
        self._wait_for_action_plan_state(
            plan['uuid'], 'SUCCEEDED', timeout=_TIMEOUT)
        return self.actions(plan)

    def moved(self, actions):
        return [(parameters['resource_name'], parameters['migration_type'],
                 parameters['destination_node'])
                for parameters in (
                    action['input_parameters'] for action in actions
                    if action['action_type'] == 'migrate')]

    def host_of(self, server):
        return self.env.nova_fixture.nova_emulator.servers[
            self.uuids[server]]['OS-EXT-SRV-ATTR:host']


@testtools.skipUnless(WATCHER, 'python-watcher is not installed')
class PageTest(testtools.TestCase):
    """The page about Watcher has what there is."""

    def test_page(self):
        root = pathlib.Path(nfv_sched.__file__).parents[1]
        text = (root / 'doc/source/tasks/watcher.rst').read_text()
        sections = re.findall(r'\[watcher_strategies\.(\w+)\]', text)
        strategies = [
            each.load() for each in metadata.entry_points(
                group='watcher_strategies') if each.name.startswith('nfv_')]
        self.assertEqual({each.NAME for each in strategies}, set(sections))
        for strategy in strategies:
            for name in (strategy.NAME, strategy.GOAL,
                         *strategy.get_schema()['properties'],
                         *(option.name for option
                           in strategy.get_config_opts())):
                self.assertIn(f'``{name}``', text)
        self.assertIn(f'``{planner.NAME}``', text)


class DrainTest(StrategyTestCase):

    STRATEGY = drain.NFVDrain if WATCHER else None
    EXAMPLE = 'telco'
    MOVES = [('fw-1', 'live', 'compute-3'), ('pgw-1', 'live', 'compute-3'),
             ('dns-3', 'live', 'compute-3'), ('pgw-2', 'live', 'compute-2')]

    def test_drain(self):
        """The applier carries out what was planned, in this order."""
        plan, actions = self.audit(maintenance_node='compute-1')
        self.assertEqual(
            ['nop', 'change_nova_service_state', *['nop'] * 3,
             *['migrate'] * 4],
            [action['action_type'] for action in actions])
        detached = [action['input_parameters']['message']
                    for action in actions[2:5]]
        self.assertEqual(values.VFS_DETACHED, detached[-1])
        for name, text in zip(('pgw-1', 'pgw-2'), sorted(detached[:2])):
            self.assertTrue(text.startswith(f'{name} '), text)
        self.assertEqual(
            f'fw-2 ({self.uuids["fw-2"]}) stays on compute-1',
            actions[0]['input_parameters']['message'])
        self.assertEqual(self.MOVES, self.moved(actions))
        actions = self.execute(plan)
        self.assertEqual({'SUCCEEDED'}, {each['state'] for each in actions})
        for server, _kind, destination in self.MOVES:
            self.assertEqual(destination, self.host_of(server))
        self.assertEqual('compute-1', self.host_of('fw-2'))
        services = self.env.nova_fixture.nova_emulator.services.values()
        self.assertEqual(
            [('compute-1', 'watcher_maintaining')],
            [(each['host'], each['disabled_reason']) for each in services
             if each['status'] == 'disabled'])

    def test_some_servers(self):
        """The host stays enabled."""
        _plan, actions = self.audit(
            maintenance_node='compute-1', servers=[self.uuids['pgw-1']],
            cold_for_vfs=True)
        self.assertEqual(['migrate'],
                         [action['action_type'] for action in actions])
        self.assertEqual(['cold'], [each[1] for each in self.moved(actions)])

    def test_obstacles(self):
        """Servers that Watcher must not or cannot move are named."""
        cloud = _topology(self.cloud)
        for server in cloud.instances:
            if server.name == 'dns-3':
                server.state = 'paused'
        cloud.aggregates = [topology.Aggregate(
            id=1, name='a', hosts=['compute-1', 'compute-3'])]
        self.load_topology(cloud)
        _plan, actions = self.audit(
            [{'host_aggregates': [{'name': 'a'}]}, {'exclude': [
                {'instances': [{'uuid': self.uuids['pgw-1']}]}]}],
            maintenance_node='compute-1')
        self.assertEqual([('fw-1', 'live', 'compute-3')], self.moved(actions))
        self.assertEqual([
            f'{name} ({self.uuids[name]}) stays on compute-1{why}'
            for name, why in (
                ('fw-2', ''),
                ('pgw-1', ': the scope of the audit excludes it'),
                ('dns-3', ': it is paused, and Watcher moves only active '
                 'servers live'),
                ('pgw-2', ': compute-2 is not in the scope of the audit, or '
                 "not in Watcher's data model"))],
            [action['input_parameters']['message'] for action in actions
             if action['action_type'] == 'nop'])

    def test_unknown_host(self):
        self.assertIn(
            "PlanningError: compute-9 is not in the scope of the audit, or "
            "not in Watcher's data model\n",
            self.failed_audit(maintenance_node='compute-9'))

    def test_parameters(self):
        for parameters in ({}, {'maintenance_node': 1},
                           {'maintenance_node': 'compute-1', 'colour': 'red'},
                           {'maintenance_node': 'compute-1', 'servers': 'x'}):
            self.assertEqual(
                400, self.post(**parameters).status_code, parameters)

    def test_unreadable(self):
        """What the command says is in the log."""
        self.configure(snapshot='/nonexistent')
        self.assertIn(
            'PlanningError: nfv-sched host drain: error: /nonexistent: No '
            'such file or directory\n',
            self.failed_audit(maintenance_node='compute-1'))
        self.configure(command=['/nonexistent/nfv-sched'])
        self.assertIn(
            'PlanningError: /nonexistent/nfv-sched: No such file or '
            'directory\n', self.failed_audit(maintenance_node='compute-1'))

    def test_pauses(self):
        """Watcher waits as long as "plan run" before moves that depend."""
        names = [server.name for server in self.cloud.servers
                 if server.host == 'compute-1']
        moves = [values.Move(
            number=number, kind=kind, id=self.uuids[name], name=name,
            source=source, destination=destination,
            related=tuple(self.uuids[each] for each in related))
            for number, (kind, name, source, destination, related) in
            enumerate([
                ('live', names[0], 'h1', 'h2', []),
                ('cold', names[1], 'h3', 'h2', []),
                ('cold', names[2], 'h4', 'h1', []),
                ('live', names[3], 'h1', 'h2', [names[1]]),
                ('live', names[4], 'h5', 'h1', [names[0]]),
                ('cold', names[1], 'h2', 'h3', [names[3]]),
            ], 1)]
        strategy = watcher_loading.DefaultStrategyLoader().load('nfv_drain')
        strategy.add_moves(moves)
        self.assertEqual(
            [names[0], names[1], values.FREED_SECONDS, names[2], names[3],
             values.SYNCED_SECONDS, names[4], names[1]],
            [parameters.get('duration') or parameters['resource_name']
             for parameters in (action['input_parameters']
                                for action in strategy.solution.actions)])
        # Watcher's own planner would put all of a type together.
        audit = self.post(maintenance_node='compute-9').json()['uuid']
        self.end_of(audit)
        plan = watcher_loading.DefaultPlannerLoader().load(
            strategy.planner).schedule(
                self.context,
                objects.Audit.get_by_uuid(self.context, audit).id,
                strategy.solution)
        self.assertEqual(strategy.solution.actions, [
            {'action_type': action['action_type'],
             'input_parameters': action['input_parameters']}
            for action in self.actions({'uuid': plan.uuid})])


class DefragTest(StrategyTestCase):

    STRATEGY = defrag.NFVDefrag if WATCHER else None
    EXAMPLE = 'fragmented'
    MOVES = [('c-4', 'live', 'compute-1'), ('c-6', 'live', 'compute-1'),
             ('c-5', 'live', 'compute-2')]

    def test_defrag(self):
        plan, actions = self.audit(flavor='vrouter.6', count=2)
        self.assertEqual(['migrate'] * 3,
                         [action['action_type'] for action in actions])
        self.assertEqual(self.MOVES, self.moved(actions))
        self.assertEqual(
            {'servers_wanted': 2, 'servers_before': 0, 'servers_after': 2},
            {each['name']: each['value']
             for each in plan['efficacy_indicators']})
        self.assertEqual(
            [('servers_ratio', 100.0)],
            [(each['name'], each['value'])
             for each in plan['global_efficacy']])
        self.execute(plan)
        for server, _kind, destination in self.MOVES:
            self.assertEqual(destination, self.host_of(server))

    def test_too_many(self):
        """As many as possible; an action says what is missing."""
        plan, actions = self.audit(
            flavor='vrouter.6', count=2, max_moves=2, avoid=['c-9*', 'x'])
        self.assertEqual(['nop', 'migrate'],
                         [action['action_type'] for action in actions])
        self.assertEqual('1 more servers of vrouter.6 fit, not 2',
                         actions[0]['input_parameters']['message'])
        self.assertEqual(50.0, plan['global_efficacy'][0]['value'])

    def test_nothing_to_do(self):
        plan, actions = self.audit(flavor='fw.2')
        self.assertEqual(('SUCCEEDED', []), (plan['state'], actions))

    def test_all_or_nothing(self):
        self.assertIn(
            f'PlanningError: c-5 ({self.uuids["c-5"]}) cannot be moved: the '
            'scope of the audit excludes it\n',
            self.failed_audit(
                [{'exclude': [{'instances': [{'uuid': self.uuids['c-5']}]}]}],
                flavor='vrouter.6', count=2))

    def test_options(self):
        """They reach the command, which says what is wrong with them."""
        for parameters, text in (
                ({'flavor': '--help'}, "no flavor named '--help'"),
                ({'flavor': 'fw.2', 'like': 'nobody'},
                 "no server named 'nobody'"),
                ({'flavor': 'fw.2', 'networks': ['nonet']},
                 "no network named 'nonet'"),
                ({'flavor': 'fw.2', 'networks': ['a'], 'like': 'c-5'},
                 'not allowed with argument')):
            self.assertIn(text, self.failed_audit(**parameters))


class ConsolidateTest(StrategyTestCase):

    STRATEGY = rearrange.NFVConsolidate if WATCHER else None
    EXAMPLE = 'fragmented'

    def test_cooldown(self):
        """Servers that Watcher has just moved stay."""
        plan, actions = self.audit(hosts=1)
        first = self.moved(actions)
        self.assertEqual(3, len(first))
        self.assertEqual(
            {'compute_nodes_count': 3, 'released_compute_nodes_count': 1,
             'instance_migrations_count': 3},
            {each['name']: each['value']
             for each in plan['efficacy_indicators']})
        self.execute(plan)
        _plan, actions = self.audit(hosts=1)
        self.assertNotEqual([], self.moved(actions))
        self.assertEqual(set(), {each[0] for each in first} & {
            each[0] for each in self.moved(actions)})
        _plan, actions = self.audit(hosts=1, cooldown=0)
        self.assertEqual(first, self.moved(actions))


class SpreadTest(StrategyTestCase):

    STRATEGY = rearrange.NFVSpread if WATCHER else None
    EXAMPLE = 'telco'

    def test_spread(self):
        plan, actions = self.audit()
        self.assertEqual([('pgw-1', 'live', 'compute-2')],
                         self.moved(actions))
        self.assertEqual(
            {'imbalance_before': 2, 'imbalance_after': 0},
            {each['name']: each['value']
             for each in plan['efficacy_indicators']})
        self.assertEqual(100.0, plan['global_efficacy'][0]['value'])


class AgentsTest(StrategyTestCase):

    STRATEGY = agents.NFVAgents if WATCHER else None
    EXAMPLE = 'network-nodes'

    @staticmethod
    def _forget(options, group):
        """Unregister options, one of which is required."""
        cfg.CONF.reset()
        for option in options:
            cfg.CONF.unregister_opt(option, group)

    def test_snapshot(self):
        """Actions have the commands, and Watcher does nothing."""
        plan, actions = self.audit(kind='router', threshold=36)
        self.assertEqual({'nop'}, {each['action_type'] for each in actions})
        messages = [
            each['input_parameters']['message'] for each in actions]
        self.assertRegex(
            messages[0], '^1: Watcher does not move router crowded-router32 '
            'from crowded to compute-1, these commands do: openstack network '
            r'agent remove router --l3 -- \S+ \S+ && openstack network agent '
            r'add router --l3 -- \S+ \S+$')
        before, after = [each['value'] for each in sorted(
            plan['efficacy_indicators'], key=lambda each: each['name'],
            reverse=True)]
        self.assertEqual((39, 35), (before, after))
        self.assertEqual({'SUCCEEDED'}, {
            each['state'] for each in self.execute(plan)})

    def test_api(self):
        """Neutron is read with the account of Watcher."""
        api = neutron_api.NeutronAPI().start_for(self)
        api.needs_token = True
        api.agents = [neutron_api.agent('L3 agent', host) for host in 'ab'] + [
            neutron_api.agent('Open vSwitch agent', host,
                              bridge_mappings={'physnet': 'br'})
            for host in 'ab']
        api.served = {api.agents[0]['id']: [
            neutron_api.router(f'r{number}') for number in range(6)]}
        self.configure(snapshot=None)
        group = 'watcher_clients_auth'
        options = loading.get_auth_plugin_conf_options('password')
        cfg.CONF.register_opts(options, group)
        self.addCleanup(self._forget, options, group)
        self.flags(
            group=group, auth_type='password',
            auth_url=f'{api.url}/identity/v3', username='watcher',
            password=neutron_api.PASSWORD, project_name='service',
            user_domain_id='default', project_domain_id='default')
        self.flags(group='nova', region_name='RegionOne',
                   valid_interfaces=['internal'])
        _plan, actions = self.audit(threshold=4)
        action, = actions
        self.assertRegex(
            action['input_parameters']['message'],
            '^1: Watcher does not move router r. from a to b, ')
        self.flags(group=group, password='wrong')
        self.assertIn('nfv-sched agent rebalance: error: ',
                      self.failed_audit())
