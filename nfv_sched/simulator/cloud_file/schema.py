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

"""From types to JSON schemas, and from checked data to values of the types.

What a cloud file may have is written once, in the types of
:mod:`nfv_sched.simulator.model` and :mod:`nfv_sched.simulator.actions`.  They
are frozen dataclasses.  The name of a field is a key of the file, its hint
says what the key may be, its default what it is if it is not there:

* A key without a default must be there.
* None as a default stands for a key that is not there; nobody can write it.
  Without a default, None in the hint means that the key may be null.
* Fields made with :func:`worked_out`, :func:`line` or :func:`own_name` are no
  keys.

Hints are bool, int, float, str, None, Any, Literal, ``tuple[x, ...]`` and
``frozenset[x]`` (lists of the file), ``Mapping[x, y]``, such dataclasses,
unions of what JSON tells apart, and ``Annotated`` with any of these:
:func:`rule`, :class:`Convert`, :class:`NameOf`, :class:`AsItIs`,
:data:`ONE_OR_MORE`, and marks that others look for with :func:`keys_with`.

Nothing here knows a key.
"""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import enum
import functools
import types
import typing as ty

import jsonschema

from nfv_sched.simulator.cloud_file import problems

_SOURCE = 'source'
_JSON_TYPES = {int: 'integer', float: 'number', str: 'string',
               bool: 'boolean', types.NoneType: 'null'}
_WORDS = {'integer': 'a whole number', 'number': 'a number',
          'string': 'text', 'boolean': 'true or false', 'array': 'a list',
          'object': 'a mapping', 'null': 'null'}

# 2.0 is a whole number to JSON, but not to code that counts with it.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        'integer', lambda checker, value: isinstance(value, int) and
        not isinstance(value, bool)))


class _Source(enum.Enum):
    """Where the value of a field is from that is no key."""

    LOADER = 'loader'
    LINE = 'line'
    NAME = 'name'


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """What JSON schema says of a value besides its type; see :func:`rule`.

    :ivar keywords: (keyword, value) pairs
    """

    keywords: tuple[tuple[str, ty.Any], ...]


def rule(**keywords: ty.Any) -> Rule:
    """Bounds and the like, as keywords of JSON schema."""
    return Rule(tuple(keywords.items()))


@dataclasses.dataclass(frozen=True, slots=True)
class Convert:
    """What is written becomes something else.

    :ivar function: takes what the hint says, returns what it becomes, raises
        ValueError with what is wrong
    """

    function: Callable[[ty.Any], ty.Any]


@dataclasses.dataclass(frozen=True, slots=True)
class NameOf:
    """The value is the name of something that must be there.

    :ivar kind: what it is, for people
    """

    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class AsItIs:
    """The loader itself reads what is there.

    :ivar rule: what little must be so
    """

    rule: Rule


#: A list of one may be written without the list.
ONE_OR_MORE = 'one or more'


def worked_out(default: ty.Any) -> ty.Any:
    """A field that is no key: the loader works it out."""
    return dataclasses.field(default=default,
                             metadata={_SOURCE: _Source.LOADER})


def line() -> ty.Any:
    """A field that is no key: the line of the file."""
    return dataclasses.field(default=0, metadata={_SOURCE: _Source.LINE})


def own_name() -> ty.Any:
    """A field that is no key: the name of an entry of a mapping."""
    return dataclasses.field(default='', metadata={_SOURCE: _Source.NAME})


# Types


@functools.cache
def keys_of(kind: type) -> Mapping[str, ty.Any]:
    """The hint of each key of a dataclass."""
    hints = ty.get_type_hints(kind, include_extras=True)
    return {field.name: _without_none(hints[field.name])
            if field.default is None else hints[field.name]
            for field in dataclasses.fields(kind)
            if _SOURCE not in field.metadata}


def keys_with(kind: type, mark: ty.Any) -> list[str]:
    """The keys of a dataclass whose hint has a mark."""
    return [key for key, hint in keys_of(kind).items()
            if mark in _parts(hint)[1]]


