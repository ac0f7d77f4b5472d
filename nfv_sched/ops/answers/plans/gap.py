# SPDX-License-Identifier: Apache-2.0
"""Find data that a plan needs and the snapshot lacks.

A plan is right only as far as the snapshot goes: with a gap, none is called
exact.
"""

from collections.abc import Collection, Iterator, Sequence

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import movable

#: Filters that need data which only Neutron has.
_LIMITS = ('VSwitchPortLimitFilter', 'SecurityRuleLimitFilter')


class GapKind(movable.WordedKind):
    """Kind of the missing data; ``of_names`` are the names, if any."""

    NEUTRON = 'neutron', (
        'Neutron was not read: ports of hosts, security group rules and '
        'resource requests of ports are not counted.')
    PLACEMENT = 'placement', (
        'Resource providers in Placement{of_names} were not read: inventories '
        'and traits are not known.')
    CELL = 'cell', ('Cells were not read: {names}. Their hosts and servers '
                    'are not known.')
    FLAVORS = 'flavors', 'Flavors were not read.'
    MIGRATIONS = 'migrations', (
        'Migrations were not read: what they hold on hosts is not known.')
    PORTS = 'ports', ('Ports{of_names} were not read: their networks and PCI '
                      'devices are not counted.')
    PORT_RESOURCES = 'port-resources', (
        'Resource requests of ports{of_names}, such as a minimum bandwidth, '
        'are not counted.')
    #: A record that could not be read; its name is the error.
    RECORD = 'record', 'Not read: {names}.'


def of_cloud(cloud: snapshot.Cloud,
             hosts: Collection[str] | None = None,
             ) -> tuple[document.UnreadData, ...]:
    """Return gaps that matter for plans about these hosts, or all."""
    return tuple([document.UnreadData(kind=kind, names=tuple(names))
                  for kind, names in _gaps(cloud, hosts)])


def _gaps(cloud: snapshot.Cloud, hosts: Collection[str] | None,
          ) -> Iterator[tuple[GapKind, Sequence[str]]]:
    """Yield kind of the missing data, and names; no names if all lack it."""
    placed = [server for server in cloud.servers if server.host is not None]
    cells = [missing.cell for missing in cloud.missing
             if missing.kind in snapshot.UNREAD_CELLS]
    if cells:
        yield GapKind.CELL, cells
    enabled = cloud.options.get('filter_scheduler', {}).get(
        'enabled_filters') or ()
    # Only then data from Neutron can decide where a server goes.
    needs_neutron = any(name in enabled for name in _LIMITS) or any(
        server.ports or server.ports is None for server in placed)
    if needs_neutron and any(host.network is None for host in cloud.hosts):
        yield GapKind.NEUTRON, ()
    if bare := [host.name for host in cloud.hosts if not host.providers]:
        yield GapKind.PLACEMENT, (
            () if len(bare) == len(cloud.hosts) else bare)
    if cloud.servers and not cloud.flavors:
        yield GapKind.FLAVORS, ()
    if cloud.moves is None and any(
            server.task or server.state == snapshot.RESIZED
            for server in cloud.servers):
        yield GapKind.MIGRATIONS, ()
    servers = [server for server in placed
               if hosts is None or server.host in hosts]
    for kind, lacking in (
            (GapKind.PORTS, [
                server for server in servers if server.ports is None]),
            (GapKind.PORT_RESOURCES, [
                server for server in servers if any(
                    port.has_allocation for port in server.ports or ())])):
        if lacking:
            yield kind, [server.name or server.uuid for server in lacking]
    for missing in cloud.missing:
        if missing.kind not in snapshot.UNREAD_CELLS:
            yield GapKind.RECORD, (str(missing),)
