# SPDX-License-Identifier: Apache-2.0
"""Filter hosts for pinned guests with one vCPU on shared CPUs."""

from nfv_sched.filters import base
from nfv_sched.fit.rules import shared_vcpu


class SharedVCPUFilter(base.RuleFilter):
    """Place guests that run one vCPU on the shared CPUs of their NUMA node.

    ``nfv:shared_vcpu=N`` with ``hw:cpu_policy=mixed``: vCPU N runs on shared
    CPUs of the host NUMA node that takes its guest NUMA node, which then holds
    no more than ``[nfv_sched] shared_vcpus_per_core`` shared vCPUs for each
    of its shared cores.  The claim on the compute node is held to that by a
    lower CPU allocation ratio.
    """

    rule = shared_vcpu.SharedVCPURule
