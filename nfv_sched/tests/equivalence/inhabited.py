# SPDX-License-Identifier: Apache-2.0
"""Small generated clouds in which servers run, as snapshots.

The simulator has booted the servers, so that all that they have adds up.
"""

import dataclasses
import random
import tempfile

from hypothesis import strategies as st
import yaml

from nfv_sched.ops.answers.simulation import reading
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import servers
from nfv_sched.tests import base
from nfv_sched.tests.equivalence import test_clouds

STOCK = ('ComputeFilter', 'ServerGroupAntiAffinityFilter',
         'ServerGroupAffinityFilter', 'PciPassthroughFilter')
LIMITS = ('VSwitchPortLimitFilter', 'SecurityRuleLimitFilter')
POLICIES = ('anti-affinity', 'affinity', 'soft-anti-affinity',
            'soft-affinity')
#: Flavors that some clouds do not take are left out.
FLAVORS = {
    **{name: made for name, made in test_clouds.FLAVORS.items()
       if name not in ('trait.2', 'group.2', 'isolate.2')},
    'pinned.6': (6, test_clouds.PINNED),
    'prefer.4': (4, {**test_clouds.PINNED,
                     'nfv:vswitch_numa_affinity': 'prefer'}),
}


def _host(rng: random.Random, number: int, stock: bool) -> dict:
    nodes = rng.choice((1, 2, 2, 2, 4, 8))
    found = {
        'name': f'compute-{number}', 'numa_nodes': nodes,
        'cores': rng.choice((5, 6, 7)) if nodes < 4 else 4,
        'threads': rng.choice((1, 2, 2)), 'memory': '8 GiB',
        'pages': {'2M': rng.choice((1024, 2048))},
        'shared_cores_per_node': 1,
        'switch_nodes': sorted({0, rng.randrange(nodes)}),
        'physical_networks': {'data': [rng.randrange(nodes)]}}
    if nodes > 2:
        found.update(vswitch_cores=0, platform_cores=0)
    if stock:
        found['node_labels'] = False
    if rng.random() < 0.7:
        found['pci_devices'] = [
            {'type': 'VF', 'node': rng.randrange(nodes),
             'count': rng.randrange(1, 5),
             **_movable(rng, 0.5)}
            for _number in range(rng.choice((1, 2)))]
    return found


def _movable(rng: random.Random, often: float) -> dict:
    movable = rng.random() < often
    return {'live_migratable': movable} if base.LIVE_MIGRATABLE else {}


def _document(rng: random.Random, most_hosts: int) -> dict:
    stock = rng.random() < 0.3
    filters = [*STOCK, *(('NUMATopologyFilter',) if stock
                         else test_clouds.OURS)]
    limited = rng.random() < 0.4
    if limited:
        filters += LIMITS
    if rng.random() < 0.3:
        filters.append('NumInstancesFilter')
    options = {'filter_scheduler': {
        'enabled_filters': ','.join(filters),
        'max_instances_per_host': rng.choice((4, 6))}}
    flavors = {
        name: {'vcpus': vcpus, 'memory': f'{512 * vcpus} MiB',
               'extra_specs': specs}
        for name, (vcpus, specs) in FLAVORS.items()
        if not (stock and 'nfv:' in str(specs))}
    chosen = rng.sample(sorted(flavors), 5)
    hosts = [_host(rng, number, stock)
             for number in range(rng.randrange(2, most_hosts + 1))]
    found = {
        'hosts': hosts, 'options': options,
        'networks': {'lan': {'tunneled': True},
                     'data': {'physical_network': 'data'}},
        'pci_aliases': {'nic': {'type': 'VF', **_movable(rng, 0.3)}},
        'flavors': {name: flavors[name] for name in chosen},
        'server_groups': {'group': {'policy': rng.choice(POLICIES)}},
        'steps': [{'boot': 'first', 'flavor': chosen[0]}]}
    if found['server_groups']['group']['policy'] == 'anti-affinity':
        found['server_groups']['group']['max_server_per_host'] = (
            rng.choice((1, 2)))
    if limited:
        found['aggregates'] = [{
            'name': 'switches', 'hosts': [hosts[0]['name']],
            'metadata': {'vswitch_ports_per_node': str(
                rng.choice((6, 8, 10)))}}]
    if not any('pci_devices' in each for each in hosts):
        del found['pci_aliases']
        for name in [name for name, each in found['flavors'].items()
                     if 'alias' in str(each)]:
            found['flavors'][name]['extra_specs'] = test_clouds.PINNED
    return found


def made(seed: int, most_hosts: int = 4,
         most_servers: int = 12) -> snapshot.Cloud:
    rng = random.Random(seed)
    document = _document(rng, most_hosts)
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        yaml.safe_dump(document, file)
        file.flush()
        with reading.loaded(file.name, seed=seed) as state:
            _inhabit(rng, state, document, most_servers)
            found = record.cloud(state)
    if rng.random() < 0.2:
        found = _with_cells(rng, found)
    return found


def _inhabit(rng: random.Random, state, document: dict,
             most: int) -> None:
    simulation = engine.Simulation(state)
    count = rng.randrange(most // 3, most + 1)
    for number in range(2 * most):
        running = [name for name, each in state.servers.items()
                   if each.status == servers.ACTIVE]
        if len(running) >= count:
            break
        if running and rng.random() < 0.2:
            name = rng.choice(running)
            simulation.step(actions.ServerStep(
                action='delete', number=number, targets=(name,)))
            continue
        name = f'vm-{number}'
        simulation.step(actions.Boot(
            action='boot', number=number, boot=name,
            flavor=rng.choice(sorted(document['flavors'])),
            targets=(name,), group=rng.choice((None, None, 'group')),
            networks=tuple(rng.sample(
                ('lan', 'data', 'lan'), rng.randrange(3)))))
        if rng.random() < 0.1 and simulation.outcomes[-1].ok:
            state.servers[name].status = servers.STOPPED
    for name in [name for name, each in state.servers.items()
                 if each.host is None]:
        del state.servers[name]
        for members in state.groups.values():
            if name in members:
                members.remove(name)


def _with_cells(rng: random.Random,
                found: snapshot.Cloud) -> snapshot.Cloud:
    """The same cloud with some of its hosts in another cell."""
    cells = {host.name: rng.choice(('cell1', 'cell2'))
             for host in found.hosts}
    return dataclasses.replace(
        found, hosts=tuple([
            dataclasses.replace(host, cell=cells[host.name])
            for host in found.hosts]),
        servers=tuple([
            dataclasses.replace(server, cell=cells[server.host or ''])
            for server in found.servers]))


def clouds(most_hosts: int = 4, most_servers: int = 12):
    """Strategy for clouds in which servers run, by their seeds."""
    return st.integers(0, 2 ** 32).map(
        lambda seed: (seed, made(seed, most_hosts, most_servers)))
