# SPDX-License-Identifier: Apache-2.0

"""Hosts with one, two, four or no NUMA nodes, and guests without any."""

import contextlib
import os

import fixtures
from nova.virt.libvirt import driver

from nfv_sched.nova import compute_conf
from nfv_sched.nova import compute_start
from nfv_sched.tests.functional import base

POLICY = 'nfv:vswitch_numa_affinity'
# The base class replaces it.
_GET_TOPOLOGY = driver.LibvirtDriver._get_host_numa_topology


class GuestsWithoutTopologyTest(base.NFVCloudTestCase):
    """A guest with no NUMA nodes floats over all nodes of its host."""

    def flavors(self):
        return (self.flavor_with({POLICY: 'strict'}, vcpus=1),
                self.flavor_with({POLICY: 'prefer'}, vcpus=1))

    def test_host_with_two_nodes(self):
        self.start_host('host1', switch=[1])
        strict, prefer = self.flavors()
        with self.row('strict'):
            self.assertRefused(self.boot(strict, expect='ERROR'),
                               POLICY, 'hw:numa_nodes')
        with self.row('prefer'):
            self.assertPlacedWithoutTopology(self.boot(prefer))

    def test_host_with_two_nodes_and_a_switch_on_both(self):
        """It would still float, away from the half its ports are on."""
        self.start_host('host1', switch=[0, 1])
        strict, _prefer = self.flavors()
        self.assertRefused(self.boot(strict, expect='ERROR'),
                           POLICY, 'hw:numa_nodes')

    def test_host_with_one_node(self):
        """There is nowhere else to float."""
        self.start_host('host1', nodes=1, switch=[0])
        for flavor in self.flavors():
            self.assertPlacedWithoutTopology(self.boot(flavor))

    def test_host_with_one_node_and_no_declared_switch(self):
        self.start_host('host1', nodes=1, labels=base.NO_LABELS)
        strict, prefer = self.flavors()
        with self.row('strict'):
            self.assertRefused(self.boot(strict, expect='ERROR'), POLICY)
        with self.row('prefer'):
            self.assertPlacedWithoutTopology(self.boot(prefer))

    def assertPlacedWithoutTopology(self, server):
        self.assertEqual('ACTIVE', server['status'])
        self.assertIsNone(self.nodes(server))


