# SPDX-License-Identifier: Apache-2.0
"""Check single keys and values: what the API refuses or never checks."""

import functools
import re

from cliff import utils

from nfv_sched.base import extra_specs
from nfv_sched.fit import rules as nfv_rules
from nfv_sched.nova import flavors
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.answers.flavors import translations
from nfv_sched.ops.cloud import snapshot

#: Maximum number of different letters between similar keys.
DISTANCE = 2
_COST = {'w': 1, 's': 1, 'a': 1, 'd': 1}
# A key shorter than this is similar to too many others.
_SHORT = 6
_IRONIC = ('if its servers are bare metal, keep it, as Ironic reads it, and '
           'change the flavor with microversion 2.85 at most; else {}')
# The name of a group of the request, at the end of a prefix.
_GROUP = re.compile(r'([0-9]+|_[A-Za-z0-9_-]*)?$')
_NODES = ('hw:numa_nodes', 'hw_numa_nodes')

_TRANSLATE = 'run "nfv-sched flavor translate", and set what it says instead'


def too_many(subject: values.LintSubject) -> values.Findings:
    count = len(subject.flavor.extra_specs)
    if count > extra_specs.MOST_SPECS:
        yield values.error(
            values.WHOLE, f'{count} extra specs: nfv-sched looks at '
            f'{extra_specs.MOST_SPECS} at most', 'remove those that do '
            'nothing')


def misshapen(subject: values.LintSubject) -> values.Findings:
    for key, value in subject.flavor.extra_specs.items():
        if (message := flavors.misshapen(key, value)) is not None:
            yield values.error(key, message, 'correct or remove it')


def values_refused(subject: values.LintSubject) -> values.Findings:
    for key, message in subject.refused.items():
        if (spec := _spec_of(key)) is not None:
            message = message.removeprefix('Validation failed; ').rstrip('.')
            yield values.error(
                key, f'{message} (the API, from microversion 2.86)',
                _allowed_values(spec))


def keys_refused(subject: values.LintSubject) -> values.Findings:
    """Find keys that the API does not know in namespaces that it checks."""
    for key in subject.refused:
        if _spec_of(key) is not None:
            continue
        do = f'remove it: "openstack flavor unset --property {key}"'
        near = nearest(key, flavors.specs())
        if near is None and key.startswith(extra_specs.NAMESPACE):
            near = extra_specs.nearest_key(key)
        translation = translations.find(translations.FLAVOR, key)
        if translation is not None and translation.kind != translations.SAME:
            do = _TRANSLATE
        elif near is not None:
            do = f'set {near} instead, if you meant that'
        elif key.startswith('capabilities:'):
            do = _IRONIC.format(do)
        elif key.startswith(('nfv:', 'hw:wrs:')):
            do = f'{do}; the keys are in the documentation of nfv-sched'
        yield values.error(
            key, 'no such key (the API refuses it from microversion 2.86)', do)


def keys_unchecked(subject: values.LintSubject) -> values.Findings:
    for key in subject.flavor.extra_specs:
        if key in subject.refused or _spec_of(key) is not None:
            continue
        if translations.find(translations.FLAVOR, key) is not None:
            yield values.warning(
                key, 'a key of Helion / Titanium Carrier Grade that does '
                'nothing in Nova', _TRANSLATE)
            continue
        if (near := nearest(key, flavors.specs())) is not None:
            yield values.warning(
                key, 'the API does not check keys of this namespace, and this '
                'one is like another', f'set {near} instead, if you meant '
                'that')


def contradictions(subject: values.LintSubject) -> values.Findings:
    for fault in nfv_rules.faults(subject.flavor.extra_specs):
        yield values.error(
            fault.key, f'{fault.text}; filters of nfv-sched refuse every host',
            'correct the key, or leave one of two that contradict each other')


def huge_lists(subject: values.LintSubject) -> values.Findings:
    for key in subject.oversized:
        if key not in _NODES:
            yield values.error(
                key, 'a number of a vCPU that no server has', 'use the '
                'numbers of the vCPUs of this flavor, 0 to '
                f'{subject.flavor.vcpus - 1}')


def huge_nodes(subject: values.LintSubject) -> values.Findings:
    for key in subject.oversized:
        if key in _NODES:
            yield values.error(
                key, 'more guest NUMA nodes than hosts can have, '
                f'{flavors.MOST_NODES}', 'set a small number')


def policy_key(policy: str, flavor: snapshot.Flavor) -> str:
    key = policy.partition('=')[0]
    return key if key in flavor.extra_specs else values.WHOLE


def nearest(key: str, specs: tuple[flavors.Spec, ...]) -> str | None:
    """Return the most similar known key; None if none is similar.

    Its prefix and what follows differ in at most :data:`DISTANCE` letters
    each, ignoring case.  What may be anything is kept as it is in ``key``.
    """
    if len(key) < _SHORT:
        return None
    # In properties of images there is "_" instead.
    prefix, _colon, rest = key.partition(':' if ':' in key else '_')
    candidates = []
    for valid, stem, is_open in _parts(specs):
        group = ''
        if valid in ('resources', 'trait'):
            group = _GROUP.search(prefix)[0]
        distance = _distance(prefix.removesuffix(group), valid)
        end = len(rest)
        if stem.endswith('.'):
            end = rest.find('.') + 1
        elif is_open:
            end = rest.find(':') if stem and ':' in rest else len(stem)
        if distance > DISTANCE or (not end if stem else not distance):
            continue
        far = _distance(rest[:end], stem)
        similar = f'{valid}{group}:{stem}{rest[end:]}'
        if far <= DISTANCE and similar != key:
            candidates.append((distance + far, similar))
    return _ours(min(candidates)[1]) if candidates else None


@functools.lru_cache(maxsize=8)
def _parts(specs: tuple[flavors.Spec, ...]) -> list[tuple[str, str, bool]]:
    """Return prefix, what else is fixed, and whether more follows it."""
    return [(prefix, rest, '{' in spec.name.partition(':')[2])
            for spec in specs
            for prefix, _colon, rest in [spec.stem.partition(':')]]


@functools.lru_cache(maxsize=4096)
def _distance(word: str, valid: str) -> int:
    if abs(len(word) - len(valid)) > DISTANCE:
        # Part of the word is left out, as in "mem" for "memory".
        same = len(valid) >= _SHORT and word.startswith(valid.rstrip('.'))
        return DISTANCE if same else DISTANCE + 1
    return utils.damerau_levenshtein(word.lower(), valid.lower(), _COST)


def _ours(key: str) -> str:
    for name, synonym in extra_specs.SYNONYMS.items():
        if key.startswith(synonym):
            return name + key.removeprefix(synonym)
    return key


def _spec_of(key: str) -> flavors.Spec | None:
    return next((spec for spec in flavors.specs() if spec.is_of(key)), None)


def _allowed_values(spec: flavors.Spec) -> str:
    value = spec.value
    if value.get('enum'):
        return f'set one of: {", ".join(map(str, value["enum"]))}'
    if value['type'] is bool:
        return 'set true or false'
    if value['type'] is int:
        return 'set a whole number' + ''.join([
            f' {word} {value[key]}'
            for key, word in (('min', 'from'), ('max', 'to'))
            if value.get(key) is not None])
    if value.get('pattern'):
        return f'set a value of the format {value["pattern"]}'
    return 'set a value that the API accepts, or remove it'
