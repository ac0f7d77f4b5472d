# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by the PCI devices that a guest would have nearby."""

from nfv_sched.fit.rules import pci
from nfv_sched.weights import base


class PCINUMAAffinityWeigher(base.PreferenceWeigher):
    """Prefer hosts with free PCI devices where the guest fits.

    For guests with ``nfv:pci_numa_affinity=prefer``, or Nova's policy
    ``preferred``, a host weighs as much as the part of the guest's PCI
    devices that would be on its NUMA nodes: 1 if all are, 0 if none is.
    For other guests all hosts weigh the same.
    """

    multiplier = 'pci_numa_affinity_weight_multiplier'
    rule = pci.PCIRule
