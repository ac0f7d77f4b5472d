# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by the ports of their virtual switch."""

from nfv_sched.weights import network


class VSwitchPortWeigher(network.NetworkLoadWeigher):
    """Prefer hosts whose virtual switch has fewer ports.

    Physical ports count, and those of guests, DHCP servers and routers.
    """

    multiplier = 'vswitch_port_weight_multiplier'

    def load(self, network, host_state):
        return network.ports(host_state)
