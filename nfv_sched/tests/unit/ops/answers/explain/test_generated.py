# SPDX-License-Identifier: Apache-2.0

"""What explanations say is what the scheduler does, on random clouds.

The number of cases comes from the environment, ``NFV_SCHED_EXPLAIN_CASES``,
and so does the first, ``NFV_SCHED_EXPLAIN_FIRST``.
"""

import collections
import dataclasses
import os
import random

import os_traits

from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import conductor
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.tests.unit.ops.answers.explain import clouds
from nfv_sched.tests.unit.ops.simulator import base

CASES = int(os.environ.get('NFV_SCHED_EXPLAIN_CASES', '60'))
FIRST = int(os.environ.get('NFV_SCHED_EXPLAIN_FIRST', '0'))


class GeneratedTest(base.QuietTestCase):

    def setUp(self):
        super().setUp()
        self.seen = collections.Counter()

    def passes(self, state, asked, name) -> bool:
        """Whether the scheduler takes a host if there is no other."""
        server = servers.SimulatedServer('probe', asked.flavor.name)
        wanted = dataclasses.replace(
            asked, count=1,
            ignore_hosts=tuple(set(state.hosts) - {name}))
        state.servers['probe'] = server
        try:
            request.create(state, server, wanted)
            spec = server.spec.obj_clone()
            request.set_destination(state, spec, None)
            conductor.select(state, spec, [server.uuid])
        except servers.Refused:
            return False
        finally:
            del state.servers['probe']
            members = state.groups.get(asked.group or '', [])
            if 'probe' in members:
                members.remove('probe')
            state.placement.delete_allocation_for_instance(
                None, server.uuid)
        return True

    def compare_capacity(self, cloud, asked, told) -> None:
        """A server fits the hosts that pass, and no others."""
        if asked.group is not None or asked.count > 1:
            return
        networks = [network.name for network, _groups in asked.ports]
        counted, = capacity.capacities(
            cloud, [asked.flavor], capacity.NewServers(
                ports=assumed_ports.of_networks(cloud, networks)
                if networks else 0))
        self.assertEqual(told, {
            name for name, host in counted.hosts.items() if host.fits})
        self.seen['counted'] += 1

    def boot(self, found, change) -> engine.SimulationResult:
        new = change.requested
        found = {**found, 'flavors': {**found['flavors'], 'new': {
            'vcpus': new.flavor.vcpus, 'memory': new.flavor.memory,
            'extra_specs': dict(new.flavor.extra_specs),
            'validate': False}}}
        step = {'boot': 'new', 'flavor': 'new', 'networks': [
            network.name for network, _groups in new.ports]}
        if new.count > 1:
            step.update(count=new.count, multi_create=True)
        if new.group:
            step['group'] = new.group
        found['steps'] = [*found['steps'], step]
        with self.simulation(clouds.text(found)) as simulation:
            state = simulation.state
            scenario = state.scenario
            state.scenario = dataclasses.replace(
                scenario, steps=scenario.steps[:-1])
            simulation.run()
            for name in change.hosts_enabled:
                host = state.hosts[name]
                host.record = dataclasses.replace(host.record, enabled=True)
                traits = state.placement.providers[host.uuid].traits
                state.placement.change(host.uuid, traits=traits - {
                    os_traits.COMPUTE_STATUS_DISABLED})
            state.scenario = dataclasses.replace(
                scenario, steps=scenario.steps[-1:])
            return engine.Simulation(state).run()

    def check(self, number: int) -> None:
        rng = random.Random(number)
        found = clouds.cloud(rng)
        with self.simulation(clouds.text(found)) as simulation:
            simulation.run()
            state = simulation.state
            asked = clouds.asked(rng, state.scenario)
            before = self.books(simulation)
            said = explanation.explain(state, subject.ExplainSubject(
                text='it', requested=asked))
            self.assertEqual(before, self.books(simulation))
            self.assertNotIn('explained-1', state.servers)
            # Hosts
            told = {host.host for host in said.hosts if host.passes}
            really = {name for name in state.hosts
                      if self.passes(state, asked, name)}
            self.assertEqual(really, told)
            cloud = record.cloud(state)
            # Each filter alone, and Placement, say the same together.
            if said.filters:
                self.assertEqual(told, {
                    host.host for host in said.hosts
                    if host.placement_finds and not host.refusals})
            # Placement is not asked what the API refuses.
            for host in said.hosts if said.placement.queries else ():
                self.assertEqual(host.placement_finds, not host.misses)
            # Weights
            weighing = said.weighing
            if said.destinations and weighing.equal_hosts == 1 and (
                    not said.destinations[0].failed_claims):
                self.assertEqual(weighing.hosts[0].host,
                                 said.destinations[0].host)
                self.seen['winners'] += len(weighing.hosts) > 1
            self.seen['fits' if said.fits else 'refused'] += 1
            self.seen['hosts'] += len(said.hosts)
            self.seen['passing hosts'] += len(told)
        self.compare_capacity(cloud, asked, told)
        for each in said.changes:
            self.seen['changes'] += 1
            result = self.boot(found, each)
            self.assertEqual([], [
                one.reason for one in result.outcomes
                if one.server.startswith('new') and not one.ok], each.text)

    def test_generated(self):
        for number in range(FIRST, FIRST + CASES):
            try:
                self.check(number)
            except Exception as exc:
                exc.add_note(f'case {number}')
                raise
        print('explain: ' + ', '.join(
            f'{count} {what}' for what, count in sorted(self.seen.items())))
        if CASES >= 60:
            for what in ('fits', 'refused', 'changes'):
                self.assertGreater(self.seen[what], CASES // 10)
            self.assertGreater(self.seen['winners'], CASES // 20)
