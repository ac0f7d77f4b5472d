# SPDX-License-Identifier: Apache-2.0
"""The limits of a host and of the guests on it.

From the options, and from the metadata of the host's aggregates.  Infinity
means no limit.  No I/O.
"""

import functools
import math
import typing as ty

from nfv_sched.network import demand
from nfv_sched.nova import scheduler

_PHYSICAL_PORTS = 'vswitch_physical_ports'


class Limits(ty.NamedTuple):
    """The most that a host may carry, and that a guest on it may have.

    Options and aggregate metadata have the names of the fields.

    :ivar vswitch_ports_per_node: ports of the virtual switch
    :ivar vswitch_physical_ports: how many of them are physical
    :ivar vnics_per_guest: ports of the switch for one guest
    :ivar sriov_vfs_per_guest: virtual functions of a guest
    :ivar pci_nics_per_guest: physical functions of a guest
    :ivar network_services_per_node: DHCP servers and routers
    :ivar security_rules_per_node: security-group rules of all ports of the
        switch
    :ivar security_rules_per_port: security-group rules of one port of a guest
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
    """The options as they are set: not yet infinity for 0 or less.

    :param conf: configuration object with ``[nfv_sched]``
    """
    options = conf.nfv_sched
    return Limits(*(options[name] for name in Limits._fields))


def assumed_rules(conf) -> int:
    """How many security-group rules count for a port if that is not known.

    It is ``security_rules_per_port``, or ``ASSUMED_RULES`` without a limit.

    :param conf: configuration object with ``[nfv_sched]``
    """
    limit = conf.nfv_sched.security_rules_per_port
    return int(limit) if 1 <= limit < math.inf else demand.ASSUMED_RULES


def of_host(host_state, options: Limits) -> Limits:
    """The limits of a host.

    :param host_state: ``nova.scheduler.host_manager.HostState``, or another
        object with ``host`` and ``aggregates``
    :param options: values of the options, see :func:`defaults`
    """
    limits = Limits(*(
        scheduler.aggregate_limit(host_state, name, default)
        for name, default in zip(Limits._fields, options)))
    return limits._replace(
        vswitch_physical_ports=_physical_ports(host_state, options))


def _physical_ports(host_state, options: Limits) -> int:
    numbers = [
        number for number in scheduler.aggregate_numbers(
            host_state, _PHYSICAL_PORTS) if math.isfinite(number)]
    return max(int(max(numbers, default=options.vswitch_physical_ports)), 0)


def by_host(options: Limits) -> scheduler.PerAggregates[Limits]:
    """The limits of hosts, worked out once for those with equal aggregates.

    :param options: values of the options, see :func:`defaults`
    """
    return scheduler.PerAggregates(
        functools.partial(of_host, options=options))
