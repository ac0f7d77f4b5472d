# SPDX-License-Identifier: Apache-2.0
"""Define the findings of ``nfv-sched cloud audit``, and their kinds."""

import dataclasses

from nfv_sched.ops.cli import tables

#: Name of each kind -> what to do about it.
KINDS: dict[str, str] = {}


def _kind(name: str, what_to_do: str) -> str:
    KINDS[name] = what_to_do
    return name


_CLAIM_ANEW = ('compare its devices with virsh dumpxml; a cold migration '
               'claims them anew')
_RESTART = 'restart nova-compute on the host, which writes its record anew'

POLICY = _kind('policy-not-kept', 'give the host back what the policy needs, '
               'or migrate the server')
REMOTE_DEVICE = _kind('remote-device', 'ask for nfv:pci_numa_affinity=strict, '
                      'and migrate the server')
REMOTE_NETWORK = _kind('remote-network',
                       'detach the port, or migrate the server')
PINNED_TWICE = _kind('cpu-pinned-twice', 'migrate one of the servers')
NOT_DEDICATED = _kind(
    'cpu-not-dedicated', "put the CPU back into the host's cpu_dedicated_set, "
    'or migrate the server')
UNKNOWN_GUEST = _kind('unknown-guest',
                      f'look for the server with virsh list; {_RESTART}')
LEFT_BEHIND = _kind(
    'left-behind', 'start nova-compute on the host, which cleans up; if it '
    'never comes back, delete its compute service')
NOT_IN_RECORD = _kind('not-in-record', _RESTART)
PAGES = _kind('pages-not-accounted',
              'for its memory pages to be claimed, migrate the server')
FLOATING = _kind('floating-guest', 'migrate the server to a host for servers '
                 'with shared CPUs')
DEVICE_GONE = _kind('device-of-gone-server', _RESTART)
DEVICE_OTHER = _kind('device-of-another', 'hard-reboot the server, and '
                     'compare its devices with virsh dumpxml')
DEVICE_MISSING = _kind('device-missing', _CLAIM_ANEW)
DEVICE_EXTRA = _kind('device-not-requested', _CLAIM_ANEW)
DEVICE_DIFFERS = _kind('device-differs', _CLAIM_ANEW)
ALLOCATION_MISSING = _kind('allocation-missing',
                           'if the server is there, let Nova allocate it')
ALLOCATION_DIFFERS = _kind('allocation-differs', 'if the server is as Nova '
                           'has it, let Nova allocate it anew')
ALLOCATION_ELSEWHERE = _kind('allocation-elsewhere',
                             'remove what it has there')
ALLOCATION_ORPHAN = _kind('allocation-orphan', 'remove what it has there')
INVENTORY = _kind(
    'inventory-differs', 'compare cpu_dedicated_set and cpu_shared_set with '
    'the host; see the log of nova-compute for a refused inventory')
LEDGER = _kind('ledger-differs', 'see that nfv-sched-ledger runs, and its log')
STALE_MOVE = _kind('stale-move', 'see openstack server migration list; '
                   'restart nova-compute on both hosts')
UNMAPPED = _kind('host-not-mapped',
                 'disable the compute service until the host is mapped')
RESERVE = _kind(
    'reserve-used', 'migrate servers without NUMA topology, or reserve fewer '
    'huge pages on the host; give their flavors hw:mem_page_size')
OVERUSED = _kind(
    'more-used-than-total', 'give the host back what it lacks, or migrate '
    'servers: what is not there is lost at the next start of a server')
SUBNETS = _kind('many-subnets', 'move DHCP servers, or use fewer subnets')
ADDRESSES = _kind('many-addresses', 'use several networks for these servers')

#: Kinds about resources on a host that a server is not on, or no longer.
ELSEWHERE = frozenset({
    LEFT_BEHIND, DEVICE_GONE, ALLOCATION_ELSEWHERE, STALE_MOVE})
#: Kinds that end when the server is moved to another host.
MOVED = frozenset({
    POLICY, REMOTE_DEVICE, REMOTE_NETWORK, PINNED_TWICE, NOT_DEDICATED, PAGES,
    DEVICE_MISSING, DEVICE_EXTRA, DEVICE_DIFFERS})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditedFinding:
    """A guarantee that is not kept, or an inconsistent record."""

    host: str  #: name of the host
    host_id: str  #: UUID of its compute node
    #: name of the server; null if no known server is concerned
    server: str | None
    server_id: str | None  #: UUID of the server; null likewise
    kind: str  #: kind of the finding, as --kind takes it
    finding: str  #: description, for people
    #: earliest time at which it can have begun: ISO 8601, UTC; null if Nova's
    #: records do not say
    since: str | None
    what_to_do: str  #: instructions, for people
    #: commands that repair it, each as its words; empty if none is known
    commands: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The findings of an audit."""

    hosts_checked: int  #: number of hosts that were checked
    findings: tuple[AuditedFinding, ...]  #: findings, host by host


COLUMNS = (
    tables.Column('Host', 'host'), tables.Column('Server', 'server'),
    tables.Column('Server ID', 'server_id'), tables.Column('Kind', 'kind'),
    tables.Column('Finding', 'finding'), tables.Column('Since', 'since'),
    tables.Column('What to do', 'what_to_do'))
