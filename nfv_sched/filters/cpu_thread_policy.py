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
"""The filter for guests with a CPU thread policy."""

from nfv_sched.filters import base
from nfv_sched.numa import steering
from nfv_sched.numa import topology
from nfv_sched import placement


class CPUThreadPolicyFilter(base.NFVHostFilter):
    """Refuse hosts that can never keep the CPU thread policy of a guest.

    ``hw:cpu_thread_policy=require`` needs a host with sibling threads.
    ``isolate`` needs one without, or one whose CPUs serve shared and
    dedicated guests alike (``vcpu_pin_set``): with ``cpu_dedicated_set``
    Nova cannot keep the siblings of a guest's CPUs idle, and the claim would
    fail.  Whether there are enough free CPUs is for ``NFVTopologyFilter`` to
    say.
    """

    def concerns(self, request):
        """Whether the guest wants siblings, or none."""
        return request.isolates or request.requires_siblings

    def decide(self, host_state, request, request_note):
        """Decide about one host; see the class."""
        view = topology.host_topology(host_state.numa_topology)
        refusal = None
        if view is not None:
            refusal = placement.thread_refusal(request, view)
        return refusal or steering.PLAIN
