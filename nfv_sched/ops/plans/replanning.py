# SPDX-License-Identifier: Apache-2.0
"""Make a plan anew that was not carried out to its end."""

import argparse
from collections.abc import Mapping
import types
import typing as ty

from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import source
from nfv_sched.ops.plans import document
from nfv_sched.ops.simulator import progress
from nfv_sched.ops.snapshot import snapshot

# UUID of a server, and a destination to which it is not moved again -> why.
_NONE_FAILED: Mapping[tuple[str, str], str] = types.MappingProxyType({})


def plan_again(
    plan: ty.Any, cloud: snapshot.Cloud,
    failed: Mapping[tuple[str, str], str] = _NONE_FAILED,
) -> documents.Document:
    """Return a new plan with the aim of another, which the cloud allows."""
    if isinstance(plan, document.Drain):
        return documents.Document(_drained(plan, cloud, failed), ('servers',))
    return documents.Document(_defragmented(plan, cloud, failed), ('moves',))


def _drained(plan: document.Drain, cloud: snapshot.Cloud,
             failed: Mapping[tuple[str, str], str]) -> document.Drain:
    # Importing Nova takes seconds.
    from nfv_sched.ops.plans import drain
    host = source.host_name([host.name for host in cloud.hosts], plan.host)
    # Those that have left the host are no more of its servers.
    uuids = None if plan.others is None else set(document.to_leave(plan))
    options = plan.options
    with progress.shown() as update:
        return document.drained(drain.plan(
            cloud, host, uuids=uuids, make_room=options.make_room,
            relax=options.relax, shelve=options.shelve, failed=failed,
            update=update), cloud, options)


def _defragmented(plan: document.Defrag, cloud: snapshot.Cloud,
                  failed: Mapping[tuple[str, str], str]) -> document.Defrag:
    from nfv_sched.ops.plans import defrag
    from nfv_sched.ops.simulator import servers
    options = plan.options
    flavor = source.flavor(cloud, plan.flavor)
    ports = source.ports(cloud, argparse.Namespace(
        networks=options.networks, like=options.like, ports=options.ports))
    try:
        with progress.shown() as update:
            return document.defragmented(defrag.plan(
                cloud, flavor, plan.wanted, max_moves=options.max_moves,
                avoid=options.avoid, ports=ports, failed=failed,
                update=update), cloud, options)
    except servers.Refused as exc:
        raise source.UsageError(f'flavor {flavor.name}: {exc}') from exc
