#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""What a check has found, and what follows from it."""

from collections.abc import Iterable
import typing as ty

from oslo_upgradecheck import upgradecheck


class Finding(ty.NamedTuple):
    """One thing that an operator should look at.

    :ivar code: ``WARNING`` or ``FAILURE``
    :ivar text: what is wrong, and what to do
    """

    code: upgradecheck.Code
    text: str


def warning(text: str) -> Finding:
    """Something that works, but perhaps not as it was meant.

    :param text: what is wrong, and what to do
    """
    return Finding(upgradecheck.Code.WARNING, text)


def failure(text: str) -> Finding:
    """Something that does not work.

    :param text: what is wrong, and what to do
    """
    return Finding(upgradecheck.Code.FAILURE, text)


def conclude(
    findings: Iterable[Finding], well: str,
) -> upgradecheck.Result:
    """The result of a check, failures first.

    :param findings: what was found
    :param well: what is said if that is nothing
    """
    found = sorted(findings, key=lambda finding: -finding.code)
    if not found:
        return upgradecheck.Result(upgradecheck.Code.SUCCESS, well)
    return upgradecheck.Result(
        found[0].code, '\n'.join(finding.text for finding in found))


def unread(what: str, why: str) -> upgradecheck.Result:
    """The result of a check for which Nova's database cannot be read.

    :param what: what is not checked
    :param why: sentences with the cause
    """
    return conclude([warning(
        f"{what} could not be checked, because Nova's database cannot be "
        f'read: {why}')], '')
