# SPDX-License-Identifier: Apache-2.0
"""Clouds with servers where they are wanted, by the simulator."""

import dataclasses
import textwrap
import typing

import os_traits

from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import values
from nfv_sched.ops.simulator import record
from nfv_sched.tests.unit.ops.simulator import base

#: Three hosts, each with four CPUs for pinned guests on each of two NUMA
#: nodes; the switch is on node 0.
HEAD = """\
options:
  filter_scheduler:
    enabled_filters: >-
      ComputeFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,
      SameHostFilter,DifferentHostFilter,PciPassthroughFilter,NFVTopologyFilter,
      VSwitchNUMAAffinityFilter
hosts:
  - {name: one, cores: 4, memory: 8 GiB, <<: &all {
     platform_cores: 0, vswitch_cores: 0, shared_cores_per_node: 0,
     pci_devices: [{type: VF, node: 0, count: 1}]}}
  - {name: two, cores: 4, memory: 8 GiB, <<: *all}
  - {name: three, cores: 4, memory: 8 GiB, <<: *all}
pci_aliases:
  nic: {type: VF}
server_groups:
  apart: {policy: anti-affinity}
  together: {policy: affinity}
  soft: {policy: soft-anti-affinity}
flavors:
  p1:
    <<: &p {memory: 256 MiB, extra_specs: {hw:cpu_policy: dedicated}}
    vcpus: 1
  p2: {<<: *p, vcpus: 2}
  p3: {<<: *p, vcpus: 3}
  p4: {<<: *p, vcpus: 4}
  fat3: {<<: *p, vcpus: 3, memory: 512 MiB}
  vf:
    vcpus: 1
    memory: 256 MiB
    extra_specs: {hw:cpu_policy: dedicated, pci_passthrough:alias: 'nic:1'}
  strict:
    vcpus: 2
    memory: 256 MiB
    extra_specs:
      hw:cpu_policy: dedicated
      nfv:vswitch_numa_affinity: strict
  prefer:
    vcpus: 2
    memory: 256 MiB
    extra_specs:
      hw:cpu_policy: dedicated
      nfv:vswitch_numa_affinity: prefer
"""


def causes(guest) -> movable.MoveObstacle | dict[refusals.LackKind, int]:
    return guest.obstacle or {
        each.kind: each.hosts for each in guest.lacks}


def disabled(cloud, *names, reason=values.REASON):
    return dataclasses.replace(cloud, hosts=tuple([
        host if host.name not in names else dataclasses.replace(
            host, enabled=False, disabled_reason=reason,
            providers=tuple([dataclasses.replace(
                provider, traits=provider.traits | {
                    os_traits.COMPUTE_STATUS_DISABLED})
                for provider in host.providers]))
        for host in cloud.hosts]))


class RunningTestCase(base.SimulatorTestCase):

    def running(self, *servers: str, steps: str = '',
                head: str = HEAD,
                **changes: dict[str, typing.Any]) -> snapshot.Cloud:
        """Return a cloud in which servers run.

        :param servers: ``name flavor host``, each, and the server group
        :param head: all but the steps
        :param changes: name of a server -> fields that are otherwise
        """
        lines = []
        for text in servers:
            name, flavor, host, *groups = text.split()
            group = f', group: {groups[0]}' if groups else ''
            lines.append(f'- {{boot: {name}, flavor: {flavor}, '
                         f'host: {host}{group}, expect: {{placed: 1}}}}')
        text = '\n'.join(lines) + '\n' + textwrap.dedent(steps)
        with self.simulation(self.cloud(text, head)) as simulation:
            self.assertEqual([], simulation.run().failures)
            cloud = record.cloud(simulation.state)
        return dataclasses.replace(cloud, servers=tuple([
            dataclasses.replace(each, **changes.get(each.name, {}))
            for each in cloud.servers]))
