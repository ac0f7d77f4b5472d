# SPDX-License-Identifier: Apache-2.0
"""Write frozen dataclasses as JSON and read them, by their type hints.

The key of a field is its name.  A field that has its default value is left
out.  Sets of numbers are written as lists of CPUs: ``0-3,8``.

The work is done by pydantic, made stricter: there are no conversions, such as
of ``"1"`` to 1, and fields without limits of their own get default limits.
By default pydantic also collects all errors of a file, which takes more memory
than the file; here it stops at the first error of a list or mapping, and
unknown keys are refused before anything else.

JSON documents of commands, such as plans, are read in the same way, but for
the default limits of numbers and texts, and unknown keys.  Of cloud files all
errors are collected, up to a number of them.
"""

from collections.abc import Callable, Iterable
import dataclasses
import functools
import itertools
import typing as ty

import pydantic
import pydantic_core
from pydantic_core import core_schema

from nfv_sched.base import cpu_spec
from nfv_sched.base import extra_specs
from nfv_sched.base import files
from nfv_sched.ops.cloud import problems

# Values of a list or dictionary that are checked at once.
_PART = 100
# How many unknown keys of an object in a cloud file are told.
_MOST_KEYS = 10
# Longest text in a message.
_SHOWN = 60
#: The largest allocation ratio that Placement accepts; products stay finite.
MAX_NUMBER = 3.40282e+38

_Schema = dict[str, ty.Any]

# Defaults that are added to the schemas of pydantic, by their type.
_SNAPSHOT_LIMITS: dict[str, _Schema] = {
    'bool': {'strict': True},
    'int': {'strict': True, 'ge': 0, 'le': (1 << 63) - 1},
    'float': {'strict': True, 'ge': 0, 'le': MAX_NUMBER,
              'allow_inf_nan': False},
    'str': {'strict': True, 'max_length': files.MAX_TEXT},
    'tuple': {'fail_fast': True},
    'frozenset': {
        'fail_fast': True, 'serialization':
        core_schema.plain_serializer_function_ser_schema(sorted)},
    'dict': {
        'fail_fast': True, 'serialization':
        core_schema.wrap_serializer_function_ser_schema(
            lambda value, write: write(dict(sorted(value.items()))))},
}

# The same for cloud files, and for documents of commands, which also have
# negative numbers.
_FILE_LIMITS: dict[str, _Schema] = dict.fromkeys(
    ('bool', 'int', 'float', 'str'), {'strict': True})
_DOCUMENT_LIMITS = _FILE_LIMITS | dict.fromkeys(
    ('tuple', 'frozenset', 'dict'), {'fail_fast': True})

# Begins the label of a choice of a union in the path of an error.
_CHOICE = '\0'

# Messages by the type of pydantic's error.
_MESSAGES = {
    'bool_type': 'must be true or false',
    'int_type': 'must be a whole number',
    'int_parsing': 'must be a whole number',
    'int_parsing_size': 'must be a whole number',
    'float_type': 'must be a number',
    'finite_number': 'must be a finite number',
    'string_type': 'must be text',
    'string_unicode': 'must be text',
    'tuple_type': 'must be a list',
    # Of scalars: all other unions have one.
    'union_tag_invalid': 'must be an object or a list',
    'frozen_set_type': 'must be a list',
    'dict_type': 'must be an object',
    'dataclass_type': 'must be an object',
    'enum': 'must be {expected}',
    'literal_error': 'must be {expected}',
    'greater_than': 'must be more than {gt}',
    'greater_than_equal': 'must be {ge} or more',
    'less_than_equal': 'must be {le} or less',
    # Only PCI IDs have a pattern.
    'string_pattern_mismatch': 'must be a PCI ID of four hexadecimal digits',
    'string_too_short': 'must not be empty',
    'string_too_long': 'must have {max_length} characters at most',
    'cpus': 'must be numbers such as 0-3,8',
}


class WrongError(ValueError):
    """Data that does not fit a type; keys and indices lead to it."""

    def __init__(self, message: str, path: Iterable[str | int] = ()):
        super().__init__(message)
        self.message = message
        self.path = list(path)

    def __str__(self) -> str:
        where = problems.field_name(self.path)
        return f'{where}: {self.message}' if where else self.message


def encode(value: ty.Any) -> ty.Any:
    return _serializer(type(value)).to_python(
        value, mode='json', exclude_defaults=True, warnings=False)


def decode(kind: type, data: ty.Any) -> ty.Any:
    """Make an instance of a dataclass from parsed JSON.

    :raises WrongError: if the data does not fit the dataclass
    :raises FileLimitError: if the lists of CPUs have too many CPUs in total
    """
    return _first_error(_validator(kind, _of_snapshot), data, _CPULists())


def decode_document(kind: type, data: ty.Any) -> ty.Any:
    """Make one from the document of a command, without its unknown keys."""
    return _first_error(_validator(kind, _of_document), data, None)


