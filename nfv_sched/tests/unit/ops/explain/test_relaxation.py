# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nfv_sched.ops.explain import relaxation
from nfv_sched.ops.requests import request
from nfv_sched.ops.snapshot import snapshot
from nfv_sched.tests.unit.ops.simulator import base


def asked(vcpus=8, memory=4096, **specs):
    """A request; extra specs with ``__`` for a colon."""
    return request.ExplainedRequest(flavor=snapshot.Flavor(
        name='f', vcpus=vcpus, memory=memory, extra_specs={
            name.replace('__', ':'): value
            for name, value in specs.items()}))


class SearchesTest(testtools.TestCase):

    def texts(self, wanted):
        return [[change.text for change in search.changes]
                for search in relaxation.searches(wanted)]

    def test_vcpus(self):
        """Half of them at least."""
        self.assertEqual(['2 vCPUs'], self.texts(asked(3))[0])
        self.assertEqual([], self.texts(asked(1))[0])
        self.assertEqual([f'{vcpus} vCPUs' for vcpus in range(4, 8)],
                         self.texts(asked())[0])
        self.assertEqual(['4 vCPUs', '6 vCPUs'],
                         self.texts(asked(hw__numa_nodes='2'))[0])
        self.assertEqual(['2 vCPUs'], self.texts(asked(
            4, hw__cpu_thread_policy='require'))[0])

    def test_vcpus_that_the_topology_allows(self):
        for specs, vcpus in (
                ({'hw__cpu_threads': '2'}, [4, 6]),
                ({'hw__cpu_sockets': '1', 'hw__cpu_cores': '4',
                  'hw__cpu_threads': '2'}, []),
                ({'hw__cpu_max_sockets': '1', 'hw__cpu_max_cores': '4',
                  'hw__cpu_max_threads': '2'}, [4, 6]),
                ({'hw__cpu_threads': 'odd'}, [4, 5, 6, 7])):
            self.assertEqual([f'{count} vCPUs' for count in vcpus],
                             self.texts(asked(**specs))[0])
        self.assertEqual(['4 vCPUs', '6 vCPUs'], self.texts(
            dataclasses.replace(asked(), image={'hw_cpu_threads': '2'}))[0])

    def test_memory(self):
        """In whole pages on each NUMA node, and not too many steps."""
        self.assertEqual(['2 GiB', '3 GiB'], self.texts(asked(
            hw__mem_page_size='1GB'))[1])
        self.assertEqual(['2 GiB'], self.texts(asked(
            hw__mem_page_size='1GB', hw__numa_nodes='2'))[1])
        self.assertEqual([], self.texts(asked(
            memory=1024, hw__mem_page_size='1048576'))[1])
        many = self.texts(asked(memory=1024 * 1024))[1]
        self.assertEqual('512 GiB', many[0])
        self.assertEqual(16, len(many))


class ChangesTest(base.SimulatorTestCase):
    """A change is all that its text says, and no more."""

    def changes(self, wanted):
        head = """\
hosts:
- {name: one, cores: 8, memory: 16 GiB}
flavors:
  f: {vcpus: 1, memory: 64}
"""
        with self.simulation(self.cloud('- {boot: a, flavor: f}', head)) as (
                simulation):
            return {change.text: change.requested for change
                    in relaxation.changes(simulation.state, wanted)}

    def test_numa_nodes(self):
        wanted = asked(4)
        specs = {'hw:cpu_policy': 'dedicated', 'nfv:numa_node.0': '1'}
        changes = self.changes(wanted.with_specs(specs))
        self.assertEqual(
            {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2'}, changes[
                'hw:numa_nodes=2, without nfv:numa_node.0'
            ].flavor.extra_specs)
        del specs['nfv:numa_node.0']
        self.assertIn('hw:numa_nodes=2', self.changes(
            wanted.with_specs(specs)))

    def test_ports(self):
        data, mgmt = (snapshot.Network(id=name, name=name)
                      for name in ('data', 'mgmt'))
        changes = self.changes(dataclasses.replace(asked(), ports=(
            (data, ()), (mgmt, ()), (data, ()))))
        self.assertEqual([mgmt], [network for network, _groups in changes[
            'without the 2 ports on data'].ports])
        self.assertEqual([data, data], [network for network, _groups in (
            changes['without a port on mgmt'].ports)])
