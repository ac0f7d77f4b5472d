# SPDX-License-Identifier: Apache-2.0
"""Name the parts of the ledger in Placement, and request amounts of it.

Each compute node has a nested resource provider with an inventory of vSwitch
ports and one of security group rules.  The filters add the demand of a server
to the allocation candidates of a host, and Nova claims it in Placement
together with everything else, or not at all.
"""

import functools
import typing as ty
import uuid

PORTS = 'CUSTOM_NFV_VSWITCH_PORT'
RULES = 'CUSTOM_NFV_SECURITY_RULE'

#: Resource classes of figures, of which nothing can be allocated:
#: ``UNLIMITED`` less the capacity of the inventory is the number on the host.
DHCP_SERVERS = 'CUSTOM_NFV_DHCP_SERVER'
ROUTERS = 'CUSTOM_NFV_ROUTER'

#: Trait of the nested providers, by which they are found.
TRAIT = 'CUSTOM_NFV_LEDGER'

#: Total of an inventory without limit: the largest that Placement accepts.
UNLIMITED = 2 ** 31 - 1


class Held(ty.NamedTuple):
    """The allocation of a consumer from one provider of the ledger."""

    #: number that grows with every change of the consumer's allocations, from
    #: this provider or any other
    generation: int
    resources: dict[str, int]  #: resource class -> amount


# Never to be changed: the scheduler finds the provider of a host by it alone.
_NAMESPACE = uuid.UUID('5b0c7f0e-6a55-4d0b-9a3b-6f7d2e5c8a41')


@functools.lru_cache(maxsize=65536)
def provider_uuid(compute_node: str) -> str:
    # A compute node and its own resource provider have the same UUID.
    return str(uuid.uuid5(_NAMESPACE, compute_node))


def ask(host_state, resource_class: str, amount: int) -> None:
    """Add an amount to all allocation candidates of a host.

    No other request uses these allocation candidates.  Calling this again with
    the same amount changes nothing.
    """
    provider = provider_uuid(host_state.uuid)
    # All of them, as other filters may drop or reorder candidates until Nova
    # claims the first.
    for candidate in host_state.allocation_candidates:
        allocations = candidate['allocations']
        if (entry := allocations.get(provider)) is None:
            allocations[provider] = {'resources': {resource_class: amount}}
        else:
            entry['resources'][resource_class] = amount
