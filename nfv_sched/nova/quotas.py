# SPDX-License-Identifier: Apache-2.0
"""Read the quota of a project as Nova applies it, and what it uses of it.

For commands; filters and weighers do not use this module.
"""

from collections.abc import Collection
import typing as ty

from nova import context as nova_context
from nova.limit import placement as placement_limits
from nova.limit import utils as limit_utils
from nova import objects
from nova import quota
from nova.scheduler import utils as scheduler_utils

#: Resources of Nova's own quotas that servers use.
_OF_SERVERS = ('instances', 'cores', 'ram')
# Prefix of resource classes among Keystone's unified limits.
_CLASS = 'class:'
_SERVERS = 'servers'


class QuotaUse(ty.NamedTuple):
    limit: int  #: negative if there is no limit
    used: int


def needs(flavor: objects.Flavor) -> dict[str, int]:
    """Return what a server of a flavor uses of the quota, by resource.

    The ports of a server are ignored, and its volumes: the root disk counts as
    local.

    :raises nova.exception.NovaException: if Nova refuses the flavor
    """
    if not limit_utils.use_unified_limits():
        return {'instances': 1, 'cores': flavor.vcpus, 'ram': flavor.memory_mb}
    # NOTE: Since commit 2de9de080c (bug 2140631, Nova 34) all resources of
    # the request count, such as devices in Placement.
    describe = getattr(scheduler_utils, 'request_spec_for_limits', None)
    if describe is None:
        resources = scheduler_utils.resources_for_limits(flavor, False)
    else:
        resources = scheduler_utils.ResourceRequest.from_request_spec(
            describe(flavor, False)).merged_resources()
    return {_SERVERS: 1, **{f'{_CLASS}{name}': amount
                            for name, amount in resources.items() if amount}}


def of_project(project: str,
               resources: Collection[str]) -> dict[str, QuotaUse]:
    """Return the quotas of a project, by resource.

    :param resources: those that :func:`needs` names for a flavor; of other
        resources Nova may count other uses
    :raises Exception: any error of Nova's databases, Placement or Keystone
    """
    context = nova_context.get_admin_context()
    if not limit_utils.use_unified_limits():
        quotas = quota.QUOTAS.get_project_quotas(context, project)
        return {name: QuotaUse(quotas[name]['limit'],
                               quotas[name].get('in_use', 0))
                for name in _OF_SERVERS}
    enforcer = placement_limits._get_enforcer(context, project)
    usages = enforcer.calculate_usage(project, sorted(resources))
    return {name: QuotaUse(_unified_limit(name, usage), usage.usage)
            for name, usage in usages.items()}


def _unified_limit(name: str, usage: ty.Any) -> int:
    """Return the limit of a ``ProjectUsage``; negative if not enforced."""
    # NOTE: oslo.limit returns 0 for a resource without registered limit, and
    # enforces negative limits as they are. Since commit fd5b692905 (blueprint
    # unified-limits-nova-unset-limits, Nova 31) [quota]
    # unified_limits_resource_strategy says whether a missing limit is
    # enforced, and negative ones are not.
    should_enforce = getattr(limit_utils, 'should_enforce', None)
    if should_enforce is None:
        return max(usage.limit, 0)
    errors = limit_utils.limit_exceptions
    if usage.limit == 0 and not should_enforce(errors.ProjectOverLimit('', [
            errors.OverLimitInfo(name, 0, usage.usage, 1)])):
        return -1
    return usage.limit
