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
"""Write frozen dataclasses as JSON and read them, by their type hints.

The key of a field is its name.  A field that has its default value is left
out.  Supported hints are bool, int, float, str, Any, dataclasses, enumerations
of strings, ``tuple[x, ...]``, ``frozenset[x]``, ``Mapping[x, y]``, and each of
these or None.  Sets of numbers are written as lists of CPUs: ``0-3,8``.  What
is read is 0 or more, and whole numbers have 63 bits, unless
``Annotated[int, range(...)]`` says otherwise.  ``Annotated[str, 255]`` is a
text of at most so many characters.

Files have millions of values, so the conversion of a type is worked out once.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import contextvars
import dataclasses
import enum
import functools
import types
import typing as ty

from nfv_sched import files

_WORDS: Mapping[type, str] = {
    bool: 'true or false', int: 'a whole number', float: 'a number',
    str: 'text', list: 'a list', dict: 'an object'}

#: CPUs of a host, and vCPUs, that can be told from one another.
MOST_CPUS = 1 << 16
_WHOLE = range(1 << 63)
#: The largest ratio that Placement takes: products stay finite.
MAX_NUMBER = 3.40282e+38
# A short list stands for many numbers. None outside of decode().
_cpus_left: contextvars.ContextVar[int | None] = contextvars.ContextVar(
    'cpus_left', default=None)


class WrongError(ValueError):
    """Data does not fit a type.

    :ivar path: keys and indices that lead to it, outermost first
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
    """A dataclass as data that :mod:`json` can write.

    :param value: an instance of a frozen dataclass
    """
    return _writer(type(value))(value)


def decode(kind: type, data: ty.Any) -> ty.Any:
    """Make an instance of a dataclass.

    :param kind: the dataclass
    :param data: what :mod:`json` has read
    :raises WrongError: if the data does not fit the dataclass
    :raises nfv_sched.files.LimitError: if its lists of CPUs have too many
        numbers altogether
    """
    token = _cpus_left.set(files.max_items())
    try:
        return _reader(kind)(data)
    finally:
        _cpus_left.reset(token)


def cpu_list(numbers: Iterable[int]) -> str:
    """Numbers as a list of CPUs, such as ``0-3,8``.

    :param numbers: whole numbers, not negative
    """
    parts: list[str] = []
    first = last = None
    for number in sorted(numbers):
        if last is not None and number == last + 1:
            last = number
            continue
        if last is not None:
            parts.append(_span(first, last))
        first = last = number
    if last is not None:
        parts.append(_span(first, last))
    return ','.join(parts)


def _span(first: int | None, last: int) -> str:
    return str(last) if first == last else f'{first}-{last}'


@functools.lru_cache(maxsize=4096)
def cpus(text: str) -> frozenset[int]:
    """The numbers in a list of CPUs.

    :param text: such as ``0-3,8``
    :raises ValueError: if the text is not such a list
    """
    found: set[int] = set()
    count = 0
    for part in text.split(',') if text else ():
        first, dash, last = part.partition('-')
        start = int(first)
        end = int(last) if dash else start
        if not 0 <= start <= end < MOST_CPUS:
            raise ValueError(f'{part[:40]!r} is not a span of CPUs')
        # Spans may overlap, but need not.
        count += end - start + 1
        if count > MOST_CPUS:
            raise ValueError(f'more than {MOST_CPUS} CPUs')
        found.update(range(start, end + 1))
    left = _cpus_left.get()
    if left is not None:
        if len(found) > left:
            raise files.beyond(f'{files.max_items()} CPUs in its lists')
        _cpus_left.set(left - len(found))
    return frozenset(found)


# Hints


def _or_none(
    hint: ty.Any, make: Callable[[ty.Any], Callable[[ty.Any], ty.Any]],
) -> Callable[[ty.Any], ty.Any]:
    """A function that converts values; None stays None if the hint allows it.

    :param hint: the type hint of the values
    :param make: makes such a function for a hint without None
    """
    if ty.get_origin(hint) not in (ty.Union, types.UnionType):
        return make(hint)
    kind, = [arg for arg in ty.get_args(hint)
             if arg is not types.NoneType]  # no other union is allowed
    convert = make(kind)
    return lambda value: None if value is None else convert(value)


def _default(field: dataclasses.Field) -> ty.Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


# Writing


@functools.cache
def _writer(hint: ty.Any) -> Callable[[ty.Any], ty.Any]:
    return _or_none(hint, _plain_writer)


def _plain_writer(kind: ty.Any) -> Callable[[ty.Any], ty.Any]:
    origin, args = ty.get_origin(kind), ty.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass_writer(kind)
    if origin is tuple:
        item = _writer(args[0])
        return lambda value: [item(each) for each in value]
    if origin is frozenset:
        return cpu_list if args[0] is int else sorted
    if origin is Mapping:
        item = _writer(args[1])
        return lambda value: {
            str(key): item(each) for key, each in sorted(value.items())}
    return lambda value: value


def _dataclass_writer(kind: type) -> Callable[[ty.Any], ty.Any]:
    hints = ty.get_type_hints(kind)
    fields = [(field.name, _default(field), _writer(hints[field.name]))
              for field in dataclasses.fields(kind)]

    def write(value):
        data = {}
        for name, default, field in fields:
            found = getattr(value, name)
            if found != default:
                data[name] = field(found)
        return data

    return write


