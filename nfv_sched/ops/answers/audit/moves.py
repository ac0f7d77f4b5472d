# SPDX-License-Identifier: Apache-2.0
"""Find migrations that Nova counts as unfinished but does not continue."""

from collections.abc import Iterator

from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.cloud import snapshot


def check(site: hosts.Site) -> Iterator[values.AuditFinding]:
    for move in site.moves:
        if move.source != site.host.name or move.kind == snapshot.EVACUATION:
            continue
        server = site.known.get(move.server)
        if server is None:
            who = f'of {move.server}, for which there is no server'
        elif server.task is None and server.state != snapshot.RESIZED:
            who = 'of a server that is not being moved'
        else:
            continue
        yield values.finding(
            values.STALE_MOVE, site.title,
            f'{move.kind} to {move.target or "an unknown host"} is '
            f'{move.status} since {move.updated or "an unknown time"}, {who}',
            server, since=move.updated)
