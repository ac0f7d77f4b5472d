# SPDX-License-Identifier: Apache-2.0
"""The simulated network loads the hosts as Neutron and Placement would say."""

from nfv_sched.limits import names
from nfv_sched.ops.answers.simulation import report
from nfv_sched.ops.simulator import network
from nfv_sched.scheduler import process
from nfv_sched.tests.unit.ops.simulator import base

HEAD = """\
hosts:
  - name: east
    cores: 8
    memory: 32 GiB
    shared_cores_per_node: 4
  - name: west
    cores: 8
    memory: 32 GiB
    shared_cores_per_node: 4
networks:
  lan: {tunneled: true}
  wan: {tunneled: true}
security_groups:
  default: {ingress: 2, egress: 1}
  web: {ingress: 10}
flavors:
  f: {vcpus: 1, memory: 1 GiB}
  g: {vcpus: 2, memory: 1 GiB}
"""
OPTIONS = 'options: {nfv_sched: {%s}}\n'


class NetworkTestCase(base.SimulatorTestCase):

    def met(self, steps, head=HEAD):
        result = super().met(steps, head)
        self.assertGreater(result.checks, 0)
        return result


class FiguresTest(NetworkTestCase):
    def test_read_again_if_ports_have_changed(self):
        steps = """\
            - {boot: s, flavor: f, networks: [lan], host: east}
            - {boot: t, flavor: f, networks: [lan], host: west}
            """
        with self.simulation(self.cloud(steps, HEAD)) as simulation:
            simulation.run()
            state = simulation.state

            def figures():
                state.network.refresh()
                return state.network.snapshot

            before, again = figures(), figures()
            self.assertIs(before.hosts, again.hosts)
            server = state.servers['t']
            port = server.ports.pop()
            self.assertEqual(before.host('west').guest_ports - 1,
                             figures().host('west').guest_ports)
            server.ports.append(port)
            self.assertEqual(before.hosts, figures().hosts)
            server.host = state.hosts['east']
            self.assertEqual(before.host('east').guest_ports + 1,
                             figures().host('east').guest_ports)

    def test_ports_follow_their_server(self):
        self.met("""\
            - boot: s
              flavor: f
              networks: [lan, wan]
              host: east
              expect: {ports: {east: 6, west: 4}, rules: {east: 6, west: 0}}
            - cold_migrate: s
              confirm: false
              expect: {ports: {east: 4, west: 6}, rules: {east: 0, west: 6}}
            - revert: s
              expect: {ports: {east: 6, west: 4}}
            - live_migrate: s
              expect: {ports: {east: 4, west: 6}}
            - shelve: s
              expect: {ports: {east: 4, west: 4}, rules: {west: 0}}
            - unshelve: s
              host: east
              expect: {ports: {east: 6, west: 4}}
            - evacuate: s
              expect: {ports: {east: 4, west: 6}}
            - delete: s
              expect: {ports: {east: 4, west: 4}}
            """)

    def test_no_default_group(self):
        self.met("""\
            - {boot: a, flavor: f, networks: [lan], host: east,
               expect: {rules: {east: 0}}}
            """, HEAD.replace('default: {ingress: 2', 'other: {ingress: 2'))

    def test_interfaces_of_a_running_server(self):
        self.met("""\
            - boot: s
              flavor: f
              networks: [lan, wan]
              host: east
            - attach: s
              network: wan
              count: 2
              expect: {placed: 1, ports: {east: 8}}
            - detach: s
              network: lan
              expect: {placed: 1, ports: {east: 7}}
            - detach: s
              network: lan
              expect: {refused: 1, reason: 0 ports on lan, ports: {east: 7}}
            - live_migrate: s
              expect: {ports: {east: 4, west: 7}}
            - detach: s
              network: wan
              count: 2
              expect: {ports: {west: 5}}
            - attach: s
              network: lan
              expect: {ports: {west: 6}}
            - shelve: s
            - attach: s
              network: lan
              expect: {refused: 1, reason: SHELVED}
            - unshelve: s
              host: west
              expect: {ports: {west: 6}}
            - host_down: west
            - detach: s
              network: lan
              expect: {refused: 1, reason: is down, ports: {west: 6}}
            """)

    def test_ports_beside_the_switch(self):
        head = HEAD.replace('networks:\n', """\
networks:
  fast: {physical_network: data, vnic_type: direct}
""", 1).replace('shared_cores_per_node: 4\n', """\
shared_cores_per_node: 4
    physical_networks: {data: [0, 1]}
    pci_devices: [{type: VF, node: 0, count: 4, physical_network: data}]
""")
        result = self.met("""\
            - boot: s
              flavor: f
              networks: [fast, lan, fast]
              host: east
              expect: {ports: {east: 5}, rules: {east: 3}}
            - live_migrate: s
              expect: {ports: {east: 4, west: 5}, rules: {west: 3}}
            """, OPTIONS % 'ledger: placement' + head)
        self.assertEqual(2, result.loads['west'].usage.sriov_ports)
        self.assertEqual({names.PORTS: 1, names.RULES: 3},
                         result.loads['west'].claimed)

    def test_services(self):
        hosts = """\
hosts:
  - {name: a, cores: 8, memory: 8 GiB, routers: {count: 3, ports: 2}%s}
  - {name: b, cores: 8, memory: 8 GiB, routers: 2, other_ports: 5}
flavors: {f: {vcpus: 1, memory: 1 GiB}}
"""
        steps = '- {boot: s, flavor: f, expect: {ports: {a: %d, b: 11}}}\n'
        for service, known in (('', True), ('ovs', True), ('none', True),
                               ('ovn', False)):
            dhcp = ', dhcp_servers: 4' if known else ''
            head = hosts % dhcp
            if service:
                head += f'network_service: {service}\n'
            with self.subTest(service=service), self.simulation(self.cloud(
                    steps % (14 if known else 10), head)) as simulation:
                result = simulation.run()
                self.assertEqual([], result.failures)
                self.assertEqual([(3, 6, 0), (2, 2, 5)], [
                    (load.usage.routers, load.usage.router_ports,
                     load.usage.other_ports)
                    for load in map(result.loads.get, 'ab')])
                self.assertEqual(
                    4 if known else None,
                    network.dhcp_servers(result.scenario, result.loads['a']))
                simulation.state.network.refresh()
                snapshot = simulation.state.network.snapshot
                self.assertEqual(known, snapshot.dhcp_known)

    def test_expectations_that_are_not_met(self):
        failures = self.run_cloud(self.cloud("""\
            - boot: s
              flavor: f
              networks: [lan]
              host: east
              expect: {ports: {east: 6}, rules: {east: 5, west: 0}}
            """, HEAD)).failures
        self.assertEqual(2, len(failures))
        self.assertIn('expected 6 vSwitch ports on east, got 5', failures[0])
        self.assertIn('expected 5 security-group rules on east, got 3',
                      failures[1])

    def test_nothing_is_left_behind(self):
        self.met('- {boot: s, flavor: f, networks: [lan], count: 3, '
                 'multi_create: true, expect: {placed: 3}}\n')
        self.assertIsNone(process.STATE.lookups)
        self.assertNotIn('Neutron cannot be asked', self.log.output)


