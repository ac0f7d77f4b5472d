# SPDX-License-Identifier: Apache-2.0
"""Find what guests have allocated from the ledger and do not use.  No I/O.

Nova does not lower the allocation of a guest when a port is detached or a rule
removed.  So what a guest has not used for :data:`ROUNDS` rounds is taken out
of its allocation.

A guest that is being built, or that moves here, has an allocation before its
ports are bound, and they are bound one after the other.  Its allocation is
left alone until a port of it has been seen here with this allocation, while
its ports change, and while Nova has a task for it, which the publisher checks.
What the guest uses again later counts as reserved, as all that is attached
after boot does.
"""

from collections.abc import Mapping
import typing as ty

from nfv_sched.ledger import names
from nfv_sched.network import usage

#: Rounds in a row with the same allocation, the same ports and the same number
#: of rules, after which a guest gives back what it does not use.
ROUNDS = 3


class Sight(ty.NamedTuple):
    """What the last rounds have seen of a guest on a host.

    :ivar held: its allocation
    :ivar guest: its ports and rules that Neutron had bound to the host
    :ivar bound: whether a port was bound here since it has this allocation
    :ivar rounds: number of rounds in a row in which it was like this
    :ivar last: number of the last of these rounds
    """

    held: names.Held
    guest: usage.GuestUsage
    bound: bool
    rounds: int
    last: int

    @property
    def due(self) -> bool:
        """Whether it can give back what it does not use."""
        return self.bound and self.rounds >= ROUNDS


def look(
    before: Sight | None, held: names.Held, guest: usage.GuestUsage,
    number: int,
) -> Sight:
    """What has been seen of a guest, this round included.

    :param before: the last sight; None if there is none
    :param held: its allocation
    :param guest: its ports and rules that Neutron has bound to the host
    :param number: number of this round; several calls in a round count once
    """
    bound = bool(guest.ports)
    if before is None or before.held != held:
        return Sight(held, guest, bound, 1, number)
    bound = bound or before.bound
    if before.guest != guest or before.last not in (number, number - 1):
        return Sight(held, guest, bound, 1, number)
    return before._replace(
        bound=bound, rounds=before.rounds + number - before.last, last=number)


def kept(
    resources: Mapping[str, int], guest: usage.GuestUsage, rules_known: bool,
) -> dict[str, int]:
    """The part of its allocation that a guest uses.

    :param resources: resource class -> amount that it has allocated
    :param guest: its ports and rules that Neutron has bound to the host
    :param rules_known: whether Neutron shows the rules of all its ports; if
        not, all allocated rules count as used
    :returns: resource class -> amount, without classes of which it uses none
    """
    used = dict(resources)
    used[names.PORTS] = len(guest.ports)
    if rules_known:
        used[names.RULES] = guest.rules
    return {name: min(amount, used[name])
            for name, amount in resources.items() if min(amount, used[name])}


def difference(
    resources: Mapping[str, int], keep: Mapping[str, int],
) -> dict[str, int]:
    """How much is given back.

    :param resources: resource class -> amount that is allocated
    :param keep: resource class -> amount that is kept
    :returns: resource class -> amount, without classes of which all is kept
    """
    return {name: amount - keep.get(name, 0)
            for name, amount in resources.items()
            if amount > keep.get(name, 0)}
