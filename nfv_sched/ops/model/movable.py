# SPDX-License-Identifier: Apache-2.0
"""Decide which servers Nova can move, and by which kind of move.

Only reasons for which Nova refuses a move before it looks for a host count
here.
"""

import dataclasses
import enum
import fnmatch
import typing as ty

import os_resource_classes as orc
from oslo_utils import strutils

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.run import values


class MoveKind(enum.StrEnum):
    """Kind of a move; evacuations are from a host that is lost.

    A server that is shelved leaves its host, and goes to no other.
    """

    LIVE = 'live'
    COLD = 'cold'
    EVACUATE = 'evacuate'
    SHELVE = 'shelve'


LIVE, COLD, EVACUATE, SHELVE = MoveKind
_WILDCARDS = frozenset('*?[')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveOptions:
    """Options of all plans by which servers are moved."""

    #: patterns of names of servers and hosts that take no part, or UUIDs
    avoid: tuple[str, ...] = ()
    #: whether servers are migrated cold of which a live migration would detach
    #: VFs
    cold_for_vfs: bool = False
    live_only: bool = False  #: whether no server is migrated cold

    def avoids(self, name: str) -> bool:
        # A name with brackets does not match itself as a pattern.
        return name in self.avoid or any(
            fnmatch.fnmatchcase(name, each) for each in self.avoid
            if not _WILDCARDS.isdisjoint(each))


class WordedKind(enum.StrEnum):
    """Kind of a fact, with what people read; ``{}`` stands for names."""

    clause: str

    def __new__(cls, value: str, clause: str) -> ty.Self:
        kind = str.__new__(cls, value)
        kind._value_, kind.clause = value, clause
        return kind


class ObstacleKind(WordedKind):
    """Kind of an obstacle, worded to be read after the server's name."""

    HOST_UNKNOWN = 'host_unknown', 'its host is not known'
    SERVICE_DOWN = (
        'service_down', 'the compute service on {} is down: evacuate it')
    BUSY = 'busy', 'Nova is busy with it ({})'
    STATE = 'state', 'it is {}'
    LOCKED = 'locked', 'it is locked'
    ACCELERATOR = 'accelerator', 'it has an accelerator of Cyborg'
    SHARE = 'share', 'it has a share of Manila'
    LOCAL_DISK = 'local_disk', 'its disk is a local volume of LVM'
    TPM_SECRET = 'tpm_secret', 'only its owner can read the secret of its TPM'
    TPM = 'tpm', 'Nova evacuates no server with a TPM'
    TPM_SHELVED = 'tpm_shelved', 'Nova shelves no server with a TPM'
    ENCRYPTED = 'encrypted', 'its memory is encrypted'
    DEVICES = (
        'devices',
        'it has PCI devices of an alias that is not live_migratable')
    AVOIDED = 'avoided', 'as --avoid says'
    LIVE_ONLY = 'live_only', 'as --live-only says'
    MAX_MOVES = 'max_moves', 'as --max-moves says'
    #: With --cold-for-vfs: the server is migrated cold.
    VFS = 'vfs', 'a live migration would detach its VFs'
    #: Some host would keep its strict policies only in a cold migration.
    LIMITS = 'limits', 'a live migration would lose its limits (bug 2153425)'
    #: Nova refuses the move, or each claim fails; the name says why.
    REFUSED = 'refused', '{}'
    #: The simulator refused a live migration; the server is migrated cold.
    REFUSED_LIVE = 'refused_live', 'live to {}'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MoveObstacle:
    """A reason why Nova does not move a server so, to whichever host."""

    kind: str  #: kind of the obstacle, such as "devices", "busy", "state"
    #: what it is about: the host, the state, the task, Nova's message; null if
    #: the kind says all
    name: str | None
    text: str  #: the same, for people, as a clause


def obstacle(kind: ObstacleKind, name: str = '') -> MoveObstacle:
    return MoveObstacle(kind=kind, name=name or None,
                        text=kind.clause.format(name))


#: State of a server that can be live-migrated, and is not running then.
PAUSED = 'paused'

