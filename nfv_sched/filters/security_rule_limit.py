# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by their number of security group rules."""

from nfv_sched.filters import network
from nfv_sched.limits import decide


class SecurityRuleLimitFilter(network.NetworkLimitFilter):
    """Keep the security group rules of a host below its limit.

    A host passes if the rules of the ports that Neutron has bound to its
    virtual switch, ingress and egress, and those of the guest's ports are at
    most ``security_rules_per_node``.  A new guest with a port of more rules
    than ``security_rules_per_port`` is refused.
    """

    counted = decide.RULES

    def concerns(self, request):
        return bool(request.nics or request.is_move)
