# SPDX-License-Identifier: Apache-2.0
"""Parse and write lists of CPUs such as ``0-3,8``."""

from collections.abc import Iterable

#: Maximum number of CPUs of a host, and of vCPUs.
MOST_CPUS = 1 << 16


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
    """Parse a list of CPUs; raise ValueError if malformed or too long."""
    cpus: set[int] = set()
    count = 0
    for part in text.split(',') if text else ():
        first, dash, last = part.partition('-')
        start = int(first)
        end = int(last) if dash else start
        if not 0 <= start <= end < MOST_CPUS:
            raise ValueError(f'{part[:40]!r} is not a span of CPUs')
        # Spans may overlap, but need not.
        count += end - start + 1
        if count > MOST_CPUS:
            raise ValueError(f'more than {MOST_CPUS} CPUs')
        cpus.update(range(start, end + 1))
    return frozenset(cpus)
