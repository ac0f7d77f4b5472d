# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by the affinity or anti-affinity of a guest to a place."""

from nfv_sched.filters import base
from nfv_sched.fit.rules import place


class PlaceNUMAAffinityFilter(base.RuleFilter):
    """Place guests on, or away from, the NUMA nodes of a declared place.

    ``nfv:numa_affinity.{place}=strict``: every NUMA node of the guest is on a
    host NUMA node with the place, for example that of an NVMe drive, or the
    host is refused.  ``nfv:numa_anti_affinity.{place}=strict``: no NUMA node
    of the guest is, for example none on a node with the Ceph OSDs.
    ``prefer``: every host passes; where there is capacity, labels hold the
    claim on the compute node to these NUMA nodes.

    A host declares a place by the label ``nfv_{place}``, and has none without.
    """

    rule = place.PlaceRule
