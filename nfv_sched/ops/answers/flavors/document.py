# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``flavor lint`` and ``flavor translate``."""

from collections.abc import Mapping
import dataclasses
import typing as ty


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorFinding:
    """A problem of a flavor.

    :ivar flavor: name of the flavor
    :ivar flavor_id: its ID; null if it is not known
    :ivar severity: "error" if the API refuses the flavor or no host takes it
    :ivar rule: identifier of the rule that found it, such as "no-topology"
    :ivar key: the extra spec or image property, or another subject such as
        "RAM"; null if it is about the flavor as a whole
    :ivar finding: description, for people
    :ivar do: instructions, for people
    """

    flavor: str
    flavor_id: str | None
    severity: ty.Literal['error', 'warning', 'note']
    rule: str
    key: str | None
    finding: str
    do: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorLint:
    """The problems of flavors.

    :ivar flavors_checked: number of flavors that were checked
    :ivar findings: findings, flavor by flavor
    """

    flavors_checked: int
    findings: tuple[FlavorFinding, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KeyTranslation:
    """The translation of one key with its value.

    :ivar key: the key; null for a default of the old platform
    :ivar value: value of the key in the old flavor
    :ivar becomes: keys and values that replace it; empty for none
    :ivar kind: kind of the translation: "same", "changed", "renamed",
        "combination", "host option", "other service", "none" or "unknown"
    :ivar do: what else to do, or what is lost, for people; null for nothing
    :ivar lost: whether something is left to do by hand, or is lost
    """

    key: str | None
    value: str
    becomes: Mapping[str, str]
    kind: str
    do: str | None
    lost: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TranslationError:
    """A mistake in the translated flavor.

    :ivar key: the extra spec, or another subject; null if it is about the
        flavor as a whole
    :ivar finding: description, for people
    """

    key: str | None
    finding: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FlavorTranslation:
    """The translation of a flavor or image.

    :ivar flavor: name of the flavor; null for an image
    :ivar flavor_id: ID of the flavor; null likewise, or if it is not known
    :ivar image_id: ID of the image; null for a flavor
    :ivar keys: the translation of each key
    :ivar extra_specs: all keys and values after the translation
    :ivar set: keys to set, new or with another value
    :ivar unset: keys to remove
    :ivar errors: mistakes in the translated flavor
    """

    flavor: str | None
    flavor_id: str | None
    image_id: str | None
    keys: tuple[KeyTranslation, ...]
    extra_specs: Mapping[str, str]
    set: Mapping[str, str]
    unset: tuple[str, ...]
    errors: tuple[TranslationError, ...]

    @property
    def name(self) -> str:
        """Name of the flavor, or ID of the image."""
        return self.image_id or '' if self.flavor is None else self.flavor


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Translations:
    """Flavors of Helion or Titanium Carrier Grade for Nova and nfv-sched.

    :ivar translations: flavors, and the image if one was given
    """

    translations: tuple[FlavorTranslation, ...]
