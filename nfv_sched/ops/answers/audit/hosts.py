# SPDX-License-Identifier: Apache-2.0
"""Pair each host with the servers that are on it, or may be."""

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence
import dataclasses
import functools
import shlex

from nfv_sched.fit.numa import topology
from nfv_sched.limits import names
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import restore_hosts

#: Status of a device that belongs to a server.
USED = ('claimed', 'allocated')
_Kind = snapshot.MissingKind

#: Resource provider -> resource class -> amount.
Allocations = Mapping[str, Mapping[str, int]]
Command = tuple[str, ...]  # its words
Findings = Iterator[values.AuditedFinding]


@dataclasses.dataclass(frozen=True, eq=False)
class Site:
    """A host and the servers that are on it, or may be.

    While Nova works on a server, or moves it, its record, that of its host
    and Placement are written one after the other.  Such a server is not
    *steady*: it may use resources on either host, or both, and none are
    reported as missing.
    """

    whole: '_Whole'
    host: snapshot.Host
    title: str  #: name of the host, unique in the cloud
    servers: tuple[snapshot.Server, ...]
    #: servers without a task or an unsettled migration
    steady: tuple[snapshot.Server, ...]
    moves: tuple[snapshot.Migration, ...]  #: migrations from or to the host
    aggregates: Sequence[snapshot.Aggregate]  #: those of the host

    @functools.cached_property
    def topology(self) -> topology.HostTopology | None:
        """The NUMA nodes as rules read them; None if they cannot be read."""
        if not (nodes := self.host.nodes):
            return None
        try:
            host_topology = topology.host_topology(
                restore_hosts.topology(nodes))
            if host_topology is not None:
                [cell.pages for cell in host_topology.cells]
        except topology.OddTopologyError:
            return None
        return host_topology

    @functools.cached_property
    def positions(self) -> Mapping[int, int]:
        return {node.number: index
                for index, node in enumerate(self.host.nodes or ())}

    @property
    def certain(self) -> Iterator[tuple[snapshot.Server, snapshot.GuestNode]]:
        for server in self.steady:
            for part in server.nodes or ():
                yield server, part

    @property
    def possible(self) -> Iterator[snapshot.GuestNode]:
        """NUMA nodes here of the other servers, and of migrations."""
        steady = {server.uuid for server in self.steady}
        for server in self.servers:
            if server.uuid not in steady:
                yield from server.nodes or ()
        for move in self.moves:
            if move.source == self.host.name:
                yield from move.before or ()
            if move.target == self.host.name and move.server not in steady:
                yield from move.after or ()

    @property
    def guessed(self) -> bool:
        """True if servers may be here whose NUMA nodes are not known."""
        whole = self.whole
        if whole.unread or (whole.cloud.moves is None and whole.busy):
            return True
        return any(
            move.after is None and not move.settled and (
                move.server not in whole.servers
                or whole.servers[move.server].nodes is not None)
            for move in self.moves)

    def finding(self, kind: str, text: str,
                server: snapshot.Server | None = None, since: str = '',
                commands: tuple[Command, ...] = ()) -> values.AuditedFinding:
        """Return a finding on this host.

        :param server: the server concerned, whose age limits ``since``
        :param since: further earliest time: ISO 8601, UTC; the later one
            counts
        :param commands: commands that repair it; those of
            :data:`values.MOVED` are known
        """
        name = uuid = None
        if server is not None:
            name, uuid = server.name or None, server.uuid
            since = max(since, server.created if kind in values.ELSEWHERE
                        else settled(server))
            if kind in values.MOVED:
                # It prints how to move the server.
                commands = (('nfv-sched', 'host', 'drain', '--server', uuid,
                             '-f', 'commands', '--', self.title),)
        what_to_do = values.KINDS[kind]
        if commands:
            what_to_do += f': {"; ".join(map(shlex.join, commands))}'
        return values.AuditedFinding(
            host=self.title, host_id=self.host.uuid, server=name,
            server_id=uuid, kind=kind, finding=text, since=since or None,
            what_to_do=what_to_do, commands=commands)

    def devices_of(self, server: snapshot.Server) -> list[snapshot.Device]:
        # Devices that it may still hold from before an unconfirmed resize on
        # this same host are left out.
        return self._devices.get(server.uuid, [])

    @functools.cached_property
    def _devices(self) -> Mapping[str, list[snapshot.Device]]:
        before = {
            move.server: None if move.before is None else {
                part.host_node for part in move.before}
            for move in self.moves
            if move.source == move.target == self.host.name}
        devices: dict[str, list[snapshot.Device]] = {}
        for device in self.host.devices:
            nodes = before.get(device.server or '', ())
            if nodes is None or device.node in nodes:
                continue
            if device.server is not None and device.status in USED:
                devices.setdefault(device.server, []).append(device)
        return devices


