# SPDX-License-Identifier: Apache-2.0
"""Clouds full of guests, as snapshots, made quickly.

Guests are put on hosts as the filters and the claim would put them, with no
server booted, so that clouds of a thousand hosts are there in seconds.
"""

import dataclasses
import itertools
import random
import uuid

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import arrangements
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator import start

PINNED = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '1GB'}
SIZES = (2, 4, 6, 8, 10, 12)
FILTERS = ('ComputeFilter', 'ComputeCapabilitiesFilter',
           'ImagePropertiesFilter', 'ServerGroupAntiAffinityFilter',
           'ServerGroupAffinityFilter', 'PciPassthroughFilter',
           'NFVTopologyFilter', 'VSwitchNUMAAffinityFilter',
           'PCINUMAAffinityFilter', 'SharedVCPUFilter')


def flavor(vcpus, name=None, **specs):
    """Return a flavor of pinned guests with 1 GiB pages; ``__`` is a colon."""
    return snapshot.Flavor(
        name=name or f'pinned.{vcpus}', vcpus=vcpus, memory=vcpus * 1024,
        extra_specs={**PINNED, **{
            key.replace('__', ':'): value for key, value in specs.items()}})


def node(number, cores, nodes, threads=2, pages=None, labels=()):
    """Return an empty NUMA node.

    :param cores: physical cores, one of them for shared guests
    :param pages: pages of 1 GiB
    """
    siblings = tuple(
        frozenset(number * cores + core + thread * nodes * cores
                  for thread in range(threads)) for core in range(cores))
    pages = cores * threads * 2 if pages is None else pages
    return snapshot.Node(
        number=number, socket=number, shared=siblings[0],
        dedicated=frozenset().union(*siblings[1:]), siblings=siblings,
        memory=(pages + 8) * 1024, physnets=frozenset(
            {f'nfv_node{number}', *labels} | (
                set() if number else {'nfv_vswitch'})),
        pages=(snapshot.Pages(size=4, total=8 * 1024 * 256),
               snapshot.Pages(size=1048576, total=pages)))


def host(name, cores=16, nodes=2, threads=2, **fields):
    made = tuple(node(number, cores, nodes, threads)
                 for number in range(nodes))
    pcpus = sum(len(each.dedicated) for each in made)
    memory = sum(each.memory for each in made)
    own = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
    return snapshot.Host(**{**dict(
        name=name, hypervisor=name, uuid=own, cell='cell1', nodes=made,
        vcpus=pcpus + nodes * threads, memory=memory, cpu_ratio=4.0,
        memory_ratio=1.0, disk_ratio=1.0, stats={'num_instances': '0'},
        providers=(snapshot.Provider(uuid=own, name=name, traits=frozenset(
            ('HW_CPU_HYPERTHREADING',) if threads > 1 else ()), inventories={
            'PCPU': snapshot.Inventory(total=pcpus, max_unit=pcpus),
            'VCPU': snapshot.Inventory(
                total=nodes * threads, ratio=4.0, max_unit=nodes * threads),
            'MEMORY_MB': snapshot.Inventory(
                total=memory, max_unit=memory)}),)), **fields})


def cloud(hosts, flavors, filters=FILTERS, **fields):
    return snapshot.Cloud(
        taken='2026-11-22T10:00:00Z', hosts=tuple(hosts),
        flavors=tuple(flavors), options={
            'filter_scheduler': {'enabled_filters': list(filters)}}, **fields)


def filled(empty, share, seed=1, flavors=None, most=None):
    """Return a cloud with guests on hosts that are taken at random.

    A third of those that come go again, so that there are gaps.

    :param share: share of the CPUs for pinned guests that are pinned then
    :param flavors: those of the guests; None for all of the cloud
    """
    rng = random.Random(seed)
    flavors = list(flavors or empty.flavors)
    total = sum(len(each.dedicated) for host in empty.hosts
                for each in host.nodes)
    with start.started(empty) as state:
        known = arrangements.Positions(
            empty, state, capacity.NewServers(ports=0))
        guests = {each.name: known.new(each) for each in flavors}
        now = {name: known.position(name) for name in known.hosts}
        names, servers, used, tries = list(now), {}, 0, 0
        while used < share * total and tries < 20 * total and (
                most is None or len(servers) < most):
            tries += 1
            chosen, name = rng.choice(flavors), rng.choice(names)
            uid = str(uuid.UUID(int=rng.getrandbits(128), version=4))
            after = now[name].put(guests[chosen.name], uid)
            if after is None:
                continue
            servers[uid] = _server(
                uid, tries, chosen, known.of_name[name], after)
            now[name] = after
            used += chosen.vcpus
            if rng.random() < .33:
                gone = rng.choice(sorted(servers))
                where = servers[gone].host
                now[where] = known.without(now[where], gone)
                used -= servers.pop(gone).flavor.vcpus
        return dataclasses.replace(
            empty, servers=tuple(servers.values()), hosts=tuple(
                _host(each, now[each.name], len([
                    server for server in servers.values()
                    if server.host == each.name])) for each in empty.hosts))


def _server(uid, number, chosen, where, position):
    held = position.came[uid]
    count = itertools.count()
    made = []
    for share in held.shares:
        pins = dict(zip(count, sorted(share.cpus)))
        made.append(snapshot.GuestNode(
            host_node=where.nodes[share.position].number, pins=pins,
            dedicated=frozenset(pins), memory=share.memory,
            page_size=share.page_size, cpu_policy='dedicated'))
    return snapshot.Server(
        uuid=uid, name=f'vm-{number}', host=where.name, cell=where.cell,
        project='11111111111111111111111111111111', flavor=chosen,
        nodes=tuple(made), ports=(), allocations={
            provider: dict(amounts)
            for provider, amounts in held.allocations.items()})


def _host(found, position, guests):
    used = position.used.providers
    cells = {cell.id: cell for cell in position.room.host.cells}
    return dataclasses.replace(
        found, stats={'num_instances': str(guests)},
        memory_used=position.load.memory, vcpus_used=position.load.vcpus,
        providers=tuple(dataclasses.replace(provider, inventories={
            name: dataclasses.replace(
                inventory, used=used[provider.uuid].used.get(name, 0))
            for name, inventory in provider.inventories.items()})
            for provider in found.providers),
        nodes=tuple(dataclasses.replace(
            each, pinned=each.dedicated - cells[each.number].free_cpus,
            memory_used=cells[each.number].memory_usage,
            pages=tuple(dataclasses.replace(
                pages, used=pages.total - now.free_kb // now.size_kb)
                for pages, now in zip(
                    each.pages, cells[each.number].pages)))
            for each in found.nodes))
