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
"""The weigher for guests that prefer the NUMA node of the virtual switch."""

from nfv_sched.rules import vswitch
from nfv_sched.weights import base


class VSwitchNUMAAffinityWeigher(base.PreferenceWeigher):
    """Prefer hosts with room on the NUMA nodes of their virtual switch.

    For guests with ``nfv:vswitch_numa_affinity=prefer`` a host weighs as much
    as the part of the guest's NUMA nodes that would be on nodes with the
    switch: 1 if all are, 0 if none is or the host does not declare where its
    switch runs.  For other guests all hosts weigh the same.
    """

    multiplier = 'vswitch_numa_affinity_weight_multiplier'
    rule = vswitch.VSwitchRule
