# SPDX-License-Identifier: Apache-2.0
"""Count the ports and security group rules that a server will take.

The counts start from the networks and ports of its request.  The vNIC types of
ports and the rules of security groups come from the usage snapshot, and from
what was looked up in Neutron for this request.  No I/O.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import typing as ty

from nfv_sched.limits import usage

# Words in a request that stand for a network or security group.
NO_NETWORK = 'none'
AUTO_NETWORK = 'auto'
DEFAULT_GROUP = 'default'

#: Security group rules counted for a port with unknown security groups, if
#: ``security_rules_per_port`` sets no limit.
ASSUMED_RULES = 128


class RequestedNIC(ty.NamedTuple):
    """One network interface of a request.

    :ivar network: UUID of the network, ``auto`` or ``none``; None if a port is
        given
    :ivar port: UUID of an existing port, or None
    :ivar pci_request: UUID of its PCI request, or None
    :ivar device_profile: name of the device profile of its accelerator, or
        None
    """

    network: str | None = None
    port: str | None = None
    pci_request: str | None = None
    device_profile: str | None = None


class NetworkDemand(ty.NamedTuple):
    """The network resources that a server takes on its host.

    :ivar vswitch_ports: ports of the virtual switch
    :ivar vfs: virtual functions, for ports and PCI aliases
    :ivar pci_nics: physical functions (whole NICs), for ports and PCI aliases
    :ivar rules: security group rules, ingress and egress, of all its ports on
        the virtual switch
    :ivar port_rules: security group rules of the port that has the most
    """

    vswitch_ports: int = 0
    vfs: int = 0
    pci_nics: int = 0
    rules: int = 0
    port_rules: int = 0


class Lacking(ty.NamedTuple):
    """Items that have to be looked up in Neutron to count a demand.

    :ivar ports: UUIDs of unknown ports
    :ivar groups: UUIDs of security groups whose rules are unknown
    :ivar projects: UUIDs of projects whose security group ``default`` is
        unknown
    :ivar networks: UUIDs of unknown networks
    """

    ports: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()


class Interfaces:
    """The network interfaces of a server, their ports and security groups.

    :param interfaces: network interfaces of the request
    :param security_groups: UUIDs of the security groups of ports that Nova
        will create, or ``default`` for that of the project
    :param project: UUID of the project
    :param snapshot: the usage snapshot; None if there is none
    :param instance: UUID of the server if it exists.  Its ports in the
        snapshot are then used as well, if they belong to its project.

    :ivar nics: the interfaces to count
    :ivar more: items looked up in Neutron in addition to the snapshot
    """

    def __init__(
        self, interfaces: Iterable[RequestedNIC],
        security_groups: Sequence[str],
        project: str | None, snapshot: usage.Snapshot | None,
        instance: str | None = None,
    ):
        self.nics = [nic for nic in interfaces if nic.network != NO_NETWORK]
        self._groups = tuple(security_groups) or (DEFAULT_GROUP,)
        self._project = project
        self._snapshot = snapshot
        self.more = usage.Supplement()
        if snapshot is not None and instance and project:
            own = [port.id for port in snapshot.ports_of(instance, project)]
            if own:
                # Networks in the request led to these ports when the server
                # was created.
                self.nics = [nic for nic in self.nics if nic.port]
                named = {nic.port for nic in self.nics}
                self.nics += [
                    RequestedNIC(port=port) for port in own
                    if port not in named]

    def lacking(self) -> Lacking | None:
        """Return what has to be looked up in Neutron; None if nothing."""
        snapshot, more = self._snapshot, self.more
        if snapshot is None or snapshot.hides_groups:
            return None
        ports, groups, projects, networks = {}, {}, {}, {}
        for nic in self.nics:
            if nic.pci_request or nic.device_profile:
                continue
            if nic.port:
                if nic.port not in snapshot.ports and (
                        nic.port not in more.ports):
                    ports[nic.port] = None
                continue
            secured = self._has_port_security(nic.network)
            if secured is None:
                networks[nic.network] = None
            # Neutron puts no security groups on ports of such a network.
            if secured is False:
                continue
            for group in self._groups:
                if group == DEFAULT_GROUP:
                    group = self._default_group()
                    if group is None:
                        if self._project:
                            projects[self._project] = None
                        continue
                if self._group_rules(group) is None:
                    groups[group] = None
        lacking = Lacking(tuple(ports), tuple(groups), tuple(projects),
                          tuple(networks))
        return lacking if any(lacking) else None

    def port(self, nic: RequestedNIC) -> usage.NeutronPort | None:
        """Return the port of one of ``nics``; None if not known."""
        if not nic.port or self._snapshot is None:
            return None
        return self._snapshot.ports.get(nic.port) or (
            self.more.ports.get(nic.port))

    def rules(self, nic: RequestedNIC, assumed: int) -> int:
        """Return the number of security group rules of one of ``nics``.

        :param assumed: returned if not all of its security groups are known,
            unless the known ones have more rules
        :returns: 0 without a snapshot
        """
        if self._snapshot is None:
            return 0
        port = self.port(nic)
        if port is not None:
            if nic.port in self._snapshot.ports:
                # Rules are read after ports, so a group of a known port that
                # has no known rules has none.
                return self._snapshot.rules_of(port.security_groups)
            groups = port.security_groups
        elif nic.port:
            groups = (None,)
        elif self._has_port_security(nic.network) is False:
            return 0
        else:
            groups = [self._default_group() if group == DEFAULT_GROUP
                      else group for group in self._groups]
        counts = [self._group_rules(group) for group in groups]
        if self._snapshot.hides_groups:
            return sum(count or 0 for count in counts)
        known_rules = sum(count or 0 for count in counts)
        return known_rules if None not in counts else max(known_rules, assumed)

    def _has_port_security(self, network: str | None) -> bool | None:
        """Return whether a network has port security; None if unknown."""
        # Neutron makes the network, with port security, when the server is
        # built.
        if network is None or network == AUTO_NETWORK:
            return True
        return self._snapshot.networks.get(
            network, self.more.networks.get(network))

    def _default_group(self) -> str | None:
        return self._snapshot.default_groups.get(
            self._project) or self.more.default_groups.get(self._project)

    def _group_rules(self, group: str | None) -> int | None:
        return self._snapshot.rules.get(group, self.more.rules.get(group))


def of_request(
    interfaces: Interfaces, vfs: int, pci_nics: int, port_devices: int,
    assumed_rules: int = ASSUMED_RULES,
) -> NetworkDemand:
    """Return the network demand of a server.

    Without a snapshot no rules are counted.

    :param vfs: virtual functions in its PCI requests
    :param pci_nics: physical functions in its PCI requests
    :param port_devices: devices in those of its PCI requests that serve ports
    :param assumed_rules: rules counted for a port with unknown security groups
    """
    beside = ports = rules = port_rules = 0
    for nic in interfaces.nics:
        port = interfaces.port(nic)
        if nic.device_profile or port is not None and (
                port.vnic_type in usage.ACCELERATOR_VNIC_TYPES):
            continue
        if nic.pci_request or port is not None and usage.bypasses_vswitch(
                port.vnic_type):
            beside += 1
            continue
        ports += 1
        count = interfaces.rules(nic, assumed_rules)
        rules += count
        port_rules = max(port_rules, count)
    # The request of a move may not show which ports bypass the switch, but it
    # has their PCI requests.
    missing = min(max(port_devices - beside, 0), ports)
    # Which of the ports it is, and so how many rules it has, is not known: a
    # part of all rules.
    if missing:
        rules -= rules * missing // ports
    return NetworkDemand(
        vswitch_ports=ports - missing, vfs=vfs, pci_nics=pci_nics,
        rules=rules, port_rules=port_rules)