def _without_none(hint: ty.Any) -> ty.Any:
    return ty.Union[tuple(arg for arg in ty.get_args(hint)
                          if arg is not types.NoneType)]


def _parts(hint: ty.Any) -> tuple[ty.Any, tuple]:
    """A hint without its annotations, and these."""
    if ty.get_origin(hint) is ty.Annotated:
        return hint.__origin__, hint.__metadata__
    return hint, ()


def _is_union(hint: ty.Any) -> bool:
    return ty.get_origin(hint) in (ty.Union, types.UnionType)


def of(hint: ty.Any) -> dict[str, ty.Any]:
    """The JSON schema of a type.

    :param hint: a dataclass, or any other hint
    """
    inner, marks = _parts(hint)
    for mark in marks:
        if isinstance(mark, AsItIs):
            return dict(mark.rule.keywords)
    found = _plain(inner)
    if ONE_OR_MORE in marks:
        found = _either(found['items'], found)
    for mark in marks:
        if isinstance(mark, Rule):
            found |= dict(mark.keywords)
    return found


def _plain(hint: ty.Any) -> dict[str, ty.Any]:
    """The JSON schema of a hint without annotations."""
    origin, args = ty.get_origin(hint), ty.get_args(hint)
    if _is_union(hint):
        return _either(*map(of, args))
    if dataclasses.is_dataclass(hint):
        required = [field.name for field in dataclasses.fields(hint)
                    if field.default is dataclasses.MISSING and
                    field.default_factory is dataclasses.MISSING]
        return {'type': 'object', 'additionalProperties': False,
                'properties': {key: of(value) for key, value
                               in keys_of(hint).items()},
                **({'required': required} if required else {})}
    if origin is ty.Literal:
        return {'enum': list(args)}
    if origin in (tuple, frozenset):
        return {'type': 'array', 'items': of(args[0])}
    if origin is Mapping:
        return {'type': 'object', 'additionalProperties': of(args[1])}
    return {} if hint is ty.Any else {'type': _JSON_TYPES[hint]}


def _either(*schemas: Mapping[str, ty.Any]) -> dict[str, ty.Any]:
    """One schema for what may be of several types of JSON."""
    types_of = []
    for each in schemas:
        kinds = each['type']
        types_of += kinds if isinstance(kinds, list) else [kinds]
    return {**functools.reduce(lambda a, b: {**a, **b}, schemas),
            'type': types_of}


# Checks


def check(found: problems.Problems, hint: ty.Any, data: ty.Any,
          prefix: problems.Path = ()) -> None:
    """Note where data is not what a type says.

    :param found: takes the problems
    :param hint: the type
    :param data: lists, mappings and scalars of the file
    :param prefix: where in the file they are
    """
    for error in _validator(hint).iter_errors(data):
        for path, message in _explain(error):
            found.add((*prefix, *path), message)


@functools.cache
def _validator(hint: ty.Any) -> jsonschema.protocols.Validator:
    return _Validator(of(hint))


def _type_text(kinds: str | list[str]) -> str:
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return ' or '.join(_WORDS[kind] for kind in kinds)


def _shown(value: ty.Any) -> str:
    if isinstance(value, dict):
        return 'a mapping'
    if isinstance(value, list):
        return 'a list'
    if value is None:
        return 'nothing'
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + '...'


def _explain(error) -> list[tuple[problems.Path, str]]:
    """A schema error as fields and messages."""
    path = tuple(error.absolute_path)
    value, wanted = error.instance, error.validator_value
    match error.validator:
        case 'additionalProperties':
            known = error.schema.get('properties', {})
            return [((*path, key), f'unknown key{problems.near(key, known)}')
                    for key in value if key not in known]
        case 'required':
            missing = [key for key in wanted if key not in value]
            return [(path, f'{key!r} is missing') for key in missing]
        case 'type':
            message = (f'must be {_type_text(wanted)}, '
                       f'not {_shown(value)}')
        case 'enum':
            message = (f'{_shown(value)} is not one of '
                       f'{", ".join(map(str, wanted))}')
            if isinstance(value, str):
                message += problems.near(value, wanted).partition('; known')[0]
        case 'minimum':
            message = f'must be at least {wanted}, not {value}'
        case 'exclusiveMinimum':
            message = f'must be more than {wanted}, not {value}'
        case 'maximum':
            message = f'must be at most {wanted}, not {value}'
        case 'minLength' | 'minItems' | 'minProperties':
            message = 'must not be empty'
        case 'pattern':
            # The only pattern is that of PCI ids.
            message = (f'{_shown(value)} is not a PCI id of four '
                       'hexadecimal digits')
        case _:
            message = error.message
    return [(path, message)]


