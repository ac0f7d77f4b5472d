# SPDX-License-Identifier: Apache-2.0
"""Simulate Neutron and the ledger service of a cloud.

Neutron's figures, and the inventories that the ledger service would publish to
Placement, are calculated before each request to the scheduler, so that they
are never outdated.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import types
import typing as ty

from nfv_sched.ledger import inventory as ledger_inventory
from nfv_sched.limits import decide
from nfv_sched.limits import demand
from nfv_sched.limits import names as ledger_names
from nfv_sched.limits import options as network_limits
from nfv_sched.limits import usage
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import placement as simulated_placement
from nfv_sched.ops.simulator import servers

CONF = nova_internals.CONF

#: States of Neutron.
UP = 'up'
STALE = 'stale'
DOWN = 'down'

_AGENTS = {'ovs': ('Open vSwitch agent', 'DHCP agent', 'L3 agent'),
           'ovn': ('OVN Controller agent',), 'none': ()}


@dataclasses.dataclass(frozen=True, slots=True)
class HostLoad:
    #: figures of the ports that Neutron has bound to the host
    usage: usage.HostUsage
    limits: network_limits.Limits  #: the limits of the host
    #: resource class -> amount allocated from its ledger; None if it has no
    #: ledger
    claimed: Mapping[str, int] | None

    @property
    def ports(self) -> int:
        return decide.PORTS.used(self.limits, self.usage.vswitch_ports)


def is_told(scenario: scenarios.Scenario) -> bool:
    names = {*network_limits.Limits._fields, 'ledger'}
    return bool(
        scenario.security_groups or
        any(port.rules for port in scenarios.ports_of(scenario.cloud)) or
        any(each.dhcp_servers or each.routers or each.other_ports
            for each in scenarios.services_of(scenario).values()) or
        any(group == 'nfv_sched' and name in names
            for group, name in scenario.lines) or
        any(names & set(aggregate.metadata)
            for aggregate in scenario.cloud.aggregates) or
        any(step.action in ('attach', 'detach', 'neutron') or
            step.expect and (step.expect.ports or step.expect.rules)
            for step in scenario.steps))


def dhcp_servers(scenario: scenarios.Scenario, load: HostLoad) -> int | None:
    return None if scenario.network_service == 'ovn' else (
        load.usage.dhcp_servers)


class SimulatedNetwork:
    """Neutron and the ledger service of a simulated cloud.

    Filters look up in it what they would ask Neutron for.

    :ivar migrations: UUID of migration -> UUID of its server
    :ivar added: UUIDs of the ledgers that the cloud does not have: they only
        keep its limits
    :ivar snapshot: what Neutron shows; None if it does not answer
    :param all_servers: the servers by name; more may come
    """

    def __init__(self, scenario: scenarios.Scenario,
                 hosts: Mapping[str, compute.ComputeHost],
                 all_servers: Mapping[str, servers.SimulatedServer],
                 placement: simulated_placement.Placement,
                 aggregates: ty.Callable[[str], list]):
        self.migrations: dict[str, str] = {}
        self._scenario = scenario
        self._hosts = hosts
        self._servers = all_servers
        self._placement = placement
        #: Name of each host -> UUID of its ledger.
        self._ledgers = {name: ledger_names.provider_uuid(host.uuid)
                         for name, host in hosts.items()}
        self.added: frozenset[str] = frozenset()
        if CONF.nfv_sched.ledger != 'placement':
            self.added = frozenset(self._ledgers.values()).difference(
                placement.providers)
        self.snapshot: usage.Snapshot | None = None
        #: All known security groups, by UUID.
        self._groups: dict[str, scenarios.SecurityGroup] = {}
        #: Project -> UUID of its security group ``default``.
        self._default_groups: dict[str, str] = {}
        #: Ports that requests name, by UUID; not bound to a host yet.
        self._unbound: dict[str, usage.NeutronPort] = {}
        self._state = UP
        self._figures: usage.Snapshot | None = None
        #: What the figures were made from; see :meth:`_read_figures`.
        self._made_from: ty.Any = None
        host_limits = network_limits.by_host(network_limits.defaults(CONF))
        self._limits = {
            name: host_limits.for_host(types.SimpleNamespace(
                host=name, aggregates=aggregates(name))) for name in hosts}
        self._note_groups(scenario.security_groups.values())
        services = scenarios.services_of(scenario)
        self._services = {
            name: services.get(name, scenarios.HostServices())
            for name in hosts}
        self._service_ports = [
            port for name, of_host in self._services.items()
            for port in self._ports_of_services(name, of_host)]

    def look_up(self, lacking: demand.Lacking) -> usage.Supplement | None:
        """Return ports and groups; one that does not exist has no rules."""
        if self.snapshot is None:
            return None
        all_ports = {**self._unbound, **self.snapshot.ports}
        ports = {uuid: all_ports[uuid] for uuid in lacking.ports
                 if uuid in all_ports}
        ports.update((port.id, port) for port in self.snapshot.instances.get(
            lacking.server, ()))
        default_groups = {
            project: self._default_groups.get(project, project)
            for project in lacking.projects}
        groups = [*lacking.groups, *default_groups.values(),
                  *(uuid for port in ports.values()
                    for uuid in port.security_groups)]
        return usage.Supplement(
            ports, {uuid: self._groups[uuid].rules
                    if uuid in self._groups else 0 for uuid in groups},
            default_groups, dict.fromkeys(lacking.networks, True))

    def _note_groups(self, groups: Iterable[scenarios.SecurityGroup]) -> None:
        self._groups.update((group.uuid, group) for group in groups)

    def security_groups(self, names: tuple[str, ...],
                        ) -> tuple[scenarios.SecurityGroup, ...]:
        groups = self._scenario.security_groups
        return tuple([groups[name] for name in names or (demand.DEFAULT_GROUP,)
                      if name in groups])

    def requested_groups(self, names: tuple[str, ...]) -> list[str]:
        """Return security groups for the Nova API: UUIDs, or ``default``."""
        groups = self._scenario.security_groups
        return [groups[name].uuid if name != demand.DEFAULT_GROUP else name
                for name in names or (demand.DEFAULT_GROUP,)]

    def add_unbound(self, server: servers.SimulatedServer) -> None:
        for port in server.ports:
            self._note_groups(port.security_groups)
            if port.exists:
                self._unbound[port.id] = usage.NeutronPort(
                    port.id, '', '', port.network.vnic_type,
                    tuple([group.uuid for group in port.security_groups]),
                    server.project)

    def become(self, state: str) -> None:
        """Change the state of Neutron: to ``UP``, ``STALE`` or ``DOWN``."""
        if state == STALE and self._state == UP:
            self.refresh()
        self._state = state

    def refresh(self, keep_ledgers: bool = False) -> None:
        """Update what Neutron shows, and publish the ledger."""
        self.snapshot = None if self._state == DOWN else self._read_figures()
        if self._state == UP:
            self._publish(self.snapshot, keep_ledgers)

    def loads(self) -> dict[str, HostLoad]:
        figures = self._read_figures()
        loads = {}
        for name, uuid in self._ledgers.items():
            provider = self._placement.providers.get(uuid)
            loads[name] = HostLoad(
                figures.host(name), self._limits[name],
                None if provider is None or uuid in self.added
                else dict(provider.used))
        return loads

    def _ports_of_services(self, host: str, services: scenarios.HostServices,
                           ) -> Iterator[tuple]:
        """Yield arguments of ``SnapshotBuilder.add_port`` for each port."""
        is_ovn = self._scenario.network_service == 'ovn'
        router_owner = f'network:router_{"gateway" if is_ovn else "interface"}'
        ports = [('network:dhcp', f'dhcp/{number}', f'dhcp/{number}')
                 for number in range(services.dhcp_servers)]
        ports += [(router_owner, f'router/{number}/{of_router}',
                   scenarios.stable_uuid('router', f'{host}/{number}'))
                  for number in range(services.routers)
                  for of_router in range(services.router_ports)]
        ports += [('', f'other/{number}', '')
                  for number in range(services.other_ports)]
        for owner, name, device in ports:
            # The first of the other ports has the rules of all.
            groups = scenarios.security_groups_of(
                services.other_rules) if name == 'other/0' else ()
            self._note_groups(groups)
            yield (scenarios.stable_uuid('port', f'{host}/{name}'), owner,
                   device, host, scenarios.NORMAL,
                   tuple([group.uuid for group in groups]))

    def _read_figures(self) -> usage.Snapshot:
        service = self._scenario.network_service
        owners = [server for server in self._servers.values()
                  if server.host is not None
                  or server.status == servers.SHELVED]
        made_from = [(server, server.host, *server.ports) for server in owners]
        # Reading a large cloud takes longer than scheduling a server.
        if self._figures is not None and self._made_from == (
                made_from, self._groups):
            # A request that is tried and undone leaves the ports as they were.
            return self._figures
        for server in owners:
            for port in server.ports:
                self._note_groups(port.security_groups)
        self._made_from = made_from, dict(self._groups)
        builder = usage.SnapshotBuilder(self._figures)
        for agent_type in _AGENTS[service]:
            builder.add_agent_type(agent_type)
        if service == 'ovs':
            for name, services in self._services.items():
                builder.add_load(usage.DHCP_AGENT, name, services.dhcp_servers)
                builder.add_load(usage.L3_AGENT, name, services.routers)
        for group in self._groups.values():
            for _ in range(group.rules):
                builder.add_rule(group.uuid)
        for group in self.security_groups(()):
            self._default_groups = dict.fromkeys(
                (nova_internals.PROJECT, *(
                    server.project for server in owners)), group.uuid)
        for port in self._service_ports:
            builder.add_port(*port)
        for server in owners:
            host = server.host.name if server.host is not None else ''
            for port in server.ports:
                builder.add_port(
                    port.id, 'compute:nova', server.uuid, host,
                    port.network.vnic_type,
                    tuple([group.uuid for group in port.security_groups]),
                    server.project)
        self._figures = builder.build()
        return self._figures

    def _publish(self, figures: usage.Snapshot, keep_ledgers: bool) -> None:
        """Do what the ledger service does in one round."""
        providers = self._placement.providers
        ports = figures.switch_ports()
        guests = {name: figures.guests(of_host, {
            port.id: port.instance for port in of_host if port.guest})
            for name, of_host in ports.items()}
        ledgers = {name: uuid for name, uuid in self._ledgers.items()
                   if not keep_ledgers or uuid not in providers}
        for name, uuid in ledgers.items():
            if uuid not in providers:
                self._placement.add(snapshot.Provider(
                    uuid=uuid, name=f'{name}_nfv_ledger',
                    traits=frozenset((ledger_names.TRAIT,)),
                    parent=self._hosts[name].uuid))
                if uuid in self.added:
                    # As if the servers had come with the ledger.
                    for server, guest in guests.get(name, {}).items():
                        self._placement.allocate(server, {uuid: {
                            quantity.resource_class: quantity.own(guest)
                            for quantity in decide.QUANTITIES
                            if quantity.own(guest)}})
        allocations: dict[str, dict[str, Mapping[str, int]]] = {}
        for consumer, held in self._placement.allocations.items():
            for uuid, amounts in held.items():
                allocations.setdefault(uuid, {})[consumer] = amounts
        for host, uuid in ledgers.items():
            usage_of_host = figures.host(host)
            load = ledger_inventory.Load(
                usage_of_host.vswitch_ports, usage_of_host.rules,
                guests.get(host, {}), frozenset(),
                usage_of_host.dhcp_servers if figures.dhcp_known else None,
                usage_of_host.routers)
            accounts = ledger_inventory.accounts(
                load, ledger_inventory.by_server(
                    allocations.get(uuid, {}), self.migrations),
                self._limits[host])
            self._placement.change(uuid, inventories={
                name: simulated_placement.inventory(
                    inventory.total, inventory.reserved)
                for name, inventory in (
                    *((name, account.inventory())
                      for name, account in accounts.items()),
                    *load.figures().items())})
