# SPDX-License-Identifier: Apache-2.0
"""Read the facts that Ansible gathers (its module ``setup``).

These facts have the total memory, the vendor of the CPUs and the names of the
NICs, but neither NUMA nodes nor sibling threads nor the NUMA nodes of NICs.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import re
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import values

_WRAPPER = 'ansible_facts'
_PREFIX = 'ansible_'
_MEMORY = 'memtotal_mb'
#: The command "ansible" prints "HOST | SUCCESS => " before the JSON.
_HEADLINE = re.compile(r'^([^\s{|]+) \| [A-Z]+!? => (?=\{)', re.MULTILINE)


def without_headline(text: str) -> str:
    """Return the JSON in the output of the command ``ansible``."""
    hosts = _HEADLINE.findall(text)
    _expect_one(hosts)
    return _HEADLINE.sub('', text) if hosts else text


def _expect_one(hosts: Sequence[str]) -> None:
    if len(hosts) > 1:
        raise values.MachineError(
            f'has the facts of {len(hosts)} hosts: {strings.some(hosts)}; '
            f'for one of them: "ansible {hosts[0]} -m setup > FILE"')


def read(data: ty.Any) -> facts.Facts | None:
    """Convert the facts of a host, or by host of one; None if there are none.

    :raises MachineError: also if there are several hosts
    """
    if not isinstance(data, dict):
        return None
    ansible_facts = _facts(data)
    if ansible_facts is None:
        hosts = {str(name): host_facts for name, each in data.items()
                 if (host_facts := _facts(each))}
        _expect_one(list(hosts))
        ansible_facts = next(iter(hosts.values()), None)
    if ansible_facts is None:
        return None
    memory = ansible_facts.get(_MEMORY)
    if memory is not None and type(memory) is not int:
        raise values.MachineError(
            f'{_PREFIX}{_MEMORY} is {str(memory)[:40]!r}, not a number')
    processor = ansible_facts.get('processor')
    interfaces = ansible_facts.get('interfaces')
    return facts.Facts(
        total_memory=memory,
        vendor=facts.vendor(' '.join(map(str, processor)) if isinstance(
            processor, list) else ''),
        nics=tuple(_nics(ansible_facts, interfaces)) if isinstance(
            interfaces, list) else None)


def _facts(data: ty.Any) -> Mapping[str, ty.Any] | None:
    """Return facts by their names without prefix; None if there are none."""
    if not isinstance(data, dict):
        return None
    inner = data.get(_WRAPPER, data)
    if not isinstance(inner, dict):
        return None
    unwrapped = {str(name).removeprefix(_PREFIX): value
                 for name, value in inner.items()}
    return unwrapped if (
        'processor' in unwrapped or _MEMORY in unwrapped) else None


def _nics(ansible_facts: Mapping[str, ty.Any], names: list):
    for name in names:
        # Ansible writes the name of a fact with underscores only.
        fact = ansible_facts.get(re.sub(r'\W', '_', str(name)))
        address = fact.get('pciid') if isinstance(fact, dict) else None
        if isinstance(address, str):
            yield values.NIC(name=str(name), address=address)
