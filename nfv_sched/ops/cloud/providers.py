# SPDX-License-Identifier: Apache-2.0
"""Read the resource providers of hosts from Placement."""

import collections
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from concurrent import futures
import contextlib
import typing as ty

from nfv_sched.ledger import client as placement_client
from nfv_sched.ops.cloud import snapshot


class Places(ty.NamedTuple):
    """The resource providers and allocations of hosts."""

    #: UUID of compute node -> its providers
    providers: dict[str, tuple[snapshot.Provider, ...]]
    #: UUID of consumer -> provider -> class -> amount; None if not read
    allocations: dict[str, dict[str, dict[str, int]]] | None
    #: UUID of compute node that could not be read -> error
    failed: dict[str, str]
    traits: frozenset[str] | None = None  #: all traits; None if unknown
    #: all resource classes; None if unknown
    resource_classes: frozenset[str] | None = None


NOT_READ = Places({}, None, {})
# A provider, and its allocations: consumer -> class -> amount.
_Reading = tuple[snapshot.Provider, Mapping[str, dict[str, int]]]


def read(client: placement_client.Client, threads: int,
         computes: Collection[str], aggregates: Collection[str],
         progress: Callable[[str, int, int], None]) -> Places:
    """Read the providers of hosts.

    Usages are not read: they are the sums of the allocations.

    :param computes: UUIDs of the compute nodes
    :param aggregates: UUIDs of Nova's host aggregates
    :param progress: called with (name of what is read, number done, total)
    :raises PlacementError: if Placement cannot be read; errors of single
        hosts are in ``failed``
    """
    providers: dict[str, tuple[snapshot.Provider, ...]] = {}
    allocations: dict[str, dict[str, dict[str, int]]] = {}
    failed: dict[str, str] = {}
    with futures.ThreadPoolExecutor(threads) as pool:
        try:
            readings = _start(client, pool, computes, aggregates)
            for count, reading in enumerate(futures.as_completed(readings)):
                progress('resource providers', count, len(readings))
                uuid = readings[reading]
                try:
                    tree = reading.result()
                except placement_client.UnavailableError:
                    raise
                except placement_client.PlacementError as exc:
                    failed[uuid] = str(exc)
                    continue
                providers[uuid] = tuple([provider for provider, _ in tree])
                for provider, consumers in tree:
                    for consumer, resources in consumers.items():
                        allocations.setdefault(consumer, {})[
                            provider.uuid] = resources
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    progress('resource providers', len(readings), len(readings))
    return Places(providers, allocations, failed, _names(client.traits),
                  _names(client.resource_classes))


def _names(read_names: Callable[[], list[str]]) -> frozenset[str] | None:
    try:
        return frozenset(read_names())
    except placement_client.PlacementError:
        return None


def _start(
    client: placement_client.Client, pool: futures.Executor,
    computes: Collection[str], aggregates: Collection[str],
) -> dict[futures.Future[list[_Reading]], str]:
    """Start to read the provider trees of hosts.

    Traits and aggregates are read first, a request for each of them: there
    are thousands of providers, and few traits.

    :returns: future -> UUID of the compute node
    """
    trees: dict[str, list[placement_client.ProviderRow]] = {
        uuid: [] for uuid in computes}
    for member in client.members():
        if member.root in trees:
            trees[member.root].append(member)
    traits = _owners(client, pool, 'required', client.traits(used=True))
    member_of = _owners(client, pool, 'member_of', aggregates)
    return {pool.submit(_read_tree, client, members, traits, member_of): uuid
            for uuid, members in trees.items()}


def _owners(client: placement_client.Client, pool: futures.Executor, key: str,
            names: Collection[str]) -> dict[str, set[str]]:
    """Return the traits, or aggregates, of each provider, by its UUID.

    :param key: of the query for all providers with one of the names
    """
    names_by_uuid: dict[str, set[str]] = {}
    for name, members in zip(names, pool.map(
            lambda name: client.members(f'?{key}={name}'), names)):
        for member in members:
            names_by_uuid.setdefault(member.uuid, set()).add(name)
    return names_by_uuid


def _read_tree(
    client: placement_client.Client,
    members: list[placement_client.ProviderRow],
    traits: Mapping[str, set[str]], aggregates: Mapping[str, set[str]],
) -> list[_Reading]:
    """Read the provider tree of a host, root first."""
    tree = []
    for member in sorted(members, key=lambda member: (
            member.parent is not None, member.name)):
        # A provider that was deleted since it was listed is left out.
        with contextlib.suppress(placement_client.NotFoundError):
            tree.append(_read_provider(
                client, member, frozenset(traits.get(member.uuid, ())),
                frozenset(aggregates.get(member.uuid, ()))))
    # Leave out providers below one that was deleted.
    while True:
        present = {None, *(provider.uuid for provider, _ in tree)}
        rest = [each for each in tree if each[0].parent in present]
        if len(rest) == len(tree):
            return tree
        tree = rest


def _read_provider(
    client: placement_client.Client, member: placement_client.ProviderRow,
    traits: frozenset[str], aggregates: frozenset[str],
) -> _Reading:
    _generation, inventories = client.inventories(member.uuid)
    _generation, allocations = client.allocations(member.uuid)
    used: collections.Counter[str] = collections.Counter()
    for resources in allocations.values():
        used.update(resources)
    return snapshot.Provider(
        uuid=member.uuid, name=member.name, parent=member.parent,
        traits=traits, aggregates=aggregates, inventories={
            name: snapshot.Inventory(
                total=inventory['total'], reserved=inventory['reserved'],
                ratio=float(inventory['allocation_ratio']),
                min_unit=inventory['min_unit'], max_unit=inventory['max_unit'],
                step_size=inventory['step_size'], used=used[name])
            for name, inventory in inventories.items()}), allocations
