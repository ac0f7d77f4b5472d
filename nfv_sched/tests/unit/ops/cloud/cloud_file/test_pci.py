# SPDX-License-Identifier: Apache-2.0

"""Servers get the PCI devices that nova-compute would give them."""

import re

import testtools

from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit.ops.simulator import base

# Nova's fit leaves a guest cell here with the pins of another host cell, so
# that the claim cannot be recorded.
UNRECORDED = """\
hosts:
  - name: only
    cores: 3
    memory: 8 GiB
    numa_nodes: 8
    pci_devices:
      - {type: PF, node: 1}
      - {type: VF, node: 3, physical_network: p0}
    physical_networks: {p0: [4]}
networks:
  sriov: {physical_network: p0, vnic_type: direct}
flavors:
  two:
    vcpus: 4
    memory: 2 GiB
    extra_specs: {hw:cpu_policy: dedicated, hw:numa_nodes: 2}
steps:
  - boot: s
    flavor: two
    networks: [sriov]
    expect: {refused: true}
"""

# Two hosts with a NIC for guests on each node, VFs on node 1 of "east" and on
# node 0 of "west".
HEAD = tests_base.cloud_file("""\
hosts:
  - name: east
    cores: 12
    memory: 32 GiB
    pci_devices:
      - {type: PF, node: 0}
      - {type: PF, node: 1}
      - {type: VF, node: 1, count: 4, physical_network: physnet0}
  - name: west
    cores: 12
    memory: 32 GiB
    pci_devices:
      - {type: PF, node: 0}
      - {type: PF, node: 1}
      - {type: VF, node: 0, count: 4, physical_network: physnet0}
pci_aliases:
  nic: {type: PF}
  near: {type: PF, numa_policy: required}
  any: {type: PF, numa_policy: preferred}
  moving: {type: PF, live_migratable: true}
networks:
  sriov: {physical_network: physnet0, vnic_type: direct}
flavors:
  plain: &plain
    vcpus: 2
    memory: 1 GiB
    extra_specs: {hw:cpu_policy: dedicated}
  floating:
    vcpus: 1
    memory: 1 GiB
    extra_specs: {'pci_passthrough:alias': 'nic:2'}
""")


def flavor(name: str, alias: str, *specs: str, nodes: int = 1) -> str:
    texts = ['hw:cpu_policy: dedicated', f"'pci_passthrough:alias': {alias!r}",
             f'hw:numa_nodes: {nodes}', *specs]
    return (f'  {name}: {{vcpus: 2, memory: 1 GiB, '
            f'extra_specs: {{{", ".join(texts)}}}}}\n')


HEAD += flavor('nic', 'nic:1')
HEAD += flavor('nics', 'nic:2', nodes=2)
HEAD += flavor('near', 'near:1')
HEAD += flavor('any', 'any:2')


class PCITestCase(base.SimulatorTestCase):

    HEAD = HEAD

    def test_floating_servers_have_devices_anywhere(self):
        head = self.HEAD.replace('cores: 12',
                                 'cores: 12\n    shared_cores_per_node: 1')
        result = self.met(
            '- {boot: a, flavor: floating, '
            'expect: {pci_devices: {0: 1, 1: 1}}}\n', head)
        self.assertIsNone(result.servers[0].pci)

    def test_one_node_is_always_local(self):
        self.met(
            '- {boot: a, flavor: nic, expect: {pci: local, '
            'pci_devices: {none: 1}}}\n', """\
hosts:
  - {name: h, cores: [8], memory: 8 GiB, pci_devices: [
      {type: PF, node: null}]}
pci_aliases: {nic: {type: PF}}
flavors:
""" + flavor('nic', 'nic:1'))

    def test_unmet(self):
        for expect, message in (
                ('{pci: remote}', 'expected PCI devices remote, got a on '
                                  'east nodes [0] (local) PCI devices '
                                  '{0: 1} (local)'),
                ('{pci_devices: {1: 1}}', 'expected PCI devices {1: 1}, got'),
                ('{pci_devices: {}}', 'expected PCI devices {}, got'),
                ('{cores: 3}', 'expected 3 physical cores, got')):
            result = self.run_cloud(self.cloud(
                '- {boot: a, flavor: near, host: east, expect: {nodes: [0]}}\n'
                .replace('{nodes: [0]}', expect),
                self.HEAD.replace('{type: PF, node: 1}',
                                  '{type: PF, node: 1, product: aaaa}')))
            self.assertEqual(1, len(result.failures))
            self.assertIn(message, result.failures[0])

    def test_aliases_are_forgotten(self):
        self.met('- {boot: a, flavor: nic}\n')
        self.assertEqual({}, nova_scheduler.pci_aliases())


