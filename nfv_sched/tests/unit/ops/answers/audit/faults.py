# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted in a cloud, and where they can be."""

from collections.abc import Callable, Iterator
import dataclasses
import typing as ty

from nfv_sched.limits import names
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import snapshot

NOBODY = '99999999-0000-4000-8000-000000000000'
SWITCH = 'nfv_vswitch'
SERVER = object()
_VSWITCH = 'nfv:vswitch_numa_affinity'
_THREADS = 'hw:cpu_thread_policy'


class Spot(ty.NamedTuple):
    """Where a fault can be."""

    cloud: snapshot.Cloud
    host: snapshot.Host
    server: snapshot.Server | None = None

    def change(self, host: dict | None = None, server: dict | None = None,
               **cloud) -> snapshot.Cloud:
        changed = self.cloud
        if host is not None:
            changed = replace_host(changed, self.host, **host)
        if server is not None:
            changed = replace_server(changed, self.server, **server)
        return dataclasses.replace(changed, **cloud)

    def with_node(self, number: int, **fields) -> tuple:
        return tuple(
            dataclasses.replace(node, **fields)
            if node.number == number else node for node in self.host.nodes)

    def node(self, number: int) -> snapshot.Node:
        node, = (node for node in self.host.nodes if node.number == number)
        return node

    def with_inventory(self, name: str, change: int,
                       provider: str | None = None) -> tuple:
        """The providers of the host, with another amount of one class."""
        provider = provider or self.host.uuid
        return tuple(
            dataclasses.replace(each, inventories={
                **each.inventories, name: dataclasses.replace(
                    each.inventories[name],
                    total=each.inventories[name].total + change)})
            if each.uuid == provider else each
            for each in self.host.providers)


def replace_host(cloud, host, **fields) -> snapshot.Cloud:
    return dataclasses.replace(cloud, hosts=tuple(
        dataclasses.replace(each, **fields) if each.uuid == host.uuid
        else each for each in cloud.hosts))


def replace_server(cloud, server, **fields) -> snapshot.Cloud:
    return dataclasses.replace(cloud, servers=tuple(
        dataclasses.replace(each, **fields) if each.uuid == server.uuid
        else each for each in cloud.servers))


class Fault(ty.NamedTuple):
    """A fault.

    :ivar kind: of the finding
    :ivar of_server: whether the finding names the server
    :ivar allowed: further kinds that the same fault shows by
    """

    kind: str
    spots: Callable[[snapshot.Cloud], Iterator[Spot]]
    plant: Callable[[Spot], snapshot.Cloud]
    of_server: bool = True
    allowed: tuple[str, ...] = ()


def _of_servers(test) -> Callable[[snapshot.Cloud], Iterator[Spot]]:
    def spots(cloud):
        for site in hosts.sites(cloud):
            if site.host.up:
                for server in site.steady:
                    spot = Spot(cloud, site.host, server)
                    if test(spot):
                        yield spot
    return spots


def _of_hosts(test) -> Callable[[snapshot.Cloud], Iterator[Spot]]:
    def spots(cloud):
        for site in hosts.sites(cloud):
            spot = Spot(cloud, site.host)
            if site.host.up and not site.moves and test(spot):
                yield spot
    return spots


def _legacy(spot: Spot) -> bool:
    return any(node.shared & node.dedicated for node in spot.host.nodes)


def _asks(key: str, *expected: str) -> Callable[[Spot], bool]:
    return lambda spot: spot.server.flavor.extra_specs.get(key) in expected


def _pinned(spot: Spot) -> bool:
    return bool(spot.server.nodes) and all(
        part.pins for part in spot.server.nodes)


def _other_node(spot: Spot) -> int:
    own = {part.host_node for part in spot.server.nodes}
    return next(node.number for node in spot.host.nodes
                if node.number not in own)


def _move_label(label: str) -> Callable[[Spot], snapshot.Cloud]:
    """A network, or the switch, is on another node now."""
    def plant(spot):
        there = _other_node(spot)
        return spot.change(host={'nodes': tuple(dataclasses.replace(
            node, physnets=node.physnets - {label} | (
                {label} if node.number == there else set()))
            for node in spot.host.nodes)})
    return plant


def _on_one(spot: Spot) -> bool:
    return bool(spot.server.nodes) and len(spot.server.nodes) == 1


def _remove_device(spot: Spot) -> snapshot.Cloud:
    """A device of the server is near another node now."""
    there = _other_node(spot)
    return spot.change(host={'devices': tuple(
        dataclasses.replace(device, node=there)
        if device.server == spot.server.uuid else device
        for device in spot.host.devices)})


