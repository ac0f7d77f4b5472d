# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by the affinity or anti-affinity of a guest to a place."""

from nfv_sched.fit.rules import place
from nfv_sched.weights import base


class PlaceNUMAAffinityWeigher(base.PreferenceWeigher):
    """Prefer hosts with capacity on, or away from, the NUMA nodes of a place.

    For guests with ``nfv:numa_affinity.{place}=prefer`` or
    ``nfv:numa_anti_affinity.{place}=prefer`` a host weighs as much as the part
    of the guest's NUMA nodes that would be where they are preferred: 1 if all
    are, 0 if none is; with several such keys the mean.  For other guests all
    hosts weigh the same.
    """

    multiplier = 'place_numa_affinity_weight_multiplier'
    rule = place.PlaceRule
