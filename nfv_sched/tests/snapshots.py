# SPDX-License-Identifier: Apache-2.0
"""Clouds as snapshots, made up by a random number generator."""

import dataclasses
import random
import uuid

from nfv_sched.ops.cloud import snapshot

GIB = 1024  # MiB
_NAMES = ('router', 'firewall', 'ims', 'cache', 'db', 'epc', 'dpi', 'lb')


def missing(*sentences):
    """Something missing of which no more is known, as in old files."""
    return tuple([
        snapshot.Missing(kind=snapshot.MissingKind.OTHER, text=sentence)
        for sentence in sentences])


def flavor(vcpus=1, memory=512, name='small', **extra_specs):
    return snapshot.Flavor(name=name, vcpus=vcpus, memory=memory,
                           extra_specs=extra_specs)


def node(number=0, cores=7, threads=2, nodes=2, shared=1, **fields):
    """Return a NUMA node whose first cores are for shared guests.

    :param cores: physical cores
    :param shared: cores for shared guests
    """
    all_cores = nodes * cores
    found = [frozenset(number * cores + core + thread * all_cores
                       for thread in range(threads))
             for core in range(cores)]
    values = dict(
        number=number, socket=number,
        shared=frozenset().union(*found[:shared]),
        dedicated=frozenset().union(*found[shared:]),
        siblings=tuple(found) if threads > 1 else (),
        memory=128 * GIB, pages=(
            snapshot.Pages(size=4, total=8 * GIB * 256, reserved=0),
            snapshot.Pages(size=GIB * 1024, total=120, reserved=1)))
    return snapshot.Node(**{**values, **fields})


def host(name='compute-1', nodes=None, **fields):
    """Return a host, with one NUMA node if none are given."""
    return snapshot.Host(**{**dict(
        name=name, hypervisor=name, uuid=uuid_of('host', name),
        nodes=(node(),) if nodes is None else tuple(nodes), vcpus=28,
        memory=256 * GIB), **fields})


def provider(uuid, traits=(), parent=None, aggregates=(), **inventories):
    """Return a resource provider; an inventory may be only its total."""
    return snapshot.Provider(
        uuid=uuid, name=uuid, parent=parent, traits=frozenset(traits),
        aggregates=frozenset(aggregates), inventories={
            name: each if isinstance(each, snapshot.Inventory) else
            snapshot.Inventory(total=each, max_unit=each)
            for name, each in inventories.items()})


def server(name='vm', pins=None, host='compute-1', shared=None, fields=None,
           **more):
    """A server.

    :param pins: host NUMA node -> CPUs that its vCPUs are pinned to
    :param shared: host NUMA node -> number of shared vCPUs
    :param fields: further fields of its NUMA nodes
    """
    nodes, vcpu = [], 0
    for number in sorted({*(pins or {}), *(shared or {})}):
        cpus = list((pins or {}).get(number, ()))
        dedicated = range(vcpu, vcpu + len(cpus))
        vcpu += len(cpus)
        floating = range(vcpu, vcpu + (shared or {}).get(number, 0))
        vcpu += len(floating)
        nodes.append(snapshot.GuestNode(**{**dict(
            host_node=number, pins=dict(zip(dedicated, cpus)),
            dedicated=frozenset(dedicated), shared=frozenset(floating),
            memory=GIB, page_size=GIB * 1024), **(fields or {})}))
    values = dict(
        uuid=uuid_of('server', f'{host} {name}'), name=name, host=host,
        flavor=flavor(vcpu or 1, max(len(nodes), 1) * GIB),
        nodes=tuple(nodes) or None)
    return snapshot.Server(**{**values, **more})


def cloud(hosts=(), servers=(), **fields):
    return snapshot.Cloud(**{**dict(
        taken='2026-11-22T10:00:00Z', source='made up', hosts=tuple(hosts),
        servers=tuple(servers)), **fields})


def with_uuids(cloud):
    """A cloud whose agents and networks have UUIDs, as files must."""
    return dataclasses.replace(
        cloud,
        network_agents=cloud.network_agents and tuple(dataclasses.replace(
            agent, serves=tuple(map(id_of, agent.serves)))
            for agent in cloud.network_agents),
        network_services=tuple(dataclasses.replace(
            service, id=id_of(service.id))
            for service in cloud.network_services))


def id_of(name):
    """A UUID that sorts as a short name does."""
    return name.encode().hex().ljust(32, '0')[:32]


def uuid_of(kind, name):
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f'{kind} {name}'))


