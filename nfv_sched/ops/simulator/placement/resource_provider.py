# SPDX-License-Identifier: Apache-2.0
"""Define resource providers with inventories and usage."""

from collections.abc import Iterable, Mapping, MutableMapping
import dataclasses
import typing as ty

from nfv_sched.ops.cloud import snapshot


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResourceProvider(snapshot.Provider):
    """A resource provider with its usage, which only its model changes."""

    root: str  #: UUID of the compute node of its tree
    #: resource class -> allocated amount; inventories have that before
    used: dict[str, int]

    @classmethod
    def start(cls, provider: snapshot.Provider,
              root: str | None = None) -> 'ResourceProvider':
        """Return a provider with the usage of its inventories."""
        return cls(
            **{field.name: getattr(provider, field.name)
               for field in dataclasses.fields(snapshot.Provider)},
            root=root or provider.parent or provider.uuid,
            used={name: each.used for name, each
                  in provider.inventories.items() if each.used})

    def recorded(self) -> snapshot.Provider:
        return snapshot.Provider(
            uuid=self.uuid, name=self.name, parent=self.parent,
            traits=self.traits, aggregates=self.aggregates, inventories={
                name: dataclasses.replace(each, used=self.used.get(name, 0))
                for name, each in self.inventories.items()})

    def free(self, resource_class: str) -> int:
        """Return the free amount of a class, negative if it is overused."""
        inventory = self.inventories.get(resource_class)
        return 0 if inventory is None else (
            inventory.capacity - self.used.get(resource_class, 0))

    def summary(self) -> dict[str, ty.Any]:
        return {
            'resources': {
                name: {'capacity': inventory.capacity,
                       'used': self.used.get(name, 0)}
                for name, inventory in self.inventories.items()},
            'traits': list(self.traits), 'root_provider_uuid': self.root,
            'parent_provider_uuid': self.parent}

    def allows(self, amounts: Mapping[str, int]) -> bool:
        return all(
            name in self.inventories and self.inventories[name].allows(amount)
            and amount <= self.free(name) for name, amount in amounts.items())


def add(to: MutableMapping[str, int], amounts: Iterable[tuple[str, int]],
        sign: int = 1) -> None:
    """Add amounts by resource class; classes that reach 0 are removed."""
    for name, amount in amounts:
        if total := to.get(name, 0) + sign * amount:
            to[name] = total
        else:
            to.pop(name, None)
