# SPDX-License-Identifier: Apache-2.0
"""Define the document that ``nfv-sched cloud audit`` prints."""

import dataclasses

from nfv_sched.ops.cli import tables


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
