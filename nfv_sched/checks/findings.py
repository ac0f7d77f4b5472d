# SPDX-License-Identifier: Apache-2.0
"""Make the result of a check from its warnings and failures."""

from collections.abc import Iterable
import typing as ty

from oslo_upgradecheck import upgradecheck


class Finding(ty.NamedTuple):
    """A problem that an operator should look at."""

    code: upgradecheck.Code  #: ``WARNING`` or ``FAILURE``
    text: str  #: what is wrong, and what to do


def warning(text: str) -> Finding:
    """Return a finding about what works, but perhaps not as intended."""
    return Finding(upgradecheck.Code.WARNING, text)


def failure(text: str) -> Finding:
    """Return a finding about what does not work."""
    return Finding(upgradecheck.Code.FAILURE, text)


def conclude(
    findings: Iterable[Finding], well: str,
) -> upgradecheck.Result:
    """Return a result with the worst finding's code, or else ``well``."""
    worst_first = sorted(findings, key=lambda finding: -finding.code)
    if not worst_first:
        return upgradecheck.Result(upgradecheck.Code.SUCCESS, well)
    return upgradecheck.Result(
        worst_first[0].code,
        '\n'.join(finding.text for finding in worst_first))


def unread(what: str, why: str) -> upgradecheck.Result:
    """Return the result of a check without access to Nova's database."""
    return conclude([warning(
        f"{what} could not be checked, because Nova's database cannot be "
        f'read: {why}')], '')