def _in_doubt(spot: Spot) -> bool:
    """Whether its devices may be those from before a move on its host."""
    return any(move.server == spot.server.uuid and move.source == move.target
               for move in spot.cloud.moves or ())


def _has_devices(*keys: tuple[str, str]) -> Callable[[Spot], bool]:
    def test(spot):
        specs = spot.server.flavor.extra_specs
        return _on_one(spot) and bool(spot.server.devices) and (
            not _in_doubt(spot)) and (
            any(specs.get(key) == value for key, value in keys)
            if keys else not any(specs.get(key) in (
                'strict', 'required', 'socket') for key in (
                    'nfv:pci_numa_affinity', 'hw:pci_numa_affinity_policy')))
    return test


def _repin(spot: Spot, vcpu: int, cpu: int) -> snapshot.Cloud:
    part = spot.server.nodes[0]
    node = spot.node(part.host_node)
    nodes = (dataclasses.replace(part, pins={**part.pins, vcpu: cpu}),
             *spot.server.nodes[1:])
    changed = Spot(spot.change(server={'nodes': nodes}), spot.host)
    return changed.change(host={'nodes': spot.with_node(
        node.number, pinned=node.pinned - {part.pins[vcpu]} | {cpu})})


def _neighbours(spot: Spot) -> list[int]:
    """CPUs of other servers on the first node of the server."""
    part = spot.server.nodes[0]
    return sorted(
        cpu for site in hosts.sites(spot.cloud)
        if site.host.uuid == spot.host.uuid
        for server, other in site.certain
        if server.uuid != spot.server.uuid and _THREADS not in (
            server.flavor.extra_specs)
        and other.host_node == part.host_node for cpu in other.pins.values())


def _pin_twice(spot: Spot) -> snapshot.Cloud:
    vcpu = min(spot.server.nodes[0].pins)
    return _repin(spot, vcpu, _neighbours(spot)[0])


def _no_threads(spot: Spot) -> bool:
    return _pinned(spot) and _THREADS not in spot.server.flavor.extra_specs


def _lonely_core(spot: Spot) -> int | None:
    """A free CPU whose siblings are free, too."""
    node = spot.node(spot.server.nodes[0].host_node)
    return next((min(core) for core in node.siblings
                 if core <= node.free), None)


def _part_siblings(spot: Spot) -> snapshot.Cloud:
    return _repin(spot, min(spot.server.nodes[0].pins), _lonely_core(spot))


def _take_from_set(spot: Spot) -> snapshot.Cloud:
    """A CPU of the server is not for pinned guests any more."""
    part = spot.server.nodes[0]
    node = spot.node(part.host_node)
    cpu = min(part.pins.values())
    return spot.change(host={
        'nodes': spot.with_node(
            node.number, dedicated=node.dedicated - {cpu},
            pinned=node.pinned - {cpu}),
        'providers': spot.with_inventory('PCPU', -1)})


def _first_with(test) -> Callable[[Spot], int | None]:
    return lambda spot: next((node.number for node in spot.host.nodes
                              if test(node)), None)


_with_free = _first_with(lambda node: node.free)


def _take_cpu(spot: Spot) -> snapshot.Cloud:
    node = spot.node(_with_free(spot))
    return spot.change(host={'nodes': spot.with_node(
        node.number, pinned=node.pinned | {min(node.free)})})


def _take_memory(spot: Spot) -> snapshot.Cloud:
    node = spot.host.nodes[0]
    return spot.change(host={'nodes': spot.with_node(
        node.number, memory_used=node.memory_used + 1024)})


def _take_pages(spot: Spot) -> snapshot.Cloud:
    node = spot.host.nodes[-1]
    return spot.change(host={'nodes': spot.with_node(
        node.number, pages=(*node.pages[:-1], dataclasses.replace(
            node.pages[-1], used=node.pages[-1].used + 1)))})


def _forget_cpu(spot: Spot) -> snapshot.Cloud:
    part = spot.server.nodes[0]
    node = spot.node(part.host_node)
    return spot.change(host={'nodes': spot.with_node(
        node.number, pinned=node.pinned - {min(part.pins.values())})})


def _forget_memory(spot: Spot) -> snapshot.Cloud:
    node = next(node for node in spot.host.nodes if node.memory_used)
    return spot.change(host={'nodes': spot.with_node(
        node.number, memory_used=node.memory_used - 1)})


def _free_device(spot: Spot) -> snapshot.Device | None:
    return next((device for device in spot.host.devices
                 if device.status == 'available'), None)


