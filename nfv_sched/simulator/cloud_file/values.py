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

"""What single values of a cloud file may be: sizes, CPU sets, text."""

import re

from oslo_utils import units

_SIZE = re.compile(r'\s*(\d+(?:\.\d+)?)\s*([kKMGT])(?:iB?)?\s*')
_UNITS = {'K': units.Ki, 'M': units.Mi, 'G': units.Gi, 'T': units.Ti}
_CPU_RANGE = re.compile(r'\s*(\^?)\s*(\d+)(?:\s*-\s*(\d+))?\s*')


def parse_size(value: int | str) -> int:
    """A memory size in KiB.

    :param value: MiB as a number, or text with a unit: ``96 GiB``, ``2M``
    :raises ValueError: if it is neither, or no whole number of KiB
    """
    if isinstance(value, int):
        return value * 1024
    if value.strip().isdigit():
        return int(value) * 1024
    match = _SIZE.fullmatch(value)
    if not match:
        raise ValueError(f'{value!r} is not a size: MiB as a number, or a '
                         'number with KiB, MiB, GiB or TiB')
    amount = float(match[1]) * _UNITS[match[2].upper()]
    if amount % 1024:
        raise ValueError(f'{value!r} is not a whole number of KiB')
    return int(amount) // 1024


def parse_cpus(value: int | str) -> frozenset[int]:
    """A CPU set in the syntax of Nova: ``0-3,^2,8``.

    :param value: the text, or one CPU
    :raises ValueError: if it is no CPU set
    """
    cpus, out = set(), set()
    text = str(value)
    if not text.strip():
        return frozenset()
    for part in text.split(','):
        match = _CPU_RANGE.fullmatch(part)
        if not match:
            raise ValueError(f'{text!r} is not a CPU set such as 0-3,8')
        first, last = int(match[2]), int(match[3] or match[2])
        if last < first or last >= 1 << 16:
            raise ValueError(f'{part.strip()!r} is not a range of CPUs')
        (out if match[1] else cpus).update(range(first, last + 1))
    return frozenset(cpus - out)


def parse_text(value: str | int | float | bool) -> str:
    """A value as text; true and false are small."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return str(value)