class PlacementPCITestCase(PCITestCase):
    """The same where Placement tracks the devices of aliases."""

    HEAD = 'pci_in_placement: true\n' + HEAD

    def test_devices_are_those_of_placement(self):
        with self.simulation(self.cloud("""\
                - {boot: a, flavor: nic, count: 2, multi_create: true,
                   host: west}
                - {boot: b, flavor: nics, expect: {placed: 1}}
                """, self.HEAD)) as simulation:
            result = simulation.run()
            self.assertEqual([], result.failures)
            checked = 0
            for server in result.servers:
                nested = {
                    uuid for uuid in simulation.state.placement.allocations[
                        server.uuid]
                    if simulation.state.placement.providers[uuid].parent}
                self.assertEqual(
                    nested, {device.extra_info['rp_uuid']
                             for device in server.claimed.devices})
                checked += len(nested)
            self.assertEqual(4, checked)

    def test_resource_classes_and_traits(self):
        self.met("""\
            - boot: a
              flavor: fast
              expect: {pci_devices: {1: 1}}
            - boot: b
              flavor: fast
              expect: {refused: 1, reason: CUSTOM_NIC}
            """, 'pci_in_placement: true\n' + base.CLOUD.replace(
            '    cores: 8\n', '    cores: 8\n    pci_devices:\n'
            '      - {type: PF, node: 0, resource_class: nic}\n'
            '      - {type: PF, node: 1, resource_class: nic, '
            'traits: [fast]}\n', 1) + flavor('fast', 'fast:1') +
            'pci_aliases: {fast: {type: PF, resource_class: nic, '
            'traits: [fast]}}\n')

    def test_same_seed_same_devices(self):
        text = self.cloud('- {boot: a, flavor: any, count: 2}\n', self.HEAD)

        def devices(seed):
            return [(s.host.name, s.devices)
                    for s in self.run_cloud(text, seed).servers if s.host]

        self.assertEqual(devices(3), devices(3))


class KindsTestCase(base.SimulatorTestCase):
    """Each kind of port gets the devices that are for it, and no others."""

    HOSTS = """\
hosts:
  - {name: vf, cores: 4, memory: 8 GiB, pci_devices: [
      {type: VF, node: 0, physical_network: p}]}
  - {name: trusted, cores: 4, memory: 8 GiB, pci_devices: [
      {type: VF, node: 0, physical_network: p, trusted: true}]}
  - {name: tunnel, cores: 4, memory: 8 GiB, pci_devices: [
      {type: VF, node: 0}]}
  - {name: vdpa, cores: 4, memory: 8 GiB, pci_devices: [
      {type: vdpa, node: 0, physical_network: p}]}
  - {name: dpu, cores: 4, memory: 8 GiB, pci_devices: [
      {type: VF, node: 0, physical_network: p, remote_managed: true}]}
  - {name: odd, cores: [0, 4, 4], memory: [0, 8 GiB, 8 GiB],
     platform_cores: 0, switch_nodes: [1], pages: {1G: [0, 2, 1]},
     pci_devices: [{type: VF, node: 1, physical_network: other}]}
flavors: {f: {vcpus: 1, memory: 1 GiB, extra_specs: {
  'hw:cpu_policy': dedicated}}}
networks: {n: {%s}}
steps: [{boot: s, count: 9, flavor: f, networks: [n]}]
"""

    def test_hosts(self):
        vf = {'vf', 'trusted'}
        for network, hosts in (
                ('physical_network: p, vnic_type: direct', vf),
                ('physical_network: p, vnic_type: macvtap', vf),
                ('physical_network: p, vnic_type: virtio-forwarder', vf),
                ('physical_network: p, vnic_type: direct, trusted: true',
                 {'trusted'}),
                ('tunneled: true, vnic_type: direct', {'tunnel'}),
                ('physical_network: p, vnic_type: vdpa', {'vdpa'}),
                ('physical_network: p, vnic_type: remote-managed', {'dpu'}),
                ('physical_network: other, vnic_type: direct', {'odd'})):
            with self.simulation(self.HOSTS % network) as simulation:
                simulation.run()
                self.assertEqual(sorted(hosts), sorted(
                    server.host.name
                    for server in simulation.state.servers.values()
                    if server.host), network)
                # A snapshot of it is the same cloud.
                cloud = record.cloud(simulation.state)
            with start.started(cloud) as state:
                self.assertEqual(cloud.hosts, record.cloud(state).hosts)


