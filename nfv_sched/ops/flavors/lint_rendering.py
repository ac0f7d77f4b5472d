# SPDX-License-Identifier: Apache-2.0
"""What was found about flavors, for people and for programs."""

from collections.abc import Sequence
import typing as ty

from nfv_sched.ops.cli import tables
from nfv_sched.ops.flavors.lint import lint
from nfv_sched.ops.flavors.lint import values

COLUMNS = ('Flavor', 'Severity', 'Key', 'Finding', 'Do')


def text(found: Sequence[lint.LintResult], flavors: int) -> str:
    """A summary, and a table of what was found.

    :param found: what was found
    :param flavors: number of flavors that were looked at
    """
    counted = [(severity, sum(each.severity == severity for each in found))
               for severity in values.SEVERITIES]
    said = ', '.join(tables.count(number, severity)
                     for severity, number in counted if number)
    lines = tables.wrapped([
        f'{tables.count(flavors, "flavor")}: {said or "nothing found"}.'])
    if not found:
        return lines
    return f'{lines}\n{tables.table(COLUMNS, rows(found))}'


def rows(found: Sequence[lint.LintResult]) -> list[Sequence[ty.Any]]:
    """A row for each finding.

    :param found: what was found
    """
    return [(each.flavor, each.severity, each.key, each.finding, each.do)
            for each in found]


def document(found: Sequence[lint.LintResult], flavors: int) -> ty.Any:
    """The same as dictionaries and lists.

    :param found: what was found
    :param flavors: number of flavors that were looked at
    """
    return {'flavors': flavors, 'findings': tables.plain(list(found))}
