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
"""The weigher for guests that prefer, or shun, the NUMA nodes of a place."""

from nfv_sched.rules import place
from nfv_sched.weights import base


class PlaceNUMAAffinityWeigher(base.PreferenceWeigher):
    """Prefer hosts with room on, or away from, the NUMA nodes of a place.

    For guests with ``nfv:numa_affinity.{place}=prefer`` or
    ``nfv:numa_anti_affinity.{place}=prefer`` a host weighs as much as the part
    of the guest's NUMA nodes that would be where they are preferred: 1 if all
    are, 0 if none is; with several such keys the mean.  For other guests all
    hosts weigh the same.
    """

    multiplier = 'place_numa_affinity_weight_multiplier'
    rule = place.PlaceRule
