# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by their virtual routers."""

from nfv_sched.limits import names
from nfv_sched.weights import network


class RouterWeigher(network.NetworkLoadWeigher):
    """Prefer hosts that carry fewer virtual routers.

    With ML2/OVS these are the routers of the L3 agent of the host, with
    ML2/OVN those whose gateway port is bound to it.
    """

    multiplier = 'router_weight_multiplier'

    def load(self, network, host_state):
        return network.figure(names.ROUTERS, host_state)
