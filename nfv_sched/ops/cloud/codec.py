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
the default limits of numbers and texts, and unknown keys.
"""

import functools
import itertools
import typing as ty

import pydantic
import pydantic_core
from pydantic_core import core_schema

from nfv_sched.base import cpu_spec
from nfv_sched.base import files

# Values of a dictionary that are checked at once.
_PART = 100
#: The largest allocation ratio that Placement accepts; products stay finite.
MAX_NUMBER = 3.40282e+38

_Schema = dict[str, ty.Any]

# Defaults that are added to the schemas of pydantic, by their type.
_LIMITS: dict[str, _Schema] = {
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

_STRICT: _Schema = {'strict': True}
_FAIL_FAST: _Schema = {'fail_fast': True}
# The same for documents of commands, which also have negative numbers.
_DOCUMENT_LIMITS: dict[str, _Schema] = {
    'bool': _STRICT, 'int': _STRICT, 'float': _STRICT, 'str': _STRICT,
    'tuple': _FAIL_FAST, 'frozenset': _FAIL_FAST, 'dict': _FAIL_FAST}

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
    'frozen_set_type': 'must be a list',
    'dict_type': 'must be an object',
    'dataclass_type': 'must be an object',
    'enum': 'must be {expected}',
    'literal_error': 'must be {expected}',
    'greater_than_equal': 'must be {ge} or more',
    'less_than_equal': 'must be {le} or less',
    'string_too_long': 'must have {max_length} characters at most',
    'cpus': 'must be numbers such as 0-3,8',
}


class WrongError(ValueError):
    """Data that does not fit a type.

    :ivar path: keys and indices that lead to the data, outermost first
    """

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message
        self.path: list[str | int] = []

    def __str__(self) -> str:
        where = ''
        for part in self.path:
            if isinstance(part, str) and len(part) > 60:
                part = part[:57] + '...'
            where += f'[{part}]' if isinstance(part, int) else (
                f'.{part}' if where else part)
        return f'{where}: {self.message}' if where else self.message


def encode(value: ty.Any) -> ty.Any:
    """Return a frozen dataclass as data that :mod:`json` can write."""
    return _serializer(type(value)).to_python(
        value, mode='json', exclude_defaults=True, warnings=False)


def decode(kind: type, data: ty.Any) -> ty.Any:
    """Make an instance of a dataclass from parsed JSON.

    :raises WrongError: if the data does not fit the dataclass
    :raises FileLimitError: if the lists of CPUs have too many CPUs in total
    """
    try:
        return _validator(kind).validate_python(data, context=_CPULists())
    except pydantic.ValidationError as exc:
        raise _exception(exc.errors(include_url=False)[0]) from None


def decode_document(kind: type, data: ty.Any) -> ty.Any:
    """Make an instance of a dataclass from the document of a command.

    :raises WrongError: if the data does not fit; unknown keys are ignored
    """
    try:
        return _document_validator(kind).validate_python(data)
    except pydantic.ValidationError as exc:
        raise _exception(exc.errors(include_url=False)[0]) from None


class _CPULists(dict[str, frozenset[int]]):
    """The parsed CPU lists of a file, with a limit on their total length.

    A short text such as ``0-65535`` stands for many numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def __missing__(self, text: str) -> frozenset[int]:
        self[text] = cpus = cpu_spec.parse(text)
        self._count += len(cpus)
        if self._count > files.max_items():
            raise files.beyond(f'{files.max_items()} CPUs in its lists')
        return cpus


# Schemas


@functools.cache
def _schema(kind: type) -> _Schema:
    return _with_limits(pydantic.TypeAdapter(kind).core_schema)


@functools.cache
def _validator(kind: type) -> pydantic_core.SchemaValidator:
    return pydantic_core.SchemaValidator(_schema(kind))


@functools.cache
def _document_validator(kind: type) -> pydantic_core.SchemaValidator:
    return pydantic_core.SchemaValidator(
        _with_document_limits(pydantic.TypeAdapter(kind).core_schema))


