# SPDX-License-Identifier: Apache-2.0
"""The filter for guests that want even host NUMA nodes."""

from nfv_sched.filters import base
from nfvx import rule


class EvenNodesFilter(base.RuleFilter):
    """Place guests on host NUMA nodes with even numbers.

    ``nfvx:even_nodes=strict``: all NUMA nodes of the guest are on such nodes,
    or the host is refused.  ``prefer``: every host passes.
    """

    rule = rule.EvenNodesRule