def _first_error(validator: pydantic_core.SchemaValidator, data: ty.Any,
                 context: ty.Any) -> ty.Any:
    try:
        return validator.validate_python(data, context=context)
    except pydantic.ValidationError as exc:
        raise _exception(exc.errors(include_url=False)[0]) from None


def decode_file(kind: type, data: ty.Any, errors: problems.Problems,
                path: problems.Path = ()) -> ty.Any:
    """Make one from parsed YAML, at a path; None, and errors, if wrong."""
    try:
        return _validator(kind, _of_file).validate_python(
            data, context={'wrong': 0})
    except pydantic.ValidationError as exc:
        details = exc.errors(include_url=False)
    of_path: dict[tuple, list[ty.Any]] = {}
    for error in details:
        of_path.setdefault(tuple(_path_of(error)), []).append(error)
    for details in of_path.values():
        # Of a union, what fits none of its types has an error for each.
        wrong = [_exception(each) for each in details
                 if not each['type'].endswith('_type')] or [
                     _exception(details[0], details)]
        for each in wrong:
            errors.add((*path, *each.path), each.message)
        if errors.are_many:
            break
    return None


class _CPULists(dict[str, frozenset[int]]):
    """The parsed CPU lists of a file, whose total length is limited."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def __missing__(self, text: str) -> frozenset[int]:
        self[text] = cpus = cpu_spec.parse(text)
        self._count += len(cpus)
        if self._count > files.max_items():
            raise files.beyond(f'{files.max_items()} CPUs in its lists')
        return cpus


_Finish = Callable[[_Schema], _Schema]


@functools.cache
def _schema(kind: type, finish: _Finish) -> _Schema:
    return _adapted(pydantic.TypeAdapter(kind).core_schema, finish)


@functools.cache
def _validator(kind: type, finish: _Finish) -> pydantic_core.SchemaValidator:
    return pydantic_core.SchemaValidator(_schema(kind, finish))


@functools.cache
def _serializer(kind: type) -> pydantic_core.SchemaSerializer:
    # Write infinity and NaN as json does; otherwise they become null.
    return pydantic_core.SchemaSerializer(
        _schema(kind, _of_snapshot), {'ser_json_inf_nan': 'constants'})


def _adapted(schema: ty.Any, finish: _Finish) -> ty.Any:
    """Add limits to a schema of pydantic and to all parts of it."""
    if isinstance(schema, list):
        return [_adapted(each, finish) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return finish({key: _adapted(value, finish)
                   for key, value in schema.items()})


def _of_snapshot(schema: _Schema) -> _Schema:
    schema = {**_SNAPSHOT_LIMITS.get(schema.get('type'), {}), **schema}
    match schema.get('type'):
        case 'frozenset' if schema['items_schema']['type'] == 'int':
            return _CPU_LIST
        case 'any':
            return _ANY
        case 'dict':
            # Older releases of pydantic leave out the schema of values of any
            # type.
            schema = {'values_schema': _ANY, **schema}
            if schema['keys_schema']['type'] == 'int':
                # Keys are always strings in JSON. pydantic would also take
                # "1.0".
                schema['keys_schema'] = (
                    core_schema.no_info_before_validator_function(
                        _read_number, schema['keys_schema']))
            return _in_parts(schema)
        case 'dataclass':
            return _with_known_keys(schema, 1)
    return schema


def _of_document(schema: _Schema) -> _Schema:
    schema = {**_DOCUMENT_LIMITS.get(schema.get('type'), {}), **schema}
    return _in_parts(schema) if schema.get('type') == 'dict' else schema


def _in_parts(schema: _Schema) -> _Schema:
    return core_schema.no_info_wrap_validator_function(_check_parts, schema)


def _of_file(schema: _Schema) -> _Schema:
    schema = {**_FILE_LIMITS.get(schema.get('type'), {}), **schema}
    match schema.get('type'):
        case 'default' if schema['schema']['type'] == 'nullable':
            # That a key is missing is not written as null.
            return {**schema, 'schema': schema['schema']['schema']}
        case 'union':
            # Errors are those of the type that looks like the data.
            scalars, shapes = [], {}
            for choice in schema['choices']:
                shape = _shape(choice)
                if shape == _CHOICE:
                    scalars.append((choice, _CHOICE))
                shapes[shape] = choice
            if len(scalars) > 1:
                shapes[_CHOICE] = core_schema.union_schema(scalars)
            return core_schema.tagged_union_schema(
                shapes, lambda data: _shape_of(shapes, data))
        case 'dataclass':
            return _with_known_keys(schema, _MOST_KEYS)
        case 'tuple':
            item, = schema['items_schema']
            return {**schema, 'items_schema': [_counted(item)]}
        case 'frozenset':
            return {**schema, 'items_schema': _counted(schema['items_schema'])}
        case 'dict':
            return {**schema, **{
                name: _counted(schema[name])
                for name in ('keys_schema', 'values_schema')
                if name in schema}}
    return schema


def _counted(schema: _Schema) -> _Schema:
    return core_schema.with_info_wrap_validator_function(
        _unless_many_are_wrong, schema)


def _unless_many_are_wrong(data: ty.Any, check: Callable,
                           info: core_schema.ValidationInfo) -> ty.Any:
    if info.context['wrong'] >= problems.MAX_FOUND:
        raise pydantic_core.PydanticOmit
    try:
        return check(data)
    except pydantic.ValidationError:
        info.context['wrong'] += 1
        raise


def _shape(schema: _Schema) -> str:
    """Return the label of a choice: mappings and lists have their own."""
    while schema['type'].startswith('function-'):
        schema = schema['schema']
    return {'dict': f'{_CHOICE}dict', 'dataclass': f'{_CHOICE}dict',
            'definition-ref': f'{_CHOICE}dict', 'tuple': f'{_CHOICE}list',
            }.get(schema['type'], _CHOICE)


def _shape_of(shapes: ty.Container[str], data: ty.Any) -> str:
    shape = f'{_CHOICE}{type(data).__name__}'
    return shape if shape in shapes else _CHOICE


def _with_known_keys(schema: _Schema, most: int) -> _Schema:
    """Return the schema of a dataclass; it refuses others, and tells some."""
    names = frozenset(
        field.name for field in dataclasses.fields(schema['cls'])
        if not field.metadata.get('internal'))
    ref = schema.pop('ref', None)  # its name for other schemas
    return core_schema.no_info_before_validator_function(
        functools.partial(_check_keys, names, most), schema, ref=ref)


def _check_parts(data: ty.Any, check: ty.Callable) -> ty.Any:
    """Check a dictionary until a part of it has errors."""
    # NOTE: Up to 2.11 pydantic has no fail_fast for dictionaries, and keeps
    # an error for each value of a file with millions of them.
    if not isinstance(data, dict) or len(data) <= _PART:
        return check(data)
    items = iter(data.items())
    checked: dict = {}
    while part := dict(itertools.islice(items, _PART)):
        checked.update(check(part))
    return checked


def _check_keys(names: frozenset[str], most: int, data: ty.Any) -> ty.Any:
    if isinstance(data, dict) and not data.keys() <= names:
        unknown = itertools.islice(
            (key for key in data if key not in names), most)
        raise pydantic.ValidationError.from_exception_data('keys', [{
            'input': None, 'type': pydantic_core.PydanticCustomError(
                'unknown_key', 'unknown key', {
                    # JSON may have lone surrogates, which pydantic cannot
                    # take.
                    'key': key.encode(errors='replace').decode(),
                    'near': problems.near(key, names)
                    if len(key) <= _SHOWN else ''})}
            for key in unknown])
    return data


def _read_number(key: str) -> int:
    try:
        return int(key)
    except ValueError:
        raise pydantic_core.PydanticKnownError('int_parsing') from None


def _check_any(data: ty.Any) -> ty.Any:
    try:
        files.check(data)
    except files.FileLimitError as exc:
        raise ValueError(str(exc)) from None
    return data


_ANY = core_schema.no_info_after_validator_function(
    _check_any, core_schema.any_schema())


def _read_cpus(data: ty.Any, info: core_schema.ValidationInfo
               ) -> frozenset[int]:
    try:
        if isinstance(data, str):
            return info.context[data]
    except files.FileLimitError:
        raise
    except ValueError:
        pass
    raise pydantic_core.PydanticCustomError('cpus', 'not a list of CPUs')


_CPU_LIST = core_schema.with_info_plain_validator_function(
    _read_cpus, serialization=core_schema.plain_serializer_function_ser_schema(
        cpu_spec.to_text))


def _path_of(error: ty.Any) -> list[str | int]:
    return [part for part in error['loc']
            if part != '[key]' and not str(part).startswith(_CHOICE)]


def _exception(error: ty.Any, same: ty.Sequence[ty.Any] = ()) -> ValueError:
    """Return the exception for an error of pydantic.

    :param same: errors at the same place, for other types; data of any of
        these types would have been accepted
    """
    kind, context = error['type'], error.get('ctx', {})
    path = _path_of(error)
    if kind == 'value_error':
        cause = context['error']
        if isinstance(cause, files.FileLimitError):
            return cause
        message = str(cause)
    elif kind == 'unknown_key':
        path.append(context['key'])
        message = f'unknown key{context["near"]}'
    elif kind == 'missing':
        message = f'{path.pop()!r} is missing'
    else:
        message = ' or '.join(dict.fromkeys(
            _MESSAGES.get(each['type'], each['msg']).format(
                **each.get('ctx', {})) for each in (error, *same)))
        message = message.replace(' or must be ', ' or ')
        message += f', not {_value_text(error["input"])}'
        if error['loc'][-1:] == ('[key]',):
            message = f'its key {message}'
    return WrongError(message, path)


def _value_text(data: ty.Any) -> str:
    if isinstance(data, dict | list):
        return 'an object' if isinstance(data, dict) else 'a list'
    return 'nothing' if data is None else extra_specs.shown(data, _SHOWN)