class FourNodesTest(base.NFVCloudTestCase):

    def test_switch_on_one_node(self):
        self.start_host('host1', nodes=4, switch=[2])
        strict = self.flavor(nfv__vswitch_numa_affinity='strict')
        prefer = self.flavor(nfv__vswitch_numa_affinity='prefer')
        for flavor in (strict, prefer):
            self.assertPlaced(self.boot(flavor), [2])
        self.assertRefused(self.boot(strict, expect='ERROR'), POLICY)
        self.assertPlaced(self.boot(prefer), [0])
        flavor = self.flavor(nfv__numa_node_0='3')
        self.assertPlaced(self.boot(flavor), [3])

    def test_switch_on_two_nodes(self):
        self.start_host('host1', nodes=4, switch=[1, 3])
        with self.row('one guest node'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
            self.assertIn(self.nodes(self.boot(flavor)), [[1], [3]])
            self.assertIn(self.nodes(self.boot(flavor)), [[1], [3]])
        with self.row('two guest nodes'):
            flavor = self.flavor(vcpus=4, hw__numa_nodes='2',
                                 nfv__vswitch_numa_affinity='strict')
            # Nova's search mixes up the pins of two guest nodes when it comes
            # to nodes 1 and 3, so that the guest may be refused.
            for _ in range(2):
                server = self.boot(flavor, expect=('ACTIVE', 'ERROR'))
                if server['status'] == 'ACTIVE':
                    self.assertEqual([1, 3], sorted(self.nodes(server)))
            self.assertRefused(self.boot(flavor, expect='ERROR'), POLICY)
        with self.row('three guest nodes'):
            flavor = self.flavor(vcpus=3, hw__numa_nodes='3',
                                 hw__numa_cpus_0='0', hw__numa_mem_0='64',
                                 hw__numa_cpus_1='1', hw__numa_mem_1='64',
                                 hw__numa_cpus_2='2', hw__numa_mem_2='128',
                                 nfv__vswitch_numa_affinity='strict')
            self.assertRefused(self.boot(flavor, expect='ERROR'), POLICY)

    def test_switch_on_two_nodes_with_only_the_switch_declared(self):
        """Labels cannot say that both guest nodes need a switch.

        So the guest runs on both switch nodes or not at all.
        """
        self.start_host('host1', nodes=4, switch=[1, 3],
                        labels=base.SWITCH_LABEL)
        flavor = self.flavor(vcpus=4, hw__numa_nodes='2',
                             nfv__vswitch_numa_affinity='strict')
        self.assertRefused(self.boot(flavor, expect='ERROR'), POLICY)
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
        self.assertIn(self.nodes(self.boot(flavor)), [[1], [3]])

    def test_prefer_takes_what_it_can(self):
        """One of two guest nodes near the switch is better than none."""
        self.start_host('host1', nodes=4, switch=[2])
        flavor = self.flavor(vcpus=4, hw__numa_nodes='2',
                             nfv__vswitch_numa_affinity='prefer')
        self.assertIn(2, self.nodes(self.boot(flavor)))


class NoTopologyTest(base.NFVCloudTestCase):
    """A host that reports no NUMA topology, as some drivers do."""

    def test_no_filter_stumbles(self):
        self.start_host('host1', nodes=0)
        with self.row('guest with nodes'):
            flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
            self.assertRefused(self.boot(flavor, expect='ERROR'))
        with self.row('guest without nodes, strict'):
            flavor = self.flavor_with({POLICY: 'strict'}, vcpus=1)
            self.assertRefused(self.boot(flavor, expect='ERROR'), POLICY)
        with self.row('guest without nodes, prefer'):
            flavor = self.flavor_with({POLICY: 'prefer'}, vcpus=1)
            self.assertEqual('ACTIVE', self.boot(flavor)['status'])
        with self.row('guest without a policy'):
            flavor = self.flavor_with({}, vcpus=1)
            self.assertEqual('ACTIVE', self.boot(flavor)['status'])


class StartTest(base.NFVCloudTestCase):
    """What is said of options is what nova-compute does with them."""

    def declare_cpus(self, shared, dedicated):
        for section, options in self.options.items():
            self.flags(group=None if section == 'DEFAULT' else section,
                       **options)

    def predicted(self):
        """Return whether nova-compute starts, and reports its host."""
        path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'nova.conf')
        with open(path, 'w', encoding='utf-8') as file:
            for section, options in self.options.items():
                file.write(f'[{section}]\n' + ''.join(
                    f'{name} = {value}\n' for name, value
                    in options.items()))
        with fixtures.MonkeyPatch(
                'nova.virt.libvirt.driver.LibvirtDriver.'
                '_get_host_numa_topology', _GET_TOPOLOGY):
            errors = list(compute_start.errors(
                compute_conf.read([path]), {node: frozenset(range(
                    node * self.node_cpus, (node + 1) * self.node_cpus))
                    for node in range(2)}, {}, {}))
        starts = all(starts for starts, _reason in errors)
        return starts, starts and not errors

    def happens(self, name):
        """Return the same of a compute service that is started."""
        # Nova's fixture fails, too, if there is no compute node.
        with contextlib.suppress(Exception):
            self.start_host(name, labels=base.NO_LABELS)
        services, nodes = (
            self.admin_api.api_get(f'/os-{kind}').body[kind]
            for kind in ('services', 'hypervisors'))
        # The service makes its record after the driver has started.
        return (any(each['host'] == name for each in services),
                any(each['hypervisor_hostname'] == name for each in nodes))

    def test_options(self):
        usual = {'reserved_host_cpus': 0, 'vcpu_pin_set': ''}
        for number, (default, sets) in enumerate((
            ({}, ('1', '2-5')), ({}, ('1-2', '2-5')), ({}, ('', '2-500')),
            ({'reserved_host_cpus': 2}, ('1', '')),
            ({'reserved_host_cpus': 2}, ('', '')),
            ({'vcpu_pin_set': '1-3'}, ('', '4')),
            ({'vcpu_pin_set': '1-3'}, ('2', '')),
            ({'vcpu_pin_set': '1-500'}, ('', '')),
            ({}, ('1-500', '3-x')),
        )):
            self.options = {
                'DEFAULT': {**usual, **default}, 'compute': dict(zip(
                    ('cpu_shared_set', 'cpu_dedicated_set'), sets))}
            with self.row(f'{default} {sets}'):
                self.assertEqual(self.predicted(),
                                 self.happens(f'host{number}'))
