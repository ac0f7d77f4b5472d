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
"""A request meets a host: evaluation, decision and limits.

The filters and weighers are thin; what they share is here.  What is learned
about a host is kept on its HostState, which Nova makes anew for every request,
so that no filter works it out again and none depends on another having run.
"""

import dataclasses
import functools
import typing as ty

from nova import objects

from nfv_sched import nova_compat
from nfv_sched.numa import candidates
from nfv_sched.numa import evaluation as numa_evaluation
from nfv_sched.numa import fit
from nfv_sched.numa import pci
from nfv_sched.numa import shortage
from nfv_sched.numa import steering
from nfv_sched.numa import topology
from nfv_sched import policy as nfv_policy
from nfv_sched import reasons
from nfv_sched import request as nfv_request
from nfv_sched.request import Request
from nfv_sched.request import RequestNote

_NOTE = '_nfv_sched_note'
_LIMITS = 'numa_topology'
_NO_LABELS: frozenset[str] = frozenset()


class KeptLimits(dict):
    """Limits of a host whose NUMA part only nfv-sched writes.

    Nova's own ``NUMATopologyFilter`` writes fresh ones on every pass; in
    whatever order the filters run, ours stay.
    """

    __slots__ = ()

    def __setitem__(self, key, value):
        if key != _LIMITS:
            super().__setitem__(key, value)

    def keep(self, limits) -> None:
        """Write the NUMA part.

        :param limits: ``nova.objects.NUMATopologyLimits``
        """
        super().__setitem__(_LIMITS, limits)


def _put_limits(host_state, limits, kept: bool) -> None:
    """Write the NUMA limits of a host.

    :param limits: ``nova.objects.NUMATopologyLimits``
    :param kept: whether no other filter may change them
    """
    if isinstance(host_state.limits, KeptLimits):
        host_state.limits.keep(limits)
    elif kept:
        host_state.limits = KeptLimits(host_state.limits)
        host_state.limits.keep(limits)
    else:
        host_state.limits[_LIMITS] = limits


def with_labels(limits, labels: frozenset[str], ignore_tunnel: bool):
    """A copy of NUMA limits with labels added.

    :param limits: ``nova.objects.NUMATopologyLimits``; not changed
    :param labels: physical networks that chosen host nodes must be near
    :param ignore_tunnel: leave out the tunnel endpoint
    :returns: ``nova.objects.NUMATopologyLimits``
    """
    physnets = set(labels)
    tunneled = False
    if 'network_metadata' in limits and limits.network_metadata is not None:
        metadata = limits.network_metadata
        if 'physnets' in metadata:
            physnets |= metadata.physnets
        if 'tunneled' in metadata:
            tunneled = metadata.tunneled
    return nova_compat.numa_topology_limits(
        limits.cpu_allocation_ratio, limits.ram_allocation_ratio,
        objects.NetworkMetadata(
            physnets=physnets, tunneled=tunneled and not ignore_tunnel))


