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
"""The weigher that spreads the ports of guests over virtual switches."""

from nfv_sched.weights import network


class VSwitchPortWeigher(network.NetworkLoadWeigher):
    """Prefer hosts whose virtual switch has fewer ports.

    Physical ports count, and those of guests, DHCP servers and routers.  Ports
    of guests that this process has placed there lately count only if
    ``VSwitchPortLimitFilter`` or ``SecurityRuleLimitFilter`` is enabled, which
    remember them.
    """

    multiplier = 'vswitch_port_weight_multiplier'

    def loads(self, snapshot, placed, host_states):
        """Number of ports of each host's virtual switch."""
        return network.ports_of(snapshot, placed, host_states)
