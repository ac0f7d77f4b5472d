# SPDX-License-Identifier: Apache-2.0

"""Compare the outcomes of steps with the expectations of a cloud file."""

import collections
from collections.abc import Callable, Mapping, Sequence

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import outcome


class Expectations:
    """A check of expectations: ``checks`` made, and messages on failures."""

    def __init__(self, path: str):
        self.checks = 0
        self.failures: list[str] = []
        self._path = path

    def check(self, step: actions.Step,
              outcomes: Sequence[outcome.SimulatedStep],
              loads: Callable[[], Mapping[str, network.HostLoad]]) -> None:
        """Check the expectations that a step has."""
        names = ' '.join(step.targets[:1])
        if len(step.targets) > 1:
            names += f' and {len(step.targets) - 1} more'
        where = f'step {step.number} ({step.action} {names})'
        self._compare(where, step.expect, outcomes)
        by_name = {step_outcome.server: step_outcome
                   for step_outcome in outcomes}
        for name, expect in step.expect.servers.items():
            self._compare(f'step {step.number} ({step.action} {name})',
                          expect, [by_name[name]])
        if step.expect.ports or step.expect.rules:
            of_hosts = loads()
            for name, count in step.expect.ports.items():
                ports = of_hosts[name].ports
                self._expect(where, step.expect, ports == count,
                             f'{count} vSwitch ports on {name}', f'{ports}')
            for name, count in step.expect.rules.items():
                rules = of_hosts[name].usage.rules
                self._expect(where, step.expect, rules == count,
                             f'{count} security-group rules on {name}',
                             f'{rules}')

    def _expect(self, where: str, expect: actions.ServerExpectation, met: bool,
                expected_text: str, got: str) -> None:
        """Count an expectation; add a failure if it is not met."""
        self.checks += 1
        if not met:
            self.failures.append(
                f'{self._path}:{expect.line}: {where}: expected '
                f'{expected_text}, got {got}')

    def _compare(self, where: str, expect: actions.ServerExpectation,
                 outcomes: Sequence[outcome.SimulatedStep]) -> None:
        def note(met: bool, expected_text: str, got: str) -> None:
            self._expect(where, expect, met, expected_text, got)

        placed = [o for o in outcomes if o.ok]
        refused = [o for o in outcomes if not o.ok]
        reasons = '; '.join(dict.fromkeys(o.reason for o in refused))
        for expected, got, word in ((expect.placed, placed, 'placed'),
                                    (expect.refused, refused, 'refused')):
            if expected is None:
                continue
            count = len(outcomes) if expected is True else expected
            text = f'{len(got)}'
            if word == 'placed' and reasons:
                text += f' ({reasons})'
            elif word == 'refused' and placed:
                text += f' ({_places(placed)})'
            note(len(got) == count, f'{count} {word}', text)
        facts = (
            (expect.host, lambda o: o.destination in expect.host,
             lambda: f'host {" or ".join(expect.host)}'),
            (expect.not_host, lambda o: o.destination not in expect.not_host,
             lambda: f'not host {" or ".join(expect.not_host)}'),
            (expect.nodes, lambda o: o.numa_nodes == expect.nodes,
             lambda: f'host NUMA nodes {list(expect.nodes)}'),
            (expect.nodes_in, lambda o: o.numa_nodes is not None and
             set(o.numa_nodes) <= set(expect.nodes_in),
             lambda: f'host NUMA nodes among {list(expect.nodes_in)}'),
            (expect.vswitch, lambda o: o.vswitch == expect.vswitch,
             lambda: f'vSwitch {expect.vswitch}'),
            (expect.places, lambda o: all(
                o.places.get(name) == near
                for name, near in expect.places.items()),
             lambda: outcome.places_text(expect.places)),
            (expect.pci, lambda o: o.pci == expect.pci,
             lambda: f'PCI devices {expect.pci}'),
            (expect.pci_devices, lambda o: _per_node(o) ==
             {node: count for node, count in expect.pci_devices.items()
              if count},
             lambda: 'PCI devices ' + _devices_text(expect.pci_devices)),
            (expect.cores, lambda o: o.cores == expect.cores,
             lambda: f'{expect.cores} physical cores'),
        )
        for expected, fits, text in facts:
            if expected is None:
                continue
            wrong = [o for o in placed if not fits(o)]
            got = _places(wrong)
            if not placed:
                got = f'refused: {reasons}' if reasons else 'nothing'
            note(bool(placed) and not wrong, text(), got)
        if expect.reason is not None:
            wrong = [o for o in refused
                     if expect.reason.lower() not in o.reason.lower()]
            got = '; '.join(dict.fromkeys(o.reason for o in wrong))
            if not refused:
                got = f'placed ({_places(placed)})'
            note(bool(refused) and not wrong,
                 f'a refusal with {expect.reason!r}', got)


def _per_node(step_outcome: outcome.SimulatedStep) -> dict[int | None, int]:
    return dict(collections.Counter(
        device.node for device in step_outcome.pci_devices))


def _devices_text(per_node: Mapping[int | None, int]) -> str:
    texts = [f'{"none" if node is None else node}: {count}'
             for node, count in sorted(
                 per_node.items(), key=lambda item: str(item[0]))]
    return f'{{{", ".join(texts)}}}'


def _places(outcomes: Sequence[outcome.SimulatedStep]) -> str:
    """Return a short text on the hosts and NUMA nodes of servers."""
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