def _give_device(spot: Spot) -> snapshot.Cloud:
    free = _free_device(spot)
    return spot.change(host={'devices': tuple(
        dataclasses.replace(device, status='allocated', server=NOBODY)
        if device is free else device for device in spot.host.devices)})


def _bind_device(spot: Spot) -> snapshot.Cloud:
    port = snapshot.Port(
        id='port', network='net', vnic_type='direct',
        device=_free_device(spot).address)
    return spot.change(server={'ports': (*spot.server.ports, port)})


def _change_devices(mine: bool, **fields) -> Callable[[Spot], snapshot.Cloud]:
    """A device of the server, or a free one, is another one now."""
    def plant(spot):
        server = spot.server.uuid
        device = next(each for each in spot.host.devices
                      if (each.server == server if mine else each.server
                          is None and each.status == 'available'))
        return spot.change(host={'devices': tuple(
            dataclasses.replace(each, **{
                name: server if value is SERVER else value
                for name, value in fields.items()})
            if each is device else each for each in spot.host.devices)})
    return plant


def _with_devices(spot: Spot) -> bool:
    return bool(spot.server.devices) and not _in_doubt(spot)


def _fewer_pages(spot: Spot) -> snapshot.Cloud:
    """Pages are gone after a reboot."""
    node = spot.node(_with_huge_pages(spot))
    return spot.change(host={'nodes': spot.with_node(
        node.number, pages=tuple(
            dataclasses.replace(each, total=each.used - 1)
            if each.used else each for each in node.pages))})


_with_huge_pages = _first_with(lambda node: any(
    each.used and each.size > 4 for each in node.pages))
_with_memory = _first_with(lambda node: node.memory_used)


def _less_memory(spot: Spot) -> snapshot.Cloud:
    node = spot.node(_with_memory(spot))
    return spot.change(host={'nodes': spot.with_node(
        node.number, memory=node.memory_used - 1)})


def _allocate(spot: Spot, provider: str, **amounts: int) -> snapshot.Cloud:
    found = spot.server.allocations
    return spot.change(server={'allocations': {
        **found, provider: {**found.get(provider, {}), **amounts}}})


def _elsewhere(spot: Spot) -> snapshot.Host:
    return next((host for host in spot.cloud.hosts
                 if host.up and host.uuid not in spot.server.allocations
                 and host.uuid != spot.host.uuid), None)


def _ledger(spot: Spot) -> str:
    return names.provider_uuid(spot.host.uuid)


def _idle(spot: Spot) -> bool:
    """Whether nothing is going on here, so that the ledger is looked at."""
    found, = (site for site in hosts.sites(spot.cloud)
              if site.host.uuid == spot.host.uuid)
    return len(found.steady) == len(found.servers)


def _add_floating(spot: Spot) -> snapshot.Cloud:
    server = dataclasses.replace(
        spot.cloud.servers[0], uuid=NOBODY, name='floating',
        pci_requests=(),
        host=spot.host.name, cell=spot.host.cell, nodes=None, devices=(),
        state='active', task=None, ports=(), group=None,
        flavor=snapshot.Flavor(name='floating', vcpus=2, memory=512),
        allocations={spot.host.uuid: {'VCPU': 2, 'MEMORY_MB': 512}})
    return spot.change(servers=(*spot.cloud.servers, server))


def _small_free(spot: Spot) -> int | None:
    small = view.small_pages(spot.host, [
        server for server in spot.cloud.servers
        if server.host == spot.host.name])
    return None if small is None else small.free_mib


def _use_reserve(spot: Spot) -> snapshot.Cloud:
    """A server without NUMA nodes that takes 1 MiB more than there is."""
    needed = _small_free(spot) + 1
    cloud = _add_floating(spot)
    server = cloud.servers[-1]
    return dataclasses.replace(cloud, servers=(
        *cloud.servers[:-1], dataclasses.replace(
            server, flavor=dataclasses.replace(server.flavor, memory=needed),
            allocations={spot.host.uuid: {'VCPU': 2, 'MEMORY_MB': needed}})))


def _has_pinned(spot: Spot) -> bool:
    return any(server.host == spot.host.name and server.task is None
               and any(part.pins for part in server.nodes or ())
               for server in spot.cloud.servers)


def _ask_pages(spot: Spot) -> snapshot.Cloud:
    return spot.change(server={'flavor': dataclasses.replace(
        spot.server.flavor, extra_specs={
            **spot.server.flavor.extra_specs, 'hw:mem_page_size': '1GB'})})


def _ask_node(spot: Spot) -> snapshot.Cloud:
    """The flavor says another node; the server is older than that."""
    return spot.change(server={'flavor': dataclasses.replace(
        spot.server.flavor, extra_specs={
            **spot.server.flavor.extra_specs,
            'nfv:numa_node.0': str(_other_node(spot))})})