class LimitsTest(NetworkTestCase):
    """The filters keep limits by the ledger, whatever the file names."""

    def limited(self, steps, options='', head=HEAD):
        self.met(steps, OPTIONS % options + head)

    def test_resize_that_claims_on_its_own_host(self):
        """What the migration holds there covers the ports there."""
        self.limited("""\
            - {boot: a, flavor: f, networks: [lan, lan], host: east}
            - {resize: a, flavor: g, same_host: true, host: east,
               expect: {placed: 1, host: east, ports: {east: 6}}}
            - {boot: b, flavor: f, networks: [lan, lan], host: east,
               expect: {placed: 1}}
            """, 'vswitch_ports_per_node: 8')

    def test_room_is_kept_until_a_move_is_confirmed(self):
        """Only claims know of a server that may come back."""
        self.limited("""\
            - {boot: a, flavor: f, networks: [lan, lan], host: east}
            - {cold_migrate: a, confirm: false, expect: {host: west}}
            - {boot: b, flavor: f, networks: [lan], host: east,
               expect: {refused: 1, reason: 0 of 6 free}}
            - {confirm: a}
            - {boot: c, flavor: f, networks: [lan], host: east,
               expect: {placed: 1}}
            """, 'vswitch_ports_per_node: 6')


class LedgerTest(NetworkTestCase):
    """What is claimed is what is there."""

    HEAD = OPTIONS % 'ledger: placement, vswitch_ports_per_node: 20' + HEAD

    def exact(self, simulation):
        for load in simulation.state.network.loads().values():
            if load.claimed is not None:
                self.assertEqual(
                    (load.usage.guest_ports, load.usage.rules),
                    tuple(load.claimed.get(name, 0)
                          for name in (names.PORTS, names.RULES)))

    def test_after_each_step(self):
        steps = """\
            - {boot: a, flavor: f, networks: [lan, wan], count: 2}
            - {boot: m, flavor: f, networks: [lan], count: 3,
               multi_create: true}
            - {boot: n, flavor: f}
            - {cold_migrate: 'a-*'}
            - {cold_migrate: 'm-*', revert: true}
            - {resize: a-1, flavor: g, same_host: true}
            - {resize: m-1, flavor: g}
            - {live_migrate: 'm-*'}
            - {shelve: a-2}
            - {unshelve: a-2}
            - {boot: x, flavor: f, networks: [lan, lan, lan, lan, lan, lan,
               lan, lan], count: 5}
            - {delete: 'x-*'}
            - {evacuate: a-1}
            - {host_up: '*'}
            - {delete: '*'}
            """

        def after(done, total):
            if simulation.outcomes[-1].action not in ('evacuate', 'host_up'):
                self.exact(simulation)

        with self.simulation(self.cloud(steps, self.HEAD),
                             progress=after) as simulation:
            result = simulation.run()
            self.exact(simulation)
        self.assertEqual({}, simulation.state.placement.allocations)
        refused = {o.server for o in result.outcomes if not o.ok}
        self.assertTrue(refused)
        self.assertTrue(all(name.startswith('x-') or name == 'x'
                            for name in refused), refused)

    def test_what_nobody_claimed_is_reserved(self):
        head = self.HEAD.replace(
            'name: east\n', 'name: east\n    dhcp_servers: 3\n')
        with self.simulation(self.cloud("""\
                - {boot: past-the-filters, flavor: f, networks: [lan, lan],
                   force: east}
                - {boot: a, flavor: f, networks: [lan, lan], host: east}
                - {attach: a, network: lan}
                - {boot: b, flavor: f, networks: [lan], host: west}
                - {detach: b, network: lan}
                - {boot: c, flavor: f}
                """, head)) as simulation:
            simulation.run()
            providers = [
                simulation.state.placement.providers[
                    names.provider_uuid(host.uuid)]
                for host in simulation.state.hosts.values()]
        for provider, reserved, used in zip(providers, (10, 4), (2, 1)):
            inventory = provider.inventories[names.PORTS]
            self.assertEqual(
                (20, reserved, used),
                (inventory.total, inventory.reserved,
                 provider.used[names.PORTS]))
            self.assertEqual({names.TRAIT}, provider.traits)
            self.assertEqual('QEMU', next(
                host.node.hypervisor_type
                for host in simulation.state.hosts.values()
                if host.uuid == provider.parent))

    def test_a_move_back_and_forth_claims_what_was_attached(self):
        result = self.met("""\
            - {boot: a, flavor: f, networks: [lan], host: east}
            - {attach: a, network: lan, count: 2}
            - {cold_migrate: a, expect: {host: west, ports: {west: 7}}}
            """, self.HEAD)
        self.assertEqual(3, result.loads['west'].claimed[names.PORTS])
        self.assertEqual({}, result.loads['east'].claimed)

    def test_more_than_the_limit(self):
        """A total is not lowered below what is used; it is reserved."""
        with self.simulation(self.cloud("""\
                - {boot: a, flavor: f, networks: [lan, lan], host: east}
                - {attach: a, network: lan, count: 30}
                - {boot: b, flavor: f, networks: [lan], host: east,
                   expect: {refused: 1, reason: '0 of 20 free'}}
                """, self.HEAD)) as simulation:
            self.assertEqual([], simulation.run().failures)
            inventory = self.published(simulation).inventories[names.PORTS]
        self.assertEqual((20, 20), (inventory.total, inventory.reserved))

    @staticmethod
    def published(simulation):
        uuid = names.provider_uuid(simulation.state.hosts['east'].uuid)
        return simulation.state.placement.providers[uuid]

    def test_no_limit(self):
        with self.simulation(self.cloud(
                '- {boot: a, flavor: f, networks: [lan], host: east}\n',
                OPTIONS % 'ledger: placement, vswitch_ports_per_node: 0' +
                HEAD)) as simulation:
            simulation.run()
            provider = self.published(simulation)
        # Four physical ports are reserved, and one is claimed.
        self.assertEqual(names.UNLIMITED - 5, provider.free(names.PORTS))


