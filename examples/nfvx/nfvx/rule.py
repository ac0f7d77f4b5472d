# SPDX-License-Identifier: Apache-2.0
"""Guests on host NUMA nodes with even numbers."""

import dataclasses

from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.base import reasons
from nfv_sched.fit.numa import rule

KEY = 'nfvx:even_nodes'


@dataclasses.dataclass(frozen=True, eq=False)
class EvenNodesRule(rule.CellsRule):
    """``nfvx:even_nodes``: every guest cell on an even host NUMA node."""

    name = 'even_nodes'
    filters = ('EvenNodesFilter',)
    order = reasons.OTHERS
    keys = (KEY,)
    noun = 'with an even number'
    where = ' with an even number'

    @classmethod
    def from_request(cls, request_parts):
        """The policy of the flavor, if it has one."""
        faults = cls.faults(request_parts.extra_specs)
        if faults:
            raise rule.RequestError(KEY, str(faults[0]))
        value = request_parts.extra_specs.get(KEY)
        if value is None:
            return ()
        return (cls(f'{KEY}={value}', strict=value == nfv_extra_specs.STRICT),)

    @classmethod
    def faults(cls, extra_specs):
        """The value of a flavor if it is wrong, for "flavor lint", too."""
        value = extra_specs.get(KEY)
        if value is None or value in nfv_extra_specs.AFFINITIES:
            return []
        return [nfv_extra_specs.Fault(
            KEY, f'{nfv_extra_specs.shown(value)} is not one of strict, '
                 'prefer')]

    def label(self, names):
        """Hosts have no label for this; those of single nodes will do."""
        return None

    def read(self, host, names):
        """Host cells with even numbers, as a bitmask."""
        return sum(1 << place for place, cell in enumerate(host.cells)
                   if cell.id % 2 == 0)

    def undeclared_reason(self):
        """Not reached: every host reports the numbers of its NUMA nodes."""
        return self.needs_topology()

    def node_map_reason(self, node, key, nodes):
        """Another rule puts a guest cell on an odd node."""
        return reasons.Reason(
            self.order, self.text,
            f'an even number for host NUMA node {node} needed ({key})')

    def floating(self, host, names):
        """Kept only where the whole host is an even node."""
        if host is not None and self.read(host, names) == host.all_cells:
            return 1.0
        return self.needs_topology() if self.strict else 0.0
