# SPDX-License-Identifier: Apache-2.0
"""Read the resource providers of hosts from Placement."""

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
    #: UUID of consumer -> provider -> class -> amount
    allocations: dict[str, dict[str, dict[str, int]]]
    #: UUID of compute node that could not be read -> error
    failed: dict[str, str]
    traits: frozenset[str] | None = None  #: all traits; None if unknown
    #: all resource classes; None if unknown
    resource_classes: frozenset[str] | None = None


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
    places = Places({}, {}, {})
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
                    places.failed[uuid] = str(exc)
                else:
                    _add_tree(places, uuid, tree)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    progress('resource providers', len(readings), len(readings))
    return places._replace(
        traits=_names(client.traits),
        resource_classes=_names(client.resource_classes))


def _names(read_names: Callable[[], list[str]]) -> frozenset[str] | None:
    try:
        return frozenset(read_names())
    except placement_client.PlacementError:
        return None


def _start(
    client: placement_client.Client, pool: futures.Executor,
    computes: Collection[str], aggregates: Collection[str],
) -> dict[futures.Future[list['_Reading']], str]:
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
    traits = _owners(pool, client.with_trait, client.used_traits())
    member_of = _owners(pool, client.in_aggregate, aggregates)
    return {pool.submit(_read_tree, client, members, traits, member_of): uuid
            for uuid, members in trees.items()}


def _owners(pool: futures.Executor, owners: Callable[[str], list[str]],
            names: Collection[str]) -> dict[str, set[str]]:
    """Return the traits, or aggregates, of each provider, by its UUID.

    :param owners: returns the UUIDs of all providers with one of the names
    """
    names_by_uuid: dict[str, set[str]] = {}
    for name, uuids in zip(names, pool.map(owners, names)):
        for uuid in uuids:
            names_by_uuid.setdefault(uuid, set()).add(name)
    return names_by_uuid


class _Reading(ty.NamedTuple):
    """A provider and its allocations: consumer -> class -> amount."""

    provider: snapshot.Provider
    allocations: dict[str, dict[str, int]]


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
                client, member, traits.get(member.uuid, ()),
                aggregates.get(member.uuid, ())))
    # Leave out providers below one that was deleted.
    present = {each.provider.uuid for each in tree} | {None}
    while any(each.provider.parent not in present for each in tree):
        tree = [each for each in tree if each.provider.parent in present]
        present = {each.provider.uuid for each in tree} | {None}
    return tree


def _read_provider(
    client: placement_client.Client, member: placement_client.ProviderRow,
    traits: Collection[str], aggregates: Collection[str],
) -> _Reading:
    _generation, inventories = client.inventories(member.uuid)
    _generation, allocations = client.allocations(member.uuid)
    used: dict[str, int] = {}
    for resources in allocations.values():
        for name, amount in resources.items():
            used[name] = used.get(name, 0) + amount
    return _Reading(snapshot.Provider(
        uuid=member.uuid, name=member.name, parent=member.parent,
        inventories={name: snapshot.Inventory(
            total=inventory['total'], reserved=inventory['reserved'],
            ratio=float(inventory['allocation_ratio']),
            min_unit=inventory['min_unit'], max_unit=inventory['max_unit'],
            step_size=inventory['step_size'], used=used.get(name, 0))
            for name, inventory in inventories.items()},
        traits=frozenset(traits), aggregates=frozenset(aggregates),
    ), allocations)


def _add_tree(places: Places, uuid: str, tree: list[_Reading]) -> None:
    places.providers[uuid] = tuple(each.provider for each in tree)
    for each in tree:
        for consumer, resources in each.allocations.items():
            places.allocations.setdefault(consumer, {})[
                each.provider.uuid] = resources
