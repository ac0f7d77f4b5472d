# SPDX-License-Identifier: Apache-2.0
"""Parse and write lists of CPUs such as ``0-3,8``."""

from collections.abc import Iterable
import re

#: Maximum number of CPUs of a host, and of vCPUs.
MOST_CPUS = 1 << 16
# Possessive: a text of many blanks is not searched again from each of them.
_SPAN = re.compile(r'\s*+(\^?)\s*+(\d++)(?:\s*+-\s*+(\d++))?\s*+')


def to_text(numbers: Iterable[int]) -> str:
    """Return a list of CPUs, in any order, as text such as ``0-3,8``."""
    spans: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return ','.join(str(last) if first == last else f'{first}-{last}'
                    for first, last in spans)


def parse(text: str) -> frozenset[int]:
    """Parse a set of CPUs in the syntax of Nova: ``0-3,^2,8``.

    :raises ValueError: if it is malformed or too long
    """
    cpus: set[int] = set()
    out: set[int] = set()
    count = 0
    for part in text.split(',') if text.strip() else ():
        if not (match := _SPAN.fullmatch(part)):
            raise ValueError(f'{text[:40]!r} is not a CPU set such as 0-3,8')
        first, last = int(match[2]), int(match[3] or match[2])
        if last < first or last >= MOST_CPUS:
            raise ValueError(f'{part.strip()[:40]!r} is not a range of CPUs')
        # Ranges that overlap count twice: this limits the work.
        count += last - first + 1
        if count > MOST_CPUS:
            raise ValueError(f'more than {MOST_CPUS} CPUs')
        (out if match[1] else cpus).update(range(first, last + 1))
    return frozenset(cpus - out)
