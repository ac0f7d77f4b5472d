# SPDX-License-Identifier: Apache-2.0
"""Define the moves of a plan, as they are carried out."""

from collections.abc import Mapping
import dataclasses
import typing as ty
import uuid

from nfv_sched.base import strings

Kind = ty.Literal['live', 'cold', 'evacuate', 'shelve', 'dhcp', 'router']

#: States of servers that Nova migrates, evacuates or shelves.
STATES: Mapping[str, tuple[str, ...]] = {
    'live': ('active', 'paused'), 'cold': ('active', 'stopped'),
    'evacuate': ('active', 'stopped', 'error'),
    'shelve': ('active', 'stopped', 'paused', 'suspended', 'shelved')}

# How tasks begin of a server that is being deleted or evacuated, or may be on
# another host already.
_NOT_EVACUATED = ('deleting', 'soft-deleting', 'migrating', 'resize_',
                  'rebuild')

#: Seconds in which Nova frees the resources of a server on its old host: the
#: last step of a move, after the server is shown active on the new one.
FREED_SECONDS = 5
#: Seconds until nova-scheduler knows of a live migration: until both hosts
#: send the list of their servers, each scheduler_instance_sync_interval (120
#: by default).
SYNCED_SECONDS = 130

#: What a live migration does to VFs.
VFS_DETACHED = (
    'Nova detaches VFs at the start of a live migration, and attaches others '
    'on the destination: until then these ports carry no traffic, unless the '
    'server bonds them with other ports.')

#: Reason for which a host that is emptied is disabled.
REASON = 'to be emptied'

_MAX_NAME = 255


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CopiedData:
    """Amounts that a migration copies from host to host."""

    memory_mib: int  #: memory in MiB; 0 for a cold migration
    #: disks in MiB, at most: those on no volume, nor on storage that Placement
    #: shows as shared; null if its allocations are not known
    disk_mib: int | None

    @property
    def mib(self) -> int | None:
        return None if self.disk_mib is None else (
            self.memory_mib + self.disk_mib)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move of a server, of the DHCP server of a network, or of a router.

    A server that is shelved leaves its host, and goes to no other.
    """

    number: int = 0  #: in the plan, from 1; 0 outside of one
    kind: Kind
    id: str  #: UUID of the server, network or router
    name: str
    source: str  #: name of the host that it leaves
    #: name of the host to which it goes; empty if it is shelved
    destination: str
    source_agent: str = ''  #: UUID of the agent there; empty for a server
    destination_agent: str = ''
    #: UUIDs of the servers whose hosts decide whether Nova takes the
    #: destination
    related: tuple[str, ...] = ()
    #: number of ports whose devices Nova replaces while the server runs; None
    #: if its ports are not known
    vfs_detached: int | None = None
    #: what is copied; None if that is not known, or it is no migration
    copied: CopiedData | None = None
    #: number of the only NUMA node there for it; None if it has a choice, or
    #: needs what neither nodes nor Placement count
    only_node: int | None = None

    def __str__(self) -> str:
        return strings.line(self.name) or self.id

    @property
    def is_of_server(self) -> bool:
        """Whether Nova makes it, not Neutron."""
        return self.kind in STATES

    @property
    def is_shelving(self) -> bool:
        return self.kind == 'shelve'

    @property
    def is_evacuation(self) -> bool:
        return self.kind == 'evacuate'

    def check(self) -> None:
        for each in (self.id,) if self.is_of_server else (
                self.id, self.source_agent, self.destination_agent):
            if not is_uuid(each):
                raise ValueError(f'move {self.number}: {each!r} is not a UUID')
        if self.is_shelving and self.destination:
            raise ValueError(f'move {self.number}: a server that is shelved '
                             'has no destination')
        for host in (self.source,) if self.is_shelving else (
                self.source, self.destination):
            _check_host(host, f'move {self.number}: {host!r}')
        if self.is_of_server and self.source == self.destination:
            raise ValueError(f'move {self.number}: source and destination '
                             'are the same host')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    moves: tuple[Move, ...]  #: in the order in which they were planned
    #: names of the hosts that are disabled first
    closed_hosts: tuple[str, ...] = ()
    #: names of the hosts that must be enabled, and up
    enabled_hosts: tuple[str, ...] = ()
    #: number of the round of a plan that has several; 0 without any
    round: int = 0
    #: number of the round that comes afterwards, if any
    next_round: int | None = None
    #: names of hosts that were disabled for this round, and are not emptied in
    #: it
    given_up_hosts: tuple[str, ...] = ()
    #: what the plan does not achieve, as clauses
    left_undone: tuple[str, ...] = ()
    staying: tuple[str, ...] = ()  #: UUIDs of servers that are not evacuated
    warnings: tuple[str, ...] = ()  #: why it may be wrong, as clauses
    #: words of the command that plans anew what is left, without the name of
    #: the program
    command: tuple[str, ...] = ()

    def check(self) -> None:
        """Check the values that go into requests, and against each other."""
        disabled = {*self.closed_hosts, *self.given_up_hosts}
        for host in (*disabled, *self.enabled_hosts):
            _check_host(host, f'{host!r}')
        for host in disabled.intersection(self.enabled_hosts):
            raise ValueError(f'{host!r} is to be disabled, and must be '
                             'enabled')
        if [move.number for move in self.moves] != list(
                range(1, len(self.moves) + 1)):
            raise ValueError('moves are not numbered from 1')
        lost = {move.source for move in self.moves if move.is_evacuation}
        if lost and (disabled or not all(
                move.is_evacuation and move.destination not in lost
                for move in self.moves)):
            raise ValueError('evacuations go with no other moves, and to none '
                             'of the hosts that are lost')
        hosts: dict[str, str] = {}
        for move in self.moves:
            move.check()
            if move.is_of_server:
                if move.destination in disabled:
                    raise ValueError(
                        f'move {move.number}: {move.destination!r} is to be '
                        'disabled, and can be no destination')
                # One that makes room may move on, from where it is then.
                if hosts.get(move.id, move.source) != move.source:
                    raise ValueError(
                        f'move {move.number}: {move.id} is not on '
                        f'{move.source!r} after the moves before')
                hosts[move.id] = move.destination


def how(kind: str, vfs_detached: int | None) -> str:
    if not vfs_detached:
        return kind
    return f'{kind}, {strings.count(vfs_detached, "VF")} detached'


def can_evacuate(task: str | None) -> bool:
    """Return whether it is safe to evacuate a server that has a task."""
    # Nova does, whatever the task was when the host was lost.
    return not (task or '').startswith(_NOT_EVACUATED)


def _check_host(name: str, what: str) -> None:
    if not (0 < len(name) <= _MAX_NAME and name.isprintable()):
        raise ValueError(f'{what} is not the name of a host')


def is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
