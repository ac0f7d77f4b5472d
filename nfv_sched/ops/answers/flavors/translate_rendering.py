# SPDX-License-Identifier: Apache-2.0
"""Format translated flavors for people, for programs and for a shell."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import shlex
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.answers.flavors import translate
from nfv_sched.ops.answers.flavors import translations
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot

COLUMNS = ('Flavor', 'Key', 'Value', 'Becomes', 'Class', 'Do')

#: Microversion from which on the API checks extra specs.
VERSION = '2.86'
_CLIENT = ('openstack', '--os-compute-api-version', VERSION, 'flavor')
# In the column "Class".
_ERROR = 'error'


def text(
    all_translated: Sequence[document.FlavorTranslation],
    are_new: bool = False,
) -> list[tables.Part]:
    """Return a table for each flavor.

    :param are_new: whether the commands create the flavors
    """
    parts: list[tables.Part] = []
    for each in all_translated:
        lost = sum(line.lost for line in each.keys)
        head = f'{_where(each).capitalize()} {each.name}: ' + _counts(
            each, are_new and each.flavor is not None)
        if lost:
            head += f'; {strings.count(lost, "key")} not fully translated'
        if each.errors:
            head += f'; {strings.count(len(each.errors), "error")} afterwards'
        parts += ([''] if parts else []) + [f'{head}.']
        if each.keys:
            parts += ['', tables.Table(
                COLUMNS[1:], [row[1:] for row in rows([each])])]
    return parts


def _counts(translated: document.FlavorTranslation, is_new: bool) -> str:
    if is_new and not translated.extra_specs and not translated.unset:
        return 'no keys'
    if not (is_new or translated.set or translated.unset):
        return 'nothing to change'
    # All are set if the commands create the flavor: none is there to remove.
    keys = sum(line.key is not None for line in translated.keys)
    changes = f'{len(translated.extra_specs)} to set' if is_new else (
        f'{len(translated.set)} to set, {len(translated.unset)} to remove')
    return f'{strings.count(keys, "key")}; {changes}'


def rows(
    all_translated: Sequence[document.FlavorTranslation],
) -> list[Sequence[ty.Any]]:
    return [row for each in all_translated for row in (
        *((each.name, line.key or '', line.value, _pairs(line.becomes),
           line.kind, line.do or '') for line in each.keys),
        *((each.name, error.key or '',
           each.extra_specs.get(error.key or '', ''), '', _ERROR,
           error.finding) for error in each.errors))]


def _where(translated: document.FlavorTranslation) -> str:
    return (translations.IMAGE if translated.flavor is None
            else translations.FLAVOR)


def commands(
    all_translated: Sequence[document.FlavorTranslation],
    new: Mapping[str, snapshot.Flavor] | None = None,
) -> Iterator[str]:
    """Yield shell lines that change or create flavors and images.

    The commands of a flavor with errors are comments, too.  The script stops
    at the first command that fails.

    :param new: name -> flavor to create unless the cloud has one of that
        name; None if all flavors were read from the cloud itself
    """
    lines = list(_commands(all_translated, new))
    if not all(line.startswith('#') for line in lines):
        yield 'set -eu'
    yield from lines


def _commands(all_translated: Sequence[document.FlavorTranslation],
              new: Mapping[str, snapshot.Flavor] | None) -> Iterator[str]:
    for each in all_translated:
        yield _comment(f'{_where(each)} {each.name}')
        for line in each.keys:
            yield from _remarks(line)
        if each.flavor is None:
            yield from _comment_unsafe(_change(each))
            continue
        flavor = None if new is None else new[each.name]
        if flavor is not None:
            yield from _limits(flavor)
        steps = _create(each, flavor) if flavor is not None else _change(each)
        if not each.errors:
            yield from _comment_unsafe(steps)
            continue
        for error in each.errors:
            yield _comment(
                f'{_ERROR} afterwards: {error.key or "-"}: {error.finding}')
        yield _comment(
            'the commands are commented out: no host takes this flavor, or '
            'the API refuses it')
        yield from map(_comment, steps)


def _comment(message: str) -> str:
    return f'# {" ".join(message.split())}'


def _comment_unsafe(steps: Iterable[str]) -> Iterator[str]:
    """Yield commands, as comments if a terminal would not show all."""
    lines = list(steps)
    if all(line == strings.line(line) for line in lines):
        yield from lines
        return
    yield _comment(
        'the commands are commented out: a name or value has characters that '
        'a terminal does not show')
    for line in lines:
        yield _comment(strings.line(line))


def _remarks(line: document.KeyTranslation) -> Iterator[str]:
    if line.key is None:
        yield _comment(line.do or '')
        return
    text = f'{line.key}={line.value}: {line.kind}'
    if not line.becomes:
        yield _comment(
            f'{text}, dropped' + (f'; {line.do}' if line.do else ''))
    elif line.do and line.do != translate.HARMLESS:
        yield _comment(f'{text}; {line.do}')


def _limits(flavor: snapshot.Flavor) -> Iterator[str]:
    """Yield comments about what ``flavor create`` does not do."""
    yield _comment(
        'a flavor of this name that exists keeps its size and its other '
        'properties')
    if not flavor.public:
        yield _comment(
            'private: give projects access with "openstack flavor set '
            '--project"')
    if flavor.disabled:
        yield _comment(
            'disabled in the file; the API cannot create it so')


def _create(translated: document.FlavorTranslation,
            flavor: snapshot.Flavor) -> Iterator[str]:
    """Yield the commands that create a flavor unless it exists.

    Properties come in a command of their own: ``flavor create`` leaves a
    flavor without properties if they are refused, and a second run would not
    repeat them.
    """
    options = ['--vcpus', flavor.vcpus, '--ram', flavor.memory,
               '--disk', flavor.disk, '--ephemeral', flavor.ephemeral,
               '--swap', flavor.swap,
               '--public' if flavor.public else '--private']
    if flavor.id:
        options.insert(0, f'--id={flavor.id}')
    yield f'if ! {_command(translated, "show")} > /dev/null 2>&1; then'
    yield f'  {_command(translated, "create", *map(str, options))}'
    yield 'fi'
    yield from _set(translated, translated.extra_specs)


def _change(translated: document.FlavorTranslation) -> Iterator[str]:
    """Yield the commands that change a flavor or an image.

    New keys come first, so that no policy is missing at any time.
    """
    yield from _set(translated, translated.set)
    if translated.unset:
        yield _command(translated, 'unset', *_keys(translated.unset))


def _set(translated: document.FlavorTranslation,
         pairs: Mapping[str, str]) -> Iterator[str]:
    if pairs:
        yield _command(translated, 'set', *_keys(
            [f'{key}={value}' for key, value in pairs.items()]))


def _command(translated: document.FlavorTranslation, *words: str) -> str:
    client = ('openstack', 'image') if translated.flavor is None else _CLIENT
    # The name could look like an option.
    return shlex.join((*client, *words, '--', translated.name))


def _keys(keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        # One word, so that the client does not take the key for an option.
        yield from ((f'--property={key}',) if key.startswith('-')
                    else ('--property', key))


def _pairs(pairs: Mapping[str, str]) -> str:
    return ', '.join(f'{key}={value}' for key, value in pairs.items())
