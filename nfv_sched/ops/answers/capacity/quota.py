# SPDX-License-Identifier: Apache-2.0
"""Work out how many more servers the quota of a project allows.

Quotas are not part of a snapshot: they are read when they are asked for, from
Nova's databases and Keystone.
"""

from collections.abc import Callable, Collection, Mapping

from nfv_sched.base import strings
from nfv_sched.ops.answers.capacity import document
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import names
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.requests import nova_account


class QuotaError(Exception):
    """The quota cannot be read; the message has the reason."""


#: Returns the allowance for servers of a flavor.
OfFlavor = Callable[[snapshot.Flavor], document.QuotaAllowance]


def allowance(
    needs: Mapping[str, int], quotas: Mapping[str, tuple[int, int]],
) -> document.QuotaAllowance:
    """Return the allowance for servers with some needs.

    :param quotas: resource -> limit, negative if there is none, and used
    """
    resources = tuple([
        document.ResourceQuota(
            resource=name, limit=limit if limit >= 0 else None, used=used,
            needed=needed)
        for name, needed in needs.items() if name in quotas
        for limit, used in [quotas[name]]])
    return document.QuotaAllowance(
        allows=min([each.allows for each in resources
                    if each.allows is not None], default=None),
        resources=resources)


def from_nova(project: str) -> OfFlavor:
    """Return a function that reads allowances as Nova does.

    Nova's configuration must have been read.

    :param project: ID of the project
    :returns: raises QuotaError if Nova's databases, Placement or Keystone
        cannot be read, or Nova refuses the flavor
    """
    from nfv_sched.nova import quotas
    from nfv_sched.ops.simulator import state as states
    read: dict[frozenset[str], Mapping[str, tuple[int, int]]] = {}

    def of_flavor(flavor: snapshot.Flavor) -> document.QuotaAllowance:
        try:
            needs = quotas.needs(states.nova_flavor(flavor))
            resources = frozenset(needs)
            if resources not in read:
                read[resources] = quotas.of_project(project, resources)
        except Exception as exc:  # of Nova, databases, Keystone, Placement
            raise QuotaError(
                f'the quota of project {project} cannot be read: '
                + strings.mask_secrets(f'{exc.__class__.__name__}: '
                                       f'{" ".join(str(exc).split())}')
            ) from exc
        return allowance(needs, read[resources])

    return of_flavor


def project_id(name: str) -> str:
    """Return the ID of a project, as Keystone knows it.

    :param name: its ID, or its name if no other project has it
    :raises NotInCloudError: if no project or several match
    :raises QuotaError: if Keystone cannot be read
    """
    with nova_account.reading(
            'identity', 'Keystone', QuotaError) as connection:
        projects = list(connection.identity.projects())
        matches: Collection[str] = [
            project.id for project in projects if project.id == name] or [
            project.id for project in projects if project.name == name]
        if not matches:
            raise errors.NotInCloudError(names.unknown(
                'project', name, [project.name or '' for project in projects]))
        if len(matches) > 1:
            raise errors.NotInCloudError(f'several projects named {name!r}: '
                                         f'{", ".join(sorted(matches))}')
        project, = matches
        if not isinstance(project, str) or not names.is_host(project):
            raise TypeError('a project has no ID')
        return project
