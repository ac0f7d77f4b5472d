# SPDX-License-Identifier: Apache-2.0
"""Check the flavors in Nova's database."""

from oslo_upgradecheck import upgradecheck

from nfv_sched.base import strings
from nfv_sched.checks import findings
from nfv_sched.fit import rules
from nfv_sched.nova import database

# Maximum number of different mistakes to show.
_MOST = 10

#: Shown below the mistakes.
ADVICE = (
    'No host takes servers of these flavors. Correct them with "openstack '
    '--os-compute-api-version 2.86 flavor set", and remove a wrong key with '
    '"openstack flavor unset --property".')


def flavors() -> upgradecheck.Result:
    """Check that the extra specs of nfv-sched are valid in all flavors."""
    try:
        all_flavors = database.flavors()
    except Exception as exc:
        return findings.unread(
            'Flavors', f'see [api_database] connection: {strings.brief(exc)}.')
    faults: dict[str, list[str]] = {}
    for flavor in all_flavors:
        for error in rules.faults(flavor.extra_specs):
            faults.setdefault(error, []).append(flavor.name)
    problems = [findings.warning(f'{strings.some(names)}: {error}.')
                for error, names in sorted(faults.items())[:_MOST]]
    if len(faults) > _MOST:
        problems.append(findings.warning(
            f'{len(faults) - _MOST} more mistakes in flavors.'))
    if problems:
        problems.append(findings.warning(ADVICE))
    return findings.conclude(
        problems, 'The extra specs of nfv-sched are right in all '
        f'{len(all_flavors)} flavors.')
