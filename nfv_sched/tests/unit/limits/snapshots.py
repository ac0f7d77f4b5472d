# SPDX-License-Identifier: Apache-2.0
"""What Neutron shows, made by hand, and what is published of it."""

import dataclasses

from nfv_sched.ledger import inventory
from nfv_sched.ledger import neutron
from nfv_sched.limits import names
from nfv_sched.limits import options
from nfv_sched.limits import usage


@dataclasses.dataclass(frozen=True, eq=False)
class Shown(usage.Snapshot):
    """What is read for all requests, and what is looked up for some."""

    default_groups: dict
    networks: dict


def snapshot(ports=(), rules=None, default_groups=None, dhcp=None,
             routers=None, networks=None):
    """Return a snapshot.

    :param ports: keyword arguments of a port each; see :func:`add_port`
    :param rules: security group -> number of rules
    :param default_groups: project -> security group
    :param dhcp: host -> DHCP servers
    :param routers: host -> routers
    :param networks: network -> whether its ports get security groups
    """
    builder = usage.SnapshotBuilder()
    for number, port in enumerate(ports):
        add_port(builder, number, **port)
    for group, count in (rules or {}).items():
        for _ in range(count):
            builder.add_rule(group)
    for host, count in (dhcp or {}).items():
        builder.add_agent_type('DHCP agent')
        builder.add_load(usage.DHCP_AGENT, host, count)
    for host, count in (routers or {}).items():
        builder.add_load(usage.L3_AGENT, host, count)
    found = builder.build()
    return Shown(
        **{field.name: getattr(found, field.name)
           for field in dataclasses.fields(found)},
        default_groups=default_groups or {}, networks=networks or {})


def add_port(builder, number, host='host1', instance='', owner='compute:nova',
             vnic_type='normal', groups=(), id=None, project=None):
    """Add one port; those of servers belong to the project ``p``."""
    if project is None:
        project = 'p' if owner.startswith('compute:') else ''
    builder.add_port(id or f'port{number}', owner, instance or f'vm{number}',
                     host, vnic_type, tuple(groups), project)


class Lookups:
    """Look-ups in what a test has made up.

    :param value: snapshot of all that Neutron has; None if it does not answer
    :param unasked: security groups that it is not asked for

    :ivar asked: what was looked up, in order
    """

    def __init__(self, value=None, unasked=()):
        self.value = value
        self.unasked = unasked
        self.asked = []

    def look_up(self, lacking):
        """See ``neutron.Lookups``."""
        self.asked.append(lacking)
        value = self.value
        if value is None:
            return None
        ports = {uuid: value.ports.get(uuid) for uuid in lacking.ports}
        ports.update((port.id, port) for port in value.instances.get(
            lacking.server, ()))
        default_groups = {
            project: value.default_groups.get(project, project)
            for project in lacking.projects}
        groups = {*lacking.groups, *default_groups.values(),
                  *(group for port in ports.values() if port is not None
                    for group in port.security_groups)}
        return usage.Supplement(
            ports, {group: value.rules.get(group, 0)
                    for group in groups.difference(self.unasked)},
            default_groups, {name: value.networks.get(name, True)
                             for name in lacking.networks})


def published(snapshot, hosts, allocated=()):
    """Provider summaries of hosts, as the service publishes them.

    :param hosts: HostStates, with their aggregates
    :param allocated: host name -> resource class -> amount
    """
    found = {}
    limits = options.by_host(options.defaults(neutron.CONF))
    for host in hosts:
        usage_of_host = snapshot.host(host.host)
        load = inventory.Load(
            usage_of_host.vswitch_ports, usage_of_host.rules, {},
            frozenset(), usage_of_host.dhcp_servers
            if snapshot.dhcp_known else None, usage_of_host.routers)
        used = dict(allocated).get(host.host, {})
        inventories = {
            name: account.inventory() for name, account in inventory.accounts(
                load, {'vm': used}, limits.for_host(host)).items()}
        found[names.provider_uuid(host.uuid)] = {
            'resources': {
                name: {'capacity': each.capacity, 'used': used.get(name, 0)}
                for name, each in {**inventories, **load.figures()}.items()},
            'traits': [names.TRAIT], 'parent_provider_uuid': host.uuid,
            'root_provider_uuid': host.uuid}
    return found


def summaries(rooms, used=7):
    """What Placement says of hosts with a ledger.

    :param rooms: UUID of a compute node -> what its ledger has left, by
        resource class
    :param used: what is used of each
    """
    found = {}
    for node, left in rooms.items():
        found[node] = {
            'resources': {'VCPU': {'capacity': 64, 'used': 8}},
            'traits': ['HW_CPU_X86_AVX2'],
            'parent_provider_uuid': None, 'root_provider_uuid': node}
        found[names.provider_uuid(node)] = {
            'resources': {
                name: {'capacity': amount + used, 'used': used}
                for name, amount in left.items()},
            'traits': [names.TRAIT],
            'parent_provider_uuid': node, 'root_provider_uuid': node}
    return found
