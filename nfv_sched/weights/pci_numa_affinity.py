#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""The weigher for guests that prefer PCI devices on their NUMA nodes."""

from nfv_sched.rules import pci
from nfv_sched.weights import base


class PCINUMAAffinityWeigher(base.PreferenceWeigher):
    """Prefer hosts with free PCI devices where there is room for the guest.

    For guests with ``nfv:pci_numa_affinity=prefer``, or Nova's policy
    ``preferred``, a host weighs as much as the part of the guest's PCI
    devices that would be on its NUMA nodes: 1 if all are, 0 if none is.
    For other guests all hosts weigh the same.
    """

    multiplier = 'pci_numa_affinity_weight_multiplier'
    rule = pci.PCIRule
