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
"""The weigher for pinned guests with one vCPU on shared CPUs."""

from nfv_sched.rules import shared_vcpu
from nfv_sched.weights import base


class SharedVCPUWeigher(base.NFVHostWeigher):
    """Prefer hosts whose shared CPUs have more room.

    For guests with ``nfv:shared_vcpu`` a host weighs as much as the part of
    the shared vCPUs still free, with this guest placed, on the host NUMA node
    where its shared vCPU would run: near 1 if the shared CPUs are idle, 0 if
    they are full.  For other guests all hosts weigh the same.
    """

    multiplier = 'shared_vcpu_weight_multiplier'
    rule = shared_vcpu.SharedVCPURule

    def weigh(self, host_state, found, request, rules, decision):
        """The free part of the shared vCPUs; see the class."""
        return rules[0].left(
            found.host.evaluation, found.expected(host_state, request))
