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
"""Short texts for log messages and command output."""

from collections.abc import Iterable

_NAMED = 5


def some(names: Iterable[str], most: int = _NAMED) -> str:
    """Names as a text, such as ``a, b and 3 more``.

    :param names: names in any order; they are sorted
    :param most: how many are named at most
    """
    names = sorted(names)
    more = len(names) - most
    return ', '.join(names[:most]) + (f' and {more} more' if more > 0 else '')


def count(number: int, noun: str) -> str:
    """A number of things, such as ``3 hosts``.

    :param number: how many
    :param noun: one of them
    """
    return f'{number} {noun}{"" if number == 1 else "s"}'


def brief(exc: Exception | str) -> str:
    """The first line of an error message, without a full stop.

    :param exc: an exception, or its message
    """
    lines = str(exc).splitlines() or [type(exc).__name__]
    return lines[0].rstrip('. ')
