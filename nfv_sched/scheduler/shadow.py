# SPDX-License-Identifier: Apache-2.0
"""Find the filters and weighers that are in shadow on a host.

They decide, and change nothing: ``[nfv_sched] shadow``, or the metadata of
aggregates, names them.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import itertools

from oslo_log import log as logging

from nfv_sched.base import conf
from nfv_sched.base import extensions
from nfv_sched.nova import scheduler

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF
conf.register_opts(CONF)

#: Name of the option, and of the metadata of aggregates.
OPTION = 'shadow'

NOTHING: frozenset[str] = frozenset()


def by_option() -> frozenset[str]:
    """Return the names in ``[nfv_sched] shadow``."""
    return frozenset(CONF.nfv_sched.shadow)


@functools.cache
def known() -> frozenset[str]:
    """Return the names of the filters and weighers of nfv-sched."""
    return frozenset([cls.__name__ for cls in itertools.chain(
        extensions.classes('nfv_sched.filters'),
        extensions.classes('nfv_sched.weighers'))])


def unknown(names: Iterable[str]) -> list[str]:
    """Return those names that no filter or weigher of nfv-sched has."""
    return sorted(set(names) - known())


@functools.lru_cache(maxsize=64)
def log_unknown(names: frozenset[str], where: str) -> None:
    """Log names that no filter or weigher of nfv-sched has, once."""
    for name in unknown(names):
        LOG.error('%s: %s is not a filter or weigher of nfv-sched, and has no '
                  'effect: check the spelling', where, name)


def check_option() -> None:
    """Log what is wrong with the option; for filters that are made."""
    try:
        log_unknown(by_option(), f'[nfv_sched] {OPTION}')
    except Exception:
        LOG.exception('[nfv_sched] %s cannot be checked', OPTION)


def _names_on(default: frozenset[str], host_state) -> frozenset[str]:
    """Return the names by the aggregates of a host.

    :param default: the names if no aggregate has any
    """
    lists = scheduler.aggregate_lists(host_state, OPTION)
    if not lists:
        return default
    names = frozenset(itertools.chain.from_iterable(lists))
    log_unknown(names, f'Aggregate metadata {OPTION}')
    return names


class InShadow:
    """The filters and weighers in shadow, for one server of a request.

    :param host_states: all hosts of the request

    :ivar anywhere: whether anything may be in shadow on any host
    """

    __slots__ = ('anywhere', '_everywhere', '_by_host')

    def __init__(self, host_states: Iterable):
        self._everywhere = by_option()
        self._by_host: scheduler.PerAggregates[frozenset[str]] | None = None
        if scheduler.aggregates_have(host_states, OPTION):
            self._by_host = scheduler.PerAggregates(
                functools.partial(_names_on, self._everywhere))
        self.anywhere = bool(self._everywhere) or self._by_host is not None

    def on(self, host_state) -> frozenset[str]:
        """Return the names of those that are in shadow on a host."""
        if self._by_host is None:
            return self._everywhere
        return self._by_host.for_host(host_state)

    def groups(
        self, host_states: Sequence,
    ) -> Iterator[tuple[frozenset[str], list]]:
        """Yield hosts on which the same names are in shadow, with these."""
        if self._by_host is None:
            yield self._everywhere, list(host_states)
            return
        hosts: dict[frozenset[str], list] = {}
        for host_state in host_states:
            hosts.setdefault(self.on(host_state), []).append(host_state)
        yield from hosts.items()