def _stale(spot: Spot) -> snapshot.Cloud:
    return spot.change(moves=(*(spot.cloud.moves or ()), snapshot.Migration(
        uuid=NOBODY, server=spot.server.uuid, kind='live-migration',
        status='running', source=spot.host.name,
        updated='2026-01-01T00:00:00Z')))


def _orphan(spot: Spot) -> snapshot.Cloud:
    return spot.change(consumers={
        **(spot.cloud.consumers or {}),
        NOBODY: {spot.host.uuid: {'MEMORY_MB': 512}}})


def _unshare(spot: Spot) -> snapshot.Cloud:
    """The node of the shared vCPU has no shared CPUs any more."""
    node = spot.node(spot.server.nodes[0].host_node)
    return spot.change(host={
        'nodes': spot.with_node(node.number, shared=frozenset()),
        'providers': spot.with_inventory('VCPU', -len(node.shared))})


def _serve(spot: Spot, subnets: int = 0) -> snapshot.Cloud:
    """A DHCP server of a network runs here."""
    return spot.change(network_agents=(snapshot.NetworkAgent(
        id=NOBODY, kind=snapshot.DHCP, host=spot.host.name, serves=(NOBODY,)),
    ), network_services=(snapshot.NetworkService(
        id=NOBODY, kind=snapshot.DHCP, subnets=subnets),))


