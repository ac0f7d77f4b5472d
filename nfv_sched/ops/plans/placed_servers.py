# SPDX-License-Identifier: Apache-2.0
"""Check where servers are on their hosts after they were moved."""

from collections.abc import Collection

from nfv_sched.ops.audit import audit
from nfv_sched.ops.snapshot import snapshot


def misplaced(cloud: snapshot.Cloud,
              uuids: Collection[str]) -> tuple[list[str], list[str]]:
    """Return which servers are not placed as their strict policies say.

    :param uuids: the servers; others of the cloud are passed over
    :returns: findings of ``cloud audit``, as clauses, and the names of the
        servers that could not be checked
    """
    findings, unchecked = audit.of_places(cloud, uuids)
    return [f'{each.name} ({each.server}) on {each.host}: {each.text}'
            for each in findings], [server.name for server in unchecked]
