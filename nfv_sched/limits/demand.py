# SPDX-License-Identifier: Apache-2.0
"""Count the ports and security group rules that a server will take.

No I/O here; callers look up vNIC types and rules in Neutron.
"""

from collections.abc import Iterable, Sequence
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
    #: UUID of the network, ``auto`` or ``none``; None if a port is given
    network: str | None = None
    port: str | None = None  #: UUID of an existing port, or None
    pci_request: str | None = None  #: UUID of its PCI request, or None
    #: name of the device profile of its accelerator, or None
    device_profile: str | None = None


class NetworkDemand(ty.NamedTuple):
    """The network resources that a server takes on its host."""

    vswitch_ports: int = 0
    vfs: int = 0  #: virtual functions, for ports and PCI aliases
    #: physical functions (whole NICs), for ports and PCI aliases
    pci_nics: int = 0
    #: security group rules, ingress and egress, of all its ports on the
    #: virtual switch
    rules: int = 0
    port_rules: int = 0  #: security group rules of the port that has the most


class Lacking(ty.NamedTuple):
    """Items to be looked up in Neutron to count a demand."""

    ports: tuple[str, ...] = ()  #: UUIDs of ports that the request names
    server: str = ''  #: UUID of the server that is moved; empty for a new one
    groups: tuple[str, ...] = ()  #: UUIDs of security groups
    #: UUIDs of projects whose security group ``default`` counts
    projects: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()  #: UUIDs of networks


class LookupSource(ty.Protocol):
    """Look-ups in Neutron; see ``neutron.Lookups``."""

    def look_up(self, lacking: Lacking) -> usage.Supplement | None:
        """Return what Neutron shows; None if it does not answer in time."""


class Interfaces:
    """The network interfaces of a server, their ports and security groups.

    :param security_groups: UUIDs of the security groups of ports that Nova
        will create, or ``default`` for that of the project
    :param server: its UUID if it exists; ports of its project count as well

    :ivar nics: the interfaces to count
    :ivar found: what Neutron has answered; None if it has not
    """

    def __init__(self, interfaces: Iterable[RequestedNIC],
                 security_groups: Sequence[str], project: str | None,
                 server: str | None = None):
        self.nics = [nic for nic in interfaces if nic.network != NO_NETWORK]
        self._groups = tuple(security_groups) or (DEFAULT_GROUP,)
        self._project = project
        self._server = server
        self.found: usage.Supplement | None = None

    def lacking(self) -> Lacking:
        nics = [nic for nic in self.nics
                if not (nic.pci_request or nic.device_profile)]
        networks = dict.fromkeys(nic.network for nic in nics if not nic.port)
        groups = [group for group in self._groups
                  if networks and group != DEFAULT_GROUP]
        projects = (self._project,) if self._project and networks and (
            DEFAULT_GROUP in self._groups) else ()
        return Lacking(
            tuple(dict.fromkeys(nic.port for nic in nics if nic.port)),
            self._server if self._server and self._project else '',
            tuple(dict.fromkeys(groups)), projects,
            tuple([name for name in networks
                   if name and name != AUTO_NETWORK]))

    def use(self, answer: usage.Supplement | None) -> None:
        """Take over what Neutron has answered; None if it has not."""
        self.found = answer
        if answer is None or not (self._server and self._project):
            return
        # A tenant can give a port the device_id of any server.
        own = [port.id for port in answer.ports.values()
               if port is not None and port.guest
               and port.instance == self._server
               and port.project == self._project]
        if own:
            # Networks in the request led to these ports when the server was
            # created.
            self.nics = [nic for nic in self.nics if nic.port]
            named = {nic.port for nic in self.nics}
            self.nics += [RequestedNIC(port=port) for port in own
                          if port not in named]

    def port(self, nic: RequestedNIC) -> usage.NeutronPort | None:
        if not nic.port or self.found is None:
            return None
        return self.found.ports.get(nic.port)

    def rules(self, nic: RequestedNIC, assumed: int) -> int:
        """Return the number of security group rules of one of ``nics``.

        :param assumed: returned if not all of its security groups are known,
            unless the known ones have more rules
        """
        if self.found is None:
            return assumed
        if (port := self.port(nic)) is not None:
            return self.rules_of(port.security_groups, assumed)
        if nic.port:
            return assumed
        # Neutron puts no security groups on ports of such a network. It makes
        # that of AUTO_NETWORK, with port security, when the server is built.
        if self.found.networks.get(nic.network or '') is False:
            return 0
        return self.rules_of(
            [self.found.default_groups.get(self._project or '')
             if group == DEFAULT_GROUP else group
             for group in self._groups], assumed)

    def rules_of(self, groups: Iterable[str | None], assumed: int) -> int:
        counts = [self.found.rules.get(group or '') if self.found else None
                  for group in groups]
        known_rules = sum(count or 0 for count in counts)
        return known_rules if None not in counts else max(known_rules, assumed)


def of_request(interfaces: Interfaces, vfs: int, pci_nics: int,
               port_devices: int,
               assumed_rules: int = ASSUMED_RULES) -> NetworkDemand:
    """Return the network demand of a server.

    :param vfs: virtual functions in its PCI requests; ``pci_nics`` are PFs
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
