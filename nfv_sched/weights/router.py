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
"""The weigher that keeps guests away from virtual routers."""

from nfv_sched.network import usage
from nfv_sched.weights import network


class RouterWeigher(network.NetworkLoadWeigher):
    """Prefer hosts that carry fewer virtual routers.

    With ML2/OVS these are the routers of the L3 agent of the host, with
    ML2/OVN those whose gateway port is bound to it.
    """

    multiplier = 'router_weight_multiplier'

    def loads(self, snapshot, placed, host_states):
        """Number of routers on each host."""
        shown = snapshot.hosts
        return [shown.get(host_state.host, usage.NO_USAGE).routers
                for host_state in host_states]
