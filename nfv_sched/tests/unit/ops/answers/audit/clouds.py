# SPDX-License-Identifier: Apache-2.0
"""Clouds on which servers were booted and moved, as they are then."""

import functools
import random

import yaml

from nfv_sched.ops.simulator import record
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.simulator import base as simulator_base

CLOUD = base.cloud_file("""\
options:
  nfv_sched: {ledger: placement, vswitch_ports_per_node: 60}
pci_aliases:
  vf: {type: VF, live_migratable: true}
hosts:
- name: host{n}
  count: 3
  cores: 12
  threads: 2
  memory: 32 GiB
  pages: {2M: 4096, 1G: 4}
  switch_nodes: [1]
  places: {osd: [0]}
  shared_cores_per_node: 2
  physical_networks: {physnet0: [1]}
  dhcp_servers: 1
  other_ports: 2
  pci_devices:
  - {type: VF, node: 0, count: 4, live_migratable: true}
  - {type: VF, node: 1, count: 4, live_migratable: true}
  - {type: VF, node: 1, count: 2, physical_network: physnet0,
     live_migratable: true}
- name: old{n}
  count: 2
  cores: 8
  threads: 2
  memory: 16 GiB
  pages: {2M: 2048}
  switch_nodes: []
  legacy_pinning: true
networks:
  data: {physical_network: physnet0}
  vf: {physical_network: physnet0, vnic_type: direct}
  tenant: {tunneled: true}
security_groups:
  web: {ingress: 3, egress: 2}
flavors:
  plain: {vcpus: 2, memory: 1024, disk: 5}
  nodes: {vcpus: 4, memory: 1024, extra_specs: {"hw:numa_nodes": 2}}
""")
PINNED = {'hw:cpu_policy': 'dedicated'}
FLAVORS = {
    'pinned': {}, 'huge': {'hw:mem_page_size': '2MB'},
    'large': {'hw:mem_page_size': 'large'},
    'strict': {'nfv:vswitch_numa_affinity': 'strict'},
    'prefer': {'nfv:vswitch_numa_affinity': 'prefer'},
    'on_osd': {'nfv:numa_affinity.osd': 'strict'},
    'off_osd': {'nfv:numa_anti_affinity.osd': 'strict'},
    'mapped': {'nfv:numa_node.0': '1'},
    'vf_strict': {'pci_passthrough:alias': 'vf:1',
                  'nfv:pci_numa_affinity': 'strict'},
    'vf_required': {'pci_passthrough:alias': 'vf:2',
                    'hw:pci_numa_affinity_policy': 'required'},
    'vf_legacy': {'pci_passthrough:alias': 'vf:1'},
    'vf_prefer': {'pci_passthrough:alias': 'vf:1',
                  'nfv:pci_numa_affinity': 'prefer'},
    'vf_socket': {'pci_passthrough:alias': 'vf:1',
                  'hw:pci_numa_affinity_policy': 'socket'},
    'require': {'hw:cpu_thread_policy': 'require'},
    'isolate': {'hw:cpu_thread_policy': 'isolate'},
    'emulator': {'hw:emulator_threads_policy': 'isolate'},
    'two': {'hw:numa_nodes': '2'},
    'mixed': {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0',
              'nfv:shared_vcpu': '0'},
}
_HOSTS = ('host1', 'host2', 'host3', 'old1', 'old2')
_ACTIONS = ('live_migrate', 'cold_migrate', 'resize', 'evacuate', 'shelve',
            'unshelve', 'rebuild', 'attach', 'detach', 'delete', 'delete',
            'host_down', 'host_up')


def _vcpus(name: str) -> int:
    return {'require': 3, 'two': 4, 'mixed': 3}.get(name, 2)


def flavors() -> dict:
    return {name: {'vcpus': _vcpus(name), 'memory': 1024,
                   'extra_specs': {**PINNED, **specs}}
            for name, specs in FLAVORS.items()}


def text(steps: list) -> str:
    made = ''.join(
        f'  {line}\n' for line in yaml.safe_dump(flavors()).splitlines())
    return CLOUD + made + yaml.safe_dump({'steps': steps})


def of_text(cloud_file: str):
    """Return (the snapshot, the simulation) once the ledger is published."""
    with simulator_base.simulation(cloud_file) as found:
        for step in found.state.scenario.steps:
            found.step(step)
        found.state.network.refresh()
        return record.cloud(found.state), found


def after(steps: list):
    return of_text(text(steps))


def steps(seed: int, count: int) -> list:
    dice = random.Random(seed)
    names, made = [], []
    known = [*FLAVORS, 'plain', 'nodes']
    while len(made) < count:
        if len(names) < 6 or dice.random() < .5:
            name = f'server{len(made)}'
            names.append(name)
            made.append({
                'boot': name, 'flavor': dice.choice(known),
                'networks': [dice.choice(('data', 'tenant', 'vf'))
                             for _ in range(dice.randrange(3))],
                'security_groups': ['web']})
            continue
        action, name = dice.choice(_ACTIONS), dice.choice(names)
        if action in ('host_down', 'host_up'):
            made.append({action: dice.choice(_HOSTS)})
            continue
        step = {action: name}
        if action == 'resize':
            step.update(flavor=dice.choice(known), same_host=True)
        if action in ('resize', 'cold_migrate'):
            step['confirm'] = dice.random() < .6
        elif action in ('attach', 'detach'):
            step['network'] = dice.choice(('data', 'tenant'))
        elif action == 'delete':
            names.remove(name)
        made.append(step)
    return made


@functools.cache
def sound():
    """Return a cloud in which all is as it should be."""
    boots = [{'boot': name, 'flavor': name,
              'networks': ['data'] if name in ('strict', 'off_osd', 'mapped')
              else []} for name in FLAVORS if name not in (
                  'isolate', 'vf_prefer', 'prefer')]
    boots += [{'boot': 'plain', 'flavor': 'plain', 'networks': ['tenant'],
               'host': 'host2'},
              {'boot': 'second', 'flavor': 'pinned', 'host': 'host1'},
              {'boot': 'third', 'flavor': 'pinned', 'host': 'host1'},
              {'boot': 'alone', 'flavor': 'isolate', 'host': 'old1'},
              {'boot': 'mate', 'flavor': 'pinned', 'host': 'old1'},
              {'boot': 'moved', 'flavor': 'pinned', 'host': 'host2'},
              {'cold_migrate': 'moved', 'host': 'host3', 'confirm': False}]
    cloud, found = after(boots)
    refused = [each.server for each in found.outcomes if not each.ok]
    assert not refused, refused
    return cloud
