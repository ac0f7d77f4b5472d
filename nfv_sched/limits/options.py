# SPDX-License-Identifier: Apache-2.0
"""Work out the limits of hosts and of the servers on them.

Limits come from the options and from the metadata of the host's aggregates.
Infinity means no limit.  No I/O.
"""

from collections.abc import Callable
import functools
import logging
import math
import typing as ty

from nfv_sched.limits import demand

LOG = logging.getLogger(__name__)

_KIND = '_nfv_sched_kind'

T = ty.TypeVar('T')


class Limits(ty.NamedTuple):
    """The limits of a host and of each server on it.

    Options and aggregate metadata have the names of the fields.
    """

    vswitch_ports_per_node: float
    vswitch_physical_ports: int
    vnics_per_guest: float
    sriov_vfs_per_guest: float
    pci_nics_per_guest: float
    network_services_per_node: float
    security_rules_per_node: float
    security_rules_per_port: float


@functools.lru_cache(maxsize=64)
def log_bad_number(name: str, value: str, needed: str) -> None:
    """Log a value in the metadata of an aggregate that is ignored, once."""
    # Some are read for each host of each request.
    LOG.warning('Aggregate metadata %s=%s is not a %s; ignored', name, value,
                needed)


def aggregate_numbers(host_state, name: str) -> list[float]:
    """Return the numbers under a key in the metadata of a host's aggregates.

    :returns: one for each aggregate that sets the key to a number; empty if
        the aggregates cannot be read
    """
    try:
        values = [aggregate.metadata.get(name)
                  for aggregate in host_state.aggregates]
    except Exception as exc:
        LOG.warning('The aggregates of host %s cannot be read: %s',
                    getattr(host_state, 'host', host_state), exc)
        return []
    numbers = []
    for value in values:
        if value is None:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if math.isnan(number):
            log_bad_number(name, str(value), 'number')
        else:
            numbers.append(number)
    return numbers


def aggregate_limit(host_state, name: str, default: float) -> float:
    """Return a host's lowest limit; infinity for 0 or less: no limit."""
    return min([
        number if number > 0 else math.inf
        # Nova takes the lowest of several as well (validate_num_values).
        for number in aggregate_numbers(host_state, name) or [default]])


def host_limit(conf, host_state, name: str) -> float:
    """Return a limit of ``[nfv_sched]``, or of the host's aggregates."""
    return aggregate_limit(host_state, name, conf.nfv_sched[name])


class PerAggregates(ty.Generic[T]):
    """A value by host that depends only on the aggregates of the host.

    It is worked out once for all hosts with the same aggregate objects, which
    Nova shares between hosts within one request only.

    :param work_out: called with the first such host; must not return None
    """

    __slots__ = ('_work_out', '_values', '_aggregates')

    def __init__(self, work_out: Callable[[ty.Any], T]):
        self._work_out = work_out
        # By the IDs of the aggregate objects of a host.
        self._values: dict[tuple[int, ...], T] = {}
        # Kept, so that Python does not give their IDs to other aggregates.
        self._aggregates: list = []

    def for_host(self, host_state) -> T:
        value = self._values.get(getattr(host_state, _KIND, None))
        return self._look_up(host_state) if value is None else value

    def _look_up(self, host_state) -> T:
        """Return the value for a new host; one alike may have been before."""
        try:
            aggregates = tuple(host_state.aggregates or ())
        except Exception:  # functions that read values in them log it
            aggregates = ()
        kind = tuple(map(id, aggregates))
        # Nova makes both the HostState and the aggregates for each request.
        if hasattr(host_state, '__dict__'):
            host_state.__dict__[_KIND] = kind
        if (value := self._values.get(kind)) is None:
            self._aggregates += aggregates
            value = self._values[kind] = self._work_out(host_state)
        return value


def defaults(conf) -> Limits:
    """Return the option values; 0 or less is not yet turned into infinity."""
    options = conf.nfv_sched
    return Limits(*(options[name] for name in Limits._fields))


def assumed_rules(conf) -> int:
    """Return ``security_rules_per_port``; ``ASSUMED_RULES`` if unlimited."""
    limit = conf.nfv_sched.security_rules_per_port
    return int(limit) if 1 <= limit < math.inf else demand.ASSUMED_RULES


def of_host(host_state, options: Limits) -> Limits:
    """Return the limits of a host; aggregate metadata overrides options."""
    limits = Limits(*(
        aggregate_limit(host_state, name, default)
        for name, default in zip(Limits._fields, options)))
    # Physical ports count against the limit, so the highest is the strictest.
    numbers = [
        number for number in aggregate_numbers(
            host_state, 'vswitch_physical_ports') if math.isfinite(number)]
    return limits._replace(vswitch_physical_ports=max(int(max(
        numbers, default=options.vswitch_physical_ports)), 0))


def by_host(options: Limits) -> PerAggregates[Limits]:
    return PerAggregates(functools.partial(of_host, options=options))
