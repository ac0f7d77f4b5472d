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

#: Action -> function of this name that performs it for one server.
_OF_SERVERS: dict[
    str, Callable[[states.State, servers.SimulatedServer, ty.Any], None]
] = {each.__name__: each for each in (
    lifecycle.boot, lifecycle.delete, lifecycle.shelve, lifecycle.unshelve,
    lifecycle.rebuild, moves.cold_migrate, moves.resize, moves.confirm,
    moves.revert, moves.live_migrate, moves.evacuate, lifecycle.attach,
    lifecycle.detach)}


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
    """A simulation of one cloud; ``progress`` gets servers done and total.

    :mod:`nfv_sched.ops.simulator.configuration` must be set for it.
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
        """Run a step; ``progress`` gets the number of its servers done."""
        first = len(self.outcomes)
        if step.action == 'neutron':
            self.state.network.become(step.neutron)
            self.state.notes = [step.neutron]
            self._record(step, servers.SimulatedServer('', '', ''), None)
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
            # In the place of a server, the host has no status.
            self._record(step, servers.SimulatedServer(name, '', ''), None)
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
