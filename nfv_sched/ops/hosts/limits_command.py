# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched limits show``."""

import argparse
from collections.abc import Iterator
import math
import typing as ty

from nfv_sched.ledger import names
from nfv_sched.ops.cli import base
from nfv_sched.ops.cloud import source
from nfv_sched.ops.snapshot import snapshot

_EPILOG = """\
examples:
  nfv-sched limits show
  nfv-sched limits show --host 'compute-1*'
  nfv-sched limits show --full 90
  nfv-sched limits show --from cloud.json.gz
  nfv-sched limits show -f json --config-file /etc/nova/nova.conf

""" + source.EXIT_CODES

_COLUMNS = (
    'Host', 'Ports', 'Port limit', 'Ports free', 'Rules', 'Rule limit',
    'Rules free', 'DHCP servers', 'Routers', 'Services limit', 'Source',
    'Age (s)', 'Note')


class LimitUse(ty.NamedTuple):
    """Usage of one of the limits of a host.

    :ivar used: usage of the host; None if it is not known
    :ivar limit: infinity if there is no limit
    :ivar free: None if it is not known
    """

    used: int | None
    limit: float
    free: float | None

    @property
    def percent_used(self) -> float:
        """The part of the limit that is not free, in percent."""
        if self.free is None or math.isinf(self.limit):
            return 0.0
        return 100.0 * (1 - max(self.free, 0) / self.limit)

    def cells(self) -> tuple:
        """Return the cells of the table: used, limit and free."""
        return self.used, _shown(self.limit), _shown(self.free)


def _shown(number: float | None) -> int | str | None:
    if number is None:
        return None
    return 'unlimited' if math.isinf(number) else int(number)


class ShowLimits(source.Looking, base.Lister):
    """Show the use of port and security group rule limits on each host.

    Ports are those of the virtual switch, physical ones included; rules those
    of the security groups of these ports. What is free is what new guests can
    have: by the ledger in Placement where it is published, else by what
    Neutron shows. The note says of what more is allocated than there is.
    """

    epilog = _EPILOG

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        source.add_hosts(parser)
        parser.add_argument(
            '--full', type=float, metavar='PERCENT',
            help='only hosts of whose ports or rules so much is taken')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple:
        return _COLUMNS, list(self._rows(parsed_args))

    def _rows(self, parsed_args: argparse.Namespace) -> Iterator[tuple]:
        from nfv_sched.ops.hosts import view
        cloud = self.cloud(parsed_args)
        metadata = view.metadata_by_host(cloud)
        has_ledger = view.option(cloud, 'ledger') == 'placement'
        age = snapshot.age(cloud.taken)
        for host in source.hosts(cloud, parsed_args.host, parsed_args.az,
                                 parsed_args.aggregate):
            limits = view.limits_of(cloud, host, metadata.get(host.name, ()))
            row, percent = _row(
                host, limits, _inventories(host) if has_ledger else {}, age)
            if parsed_args.full is None or percent >= parsed_args.full:
                yield row


def _inventories(host: snapshot.Host) -> ty.Mapping[str, snapshot.Inventory]:
    """Return the inventories of the ledger of a host, by resource class."""
    uuid = names.provider_uuid(host.uuid)
    return next((provider.inventories for provider in host.providers
                 if provider.uuid == uuid), {})


def _row(host: snapshot.Host, limits: ty.Any,
         ledger: ty.Mapping[str, snapshot.Inventory],
         age: int | None) -> tuple[tuple, float]:
    """Return the row of a host, and the higher of its percentages used."""
    network = host.network or snapshot.HostNetwork()
    is_read = network.vswitch_ports is not None
    ports = _figures(
        network.vswitch_ports + limits.vswitch_physical_ports
        if is_read else None,
        limits.vswitch_ports_per_node, ledger.get(names.PORTS))
    rules = _figures(network.security_rules, limits.security_rules_per_node,
                     ledger.get(names.RULES))
    sources = [name for name, is_there in (
        ('neutron', is_read), ('ledger', ledger)) if is_there]
    notes = [note for note in (
        _overdrawn('ports', ports, ledger.get(names.PORTS)),
        _overdrawn('rules', rules, ledger.get(names.RULES))) if note]
    return (
        host.name, *ports.cells(), *rules.cells(), network.dhcp_servers,
        network.routers, _shown(limits.network_services_per_node),
        ', '.join(sources) or None, age if is_read else None,
        ', '.join(notes) or None,
    ), max(ports.percent_used, rules.percent_used)


def _overdrawn(noun: str, figures: LimitUse,
               inventory: snapshot.Inventory | None) -> str:
    """Return a note if more is allocated than the limit; else ``''``."""
    if inventory is None:
        return ''
    # nfv-sched-ledger raises a total that is below the allocations.
    total = min(figures.limit, inventory.total)
    if inventory.used <= total:
        return ''
    return f'{inventory.used} {noun} allocated of {total:g}'


def _figures(used: int | None, limit: float,
             inventory: snapshot.Inventory | None) -> LimitUse:
    if math.isinf(limit):
        return LimitUse(used, limit, math.inf)
    if inventory is not None:
        return LimitUse(used, limit, inventory.capacity - inventory.used)
    return LimitUse(
        used, limit, None if used is None else max(limit - used, 0))
