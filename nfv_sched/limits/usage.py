# SPDX-License-Identifier: Apache-2.0
"""Compute the network load of hosts from Neutron's ports and agents.

A :class:`Snapshot` is immutable, and is built here from single ports, rules
and agents; :mod:`nfv_sched.ledger.neutron` reads them.  No I/O.  The physical
ports of a virtual switch are an option and do not count here.

A snapshot can be out of date: a port that was created after it is missing, one
that was deleted is still counted.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
import dataclasses
import functools
import time
import types
import typing as ty

#: vNIC types (``binding:vnic_type``) whose packets do not pass through the
#: virtual switch of the node: a virtual function or a whole NIC is given to
#: the guest, or, with ``remote-managed`` and ``smart-nic``, the switch runs on
#: the NIC itself.  A type that is not listed counts as a port of the switch,
#: so that a host gets too few servers rather than too many.
BYPASSING_VNIC_TYPES = frozenset({
    'accelerator-direct', 'accelerator-direct-physical', 'baremetal', 'direct',
    'direct-physical', 'macvtap', 'remote-managed', 'smart-nic', 'vdpa',
    'virtio-forwarder'})

#: vNIC types served by accelerators (Cyborg), not by Nova's PCI requests.
ACCELERATOR_VNIC_TYPES = frozenset({
    'accelerator-direct', 'accelerator-direct-physical'})

#: Neutron's names of the types of agents that serve DHCP and routers.
DHCP_AGENT = 'DHCP agent'
L3_AGENT = 'L3 agent'
OVN_GATEWAY_AGENT = 'OVN Controller Gateway agent'

#: A reason to doubt a reading.
NO_PORT = 'no port of a server is bound to any host'
# A reading is doubted if there were at least so many ports, or rules, before
# and fewer than half are left.
_MANY = 20
# At most so many projects, and a quarter of all, can be doubted alone: if
# more of them have lost ports, it looks like a defect of Neutron.
_SINGLED_OUT = 3

_GUEST_OWNER = 'compute:'
_NETWORK_OWNER = 'network:'
DHCP_OWNER = 'network:dhcp'
AGENT_GATEWAY_OWNER = 'network:floatingip_agent_gateway'
GATEWAY_OWNER = 'network:router_gateway'
#: Owner of the ports over which the instances of an HA router see each other.
HA_OWNER = 'network:router_ha_interface'
#: Owners of ports that agents plug for routers. The device ID of these ports
#: is the router's; for ``AGENT_GATEWAY_OWNER`` it is the agent's.
ROUTER_OWNERS = frozenset({
    AGENT_GATEWAY_OWNER, GATEWAY_OWNER, HA_OWNER, 'network:router_interface',
    'network:router_interface_distributed',
    'network:ha_router_replicated_interface',
    'network:router_centralized_snat'})


def bypasses_vswitch(vnic_type: str) -> bool:
    return vnic_type in BYPASSING_VNIC_TYPES


@dataclasses.dataclass(frozen=True, slots=True)
class NeutronPort:
    """A port that belongs, or may later belong, to a server."""

    id: str
    host: str  #: name of the host to which it is bound; empty if none
    #: UUID of its server (``device_id``); empty if none.  A tenant can set it
    #: to any value.
    instance: str
    vnic_type: str  #: ``binding:vnic_type``
    security_groups: tuple[str, ...]  #: UUIDs of its security groups
    project: str = ''  #: UUID of its project; empty if none
    guest: bool = False  #: whether it is bound to a host for a server


@dataclasses.dataclass(frozen=True, slots=True)
class GuestUsage:
    ports: tuple[str, ...]  #: UUIDs of its ports on the switch
    #: number of security group rules of these ports, ingress and egress
    rules: int
    #: what it has pinned of host NUMA nodes, by resource class
    pins: Mapping[str, int] = dataclasses.field(default_factory=dict)


NOTHING = GuestUsage((), 0)


@dataclasses.dataclass(frozen=True, slots=True)
class HostUsage:
    """The network load of a host as numbers, from Neutron's port bindings."""

    #: name of the host: ``binding:host_id``, Nova's ``host_state.host``
    host: str
    guest_ports: int = 0  #: ports of servers on the virtual switch
    #: ports of DHCP servers.  They have no project, or are on a host with a
    #: DHCP agent: a tenant can create ports that look like them.
    dhcp_ports: int = 0
    #: ports of routers; without a project, or on a host with an L3 or gateway
    #: agent
    router_ports: int = 0
    other_ports: int = 0  #: all other ports on the virtual switch
    #: ports that bypass the switch; no other field counts them
    sriov_ports: int = 0
    #: security group rules of the ports on the switch, ingress and egress; the
    #: rules of a group count once for each port that has the group
    rules: int = 0
    dhcp_servers: int = 0  #: networks that a DHCP agent serves on the host
    routers: int = 0  #: routers with an instance on the host

    @property
    def vswitch_ports(self) -> int:
        """Ports of the virtual switch without the physical ones."""
        return (self.guest_ports + self.dhcp_ports + self.router_ports
                + self.other_ports)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    #: host name -> usage; hosts without any are missing
    hosts: Mapping[str, HostUsage]
    #: security group UUID -> number of its rules, ingress and egress; groups
    #: without any are missing
    rules: Mapping[str, int]
    #: port UUID -> port, without those of DHCP servers and routers that have
    #: no project or are bound to no host
    ports: Mapping[str, NeutronPort]
    #: server UUID -> the ports that are bound for it, of any project, also
    #: those that bypass the switch
    instances: Mapping[str, tuple[NeutronPort, ...]]
    #: whether Neutron hides the security groups of some ports; hidden rules
    #: count as none
    hides_groups: bool
    #: whether Neutron shows on which hosts DHCP servers run; if not,
    #: ``dhcp_servers`` is 0 for every host
    dhcp_known: bool
    taken: float  #: when reading began, seconds of ``time.monotonic()``

    def bound_ports(self) -> int:
        """Return the number of servers' bound ports, of any vNIC type."""
        return sum(map(len, self.instances.values()))

    def host(self, name: str) -> HostUsage:
        """Return the usage of a host; all zero if nothing is bound to it."""
        return self.hosts.get(name) or HostUsage(name)

    def rules_of(self, security_groups: Iterable[str]) -> int:
        return sum(self.rules.get(group, 0) for group in security_groups)

    def ports_of(self, instance: str, project: str) -> list[NeutronPort]:
        """Return the ports of a server's own project that are bound for it."""
        # A tenant can give a port the device_id of any server.
        return [port for port in self.instances.get(instance, ())
                if port.project == project]

    def switch_ports(self) -> dict[str, list[NeutronPort]]:
        """Return the ports bound to each host's virtual switch, by host name.

        Their device owner does not matter, as tenants can set it.
        """
        ports: dict[str, list[NeutronPort]] = {}
        for port in self.ports.values():
            if port.host and not bypasses_vswitch(port.vnic_type):
                ports.setdefault(port.host, []).append(port)
        return ports

    def guests(self, ports: Iterable[NeutronPort],
               servers: Mapping[str, str]) -> dict[str, GuestUsage]:
        """Attribute ports of one host to servers, by what Nova has plugged.

        The ports' own ``device_id`` is not used: tenants can set it.

        :param servers: port UUID -> UUID of the server for which Nova has
            plugged it; ports that are missing belong to no server
        :returns: server UUID -> its ports on the host, and their rules
        """
        of_server: dict[str, list[NeutronPort]] = {}
        for port in ports:
            if (server := servers.get(port.id)) is not None:
                of_server.setdefault(server, []).append(port)
        return {server: GuestUsage(
            tuple(sorted(port.id for port in ports)),
            sum(self.rules_of(port.security_groups) for port in ports),
        ) for server, ports in of_server.items()}


