# SPDX-License-Identifier: Apache-2.0
"""Audits of Watcher, whose action plans it carries out on the cloud."""

import contextlib
from importlib import util
import unittest

from nfv_sched.tests.live import base
from nfv_sched.tests.live import test_plans

# Seconds.
_MODEL = 60
_AUDIT = 300
_ACTIONS = 600


class WatcherMixin:
    """Requests to Watcher's API; before a live test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not util.find_spec('watcher'):
            raise unittest.SkipTest('Watcher is not installed')
        with contextlib.ExitStack() as stack:
            stack.enter_context(base.the_bed().watcher())
            cls.addClassCleanup(stack.pop_all().close)

    def watcher(self, method, path, body=None):
        """Return the answer to a request of the administrator."""
        answer = self.admin.session.request(
            self.bed.layout.url('watcher', f'/v1/{path}'), method, json=body,
            headers={'OpenStack-API-Version': 'infra-optim 1.3'})
        return answer.json()

    def audit(self, goal, strategy, **parameters):
        """Return the action plan of an audit."""
        self.wait_until(self.is_in_data_model, _MODEL,
                        "Watcher's data model has the servers")
        audit = self.watcher('POST', 'audits', {
            'audit_type': 'ONESHOT', 'goal': goal, 'strategy': strategy,
            'parameters': parameters})['uuid']
        state = self.wait_until(
            lambda: self.ended('audits', audit), _AUDIT, 'the audit has ended')
        self.assertEqual('SUCCEEDED', state)
        plan, = self.watcher(
            'GET', f'action_plans?audit_uuid={audit}')['action_plans']
        return plan['uuid']

    def is_in_data_model(self):
        """Return whether Watcher knows the servers on hosts, and no others."""
        model = self.watcher('GET', 'data_model/?data_model_type=compute')
        return {entry['server_uuid'] for entry in model['context']
                if 'server_uuid' in entry} == {
            server.id for server in self.admin.compute.servers(
                all_projects=True) if server.compute_host}

    def ended(self, kind, uuid):
        """Return the state of an audit or action plan; None before its end."""
        state = self.watcher('GET', f'{kind}/{uuid}')['state']
        return None if state in ('PENDING', 'ONGOING') else state

    def actions(self, plan):
        """Return the actions of a plan."""
        return self.watcher(
            'GET', f'actions/detail?action_plan_uuid={plan}')['actions']

    def execute(self, plan):
        """Let the applier carry out an action plan."""
        self.watcher('PATCH', f'action_plans/{plan}', [
            {'op': 'replace', 'path': '/state', 'value': 'PENDING'}])
        self.wait_until(
            lambda: self.ended('action_plans', plan), _ACTIONS,
            'the action plan has ended')
        self.assertEqual(
            {'SUCCEEDED'}, {action['state'] for action in self.actions(plan)})

    def destinations(self, plan):
        """Return UUID of a server -> host, for the migrations of a plan."""
        return {parameters['resource_id']: parameters['destination_node']
                for parameters in (
                    action['input_parameters'] for action in self.actions(plan)
                    if action['action_type'] == 'migrate')}

    def assert_moved(self, destinations):
        """Check that servers are on the hosts that were planned."""
        self.assertEqual(destinations, {
            uuid: self.admin.compute.get_server(uuid).compute_host
            for uuid in destinations})


class WatcherTest(WatcherMixin, base.LiveTestCase):

    def test_drain(self):
        servers = [
            self.boot(self.flavor(2, **base.STRICT), host=base.LEFT),
            self.boot(self.flavor(1, **base.pinned()), host=base.LEFT)]
        service, = self.admin.compute.services(
            binary='nova-compute', host=base.LEFT)
        self.addCleanup(self.admin.compute.enable_service, service.id)
        plan = self.audit('cluster_maintaining', 'nfv_drain',
                          maintenance_node=base.LEFT)
        destinations = self.destinations(plan)
        self.assertEqual({server.id for server in servers},
                         destinations.keys())
        self.execute(plan)
        self.assert_moved(destinations)
        self.assert_strict(servers[0])
        service, = self.admin.compute.services(
            binary='nova-compute', host=base.LEFT)
        self.assertEqual(('disabled', 'watcher_maintaining'),
                         (service.status, service.disabled_reason))

    def test_defrag(self):
        """The server that was promised boots afterwards."""
        # Each NUMA node has 6 dedicated CPUs, of which 4 are taken, and 2 of
        # one: a guest with 6 fits nowhere.
        small = self.flavor(2, **base.pinned(**{'nfv:numa_node.0': '0'}))
        self.boot(small, host=base.QUAD)
        for number in range(max(map(self.numa_nodes, self.hosts))):
            big = self.flavor(
                4, **base.pinned(**{'nfv:numa_node.0': str(number)}))
            for host in self.hosts:
                if number < self.numa_nodes(host) and (
                        (host, number) != (base.QUAD, 0)):
                    self.boot(big, host=host)
        wanted = self.flavor(6, **base.pinned())
        self.boot_refused(wanted)
        plan = self.audit('nfv_capacity', 'nfv_defrag', flavor=wanted.name)
        destinations = self.destinations(plan)
        self.assertNotEqual({}, destinations)
        self.execute(plan)
        self.assert_moved(destinations)
        self.boot(wanted)


class WatcherAgentsTest(WatcherMixin, test_plans.AgentsTestCase):

    def test_agents(self):
        """Watcher says what to do, by its own account, and moves nothing."""
        routers = [self.router([]) for _number in range(6)]
        before = self.served()
        plan = self.audit('nfv_agent_balance', 'nfv_agents', kind='router')
        messages = [action['input_parameters']['message']
                    for action in self.actions(plan)]
        self.assertNotEqual([], messages)
        for message in messages:
            self.assertIn(f'from {base.LEFT} to ', message)
        self.execute(plan)
        self.assertEqual(before, self.served())
        self.assertEqual({router.id for router in routers},
                         before['L3 agent', base.LEFT])
