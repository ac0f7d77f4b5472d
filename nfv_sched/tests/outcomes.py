# SPDX-License-Identifier: Apache-2.0

"""What strict and prefer come to, as a table.

The rows are about host NUMA nodes where a policy wants the guest: those with
the virtual switch or with a place, or, for the anti-affinity, those without
the place.  The unit and functional tests run all of them, the live and Tempest
tests three.  Plain data: Tempest has no Nova to import.
"""

import dataclasses
import enum

KEY = 'nfv:vswitch_numa_affinity'
AT = 'nfv:numa_affinity.'
AWAY_FROM = 'nfv:numa_anti_affinity.'
MAPPING = 'nfv:numa_node.0'


class Declares(enum.Enum):
    """How much a host says about its NUMA nodes."""

    ALL = 'where the switch or the place is, and the name of each node'
    SWITCH = 'where the switch or the place is'
    NOTHING = 'nothing'


class Ends(enum.Enum):
    """Where the guest is in the end."""

    WITH = 'each guest node is on another host node where it is wanted'
    AWAY = 'on a host node where it is not wanted'
    ANYWHERE = 'where stock Nova puts it'
    REFUSED = 'nowhere'


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One row, of a guest with 2 vCPUs or more.

    :ivar key: the policy
    :ivar policy: its value, ``strict`` or ``prefer``
    :ivar ends: by what the hosts declare
    :ivar wanted_nodes: on how many of the host's NUMA nodes, which are at
        least two, the policy wants the guest
    :ivar guest_nodes: NUMA nodes of the guest
    :ivar mapped_away: guest node 0 is mapped to another host node
    :ivar full: the nodes where it is wanted are full, on all hosts
    :ivar reason: what is read about a refusal by hosts that declare all;
        ``{node}`` is the host node that guest node 0 is mapped to
    """

    key: str
    policy: str
    ends: dict[Declares, Ends]
    wanted_nodes: int = 1
    guest_nodes: int = 1
    mapped_away: bool = False
    full: bool = False
    reason: str = ''

    @property
    def title(self) -> str:
        words = [f'{self.key}={self.policy}',
                 f'{self.guest_nodes} guest nodes',
                 f'wanted on {self.wanted_nodes} nodes']
        if self.mapped_away:
            words.append('mapped to another')
        if self.full:
            words.append('which are full')
        return ', '.join(words)

    def extra_specs(self, node: int | None = None) -> dict[str, str]:
        """Keys that make a guest with dedicated CPUs the one of this row.

        :param node: a host node where it is not wanted
        """
        specs = {'hw:numa_nodes': str(self.guest_nodes),
                 self.key: self.policy}
        if self.mapped_away:
            specs[MAPPING] = str(node)
        return specs


_WITH, _AWAY = Ends.WITH, Ends.AWAY
_ANYWHERE, _REFUSED = Ends.ANYWHERE, Ends.REFUSED
_HOPELESS = (_REFUSED, _REFUSED, _REFUSED)

# Value, fields, the ends for the three kinds of hosts, and those for an
# anti-affinity where they differ: a host that declares nothing has no such
# place, and the claim is kept away from a place by the names of the other
# nodes.
_ROWS = (
    # The claim is told the node by the node's name alone.
    ('strict', {'mapped_away': True}, _HOPELESS, None),
    ('prefer', {'mapped_away': True}, (_AWAY, _REFUSED, _REFUSED), None),
    ('strict', {}, (_WITH, _WITH, _REFUSED), (_WITH, _REFUSED, _ANYWHERE)),
    ('prefer', {}, (_WITH, _WITH, _ANYWHERE), (_WITH, _ANYWHERE, _ANYWHERE)),
    ('strict', {'guest_nodes': 2}, _HOPELESS,
     (_REFUSED, _REFUSED, _ANYWHERE)),
    ('strict', {'guest_nodes': 2, 'wanted_nodes': 2},
     (_WITH, _WITH, _REFUSED), (_WITH, _WITH, _WITH)),
    ('strict', {'full': True}, _HOPELESS, (_REFUSED, _REFUSED, _ANYWHERE)),
    ('prefer', {'full': True}, (_AWAY, _AWAY, _ANYWHERE), None),
)


def rows(key: str = KEY, **fields) -> list[Outcome]:
    """Return rows with these values, in their order.

    :param key: the policy; those of places end with the name of one
    """
    place, away = key.partition('.')[2], key.startswith(AWAY_FROM)
    where = 'with the virtual switch'
    mapped = 'the virtual switch on host NUMA node {node} needed'
    if place:
        where = f'{"without" if away else "with"} {place}'
        mapped = f'host NUMA node {{node}} {where} needed'
    found = []
    for policy, more, ends, ends_away in _ROWS:
        reason = f'{key}=strict'
        if 'mapped_away' in more:
            reason = mapped
        elif 'guest_nodes' in more:
            reason = f'2 host NUMA nodes {where} needed'
        found.append(Outcome(
            key, policy, dict(zip(Declares, away and ends_away or ends)),
            reason=reason, **more))
    return [row for row in found
            if all(getattr(row, name) == value
                   for name, value in fields.items())]


OUTCOMES = tuple(rows())
