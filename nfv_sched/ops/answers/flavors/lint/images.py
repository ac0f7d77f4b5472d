# SPDX-License-Identifier: Apache-2.0
"""Check a flavor together with an image."""

import re

from nfv_sched.nova import flavors
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.answers.flavors import translations

# Names that look as if Nova reads them.
_FOR_NOVA = re.compile(r'(hw|sw|os|img|nfv)_')
# Properties with such a name that Glance and others use, or that Nova reads
# elsewhere.
_NOT_FOR_NOVA = re.compile(
    r'os_(hash_algo|hash_value|hidden|glance_.*|version|admin_user)')


def dropped(subject: values.LintSubject) -> values.Findings:
    for key, value in subject.image.properties.items():
        if not _FOR_NOVA.match(key) or _NOT_FOR_NOVA.fullmatch(key) or (
                key in subject.image_errors or
                flavors.reads_property(key, value)):
            continue
        translation = translations.find(translations.IMAGE, key)
        yield values.warning(
            key, 'a property of the image that Nova drops without a word: it '
            'does nothing', translation.do if translation is not None else
            'remove it, or correct the name')


def refused(subject: values.LintSubject) -> values.Findings:
    for key, message in subject.image_errors.items():
        translation = translations.find(translations.IMAGE, key)
        yield values.error(
            key, 'Nova takes no server with this property of the image: '
            f'{" ".join(message.split())}', translation and translation.do
            or 'set a value that Nova can read, or remove it')


def needed(subject: values.LintSubject) -> values.Findings:
    if subject.image_needed:
        pairs = ', '.join(f'{key}={value}' for key, value in
                          subject.image_needed.items())
        yield values.warning(
            next(iter(subject.image_needed)), 'Nova takes the flavor only '
            f'with an image that has {pairs}', 'offer it with such images '
            'only, and check these with --image')


def too_small(subject: values.LintSubject) -> values.Findings:
    flavor, needs = subject.flavor, subject.image
    if flavor.memory < needs.memory:
        yield values.error(
            'RAM', f'Nova refuses it: the image needs {needs.memory} MiB '
            f'(min_ram), the flavor has {flavor.memory}', 'take a larger '
            'flavor')
    # Nova does not check a flavor without root disk.
    if 0 < flavor.disk < needs.disk:
        yield values.warning(
            'disk', 'Nova takes servers with a volume only: the image needs '
            f'{needs.disk} GiB, the flavor has {flavor.disk}', 'take a larger '
            'flavor')


def conflicts(subject: values.LintSubject) -> values.Findings:
    for refusal in subject.image_refusals:
        properties = _properties(subject, refusal)
        yield values.error(
            properties[0] if properties else values.WHOLE, 'Nova refuses the '
            f'flavor with this image: {refusal.text}', 'remove the property '
            'from the image, or change the extra specs of the flavor that '
            'contradict it')


def differ(subject: values.LintSubject) -> values.Findings:
    refused_keys = {key for refusal in subject.image_refusals
                    for key in _properties(subject, refusal)}
    for key, value in subject.image.properties.items():
        if key in refused_keys or key in subject.image_errors:
            continue
        spec = key.replace('_', ':', 1)
        flavor_value = subject.flavor.extra_specs.get(spec)
        if (flavor_value is not None
                and flavor_value.lower() != value.lower()
                and flavors.reads_property(key, value)):
            yield values.warning(
                key, f'{value} in the image, {flavor_value} in the flavor '
                f'({spec}): Nova takes one of them', 'set it in one place, or '
                'the same in both')


def _properties(subject: values.LintSubject,
                refusal: flavors.FlavorRefusal) -> list[str]:
    return [key for key in refusal.keys if key in subject.image.properties]
