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
"""The values of Nova's versioned objects, read past their accessors.

An accessor costs a call and a check, and one of a field that is not set may
ask the database.  The values are in attributes of the object that are named
after the fields by oslo.versionedobjects; that is known here and nowhere else.
"""

from collections.abc import Callable
from collections.abc import Mapping
import operator
import typing as ty

_PREFIX = '_obj_'


def key(name: str) -> str:
    """Where the value of a field is in the ``__dict__`` of its object.

    :param name: name of the field
    """
    return _PREFIX + name


def values_of(*names: str) -> Callable[[Mapping[str, ty.Any]], tuple]:
    """What reads the values of several fields at once.

    It is called with the ``__dict__`` of an object, and raises ``KeyError`` if
    one of the fields is not set.

    :param names: names of the fields, two or more
    """
    return operator.itemgetter(*map(key, names))


def get(obj, name: str) -> ty.Any:
    """The value of a field of any object; never raises.

    :param obj: a versioned object, whatever else has such an attribute, or
        None
    :param name: name of the field
    :returns: None if it is not set or missing
    """
    if obj is None:
        return None
    value = obj.__dict__.get(_PREFIX + name) if hasattr(
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
    """The value of a field through its accessor.

    :param obj: a versioned object
    :param name: name of the field
    :param default: what is returned if it is not set, missing or None
    """
    try:
        value = getattr(obj, name)
    except (AttributeError, NotImplementedError):
        return default
    return default if value is None else value
