# SPDX-License-Identifier: Apache-2.0
"""Filter hosts by the affinity of a guest to the virtual switch."""

from nfv_sched.filters import base
from nfv_sched.fit.rules import node_map
from nfv_sched.fit.rules import vswitch


class VSwitchNUMAAffinityFilter(base.RuleFilter):
    """Place guests on the NUMA nodes on which the virtual switch runs.

    ``nfv:vswitch_numa_affinity=strict``: every NUMA node of the guest is on a
    host NUMA node with the switch, or the host is refused.  ``prefer``: every
    host passes; where there is capacity on nodes with the switch, labels hold
    the claim on the compute node to them.

    A host declares where its switch runs by the label ``[nfv_sched]
    vswitch_label``.  Without it, it is where the networks of the request are
    near, if the host declares that for each.

    If ``NFVTopologyFilter`` is not enabled, this filter also refuses hosts by
    the node mapping, ``nfv:numa_node.{n}``.
    """

    rule = vswitch.VSwitchRule

    def concerns(self, request):
        """Return whether the request has such a rule, or a node mapping."""
        # The latter is for clouds without NFVTopologyFilter.
        return any(isinstance(rule, (self.rule, node_map.NodeMapRule))
                   for rule in request.rules)
