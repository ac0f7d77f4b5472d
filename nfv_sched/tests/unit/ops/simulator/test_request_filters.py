# SPDX-License-Identifier: Apache-2.0
"""Nova's request filters that read aggregates, without a database."""

import dataclasses

from nova import exception
from nova.scheduler import request_filter

from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import document
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops.simulator import base

CLOUD = base.CLOUD + """\
  vmx:
    vcpus: 2
    memory: 1 GiB
    disk: 10
    extra_specs: {hw:cpu_policy: dedicated, trait:HW_CPU_X86_VMX: required}
options:
  scheduler: {%s: true}
aggregates:
  - {name: one, hosts: west, metadata: {%s}}
"""


class IsolationTest(base.SimulatorTestCase):
    """Hosts with a trait only for guests that ask for it."""

    HEAD = CLOUD.replace('- name: west\n',
                         '- name: west\n    traits: [HW_CPU_X86_VMX]\n') % (
        'enable_isolated_aggregate_filtering',
        'trait:HW_CPU_X86_VMX: required')

    def test_boots_and_moves(self):
        result = self.met("""\
            - {boot: a, flavor: pinned, expect: {host: east}}
            - {boot: b, flavor: vmx, expect: {host: west}}
            - {boot: c, flavor: pinned, host: west, expect: {refused: true}}
            - {cold_migrate: a, expect: {refused: true}}
            """)
        self.assertIn('in an aggregate kept for other traits',
                      result.outcomes[2].reason)

    def test_capacity(self):
        with self.simulation(self.cloud('[]', self.HEAD)) as simulation:
            cloud = record.cloud(simulation.state)
        plain, asking = capacity.capacities(cloud, [
            each for each in cloud.flavors if each.name in ('pinned', 'vmx')])
        self.assertEqual({document.BindingKind.ISOLATED_AGGREGATE}, {
            each.kind for each in plain.hosts['west'].limits})
        self.assertGreater(plain.hosts['east'].fits, 0)
        self.assertGreater(asking.hosts['west'].fits, 0)

    def test_other_values(self):
        """Only what is required isolates."""
        self.met(
            '- {boot: a, flavor: pinned, host: west, expect: {host: west}}',
            self.HEAD.replace('VMX: required}}', 'VMX: forbidden}}'))


class ProjectTest(running.RunningTestCase):
    UUID = '7a6d4b0e-3f0c-4a53-9a6f-0f3f4d1f6a11'

    def cloud_of(self, *servers, projects, required=False):
        """Return a cloud: host two is in an aggregate for project alpha."""
        cloud = self.running(*servers)
        aggregate = running.snapshot.Aggregate(
            name='own', uuid=self.UUID, hosts=('two',),
            metadata={'filter_tenant_id': 'alpha'})
        return dataclasses.replace(
            cloud, aggregates=(aggregate,), hosts=tuple(
                dataclasses.replace(
                    host, aggregates=('own',), providers=(
                        dataclasses.replace(
                            host.providers[0],
                            aggregates=frozenset({self.UUID})),
                        *host.providers[1:]))
                if host.name == 'two' else host for host in cloud.hosts),
            servers=tuple(dataclasses.replace(
                each, project=projects.get(each.name, each.project))
                for each in cloud.servers),
            options={**cloud.options, 'scheduler': {
                'limit_tenants_to_placement_aggregate': True,
                'placement_aggregate_required_for_tenants': required}})

    def explain(self, cloud, name):
        with start.started(cloud) as state:
            of = subject.server(cloud, state, name, [])
            return explanation.explain(state, of, relax_seconds=0)

    def test_explain(self):
        cloud = self.cloud_of('a p1 one', 'b p1 one', projects={'a': 'alpha'})
        found = self.explain(cloud, 'a')
        self.assertEqual(
            {'one': ('not in aggregate own',), 'two': (),
             'three': ('not in aggregate own',)},
            {host.host: host.misses for host in found.hosts})
        self.assertIn('aggregate own', [
            each.need.text for each in found.placement.requirements])
        self.assertEqual(3, self.explain(cloud, 'b').placement.hosts_left)

    def test_explain_no_aggregate(self):
        cloud = self.cloud_of('b p1 one', projects={'b': 'beta'},
                              required=True)
        found = self.explain(cloud, 'b')
        self.assertFalse(found.fits)
        self.assertIn('placement_aggregate_required_for_tenants is set',
                      found.reason)
        self.assertEqual({()}, {host.refusals for host in found.hosts})

    def test_capacity_other_refusal(self):
        """What another request filter refuses is not an aggregate."""
        cloud = self.cloud_of('b p1 one', projects={'b': 'beta'})

        def refuse(_context, _spec):
            raise exception.RequestFilterFailed(reason='no such secret')

        request_filter.ALL_REQUEST_FILTERS.append(refuse)
        self.addCleanup(request_filter.ALL_REQUEST_FILTERS.remove, refuse)
        found, = capacity.capacities(cloud, [cloud.servers[0].flavor])
        limits = [each for host in found.hosts.values()
                  for each in host.limits]
        self.assertEqual({document.BindingKind.FLAVOR},
                         {each.kind for each in limits})
        self.assertIn('no such secret', limits[0].why)

    def test_drain(self):
        """The fuller host is not for the other project."""
        cloud = self.cloud_of('a p1 one', 'b p1 one', 'c p2 three',
                              projects={'a': 'alpha', 'b': 'beta'})
        found = {each.server: each.destination
                 for each in drain.plan(cloud, 'one').servers}
        self.assertEqual({'a': 'two', 'b': 'three'}, found)

    def test_drain_no_room(self):
        cloud = self.cloud_of('a p4 one', 'x p4 two', 'y p4 two',
                              projects={'a': 'alpha'})
        guest, = drain.plan(cloud, 'one').servers
        self.assertIsNone(guest.how)
        # One is for other projects, and the other one is full.
        self.assertEqual(
            [(refusals.LackKind.PLACEMENT, 1)] * 2,
            [(each.kind, each.hosts) for each in guest.lacks])
        self.assertEqual(1, len([each for each in guest.lacks
                                 if each.names[0].startswith('aggregate ')]))


