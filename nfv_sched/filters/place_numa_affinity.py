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
"""The filter for guests that want, or shun, the NUMA nodes of a place."""

from nfv_sched.filters import base
from nfv_sched.rules import place


class PlaceNUMAAffinityFilter(base.RuleFilter):
    """Place guests on, or away from, the NUMA nodes of a declared place.

    ``nfv:numa_affinity.{place}=strict``: every NUMA node of the guest is on a
    host NUMA node with the place, for example that of an NVMe drive, or the
    host is refused.  ``nfv:numa_anti_affinity.{place}=strict``: no NUMA node
    of the guest is, for example none on a node with the Ceph OSDs.
    ``prefer``: every host passes; where there is room, labels hold the claim
    on the compute node to these NUMA nodes.  Enable
    ``PlaceNUMAAffinityWeigher`` too, so that such hosts are chosen first.

    A host declares a place by the label ``nfv_{place}``, a physical network in
    ``[neutron] physnets`` of its nova.conf; see the documentation on labels.
    A host without the label has no such place.
    """

    rule = place.PlaceRule
