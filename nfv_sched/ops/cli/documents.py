# SPDX-License-Identifier: Apache-2.0
"""Print values for programs, as JSON or YAML.

A document is one object: the number ``schema``, and the fields of a frozen
dataclass, of which each has a comment ``#: text``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import enum
import functools
import itertools
import re
import typing as ty

from nfv_sched.base import files
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import formats

#: The number ``schema``: changes when a key is removed or means another thing.
VERSION = 1
FORMATS = ('json', 'yaml')

#: Defines a field of a dataclass that is not in documents.
internal = functools.partial(dataclasses.field, metadata={'internal': True})

_NOT_IN_KEY = re.compile('[^a-z0-9]+')


def key_of(title: str) -> str:
    """Return the key of a column, also for options: ``pcpus_used``."""
    return _NOT_IN_KEY.sub(
        '_', title.lower().replace('%', ' percent')).strip('_')


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """The output of a command as JSON or YAML."""

    content: ty.Any  #: a documented dataclass
    #: keys of the lists whose objects are the rows: --column and --sort-column
    #: apply to them; empty if --column applies to ``content``
    rows: tuple[str, ...] = ()

    def text(self, formatter: str, *, columns: Sequence[str] = (),
             sort_columns: Sequence[str] = (), descending: bool = False,
             indent: bool = True) -> str:
        """Return the document as text.

        :param formatter: one of :data:`FORMATS`
        :param columns: keys or titles, as are ``sort_columns``; empty for all
        :raises UsageError: if no row has one of the columns
        """
        content = builtins_of(self.content)
        hints = ty.get_type_hints(type(self.content))
        keys = {name: keys_of(next(dataclasses_in(hints[name])))
                for name in self.rows}
        for name in self.rows:
            for key in map(key_of, reversed(sort_columns)):
                if key in keys[name]:
                    content[name] = formats.sorted_rows(
                        content[name], key, descending)
        if columns:
            content = _chosen(content, keys, columns)
        return dumps({'schema': VERSION, **content}, formatter, indent)


def keys_of(described: ty.Any) -> list[str]:
    return [field.name for field in dataclasses.fields(described)
            if not field.metadata.get('internal')]


def _chosen(content: Mapping[str, ty.Any], keys: Mapping[str, Iterable[str]],
            columns: Sequence[str]) -> dict[str, ty.Any]:
    chosen_keys = {key_of(column): column for column in columns}
    all_keys = dict.fromkeys(
        itertools.chain.from_iterable(keys.values()) if keys else content)
    unknown = [name for key, name in chosen_keys.items()
               if key not in all_keys]
    if unknown:
        raise errors.UsageError(f'no key {", ".join(unknown)}; there are: '
                                f'{", ".join(all_keys)}')
    if not keys:
        return {key: value for key, value in content.items()
                if key in chosen_keys}
    chosen = dict(content)
    for name, of_rows in keys.items():
        # Of several lists, those that have nothing of it are left out.
        chosen[name] = [
            {key: value for key, value in row.items() if key in chosen_keys}
            for row in content[name]] if chosen_keys.keys() & set(
                of_rows) else None
    return chosen


def flat(content: ty.Any) -> dict[str, ty.Any]:
    """Return the values of a document: ``numa_nodes_0_pcpus_used``."""
    return dict(_flat(builtins_of(content), ()))


def _flat(value: ty.Any,
          path: tuple[str, ...]) -> Iterator[tuple[str, ty.Any]]:
    # Items of a list are numbered from 0.
    if isinstance(value, list):
        value = {str(number): each for number, each in enumerate(value)}
    if not isinstance(value, Mapping):
        yield '_'.join(path), value
        return
    for key, each in value.items():
        yield from _flat(each, (*path, key))


def dumps(value: ty.Any, formatter: str, indent: bool = True) -> str:
    # Imported here so that --help is quick.
    if formatter == 'json':
        from oslo_serialization import jsonutils
        text = jsonutils.dumps(value, indent=2 if indent else None)
        # JSON in ASCII leaves DEL unescaped.
        return text.replace('\x7f', r'\u007f') + '\n'
    import yaml
    return yaml.safe_dump(value, sort_keys=False)


def builtins_of(value: ty.Any) -> ty.Any:
    if dataclasses.is_dataclass(value):
        return {key: builtins_of(getattr(value, key))
                for key in keys_of(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [builtins_of(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): builtins_of(each) for key, each in value.items()}
    return value


def parse(content: bytes, is_known: Callable[[dict], bool], problem: str,
          needed: str = '') -> dict[str, ty.Any]:
    """Return the data of a JSON document of a command.

    :param is_known: returns whether its keys are those of the document
    :param problem: begins the message if it is another, or no JSON
    :param needed: ends it, if it is another
    :raises ValueError: also if it is of another version; FileLimitError is one
    :raises RecursionError: if it is nested too deeply
    """
    try:
        data = files.parse_json(content)
    except files.FileLimitError:
        raise
    except ValueError as exc:
        raise ValueError(f'{problem}: {exc}') from exc
    files.check(data)
    if not isinstance(data, dict) or not is_known(data):
        raise ValueError(problem + needed)
    if data.get('schema') != VERSION:
        raise ValueError(f'schema {data.get("schema")!r}: this release reads '
                         f'{VERSION}')
    return data


def dataclasses_in(hint: ty.Any) -> Iterator[type]:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        yield hint
        for each in ty.get_type_hints(hint).values():
            yield from dataclasses_in(each)
    for each in ty.get_args(hint):
        yield from dataclasses_in(each)