_ACCELERATED = 'accelerator-'
#: vNIC types of ports whose devices Nova detaches at the start of a live
#: migration; on the destination it attaches others.  So all releases since
#: 2023.1, and all but vdpa and remote-managed since Train.
DETACHED_VNIC_TYPES = (
    'direct', 'direct-physical', f'{_ACCELERATED}direct',
    f'{_ACCELERATED}direct-physical', 'remote-managed', 'vdpa')
# NOTE: Nova migrates servers with shares cold since 34.0.0, if all compute
# services are at version 74. By the release, as a snapshot says no more of a
# Nova that is elsewhere; not needed without Nova 33.
_SHARES_COLD = 34
#: The secret of such a TPM can be read on the destination.
_HOSTS_SECRET = 'host'
_TPM_REFUSED = {EVACUATE: ObstacleKind.TPM, SHELVE: ObstacleKind.TPM_SHELVED}


def why_not(kind: MoveKind, server: snapshot.Server,
            host: snapshot.Host | None, nova: str = '') -> MoveObstacle | None:
    """Return why a server cannot be moved.

    :param host: its host; None if that is not in the snapshot
    :param nova: release of Nova, such as ``34.0.0``
    :returns: None if Nova would look for a host, as far as the snapshot shows
    """
    if host is None:
        return obstacle(ObstacleKind.HOST_UNKNOWN)
    if kind != EVACUATE and not host.up:
        return obstacle(ObstacleKind.SERVICE_DOWN, host.name)
    # Nova evacuates a server whatever task it had when the host was lost.
    if kind != EVACUATE and server.task:
        return obstacle(ObstacleKind.BUSY, server.task)
    # Nova's API checks vm_states, not statuses (check_instance_state).
    if server.state not in values.STATES[kind]:
        return obstacle(ObstacleKind.STATE, server.state)
    # Nova lets administrators move it; somebody did not want that.
    if kind != EVACUATE and server.locked:
        return obstacle(ObstacleKind.LOCKED)
    if server.shares and (kind != COLD or _major_version(nova) < _SHARES_COLD):
        return obstacle(ObstacleKind.SHARE)
    of_server = _obstacle_kind(kind, server)
    return None if of_server is None else obstacle(of_server)


def vfs_detached(server: snapshot.Server) -> int | None:
    """Return how many ports lose their devices; None if none is known."""
    # Devices of an alias that is live_migratable stay attached.
    return None if server.ports is None else sum(
        port.vnic_type in DETACHED_VNIC_TYPES for port in server.ports)


def copied(kind: MoveKind, server: snapshot.Server,
           host_id: str | None) -> values.CopiedData | None:
    """Return what a migration from a host copies; None for other moves."""
    if kind not in (LIVE, COLD):
        return None
    return values.CopiedData(
        memory_mib=server.flavor.memory if kind == LIVE else 0,
        # Volumes take none of it, and shared storage is another provider.
        disk_mib=1024 * server.allocations.get(host_id or '', {}).get(
            orc.DISK_GB, 0) if server.allocations else None)


def _major_version(release: str) -> int:
    number = release.partition('.')[0]
    return int(number) if number.isdecimal() else 0


def _obstacle_kind(kind: MoveKind,
                   server: snapshot.Server) -> ObstacleKind | None:
    specs, image = server.flavor.extra_specs, server.image
    if any(port.vnic_type.startswith(_ACCELERATED)
           for port in server.ports or ()):
        return ObstacleKind.ACCELERATOR
    has_tpm = specs.get('hw:tpm_version') or image.get('hw_tpm_version')
    if kind in _TPM_REFUSED:
        return _TPM_REFUSED[kind] if has_tpm else None
    if specs.get('accel:device_profile'):
        return ObstacleKind.ACCELERATOR
    if kind == LIVE:
        if has_tpm and specs.get('hw:tpm_secret_security') != _HOSTS_SECRET:
            return ObstacleKind.TPM_SECRET
        if any(map(strutils.bool_from_string, (
                specs.get('hw:mem_encryption'),
                image.get('hw_mem_encryption')))):
            return ObstacleKind.ENCRYPTED
    storage = specs.get('aggregate_instance_extra_specs:storage')
    return ObstacleKind.LOCAL_DISK if storage == 'local_lvm' and (
        not server.is_on_volume) else None
