# SPDX-License-Identifier: Apache-2.0
"""Define the kinds of findings, and a finding."""

from collections.abc import Mapping
import shlex
import typing as ty

from nfv_sched.ops.snapshot import snapshot

POLICY = 'policy-not-kept'
REMOTE_DEVICE = 'remote-device'
REMOTE_NETWORK = 'remote-network'
PINNED_TWICE = 'cpu-pinned-twice'
NOT_DEDICATED = 'cpu-not-dedicated'
UNKNOWN_GUEST = 'unknown-guest'
LEFT_BEHIND = 'left-behind'
NOT_IN_RECORD = 'not-in-record'
PAGES = 'pages-not-accounted'
FLOATING = 'floating-guest'
DEVICE_GONE = 'device-of-gone-server'
DEVICE_OTHER = 'device-of-another'
ALLOCATION_MISSING = 'allocation-missing'
ALLOCATION_DIFFERS = 'allocation-differs'
ALLOCATION_ELSEWHERE = 'allocation-elsewhere'
ALLOCATION_ORPHAN = 'allocation-orphan'
INVENTORY = 'inventory-differs'
LEDGER = 'ledger-differs'
STALE_MOVE = 'stale-move'
UNMAPPED = 'host-not-mapped'
RESERVE = 'reserve-used'

_RESTART = 'restart nova-compute on the host, which writes its record anew'
_HEAL = ('openstack server show; then nova-manage placement '
         'heal_allocations --instance UUID')

#: Name of each kind -> what to do about it; HOST and UUID stand for the host
#: and the server.
KINDS: Mapping[str, str] = {
    POLICY: 'migrate the server: nfv-sched host drain HOST --server UUID -f '
            'commands; or give the host back what the policy needs',
    REMOTE_DEVICE: 'migrate the server; ask for '
                   'nfv:pci_numa_affinity=strict',
    REMOTE_NETWORK: 'migrate the server, or detach the port',
    PINNED_TWICE: 'migrate one of the servers',
    NOT_DEDICATED: "migrate the server, or put the CPU back into the host's "
                   'cpu_dedicated_set',
    UNKNOWN_GUEST: f'look for the guest with virsh list; {_RESTART}',
    LEFT_BEHIND: 'start nova-compute on the host, which cleans up; if it '
                 'never comes back, delete its compute service',
    NOT_IN_RECORD: _RESTART,
    PAGES: 'migrate the server, so that its memory pages are claimed',
    FLOATING: 'migrate the server to a host for shared guests',
    DEVICE_GONE: _RESTART,
    DEVICE_OTHER: 'hard-reboot the server, and compare its devices with '
                  'virsh dumpxml',
    ALLOCATION_MISSING: f'{_HEAL}',
    ALLOCATION_DIFFERS: f'{_HEAL} --force',
    ALLOCATION_ELSEWHERE: 'nova-manage placement audit; remove what it has '
                          'there with openstack resource provider allocation',
    ALLOCATION_ORPHAN: 'nova-manage placement audit --delete',
    INVENTORY: 'compare cpu_dedicated_set and cpu_shared_set with the host; '
               'see the log of nova-compute for a refused inventory',
    LEDGER: 'see that nfv-sched-ledger runs, and its log',
    STALE_MOVE: 'see openstack server migration list; restart nova-compute '
                'on both hosts',
    UNMAPPED: 'nova-manage cell_v2 discover_hosts; disable the compute '
              'service until then',
    RESERVE: 'migrate servers without NUMA topology, or reserve fewer huge '
             'pages on the host; give their flavors hw:mem_page_size',
}


# Kinds about resources on a host that a server is not on, or no longer.
_ELSEWHERE = frozenset({
    LEFT_BEHIND, DEVICE_GONE, ALLOCATION_ELSEWHERE, STALE_MOVE})


class AuditFinding(ty.NamedTuple):
    """A violated guarantee or an inconsistent record.

    :ivar kind: one of :data:`KINDS`
    :ivar host: name of the host, unique in the cloud
    :ivar text: description with numbers
    :ivar server: UUID of the server; empty if no known server is concerned
    :ivar name: name of the server
    :ivar since: earliest time at which it can have begun, by Nova's records:
        ISO 8601, UTC; empty if these do not say
    """

    kind: str
    host: str
    text: str
    server: str = ''
    name: str = ''
    since: str = ''

    @property
    def advice(self) -> str:
        """Instructions for the operator."""
        return KINDS[self.kind].replace(
            'HOST', shlex.quote(self.host)).replace(
                'UUID', self.server or 'UUID')


def finding(
    kind: str, host: str, text: str, server: snapshot.Server | None = None,
    since: str = '',
) -> AuditFinding:
    """Create a finding.

    :param server: the server concerned, whose age limits ``since``
    :param since: further earliest time: ISO 8601, UTC; the later one counts
    """
    if server is None:
        return AuditFinding(kind, host, text, since=since)
    own = server.created if kind in _ELSEWHERE else settled(server)
    return AuditFinding(kind, host, text, server.uuid, server.name,
                        max(since, own))


def settled(server: snapshot.Server) -> str:
    """Return when a server can have come to its host: ISO 8601, UTC, or ''."""
    # Nova's launched_at does not tell: a rescue and a rebuild change it, and a
    # live migration does not.
    return max(server.created, server.moved)
