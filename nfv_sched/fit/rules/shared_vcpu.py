# SPDX-License-Identifier: Apache-2.0
"""Keep one vCPU of a pinned guest on the shared CPUs of its NUMA node."""

from collections.abc import Sequence
import dataclasses

from nfv_sched.base import extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit.numa import candidates
from nfv_sched.fit.numa import evaluation as numa_evaluation
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import rule
from nfv_sched.fit.numa import topology
from nfv_sched.nova import fields

_LIMIT = 'shared_vcpus_per_core'


@dataclasses.dataclass(frozen=True, eq=False)
class SharedVCPURule(rule.Rule):
    """``nfv:shared_vcpu``: one vCPU of a pinned guest runs on shared CPUs.

    The host cell that takes its guest cell must have shared CPUs, and holds at
    most ``shared_vcpus_per_core`` shared vCPUs for each physical core of them.
    The claim is held to that by a lower CPU allocation ratio in the limits.

    Facts: whether every host cell has as many shared CPUs as the guest cell
    has shared vCPUs.
    """

    name = 'shared_vcpu'
    filters = ('SharedVCPUFilter',)
    order = 50
    keys = (extra_specs.SHARED_VCPU,)
    lowers_cpu_ratio = True

    cell: int = 0  #: position of the guest cell of the vCPU
    shared: int = 0  #: number of shared vCPUs of that guest cell

    @classmethod
    def from_request(cls, request_parts):
        policy = request_parts.policy
        if (vcpu := policy.shared_vcpu) is None:
            return ()
        text = f'{policy.shared_vcpu_key}={vcpu}'
        # With hw:cpu_policy=dedicated nova-compute pins every vCPU.
        if (request_parts.extra_specs.get('hw:cpu_policy') or
                request_parts.properties.get('hw_cpu_policy')) != 'mixed':
            raise rule.RequestError(
                text,
                'needs a server with both kinds of CPUs; set '
                f'hw:cpu_policy=mixed and hw:cpu_dedicated_mask=^{vcpu}')
        cell = _cell(request_parts, vcpu, text)
        return (cls(text, cell=cell,
                    shared=request_parts.guest.cells[cell].shared),)

    def cpu_ratio(self, host, ratio, limit):
        most = limit(_LIMIT)
        # NUMATopologyLimits have one ratio: the strictest cell counts.
        return min([ratio, *(most * cell.shared_cores / cell.shared
                             for cell in host.cells if cell.shared)])

    def read(self, host, names):
        return all(cell.shared >= self.shared for cell in host.cells)

    def is_satisfied(self, facts, guest_on_host, chosen):
        return bool(
            guest_on_host.evaluation.masks[self.cell] >> chosen[self.cell] & 1)

    def violation_reason(self, facts, guest_on_host, pinning):
        cell = guest_on_host.evaluation.host.cells[pinning.chosen[self.cell]]
        if cell.shared >= self.shared:
            return None
        return reasons.Reason(
            self.order, self.text,
            f'{self.shared} shared CPUs on its NUMA node needed',
            f'node {cell.id} has {cell.shared}')

    def is_always_satisfied(self, facts, guest_on_host, groups):
        # Nova may take one guest cell for another (see
        # nfv_sched.fit.numa.walk). But a claim succeeds only if the pins of
        # each guest cell are on its host cell, and Nova pins the dedicated
        # vCPUs of a guest cell only where it has found enough shared CPUs for
        # the others.
        evaluation = guest_on_host.evaluation
        guest = evaluation.guest
        shared = guest.cells[self.cell]
        return (len(guest.cells) == 1 or evaluation.interchangeable or
                (shared.dedicated > 0 and not guest.isolates) or facts)

    def cpu_ratio_reason(self, evaluation: numa_evaluation.Evaluation,
                         ratios: fit.Ratios) -> reasons.Reason | None:
        """Return a reason if shared CPUs are full, but not by Nova's ratio."""
        # The limit does not lower Nova's ratio, or the guest cell fits.
        if evaluation.ratios.cpu >= ratios.cpu or evaluation.masks[self.cell]:
            return None
        wider = numa_evaluation.Evaluation(
            evaluation.host, evaluation.guest, ratios)
        fitting = [evaluation.host.cells[index] for index in candidates.bits(
            wider.masks[self.cell])]
        if not fitting:
            return None
        free = max(*(int(host.shared * evaluation.ratios.cpu) - host.cpu_usage
                     for host in fitting), 0)
        vcpus = evaluation.guest.cells[self.cell].shared
        return reasons.Reason(
            self.order, self.text,
            f'capacity for {vcpus} on the shared CPUs of one NUMA node needed',
            f'{free} free', free)

    def left(self, evaluation: numa_evaluation.Evaluation,
             chosen: Sequence[int] | None) -> float:
        """Return the free part, 0 to 1, after the guest; 0 if unknown."""
        if chosen is None:
            return 0.0
        cell = evaluation.host.cells[chosen[self.cell]]
        limit = cell.shared * evaluation.ratios.cpu
        used = cell.cpu_usage + evaluation.guest.cells[self.cell].shared
        return min(max(1 - used / limit, 0.0), 1.0) if limit > 0 else 0.0


def _cell(request_parts: rule.RequestParts, vcpu: int, name: str) -> int:
    """Return the vCPU's guest NUMA node; raise RequestError if not allowed."""
    if request_parts.guest is None:
        raise rule.RequestError(name, 'needs a guest NUMA topology')
    for number, cell in enumerate(
            getattr(request_parts.numa_topology, 'cells', None) or ()):
        dedicated = fields.read(cell, 'pcpuset', ())
        if vcpu in dedicated:
            raise rule.RequestError(
                name, f'vCPU {vcpu} is dedicated; hw:cpu_dedicated_mask must '
                      f'leave it out')
        if vcpu not in fields.read(cell, 'cpuset', ()):
            continue
        # Only pinned vCPUs hold a guest cell to the host cell that Nova has
        # checked; see is_always_satisfied.
        if not dedicated:
            raise rule.RequestError(
                name, f'guest NUMA node {number} needs a dedicated vCPU '
                      f'beside the shared one')
        if (request_parts.guest.cells[number].threads
                != topology.THREADS_PREFER):
            raise rule.RequestError(
                name, 'not possible with hw:cpu_thread_policy=isolate or '
                      'require')
        return number
    raise rule.RequestError(name, 'the server has no such vCPU')