class ZoneTest(running.RunningTestCase):
    """Availability zones; hosts without one are in ``nova``."""

    HEAD = running.HEAD + """\
aggregates:
  - {name: own, hosts: three, metadata: {availability_zone: z}}
"""

    def assertRuns(self, steps, head=HEAD):
        with self.simulation(self.cloud(steps, head)) as simulation:
            self.assertEqual([], simulation.run().failures)
            return running.record.cloud(simulation.state)

    def plan(self, zone, host='one'):
        cloud = self.running('a p1 one', head=self.HEAD)
        server, = cloud.servers
        cloud = dataclasses.replace(cloud, servers=(
            dataclasses.replace(server, zone=zone),))
        guest, = drain.plan(cloud, host).servers
        with start.started(cloud) as state:
            of = subject.server(cloud, state, 'a', [])
            found = explanation.explain(state, of, relax_seconds=0)
        return guest.destination, found.placement.hosts_left

    def test_moves(self):
        """Nova knows a zone by its aggregate, or lets any host do."""
        self.assertEqual(('three', 1), self.plan('z'))
        for zone in ('nova', 'gone', None):
            destination, left = self.plan(zone)
            self.assertIn(destination, ('two', 'three'))
            self.assertEqual(3, left)

    def test_boots(self):
        self.assertRuns("""\
            - {boot: a, flavor: p1, availability_zone: z,
               expect: {host: three}}
            - {boot: b, flavor: p1, availability_zone: nova, host: three,
               expect: {host: three}}
            - {boot: c, flavor: p1, availability_zone: gone,
               expect: {refused: true,
                        reason: no availability zone named 'gone'}}
            """)

    def test_zone_of_hosts_that_are_off(self):
        head = self.HEAD.replace('name: three, cores',
                                 'name: three, disabled: true, cores')
        self.assertRuns("""\
            - {boot: a, flavor: p1, availability_zone: z,
               expect: {refused: true, reason: no availability zone}}
            """, head)

    def test_default(self):
        head = self.HEAD.replace(
            'options:\n', 'options:\n  DEFAULT: {default_schedule_zone: z}\n')
        cloud = self.assertRuns("""\
            - {boot: a, flavor: p1, expect: {host: three}}
            - {boot: b, flavor: p1, availability_zone: nova, host: one,
               expect: {host: one}}
            """, head)
        with start.started(cloud) as state:
            of = subject.flavor(cloud, state, 'p1')
            self.assertEqual('z', of.requested.zone)
            self.assertIn('default_schedule_zone', of.assumed[-1])
            # As it was stored.
            self.assertEqual('nova', subject.server(
                cloud, state, 'b', []).requested.zone)
