# SPDX-License-Identifier: Apache-2.0
"""Run the steps of a cloud, one after the other.

Steps do what the Nova API, nova-conductor and nova-compute do in addition to
scheduling and claims.  Guests, disks and images are not simulated.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import time
import typing as ty

from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import expectations
from nfv_sched.ops.simulator import lifecycle
from nfv_sched.ops.simulator import moves
from nfv_sched.ops.simulator import network
from nfv_sched.ops.simulator import outcome
from nfv_sched.ops.simulator import placement
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import state as states

#: Action -> function that performs it for one server.
_OF_SERVERS: dict[
    str, Callable[[states.State, servers.SimulatedServer, ty.Any], None]
] = {
    'boot': lifecycle.boot,
    'delete': lifecycle.delete,
    'shelve': lifecycle.shelve,
    'unshelve': lifecycle.unshelve,
    'rebuild': lifecycle.rebuild,
    'cold_migrate': moves.cold_migrate,
    'resize': moves.resize,
    'confirm': moves.confirm,
    'revert': moves.revert,
    'live_migrate': moves.live_migrate,
    'evacuate': moves.evacuate,
    'attach': lifecycle.attach,
    'detach': lifecycle.detach,
}


@dataclasses.dataclass(frozen=True, slots=True)
class SimulationResult:
    scenario: scenarios.Scenario  #: the cloud before the steps
    #: servers, including deleted ones
    servers: Sequence[servers.SimulatedServer]
    hosts: Sequence[compute.ComputeHost]
    placement: placement.Placement
    loads: Mapping[str, network.HostLoad]
    outcomes: Sequence[outcome.SimulatedStep]  #: in order of the steps
    checks: int  #: number of expectations that were checked
    failures: Sequence[str]  #: messages on expectations that are not met
    seconds: float  #: duration of the steps


class Simulation:
    """A simulation of one cloud.

    It uses Nova's global configuration, which must be set by
    :mod:`nfv_sched.ops.simulator.configuration`.

    :param progress: called with (number of servers done, total)
    """

    def __init__(self, state: states.State,
                 progress: Callable[[int, int], None] | None = None):
        self.state = state
        self.outcomes: list[outcome.SimulatedStep] = []
        #: For each expectation a message, or None if it was met.
        self._checked: list[str | None] = []
        self._progress = progress or (lambda finished, total: None)

    def run(self) -> SimulationResult:
        began = time.monotonic()
        scenario = self.state.scenario
        total = sum(len(step.targets) for step in scenario.steps)
        completed = 0
        for step in scenario.steps:
            self.step(step, lambda more, before=completed: self._progress(
                before + more, total))
            completed += len(step.targets)
        return SimulationResult(
            scenario=scenario, servers=list(self.state.servers.values()),
            hosts=list(self.state.hosts.values()),
            placement=self.state.placement, loads=self.state.network.loads(),
            outcomes=self.outcomes, checks=len(self._checked),
            failures=[each for each in self._checked if each is not None],
            seconds=time.monotonic() - began)

    def step(self, step: actions.Step,
             progress: Callable[[int], None] = lambda finished: None) -> None:
        """Run one step, and check its expectations.

        :param progress: called with the number of its servers that are done
        """
        first = len(self.outcomes)
        if step.action == 'neutron':
            self.state.network.become(step.neutron)
            self._record_other(step, '', (step.neutron,))
        elif step.action == 'boot' and step.multi_create:
            for server in lifecycle.boot_together(self.state, step):
                self._record(step, server, None)
            progress(len(step.targets))
        else:
            for completed, name in enumerate(step.targets, 1):
                self._one(step, name)
                progress(completed)
        if step.expect is not None:
            self._checked += expectations.check(
                step, self.state.scenario.path, self.outcomes[first:],
                self.state.network.loads)

    def _one(self, step: actions.Step, name: str) -> None:
        self.state.notes = []
        if step.action in actions.HOST_TYPES:
            if step.action == 'host_up':
                moves.host_up(self.state, self.state.hosts[name])
            else:
                self.state.hosts[name].down = True
            self._record_other(step, name)
            return
        if step.action == 'boot':
            self.state.servers[name] = servers.SimulatedServer(
                name, step.flavor)
        server = self.state.servers[name]
        source = server.host.name if server.host else None
        server.reason = None
        try:
            _OF_SERVERS[step.action](self.state, server, step)
        except servers.Refused as e:
            server.reason = str(e)
        self._record(step, server, source)

    def _record_other(self, step: actions.Step, host: str,
                      notes: tuple[str, ...] = ()) -> None:
        self.outcomes.append(outcome.SimulatedStep(
            step=step.number, action=step.action, server=host, result='done',
            status='', source=None, destination=None, numa_nodes=None,
            cores=0, vswitch=None, places={}, pci=None, pci_devices=(),
            reason=None, notes=notes))

    def _record(self, step: actions.Step, server: servers.SimulatedServer,
                source: str | None) -> None:
        self.outcomes.append(outcome.SimulatedStep(
            step=step.number, action=step.action, server=server.name,
            result='done' if server.reason is None else 'refused',
            status=server.status, source=source,
            destination=server.host and server.host.name,
            numa_nodes=server.nodes, cores=server.cores,
            vswitch=server.vswitch, places=server.places, pci=server.pci,
            pci_devices=server.devices, reason=server.reason or None,
            notes=tuple(self.state.notes)))
