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
"""What guests have allocated from the ledger and do not use.  No I/O.

Nova allocates for a guest what it was scheduled with, and never less when a
port is detached or a rule removed.  What a guest has been seen not to use for
some rounds is therefore taken out of its allocation.

A guest that is being built, or that moves here, has an allocation before its
ports are bound, and they are bound one after the other.  Its allocation is
left alone until a port of it has been seen here under this very allocation,
as long as its ports change, and, as the publisher asks Nova, as long as
anything is done to it.  What is used again later counts as reserved, like all
that comes after boot.
"""

from collections.abc import Mapping
import typing as ty

from nfv_sched.ledger import names
from nfv_sched.network import usage

#: Rounds in a row in which a guest has to be seen with the same allocation,
#: the same ports and as many rules, before it gives back the rest.
ROUNDS = 3


class Sight(ty.NamedTuple):
    """How a guest was seen on a host in the last rounds.

    :ivar held: what it had allocated
    :ivar guest: what Neutron had bound of it
    :ivar bound: whether any port was bound here under this allocation
    :ivar rounds: for how many rounds in a row it has been like this
    :ivar last: number of the last of them
    """

    held: names.Held
    guest: usage.Guest
    bound: bool
    rounds: int
    last: int

    @property
    def due(self) -> bool:
        """Whether it can give back what it does not use."""
        return self.bound and self.rounds >= ROUNDS


def look(
    before: Sight | None, held: names.Held, guest: usage.Guest, number: int,
) -> Sight:
    """How a guest is seen now.

    :param before: how it was seen before; None if it was not
    :param held: what it has allocated
    :param guest: what Neutron has bound of it
    :param number: of this round; looking again in a round counts once
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
    resources: Mapping[str, int], guest: usage.Guest, rules_known: bool,
) -> dict[str, int]:
    """What a guest needs of its allocation.

    :param resources: resource class -> amount that it has allocated
    :param guest: what Neutron has bound of it
    :param rules_known: whether Neutron shows the rules of all its ports
    :returns: resource class -> amount; nothing if it needs none at all
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
    """What is given back.

    :param resources: resource class -> amount that is allocated
    :param keep: resource class -> amount that is kept
    """
    return {name: amount - keep.get(name, 0)
            for name, amount in resources.items()
            if amount > keep.get(name, 0)}
