# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by their DHCP servers."""

from nfv_sched.limits import usage
from nfv_sched.weights import network


class DHCPServerWeigher(network.NetworkLoadWeigher):
    """Prefer hosts that carry fewer DHCP servers.

    A DHCP server is a network that a DHCP agent serves on the host.  Where
    DHCP is answered by the switch of every host, as with ML2/OVN, all hosts
    weigh the same.
    """

    multiplier = 'dhcp_server_weight_multiplier'

    def loads(self, snapshot, placed, host_states):
        """Return the number of DHCP servers on each host."""
        if not snapshot.dhcp_known:
            return None
        shown = snapshot.hosts
        return [shown.get(host_state.host, usage.NO_USAGE).dhcp_servers
                for host_state in host_states]
