# SPDX-License-Identifier: Apache-2.0
"""Refuse hosts that can never satisfy the CPU thread policy of a guest."""

import dataclasses

from nfv_sched.base import reasons
from nfv_sched.fit.numa import rule


@dataclasses.dataclass(frozen=True, eq=False)
class ThreadsRule(rule.Rule):
    """``hw:cpu_thread_policy``: refuse hosts that can never satisfy it.

    ``require`` needs sibling threads.  Nova can satisfy ``isolate`` on a host
    with sibling threads only if the same CPUs serve shared and dedicated
    guests (``vcpu_pin_set``; bug 1889633).
    """

    name = 'threads'
    filters = ('CPUThreadPolicyFilter', 'NFVTopologyFilter')
    order = 60
    always_active = True
    excludes_cells = False

    #: pinned vCPUs must be on sibling threads (``require``)
    siblings: bool = False
    #: each pinned vCPU takes a physical core (``isolate``)
    isolates: bool = False

    @classmethod
    def from_request(cls, request_parts):
        guest = request_parts.guest
        siblings = request_parts.needs_threads or (
            guest is not None and guest.requires_siblings)
        isolates = guest is not None and guest.isolates
        if not siblings and not isolates:
            return ()
        return (cls('hw:cpu_thread_policy', ours=False, siblings=siblings,
                    isolates=isolates),)

    def unsuitable_reason(self, host):
        if self.siblings and not any(cell.threads > 1 for cell in host.cells):
            return reasons.Reason(
                self.order, 'hw:cpu_thread_policy=require',
                'a host with sibling threads needed')
        if self.isolates and all(
                cell.threads > 1 and not cell.legacy for cell in host.cells):
            return reasons.Reason(
                self.order, 'hw:cpu_thread_policy=isolate',
                'a host without sibling threads needed',
                'Nova cannot keep the siblings of dedicated CPUs idle')
        return None

    def violation_reason(self, facts, guest_on_host, pinning):
        cells = guest_on_host.evaluation.host.cells
        for index, pins in zip(pinning.chosen, pinning.pins):
            cores = [set(pins) & core for core in cells[index].siblings]
            if self.siblings and len(pins) > 1:
                # _get_pinning uses the same number of threads of each core, so
                # an odd number of vCPUs leaves one alone.
                alone = sum(len(core) == 1 for core in cores)
                if alone > 1:
                    return reasons.Reason(
                        self.order, 'hw:cpu_thread_policy=require',
                        'vCPUs on sibling threads needed',
                        f'{alone} are alone on their core')
            if self.isolates and self._shares_a_core(
                    cells[index].siblings, cores, pinning.others):
                return reasons.Reason(
                    self.order, 'hw:cpu_thread_policy=isolate',
                    'cores of its own needed', 'one is shared')
        return None

    @staticmethod
    def _shares_a_core(siblings, cores, other_guest_cpus) -> bool:
        return any(
            # CPUs of others on the core count only if this guest is there.
            len(own) > 1 or own and not core.isdisjoint(other_guest_cpus)
            for core, own in zip(siblings, cores))
