# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by their DHCP servers."""

from nfv_sched.limits import names
from nfv_sched.weights import network


class DHCPServerWeigher(network.NetworkLoadWeigher):
    """Prefer hosts that carry fewer DHCP servers.

    A DHCP server is a network that a DHCP agent serves on the host.  Where
    DHCP is answered by the switch of every host, as with ML2/OVN, all hosts
    weigh the same.
    """

    multiplier = 'dhcp_server_weight_multiplier'

    def load(self, network, host_state):
        return network.figure(names.DHCP_SERVERS, host_state)
