# SPDX-License-Identifier: Apache-2.0
"""Make the result of a check from its warnings and failures."""

from collections.abc import Iterable
import functools

from oslo_upgradecheck import upgradecheck


#: A problem that an operator should look at: ``WARNING`` or ``FAILURE``, and
#: what is wrong and what to do.
Finding = upgradecheck.Result


#: Makes a finding; a warning is about what works, but perhaps not as intended.
success = functools.partial(Finding, upgradecheck.Code.SUCCESS)
warning = functools.partial(Finding, upgradecheck.Code.WARNING)
failure = functools.partial(Finding, upgradecheck.Code.FAILURE)


def conclude(findings: Iterable[Finding], well: str) -> upgradecheck.Result:
    """Return a result with the worst finding's code, or else ``well``."""
    worst_first = sorted(findings, key=lambda finding: -finding.code)
    if not worst_first:
        return success(well)
    return upgradecheck.Result(
        worst_first[0].code,
        '\n'.join(finding.details for finding in worst_first))


class UnreadError(Exception):
    """Nova's database cannot be read for a check; the text is a warning."""

    def __init__(self, what: str, why: str):
        super().__init__(f"{what} could not be checked, because Nova's "
                         f'database cannot be read: {why}')
