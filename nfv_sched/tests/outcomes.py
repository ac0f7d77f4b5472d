#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.

"""What strict and prefer for the virtual switch come to, as a table.

The unit, functional, live and Tempest tests run its rows, each on the hosts
that it has.  Plain data: Tempest has no Nova to import.
"""

from collections.abc import Collection
import dataclasses
import enum

KEY = 'nfv:vswitch_numa_affinity'
MAPPING = 'nfv:numa_node.0'


class Declares(enum.Enum):
    """How much a host says about its NUMA nodes."""

    ALL = 'where the switch runs, and the name of each node'
    SWITCH = 'where the switch runs'
    NOTHING = 'nothing'


class Ends(enum.Enum):
    """Where the guest is in the end."""

    WITH = 'each guest node is on another host node with the switch'
    AWAY = 'on a host node without the switch'
    ANYWHERE = 'where stock Nova puts it'
    REFUSED = 'nowhere'


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One row, of a guest with 2 vCPUs or more.

    :ivar policy: ``strict`` or ``prefer``
    :ivar ends: by what the hosts declare
    :ivar switch_nodes: how many of the host's NUMA nodes, which are at least
        two, have the switch
    :ivar guest_nodes: NUMA nodes of the guest
    :ivar mapped_away: guest node 0 is mapped to a host node without switch
    :ivar full: the nodes with the switch are full, on all hosts
    :ivar reason: what is read about a refusal by hosts that declare all;
        ``{node}`` is the host node that guest node 0 is mapped to
    """

    policy: str
    ends: dict[Declares, Ends]
    switch_nodes: int = 1
    guest_nodes: int = 1
    mapped_away: bool = False
    full: bool = False
    reason: str = f'{KEY}=strict'

    @property
    def title(self) -> str:
        """The row in words, for a failure."""
        words = [self.policy, f'{self.guest_nodes} guest nodes',
                 f'switch on {self.switch_nodes} nodes']
        if self.mapped_away:
            words.append('mapped away from the switch')
        if self.full:
            words.append('switch nodes full')
        return ', '.join(words)

    def extra_specs(self, node: int | None = None) -> dict[str, str]:
        """Keys that make a guest with dedicated CPUs the one of this row.

        :param node: a host node without switch
        """
        specs = {'hw:numa_nodes': str(self.guest_nodes), KEY: self.policy}
        if self.mapped_away:
            specs[MAPPING] = str(node)
        return specs

    def suits(self, switch: Collection[int], nodes: int) -> bool:
        """Whether a host is one of this row.

        :param switch: its NUMA nodes with the switch
        :param nodes: how many NUMA nodes it has
        """
        if self.mapped_away and nodes <= len(switch):
            return False
        if self.guest_nodes > self.switch_nodes:
            return nodes >= self.guest_nodes and (
                len(switch) == self.switch_nodes)
        return len(switch) >= self.switch_nodes


def _ends(everything, switch, nothing):
    return {Declares.ALL: everything, Declares.SWITCH: switch,
            Declares.NOTHING: nothing}


OUTCOMES = (
    # The claim is told the node by the node's name alone.
    Outcome('strict', _ends(Ends.REFUSED, Ends.REFUSED, Ends.REFUSED),
            mapped_away=True, reason='the virtual switch on host NUMA node '
                                     '{node} needed'),
    Outcome('prefer', _ends(Ends.AWAY, Ends.REFUSED, Ends.REFUSED),
            mapped_away=True),
    Outcome('strict', _ends(Ends.WITH, Ends.WITH, Ends.REFUSED)),
    Outcome('prefer', _ends(Ends.WITH, Ends.WITH, Ends.ANYWHERE)),
    Outcome('strict', _ends(Ends.REFUSED, Ends.REFUSED, Ends.REFUSED),
            guest_nodes=2, reason='2 host NUMA nodes with the virtual switch '
                                  'needed'),
    Outcome('strict', _ends(Ends.WITH, Ends.WITH, Ends.REFUSED),
            guest_nodes=2, switch_nodes=2),
    Outcome('strict', _ends(Ends.REFUSED, Ends.REFUSED, Ends.REFUSED),
            full=True),
    Outcome('prefer', _ends(Ends.AWAY, Ends.AWAY, Ends.ANYWHERE), full=True),
)


def rows(**fields) -> list[Outcome]:
    """Rows with these values, in their order."""
    return [row for row in OUTCOMES
            if all(getattr(row, name) == value
                   for name, value in fields.items())]
