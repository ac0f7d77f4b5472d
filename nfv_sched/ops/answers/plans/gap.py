# SPDX-License-Identifier: Apache-2.0
"""Find data that a plan needs and the snapshot lacks.

A plan is right only as far as the snapshot goes: with a gap, none is called
exact.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
import enum

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.cloud import snapshot

#: Filters that need data which only Neutron has.
_LIMITS = ('VSwitchPortLimitFilter', 'SecurityRuleLimitFilter')


class GapKind(enum.StrEnum):
    """Kind of the missing data."""

    #: Ports of hosts, and security group rules of ports, by Neutron.
    NEUTRON = 'neutron'
    #: Resource providers of the named hosts.
    PLACEMENT = 'placement'
    #: Hosts and servers of the named cells.
    CELL = 'cell'
    FLAVORS = 'flavors'
    #: Migrations that hold resources on either host.
    MIGRATIONS = 'migrations'
    #: Ports and PCI requests of the named servers.
    PORTS = 'ports'
    #: Resources that ports of the named servers request from Placement, such
    #: as a minimum bandwidth.
    PORT_RESOURCES = 'port-resources'
    #: A record that could not be read; its name is the error.
    RECORD = 'record'


def of_cloud(cloud: snapshot.Cloud,
             hosts: Collection[str] | None = None,
             ) -> tuple[document.UnreadData, ...]:
    """Return the gaps of a snapshot that matter for plans.

    :param hosts: names of the hosts whose servers move; None for all
    """
    return tuple([
        document.UnreadData(kind=kind, names=tuple(names))
        for kind, names in _gaps(cloud, [
            server for server in cloud.servers
            if server.host is not None and (
                hosts is None or server.host in hosts)])])


def _gaps(cloud: snapshot.Cloud, servers: list[snapshot.Server],
          ) -> Iterator[tuple[GapKind, Sequence[str]]]:
    """Yield kind of the missing data, and names; no names if all lack it."""
    cells, records = [], []
    for missing in cloud.missing:
        if missing.kind in snapshot.UNREAD_CELLS:
            cells.append(missing.cell)
        else:
            records.append(str(missing))
    if cells:
        yield GapKind.CELL, cells
    if _needs_neutron(cloud) and any(
            host.network is None for host in cloud.hosts):
        yield GapKind.NEUTRON, ()
    bare = [host.name for host in cloud.hosts if not host.providers]
    if bare:
        yield GapKind.PLACEMENT, (
            () if len(bare) == len(cloud.hosts) else bare)
    if cloud.servers and not cloud.flavors:
        yield GapKind.FLAVORS, ()
    if cloud.moves is None and any(
            server.task or server.state == snapshot.RESIZED
            for server in cloud.servers):
        yield GapKind.MIGRATIONS, ()
    without_ports = [server for server in servers if server.ports is None]
    with_resources = [
        server for server in servers
        if any(port.has_allocation for port in server.ports or ())]
    for kind, lacking in ((GapKind.PORTS, without_ports),
                          (GapKind.PORT_RESOURCES, with_resources)):
        if lacking:
            yield kind, [server.name or server.uuid for server in lacking]
    for record in records:
        yield GapKind.RECORD, (record,)


def _needs_neutron(cloud: snapshot.Cloud) -> bool:
    """Return whether data from Neutron can decide where a server goes."""
    enabled = cloud.options.get('filter_scheduler', {}).get(
        'enabled_filters') or ()
    return any(name in enabled for name in _LIMITS) or any(
        server.ports or server.ports is None for server in cloud.servers
        if server.host is not None)