def generated(hosts=3, nodes=2, cores=14, threads=1, guests=10, seed=1):
    """A cloud of NFV hosts after some churn.

    :param cores: of a NUMA node
    :param guests: of each host
    """
    dice = random.Random(seed)
    made = [_filled(f'compute-{number}', nodes, cores, threads, guests, dice)
            for number in range(1, hosts + 1)]
    return cloud(
        [each for each, _servers in made],
        [each for _host, servers in made for each in servers],
        options={'nfv_sched': {'vswitch_label': 'nfv_vswitch'}})


def _filled(name, nodes, cores, threads, guests, dice):
    made = {number: node(number, cores, threads, nodes, physnets=frozenset(
        ['nfv_vswitch', 'physnet0', 'nfv_node0'] if number == 0 else
        [f'physnet{number}', f'nfv_node{number}'] +
        (['nfv_osd'] if number == 1 else [])), tunneled=number == 0)
        for number in range(nodes)}
    free = {number: [cpu for core in range(number * cores, number * cores +
                                           cores)
                     for cpu in range(core, nodes * cores * threads,
                                      nodes * cores)
                     if cpu in each.dedicated]
            for number, each in made.items()}
    vfs = {number: [f'0000:{16 * number + 1:02x}:{slot // 8:02x}.{slot % 8}'
                    for slot in range(8, 24)] for number in made}
    taken, shared, pages, servers = {}, {}, {}, []
    for count in range(guests):
        kind = dice.choice(_NAMES)
        label = f'{kind}-{count}'
        here = dice.sample(sorted(made), min(nodes, dice.choice((1, 1, 1, 2))))
        if kind == 'cache':
            servers.append(server(label, host=name, ports=()))
            continue
        if kind == 'lb':
            amount = dice.randint(1, 4)
            shared[here[0]] = shared.get(here[0], 0) + amount
            pages[here[0]] = pages.get(here[0], 0) + 1
            servers.append(server(label, shared={here[0]: amount},
                                  host=name, ports=()))
            continue
        each = dice.choice((1, 2, 2, 3, 4, 6)) * threads
        if any(len(free[number]) < each for number in here):
            here, each = here[:1], 1
            if not free[here[0]]:
                continue
        pins = {}
        for number in here:
            pins[number] = free[number][:each]
            del free[number][:each]
            pages[number] = pages.get(number, 0) + 1
        made_server = server(
            label, pins, name,
            created=f'2026-11-{count % 28 + 1:02d}T00:00:00Z',
            ports=(snapshot.Port(id=f'{name} {count}'),)
            if kind == 'router' else ())
        if kind in ('dpi', 'epc'):
            near = dice.choice(sorted(made))
            for _device in range(min(dice.randint(1, 3), len(vfs[near]))):
                taken[vfs[near].pop()] = (near, made_server.uuid)
        servers.append(made_server)
    # Some have gone again, and the others are where they were.
    gone = {each.uuid for each in servers if dice.random() < .25}
    servers = [each for each in servers if each.uuid not in gone]
    pinned = {number: frozenset(
        cpu for each in servers for part in each.nodes or ()
        if part.host_node == number for cpu in part.pins.values())
        for number in made}
    return host(name, [snapshot.Node(
        number=each.number, socket=each.socket, shared=each.shared,
        dedicated=each.dedicated, siblings=each.siblings,
        pinned=pinned[number], memory=each.memory,
        memory_used=pages.get(number, 0) * GIB,
        shared_used=shared.get(number, 0), pages=(
            each.pages[0],
            snapshot.Pages(size=GIB * 1024, total=120, reserved=1,
                           used=pages.get(number, 0))),
        physnets=each.physnets, tunneled=each.tunneled)
        for number, each in made.items()],
        devices=_devices(made, taken, gone),
        enabled=dice.random() > .05, up=dice.random() > .03,
        aggregates=('nfv',), cpu_ratio=16.0,
        network=snapshot.HostNetwork(
            vswitch_ports=dice.randint(0, 120), security_rules=100,
            dhcp_servers=dice.randint(0, 3), routers=dice.randint(0, 2))
    ), servers


def _devices(numbers, taken, gone):
    found = []
    for number in numbers:
        bus = f'0000:{16 * number + 1:02x}'
        for port in range(2):
            found.append(snapshot.Device(
                address=f'{bus}:00.{port}', vendor='8086', product='1572',
                kind='type-PF', node=number, status='unavailable'))
        for slot in range(8, 24):
            address = f'{bus}:{slot // 8:02x}.{slot % 8}'
            used = taken.get(address)
            used = used if used and used[1] not in gone else None
            found.append(snapshot.Device(
                address=address, vendor='8086', product='154c',
                kind='type-VF', node=number, parent=f'{bus}:00.{slot % 2}',
                status='allocated' if used else 'available',
                server=used and used[1]))
    return tuple(found)
