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
"""Guests that want the NUMA node of the virtual switch."""

from tempest.lib import decorators

from nfv_sched.tests.tempest.tests.api import base

AFFINITY = 'nfv:vswitch_numa_affinity'
SYNONYM = 'hw:wrs:vswitch_numa_affinity'


class VSwitchAffinityTest(base.NFVSchedTest):
    """Outcomes of strict and prefer, with the node read by an admin."""

    needed_filters = ('NFVTopologyFilter', 'VSwitchNUMAAffinityFilter')

    def flavor(self, nodes=1, **extra_specs):
        return self.create_flavor(
            *base.pinned(vcpus=2 * nodes, nodes=nodes, **extra_specs))

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a001')
    def test_strict(self):
        flavor = self.flavor(**{AFFINITY: 'strict'})
        self.assert_with_vswitch(self.boot(flavor))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a002')
    def test_strict_on_every_host(self):
        """The switch of each host is on other nodes."""
        self._check_every_host('strict')

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a003')
    def test_prefer_on_every_host(self):
        """Where there is room, prefer ends like strict."""
        self._check_every_host('prefer')

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a004')
    def test_carrier_grade_spelling(self):
        flavor = self.flavor(**{SYNONYM: 'strict'})
        self.assert_with_vswitch(self.boot(flavor))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a005')
    def test_dedicated_cpus(self):
        """The CPUs are pinned, and different ones."""
        self.require_options('dedicated_cpus')
        server = self.boot(self.flavor(**{AFFINITY: 'strict'}))
        self.assert_with_vswitch(server)
        pins = self.guest_nodes(server)[0]['cpu_pinning']
        self.assertEqual({'0', '1'}, set(pins))
        self.assertEqual(2, len(set(pins.values())))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a006')
    def test_strict_two_nodes_with_two_switch_nodes(self):
        host = self.host_where(
            lambda host: len(self.vswitch_nodes(host)) > 1,
            'a virtual switch on two NUMA nodes')
        server = self.boot_on(host, self.flavor(2, **{AFFINITY: 'strict'}))
        self.assertEqual(host, self.assert_with_vswitch(server))
        self.assertEqual(2, len(set(self.host_nodes(server))))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a007')
    def test_strict_two_nodes_with_one_switch_node(self):
        host = self.host_where(
            lambda host: (len(self.vswitch_nodes(host)) == 1 and
                          self.numa_nodes(host) > 1),
            'two NUMA nodes and a virtual switch on one')
        message = self.boot_refused_on(
            host, self.flavor(2, **{AFFINITY: 'strict'}))
        self.assert_reason(message, f'{AFFINITY}=strict',
                           '2 host NUMA nodes with the virtual switch needed')

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a008')
    def test_strict_mapped_to_the_switch(self):
        host, node = self._host_and_node(self.vswitch_nodes, 'a')
        server = self.boot_on(host, self.flavor(
            **{AFFINITY: 'strict', 'nfv:numa_node.0': str(node)}))
        self.assertEqual([node], self.host_nodes(server))

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a009')
    def test_strict_mapped_away_from_the_switch(self):
        host, node = self._host_and_node(self.other_nodes, 'no')
        message = self.boot_refused_on(host, self.flavor(
            **{AFFINITY: 'strict', 'nfv:numa_node.0': str(node)}))
        self.assert_reason(
            message, f'guest NUMA node 0 is mapped to host NUMA node {node}')

    @decorators.idempotent_id('1d5d8c32-26a1-4d38-9c8f-0a6a1be3a010')
    def test_prefer_mapped_away_from_the_switch(self):
        """The mapping is kept, the preference cannot be."""
        host, node = self._host_and_node(self.other_nodes, 'no')
        for key in ('nfv:numa_node.0', 'hw:numa_node.0'):
            server = self.boot_on(host, self.flavor(
                **{AFFINITY: 'prefer', key: str(node)}))
            self.assertEqual([node], self.host_nodes(server))
            # There may be room for one only.
            self.delete_server(server)

    def _check_every_host(self, policy):
        """On each host with a switch the guest is with it."""
        self.host_where(self.vswitch_nodes, 'a virtual switch')
        flavor = self.flavor(**{AFFINITY: policy})
        for host in filter(self.vswitch_nodes, self.hosts):
            server = self.boot_on(host, flavor)
            self.assertEqual(host, self.assert_with_vswitch(server))

    def _host_and_node(self, nodes, which):
        """A host, and its first node of a kind."""
        self.require_options('node_labels')
        host = self.host_where(nodes, f'a NUMA node with {which} '
                                      'virtual switch')
        return host, min(nodes(host))