class HostNote:
    """What is known of one host while one request is scheduled.

    :ivar request_note: the request that this belongs to
    :ivar policies: policies that a filter looks after: those of the enabled
        filters, and of any other that has been run
    :ivar base: servers on the host when the request began
    :ivar held: decision for the server of this request that was placed here
        last, None if none was
    :ivar written: decision whose limits were written last
    :ivar choices: what each allocation candidate that was left says about the
        providers, and the decision for it; empty if there is only one
    """

    __slots__ = ('request_note', 'policies', 'held', 'written',
                 'choices', '_decided', '_judged', '_topology', '_view',
                 '_evaluation', '_guest', '_ratios', '_devices', '_capped')

    def __init__(self, request_note: RequestNote, host_state):
        self.request_note = request_note
        self.policies = settings(request_note).policies
        self.held: steering.Decision | None = None
        self.written: steering.Decision | None = None
        self.choices: list[tuple[ty.Any, steering.Decision]] = []
        self._topology = None
        self._view: topology.HostTopology | None = None
        self._evaluation: numa_evaluation.Evaluation | None = None
        self._guest: topology.Guest | None = None
        self._ratios: fit.Ratios | None = None
        self._devices: pci.HostDevices | None = None
        self._capped: tuple | None = None
        self._decided: tuple | None = None
        self._judged: tuple | None = None
        nova_compat.when_placed(host_state, self._write_claimed, self._hold)

    def _write_claimed(self, host_state) -> None:
        """Nova places a server here: write its limits.

        Those for the allocation candidate that was claimed; a filter after
        ours may have dropped the first.
        """
        if self.written is None or host_state.__dict__.get(_NOTE) is not self:
            return
        claimed = _first(host_state.allocation_candidates)
        if self.choices and claimed is not None:
            mappings = claimed.get('mappings')
            self.written = next(
                (decision for known, decision in self.choices
                 if known == mappings), self.written)
        _put_decision(self, host_state, self.request_note.request,
                      self.written)

    def _hold(self, host_state, _instance: str | None) -> None:
        self.held = self.written or steering.Decision(True)

    def decide(self, decision: steering.Decision, host_state) -> None:
        """Keep a decision for the filters and weighers after this one."""
        self._decided = (decision, self.policies, self.held,
                         _first(host_state.allocation_candidates))

    def decided(self, host_state) -> steering.Decision | None:
        """The decision, if what it depends on is unchanged."""
        kept = self._decided
        if kept is not None and kept[1] == self.policies and \
                kept[2] is self.held and \
                kept[3] is _first(host_state.allocation_candidates):
            return kept[0]
        return None

    def judge(self, decision: steering.Decision, host_state) -> None:
        """Keep a decision whose limits are written."""
        left = host_state.allocation_candidates
        self._judged = (decision, self.policies, self.held, left,
                        _first(left))

    def judged(self, host_state) -> steering.Decision | None:
        """The decision, if an earlier filter has left the host as it is."""
        kept, left = self._judged, host_state.allocation_candidates
        if kept is not None and kept[1] == self.policies and \
                kept[2] is self.held and kept[3] is left and \
                kept[4] is _first(left):
            return kept[0]
        return None

    def view(self, host_state) -> topology.HostTopology | None:
        """The host's NUMA nodes.

        :raises topology.OddTopologyError: if they cannot be read
        """
        numa_topology = host_state.numa_topology
        if numa_topology is not self._topology:
            self._view = topology.host_topology(numa_topology)
            self._topology = numa_topology
            self._evaluation = None
            self._decided = self._judged = None
        return self._view

    def capped_ratio(
        self, host_state, view: topology.HostTopology,
    ) -> float:
        """Shared vCPUs of a shared CPU under ``shared_vcpus_per_core``."""
        kept = self._capped
        if kept is None or kept[0] is not view:
            kept = self._capped = (view, _capped_ratio(
                host_state, view,
                settings(self.request_note).shared_vcpus_per_core))
        return kept[1]

    def evaluation(
        self, host_state, request: Request, view: topology.HostTopology,
    ) -> numa_evaluation.Evaluation:
        """Where the guest of the request fits on this host."""
        ratios = _ratios(cpu_ratio(self, host_state, request, view),
                         host_state.ram_allocation_ratio)
        if (self._evaluation is None or self._guest is not request.guest or
                self._ratios is not ratios):
            self._guest = request.guest
            self._ratios = ratios
            self._decided = self._judged = self._devices = None
            self._evaluation = numa_evaluation.Evaluation(
                view, request.guest, ratios,
                _pci_free(host_state.pci_stats), bool(request.demands),
                settings(self.request_note).packing, request.pristine)
        return self._evaluation

    def devices(
        self, host_state, request: Request, view: topology.HostTopology,
        mapping,
    ) -> pci.Devices | None:
        """The PCI devices that the request can have on this host.

        :param mapping: which provider gives which PCI device
        :returns: None if it asks for none, or the host says nothing of them
        """
        stats = host_state.pci_stats
        if not request.demands or stats is None:
            return None
        if self._devices is None:
            self._devices = pci.HostDevices(
                stats.pools, request.demands, view)
        return pci.Devices(self._devices, mapping)


