#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""What flavors become, for people, for programs and for a shell."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import shlex
import typing as ty

from nfv_sched.advice import translate
from nfv_sched.advice import translations
from nfv_sched.render import plans
from nfv_sched.render import tables

COLUMNS = ('Flavor', 'Key', 'Value', 'Becomes', 'Class', 'Do')

#: From which on the API checks extra specs.
VERSION = '2.86'
_NOTHING = '-'
# In place of a class.
_ERROR = 'error'


def text(found: Sequence[translate.Translated]) -> str:
    """A table for each flavor.

    :param found: the flavors
    """
    parts = []
    for each in found:
        lost = sum(line.lost for line in each.lines)
        head = f'{each.where.capitalize()} {each.name}: ' + (
            'nothing to change' if not (each.set or each.unset) else
            f'{len(each.set)} to set, {len(each.unset)} to remove')
        if lost:
            head += (f'; {tables.count(lost, "key")} without a counterpart '
                     'that could be set')
        if each.errors:
            head += f'; {tables.count(len(each.errors), "error")} afterwards'
        part = tables.wrapped([f'{head}.'])
        if each.lines:
            part += '\n' + tables.table(
                COLUMNS[1:], [row[1:] for row in rows([each])])
        parts.append(part)
    return '\n'.join(parts)


def rows(found: Sequence[translate.Translated]) -> list[Sequence[ty.Any]]:
    """A row for each key.

    :param found: the flavors
    """
    return [row for each in found for row in (
        *((each.name, line.key, line.value, _pairs(line.becomes),
           line.kind, line.do) for line in each.lines),
        *((each.name, key, each.extra_specs.get(key, ''), _NOTHING, _ERROR,
           text) for key, text in each.errors))]


def document(found: Sequence[translate.Translated]) -> ty.Any:
    """The same as dictionaries and lists.

    :param found: the flavors
    """
    return tables.plain(list(found))


def commands(found: Sequence[translate.Translated]) -> Iterator[str]:
    """What to run.

    :param found: the flavors
    :returns: lines for a shell; comments begin with ``#``
    """
    for each in found:
        yield plans.comment(f'{each.where} {each.name}')
        for line in each.lines:
            if line.do and line.do != translate.HARMLESS:
                yield plans.comment(
                    f'{line.key}={line.value}: {line.kind}; {line.do}'
                    if line.key != translate.NO_KEY else line.do)
        for key, text in each.errors:
            yield plans.comment(f'{_ERROR} afterwards: {key}: {text}')
        if each.where == translations.IMAGE:
            yield from _image(each)
        else:
            yield from _flavor(each)


def _flavor(found: translate.Translated) -> Iterator[str]:
    """New keys first, so that no policy is missing at any time."""
    start = ('openstack', '--os-compute-api-version', VERSION, 'flavor')
    if found.set:
        yield shlex.join((*start, 'set', *_properties(found.set),
                          *_named(found)))
    if found.unset:
        yield shlex.join((*start, 'unset', *_keys(found.unset),
                          *_named(found)))


def _image(found: translate.Translated) -> Iterator[str]:
    if found.set:
        yield shlex.join(('openstack', 'image', 'set',
                          *_properties(found.set), *_named(found)))
    if found.unset:
        yield shlex.join(('openstack', 'image', 'unset',
                          *_keys(found.unset), *_named(found)))


def _named(found: translate.Translated) -> Iterator[str]:
    """Its name, which the client must not take for an option."""
    if found.name.startswith('-'):
        yield '--'
    yield found.name


def _properties(pairs: Mapping[str, str]) -> Iterator[str]:
    for key, value in pairs.items():
        yield from ('--property', f'{key}={value}')


def _keys(keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        yield from ('--property', key)


def _pairs(pairs: Mapping[str, str]) -> str:
    return ', '.join(f'{key}={value}' for key, value in pairs.items()
                     ) or _NOTHING
