# SPDX-License-Identifier: Apache-2.0

"""Make JSON schemas from types, and values of the types from checked data.

The keys of a cloud file are defined once, by the frozen dataclasses in
:mod:`nfv_sched.ops.cloud.cloud_file.model` and
:mod:`nfv_sched.ops.cloud.actions`.  The name of a field is the key,
its type hint defines the allowed values, and its default is used if the key is
missing:

* A key without a default is required.
* The default None means that the key is missing; null is not allowed in the
  file.  Without a default, None in the hint means that the key may be null.
* Fields made with :func:`worked_out`, :func:`line` or :func:`own_name` are
  not keys.

Hints are bool, int, float, str, None, Any, Literal, ``tuple[x, ...]`` and
``frozenset[x]`` (lists in the file), ``Mapping[x, y]``, other dataclasses of
this kind, unions of types that differ in JSON, and ``Annotated`` with any of
these: :func:`rule`, :class:`Convert`, :class:`NameOf`, :class:`AsItIs`,
:data:`ONE_OR_MORE`, and marks that other modules find by :func:`keys_with`.

This module is generic: it names no key of the file.
"""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import enum
import functools
import types
import typing as ty

import jsonschema

from nfv_sched.ops.cloud import problems

_SOURCE = 'source'
_JSON_TYPES = {int: 'integer', float: 'number', str: 'string',
               bool: 'boolean', types.NoneType: 'null'}
_WORDS = {'integer': 'a whole number', 'number': 'a number',
          'string': 'text', 'boolean': 'true or false', 'array': 'a list',
          'object': 'a mapping', 'null': 'null'}

# JSON schema accepts 2.0 as an integer; Python's range() does not.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        'integer', lambda checker, value: isinstance(value, int) and
        not isinstance(value, bool)))


class _Source(enum.Enum):
    """Source of the value of a field that is not a key."""

    LOADER = 'loader'
    LINE = 'line'
    NAME = 'name'


@dataclasses.dataclass(frozen=True, slots=True)
class SchemaRule:
    """Keywords of JSON schema for a value, in addition to its type."""

    keywords: tuple[tuple[str, ty.Any], ...]


def rule(**keywords: ty.Any) -> SchemaRule:
    """Return an annotation with keywords of JSON schema (``minimum=1``)."""
    return SchemaRule(tuple(keywords.items()))


@dataclasses.dataclass(frozen=True, slots=True)
class Convert:
    """Annotation of a value that is converted when it is read."""

    #: takes a value of the hinted type and returns the converted value; raises
    #: ValueError with a message if the value is wrong
    function: Callable[[ty.Any], ty.Any]


@dataclasses.dataclass(frozen=True, slots=True)
class NameOf:
    """Annotation of a value that is the name of an object in the file."""

    kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class AsItIs:
    """Annotation of a value that the loader reads; ``rule`` checks it."""

    rule: SchemaRule


#: Annotation of a list for which a single item may be written instead.
ONE_OR_MORE = 'one or more'


def worked_out(default: ty.Any) -> ty.Any:
    """Define a field that the loader sets, with its value until then."""
    return dataclasses.field(default=default,
                             metadata={_SOURCE: _Source.LOADER})


def line() -> ty.Any:
    """Define a field for the line of the entry in the file."""
    return dataclasses.field(default=0, metadata={_SOURCE: _Source.LINE})


def own_name() -> ty.Any:
    """Define a field for the name of the entry in its mapping."""
    return dataclasses.field(default='', metadata={_SOURCE: _Source.NAME})


# Types


@functools.cache
def keys_of(kind: type) -> Mapping[str, ty.Any]:
    """Return the type hint of each key of a dataclass."""
    hints = ty.get_type_hints(kind, include_extras=True)
    return {field.name: _without_none(hints[field.name])
            if field.default is None else hints[field.name]
            for field in dataclasses.fields(kind)
            if _SOURCE not in field.metadata}


def keys_with(kind: type, mark: ty.Any) -> list[str]:
    return [key for key, hint in keys_of(kind).items()
            if mark in _split_annotations(hint)[1]]


def _without_none(hint: ty.Any) -> ty.Any:
    return ty.Union[tuple(arg for arg in ty.get_args(hint)
                          if arg is not types.NoneType)]


def _split_annotations(hint: ty.Any) -> tuple[ty.Any, tuple]:
    if ty.get_origin(hint) is ty.Annotated:
        return hint.__origin__, hint.__metadata__
    return hint, ()


def _is_union(hint: ty.Any) -> bool:
    return ty.get_origin(hint) in (ty.Union, types.UnionType)


def for_type(hint: ty.Any) -> dict[str, ty.Any]:
    """Return the JSON schema of a dataclass, or of any other hint."""
    inner, marks = _split_annotations(hint)
    for mark in marks:
        if isinstance(mark, AsItIs):
            return dict(mark.rule.keywords)
    schema = _schema_of_type(inner)
    if ONE_OR_MORE in marks:
        schema = _one_of(schema['items'], schema)
    for mark in marks:
        if isinstance(mark, SchemaRule):
            schema |= dict(mark.keywords)
    return schema


def _schema_of_type(hint: ty.Any) -> dict[str, ty.Any]:
    """Return the JSON schema of a hint without annotations."""
    origin, args = ty.get_origin(hint), ty.get_args(hint)
    if _is_union(hint):
        return _one_of(*map(for_type, args))
    if dataclasses.is_dataclass(hint):
        required = [field.name for field in dataclasses.fields(hint)
                    if field.default is dataclasses.MISSING and
                    field.default_factory is dataclasses.MISSING]
        return {'type': 'object', 'additionalProperties': False,
                'properties': {key: for_type(value) for key, value
                               in keys_of(hint).items()},
                **({'required': required} if required else {})}
    if origin is ty.Literal:
        return {'enum': list(args)}
    if origin in (tuple, frozenset):
        return {'type': 'array', 'items': for_type(args[0])}
    if origin is Mapping:
        return {'type': 'object', 'additionalProperties': for_type(args[1])}
    return {} if hint is ty.Any else {'type': _JSON_TYPES[hint]}


