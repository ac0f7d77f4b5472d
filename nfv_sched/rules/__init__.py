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
"""Placement policies, a class for each.

Those of the entry-point group ``nfv_sched.rules``: anybody can add one.
"""

from collections.abc import Mapping
import functools
import typing as ty

from oslo_log import log as logging

from nfv_sched import extensions
from nfv_sched import policy
from nfv_sched.rules import base

LOG = logging.getLogger(__name__)


@functools.cache
def classes() -> tuple[type[base.Rule], ...]:
    """The classes of all rules, in the order in which they are asked."""
    found = []
    for cls in extensions.classes('nfv_sched.rules'):
        if isinstance(cls, type) and issubclass(cls, base.Rule) and all(
                hasattr(cls, name) for name in ('name', 'filters', 'order')):
            found.append(cls)
        else:
            LOG.error('%s of nfv_sched.rules is no rule and left out', cls)
    return tuple(sorted(found, key=lambda cls: (cls.order, cls.name)))


def of(asked: base.Asked) -> tuple[base.Rule, ...]:
    """The rules of a request.

    :param asked: what it says
    :raises nfv_sched.rules.base.RequestError: if it contradicts itself
    """
    return tuple(rule for cls in classes() for rule in cls.of(asked))


def faults(extra_specs: Mapping[str, ty.Any]) -> list[str]:
    """What is wrong with the keys of a flavor; empty if nothing is.

    :param extra_specs: its extra specs
    """
    found = list(policy.parse(extra_specs).errors)
    for cls in classes():
        found += cls.faults(extra_specs)
    return found


@functools.cache
def keys() -> frozenset[str]:
    """All keys of flavors that a rule reads.

    One that ends with a point takes something more.
    """
    return frozenset(key for cls in classes() for key in cls.keys)