class OutageTest(NetworkTestCase):
    STEPS = """\
        - {boot: a, flavor: f, networks: [lan, lan], host: east}
        - neutron: %s
        - {boot: b, flavor: f, networks: [lan, lan], host: east,
           expect: {%s}}
        - {boot: c, flavor: f, host: east, expect: {placed: 1}}
        - neutron: up
        - {boot: d, flavor: f, networks: [lan, lan], host: east,
           expect: {refused: 1, reason: 'of 7 free'}}
        - {boot: e, flavor: f, networks: [lan, lan], host: west,
           expect: {placed: 1}}
        """
    HEAD = OPTIONS % 'vswitch_ports_per_node: 7' + HEAD

    def test_the_ledger_goes_on_without(self):
        for state in ('stale', 'down'):
            self.met(self.STEPS % (
                state, 'refused: 1, reason: 1 of 7 free'), self.HEAD)

    def test_the_ledger_stays_as_it_is_without(self):
        self.met("""\
            - {boot: a, flavor: f, networks: [lan, lan], host: east}
            - neutron: stale
            - {boot: b, flavor: f, networks: [lan, lan], host: east,
               expect: {refused: 1}}
            - {delete: a}
            - {boot: c, flavor: f, networks: [lan, lan], host: east,
               expect: {placed: 1}}
            """, self.HEAD)

    def test_moves_without_figures(self):
        """Nova itself knows the interfaces of a server."""
        for state, rules in (('stale', 20), ('down', 2 * 128)):
            result = self.met("""\
                - {boot: a, flavor: f, networks: [lan], host: east,
                   security_groups: [web]}
                - {attach: a, network: wan, security_groups: [web]}
                - neutron: %s
                - {live_migrate: a, expect: {placed: 1}}
                """ % state, OPTIONS % 'ledger: placement' + HEAD)
            # Neutron alone knows their rules.
            self.assertEqual(
                {names.PORTS: 2, names.RULES: rules},
                result.loads['west'].claimed)

    def test_hosts_that_have_no_ledger_yet(self):
        result = self.met("""\
            - neutron: down
            - {boot: a, flavor: f, networks: [lan, lan], host: east,
               expect: {placed: 1}}
            """, OPTIONS % 'ledger: placement' + HEAD)
        self.assertIsNone(result.loads['east'].claimed)
        self.assertEqual(2, result.loads['east'].usage.guest_ports)