@dataclasses.dataclass(frozen=True, slots=True)
class _Whole:
    cloud: snapshot.Cloud
    servers: Mapping[str, snapshot.Server]  #: the servers by UUID
    #: resource provider -> its consumers, each with all of its allocations
    holders: Mapping[str, list[tuple[str, Allocations]]]
    has_ledgers: bool  #: whether the ledger of any host is in Placement
    #: True if Nova works on a server, or a resized server may still hold
    #: resources on its old host
    busy: bool
    #: UUIDs of servers and migrations that could not be read
    unread: frozenset[str]
    #: name of a host -> UUIDs of networks for which it serves DHCP, if any
    served: Mapping[str, Collection[str]]
    ports: Mapping[str, int]  #: network -> number of ports of servers


def sites(cloud: snapshot.Cloud) -> Iterator[Site]:
    holders: dict[str, list[tuple[str, Allocations]]] = {}
    for consumer, allocations in (
            *((server.uuid, server.allocations or {})
              for server in cloud.servers),
            *(cloud.consumers or {}).items()):
        for provider in allocations:
            holders.setdefault(provider, []).append((consumer, allocations))
    whole = _Whole(
        cloud, {server.uuid: server for server in cloud.servers}, holders,
        any(names.TRAIT in provider.traits
            for host in cloud.hosts for provider in host.providers),
        any(server.state == snapshot.RESIZED or server.task is not None
            for server in cloud.servers),
        cloud.unread(_Kind.SERVER, _Kind.MIGRATION),
        {agent.host: agent.serves for agent in cloud.network_agents or ()
         if agent.kind == snapshot.DHCP and agent.serves},
        collections.Counter(port.network for server in cloud.servers
                            for port in server.ports or ()))
    servers = view.by_host(cloud)
    titles = view.titles(cloud.hosts)
    aggregates = scenario.aggregates_by_host(cloud.aggregates)
    moving = {move.server for move in cloud.moves or () if not move.settled}
    moves: dict[str, list[snapshot.Migration]] = {}
    for move in cloud.moves or ():
        # What a finished evacuation leaves on its source is reported as left
        # behind, not as part of a move.
        if move.status != 'done':
            for name in {move.source, move.target}:
                if name is not None:
                    moves.setdefault(name, []).append(move)
    for host in readable(cloud):
        here = tuple(servers.get(host.uuid, ()))
        yield Site(
            whole, host, titles[host.uuid], here,
            tuple(server for server in here
                  if server.task is None and server.state != 'deleted'
                  and server.uuid not in moving),
            tuple(moves.get(host.name, ())), aggregates[host.name])


def readable(cloud: snapshot.Cloud) -> list[snapshot.Host]:
    """Return the hosts whose cells were read, so that they can be checked."""
    if not names_unread(cloud):
        return []
    cells = {each.cell for each in cloud.missing
             if each.kind in snapshot.UNREAD_CELLS}
    return [host for host in cloud.hosts if host.cell not in cells]


def names_unread(cloud: snapshot.Cloud) -> bool:
    """Return True if a cloud names all cells and servers that it lacks."""
    return all(each.kind is not _Kind.OTHER for each in cloud.missing)


def settled(server: snapshot.Server) -> str:
    """Return when a server can have come to its host: ISO 8601, UTC, or ''."""
    # Nova's launched_at does not tell: a rescue and a rebuild change it, and a
    # live migration does not.
    return max(server.created, server.moved)


def describe_other(uuid: str | None, server: snapshot.Server | None) -> str:
    """Describe a server not on the host in question; None if there is none."""
    if server is None:
        return f'{uuid}, for which there is no server'
    return f'a server that is on {server.host or "no host"}'
