# SPDX-License-Identifier: Apache-2.0
"""Check where servers are on their hosts after they were moved."""

from collections.abc import Collection

from nfv_sched.ops.answers.audit import all_checks
from nfv_sched.ops.cloud import snapshot


def misplaced(cloud: snapshot.Cloud,
              uuids: Collection[str]) -> tuple[list[str], list[str]]:
    """Return findings of the audit, and names of servers not checked."""
    findings, unchecked = all_checks.of_places(cloud, uuids)
    names = {server.uuid: server.name for server in cloud.servers}
    return [f'{each.name} ({each.server}) on {each.host}: {each.text}'
            for each in findings], [
                names.get(uuid, uuid) for uuid in unchecked]