class ProvidersTestCase(base.SimulatorTestCase):
    """Further resource providers, such as those of GPUs."""

    CLOUD = """\
hosts:
  - {name: g, cores: 8, memory: 32 GiB, shared_cores_per_node: 2, providers: [
      {name: gpu, count: 2, traits: [CUSTOM_A100], inventories: {
        VGPU: {total: 4, reserved: 2}}},
      {name: keys, inventories: {CUSTOM_KEY: 1}}]}
flavors:
  v: {vcpus: 1, memory: 1 GiB, extra_specs: {'resources:VGPU': '2'}}
  k: {vcpus: 1, memory: 1 GiB, extra_specs: {
    'resources1:VGPU': '1', 'trait1:CUSTOM_A100': required,
    'resources2:CUSTOM_KEY': '1', group_policy: none}}
steps:
  - {boot: v, flavor: v}
  - {boot: k, flavor: k, count: 2}
  - {boot: w, flavor: v, count: 2}
"""

    def test_providers(self):
        """What is reserved is not free, and each is one provider."""
        with self.simulation(self.CLOUD) as simulation:
            simulation.run()
            self.assertEqual(['v', 'k-1'], [
                server.name for server in simulation.state.servers.values()
                if server.host])
            cloud = record.cloud(simulation.state)
        with start.started(cloud) as state:
            self.assertEqual(cloud.hosts, record.cloud(state).hosts)


class BooksTestCase(base.SimulatorTestCase):
    """Devices are taken and given back with everything else."""

    HEADS = (HEAD, PlacementPCITestCase.HEAD)
    BOOT = ('- {boot: a, flavor: nic}\n'
            '- {boot: b, flavor: plain, networks: [sriov, sriov]}\n')

    def check(self, steps, head=lambda text: text):
        for text in self.HEADS:
            self.given_back(steps, head(text))

    def test_moves(self):
        for move in (
                '', "- shelve: '*'\n"
                "- {unshelve: '*', expect: {placed: 2, pci: local}}\n",
                '- {live_migrate: a, expect: {refused: 1, reason: '
                'live_migratable}}\n'
                '- {live_migrate: b, expect: {placed: 1, pci: local}}\n',
                *(f"- {{cold_migrate: '*'{end}, expect: "
                  '{placed: 2, pci: local}}\n'
                  for end in ('', ', revert: true', ', confirm: false')),
                *(f'- {{resize: a, flavor: nics{end}, expect: {{placed: 1}}}}'
                  '\n- delete: a\n'
                  f'- {{resize: b, flavor: nic{end}, expect: {{placed: 1}}}}\n'
                  for end in ('', ', revert: true', ', same_host: true',
                              ', same_host: true, revert: true'))):
            self.check(f"{self.BOOT}{move}- delete: '*'\n")

    @testtools.skipUnless(tests_base.LIVE_MIGRATABLE,
                          'this Nova live-migrates no devices of aliases')
    def test_live_migrate_an_alias(self):
        self.check(
            '- {boot: a, flavor: moving, networks: [sriov]}\n'
            '- {live_migrate: a, expect: {placed: 1, pci: local}}\n'
            '- delete: a\n', head=lambda text: re.sub(
                r'{type: PF, node: (.)}',
                r'{type: PF, node: \1, live_migratable: true}', text) +
            flavor('moving', 'moving:1'))

    def test_evacuated_devices_stay_taken_until_the_host_is_back(self):
        with self.simulation(self.cloud(
                '- {boot: a, flavor: nic, host: east}\n'
                '- evacuate: a\n', HEAD)) as simulation:
            before = len(simulation.state.hosts['east'].free_devices())
            simulation.run()
            self.assertEqual(
                before - 1, len(simulation.state.hosts['east'].free_devices()))


class MoveClaimTestCase(base.SimulatorTestCase):
    """What Nova's claims of moves know about devices."""

    # Nova tries node 1 of "target" first, as it has more devices.
    HEAD = """\
filters: [ComputeFilter, PciPassthroughFilter, NUMATopologyFilter]
hosts:
  - name: source
    cores: 8
    memory: 32 GiB
    pci_devices: [{type: PF, node: 0, count: 2}]
  - name: target
    cores: 8
    memory: 32 GiB
    pci_devices:
      - {type: PF, node: 0, count: 2}
      - {type: PF, node: 1}
      - {type: standard, node: 1, count: 4}
pci_aliases:
  nic: {type: PF, numa_policy: preferred}
flavors:
""" + flavor('required', 'nic:2', 'hw:pci_numa_affinity_policy: required')

    def test_policy_of_the_flavor_is_lost(self):
        for head in ('', 'pci_in_placement: true\n'):
            for move in ('cold_migrate', 'evacuate'):
                self.met(f"""\
                    - boot: a
                      flavor: required
                      host: target
                      expect: {{nodes: [0], pci: local}}
                    - delete: a
                    - boot: b
                      flavor: required
                      host: source
                    - {move}: b
                      expect: {{host: target, nodes: [1], pci: partial}}
                    """, head + self.HEAD)


class UnrecordedTest(base.SimulatorTestCase):

    def test_pins_of_another_cell(self):
        with self.simulation(UNRECORDED) as simulation:
            before = self.books(simulation)
            result = simulation.run()
            self.assertEqual(before, self.books(simulation))
            host, = simulation.state.hosts.values()
            self.assertEqual([1, 1], [
                pool['count'] for pool in host.pci_tracker.stats.pools])
        self.assertEqual([], result.failures)
        self.assertIn('CPU set to pin', result.outcomes[0].reason)
