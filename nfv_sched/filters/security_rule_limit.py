# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by their number of security group rules."""

from nfv_sched.filters import network
from nfv_sched.limits import allowance


class SecurityRuleLimitFilter(network.NetworkLimitFilter):
    """Keep the security group rules of a host below its limit.

    A host passes if the rules of the ports that Neutron has bound to its
    virtual switch, ingress and egress, and those of the guest's ports are at
    most ``security_rules_per_node``.  A new guest with a port of more rules
    than ``security_rules_per_port`` is refused.
    """

    counted = allowance.RULES

    def concerns(self, request):
        """Return whether the guest has network interfaces."""
        return bool(request.nics or request.is_move)

    def room(self, limits):
        """Return the limit, twice: Neutron shows all security group rules."""
        return (limits.security_rules_per_node,) * 2

    def guest_refusal(self, demand, limits):
        """Return the reason for a port with too many rules."""
        need, most = demand.port_rules, limits.security_rules_per_port
        if need <= most:
            return None
        return self._allowed('security-group rules of a port', need, most)