# Values


def read(found: problems.Problems, hint: ty.Any, data: ty.Any,
         path: problems.Path = ()) -> ty.Any:
    """Make a value of a type from data that was checked.

    :param found: takes what :class:`Convert` finds wrong, and knows lines
    :param hint: the type
    :param data: lists, mappings and scalars of the file
    :param path: where in the file they are
    :returns: the value; of no use if something was found wrong
    """
    inner, marks = _parts(hint)
    if any(isinstance(mark, AsItIs) for mark in marks):
        return data
    if ONE_OR_MORE in marks and not isinstance(data, list):
        data = [data]
    value = _read_plain(found, inner, data, path)
    for mark in marks:
        if isinstance(mark, Convert):
            try:
                value = mark.function(value)
            except ValueError as e:
                found.add(path, str(e))
                return None
    return value


def _read_plain(found: problems.Problems, hint: ty.Any, data: ty.Any,
                path: problems.Path) -> ty.Any:
    origin, args = ty.get_origin(hint), ty.get_args(hint)
    if _is_union(hint):
        chosen = next(arg for arg in args if _shape(arg) is _shape_of(data))
        return read(found, chosen, data, path)
    if dataclasses.is_dataclass(hint):
        hints = keys_of(hint)
        values = {key: read(found, hints[key], value, (*path, key))
                  for key, value in data.items()}
        for field in dataclasses.fields(hint):
            match field.metadata.get(_SOURCE):
                case _Source.LINE:
                    values[field.name] = found.line(path)
                case _Source.NAME:
                    values[field.name] = path[-1]
        return hint(**values)
    if origin in (tuple, frozenset):
        return origin(read(found, args[0], item, (*path, i))
                      for i, item in enumerate(data))
    if origin is Mapping:
        return {read(found, args[0], key, (*path, key)):
                read(found, args[1], value, (*path, key))
                for key, value in data.items()}
    return data


def _shape_of(data: ty.Any) -> type:
    return type(data) if isinstance(data, (list, dict)) else object


def _shape(hint: ty.Any) -> type:
    """How a hint is written: a list, a mapping, or else."""
    inner = _parts(hint)[0]
    if ty.get_origin(inner) in (tuple, frozenset):
        return list
    if dataclasses.is_dataclass(inner) or ty.get_origin(inner) is Mapping:
        return dict
    return object


def names_in(hint: ty.Any, value: ty.Any, path: problems.Path
             ) -> Iterator[tuple[problems.Path, str, str]]:
    """The names in a value that stand for something else of the file.

    :param hint: its type, without unions of several that have such names
    :param value: the value
    :param path: where in the file it is
    :returns: for each its path, what it is the name of, and the name
    """
    inner, marks = _parts(hint)
    if value is None:
        return
    for mark in marks:
        if isinstance(mark, NameOf):
            yield path, mark.kind, value
    origin, args = ty.get_origin(inner), ty.get_args(inner)
    if dataclasses.is_dataclass(inner):
        for key, of_key in keys_of(inner).items():
            yield from names_in(of_key, getattr(value, key), (*path, key))
    elif origin is tuple:
        for i, item in enumerate(value):
            yield from names_in(args[0], item, path if ONE_OR_MORE in marks
                                else (*path, i))
    elif origin is Mapping:
        for key, item in value.items():
            yield from names_in(args[0], key, (*path, key))
            yield from names_in(args[1], item, (*path, key))
