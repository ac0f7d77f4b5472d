# SPDX-License-Identifier: Apache-2.0
"""Find the values whose types have a mark, ``Annotated[str, mark]``."""

from collections.abc import Iterator, Mapping
import dataclasses
import functools
import types
import typing as ty

from nfv_sched.ops.cloud import problems


def parts(hint: ty.Any) -> Iterator[ty.Any]:
    """Yield the types and marks in a type hint, but not in dataclasses."""
    yield hint
    for each in ty.get_args(hint):
        yield from parts(each)


@functools.cache
def fields_with(kind: type, of: type) -> Mapping[str, ty.Any]:
    return {
        name: hint for name, hint in ty.get_type_hints(
            kind, include_extras=True).items() if any(
                isinstance(part, of) or isinstance(part, type)
                and dataclasses.is_dataclass(part) and fields_with(part, of)
                for part in parts(hint))}


def find(hint: ty.Any, value: ty.Any, of: type, path: problems.Path = (),
         ) -> Iterator[tuple[problems.Path, ty.Any, ty.Any]]:
    """Yield (path, mark, value) of each value that has a mark of a type.

    Values in a union are not found, except in one with None.
    """
    origin, args = ty.get_origin(hint), ty.get_args(hint)
    if value is None:
        return
    if origin is ty.Annotated:
        for mark in args[1:]:
            if isinstance(mark, of):
                yield path, mark, value
    if origin is ty.Annotated or types.NoneType in args:
        yield from find(args[0], value, of, path)
    elif dataclasses.is_dataclass(hint):
        for name, each in fields_with(hint, of).items():
            yield from find(each, getattr(value, name), of, (*path, name))
    elif origin in (tuple, frozenset):
        for i, item in enumerate(value):
            yield from find(args[0], item, of, (*path, i))
    elif origin is Mapping:
        for key, item in value.items():
            yield from find(args[0], key, of, (*path, key))
            yield from find(args[1], item, of, (*path, key))
