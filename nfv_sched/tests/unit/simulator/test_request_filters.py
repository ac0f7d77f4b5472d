#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""Nova's request filters that read aggregates, without a database."""

import dataclasses

from nfv_sched.advice.explain import explanation
from nfv_sched.advice.explain import subject
from nfv_sched.advice.plans import drain
from nfv_sched.simulator import start
from nfv_sched.tests.unit.advice.plans import running
from nfv_sched.tests.unit.simulator import base

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

    def outcomes(self, steps, head=HEAD):
        result = self.run_cloud(self.cloud(steps, head))
        self.assertEqual([], list(result.failures))
        return result

    def test_boots_and_moves(self):
        result = self.outcomes("""\
            - {boot: a, flavor: pinned, expect: {host: east}}
            - {boot: b, flavor: vmx, expect: {host: west}}
            - {boot: c, flavor: pinned, host: west, expect: {refused: true}}
            - {cold_migrate: a, expect: {refused: true}}
            """)
        self.assertIn('in an aggregate kept for other traits',
                      result.outcomes[2].reason)

    def test_not_enabled(self):
        self.outcomes("""\
            - {boot: a, flavor: pinned, host: west, expect: {host: west}}
            - {cold_migrate: a, expect: {host: east}}
            """, self.HEAD.replace('filtering: true', 'filtering: false'))

    def test_other_values(self):
        """Only what is required isolates."""
        self.outcomes(
            '- {boot: a, flavor: pinned, host: west, expect: {host: west}}',
            self.HEAD.replace('VMX: required}}', 'VMX: forbidden}}'))


class ProjectTest(running.RunningTestCase):
    """Hosts for one project only."""

    UUID = '7a6d4b0e-3f0c-4a53-9a6f-0f3f4d1f6a11'

    def cloud_of(self, *servers, projects, required=False):
        """Host two is in an aggregate for project alpha.

        :param projects: name of a server -> its project
        """
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
            return explanation.explain(state, of.text, of.asked,
                                       present=of.present, relax_seconds=0)

    def test_explain(self):
        cloud = self.cloud_of('a p1 one', 'b p1 one',
                              projects={'a': 'alpha'})
        found = self.explain(cloud, 'a')
        self.assertEqual(
            {'one': ('not in aggregate own',), 'two': (),
             'three': ('not in aggregate own',)},
            {host.name: host.misses for host in found.hosts})
        self.assertIn('aggregate own', [
            each.text for each in found.placement.requirements])
        self.assertEqual(3, self.explain(cloud, 'b').placement.left)

    def test_explain_no_aggregate(self):
        cloud = self.cloud_of('b p1 one', projects={'b': 'beta'},
                              required=True)
        found = self.explain(cloud, 'b')
        self.assertFalse(found.fits)
        self.assertIn('placement_aggregate_required_for_tenants is set',
                      found.reason)

    def test_no_project_in_particular(self):
        cloud = self.cloud_of('a p1 one', projects={}, required=True)
        self.assertTrue(self.explain(cloud, 'a').fits)

    def test_drain(self):
        """The fuller host is not for the other project."""
        cloud = self.cloud_of('a p1 one', 'b p1 one', 'c p2 three',
                              projects={'a': 'alpha', 'b': 'beta'})
        found = {each.name: each.destination
                 for each in drain.plan(cloud, 'one').guests}
        self.assertEqual({'a': 'two', 'b': 'three'}, found)

    def test_drain_no_room(self):
        cloud = self.cloud_of('a p4 one', 'x p4 two', 'y p4 two',
                              projects={'a': 'alpha'})
        guest, = drain.plan(cloud, 'one').guests
        self.assertIsNone(guest.kind)
        self.assertIn('aggregate (not in the aggregates asked for) on 1 host',
                      guest.reason)
