# SPDX-License-Identifier: Apache-2.0
"""Run all checks on the hosts of a cloud."""

from collections.abc import Callable, Collection

from nfv_sched.ops.answers.audit import devices
from nfv_sched.ops.answers.audit import hosts as audit_hosts
from nfv_sched.ops.answers.audit import placement
from nfv_sched.ops.answers.audit import policies
from nfv_sched.ops.answers.audit import records
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.cloud import snapshot

#: Each checks one host.
CHECKS: tuple[Callable[[audit_hosts.Site], audit_hosts.Findings], ...] = (
    policies.check, records.check, records.mapping, records.floating,
    records.pages, records.reserve, records.overuse, devices.check,
    devices.compare_requests, placement.check, placement.check_ledger,
    records.moves, records.networks)

#: Kinds of findings about where a server is on its host.
_PLACES = (values.POLICY, values.PINNED_TWICE, values.NOT_DEDICATED)

_Kind = snapshot.MissingKind
#: Kinds that may concern servers without naming them.
_UNNAMED = frozenset((*snapshot.UNREAD_CELLS, _Kind.NO_CELLS, _Kind.OTHER))


def of_places(
    cloud: snapshot.Cloud, uuids: Collection[str],
) -> tuple[list[values.AuditedFinding], set[str]]:
    """Return which servers are not placed as their strict policies say.

    :param uuids: the servers; those that were deleted are passed over
    :returns: also the UUIDs of those that cannot be checked
    """
    checked: set[str] = set()
    hosts: set[str] = set()
    for site in audit_hosts.sites(cloud):
        if here := {server.uuid for server in site.steady}.intersection(uuids):
            checked |= here
            hosts.add(site.host.uuid)
    unchecked = set(uuids) - checked
    if not any(each.kind in _UNNAMED for each in cloud.missing):
        unchecked &= {server.uuid for server in cloud.servers} | cloud.unread(
            _Kind.SERVER)
    return [
        each for each in findings(cloud, hosts=hosts)
        if each.server_id in checked and each.kind in _PLACES], unchecked


def findings(cloud: snapshot.Cloud, *, hosts: Collection[str] | None = None,
             update: Callable[[int, int], None] = lambda done,
             total: None) -> list[values.AuditedFinding]:
    """Return the findings of all checks, host by host.

    :param hosts: UUIDs of the hosts to check; None for all
    :param update: called with (hosts done, total hosts)
    """
    order = {kind: number for number, kind in enumerate(values.KINDS)}
    findings = []
    for number, site in enumerate(audit_hosts.sites(cloud)):
        if not number % 50:
            update(number, len(cloud.hosts))
        if hosts is None or site.host.uuid in hosts:
            findings += sorted(
                (each for check in CHECKS for each in check(site)),
                key=lambda each: (order[each.kind], each.server or '',
                                  each.server_id or ''))
    update(len(cloud.hosts), len(cloud.hosts))
    return findings
