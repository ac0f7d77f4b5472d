# SPDX-License-Identifier: Apache-2.0
"""Compute the network load of hosts from Neutron's ports and agents.

That is ports and their security group rules, DHCP servers and routers.

A :class:`Snapshot` is immutable, and is built here from single ports, rules
and agents; :mod:`nfv_sched.ledger.neutron` reads them.  No I/O.  The physical
ports of a virtual switch are an option and do not count here.

A snapshot can be out of date: a port that was created after it is missing, one
that was deleted is still counted.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import time
import types
import typing as ty

#: Where the hosts of routers and DHCP servers are read: in agents (ML2/OVS),
#: in the bindings of gateway ports (ML2/OVN), in both, or not known yet.
OVS = 'ovs'
OVN = 'ovn'
MIXED = 'mixed'
UNKNOWN = 'unknown'

#: vNIC types (``binding:vnic_type``) whose packets do not pass through the
#: virtual switch of the node: a virtual function or a whole NIC is given to
#: the guest, or, with ``remote-managed`` and ``smart-nic``, the switch runs on
#: the NIC itself.  A type that is not listed counts as a port of the switch,
#: so that a host gets too few servers rather than too many.
BYPASSING_VNIC_TYPES = frozenset({
    'accelerator-direct',
    'accelerator-direct-physical',
    'baremetal',
    'direct',
    'direct-physical',
    'macvtap',
    'remote-managed',
    'smart-nic',
    'vdpa',
    'virtio-forwarder',
})

#: vNIC types served by accelerators (Cyborg), not by Nova's PCI requests.
ACCELERATOR_VNIC_TYPES = frozenset({
    'accelerator-direct',
    'accelerator-direct-physical',
})

#: Neutron's names of the types of agents that serve DHCP and routers.
DHCP_AGENT = 'DHCP agent'
L3_AGENT = 'L3 agent'
OVN_GATEWAY_AGENT = 'OVN Controller Gateway agent'

# A reading is doubted if there were at least so many ports, or rules, before
# and fewer than half are left.
_MANY = 20
# At most so many projects, and a quarter of all, can be doubted alone: if
# more of them have lost ports, it looks like a defect of Neutron.
_SINGLED_OUT = 3

_GUEST_OWNER = 'compute:'
_NETWORK_OWNER = 'network:'
_DISTRIBUTED_OWNER = 'network:distributed'
#: Owner of the ports of DHCP servers.
DHCP_OWNER = 'network:dhcp'
#: Owners of ports that agents plug for routers. The device ID of these ports
#: is the router's; for ``AGENT_GATEWAY_OWNER`` it is the agent's.
ROUTER_OWNERS = frozenset({
    'network:router_gateway',
    'network:router_interface',
    'network:router_interface_distributed',
    'network:ha_router_replicated_interface',
    'network:router_ha_interface',
    'network:router_centralized_snat',
    'network:floatingip_agent_gateway',
})
AGENT_GATEWAY_OWNER = 'network:floatingip_agent_gateway'
GATEWAY_OWNER = 'network:router_gateway'
#: Owner of the ports over which the instances of an HA router see each other.
HA_OWNER = 'network:router_ha_interface'


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
    """Usage of the virtual switch of one host by one server."""

    ports: tuple[str, ...]  #: UUIDs of its ports on the switch
    #: number of security group rules of these ports, ingress and egress
    rules: int


#: A server without ports on the virtual switch of a host.
NOTHING = GuestUsage((), 0)

_NO_GUESTS: Mapping[str, GuestUsage] = types.MappingProxyType({})


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
    #: server UUID -> its part of ``guest_ports`` and ``rules``, by the
    #: ``device_id`` of the ports
    guests: Mapping[str, GuestUsage] = dataclasses.field(
        default_factory=lambda: _NO_GUESTS)

    #: Ports of the virtual switch without the physical ones.
    vswitch_ports: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        # Read for every host of every request: not a property.
        object.__setattr__(self, 'vswitch_ports', (
            self.guest_ports + self.dhcp_ports + self.router_ports
            + self.other_ports))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The figures from one reading of Neutron."""

    #: host name -> usage; hosts without any are missing
    hosts: Mapping[str, HostUsage]
    #: security group UUID -> number of its rules, ingress and egress; groups
    #: without any are missing
    rules: Mapping[str, int]
    #: project UUID -> UUID of its security group ``default``
    default_groups: Mapping[str, str]
    #: network UUID -> whether its ports get security groups
    #: (``port_security_enabled``)
    networks: Mapping[str, bool]
    #: port UUID -> port, without those of DHCP servers and routers that have
    #: no project or are bound to no host
    ports: Mapping[str, NeutronPort]
    #: server UUID -> the ports that are bound for it, of any project, also
    #: those that bypass the switch
    instances: Mapping[str, tuple[NeutronPort, ...]]
    #: whether Neutron hides the security groups of some ports; hidden rules
    #: count as none
    hides_groups: bool
    source: str  #: ``OVS``, ``OVN``, ``MIXED`` or ``UNKNOWN``
    #: whether Neutron shows on which hosts DHCP servers run; if not,
    #: ``dhcp_servers`` is 0 for every host
    dhcp_known: bool
    taken: float  #: when reading began, seconds of ``time.monotonic()``
    taken_at: float  #: when reading began, seconds since the epoch

    def age(self) -> float:
        """Return the seconds since reading began."""
        return time.monotonic() - self.taken

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

    def guests(
        self, ports: Iterable[NeutronPort], servers: Mapping[str, str],
    ) -> dict[str, GuestUsage]:
        """Attribute ports of one host to servers, by what Nova has plugged.

        The ports' own ``device_id`` is not used: tenants can set it.

        :param servers: port UUID -> UUID of the server for which Nova has
            plugged it; ports that are missing belong to no server
        :returns: server UUID -> its ports on the host, and their rules
        """
        of_server: dict[str, list[NeutronPort]] = {}
        for port in ports:
            server = servers.get(port.id)
            if server is not None:
                of_server.setdefault(server, []).append(port)
        return {server: GuestUsage(
            tuple(sorted(port.id for port in ports)),
            sum(self.rules_of(port.security_groups) for port in ports),
        ) for server, ports in of_server.items()}


