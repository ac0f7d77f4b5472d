# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by their free shared CPUs, for guests with a shared vCPU."""

from nfv_sched.fit.rules import shared_vcpu
from nfv_sched.weights import base


class SharedVCPUWeigher(base.NFVHostWeigher):
    """Prefer hosts whose shared CPUs have more capacity left.

    For guests with ``nfv:shared_vcpu`` a host weighs as much as the part of
    the shared vCPUs still free, with this guest placed, on the host NUMA node
    where its shared vCPU would run: near 1 if the shared CPUs are idle, 0 if
    they are full.  For other guests all hosts weigh the same.
    """

    multiplier = 'shared_vcpu_weight_multiplier'
    rule = shared_vcpu.SharedVCPURule

    def weigh(self, host_state, host_visit, request, rules, decision):
        return rules[0].left(
            host_visit.host.evaluation,
            host_visit.expected(host_state, request))
