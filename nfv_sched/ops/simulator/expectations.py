# SPDX-License-Identifier: Apache-2.0
"""Compare the outcomes of steps with the expectations of a cloud file."""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import outcome

#: Whether an expectation is met, what was expected, and what came.
_Check = tuple[bool, str, str]
_Outcomes = Sequence[outcome.SimulatedStep]


def check(step: actions.Step, path: str, outcomes: _Outcomes,
          loads: Callable[[], Mapping[str, network.HostLoad]],
          ) -> Iterator[str | None]:
    """Yield a message for each expectation of a step; None if it is met."""
    names = ' '.join(step.targets[:1])
    if len(step.targets) > 1:
        names += f' and {len(step.targets) - 1} more'
    by_name = {each.server: each for each in outcomes}
    for name, expect, checks in (
            (names, step.expect, _of_servers(step.expect, outcomes)),
            *((name, expect, _of_servers(expect, [by_name[name]]))
              for name, expect in step.expect.servers.items()),
            (names, step.expect, _of_hosts(step.expect, loads))):
        for met, expected, got in checks:
            yield None if met else (
                f'{path}:{expect.line}: step {step.number} ({step.action} '
                f'{name}): expected {expected}, got {got}')


def _of_hosts(expect: actions.Expectation,
              loads: Callable[[], Mapping[str, network.HostLoad]],
              ) -> Iterator[_Check]:
    if not expect.ports and not expect.rules:
        return
    of_hosts = loads()
    for name, count in expect.ports.items():
        ports = of_hosts[name].ports
        yield ports == count, f'{count} vSwitch ports on {name}', f'{ports}'
    for name, count in expect.rules.items():
        rules = of_hosts[name].usage.rules
        yield (rules == count, f'{count} security-group rules on {name}',
               f'{rules}')


def _of_servers(expect: actions.ServerExpectation,
                outcomes: _Outcomes) -> Iterator[_Check]:
    placed = [o for o in outcomes if o.ok]
    refused = [o for o in outcomes if not o.ok]
    reasons = '; '.join(dict.fromkeys(o.reason for o in refused))
    for number, got, word, opposite in (
            (expect.placed, placed, 'placed', reasons),
            (expect.refused, refused, 'refused', _places(placed))):
        if number is not None:
            count = len(outcomes) if number is True else number
            yield (len(got) == count, f'{count} {word}',
                   f'{len(got)} ({opposite})' if opposite else f'{len(got)}')
    for expected, wrong in _facts(expect, placed):
        got = _places(wrong)
        if not placed:
            got = f'refused: {reasons}' if reasons else 'nothing'
        yield bool(placed) and not wrong, expected, got
    if expect.reason is not None:
        wrong = [o for o in refused
                 if expect.reason.lower() not in o.reason.lower()]
        got = '; '.join(dict.fromkeys(o.reason for o in wrong))
        if not refused:
            got = f'placed ({_places(placed)})'
        yield (bool(refused) and not wrong,
               f'a refusal with {expect.reason!r}', got)


def _facts(expect: actions.ServerExpectation, placed: _Outcomes,
           ) -> Iterator[tuple[str, _Outcomes]]:
    """Yield what is expected of servers, and those that are not so."""
    if expect.host is not None:
        yield f'host {" or ".join(expect.host)}', [
            o for o in placed if o.destination not in expect.host]
    if expect.not_host is not None:
        yield f'not host {" or ".join(expect.not_host)}', [
            o for o in placed if o.destination in expect.not_host]
    if expect.nodes is not None:
        yield f'host NUMA nodes {list(expect.nodes)}', [
            o for o in placed if o.numa_nodes != expect.nodes]
    if expect.nodes_in is not None:
        yield f'host NUMA nodes among {list(expect.nodes_in)}', [
            o for o in placed if o.numa_nodes is None
            or not set(o.numa_nodes) <= set(expect.nodes_in)]
    if expect.vswitch is not None:
        yield f'vSwitch {expect.vswitch}', [
            o for o in placed if o.vswitch != expect.vswitch]
    if expect.places is not None:
        yield outcome.places_text(expect.places), [
            o for o in placed
            if not expect.places.items() <= o.places.items()]
    if expect.pci is not None:
        yield f'PCI devices {expect.pci}', [
            o for o in placed if o.pci != expect.pci]
    if expect.pci_devices is not None:
        per_node = collections.Counter(expect.pci_devices)
        yield f'PCI devices {_devices_text(expect.pci_devices)}', [
            o for o in placed if _per_node(o) != per_node]
    if expect.cores is not None:
        yield f'{expect.cores} physical cores', [
            o for o in placed if o.cores != expect.cores]


def _per_node(of: outcome.SimulatedStep) -> collections.Counter[int | None]:
    return collections.Counter(each.node for each in of.pci_devices)


def _devices_text(per_node: Mapping[int | None, int]) -> str:
    texts = [f'{"none" if node is None else node}: {count}'
             for node, count in sorted(
                 per_node.items(), key=lambda item: str(item[0]))]
    return f'{{{", ".join(texts)}}}'


def _places(outcomes: _Outcomes) -> str:
    texts = []
    for step_outcome in outcomes[:3]:
        host = step_outcome.destination or 'no host'
        text = f'{step_outcome.server} on {host}'
        if step_outcome.numa_nodes is not None:
            text += f' nodes {list(step_outcome.numa_nodes)}'
        if step_outcome.vswitch is not None:
            text += f' ({step_outcome.vswitch})'
        if step_outcome.places:
            text += f' ({outcome.places_text(step_outcome.places)})'
        if step_outcome.pci_devices:
            text += f' PCI devices {_devices_text(_per_node(step_outcome))}'
            if step_outcome.pci is not None:
                text += f' ({step_outcome.pci})'
        if step_outcome.cores:
            text += f' on {step_outcome.cores} cores'
        texts.append(text)
    if len(outcomes) > 3:
        texts.append(f'{len(outcomes) - 3} more')
    return ', '.join(texts)
