# SPDX-License-Identifier: Apache-2.0
"""Describe the servers on a host, and what is remote from them."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.simulation import document as simulated
from nfv_sched.ops.cloud import snapshot

# Ports of these types are on the virtual switch.
_ON_SWITCH = ('normal', 'macvtap-none', 'vhostuser')


def labels(servers: Iterable[snapshot.Server]) -> dict[str, str]:
    """Return a label for each server of a host, by UUID.

    It is the name, with a part of the UUID unless the name is unique here.
    """
    uuids_by_name: dict[str, list[str]] = {}
    for server in servers:
        uuids_by_name.setdefault(server.name.strip(), []).append(server.uuid)
    return {uuid: name if name and len(uuids) == 1 else
            f'{name} ({uuid[:8]})'.strip()
            for name, uuids in uuids_by_name.items() for uuid in uuids}


def server_on_host(
    server: snapshot.Server, host: snapshot.Host, label: str,
    switch: frozenset[int],
) -> document.ServerOnHost:
    """Return a server on a host.

    :param switch: numbers of the nodes with the virtual switch; empty if the
        host does not report them
    """
    parts = _parts(server.nodes or ())
    return document.ServerOnHost(
        server=server.name, server_id=server.uuid, label=label,
        project_id=server.project or None, flavor=server.flavor.name,
        flavor_id=server.flavor.id or None, state=server.state,
        vcpus=server.flavor.vcpus, memory_mib=server.flavor.memory,
        numa_nodes=parts, remote=tuple(_remote(
            server, host, {part.node for part in parts},
            switch)) if parts else ())


def _parts(nodes: Sequence[snapshot.GuestNode],
           ) -> tuple[document.ServerPart, ...]:
    by_node: dict[int, list[snapshot.GuestNode]] = {}
    for node in nodes:
        by_node.setdefault(node.host_node, []).append(node)
    return tuple([
        document.ServerPart(
            node=number,
            pinned_vcpus=sum(len(node.dedicated) for node in guest_nodes),
            shared_vcpus=sum(len(node.shared) for node in guest_nodes),
            memory_mib=sum(node.memory for node in guest_nodes),
            page_size_kib=guest_nodes[0].page_size,
            pins=tuple([simulated.PinnedVCPU(vcpu=vcpu, cpu=cpu)
                        for vcpu, cpu in sorted(
                            pin for node in guest_nodes
                            for pin in node.pins.items())]))
        for number, guest_nodes in sorted(by_node.items())])


def _remote(server: snapshot.Server, host: snapshot.Host, own: set[int],
            switch: frozenset[int]) -> list[str]:
    """Describe devices and networks near none of a server's NUMA nodes."""
    reasons = []
    for device in host.devices:
        if device.server == server.uuid and device.node is not None and (
                device.node not in own):
            reasons.append(f'device {device.address} is near node '
                           f'{device.node}')
    near_nodes = near(host)
    for network in sorted({
            port.physnet for port in server.ports or ()
            if port.physnet is not None and port.device is None}):
        nodes = near_nodes.get(network)
        if nodes and own.isdisjoint(nodes):
            reasons.append(f'network {network} is near node '
                           f'{_listed(nodes)}')
    if switch and own.isdisjoint(switch) and any(
            port.vnic_type in _ON_SWITCH for port in server.ports or ()):
        reasons.append(f'the virtual switch is on node {_listed(switch)}')
    return reasons


def near(host: snapshot.Host) -> Mapping[str, set[int]]:
    """Return the nodes near each physical network or label, as numbers."""
    nodes_by_network: dict[str, set[int]] = {}
    for node in host.nodes or ():
        for network in node.physnets:
            nodes_by_network.setdefault(network, set()).add(node.number)
    return nodes_by_network


def _listed(numbers: Iterable[int]) -> str:
    return ', '.join(map(str, sorted(numbers)))
