# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by the CPU thread policy of a guest."""

from nfv_sched.filters import base
from nfv_sched.fit import decide
from nfv_sched.fit.numa import decide as numa_decide
from nfv_sched.fit.numa import topology
from nfv_sched.fit.rules import threads


class CPUThreadPolicyFilter(base.RuleFilter):
    """Refuse hosts that can never satisfy the CPU thread policy of a guest.

    ``hw:cpu_thread_policy=require`` needs a host with sibling threads.
    ``isolate`` needs one without, or one whose CPUs serve shared and
    dedicated guests alike (``vcpu_pin_set``): with ``cpu_dedicated_set``
    Nova cannot keep the siblings of a guest's CPUs idle, and the claim would
    fail.  Whether enough CPUs are free is checked by ``NFVTopologyFilter``.
    """

    rule = threads.ThreadsRule

    def prepare(self, request, request_note):
        return [rule for rule in request.rules if isinstance(rule, self.rule)]

    def decide(self, host_state, request, request_note, prepared):
        view = topology.host_topology(host_state.numa_topology)
        # Without NUMA topology nothing says how the threads are.
        if view is None:
            return numa_decide.PLAIN
        return decide.refuse_always(view, prepared) or numa_decide.PLAIN
