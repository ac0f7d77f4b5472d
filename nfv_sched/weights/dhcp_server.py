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
"""The weigher that keeps guests away from DHCP servers."""

from nfv_sched.network import usage
from nfv_sched.weights import network


class DHCPServerWeigher(network.NetworkLoadWeigher):
    """Prefer hosts that carry fewer DHCP servers.

    A DHCP server is a network that a DHCP agent serves on the host.  Where
    DHCP is answered by the switch of every host, as with ML2/OVN, all hosts
    weigh the same.
    """

    multiplier = 'dhcp_server_weight_multiplier'

    def loads(self, snapshot, placed, host_states):
        """Number of DHCP servers on each host."""
        if not snapshot.dhcp_known:
            return None
        shown = snapshot.hosts
        return [shown.get(host_state.host, usage.NO_USAGE).dhcp_servers
                for host_state in host_states]
