# SPDX-License-Identifier: Apache-2.0
"""Hosts to draw: odd ones, and with names that want to do harm."""

import dataclasses

from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import snapshots

HOSTILE = (
    '<script>alert(1)</script>', '"\'><img src=x onerror=alert(1)>',
    '</title></svg></style><b>', '&amp;&lt;', '{{ 7 * 7 }}{% raw %}',
    'x' * 300, '\u05e9\u05e8\u05ea \u202e evil', '\U0001f600' * 40,
    ']]><!--', '\x1b[31m\x00\x08', '\ufdfa' * 20, "javascript:alert('x')",
    ' ', '')


def hostile():
    hosts, servers = [], []
    for number, name in enumerate(HOSTILE):
        hosts.append(snapshots.host(
            name or 'none', [snapshots.node(
                0, 8, 2, 1, pinned=frozenset(range(1, 5)),
                physnets=frozenset([name, f'nfv_{name}']))],
            uuid=str(number), disabled_reason=name, enabled=False,
            devices=[snapshot.Device(
                address=name, vendor=name, product=name, kind=name,
                node=node, status='allocated',
                server=f'{number}-0') for node in (0, 9)]))
        servers += [snapshots.server(
            other, {0: [index % 7 + 1]}, name or 'none',
            uuid=f'{number}-{index}', state=name,
            flavor=snapshots.flavor(name=name))
            for index, other in enumerate(HOSTILE)]
    return snapshots.cloud(hosts, servers, source=HOSTILE[0],
                           missing=snapshots.missing(*HOSTILE))


def odd():
    """A cloud with a host in each state that is possible, and none."""
    nodes = [snapshots.node(
        0, 8, 2, 2, pinned=frozenset([1, 17, 2, 18, 3, 4, 5]),
        physnets=frozenset(['nfv_vswitch'])), snapshots.node(
        1, 8, 2, 2, shared=8, shared_used=4000, pages=[snapshot.Pages(
            size=4, total=2 ** 28, used=2 ** 27)])]
    return snapshots.cloud([
        snapshots.host('full', nodes, devices=[snapshot.Device(
            address='0000:01:00.0', vendor='8086', product='1',
            kind='type-PF', node=1, status='allocated',
            server='far')]),
        snapshot.Host(name='plain', hypervisor='plain', uuid='p', up=False),
    ], [
        snapshots.server('alone', {0: [1]}, 'full', fields=dict(
            cpu_policy='dedicated', thread_policy='isolate')),
        snapshots.server('emulated', {0: [2]}, 'full', fields=dict(
            reserved=frozenset([18]))),
        snapshots.server('one', {0: [3]}, 'full'),
        snapshots.server('two', {0: [3]}, 'full'),
        snapshots.server('far', {0: [5]}, 'full', uuid='far'),
        snapshots.server('floats', host='plain')])


views = view.views


def with_networks(cloud, networks=8):
    """The cloud with two networks for each server, zones and aggregates.

    :param networks: number of networks; every other one has a physnet
    """
    return dataclasses.replace(
        cloud, hosts=tuple(
            dataclasses.replace(
                host, zone=f'az-{index % 3}', aggregates=tuple(
                    ['nfv', 'dpdk', 'sriov'][:index % 4]))
            for index, host in enumerate(cloud.hosts)),
        servers=tuple(
            dataclasses.replace(server, ports=(*(server.ports or ()), *(
                snapshot.Port(
                    id=f'{server.uuid}-{port}', network=f'net-{number}',
                    network_name=f'provider-{number}',
                    physnet=f'physnet{number % 2}' if number % 2 else None)
                for port, number in enumerate(
                    (index % networks, (index + 3) % networks)))))
            for index, server in enumerate(cloud.servers)))


def with_facts():
    """A cloud, and its hosts: of the first there are facts.

    Nova has CPUs 1 to 3 of 0 to 3, and 5 of their siblings 4 to 7.
    """
    hosts = [snapshots.host(name, [snapshots.node(
        0, 4, 2, 1, shared=0, dedicated=frozenset([1, 2, 3, 5]))])
        for name in ('known', 'unknown')]
    cloud = snapshots.cloud(hosts, [
        snapshots.server('guest', {0: [1, 2]}, 'known')])
    return cloud, view.views(cloud, facts={
        hosts[0].uuid: values.Machine(nodes=(values.MachineNode(
            number=0, cores=tuple(values.Core(cpus=(core, core + 4))
                                  for core in range(4))),))})


def with_platform(nodes=2, cores=14, hosts=6):
    """A cloud: the first core of each NUMA node is not Nova's.

    Neither are CPUs of the last one, unless guests have them.

    :param cores: of a NUMA node, with two threads each
    """
    cloud = snapshots.generated(hosts, nodes, cores, 2, nodes * 8)
    return dataclasses.replace(cloud, hosts=tuple(
        dataclasses.replace(host, nodes=tuple(
            dataclasses.replace(
                node, shared=node.shared.difference(node.siblings[0]),
                dedicated=node.dedicated - (node.siblings[-1] - node.pinned))
            for node in host.nodes)) for host in cloud.hosts))


def facts(cloud):
    """UUID of each host -> facts about its machine: the siblings of Nova."""
    return {host.uuid: values.Machine(nodes=tuple(values.MachineNode(
        number=node.number, cores=tuple(
            values.Core(cpus=tuple(sorted(core))) for core in node.siblings))
        for node in host.nodes)) for host in cloud.hosts}
