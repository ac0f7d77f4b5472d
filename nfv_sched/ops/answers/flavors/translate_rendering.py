# SPDX-License-Identifier: Apache-2.0
"""Format translated flavors for people, for programs and for a shell."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import shlex
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.flavors import document
from nfv_sched.ops.answers.flavors import translate
from nfv_sched.ops.answers.flavors import translations
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot

COLUMNS = ('Flavor', 'Key', 'Value', 'Becomes', 'Class', 'Do')

# From this microversion on the API checks extra specs.
_CLIENT = ('openstack', '--os-compute-api-version', '2.86', 'flavor')
# In the column "Class".
_ERROR = 'error'


def text(all_translated: Sequence[document.FlavorTranslation],
         are_new: bool = False) -> list[tables.Part]:
    """Return a table for each flavor; ``are_new`` if they are created."""
    parts: list[tables.Part] = []
    for each in all_translated:
        heads = [_changes(each, are_new and each.flavor is not None)]
        if lost := sum(line.lost for line in each.keys):
            heads.append(f'{strings.count(lost, "key")} not fully translated')
        if each.errors:
            heads.append(
                f'{strings.count(len(each.errors), "error")} afterwards')
        parts += ([''] if parts else []) + [
            f'{_where(each).capitalize()} {each.name}: {"; ".join(heads)}.']
        if each.keys:
            parts += ['', tables.Table(
                COLUMNS[1:], [row[1:] for row in rows([each])])]
    return parts


def _changes(translated: document.FlavorTranslation, is_new: bool) -> str:
    if is_new and not translated.extra_specs and not translated.unset:
        return 'no keys'
    if not (is_new or translated.set or translated.unset):
        return 'nothing to change'
    # All are set if the commands create the flavor: none is there to remove.
    keys = sum(line.key is not None for line in translated.keys)
    return f'{strings.count(keys, "key")}; ' + (
        f'{len(translated.extra_specs)} to set' if is_new else
        f'{len(translated.set)} to set, {len(translated.unset)} to remove')


def rows(
    all_translated: Sequence[document.FlavorTranslation],
) -> list[Sequence[ty.Any]]:
    return [row for each in all_translated for row in (
        *((each.name, line.key or '', line.value,
           ', '.join(_pairs(line.becomes)), line.kind, line.do or '')
          for line in each.keys),
        *((each.name, error.key or '',
           each.extra_specs.get(error.key or '', ''), '', _ERROR,
           error.finding) for error in each.errors))]


def _pairs(pairs: Mapping[str, str]) -> list[str]:
    return [f'{key}={value}' for key, value in pairs.items()]


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
    lines = [line for each in all_translated for line in _commands(
        each, None if new is None or each.flavor is None else new[each.name])]
    if not all(line.startswith('#') for line in lines):
        yield 'set -eu'
    yield from lines


def _commands(translated: document.FlavorTranslation,
              flavor: snapshot.Flavor | None) -> Iterator[str]:
    yield _comment(f'{_where(translated)} {translated.name}')
    for line in translated.keys:
        if remark := _remark(line):
            yield _comment(remark)
    if flavor is not None:
        yield from map(_comment, _limits(flavor))
    steps = [] if flavor is None else _create(translated, flavor)
    # New keys come first, so that no policy is missing at any time.
    for action, keys in (
            ('set', _pairs(translated.set if flavor is None
                           else translated.extra_specs)),
            ('unset', translated.unset if flavor is None else ())):
        if keys:
            steps.append(_command(translated, action, *_options(keys)))
    for error in translated.errors:
        yield _comment(
            f'{_ERROR} afterwards: {error.key or "-"}: {error.finding}')
    shown = list(map(strings.line, steps))
    if translated.errors:
        yield _comment(
            'the commands are commented out: no host takes this flavor, or '
            'the API refuses it')
        yield from map(_comment, steps)
    elif steps == shown:
        yield from steps
    else:
        yield _comment(
            'the commands are commented out: a name or value has characters '
            'that a terminal does not show')
        yield from map(_comment, shown)


def _comment(message: str) -> str:
    return f'# {" ".join(message.split())}'


def _remark(line: document.KeyTranslation) -> str | None:
    if line.key is None:
        return line.do or ''
    text = f'{line.key}={line.value}: {line.kind}'
    if not line.becomes:
        return f'{text}, dropped' + (f'; {line.do}' if line.do else '')
    if line.do and line.do != translate.HARMLESS:
        return f'{text}; {line.do}'
    return None


def _limits(flavor: snapshot.Flavor) -> Iterator[str]:
    """Yield what ``flavor create`` does not do."""
    yield ('a flavor of this name that exists keeps its size and its other '
           'properties')
    if not flavor.public:
        yield ('private: give projects access with "openstack flavor set '
               '--project"')
    if flavor.disabled:
        yield 'disabled in the file; the API cannot create it so'


def _create(translated: document.FlavorTranslation,
            flavor: snapshot.Flavor) -> list[str]:
    """Return the commands that create a flavor unless it exists.

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
    return [f'if ! {_command(translated, "show")} > /dev/null 2>&1; then',
            f'  {_command(translated, "create", *map(str, options))}', 'fi']


def _command(translated: document.FlavorTranslation, *words: str) -> str:
    client = ('openstack', 'image') if translated.flavor is None else _CLIENT
    # The name could look like an option.
    return shlex.join((*client, *words, '--', translated.name))


def _options(keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        # One word, so that the client does not take the key for an option.
        yield from ((f'--property={key}',) if key.startswith('-')
                    else ('--property', key))
