# SPDX-License-Identifier: Apache-2.0
"""Keep guests on the NUMA nodes of the virtual switch."""

import dataclasses

from nfv_sched.base import extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit.numa import rule


@dataclasses.dataclass(frozen=True, eq=False)
class VSwitchRule(rule.CellsRule):
    """``nfv:vswitch_numa_affinity``: all guest cells where the switch runs."""

    name = 'vswitch'
    filters = ('VSwitchNUMAAffinityFilter',)
    order = 20
    keys = (extra_specs.VSWITCH_NUMA_AFFINITY,)
    noun = 'with the virtual switch'

    #: physical networks that the request reaches through the switch
    physnets: frozenset[str] = frozenset()
    #: whether the request is known to use a tunnelled network
    tunneled: bool = False

    @classmethod
    def from_request(cls, request_parts):
        policy = request_parts.policy
        if policy.vswitch is None:
            return ()
        return (cls(f'{policy.vswitch_key}={policy.vswitch}',
                    policy.vswitch == extra_specs.STRICT,
                    physnets=request_parts.physnets,
                    tunneled=request_parts.tunneled),)

    def label(self, names):
        return names.vswitch

    def read(self, host, names):
        """Return the bitmask of the host cells where the virtual switch runs.

        These are the cells with the label of the switch.  For a host without
        the label, they are those near the networks that the request reaches
        through the switch, if the host declares the NUMA affinity of each of
        these; else None.
        """
        labels = host.labels
        declared = labels.get(names.vswitch)
        # The label says where the switch is, network affinity indirectly.
        if declared:
            return declared
        cells = 0
        for physnet in self.physnets:
            near = labels.get(physnet)
            # The switch may reach this network from any node.
            if not near:
                return None
            cells |= near
        if self.tunneled:
            if not host.tunnel:
                return None
            cells |= host.tunnel
        return cells or None

    def undeclared_reason(self):
        return reasons.Reason(
            self.order, self.text,
            'a host that declares where its virtual switch runs needed',
            'no label or network affinity')

    def node_map_reason(self, node, key, nodes):
        return reasons.Reason(
            self.order, self.text,
            f'the virtual switch on host NUMA node {node} needed ({key})',
            f'it runs on {", ".join(map(str, nodes))}')
