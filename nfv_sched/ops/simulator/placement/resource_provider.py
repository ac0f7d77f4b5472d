# SPDX-License-Identifier: Apache-2.0
"""Define resource providers with inventories and usage."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import MutableMapping
from collections.abc import Set
import dataclasses
import types
import typing as ty


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderInventory:
    """The inventory of one resource class of a provider."""

    total: int
    reserved: int = 0
    ratio: float = 1.0
    #: None for the total, which is what Nova reports
    max_unit: int | None = None
    min_unit: int = 1
    step_size: int = 1

    def allows(self, amount: int) -> bool:
        """Return whether units and step allow an amount in one allocation."""
        return (self.min_unit <= amount <= self.most
                and amount % self.step_size == 0)

    @property
    def most(self) -> int:
        """The largest amount of one allocation."""
        return self.total if self.max_unit is None else self.max_unit

    @property
    def capacity(self) -> int:
        """The largest sum of all allocations."""
        return int((self.total - self.reserved) * self.ratio)


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceProvider:
    """A resource provider.

    Only its :class:`~nfv_sched.ops.simulator.placement.model.PlacementModel`
    changes its usage.
    """

    uuid: str
    name: str
    inventories: Mapping[str, ProviderInventory]  #: by resource class
    traits: Set[str]
    aggregates: Set[str] = frozenset()  #: UUIDs of its aggregates
    #: resource class -> allocated amount
    used: Mapping[str, int] = dataclasses.field(default_factory=dict)
    parent: str | None = None  #: UUID of its parent; None for a compute node
    #: UUID of the compute node of its tree; None if the parent, or the
    #: provider itself, is the compute node
    tree: str | None = None
    _used: dict[str, int] = dataclasses.field(
        init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        used, inventories = dict(self.used), dict(self.inventories)
        for name, value in (
                ('inventories', types.MappingProxyType(inventories)),
                ('traits', frozenset(self.traits)),
                ('aggregates', frozenset(self.aggregates)),
                ('used', types.MappingProxyType(used)), ('_used', used)):
            object.__setattr__(self, name, value)

    @property
    def root(self) -> str:
        """UUID of the compute node of its tree."""
        return self.tree or self.parent or self.uuid

    def free(self, resource_class: str) -> int:
        """Return the free amount of a class, negative if it is overused."""
        inventory = self.inventories.get(resource_class)
        if inventory is None:
            return 0
        return inventory.capacity - self._used.get(resource_class, 0)

    def take(self, amounts: Mapping[str, int]) -> None:
        """Add to the usage without checking the capacity."""
        add(self._used, amounts.items())

    def give(self, amounts: Mapping[str, int]) -> None:
        add(self._used, amounts.items(), -1)

    def summary(self) -> dict[str, ty.Any]:
        return {
            'resources': {
                name: {'capacity': inventory.capacity,
                       'used': self._used.get(name, 0)}
                for name, inventory in self.inventories.items()},
            'traits': list(self.traits),
            'parent_provider_uuid': self.parent,
            'root_provider_uuid': self.root,
        }

    def allows(self, amounts: Mapping[str, int]) -> bool:
        """Return whether all the amounts can be allocated together."""
        for resource_class, amount in amounts.items():
            inventory = self.inventories.get(resource_class)
            if (inventory is None or not inventory.allows(amount) or
                    amount > self.free(resource_class)):
                return False
        return True


def add(to: MutableMapping[str, int], amounts: Iterable[tuple[str, int]],
        sign: int = 1) -> None:
    """Add amounts by resource class; classes that reach 0 are removed."""
    for name, amount in amounts:
        total = to.get(name, 0) + sign * amount
        if total:
            to[name] = total
        else:
            to.pop(name, None)
