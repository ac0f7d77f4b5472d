# SPDX-License-Identifier: Apache-2.0
"""Translate a flavor of Helion / Titanium Carrier Grade to Nova and nfv-sched.

The table of keys is in :mod:`nfv_sched.ops.answers.flavors.translations`.
"""

from collections.abc import Mapping
import dataclasses
import functools
import typing as ty

from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.nova import flavors
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.answers.flavors.lint import all_rules
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.answers.flavors import translations
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import state

#: Message for a value equal to the default.
HARMLESS = 'nothing is lost'
#: Kind of a key that is not in the table, and that Nova refuses.
UNKNOWN = 'unknown'

# Each of these gives a server a NUMA topology.
_NODES = ('hw:numa_nodes', 'hw:mem_page_size', 'hw:pmem')
_PINNED = ('dedicated', 'mixed')


def flavor(flavor: snapshot.Flavor) -> document.FlavorTranslation:
    lines: list[document.KeyTranslation] = []
    after = flavor.extra_specs
    if len(after) <= nfv_extra_specs.MOST_SPECS:
        lines = [_line(translations.FLAVOR, key, value, flavor.extra_specs)
                 for key, value in flavor.extra_specs.items()]
        after = _merge_lines(lines)
        if after.keys().isdisjoint(_NODES) and after.get(
                'hw:cpu_policy') not in _PINNED and any(
                    key.startswith(nfv_extra_specs.NAMESPACE)
                    for key in after):
            lines.append(document.KeyTranslation(
                key=None, value='', becomes={'hw:numa_nodes': '1'},
                kind=translations.COMBINATION,
                do='a server had one NUMA node by default; policies need one',
                lost=False))
            after = _merge_lines(lines)
    errors = tuple([
        document.TranslationError(key=each.key, finding=each.finding)
        for each in all_rules.lint([
            dataclasses.replace(flavor, extra_specs=after)])
        if each.severity == values.ERROR])
    if not errors:
        lines = [_told_what_floats(line, flavor, after) for line in lines]
    return document.FlavorTranslation(
        flavor=flavor.name, flavor_id=flavor.id or None, image_id=None,
        keys=tuple(lines), errors=errors,
        **_changes(after, flavor.extra_specs))


def image(name: str, properties: Mapping[str, str],
          ) -> document.FlavorTranslation:
    """Translate the properties of an image; those not in the table stay."""
    lines = [_line(translations.IMAGE, key, value, properties)
             for key, value in properties.items()
             if translations.find(translations.IMAGE, key) is not None]
    unchanged = {key: value for key, value in properties.items()
                 if translations.find(translations.IMAGE, key) is None}
    return document.FlavorTranslation(
        flavor=None, flavor_id=None, image_id=name, keys=tuple(lines),
        errors=(),
        **_changes({**unchanged, **_merge_lines(lines)}, properties))


def _line(where: str, key: str, value: str,
          specs: Mapping[str, str]) -> document.KeyTranslation:
    translation = translations.find(where, key)
    line = functools.partial(document.KeyTranslation, key=key, value=value)
    # A pattern of the table can match more keys than Nova knows.
    # Nova refuses no key of a namespace that it does not know.
    is_known = where != translations.FLAVOR or (
        flavors.refusal(key, value) is None and (
            translation is not None or not key.startswith(translations.WRS))
        or any(spec.is_of(key) for spec in flavors.specs()))
    if translation is None or not (
            is_known or translation.kind != translations.SAME):
        if is_known:
            # "flavor lint" reports wrong values.
            return line(becomes={key: value}, kind=translations.SAME, do=None,
                        lost=False)
        return line(
            becomes={}, kind=UNKNOWN, lost=True,
            do='nothing reads it; correct it if it is misspelt'
            if key.startswith(translations.WRS) else
            'Nova knows no such key; "nfv-sched flavor lint" says whether it '
            'is like another')
    replacement = translations.becomes(translation, key, value, specs)
    if translation.is_harmless(value):
        return line(becomes=replacement, kind=translation.kind, do=HARMLESS,
                    lost=False)
    if (other := _contradicted_key(key, replacement, specs)) is not None:
        return line(
            becomes={}, kind=translation.kind, lost=True,
            do=f'{other}={specs[other]} contradicts it, and stays: correct it '
               'if this is what was meant')
    return line(
        becomes=replacement, kind=_kind(translation, key, value, replacement),
        do=translations.advice(translation, value, specs) or None,
        lost=translation.kind in translations.LOST or not replacement)


def _kind(translation: translations.Translation, key: str, value: str,
          replacement: Mapping[str, str]) -> str:
    if replacement == {key: value}:
        return translations.SAME
    if translation.kind != translations.SAME:
        return translation.kind
    return (translations.CHANGED if replacement.keys() == {key}
            else translations.COMBINATION)


def _contradicted_key(key: str, replacement: Mapping[str, str],
                      specs: Mapping[str, str]) -> str | None:
    """Return a key that is set already and contradicts a translation.

    This is a policy with another value in its other spelling, or a CPU policy
    with which the translated key never worked.
    """
    for each, value in replacement.items():
        there = specs.get(each, value)
        if each == key or there == value:
            continue
        if each.startswith(nfv_extra_specs.NAMESPACE) or (
                each == 'hw:cpu_policy' and there not in _PINNED):
            return each
    return None


def _told_what_floats(line: document.KeyTranslation, flavor: snapshot.Flavor,
                      after: Mapping[str, str]) -> document.KeyTranslation:
    """Mark a line as lost if more vCPUs than the shared one would float.

    :param flavor: the flavor before the translation
    :param after: its keys and values after it, without errors
    """
    if line.key != nfv_extra_specs.SYNONYMS[
        nfv_extra_specs.SHARED_VCPU] or line.lost or (
            flavor.extra_specs.get('hw:cpu_policy') == 'mixed'):
        return line
    guest = flavors.numa_topology(
        state.nova_flavor(dataclasses.replace(flavor, extra_specs=after)),
        flavors.image({}))
    cells = guest.cells if guest is not None else ()
    floating = sorted(set().union(*(cell.cpuset for cell in cells))
                      - {int(line.value)})
    if not floating:
        return line
    return dataclasses.replace(line, lost=True, do=(
        f'vCPUs {", ".join(map(str, floating))} would not be pinned any '
        'more: Nova takes one mask, and all that it leaves out floats. Leave '
        f'out {line.value} only, or do without real time'))


def _merge_lines(lines: list[document.KeyTranslation]) -> dict[str, str]:
    """Return keys and values; those of combinations take precedence."""
    merged: dict[str, str] = {}
    for line in sorted(lines, key=lambda line: line.kind ==
                       translations.COMBINATION):
        merged.update(line.becomes)
    return merged


def _changes(after: Mapping[str, str],
             before: Mapping[str, str]) -> dict[str, ty.Any]:
    return {'extra_specs': after,
            'set': {key: value for key, value in after.items()
                    if before.get(key) != value},
            'unset': tuple([key for key in before if key not in after])}