class Supplement(ty.NamedTuple):
    #: port UUID -> port; None if there is no such port
    ports: Mapping[str, NeutronPort | None] = types.MappingProxyType({})
    #: security group UUID -> number of its rules, also 0
    rules: Mapping[str, int] = types.MappingProxyType({})
    #: project UUID -> UUID of its security group ``default``.  For a project
    #: that has no group yet, the UUID of the project stands for it, and its
    #: rules are those that Neutron will give it.
    default_groups: Mapping[str, str] = types.MappingProxyType({})
    #: network UUID -> whether its ports get security groups
    #: (``port_security_enabled``)
    networks: Mapping[str, bool] = types.MappingProxyType({})


class Doubts(ty.NamedTuple):
    """Signs that a snapshot may be incomplete."""

    ports: str  #: why bound ports may be missing; empty if nothing suggests it
    #: why security group rules may be missing; empty if nothing does
    rules: str
    #: UUIDs of servers that had bound ports before and have none now
    servers: tuple[str, ...]
    #: UUIDs of the few projects that alone account for the missing ports:
    #: without theirs the total is plausible.  Empty if there are none such.
    ports_of: tuple[str, ...]
    #: UUIDs of the projects that alone account for missing rules
    rules_of: tuple[str, ...]


def doubts(previous: Snapshot, snapshot: Snapshot) -> Doubts:
    """Compare a snapshot with the one before it.

    Ports without a host are not compared: any tenant may create and delete
    many.  Of rules, only those on ports that were bound before and still exist
    are compared.
    """
    bound = {port.id for port in snapshot.ports.values() if port.host}
    lost = tuple(
        server for server, ports in previous.instances.items()
        if bound.isdisjoint(port.id for port in ports))
    port_counts = [_bound_by_project(figures)
                   for figures in (previous, snapshot)]
    # In the whole cloud. A port keeps its host if it changes its owner.
    none_left = bool(previous.instances) and not snapshot.instances and (
        len(lost) == len(previous.instances))
    ports = NO_PORT if none_left else _lacks('bound ports', *(
        counts.total() for counts in port_counts))
    both = [port for port in previous.ports
            if previous.ports[port].host and port in snapshot.ports]
    rule_counts = [_rules_by_project(both, previous, figures)
                   for figures in (previous, snapshot)]
    rules = _lacks('security-group rules', *(
        counts.total() for counts in rule_counts))
    most = min(max(len(port_counts[0].keys() - {''}) // 4, 1), _SINGLED_OUT)
    ports_of = () if none_left or not ports else _projects_that_lack(
        *port_counts, most)
    if not any(count for project, count in port_counts[1].items()
               if project not in ports_of):
        ports_of = ()  # no sign that Neutron shows the others' ports
    return Doubts(
        ports, rules, lost, ports_of,
        _projects_that_lack(*rule_counts, most) if rules else ())


def _bound_by_project(snapshot: Snapshot) -> collections.Counter[str]:
    """Return the number of bound ports by project; '' for those of none."""
    counts = collections.Counter(
        port.project for port in snapshot.ports.values() if port.host)
    # Not all ports of Neutron itself are among these.
    counts[''] += sum(host.vswitch_ports + host.sriov_ports
                      for host in snapshot.hosts.values()) - counts.total()
    return counts


def _rules_by_project(ports: Iterable[str], previous: Snapshot,
                      snapshot: Snapshot) -> collections.Counter[str]:
    """Count rules of ports in ``snapshot`` by project in ``previous``."""
    rules_of = functools.cache(snapshot.rules_of)
    counts: collections.Counter[str] = collections.Counter()
    for port in ports:
        counts[previous.ports[port].project] += rules_of(
            snapshot.ports[port].security_groups)
    return counts


def _projects_that_lack(before: collections.Counter[str],
                        now: collections.Counter[str],
                        most: int) -> tuple[str, ...]:
    """Return the projects that alone make a total look too small.

    :returns: the projects with the largest losses, ``most`` at most; empty if
        too few are left without them as well
    """
    losses = collections.Counter({
        project: count - now[project] for project, count in before.items()
        if project and count > now[project]})
    total, remaining = before.total(), now.total()
    singled_out: list[str] = []
    for project, _loss in losses.most_common(most):
        singled_out.append(project)
        total -= before[project]
        remaining -= now[project]
        if not total or remaining and remaining >= total / 2:
            return tuple(singled_out)
    return ()


def _lacks(what: str, before: int, now: int) -> str:
    if before and not now or now < before / 2 and before >= _MANY:
        return f'{now} {what} are left of {before}'
    return ''


class SnapshotBuilder:
    """A builder of snapshots from single ports, rules, groups and agents.

    :param previous: the snapshot before, if any; unchanged ports are shared
        with it, to save memory

    :ivar hides_groups: to be set by the caller
    """

    def __init__(self, previous: Snapshot | None = None):
        self._taken = time.monotonic()
        # A large cloud has a hundred thousand ports, and two snapshots at a
        # time.
        self._previous_ports = previous.ports if previous is not None else {}
        self._shared: dict = {}
        self._rules: dict[str, int] = {}
        # With ``device_owner``; those of Neutron itself by host.
        self._ports: dict[str, tuple[NeutronPort, str]] = {}
        self._services: list[tuple[NeutronPort, str]] = []
        self._agent_types: set[str] = set()
        self._agent_hosts: dict[str, set[str]] = {}
        # Of agents, by their type and host.
        self._loads: dict[str, collections.Counter[str]] = {
            DHCP_AGENT: collections.Counter(), L3_AGENT: collections.Counter()}
        self.hides_groups = False

    def add_rule(self, security_group: str) -> None:
        self._rules[security_group] = self._rules.get(security_group, 0) + 1

    def add_agent_type(self, agent_type: str) -> None:
        self._agent_types.add(agent_type)

    def add_agent_host(self, agent_type: str, host: str) -> None:
        """Record the host of an agent, alive or not."""
        # For _believes_owners.
        self._agent_hosts.setdefault(agent_type, set()).add(host)

    def add_load(self, agent_type: str, host: str, count: int) -> None:
        """Count DHCP servers or routers by what agents report, not ports."""
        # Of routers, with standby instances and those without ports.
        self.add_agent_host(agent_type, host)
        self._loads[agent_type][host] += count

    def add_port(self, port_id: str, owner: str, device: str, host: str,
                 vnic_type: str, security_groups: tuple[str, ...],
                 project: str = '') -> None:
        """Count a port; owner, device and host are empty if there is none."""
        of_neutron = owner.startswith(_NETWORK_OWNER)
        if of_neutron and not host:
            return
        share = self._shared.setdefault
        port = NeutronPort(port_id, *(share(value, value) for value in (
            host, device, vnic_type, security_groups, project,
            bool(host and device and owner.startswith(_GUEST_OWNER)))))
        before = self._previous_ports.get(port_id)
        if before == port:
            port = before
        if of_neutron and not project:
            self._services.append((port, share(owner, owner)))
        else:
            self._ports[port.id] = port, share(owner, owner)

    def _rules_of(self, security_groups: tuple[str, ...]) -> int:
        return sum(self._rules.get(group, 0) for group in security_groups)

    def keep_ports(self, previous: Snapshot, project: str) -> None:
        """Add the ports of a project that were bound before but no longer are.

        Call it after everything else was added, and before :meth:`keep_rules`.
        """
        for port in previous.ports.values():
            if port.host and port.project == project and not (
                    port.id in self._ports and self._ports[port.id][0].host):
                self._ports[port.id] = port, _GUEST_OWNER if port.guest else ''

    def keep_rules(self, previous: Snapshot, project: str) -> None:
        """Count no fewer rules for bound ports of a project than before.

        Call it after everything else was added.
        """
        ports = [port for port in previous.ports.values()
                 if port.host and port.project == project]
        for group in {group for port in ports
                      for group in port.security_groups}:
            if self._rules.get(group, 0) < previous.rules.get(group, 0):
                self._rules[group] = previous.rules[group]
        for before in ports:
            port, owner = self._ports.get(before.id, (None, ''))
            if port is not None and port.host and (
                    self._rules_of(port.security_groups)
                    < previous.rules_of(before.security_groups)):
                self._ports[port.id] = dataclasses.replace(
                    port, security_groups=before.security_groups), owner

    def groups_without_rules(self, most: int) -> dict[str, str]:
        """Return group -> a port that has it, of groups without rules."""
        port_by_group: dict[str, str] = {}
        for port, _owner in self._ports.values():
            for group in port.security_groups:
                if group not in self._rules and group not in port_by_group:
                    if len(port_by_group) == most:
                        return port_by_group
                    port_by_group[group] = port.id
        return port_by_group

    def build(self) -> Snapshot:
        instances: dict[str, list[NeutronPort]] = {}
        by_host: dict[str, list[tuple[NeutronPort, str]]] = {
            host: [] for loads in self._loads.values() for host in loads}
        for port, owner in (*self._ports.values(), *self._services):
            if port.host:
                by_host.setdefault(port.host, []).append((port, owner))
            if port.guest:
                instances.setdefault(port.instance, []).append(port)
        rules_of = functools.cache(self._rules_of)
        hosts = {host: self._host(host, ports, rules_of)
                 for host, ports in by_host.items()}
        return Snapshot(
            hosts=types.MappingProxyType(hosts),
            rules=types.MappingProxyType(self._rules),
            ports=types.MappingProxyType({
                uuid: port for uuid, (port, _owner) in self._ports.items()}),
            instances=types.MappingProxyType({
                instance: tuple(ports)
                for instance, ports in instances.items()}),
            hides_groups=self.hides_groups,
            dhcp_known=DHCP_AGENT in self._agent_types or any(
                host.dhcp_ports for host in hosts.values()),
            taken=self._taken)

    def _host(self, host: str, ports: Iterable[tuple[NeutronPort, str]],
              rules_of: Callable[[tuple[str, ...]], int]) -> HostUsage:
        counts: collections.Counter[str] = collections.Counter()
        routers: set[str] = set()
        has_dhcp = self._believes_owners(host, DHCP_AGENT)
        has_routers = self._believes_owners(host, L3_AGENT, OVN_GATEWAY_AGENT)
        for port, owner in ports:
            if bypasses_vswitch(port.vnic_type):
                counts['sriov_ports'] += 1
                continue
            counts['rules'] += rules_of(port.security_groups)
            # Only Neutron can create ports without a project.
            if port.guest:
                counts['guest_ports'] += 1
            elif owner == DHCP_OWNER and (has_dhcp or not port.project):
                counts['dhcp_ports'] += 1
            elif owner in ROUTER_OWNERS and (has_routers or not port.project):
                counts['router_ports'] += 1
                if owner != AGENT_GATEWAY_OWNER:
                    routers.add(port.instance)
            else:
                counts['other_ports'] += 1
        return HostUsage(
            host, **counts,
            dhcp_servers=self._loads[DHCP_AGENT].get(
                host, counts['dhcp_ports']),
            routers=self._loads[L3_AGENT].get(host, len(routers)))

    def _believes_owners(self, host: str, *agent_types: str) -> bool:
        """Return whether to believe the owner of projects' ports on a host."""
        # Tenants can set device_owner to that of a DHCP server or router. It
        # is believed where one of these agents is, or if no agents are shown.
        return not self._agent_types and not self._agent_hosts or any(
            host in self._agent_hosts.get(agent_type, ())
            for agent_type in agent_types)
