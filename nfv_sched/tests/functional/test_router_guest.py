# SPDX-License-Identifier: Apache-2.0

"""The two-node router guest of carrier-grade guides.

27 vCPUs on two guest NUMA nodes, all memory in 1 GiB pages, two whole NICs.
The first guest node fits only the second host node, because the first host
node keeps a core for the host; so the guest nodes change places.
"""

from nfv_sched.tests.functional import base

SPECS = {
    'hw:cpu_policy': 'dedicated',
    'hw:mem_page_size': '1GB',
    'hw:numa_nodes': '2',
    'hw:numa_cpus.0': '0-13',
    'hw:numa_cpus.1': '14-26',
    'hw:numa_mem.0': '16384',
    'hw:numa_mem.1': '16384',
    'pci_passthrough:alias': 'pf:2',
    'nfv:pci_numa_affinity': 'strict',
}


class RouterGuestTest(base.PCI, base.WholePluginTestCase):
    """Fourteen cores on each of two sockets, without hyperthreading."""

    node_cores = 14
    nodes_per_socket = 1
    # One of them is for the virtual switch.
    huge_pages = 17

    def configure(self):
        super().configure()
        self.flags(reserved_huge_pages=[
            'node:%d,size:1GB,count:1' % node for node in (0, 1)])

    def shared_cpus(self, nodes):
        return set()

    def dedicated_cpus(self, nodes):
        # Core 0 is for the host.
        return set(range(1, nodes * self.node_cpus))

    def start_routers_host(self, name, pfs=(0, 1)):
        self.start_host(name, switch=[0, 1], memory_gib=44,
                        devices={'pfs': pfs, 'nics': [0, 0, 0]})

    def router(self, **more):
        specs = dict(SPECS, **{key.replace('__', ':'): value
                               for key, value in more.items()})
        return self.flavor_with(specs, vcpus=27, memory_mb=32768)

    def assertRouterPlaced(self, server, host, devices=(0, 1)):
        self.assertPlaced(server, [1, 0], host, devices)
        pins = self.pins(server)
        self.assertEqual(set(range(27)), set(pins))
        self.assertEqual(set(range(14, 28)),
                         {pins[vcpu] for vcpu in range(14)})
        self.assertEqual(set(range(1, 14)),
                         {pins[vcpu] for vcpu in range(14, 27)})
        self.assertEqual(
            {vcpu: {cpu} for vcpu, cpu in pins.items()},
            self.domain_cpus(server))
        used = self.usages()[host]
        self.assertEqual(27, used['PCPU'])
        self.assertEqual(32768, used['MEMORY_MB'])

    def test_router_guest(self):
        self.start_routers_host('host1')
        self.start_routers_host('host2')
        strict = self.router()

        with self.row('placed'):
            server = self.boot(strict, host='host1')
            self.assertRouterPlaced(server, 'host1')

            self.assertRefused(
                self.boot(strict, host='host1', expect='ERROR'))

            self.cold_migrate(server)
            self._confirm_resize(server)
            self.assertRouterPlaced(server, 'host2')

        with self.row('with a policy on the switch'):
            flavor = self.router(**{'nfv__vswitch_numa_affinity': 'strict'})
            server = self.boot(flavor)
            self.assertRouterPlaced(server, self.host(server))

        with self.row('mapped as it fits'):
            flavor = self.router(**{'nfv__numa_node.0': '1',
                                    'nfv__numa_node.1': '0'})
            server = self.boot(flavor)
            self.assertRouterPlaced(server, self.host(server))

        with self.row('mapped as it does not fit'):
            flavor = self.router(**{'nfv__numa_node.0': '0'})
            self.assertRefused(self.boot(flavor, expect='ERROR'),
                               'nfv:numa_node.0')

        with self.row('two of them'):
            servers = self.boot_many(strict, 2)
            self.assertEqual({'host1', 'host2'},
                             set(map(self.host, servers)))
            for server in servers:
                self.assertRouterPlaced(server, self.host(server))

        self.assertNothingLeft()


class RouterGuestWithPCIInPlacementTest(RouterGuestTest):

    in_placement = True


class RouterGuestWithSilentNICTest(RouterGuestTest):
    """A NIC that does not tell its node may be on either."""

    in_placement = True

    def test_router_guest(self):
        self.start_routers_host('host1', pfs=(0, None))
        self.assertRefused(self.boot(self.router(), expect='ERROR'),
                           'nfv:pci_numa_affinity=strict')