def _one_of(*schemas: Mapping[str, ty.Any]) -> dict[str, ty.Any]:
    """Return one schema for values of several JSON types."""
    types_of = []
    for each in schemas:
        kinds = each['type']
        types_of += kinds if isinstance(kinds, list) else [kinds]
    return {**functools.reduce(lambda a, b: {**a, **b}, schemas),
            'type': types_of}


# Checks


def check(errors: problems.Problems, hint: ty.Any, data: ty.Any,
          prefix: problems.Path = ()) -> None:
    """Check parsed data, at ``prefix`` in the file, against a type."""
    for error in _validator(hint).iter_errors(data):
        for path, message in _explain(error):
            errors.add((*prefix, *path), message)
        if errors.are_many:
            break


@functools.cache
def _validator(hint: ty.Any) -> jsonschema.protocols.Validator:
    return _Validator(for_type(hint))


def _type_text(kinds: str | list[str]) -> str:
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return ' or '.join(_WORDS[kind] for kind in kinds)


def _value_text(value: ty.Any) -> str:
    if isinstance(value, dict):
        return 'a mapping'
    if isinstance(value, list):
        return 'a list'
    if value is None:
        return 'nothing'
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + '...'


def _explain(error) -> list[tuple[problems.Path, str]]:
    """Convert a schema error to pairs (path of the field, message)."""
    path = tuple(error.absolute_path)
    value, expected = error.instance, error.validator_value
    match error.validator:
        case 'additionalProperties':
            properties = error.schema.get('properties', {})
            return [((*path, key),
                     f'unknown key{problems.near(key, properties)}')
                    for key in value if key not in properties]
        case 'required':
            missing = [key for key in expected if key not in value]
            return [(path, f'{key!r} is missing') for key in missing]
        case 'type':
            message = (f'must be {_type_text(expected)}, '
                       f'not {_value_text(value)}')
        case 'enum':
            message = (f'{_value_text(value)} is not one of '
                       f'{", ".join(map(str, expected))}')
            if isinstance(value, str):
                message += problems.near(
                    value, expected).partition('; known')[0]
        case 'minimum':
            message = f'must be at least {expected}, not {_value_text(value)}'
        case 'exclusiveMinimum':
            message = f'must be more than {expected}, not {_value_text(value)}'
        case 'maximum':
            message = f'must be at most {expected}, not {_value_text(value)}'
        case 'minLength' | 'minItems' | 'minProperties':
            message = 'must not be empty'
        case 'maxLength':
            message = (f'must have {expected} characters at most, not '
                       f'{len(value)}')
        case 'pattern':
            # Only PCI IDs have a pattern.
            message = (f'{_value_text(value)} is not a PCI id of four '
                       'hexadecimal digits')
        case _:
            message = error.message
    return [(path, message)]


# Values


def read(errors: problems.Problems, hint: ty.Any, data: ty.Any,
         path: problems.Path = ()) -> ty.Any:
    """Make a value of a type from parsed data that was checked.

    :param errors: collects the problems of conversions; has the lines
    :returns: the value; invalid if problems were added
    """
    inner, marks = _split_annotations(hint)
    if any(isinstance(mark, AsItIs) for mark in marks):
        return data
    if ONE_OR_MORE in marks and not isinstance(data, list):
        data = [data]
    value = _read_plain(errors, inner, data, path)
    for mark in marks:
        if isinstance(mark, Convert):
            try:
                value = mark.function(value)
            except ValueError as e:
                errors.add(path, str(e))
                return None
    return value


def _read_plain(errors: problems.Problems, hint: ty.Any, data: ty.Any,
                path: problems.Path) -> ty.Any:
    origin, args = ty.get_origin(hint), ty.get_args(hint)
    if _is_union(hint):
        chosen = next(arg for arg in args if _shape(arg) is _shape_of(data))
        return read(errors, chosen, data, path)
    if dataclasses.is_dataclass(hint):
        hints = keys_of(hint)
        values = {key: read(errors, hints[key], value, (*path, key))
                  for key, value in data.items()}
        for field in dataclasses.fields(hint):
            match field.metadata.get(_SOURCE):
                case _Source.LINE:
                    values[field.name] = errors.line(path)
                case _Source.NAME:
                    values[field.name] = path[-1]
        return hint(**values)
    if origin in (tuple, frozenset):
        return origin(read(errors, args[0], item, (*path, i))
                      for i, item in enumerate(data))
    if origin is Mapping:
        return {read(errors, args[0], key, (*path, key)):
                read(errors, args[1], value, (*path, key))
                for key, value in data.items()}
    return data


def _shape_of(data: ty.Any) -> type:
    return type(data) if isinstance(data, (list, dict)) else object


def _shape(hint: ty.Any) -> type:
    """Return the type of parsed values: list, dict, or object for scalars."""
    inner = _split_annotations(hint)[0]
    if ty.get_origin(inner) in (tuple, frozenset):
        return list
    if dataclasses.is_dataclass(inner) or ty.get_origin(inner) is Mapping:
        return dict
    return object


def names_in(hint: ty.Any, value: ty.Any, path: problems.Path
             ) -> Iterator[tuple[problems.Path, str, str]]:
    """Yield the names in a value that refer to other objects of the file.

    :param hint: type of the value.  Names in a union are not found
    :returns: (path, kind of the object, name) of each
    """
    inner, marks = _split_annotations(hint)
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
