# SPDX-License-Identifier: Apache-2.0
"""Weigh hosts by the ports of their virtual switch."""

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
        """Return the number of ports of each host's virtual switch."""
        return network.ports_of(snapshot, placed, host_states)