@functools.cache
def _serializer(kind: type) -> pydantic_core.SchemaSerializer:
    # Write infinity and NaN as json does; otherwise they become null.
    return pydantic_core.SchemaSerializer(
        _schema(kind), {'ser_json_inf_nan': 'constants'})


def _with_limits(schema: ty.Any) -> ty.Any:
    """Add the limits to a schema of pydantic and to all parts of it."""
    if isinstance(schema, list):
        return [_with_limits(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get('type')
    if kind == 'frozenset' and schema['items_schema']['type'] == 'int':
        return _CPU_LIST
    if kind == 'any':
        return core_schema.no_info_after_validator_function(
            _check_any, core_schema.any_schema())
    if kind == 'dict':
        # Older releases of pydantic leave out the schema of values of any
        # type.
        schema = {'values_schema': core_schema.any_schema(), **schema}
        if schema['keys_schema']['type'] == 'int':
            schema['keys_schema'] = _NUMBER_KEY
    schema = {**_LIMITS.get(kind, {}),
              **{key: _with_limits(value) for key, value in schema.items()}}
    if kind == 'dataclass':
        ref = schema.pop('ref', None)  # its name for other schemas
        return core_schema.no_info_before_validator_function(
            functools.partial(_check_keys, frozenset(schema['fields'])),
            schema, ref=ref)
    if kind == 'dict':
        return core_schema.no_info_wrap_validator_function(_in_parts, schema)
    return schema


def _with_document_limits(schema: ty.Any) -> ty.Any:
    if isinstance(schema, list):
        return [_with_document_limits(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get('type')
    schema = {**_DOCUMENT_LIMITS.get(kind, {}), **{
        key: _with_document_limits(value) for key, value in schema.items()}}
    if kind == 'dict':
        return core_schema.no_info_wrap_validator_function(_in_parts, schema)
    return schema


def _in_parts(data: ty.Any, check: ty.Callable) -> ty.Any:
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


def _check_keys(names: frozenset[str], data: ty.Any) -> ty.Any:
    if isinstance(data, dict) and not data.keys() <= names:
        unknown = next(key for key in data if key not in names)
        # JSON may have lone surrogates, which pydantic cannot take.
        raise pydantic_core.PydanticCustomError(
            'unknown_key', 'unknown key',
            {'key': unknown.encode(errors='replace').decode()})
    return data


def _read_number(key: str) -> int:
    try:
        return int(key)
    except ValueError:
        raise pydantic_core.PydanticKnownError('int_parsing') from None


# Keys are always strings in JSON. pydantic would also take "1.0".
_NUMBER_KEY = core_schema.no_info_before_validator_function(
    _read_number, core_schema.int_schema())


def _check_any(data: ty.Any) -> ty.Any:
    try:
        files.check(data)
    except files.FileLimitError as exc:
        raise ValueError(str(exc)) from None
    return data


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


# Errors


def _exception(error: ty.Any) -> ValueError:
    kind, path, context = error['type'], error['loc'], error.get('ctx', {})
    of_key = path[-1:] == ('[key]',)
    if of_key:
        *path, _key = path
    if kind == 'value_error':
        cause = context['error']
        if isinstance(cause, files.FileLimitError):
            return cause
        message = str(cause)
    elif kind == 'unknown_key':
        path = (*path, context['key'])
        message = 'unknown key'
    elif kind == 'missing':
        *path, name = path
        message = f'{name!r} is missing'
    else:
        message = _MESSAGES.get(kind, error['msg']).format(**context)
        message += f', not {_value_text(error["input"])}'
    exc = WrongError(f'its key {message}' if of_key else message)
    exc.path = list(path)
    return exc


def _value_text(data: ty.Any) -> str:
    if isinstance(data, dict | list):
        return 'an object' if isinstance(data, dict) else 'a list'
    text = 'nothing' if data is None else repr(data)
    return text if len(text) <= 60 else text[:57] + '...'
