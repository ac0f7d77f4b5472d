# SPDX-License-Identifier: Apache-2.0
"""Read the fields of Nova's versioned objects without their accessors.

An accessor costs a call and a check, and may load a field that is not set from
the database.  oslo.versionedobjects keeps the value of a field in the
``__dict__`` of the object, under a name with a prefix.  Only this module knows
that.
"""

from collections.abc import Callable, Mapping
import operator
import typing as ty

#: Prefix of the keys.
PREFIX = '_obj_'


def key(name: str) -> str:
    return PREFIX + name


def values_of(*names: str) -> Callable[[Mapping[str, ty.Any]], tuple]:
    """Return a function that reads the values of several fields at once."""
    # It takes the __dict__ of an object, and returns a tuple (of two names or
    # more). It raises KeyError if a field is not set.
    return operator.itemgetter(*map(key, names))


def get(obj, name: str) -> ty.Any:
    """Return a field or attribute; None if unset or missing; never raise."""
    if obj is None:
        return None
    value = obj.__dict__.get(PREFIX + name) if hasattr(
        obj, '__dict__') else None
    if value is not None:
        return value
    if name in getattr(obj, 'fields', ()):
        # Not set, or None. Reading it might go to the database.
        return None
    try:
        return getattr(obj, name, None)
    except Exception:
        return None


def read(obj, name: str, default=None) -> ty.Any:
    """Return a field by its accessor; ``default`` if unset or None."""
    try:
        value = getattr(obj, name)
    except (AttributeError, NotImplementedError):
        return default
    return default if value is None else value