class Supplement(ty.NamedTuple):
    """Items looked up for a request."""

    #: port UUID -> port; None if there is no such port
    ports: Mapping[str, NeutronPort | None] = types.MappingProxyType({})
    #: security group UUID -> number of its rules, also 0
    rules: Mapping[str, int] = types.MappingProxyType({})
    #: see :class:`Snapshot`.  For a project that has no group yet, the UUID of
    #: the project stands for it, and its rules are those that Neutron will
    #: give it.
    default_groups: Mapping[str, str] = types.MappingProxyType({})
    #: see :class:`Snapshot`
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
    ports = ('no port of a server is bound to any host' if none_left else
             _lacks('bound ports', *(
                 counts.total() for counts in port_counts)))
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


def _rules_by_project(
    ports: Iterable[str], previous: Snapshot, snapshot: Snapshot,
) -> collections.Counter[str]:
    """Count rules of ports in ``snapshot`` by project in ``previous``."""
    rules_of = functools.cache(snapshot.rules_of)
    counts: collections.Counter[str] = collections.Counter()
    for port in ports:
        counts[previous.ports[port].project] += rules_of(
            snapshot.ports[port].security_groups)
    return counts


def _projects_that_lack(
    before: collections.Counter[str], now: collections.Counter[str],
    most: int,
) -> tuple[str, ...]:
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


class _Services:
    __slots__ = ('dhcp_ports', 'router_ports', 'routers')

    def __init__(self):
        self.dhcp_ports = 0
        self.router_ports = 0
        self.routers: set[str] = set()


class _Tally:
    __slots__ = ('sriov_ports', 'services', 'claimed', 'others', 'guests')

    def __init__(self):
        self.sriov_ports = 0
        # By ports without a project, which only Neutron can create.
        self.services = _Services()
        # By ports of projects, whose owner tenants can set as they like.
        self.claimed = _Services()
        # Security groups of each port on the switch that belongs to no server.
        self.others: list[tuple[str, ...]] = []
        self.guests: dict[str, list[NeutronPort]] = {}


