# SPDX-License-Identifier: Apache-2.0
"""Load the rules: placement policies, a class for each.

They come from the entry-point group ``nfv_sched.rules``, to which other
packages can add theirs.
"""

from collections.abc import Mapping
import functools
import logging
import typing as ty

from nfv_sched.base import extensions
from nfv_sched.base import extra_specs as nfv_extra_specs
from nfv_sched.fit.numa import rule as numa_rule

LOG = logging.getLogger(__name__)


@functools.cache
def classes() -> tuple[type[numa_rule.Rule], ...]:
    """Return rules by ``order`` and name; log entry points that are none."""
    rule_classes = []
    for cls in extensions.classes('nfv_sched.rules'):
        if isinstance(cls, type) and issubclass(cls, numa_rule.Rule) and all(
                hasattr(cls, name) for name in ('name', 'filters', 'order')):
            rule_classes.append(cls)
        else:
            LOG.error('%s of nfv_sched.rules is not a rule; ignored', cls)
    # No decision may depend on the order of the installed packages.
    return tuple(sorted(rule_classes, key=lambda cls: (cls.order, cls.name)))


def filters() -> list[str]:
    """Return the first filter of each rule, in the order to enable them."""
    return list(dict.fromkeys(cls.filters[0] for cls in classes()))


def from_request(
    request_parts: numa_rule.RequestParts,
) -> tuple[numa_rule.Rule, ...]:
    """Return the rules of a request; raise ``RequestError`` if it is wrong."""
    return tuple(rule for cls in classes()
                 for rule in cls.from_request(request_parts))


def faults(extra_specs: Mapping[str, ty.Any]) -> list[nfv_extra_specs.Fault]:
    errors = list(nfv_extra_specs.parse(extra_specs).errors)
    for cls in classes():
        errors += cls.faults(extra_specs)
    return errors
