# SPDX-License-Identifier: Apache-2.0
"""Define the kinds of findings, and a finding."""

from collections.abc import Mapping
import shlex
import typing as ty

from nfv_sched.ops.answers.audit import repairs
from nfv_sched.ops.cloud import snapshot

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
DEVICE_MISSING = 'device-missing'
DEVICE_EXTRA = 'device-not-requested'
DEVICE_DIFFERS = 'device-differs'
ALLOCATION_MISSING = 'allocation-missing'
ALLOCATION_DIFFERS = 'allocation-differs'
ALLOCATION_ELSEWHERE = 'allocation-elsewhere'
ALLOCATION_ORPHAN = 'allocation-orphan'
INVENTORY = 'inventory-differs'
LEDGER = 'ledger-differs'
STALE_MOVE = 'stale-move'
UNMAPPED = 'host-not-mapped'
RESERVE = 'reserve-used'
OVERUSED = 'more-used-than-total'

_CLAIM_ANEW = ('compare its devices with virsh dumpxml; a cold migration '
               'claims them anew')
_RESTART = 'restart nova-compute on the host, which writes its record anew'

#: Name of each kind -> what to do about it.
KINDS: Mapping[str, str] = {
    POLICY: 'give the host back what the policy needs, or migrate the server',
    REMOTE_DEVICE: 'ask for nfv:pci_numa_affinity=strict, and migrate the '
                   'server',
    REMOTE_NETWORK: 'detach the port, or migrate the server',
    PINNED_TWICE: 'migrate one of the servers',
    NOT_DEDICATED: "put the CPU back into the host's cpu_dedicated_set, or "
                   'migrate the server',
    UNKNOWN_GUEST: f'look for the server with virsh list; {_RESTART}',
    LEFT_BEHIND: 'start nova-compute on the host, which cleans up; if it '
                 'never comes back, delete its compute service',
    NOT_IN_RECORD: _RESTART,
    PAGES: 'for its memory pages to be claimed, migrate the server',
    FLOATING: 'migrate the server to a host for servers with shared CPUs',
    DEVICE_GONE: _RESTART,
    DEVICE_OTHER: 'hard-reboot the server, and compare its devices with '
                  'virsh dumpxml',
    DEVICE_MISSING: _CLAIM_ANEW,
    DEVICE_EXTRA: _CLAIM_ANEW,
    DEVICE_DIFFERS: _CLAIM_ANEW,
    ALLOCATION_MISSING: 'if the server is there, let Nova allocate it',
    ALLOCATION_DIFFERS: 'if the server is as Nova has it, let Nova allocate '
                        'it anew',
    ALLOCATION_ELSEWHERE: 'remove what it has there',
    ALLOCATION_ORPHAN: 'remove what it has there',
    INVENTORY: 'compare cpu_dedicated_set and cpu_shared_set with the host; '
               'see the log of nova-compute for a refused inventory',
    LEDGER: 'see that nfv-sched-ledger runs, and its log',
    STALE_MOVE: 'see openstack server migration list; restart nova-compute '
                'on both hosts',
    UNMAPPED: 'disable the compute service until the host is mapped',
    RESERVE: 'migrate servers without NUMA topology, or reserve fewer huge '
             'pages on the host; give their flavors hw:mem_page_size',
    OVERUSED: 'give the host back what it lacks, or migrate servers: what is '
              'not there is lost at the next start of a server',
}


# Kinds about resources on a host that a server is not on, or no longer.
_ELSEWHERE = frozenset({
    LEFT_BEHIND, DEVICE_GONE, ALLOCATION_ELSEWHERE, STALE_MOVE})


# Kinds that end when the server is moved to another host.
_MOVED = frozenset({
    POLICY, REMOTE_DEVICE, REMOTE_NETWORK, PINNED_TWICE, NOT_DEDICATED, PAGES,
    DEVICE_MISSING, DEVICE_EXTRA, DEVICE_DIFFERS})


class AuditFinding(ty.NamedTuple):
    """A violated guarantee or an inconsistent record."""

    kind: str  #: one of :data:`KINDS`
    host: str  #: name of the host, unique in the cloud
    text: str  #: description with numbers
    #: UUID of the server; empty if no known server is concerned
    server: str = ''
    name: str = ''  #: name of the server
    #: earliest time at which it can have begun, by Nova's records: ISO 8601,
    #: UTC; empty if these do not say
    since: str = ''
    #: commands that repair it, each as words; empty if none is known
    commands: tuple[repairs.Command, ...] = ()

    @property
    def instruction(self) -> str:
        return KINDS[self.kind]

    @property
    def advice(self) -> str:
        lines = '; '.join(map(shlex.join, self.commands))
        return f'{self.instruction}: {lines}' if lines else self.instruction


def finding(
    kind: str, host: str, text: str, server: snapshot.Server | None = None,
    since: str = '', commands: tuple[repairs.Command, ...] = (),
) -> AuditFinding:
    """Create a finding.

    :param server: the server concerned, whose age limits ``since``
    :param since: further earliest time: ISO 8601, UTC; the later one counts
    :param commands: commands that repair it; those of :data:`_MOVED` are known
    """
    if server is None:
        return AuditFinding(kind, host, text, since=since, commands=commands)
    own = server.created if kind in _ELSEWHERE else settled(server)
    if kind in _MOVED:
        commands = repairs.move(host, server.uuid)
    return AuditFinding(kind, host, text, server.uuid, server.name,
                        max(since, own), commands)


def settled(server: snapshot.Server) -> str:
    """Return when a server can have come to its host: ISO 8601, UTC, or ''."""
    # Nova's launched_at does not tell: a rescue and a rebuild change it, and a
    # live migration does not.
    return max(server.created, server.moved)
