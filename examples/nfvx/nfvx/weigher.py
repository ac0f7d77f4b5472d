# SPDX-License-Identifier: Apache-2.0
"""The weigher for guests that prefer even host NUMA nodes."""

from oslo_config import cfg

from nfv_sched.nova import scheduler
from nfv_sched.weights import base
from nfvx import rule

scheduler.CONF.register_opt(cfg.FloatOpt(
    'even_nodes_weight_multiplier', default=1000.0,
    help='Multiplier of the weigher of even NUMA nodes.'), 'nfvx')


class EvenNodesWeigher(base.PreferenceWeigher):
    """Prefer hosts with room on even NUMA nodes.

    For guests with ``nfvx:even_nodes=prefer`` a host weighs as much as the
    part of the guest's NUMA nodes that would be on such nodes.
    """

    multiplier = 'even_nodes_weight_multiplier'
    group = 'nfvx'
    rule = rule.EvenNodesRule
