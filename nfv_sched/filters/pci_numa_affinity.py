# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by the affinity of a guest to its PCI devices."""

from nfv_sched.filters import base
from nfv_sched.fit.rules import pci


class PCINUMAAffinityFilter(base.RuleFilter):
    """Place guests on the NUMA nodes of their PCI devices.

    ``nfv:pci_numa_affinity=strict``: every device that the guest requests, by
    alias or by port, is on a host NUMA node that the guest occupies, or the
    host is refused.  ``prefer``, or the policy ``preferred`` of Nova: every
    host passes that Nova accepts; where local devices are free, labels hold
    the claim on the compute node to their NUMA nodes.

    Nova's policies ``required``, ``socket`` and ``legacy`` are enforced by
    Nova and need only ``NFVTopologyFilter``.  With PCI in Placement,
    allocation candidates that break the policy are dropped, and the best comes
    first.
    """

    rule = pci.PCIRule