def _first(candidates_left):
    """The allocation candidate that Nova claims, or None."""
    # Not by its truth: see load.Contested.
    return candidates_left[0] if candidates_left is not None and len(
        candidates_left) else None


@functools.lru_cache(maxsize=1024)
def _ratios(cpu, ram) -> fit.Ratios:
    return fit.Ratios(float(cpu), float(ram))


def note_of(host_state, request_note: RequestNote) -> HostNote:
    """The note on a host; made when a request first meets it."""
    note = host_state.__dict__.get(_NOTE)
    if note is None or note.request_note is not request_note:
        note = HostNote(request_note, host_state)
        host_state.__dict__[_NOTE] = note
    return note


def _pci_free(pci_stats) -> dict[int | None, int] | None:
    """Free PCI devices per host NUMA node; None if the host has no pools."""
    pools = getattr(pci_stats, 'pools', None)
    if not pools:
        return None
    free: dict[int | None, int] = {}
    for pool in pools:
        node = pool.get('numa_node')
        free[node] = free.get(node, 0) + pool.get('count', 0)
    return free


class Settings(ty.NamedTuple):
    """Options, read once per filter and request.

    :ivar names: what the labels are called
    :ivar predicted_is_enough: strict policies may rest on a prediction
    :ivar packing: Nova fills the most used NUMA node first
    :ivar limits_lost: moves must keep strict policies without limits
    :ivar shared_vcpus_per_core: shared vCPUs on a shared core; 0 for any
    :ivar policies: policies of the enabled filters
    """

    names: steering.Names
    predicted_is_enough: bool
    packing: bool
    limits_lost: bool
    shared_vcpus_per_core: float
    policies: frozenset[str]


# The filter that looks after each policy. All that are enabled count from the
# first filter on, so that a host is decided about once.
_FILTERS = {
    'VSwitchNUMAAffinityFilter': nfv_request.VSWITCH,
    'PCINUMAAffinityFilter': nfv_request.PCI,
    'SharedVCPUFilter': nfv_request.SHARED_VCPU,
}


@functools.lru_cache(maxsize=16)
def _enabled_policies(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_FILTERS[name] for name in names if name in _FILTERS)


def settings(request_note: RequestNote) -> Settings:
    """The options that count for a request."""
    known = request_note.settings
    if known is None:
        options = nova_compat.CONF.nfv_sched
        known = request_note.settings = Settings(
            steering.Names(options.vswitch_label, options.node_label_prefix),
            options.strict_enforcement == 'predicted',
            nova_compat.packs_numa_cells(),
            options.moves_without_limits == 'refuse' and
            not nova_compat.live_migration_carries_limits(),
            options.shared_vcpus_per_core,
            _enabled_policies(tuple(nova_compat.enabled_filters())))
    return known


def cpu_ratio(
    note: HostNote, host_state, request: Request,
    view: topology.HostTopology,
) -> float:
    """Shared vCPUs that a shared CPU of the host takes.

    Nova's allocation ratio, or less for a guest with a shared vCPU: its shared
    core is not filled beyond ``shared_vcpus_per_core``.
    """
    if nfv_request.SHARED_VCPU not in note.policies or \
            request.shared_cell is None:
        return host_state.cpu_allocation_ratio
    return note.capped_ratio(host_state, view)


def _capped_ratio(
    host_state, view: topology.HostTopology, default: float,
) -> float:
    """See :func:`cpu_ratio`.

    :param default: shared vCPUs for a shared core, if no aggregate says
    """
    ratio = host_state.cpu_allocation_ratio
    most = nova_compat.aggregate_limit(
        host_state, 'shared_vcpus_per_core', default)
    return min([ratio, *(most * cell.shared_cores / cell.shared
                         for cell in view.cells if cell.shared)])


