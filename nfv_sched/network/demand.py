# SPDX-License-Identifier: Apache-2.0
"""Work out how many ports and security-group rules a guest takes.

From the networks and ports of its request.  The vNIC types of ports and the
rules of security groups come from the snapshot, and from what Neutron was
asked for in addition.  No I/O.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import typing as ty

from nfv_sched.network import usage

# What a request may have instead of the UUID of a network or security group.
NO_NETWORK = 'none'
AUTO_NETWORK = 'auto'
DEFAULT_GROUP = 'default'

#: How many security-group rules count for a port if that is not known and
#: ``security_rules_per_port`` is no limit.
ASSUMED_RULES = 128


class RequestedNIC(ty.NamedTuple):
    """One network interface of a request.

    :ivar network: UUID of the network, ``auto`` or ``none``; None if a port
        is given
    :ivar port: UUID of a port that exists, or None
    :ivar pci_request: UUID of the PCI request that serves it, or None
    :ivar device_profile: name of the device profile of the accelerator that
        serves it, or None
    """

    network: str | None = None
    port: str | None = None
    pci_request: str | None = None
    device_profile: str | None = None


class NetworkDemand(ty.NamedTuple):
    """What a guest takes of the network of its host, as numbers.

    :ivar vswitch_ports: ports of the virtual switch
    :ivar vfs: virtual functions, of ports and aliases
    :ivar pci_nics: physical functions (whole NICs), of ports and aliases
    :ivar rules: security-group rules, ingress and egress, of all its ports of
        the virtual switch
    :ivar port_rules: number of rules of the port that has most of them
    """

    vswitch_ports: int = 0
    vfs: int = 0
    pci_nics: int = 0
    rules: int = 0
    port_rules: int = 0


class Lacking(ty.NamedTuple):
    """What the figures lack to work out what a guest takes.

    :ivar ports: UUIDs of ports that are not known
    :ivar groups: UUIDs of security groups whose rules are not known
    :ivar projects: UUIDs of projects whose security group ``default`` is not
        known
    :ivar networks: UUIDs of networks that are not known
    """

    ports: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()


class Interfaces:
    """The network interfaces of a guest: their ports and security groups.

    :param interfaces: those of its request
    :param security_groups: UUIDs of the security groups of ports that Nova
        will create, or ``default`` for that of the project
    :param project: UUID of the project
    :param snapshot: the figures from Neutron; None if there are none
    :param instance: UUID of the server if it exists. Its ports in the snapshot
        then count, too, if they belong to its project.

    :ivar nics: the interfaces
    :ivar more: what Neutron was asked for in addition to the snapshot
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
        """What Neutron has to be asked for; None if nothing is lacking."""
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
            secured = self._secured(nic.network)
            if secured is None:
                networks[nic.network] = None
            if secured is False:
                continue
            for group in self._groups:
                if group == DEFAULT_GROUP:
                    group = self._default_group()
                    if group is None:
                        if self._project:
                            projects[self._project] = None
                        continue
                if self._rules(group) is None:
                    groups[group] = None
        found = Lacking(tuple(ports), tuple(groups), tuple(projects),
                        tuple(networks))
        return found if any(found) else None

    def port(self, nic: RequestedNIC) -> usage.NeutronPort | None:
        """The port of an interface; None if it is not known, or not created.

        :param nic: one of ``nics``
        """
        if not nic.port or self._snapshot is None:
            return None
        return self._snapshot.ports.get(nic.port) or (
            self.more.ports.get(nic.port))

    def rules(self, nic: RequestedNIC, assumed: int) -> int:
        """Number of security-group rules of an interface.

        :param nic: one of ``nics``
        :param assumed: the result if not all its security groups are known,
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
        elif self._secured(nic.network) is False:
            return 0
        else:
            groups = [self._default_group() if group == DEFAULT_GROUP
                      else group for group in self._groups]
        counts = [self._rules(group) for group in groups]
        if self._snapshot.hides_groups:
            return sum(count or 0 for count in counts)
        known = sum(count or 0 for count in counts)
        return known if None not in counts else max(known, assumed)

    def _secured(self, network: str | None) -> bool | None:
        """Whether ports of a network get security groups; None: unknown."""
        if network is None or network == AUTO_NETWORK:
            return True
        return self._snapshot.networks.get(
            network, self.more.networks.get(network))

    def _default_group(self) -> str | None:
        return self._snapshot.default_groups.get(
            self._project) or self.more.default_groups.get(self._project)

    def _rules(self, group: str | None) -> int | None:
        return self._snapshot.rules.get(group, self.more.rules.get(group))


def of_request(
    interfaces: Interfaces, vfs: int, pci_nics: int, port_devices: int,
    assumed_rules: int = ASSUMED_RULES,
) -> NetworkDemand:
    """What the guest of a request takes.

    Without a snapshot no rules are counted.

    :param interfaces: its network interfaces
    :param vfs: number of virtual functions of its PCI requests
    :param pci_nics: number of physical functions of its PCI requests
    :param port_devices: number of devices of PCI requests for ports
    :param assumed_rules: how many rules count for a port if that is not known
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
    # The request of a move may not say which ports bypass the switch, but it
    # has their PCI requests.
    missing = min(max(port_devices - beside, 0), ports)
    if missing:
        rules -= rules * missing // ports
    return NetworkDemand(
        vswitch_ports=ports - missing, vfs=vfs, pci_nics=pci_nics,
        rules=rules, port_rules=port_rules)
