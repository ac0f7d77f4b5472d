# SPDX-License-Identifier: Apache-2.0
"""Format lint findings for people and for programs."""

from collections.abc import Sequence
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.cli import tables

COLUMNS = ('Flavor', 'Severity', 'Key', 'Finding', 'Do')


def text(results: Sequence[document.FlavorFinding],
         flavors: int) -> list[tables.Part]:
    counted = [(severity, sum(each.severity == severity for each in results))
               for severity in values.SEVERITIES]
    counts = ', '.join(strings.count(number, severity)
                       for severity, number in counted if number)
    line = f'{strings.count(flavors, "flavor")}: {counts or "nothing found"}.'
    return [line, *(['', tables.Table(COLUMNS, rows(results))]
                    if results else [])]


def rows(results: Sequence[document.FlavorFinding]) -> list[Sequence[ty.Any]]:
    return [(each.flavor, each.severity, each.key or '', each.finding, each.do)
            for each in results]