def wish_of(note: HostNote, request: Request) -> steering.Wish:
    """What is asked beyond Nova's rules, by the filters so far."""
    policies = note.policies
    known = note.request_note.wishes.get(policies)
    if known is None:
        policy = request.policy
        vswitch = policy.vswitch if nfv_request.VSWITCH in policies else None
        known = note.request_note.wishes[policies] = steering.Wish(
            vswitch, f'{policy.vswitch_key}={policy.vswitch}',
            policy.node_map, policy.node_keys, request.physnets,
            request.switch_physnets,
            request.tunneled, request.tunnel_uncertain,
            request.is_move and settings(note.request_note).limits_lost,
            request.pci if nfv_request.PCI in policies else None,
            f'{policy.pci_key}={policy.pci}',
            request.shared_cell if nfv_request.SHARED_VCPU in policies
            else None,
            f'{policy.shared_vcpu_key}={policy.shared_vcpu}',
            not policy.empty)
    return known


def _no_numa_topology(
    note: HostNote, request: Request, view: topology.HostTopology | None,
) -> steering.Decision:
    """A guest without NUMA topology: its CPUs float over the whole host.

    A strict policy holds only where the whole host is one NUMA node.
    """
    policy = request.policy
    wish = wish_of(note, request)
    one_node = view is not None and len(view.cells) == 1
    for (guest, node), key in zip(policy.node_map, policy.node_keys):
        if guest or not one_node or view.cells[0].id != node:
            return steering.Decision(False, reasons.Reason(
                reasons.NODE_MAP, f'{key}={node}',
                'a guest NUMA topology needed, set hw:numa_nodes', own=True))
    if wish.pci == nfv_policy.STRICT and not one_node:
        return steering.Decision(False, reasons.Reason(
            reasons.PCI, wish.pci_text,
            'a guest NUMA topology needed, set hw:numa_nodes', own=True))
    pci_local = float(bool(wish.pci and one_node))
    if wish.vswitch is None:
        return steering.Decision(True, pci_local=pci_local)
    switch = None
    if one_node:
        switch = steering.switch_cells(
            view, wish, settings(note.request_note).names)
    if switch:
        return steering.Decision(True, local=1.0, pci_local=pci_local)
    if wish.vswitch == nfv_policy.PREFER:
        return steering.Decision(True, pci_local=pci_local)
    if one_node:
        return steering.Decision(False, reasons.Reason(
            reasons.VSWITCH, wish.vswitch_text,
            'a host that declares where its virtual switch runs needed',
            'no label or network affinity'))
    return steering.Decision(False, reasons.Reason(
        reasons.VSWITCH, wish.vswitch_text,
        'a guest NUMA topology needed, set hw:numa_nodes', own=True))


def _decide_candidate(
    note: HostNote, host_state, request: Request, view, mapping,
    traces=None,
) -> steering.Decision:
    """The decision for one allocation candidate.

    :param mapping: which provider gives which PCI device
    :param traces: what Nova's earlier searches have left on the guest
    """
    evaluation = note.evaluation(host_state, request, view)
    devices = note.devices(host_state, request, view, mapping)
    wish = wish_of(note, request)
    if devices is None and wish.pci == nfv_policy.STRICT:
        return steering.Decision(False, reasons.Reason(
            reasons.PCI, wish.pci_text, 'PCI devices needed',
            'the host has none'))
    options = settings(note.request_note)
    decision = steering.decide(
        evaluation, wish, options.names, devices,
        options.predicted_is_enough, traces, note.held)
    if decision.accepted or wish.shared_cell is None:
        return decision
    return dataclasses.replace(decision, reason=functools.partial(
        _shared_refusal, host_state, request, evaluation, decision.reason))


def _shared_refusal(
    host_state, request: Request, evaluation: numa_evaluation.Evaluation,
    reason: reasons.Lazy,
) -> reasons.Reason:
    """Why a guest with a shared vCPU was refused.

    :param reason: what the decision says
    :returns: that, or that the shared CPUs are as full as may be
    """
    cell = request.guest.cells[request.shared_cell]
    ratio = evaluation.ratios.cpu
    if ratio < host_state.cpu_allocation_ratio and not evaluation.masks[
            request.shared_cell]:
        wider = numa_evaluation.Evaluation(
            evaluation.host, request.guest,
            _ratios(host_state.cpu_allocation_ratio,
                    host_state.ram_allocation_ratio))
        fitting = [evaluation.host.cells[index] for index in candidates.bits(
            wider.masks[request.shared_cell])]
        if fitting:
            free = max(int(host.shared * ratio) - host.cpu_usage
                       for host in fitting)
            policy = request.policy
            return reasons.Reason(
                reasons.SHARED_VCPU,
                f'{policy.shared_vcpu_key}={policy.shared_vcpu}',
                f'room for {cell.shared} on the shared CPUs of one NUMA node '
                f'needed', f'{max(free, 0)} free', free)
    return reasons.resolve(reason)


