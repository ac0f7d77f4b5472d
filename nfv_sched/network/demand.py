#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""What a request takes of the network of a node.

Plain values from the networks and ports of a request; what has to be looked
up, such as the vNIC type of a port or the rules of a security group, comes
from the snapshot.  No I/O.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import typing as ty

from nfv_sched.network import usage

# What a request says instead of a network, and instead of a security group.
NO_NETWORK = 'none'
AUTO_NETWORK = 'auto'
DEFAULT_GROUP = 'default'


class NIC(ty.NamedTuple):
    """One network interface of a request.

    :ivar network: UUID of the network, ``auto`` or ``none``; None if a port
        is given
    :ivar port: UUID of a port that exists, or None
    :ivar pci_request: UUID of the PCI request that serves it, or None
    """

    network: str | None = None
    port: str | None = None
    pci_request: str | None = None


class NetworkDemand(ty.NamedTuple):
    """What a guest takes of the network of the node that it goes to.

    :ivar vswitch_ports: ports of the virtual switch
    :ivar vfs: virtual functions, of ports and aliases
    :ivar pci_nics: whole NICs, of ports and aliases
    :ivar rules: security-group rules, ingress and egress, of the ports of the
        virtual switch
    :ivar port_rules: the most rules on one of them
    """

    vswitch_ports: int = 0
    vfs: int = 0
    pci_nics: int = 0
    rules: int = 0
    port_rules: int = 0


def of_request(
    interfaces: Iterable[NIC], vfs: int, pci_nics: int, port_devices: int,
    security_groups: Sequence[str], project: str | None,
    snapshot: usage.Snapshot | None, instance: str | None = None,
) -> NetworkDemand:
    """What the guest of a request takes.

    A port that the snapshot does not know yet has the rules of the project's
    security group ``default``, which Neutron gives it if not told otherwise.
    Without a snapshot no rules are known.  For a server that exists its own
    ports count, and those of the request that the snapshot does not know yet.

    :param interfaces: its network interfaces
    :param vfs: virtual functions of its PCI requests
    :param pci_nics: physical functions of its PCI requests
    :param port_devices: devices that its ports want
    :param security_groups: UUIDs of the security groups that the ports get
        that do not exist yet, or ``default`` for that of the project
    :param project: UUID of the project
    :param snapshot: what is known of ports and rules; None if nothing is
    :param instance: UUID of the server if it exists
    """
    interfaces = [nic for nic in interfaces if nic.network != NO_NETWORK]
    own = snapshot.ports_of(instance) if snapshot and instance else ()
    if own:
        interfaces = [NIC(port=port.id) for port in own] + [
            nic for nic in interfaces
            if nic.port is not None and nic.port not in snapshot.ports]
    beside = ports = rules = port_rules = 0
    known_ports = snapshot.ports if snapshot is not None else {}
    for nic in interfaces:
        port = known_ports.get(nic.port) if nic.port else None
        if nic.pci_request or port is not None and usage.bypasses_vswitch(
                port.vnic_type):
            beside += 1
            continue
        ports += 1
        if snapshot is None:
            continue
        if port is not None:
            count = snapshot.rules_of(port.security_groups)
        else:
            count = snapshot.rules_of(_groups(
                () if nic.port else security_groups, project, snapshot))
        rules += count
        port_rules = max(port_rules, count)
    # A move does not say which of its ports are beside the switch, but how
    # many devices they take.
    missing = min(max(port_devices - beside, 0), ports)
    if missing:
        rules -= rules * missing // ports
    return NetworkDemand(
        vswitch_ports=ports - missing, vfs=vfs, pci_nics=pci_nics,
        rules=rules, port_rules=port_rules)


def _groups(
    security_groups: Sequence[str], project: str | None,
    snapshot: usage.Snapshot,
) -> list[str]:
    """UUIDs of the security groups of a port that is new to the snapshot."""
    groups = []
    for group in security_groups or (DEFAULT_GROUP,):
        if group == DEFAULT_GROUP:
            group = snapshot.default_groups.get(project)
        if group:
            groups.append(group)
    return groups
