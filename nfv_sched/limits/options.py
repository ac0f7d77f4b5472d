# SPDX-License-Identifier: Apache-2.0
"""Work out the limits of hosts and of the servers on them.

Limits come from the options and from the metadata of the host's aggregates.
Infinity means no limit.  No I/O.
"""

import functools
import math
import typing as ty

from nfv_sched.limits import demand
from nfv_sched.nova import scheduler


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
        scheduler.aggregate_limit(host_state, name, default)
        for name, default in zip(Limits._fields, options)))
    # Physical ports count against the limit, so the highest is the strictest.
    numbers = [
        number for number in scheduler.aggregate_numbers(
            host_state, 'vswitch_physical_ports') if math.isfinite(number)]
    return limits._replace(vswitch_physical_ports=max(int(max(
        numbers, default=options.vswitch_physical_ports)), 0))


def by_host(options: Limits) -> scheduler.PerAggregates[Limits]:
    return scheduler.PerAggregates(functools.partial(of_host, options=options))