_NO_HOST_TOPOLOGY = steering.Decision(False, reasons.Reason(
    reasons.HOST, 'NUMA topology', 'a host with a NUMA topology needed'))
_NO_RATIOS = steering.Decision(False, reasons.Reason(
    reasons.HOST, 'NUMA topology',
    'a host that reports its allocation ratios needed'))
_NO_SIBLINGS = steering.Decision(False, reasons.Reason(
    reasons.THREADS, 'hw:cpu_thread_policy=require',
    'a host with sibling threads needed'))
_NO_ISOLATION = steering.Decision(False, reasons.Reason(
    reasons.THREADS, 'hw:cpu_thread_policy=isolate',
    'a host without sibling threads needed',
    'Nova cannot keep the siblings of dedicated CPUs idle'))


def thread_refusal(
    request: Request, view: topology.HostTopology,
) -> steering.Decision | None:
    """The refusal of a host that can never keep the thread policy.

    Nova keeps ``isolate`` on a host with sibling threads only if the same
    CPUs serve shared and dedicated guests (``vcpu_pin_set``).
    """
    if request.requires_siblings and not any(
            cell.threads > 1 for cell in view.cells):
        return _NO_SIBLINGS
    if request.isolates and all(
            cell.threads > 1 and not cell.legacy for cell in view.cells):
        return _NO_ISOLATION
    return None


def _begin(
    note: HostNote, host_state, request: Request, policy: str | None,
) -> tuple[topology.HostTopology | None, steering.Decision | None]:
    """Note the caller's policy and read the host.

    :returns: the host's NUMA nodes, and the decision if it does not depend
        on them
    """
    if policy is not None and policy not in note.policies:
        note.policies |= {policy}
    view = note.view(host_state)
    return view, _settled(note, host_state, request, view)


def _settled(
    note: HostNote, host_state, request: Request,
    view: topology.HostTopology | None,
) -> steering.Decision | None:
    """The decision where it does not depend on the host's NUMA nodes."""
    if view is not None:
        refusal = thread_refusal(request, view)
        if refusal is not None:
            return refusal
    if request.guest is None:
        return _no_numa_topology(note, request, view)
    if view is None:
        return _NO_HOST_TOPOLOGY
    if host_state.cpu_allocation_ratio is None or \
            host_state.ram_allocation_ratio is None:
        return _NO_RATIOS
    return None


def _plain_refusal(
    numa_topology, guest: topology.Guest, ratios: fit.Ratios,
    devices: pci.Devices | None,
) -> reasons.Reason:
    """Why a plain guest finds no room."""
    view = topology.host_topology(numa_topology)
    if view is None:
        return reasons.resolve(_NO_HOST_TOPOLOGY.reason)
    return shortage.capacity_reason(
        numa_evaluation.Evaluation(view, guest, ratios), devices=devices)


def _plain_devices(
    host_state, request: Request, view: topology.HostTopology,
) -> pci.Devices | None:
    """The PCI devices of a host for its only allocation candidate."""
    if not request.demands or host_state.pci_stats is None:
        return None
    return pci.Devices(
        pci.HostDevices(host_state.pci_stats.pools, request.demands, view),
        host_state.allocation_candidates[0].get('mappings'))


