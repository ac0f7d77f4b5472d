# SPDX-License-Identifier: Apache-2.0
"""Define the document that ``nfv-sched cloud audit`` prints."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from nfv_sched.ops.answers.audit import values


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AuditedFinding:
    """A guarantee that is not kept, or an inconsistent record.

    :ivar host: name of the host
    :ivar host_id: UUID of its compute node
    :ivar server: name of the server; null if no known server is concerned
    :ivar server_id: UUID of the server; null likewise
    :ivar kind: kind of the finding, as --kind takes it
    :ivar finding: description, for people
    :ivar since: earliest time at which it can have begun: ISO 8601, UTC; null
        if Nova's records do not say
    :ivar what_to_do: instructions, for people
    :ivar commands: commands that repair it, each as its words; empty if none
        is known
    """

    host: str
    host_id: str
    server: str | None
    server_id: str | None
    kind: str
    finding: str
    since: str | None
    what_to_do: str
    commands: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The findings of an audit.

    :ivar hosts_checked: number of hosts that were checked
    :ivar findings: findings, host by host
    """

    hosts_checked: int
    findings: tuple[AuditedFinding, ...]


def audited(findings: Iterable[values.AuditFinding], hosts: int,
            host_ids: Mapping[str, str]) -> Audit:
    """Return the document of some findings.

    :param hosts: number of hosts that were checked
    :param host_ids: name of each host in findings -> UUID
    """
    return Audit(hosts_checked=hosts, findings=tuple([AuditedFinding(
        host=each.host, host_id=host_ids[each.host], server=each.name or None,
        server_id=each.server or None, kind=each.kind, finding=each.text,
        since=each.since or None, what_to_do=each.advice,
        commands=each.commands)
        for each in findings]))
