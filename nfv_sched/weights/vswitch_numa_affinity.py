# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by the affinity of a guest to the virtual switch."""

from nfv_sched.fit.rules import vswitch
from nfv_sched.weights import base


class VSwitchNUMAAffinityWeigher(base.PreferenceWeigher):
    """Prefer hosts with capacity on the NUMA nodes of their virtual switch.

    For guests with ``nfv:vswitch_numa_affinity=prefer`` a host weighs as much
    as the part of the guest's NUMA nodes that would be on nodes with the
    switch: 1 if all are, 0 if none is or the host does not declare where its
    switch runs.  For other guests all hosts weigh the same.
    """

    multiplier = 'vswitch_numa_affinity_weight_multiplier'
    rule = vswitch.VSwitchRule