def judge_plain(
    host_state, request: Request, request_note: RequestNote,
) -> steering.Decision | None:
    """Decide about a host for a request that asks nothing beyond stock Nova.

    The hot path: most requests of a cloud are such.  It keeps nothing on the
    host, and a guest with one NUMA node is settled by the first host NUMA
    node that it fits.

    :returns: None if it takes :func:`judge`
    """
    if request.demands and len(host_state.allocation_candidates) > 1:
        return None
    ratios = _ratios(host_state.cpu_allocation_ratio,
                     host_state.ram_allocation_ratio)
    guest = request.guest
    cells = guest.cells
    if len(cells) == 1 and not request.physnets and not request.tunneled:
        cell, reserved = cells[0], guest.reserved
        pagesize = cell.pagesize
        if not pagesize or pagesize > 0:
            devices = None
            if request.demands:
                view = topology.host_topology(host_state.numa_topology)
                devices = _plain_devices(host_state, request, view)
                host_cells = view.cells
            else:
                host_cells = map(topology.HostCell,
                                 host_state.numa_topology.cells)
            bit = 1
            for host_cell in host_cells:
                if fit.check(host_cell, cell, pagesize, reserved,
                             ratios) == fit.FITS and (
                                 devices is None or devices.accepts(bit)):
                    write_plain_limits(host_state, request, request_note)
                    return steering.PLAIN
                bit <<= 1
            return steering.Decision(False, functools.partial(
                _plain_refusal, host_state.numa_topology, guest, ratios,
                devices))
    view = topology.host_topology(host_state.numa_topology)
    if view is None:
        return None
    evaluation = numa_evaluation.Evaluation(
        view, guest, ratios, _pci_free(host_state.pci_stats),
        bool(request.demands), settings(request_note).packing,
        request.pristine)
    if len(host_state.allocation_candidates) > 1 and not evaluation.uniform:
        return None
    decision = steering.decide_plain(
        evaluation, request, _plain_devices(host_state, request, view))
    if decision is not None and decision.accepted:
        write_plain_limits(host_state, request, request_note)
    return decision


def decide(
    note: HostNote, host_state, request: Request, policy: str | None = None,
) -> steering.Decision:
    """Decide about a host by its first allocation candidate, or recall it.

    :param note: the host's note
    :param request: the request
    :param policy: policy that the caller looks after; it and those of the
        filters before it count from now on
    """
    view, settled = _begin(note, host_state, request, policy)
    if settled is not None:
        return settled
    return _decide(note, host_state, request, view)


def _decide(note: HostNote, host_state, request: Request, view):
    """The decision by the first allocation candidate."""
    evaluation = note.evaluation(host_state, request, view)
    known = note.decided(host_state)
    if known is None:
        wish = wish_of(note, request)
        mapping = _mappings(host_state, request)[0]
        if wish.plain:
            known = steering.decide_plain(
                evaluation, wish,
                note.devices(host_state, request, view, mapping))
        if known is None:
            known = _decide_candidate(
                note, host_state, request, view, mapping)
        note.decide(known, host_state)
    return known


def _mappings(host_state, request: Request) -> list[dict]:
    """What each allocation candidate says about the PCI requests.

    An empty mapping stands for a host without candidates.
    """
    if not request.demands:
        return [{}] * max(1, len(host_state.allocation_candidates))
    return [candidate.get('mappings') or {}
            for candidate in host_state.allocation_candidates] or [{}]


def judge(
    note: HostNote, host_state, request: Request, policy: str | None = None,
) -> steering.Decision:
    """Decide about a host and leave it as the filters after this one need it.

    Allocation candidates that the host cannot serve are dropped, and the
    limits are written for the first that is left, which Nova claims.

    :param note: the host's note
    :param request: the request
    :param policy: policy that the caller looks after
    :returns: the decision
    """
    view, settled = _begin(note, host_state, request, policy)
    if settled is not None:
        return settled
    note.evaluation(host_state, request, view)
    known = note.judged(host_state)
    if known is not None:
        return known
    if len(host_state.allocation_candidates) > 1 and (
            request.demands or
            not note.evaluation(host_state, request, view).uniform):
        decision = _judge_candidates(note, host_state, request, view)
    else:
        note.choices = []
        decision = _decide(note, host_state, request, view)
    if decision.accepted:
        write_limits(note, host_state, request, decision)
    note.judge(decision, host_state)
    return decision