#: By name.
FAULTS: dict[str, Fault] = {
    'switch moved': Fault(
        values.POLICY, _of_servers(lambda spot: _on_one(spot) and _asks(
            _VSWITCH, 'strict')(spot)), _move_label(SWITCH)),
    'flavor older': Fault(
        values.POLICY, _of_servers(lambda spot: _on_one(spot) and (
            'nfv:numa_node.0' not in spot.server.flavor.extra_specs)),
        _ask_node),
    'strict device': Fault(
        values.POLICY, _of_servers(_has_devices(
            ('nfv:pci_numa_affinity', 'strict'),
            ('hw:pci_numa_affinity_policy', 'required'))), _remove_device),
    'siblings': Fault(
        values.POLICY, _of_servers(lambda spot: _asks(
            _THREADS, 'require')(spot) and _lonely_core(spot) is not None),
        _part_siblings),
    'no shared CPUs': Fault(
        values.POLICY, _of_servers(lambda spot: _asks(
            'nfv:shared_vcpu', '0')(spot) and len(
                [node for node in spot.host.nodes if node.shared]) > 1),
        _unshare, allowed=(values.OVERUSED,)),
    'device': Fault(values.REMOTE_DEVICE, _of_servers(_has_devices()),
                    _remove_device),
    'network': Fault(
        values.REMOTE_NETWORK, _of_servers(lambda spot: _on_one(spot) and any(
            port.vnic_type == 'normal' and port.physnet == 'physnet0'
            for port in spot.server.ports) and 'physnet0' in spot.node(
                spot.server.nodes[0].host_node).physnets),
        _move_label('physnet0')),
    'pinned twice': Fault(
        values.PINNED_TWICE, _of_servers(lambda spot: _no_threads(
            spot) and bool(_neighbours(spot))), _pin_twice, False),
    'not dedicated': Fault(
        values.NOT_DEDICATED, _of_servers(lambda spot: _pinned(spot)
                                          and not _legacy(spot)),
        _take_from_set),
    'unknown CPU': Fault(
        values.UNKNOWN_GUEST, _of_hosts(
            lambda spot: _with_free(spot) is not None), _take_cpu, False),
    'unknown memory': Fault(values.UNKNOWN_GUEST, _of_hosts(
        lambda spot: True), _take_memory, False),
    'unknown pages': Fault(values.UNKNOWN_GUEST, _of_hosts(
        lambda spot: True), _take_pages, False),
    'CPU not recorded': Fault(
        values.NOT_IN_RECORD, _of_servers(_pinned), _forget_cpu),
    'memory not recorded': Fault(
        values.NOT_IN_RECORD, _of_hosts(lambda spot: any(
            node.memory_used for node in spot.host.nodes)), _forget_memory,
        False),
    'device of nobody': Fault(
        values.DEVICE_GONE, _of_hosts(
            lambda spot: _free_device(spot) is not None), _give_device,
        False),
    'free device': Fault(
        values.DEVICE_OTHER, _of_servers(
            lambda spot: _free_device(spot) is not None), _bind_device),
    'device lost': Fault(
        values.DEVICE_MISSING, _of_servers(_with_devices), _change_devices(
            True, server=None, request=None, status='available')),
    'device given': Fault(
        values.DEVICE_EXTRA, _of_servers(
            lambda spot: _with_devices(spot) and bool(_free_device(spot))),
        _change_devices(False, server=SERVER, status='allocated'),
        allowed=(values.POLICY, values.REMOTE_DEVICE)),
    'device of no request': Fault(
        values.DEVICE_EXTRA, _of_servers(_with_devices),
        lambda spot: spot.change(server={'pci_requests': ()})),
    'other product': Fault(
        values.DEVICE_DIFFERS, _of_servers(
            # Requests of ports name a physical network only.
            lambda spot: _with_devices(spot) and all(
                'product_id' in spec for request in spot.server.pci_requests
                for spec in request.specs)),
        _change_devices(True, product='ffff')),
    'other type': Fault(
        values.DEVICE_DIFFERS, _of_servers(_with_devices),
        _change_devices(True, kind='type-PF')),
    'fewer pages': Fault(
        values.OVERUSED, _of_hosts(
            lambda spot: _with_huge_pages(spot) is not None), _fewer_pages,
        False, allowed=(values.RESERVE,)),
    'less memory': Fault(
        values.OVERUSED, _of_hosts(
            lambda spot: _with_memory(spot) is not None), _less_memory,
        False),
    'memory of the host': Fault(
        values.OVERUSED, _of_hosts(lambda spot: True),
        lambda spot: spot.change(host={
            'memory_used': spot.host.memory + 1}), False),
    'allocated': Fault(
        values.OVERUSED, _of_hosts(lambda spot: bool(
            spot.host.providers[0].inventories['MEMORY_MB'].used)),
        lambda spot: spot.change(host={'providers': spot.with_inventory(
            'MEMORY_MB', -spot.host.memory)}), False),
    'no allocation': Fault(
        values.ALLOCATION_MISSING, _of_servers(lambda spot: True),
        lambda spot: spot.change(server={'allocations': {}}),
        allowed=(values.LEDGER,)),
    'too many PCPUs': Fault(
        values.ALLOCATION_DIFFERS, _of_servers(lambda spot: True),
        lambda spot: _allocate(spot, spot.host.uuid, PCPU=17)),
    'on two hosts': Fault(
        values.ALLOCATION_ELSEWHERE, _of_servers(
            lambda spot: _elsewhere(spot) is not None),
        lambda spot: _allocate(spot, _elsewhere(spot).uuid, MEMORY_MB=512)),
    'orphan': Fault(values.ALLOCATION_ORPHAN, _of_hosts(lambda spot: True),
                    _orphan, False),
    'inventory': Fault(
        values.INVENTORY, _of_hosts(lambda spot: not _legacy(spot)),
        lambda spot: spot.change(host={
            'providers': spot.with_inventory('PCPU', -1)}), False),
    'no provider': Fault(
        values.INVENTORY, _of_hosts(lambda spot: True),
        lambda spot: spot.change(host={'providers': ()}), False,
        allowed=(values.ALLOCATION_MISSING, values.LEDGER)),
    'floating': Fault(
        values.FLOATING, _of_hosts(lambda spot: _legacy(
            spot) and _has_pinned(spot)), _add_floating, False),
    'pages': Fault(
        values.PAGES, _of_servers(
            lambda spot: 'hw:mem_page_size' not in (
                spot.server.flavor.extra_specs)), _ask_pages),
    'ledger': Fault(
        values.LEDGER, _of_hosts(_idle), lambda spot: spot.change(host={
            'providers': spot.with_inventory(
                names.PORTS, 1, _ledger(spot))}), False),
    'stale move': Fault(
        values.STALE_MOVE, _of_servers(
            lambda spot: spot.server.state != 'resized'), _stale),
    'reserve': Fault(
        values.RESERVE, _of_hosts(lambda spot: _small_free(spot) is not None),
        _use_reserve, False, allowed=(values.INVENTORY, values.FLOATING,
                                      values.ALLOCATION_DIFFERS)),
    'subnets': Fault(values.SUBNETS, _of_hosts(lambda spot: True),
                     lambda spot: _serve(spot, subnets=251), False),
    'addresses': Fault(
        values.ADDRESSES, _of_servers(lambda spot: True),
        lambda spot: _serve(spot._replace(cloud=spot.change(server={'ports': (
            *spot.server.ports, *[snapshot.Port(
                id=f'port{number}', network=NOBODY, vnic_type='direct')
                for number in range(1025)])}))), False),
    'no host mapping': Fault(
        values.UNMAPPED, _of_hosts(lambda spot: True),
        lambda spot: spot.change(host={'mapped': False}), False),
}
