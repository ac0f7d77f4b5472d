# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``flavor lint`` and ``flavor translate``."""

from collections.abc import Mapping
import dataclasses
import types
import typing as ty


class Image(ty.NamedTuple):
    #: UUID with which commands name it; empty if it is not known
    id: str = ''
    properties: Mapping[str, str] = types.MappingProxyType({})
    memory: int = 0  #: least MiB of a flavor
    disk: int = 0  #: least GiB of the root disk of a flavor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorFinding:
    """A problem of a flavor."""

    flavor: str  #: name of the flavor
    flavor_id: str | None  #: its ID; null if it is not known
    #: "error" if the API refuses the flavor or no host takes it
    severity: ty.Literal['error', 'warning', 'note']
    rule: str  #: identifier of the rule that found it, such as "no-topology"
    #: the extra spec or image property, or another subject such as "RAM"; null
    #: if it is about the flavor as a whole
    key: str | None
    finding: str  #: description, for people
    do: str  #: instructions, for people


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorLint:
    """The problems of flavors."""

    flavors_checked: int  #: number of flavors that were checked
    findings: tuple[FlavorFinding, ...]  #: findings, flavor by flavor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyTranslation:
    """The translation of one key with its value."""

    key: str | None  #: the key; null for a default of the old platform
    value: str  #: value of the key in the old flavor
    #: keys and values that replace it; empty for none
    becomes: Mapping[str, str]
    #: kind of the translation: "same", "changed", "renamed", "combination",
    #: "host option", "other service", "none" or "unknown"
    kind: str
    #: what else to do, or what is lost, for people; null for nothing
    do: str | None
    lost: bool  #: whether something is left to do by hand, or is lost


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TranslationError:
    """A mistake in the translated flavor."""

    #: the extra spec, or another subject; null if it is about the flavor as a
    #: whole
    key: str | None
    finding: str  #: description, for people


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorTranslation:
    """The translation of a flavor or image."""

    flavor: str | None  #: name of the flavor; null for an image
    #: ID of the flavor; null likewise, or if it is not known
    flavor_id: str | None
    image_id: str | None  #: ID of the image; null for a flavor
    keys: tuple[KeyTranslation, ...]  #: the translation of each key
    #: all keys and values after the translation
    extra_specs: Mapping[str, str]
    set: Mapping[str, str]  #: keys to set, new or with another value
    unset: tuple[str, ...]  #: keys to remove
    errors: tuple[TranslationError, ...]  #: mistakes in the translated flavor

    @property
    def name(self) -> str:
        """Name of the flavor, or ID of the image."""
        return self.image_id or '' if self.flavor is None else self.flavor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Translations:
    """Flavors of Helion or Titanium Carrier Grade for Nova and nfv-sched."""

    #: flavors, and the image if one was given
    translations: tuple[FlavorTranslation, ...]