def _judge_candidates(
    note: HostNote, host_state, request: Request, view,
) -> steering.Decision:
    """Decide for each allocation candidate and keep those that will do.

    :returns: the decision for the first that is kept
    """
    evaluation = note.evaluation(host_state, request, view)
    traces = None
    if not evaluation.uniform and not wish_of(note, request).strict:
        # What Nova's search for one leaves behind counts for the next.
        traces = evaluation.request_traces()
    prefixes = tuple(demand.request_id for demand in request.demands
                     if demand.request_id)
    kept, decision, done = [], None, {}
    for candidate, mapping in zip(host_state.allocation_candidates,
                                  _mappings(host_state, request)):
        key = None
        if traces is None:  # the order does not matter
            key = repr(sorted(
                item for item in mapping.items()
                if item[0].startswith(prefixes)))
        made = done.get(key)
        if made is None:
            made = _decide_candidate(
                note, host_state, request, view, mapping, traces)
            if key is not None:
                done[key] = made
        if made.accepted:
            kept.append((made, candidate))
        if decision is None:
            decision = made
    note.choices = [(candidate.get('mappings'), made)
                    for made, candidate in kept]
    if kept:
        # Nova claims the first. The order stays where nothing is preferred.
        kept.sort(key=lambda item: -item[0].value)
        decision = kept[0][0]
        # In place: the list may be one that notices Nova's claim.
        host_state.allocation_candidates[:] = [
            candidate for _made, candidate in kept]
    note.decide(decision, host_state)
    return decision


def shared_room(
    note: HostNote, host_state, request: Request,
    decision: steering.Decision,
) -> float:
    """Room that is left on the shared CPUs beside the guest's shared vCPU.

    :param decision: that accepts the host
    :returns: part of what the host NUMA node can take, 0 to 1
    """
    view = note.view(host_state)
    evaluation = note.evaluation(host_state, request, view)
    chosen = steering.expected(
        evaluation, wish_of(note, request), decision,
        note.devices(host_state, request, view,
                     _mappings(host_state, request)[0]))
    if chosen is None:
        return 0.0
    cell = view.cells[chosen[request.shared_cell]]
    limit = cell.shared * evaluation.ratios.cpu
    used = cell.cpu_usage + request.guest.cells[request.shared_cell].shared
    return min(max(1 - used / limit, 0.0), 1.0) if limit > 0 else 0.0


def write_limits(
    note: HostNote, host_state, request: Request,
    decision: steering.Decision,
) -> None:
    """Tell the claim on the compute node what it must keep.

    Servers of the request that are on the host already keep their limits
    until one more is placed there.

    :param decision: that accepts the host
    """
    note.written = decision
    if note.held is None:
        _put_decision(note, host_state, request, decision)


def _put_decision(
    note: HostNote, host_state, request: Request,
    decision: steering.Decision,
) -> None:
    labels = decision.labels
    ignore = decision.ignore_tunnel or request.tunnel_untrue
    ratio = None
    if request.shared_cell is not None:
        lowered = cpu_ratio(note, host_state, request, note.view(host_state))
        if lowered != host_state.cpu_allocation_ratio:
            ratio = lowered
    _put_limits(
        host_state,
        _limits(host_state, request, note.request_note, labels, ignore, ratio),
        bool(labels) or ignore or ratio is not None)


def write_plain_limits(
    host_state, request: Request, request_note: RequestNote,
) -> None:
    """Hand the claim on the compute node what stock Nova hands it."""
    _put_limits(host_state, _limits(
        host_state, request, request_note, _NO_LABELS, False, None), False)


def _limits(host_state, request: Request, request_note: RequestNote,
            labels: frozenset[str], ignore_tunnel: bool,
            ratio: float | None):
    """NUMA limits, one object for all hosts that are alike in them."""
    cpu = host_state.cpu_allocation_ratio if ratio is None else ratio
    ram = host_state.ram_allocation_ratio
    key = (cpu, ram, labels, ignore_tunnel)
    made = request_note.limits.get(key)
    if made is None:
        made = nova_compat.numa_topology_limits(
            cpu, ram, request.network_metadata)
        if labels or ignore_tunnel:
            made = with_labels(made, labels, ignore_tunnel)
        request_note.limits[key] = made
    return made