class ReportTest(NetworkTestCase):

    STEPS = '- {boot: s, flavor: f, networks: [lan], host: east%s}\n'
    BARE = HEAD.replace(HEAD[HEAD.index('security_groups'):
                             HEAD.index('flavors')], '')

    def result(self, head, more='', host='east'):
        return self.run_cloud(self.cloud(
            (self.STEPS % more).replace('east', host), head))

    def test_only_where_it_is_told(self):
        self.assertFalse(network.is_told(self.result(self.BARE).scenario))
        for head, more in (
                (HEAD, ''), (self.BARE, ', expect: {ports: {east: 5}}'),
                (OPTIONS % 'ledger: placement' + self.BARE, ''),
                (OPTIONS % 'vnics_per_guest: 3' + self.BARE, ''),
                (self.BARE.replace('name: east',
                                   'name: east\n    other_ports: 1'), ''),
                (self.BARE + 'aggregates: [{name: x, hosts: east, '
                 'metadata: {vswitch_ports_per_node: 9}}]\n', '')):
            self.assertTrue(network.is_told(self.result(head, more).scenario))

    def test_many_hosts(self):
        many = HEAD.replace('name: east', 'name: h\n    count: 30')
        result = self.result(many, host='h-7')
        _titles, rows = self.shown(report.network_loads(result))
        self.assertEqual(
            [('h-1 ... h-30', '4-5/254', '0-1', '0-3/16384', '0', '0'),
             ('west', '4/254', '0', '0/16384', '0', '0')], rows)
        self.assertEqual(31, len(report.network_loads(result, True).rows))
