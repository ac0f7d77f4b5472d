# SPDX-License-Identifier: Apache-2.0
"""Define the documents of ``flavor lint`` and ``flavor translate``."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

from nfv_sched.ops.cloud import snapshot

if ty.TYPE_CHECKING:
    from nfv_sched.ops.answers.flavors.lint import all_rules
    from nfv_sched.ops.answers.flavors import translate

#: In place of a key: see ``lint.values.WHOLE`` and ``translate.NO_KEY``.
_NO_KEY = '-'


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Translations:
    """Flavors of Helion or Titanium Carrier Grade for Nova and nfv-sched.

    :ivar translations: flavors, and the image if one was given
    """

    translations: tuple[FlavorTranslation, ...]


def linted(results: 'Iterable[all_rules.LintResult]',
           flavors: Sequence[snapshot.Flavor]) -> FlavorLint:
    """Return the document of findings.

    :param flavors: all flavors that were checked
    """
    ids = _ids(flavors)
    return FlavorLint(
        flavors_checked=len(flavors), findings=tuple([FlavorFinding(
            flavor=each.flavor, flavor_id=ids[each.flavor],
            severity=ty.cast(ty.Any, each.severity), rule=each.rule,
            key=_key(each.key), finding=each.finding, do=each.do)
            for each in results]))


def translated(all_translated: 'Iterable[translate.Translated]',
               flavors: Sequence[snapshot.Flavor]) -> Translations:
    """Return the document of translations.

    :param flavors: the flavors as they are
    """
    ids = _ids(flavors)
    return Translations(translations=tuple([FlavorTranslation(
        flavor=each.name if each.where == 'flavor' else None,
        flavor_id=ids.get(each.name) if each.where == 'flavor' else None,
        image_id=None if each.where == 'flavor' else each.name,
        keys=tuple([KeyTranslation(
            key=_key(line.key), value=line.value, becomes=line.becomes,
            kind=line.kind, do=line.do or None, lost=line.lost)
            for line in each.lines]),
        extra_specs=each.extra_specs, set=each.set, unset=each.unset,
        errors=tuple([TranslationError(key=_key(key), finding=text)
                      for key, text in each.errors]))
        for each in all_translated]))


def _ids(flavors: Iterable[snapshot.Flavor]) -> dict[str, str | None]:
    return {each.name: each.id or None for each in flavors}


def _key(key: str) -> str | None:
    return None if key == _NO_KEY else key
