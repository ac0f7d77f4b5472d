# SPDX-License-Identifier: Apache-2.0
"""Name the parts of the ledger in Placement, and request amounts of it.

Each compute node has a nested resource provider with an inventory of vSwitch
ports and one of security group rules.  The filters add the demand of a server
to the allocation candidates of a host, and Nova claims it in Placement
together with everything else, or not at all.
"""

from collections.abc import Mapping
import functools
import re
import typing as ty
import uuid

from nfv_sched.base import strings

PORTS = 'CUSTOM_NFV_VSWITCH_PORT'
RULES = 'CUSTOM_NFV_SECURITY_RULE'

#: Resource classes of figures, of which nothing can be allocated:
#: ``UNLIMITED`` less the capacity of the inventory is the number on the host.
DHCP_SERVERS = 'CUSTOM_NFV_DHCP_SERVER'
ROUTERS = 'CUSTOM_NFV_ROUTER'

_NODE = 'CUSTOM_NFV_NODE'
_OF_NODE = re.compile(_NODE + r'([0-9]+)_(?:PCPU|PAGES_([0-9]+))')

#: Trait of the nested providers, by which they are found.
TRAIT = 'CUSTOM_NFV_LEDGER'

#: Total of an inventory without limit: the largest that Placement accepts.
UNLIMITED = 2 ** 31 - 1


def node_cpus(node: int) -> str:
    """Return the resource class of the dedicated CPUs of a host NUMA node."""
    return f'{_NODE}{node}_PCPU'


def node_pages(node: int, size_kb: int) -> str:
    """Return the resource class of its memory pages of a size."""
    return f'{_NODE}{node}_PAGES_{size_kb}'


def is_of_node(resource_class: str) -> bool:
    return _OF_NODE.fullmatch(resource_class) is not None


def of_node(resource_class: str) -> tuple[str, str, str]:
    """Return (number of the host NUMA node, noun, what follows the noun)."""
    node, size = _OF_NODE.fullmatch(resource_class).groups()
    return (node, 'page', f' of {strings.size(int(size))}') if size else (
        node, 'dedicated CPU', '')


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
        candidate['allocations'].setdefault(
            provider, {'resources': {}})['resources'][resource_class] = amount


def ask_nodes(candidate: dict, compute_node: str,
              amounts: Mapping[str, int]) -> None:
    """Make an allocation candidate take these amounts of NUMA nodes.

    :param amounts: resource class -> amount; classes of NUMA nodes that are
        not in it are taken out of the candidate
    """
    provider, allocations = provider_uuid(compute_node), (
        candidate['allocations'])
    resources = {
        name: amount for name, amount in allocations.get(
            provider, {'resources': {}})['resources'].items()
        if not is_of_node(name)}
    if resources | amounts:
        allocations[provider] = {
            **allocations.get(provider, {}),
            'resources': {**resources, **amounts}}
    else:
        allocations.pop(provider, None)