class SnapshotBuilder:
    """A builder of snapshots from single ports, rules, groups and agents.

    :param previous: the snapshot before, if any; unchanged ports are shared
        with it, to save memory

    :ivar hides_groups: see :class:`Snapshot`; to be set by the caller
    """

    def __init__(self, previous: Snapshot | None = None):
        self._taken = time.monotonic()
        self._taken_at = time.time()
        # A large cloud has a hundred thousand ports, and two snapshots at a
        # time.
        self._previous_ports = previous.ports if previous is not None else {}
        self._shared: dict = {}
        self._tallies: dict[str, _Tally] = {}
        self._rules: dict[str, int] = {}
        self._default_groups: dict[str, str] = {}
        self._networks: dict[str, bool] = {}
        self._ports: dict[str, NeutronPort] = {}
        self._instances: dict[str, list[NeutronPort]] = {}
        self._agent_types: set[str] = set()
        self._agent_hosts: dict[str, set[str]] = {}
        self._dhcp_servers: dict[str, int] = {}
        self._routers: dict[str, int] = {}
        self._distributed = False
        self.hides_groups = False

    def add_rule(self, security_group: str) -> None:
        self._rules[security_group] = self._rules.get(security_group, 0) + 1

    def add_default_group(self, project: str, security_group: str) -> None:
        self._default_groups[project] = security_group

    def add_network(self, network: str, port_security: bool) -> None:
        self._networks[network] = port_security

    def add_agent_type(self, agent_type: str) -> None:
        self._agent_types.add(agent_type)

    def add_agent_host(self, agent_type: str, host: str) -> None:
        """Record the host of an agent, alive or not."""
        # For _believes_owners.
        self._agent_hosts.setdefault(agent_type, set()).add(host)

    def add_dhcp_agent(self, host: str, networks: int) -> None:
        """Count DHCP servers by what their agent reports, not by ports."""
        self.add_agent_host(DHCP_AGENT, host)
        self._dhcp_servers[host] = self._dhcp_servers.get(host, 0) + networks

    def add_l3_agent(self, host: str, routers: int) -> None:
        """Count routers by what their agent reports, not by ports."""
        # The number includes standby instances and routers without ports.
        self.add_agent_host(L3_AGENT, host)
        self._routers[host] = self._routers.get(host, 0) + routers

    def add_port(
        self, port_id: str, owner: str, device: str, host: str,
        vnic_type: str, security_groups: tuple[str, ...], project: str = '',
    ) -> None:
        """Count a port.

        :param owner: ``device_owner``, empty if none
        :param device: ``device_id``, empty if none
        :param host: ``binding:host_id``, empty if not bound
        """
        share = self._shared.setdefault
        if owner == _DISTRIBUTED_OWNER:
            self._distributed = True
        if owner.startswith(_NETWORK_OWNER) and not (host and project):
            if host:
                self._count(owner, device, self._tally(host), vnic_type,
                            share(security_groups, security_groups), project)
            return
        port = self._previous_ports.get(port_id)
        guest = bool(host and device and owner.startswith(_GUEST_OWNER))
        if port is None or (
            port.host, port.instance, port.vnic_type, port.security_groups,
            port.project, port.guest,
        ) != (host, device, vnic_type, security_groups, project, guest):
            port = NeutronPort(
                port_id, share(host, host), share(device, device),
                share(vnic_type, vnic_type),
                share(security_groups, security_groups),
                share(project, project), guest)
        else:
            share(port.host, port.host)
            share(port.instance, port.instance)
            share(port.security_groups, port.security_groups)
            share(port.project, port.project)
        self._ports[port.id] = port
        if not host:
            return
        tally = self._tally(port.host)
        if guest:
            self._instances.setdefault(port.instance, []).append(port)
        if guest and not bypasses_vswitch(vnic_type):
            tally.guests.setdefault(port.instance, []).append(port)
        else:
            self._count(owner, device, tally, vnic_type, port.security_groups,
                        project)

    def keep_ports(self, previous: Snapshot, project: str) -> None:
        """Add the ports of a project that were bound before but no longer are.

        Call it after everything else was added, and before :meth:`keep_rules`.
        """
        for port in previous.ports.values():
            if port.host and port.project == project and not (
                    port.id in self._ports and self._ports[port.id].host):
                self.add_port(
                    port.id, _GUEST_OWNER if port.guest else '',
                    port.instance, port.host, port.vnic_type,
                    port.security_groups, port.project)

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
            port = self._ports.get(before.id)
            if port is not None and port.host and (
                    sum(self._rules.get(group, 0)
                        for group in port.security_groups)
                    < previous.rules_of(before.security_groups)):
                self._regroup(port, before.security_groups)

    def _regroup(self, port: NeutronPort, groups: tuple[str, ...]) -> None:
        changed = dataclasses.replace(port, security_groups=groups)
        self._ports[port.id] = changed
        tally = self._tally(port.host)
        if port.guest:
            of_server = [self._instances[port.instance]]
            if not bypasses_vswitch(port.vnic_type):
                of_server.append(tally.guests[port.instance])
            for ports in of_server:
                ports[ports.index(port)] = changed
        elif not bypasses_vswitch(port.vnic_type):
            tally.others[tally.others.index(port.security_groups)] = groups

    def _tally(self, host: str) -> _Tally:
        tally = self._tallies.get(host)
        if tally is None:
            tally = self._tallies[host] = _Tally()
        return tally

    @staticmethod
    def _count(owner, device, tally, vnic_type, security_groups,
               project) -> None:
        if bypasses_vswitch(vnic_type):
            tally.sriov_ports += 1
            return
        tally.others.append(security_groups)
        services = tally.claimed if project else tally.services
        if owner == DHCP_OWNER:
            services.dhcp_ports += 1
        elif owner in ROUTER_OWNERS:
            services.router_ports += 1
            if owner != AGENT_GATEWAY_OWNER:
                services.routers.add(device)

    def groups_without_rules(self, most: int) -> dict[str, str]:
        """Return group -> a port that has it, of groups without rules."""
        port_by_group: dict[str, str] = {}
        for port in self._ports.values():
            for group in port.security_groups:
                if group not in self._rules and group not in port_by_group:
                    if len(port_by_group) == most:
                        return port_by_group
                    port_by_group[group] = port.id
        return port_by_group

    def build(self) -> Snapshot:
        rules = self._rules

        @functools.cache
        def rules_of(security_groups: tuple[str, ...]) -> int:
            return sum(rules.get(group, 0) for group in security_groups)

        hosts = {
            host: self._host(host, self._tallies.get(host) or _Tally(),
                             rules_of)
            for host in {**self._tallies, **self._dhcp_servers,
                         **self._routers}}
        dhcp_ports = any(host.dhcp_ports for host in hosts.values())
        return Snapshot(
            hosts=types.MappingProxyType(hosts),
            rules=types.MappingProxyType(self._rules),
            default_groups=types.MappingProxyType(self._default_groups),
            networks=types.MappingProxyType(self._networks),
            ports=types.MappingProxyType(self._ports),
            instances=types.MappingProxyType({
                instance: tuple(ports)
                for instance, ports in self._instances.items()}),
            hides_groups=self.hides_groups,
            source=self._source(dhcp_ports),
            dhcp_known=dhcp_ports or DHCP_AGENT in self._agent_types,
            taken=self._taken,
            taken_at=self._taken_at)

    def _host(self, host: str, tally: _Tally, rules_of) -> HostUsage:
        guests = {
            instance: GuestUsage(
                tuple(port.id for port in ports),
                sum(rules_of(port.security_groups) for port in ports))
            for instance, ports in tally.guests.items()}
        services, claimed = tally.services, tally.claimed
        dhcp_ports = services.dhcp_ports
        if self._believes_owners(host, DHCP_AGENT):
            dhcp_ports += claimed.dhcp_ports
        router_ports, routers = services.router_ports, services.routers
        if self._believes_owners(host, L3_AGENT, OVN_GATEWAY_AGENT):
            router_ports += claimed.router_ports
            routers = routers | claimed.routers
        return HostUsage(
            host=host,
            guest_ports=sum(len(guest.ports) for guest in guests.values()),
            dhcp_ports=dhcp_ports,
            router_ports=router_ports,
            other_ports=len(tally.others) - dhcp_ports - router_ports,
            sriov_ports=tally.sriov_ports,
            rules=(
                sum(guest.rules for guest in guests.values())
                + sum(rules_of(groups) for groups in tally.others)),
            dhcp_servers=self._dhcp_servers.get(host, dhcp_ports),
            routers=self._routers.get(host, len(routers)),
            guests=types.MappingProxyType(guests) if guests else _NO_GUESTS)

    def _believes_owners(self, host: str, *agent_types: str) -> bool:
        """Return whether to believe the owner of projects' ports on a host."""
        # Tenants can set device_owner to that of a DHCP server or router. It
        # is believed where one of these agents is, or if no agents are shown.
        return not self._agent_types and not self._agent_hosts or any(
            host in self._agent_hosts.get(agent_type, ())
            for agent_type in agent_types)

    def _source(self, dhcp_ports: bool) -> str:
        ovn = any(kind.startswith('OVN ') for kind in self._agent_types)
        agents = not self._agent_types.isdisjoint(
            ('Open vSwitch agent', DHCP_AGENT, L3_AGENT))
        if not ovn and not agents:
            # Nova's user may not see agents, but sees their ports.
            ovn, agents = self._distributed, dhcp_ports
        if ovn and agents:
            return MIXED
        return OVN if ovn else OVS if agents else UNKNOWN