# Reading


@functools.cache
def _reader(hint: ty.Any) -> Callable[[ty.Any], ty.Any]:
    return _or_none(hint, _plain_reader)


def _plain_reader(kind: ty.Any) -> Callable[[ty.Any], ty.Any]:
    origin, args = ty.get_origin(kind), ty.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    if origin is tuple:
        return functools.partial(_read_list, _reader(args[0]))
    if origin is frozenset:
        if args[0] is int:
            return _read_cpus
        read = functools.partial(_read_list, _reader(args[0]))
        return lambda data: frozenset(read(data))
    if origin is Mapping:
        return functools.partial(_read_mapping, args[0], _reader(args[0]),
                                 _reader(args[1]))
    if kind is ty.Any:
        return _read_any
    if isinstance(kind, enum.EnumType):
        return functools.partial(_read_member, kind)
    if origin is ty.Annotated:
        return functools.partial(
            _read_text if args[0] is str else _read_whole, args[1])
    if kind is int:
        return functools.partial(_read_whole, _WHOLE)
    if kind is float:
        return _read_number
    if kind is str:
        return functools.partial(_read_text, files.MAX_TEXT)
    return functools.partial(_read_scalar, kind)


def _read_text(most: int, data: ty.Any) -> str:
    if data.__class__ is str and len(data) <= most:
        return data
    _read_scalar(str, data)
    raise WrongError(f'must have {most} characters at most, not {len(data)}')


def _read_member(kind: type[enum.StrEnum], data: ty.Any) -> enum.StrEnum:
    try:
        return kind(data)
    except ValueError:
        raise WrongError(f'must be one of {", ".join(kind)}, not '
                         f'{_shown(data)}') from None


def _read_any(data: ty.Any) -> ty.Any:
    try:
        files.check(data)
    except files.LimitError as exc:
        raise WrongError(str(exc)) from None
    return data


def _expect(kind: type, data: ty.Any) -> None:
    if not isinstance(data, kind):
        raise WrongError(f'must be {_WORDS[kind]}, not {_shown(data)}')


def _shown(data: ty.Any) -> str:
    for kind in (dict, list):
        if isinstance(data, kind):
            return _WORDS[kind]
    text = 'nothing' if data is None else repr(data)
    return text if len(text) <= 60 else text[:57] + '...'


def _read_scalar(kind: type, data: ty.Any) -> ty.Any:
    if data.__class__ is kind:
        return data
    raise WrongError(f'must be {_WORDS[kind]}, not {_shown(data)}')


def _read_whole(allowed: range, data: ty.Any) -> int:
    if data.__class__ is int and data in allowed:
        return data
    _read_scalar(int, data)
    raise WrongError(f'must be from {allowed[0]} to {allowed[-1]}, not '
                     f'{_shown(data)}')


def _read_number(data: ty.Any) -> float:
    if data.__class__ is int and data in _WHOLE:
        return float(data)
    if data.__class__ is float and 0 <= data <= MAX_NUMBER:
        return data
    if data.__class__ in (int, float):
        raise WrongError(f'must be from 0 to {MAX_NUMBER}, not '
                         f'{_shown(data)}')
    return _read_scalar(float, data)


def _read_cpus(data: ty.Any) -> frozenset[int]:
    _expect(str, data)
    try:
        return cpus(data)
    except files.LimitError:
        raise
    except ValueError:
        raise WrongError(
            f'must be numbers such as 0-3,8, not {_shown(data)}') from None


def _read_list(read: Callable, data: ty.Any) -> tuple:
    _expect(list, data)
    found = []
    try:
        for each in data:
            found.append(read(each))
    except WrongError as exc:
        exc.path.insert(0, len(found))
        raise
    return tuple(found)


def _read_mapping(kind: type, read_key: Callable, read: Callable,
                  data: ty.Any) -> Mapping:
    _expect(dict, data)
    found = {}
    for key, value in data.items():
        try:
            try:
                known = read_key(kind(key))
            except WrongError as exc:
                raise WrongError(f'its key {exc}') from None
            except ValueError:
                raise WrongError(
                    f'its key must be {_WORDS[kind]}') from None
            found[known] = read(value)
        except WrongError as exc:
            exc.path.insert(0, key)
            raise
    return found


def _dataclass_reader(kind: type) -> Callable[[ty.Any], ty.Any]:
    hints = ty.get_type_hints(kind, include_extras=True)
    readers = {field.name: _reader(hints[field.name])
               for field in dataclasses.fields(kind)}
    required = [field.name for field in dataclasses.fields(kind)
                if _default(field) is dataclasses.MISSING]

    def read(data):
        _expect(dict, data)
        values = {}
        for name, value in data.items():
            field = readers.get(name)
            try:
                if field is None:
                    raise WrongError('unknown key')
                values[name] = field(value)
            except WrongError as exc:
                exc.path.insert(0, name)
                raise
        for name in required:
            if name not in values:
                raise WrongError(f'{name!r} is missing')
        return kind(**values)

    return read
