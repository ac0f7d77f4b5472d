# SPDX-License-Identifier: Apache-2.0
"""Describe the assumed ports of requests in documents."""

import dataclasses
import typing as ty

if ty.TYPE_CHECKING:
    from nfv_sched.ops.model.requests import assumed_ports


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PortsOfKind:
    """Ports of one kind."""

    vnic_type: str  #: Neutron's vNIC type, such as "normal" or "direct"
    #: name of the physical network; null if the network has none
    physical_network: str | None
    count: int  #: number of ports


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NewPorts:
    """The ports that each new server is assumed to have."""

    kinds: tuple[PortsOfKind, ...]  #: its ports
    #: reason for the assumption: "servers" if most servers of the flavor have
    #: such ports, "server" for --like, "networks" for --network, "number" for
    #: --ports, "no_servers" if there are none to learn from, "unread" if
    #: Neutron was not read
    basis: str
    #: number of servers of the flavor with known ports; null unless the basis
    #: is "servers"
    servers: int | None
    #: number of them that have these ports; null likewise
    servers_alike: int | None
    like: str | None  #: name of the server of --like; null without it


def new_ports(ports: 'assumed_ports.Ports') -> NewPorts:
    learnt = ports.basis == 'servers'
    return NewPorts(
        kinds=tuple([PortsOfKind(
            vnic_type=vnic_type, physical_network=physnet or None, count=count)
            for vnic_type, physnet, count in ports.per_kind()]),
        basis=ports.basis.value, servers=ports.servers if learnt else None,
        servers_alike=ports.alike if learnt else None,
        like=ports.server or None)
