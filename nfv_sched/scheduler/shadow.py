# SPDX-License-Identifier: Apache-2.0
"""Find the filters and weighers that are in shadow.

They decide, and change nothing: ``[nfv_sched] shadow`` names them.
"""

from collections.abc import Iterable
import functools
import itertools

from oslo_log import log as logging

from nfv_sched.base import extensions
from nfv_sched.nova import scheduler

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF

#: Name of the option.
OPTION = 'shadow'


def by_option() -> frozenset[str]:
    return frozenset(CONF.nfv_sched.shadow)


@functools.cache
def known() -> frozenset[str]:
    return frozenset([cls.__name__ for cls in itertools.chain(
        extensions.classes('nfv_sched.filters'),
        extensions.classes('nfv_sched.weighers'))])


def unknown(names: Iterable[str]) -> list[str]:
    return sorted(set(names) - known())


@functools.lru_cache(maxsize=64)
def _log_unknown(names: frozenset[str]) -> None:
    for name in unknown(names):
        LOG.error('[nfv_sched] %s: %s is not a filter or weigher of '
                  'nfv-sched, and has no effect: check the spelling',
                  OPTION, name)


def check_option() -> None:
    """Log what is wrong with the option; for filters that are made."""
    try:
        _log_unknown(by_option())
    except Exception:
        LOG.exception('[nfv_sched] %s cannot be checked', OPTION)
