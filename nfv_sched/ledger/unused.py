# SPDX-License-Identifier: Apache-2.0
"""Find amounts that servers have allocated from the ledger but do not use.

Nova does not lower the allocation of a server when a port is detached or a
rule removed.  So an amount that a server has not used for :data:`ROUNDS`
rounds is removed from its allocation.  No I/O.

A server that is being built, or that moves here, has an allocation before its
ports are bound, and they are bound one after the other.  Its allocation is
left alone until a port of it has been seen here with this allocation, while
its ports change, and while Nova has a task for it, which the publisher checks.
Anything that the server uses again later counts as reserved, like everything
that is attached after boot.
"""

from collections.abc import Mapping
import typing as ty

from nfv_sched.limits import names
from nfv_sched.limits import usage

#: Rounds in a row with the same allocation, the same ports and the same number
#: of rules, after which a server gives back what it does not use.
ROUNDS = 3


class Sight(ty.NamedTuple):
    """The state of a server on a host as the last rounds have seen it."""

    held: names.Held
    #: its ports and rules that Neutron had bound to the host
    guest: usage.GuestUsage
    bound: bool  #: whether a port was bound here since it has this allocation
    rounds: int  #: number of rounds in a row with this state
    last: int  #: number of the last of these rounds

    @property
    def due(self) -> bool:
        """True if the server can give back what it does not use."""
        return self.bound and self.rounds >= ROUNDS


def look(
    before: Sight | None, held: names.Held, guest: usage.GuestUsage,
    number: int,
) -> Sight:
    """Return the sight of a server, updated by this round.

    :param before: the last sight; None if there is none
    :param number: number of this round; several calls in a round count once
    """
    bound = bool(guest.ports)
    if before is None or before.held != held:
        return Sight(held, guest, bound, 1, number)
    bound = bound or before.bound
    # After a round that did not read this host it is not known whether the
    # ports were the same all the time.
    if before.guest != guest or before.last not in (number, number - 1):
        return Sight(held, guest, bound, 1, number)
    return before._replace(
        bound=bound, rounds=before.rounds + number - before.last, last=number)


def kept(
    resources: Mapping[str, int], guest: usage.GuestUsage, rules_known: bool,
) -> dict[str, int]:
    """Return the amounts that a server uses of its allocation, without 0.

    :param rules_known: whether Neutron shows the rules of all its ports; if
        not, all allocated rules count as used
    """
    used = dict(resources)
    used[names.PORTS] = len(guest.ports)
    if rules_known:
        used[names.RULES] = guest.rules
    return {name: min(amount, used[name])
            for name, amount in resources.items() if min(amount, used[name])}


def difference(
    resources: Mapping[str, int], remaining: Mapping[str, int],
) -> dict[str, int]:
    """Return the amounts to give back, by resource class."""
    return {name: amount - remaining.get(name, 0)
            for name, amount in resources.items()
            if amount > remaining.get(name, 0)}
