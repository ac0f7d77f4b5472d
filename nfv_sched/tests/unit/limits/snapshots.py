# SPDX-License-Identifier: Apache-2.0
"""Snapshots made by hand, and a source that has them at hand."""

import dataclasses

from nfv_sched.ledger import neutron
from nfv_sched.limits import names
from nfv_sched.limits import usage
from nfv_sched.ops.simulator import network as simulated


def snapshot(ports=(), rules=None, default_groups=None, agents=(),
             age=0.0, dhcp=None, routers=None, networks=None):
    """A snapshot.

    :param ports: keyword arguments of a port each; see :func:`add_port`
    :param rules: security group -> number of rules
    :param default_groups: project -> security group
    :param agents: types of agents
    :param age: seconds
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
    for project, group in (default_groups or {}).items():
        builder.add_default_group(project, group)
    for host, count in (dhcp or {}).items():
        builder.add_agent_type('DHCP agent')
        builder.add_dhcp_agent(host, count)
    for host, count in (routers or {}).items():
        builder.add_l3_agent(host, count)
    for network, port_security in (networks or {}).items():
        builder.add_network(network, port_security)
    found = builder.build()
    return dataclasses.replace(
        found, taken=found.taken - age, taken_at=found.taken_at - age)


def add_port(builder, number, host='host1', instance='', owner='compute:nova',
             vnic_type='normal', groups=(), id=None, project=None):
    """Add one port; those of servers belong to the project ``p``."""
    if project is None:
        project = 'p' if owner.startswith('compute:') else ''
    builder.add_port(id or f'port{number}', owner, instance or f'vm{number}',
                     host, vnic_type, tuple(groups), project)


class Figures(simulated.SimulatedUsageSource):
    """Figures that a test has made up, believed while they are young.

    :param value: snapshot, None if there is none
    :param more: what it has besides for those who ask; if None, whatever is
        not known has no rules
    """

    def __init__(self, value=None, more=None):
        super().__init__()
        self.value = value
        self.more = more

    def get(self):
        """See ``SnapshotSource``."""
        return self.value

    def is_fresh(self, snapshot):
        """See ``SnapshotSource``."""
        return (snapshot is not None and
                snapshot.age() <= neutron.CONF.nfv_sched.max_snapshot_age)

    def look_up(self, snapshot, interfaces):
        """See ``SnapshotSource``."""
        if self.more is None:
            super().look_up(snapshot, interfaces)
        else:
            interfaces.more = self.more


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
