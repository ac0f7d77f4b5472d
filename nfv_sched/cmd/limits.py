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
"""The command ``nfv-sched limits show``."""

import argparse
from concurrent import futures
import contextlib
import fnmatch
import math
import typing as ty

from nfv_sched.cmd import cli
from nfv_sched.cmd import source

_EPILOG = """\
Reads the nova.conf of nova-scheduler: the compute nodes and aggregates come
from Nova's database, ports, rules, DHCP servers and routers from Neutron, and,
with [nfv_sched] ledger = placement, what is left for guests from Placement.

examples:
  nfv-sched limits show
  nfv-sched limits show --host 'compute-1*'
  nfv-sched limits show --full 90
  nfv-sched limits show -f json --config-file /etc/nova/nova.conf

exit code: 0, or 1 if something could not be read; what could is shown.
"""

_COLUMNS = (
    'Host', 'Ports', 'Port limit', 'Ports free', 'Rules', 'Rule limit',
    'Rules free', 'DHCP servers', 'Routers', 'Services limit', 'Source',
    'Age (s)', 'Note')


class Book(ty.NamedTuple):
    """Inventory and allocations of one resource class in a ledger.

    :ivar total: total of the inventory
    :ivar allocated: how much guests have allocated
    :ivar free: how much they can still allocate; negative if they have
        allocated too much
    """

    total: int
    allocated: int
    free: int


class Figures(ty.NamedTuple):
    """Use of one of the limits of a host.

    :ivar used: how much the host carries; None if not known
    :ivar limit: how much it may carry; infinity if there is no limit
    :ivar free: how much is left; None if not known
    """

    used: int | None
    limit: float
    free: float | None

    @property
    def fullness(self) -> float:
        """Part of the limit that is not free, in percent."""
        if self.free is None or math.isinf(self.limit):
            return 0.0
        return 100.0 * (1 - max(self.free, 0) / self.limit)

    def cells(self) -> tuple:
        """The cells of the table: used, limit and free."""
        return self.used, _shown(self.limit), _shown(self.free)


def _shown(number: float | None):
    if number is None:
        return None
    return 'unlimited' if math.isinf(number) else int(number)


class Show(source.Telling, cli.Lister):
    """Show how the limits of ports and rules stand on each host.

    Ports are those of the virtual switch, physical ones included; rules those
    of the security groups of these ports. What is free is what new guests can
    have: by the ledger in Placement where it is published, else by what
    Neutron shows. The note says of what more is allocated than there is.
    """

    epilog = _EPILOG

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--host', action='append', default=[], metavar='PATTERN',
            help='only these hosts; * and ? stand for anything; can be '
                 'repeated')
        parser.add_argument(
            '--full', type=float, metavar='PERCENT',
            help='only hosts of whose ports or rules so much is taken')
        cli.add_configuration(parser)
        return parser

    def take_action(self, parsed_args):
        source.configure(cli.configuration(parsed_args))
        return _COLUMNS, self._rows(parsed_args)

    def _rows(self, parsed_args) -> list[tuple]:
        from nfv_sched.network import limits
        from nfv_sched.network import neutron
        from nfv_sched.nova import database
        conf = database.CONF
        try:
            nodes, failures = database.compute_nodes()
        except Exception as exc:
            self._missing.append(str(source.database_error(exc)))
            return []
        self._missing += failures
        patterns = parsed_args.host
        nodes = sorted(
            (node for node in nodes if not patterns or any(
                fnmatch.fnmatchcase(node.host, pattern)
                for pattern in patterns)), key=lambda node: node.host)
        if patterns and not nodes:
            self._missing.append('no compute node matches --host')
        snapshot = None
        try:
            snapshot = neutron.read_snapshot(conf)
        except neutron.NeutronError as exc:
            self._missing.append(f'Neutron cannot be read: {exc}')
        books = {}
        if conf.nfv_sched.ledger == 'placement' and nodes:
            books = self._books(conf, [node.uuid for node in nodes])
        options = limits.defaults(conf)
        rows = []
        for node in nodes:
            row, fullness = _row(
                node, limits.of_host(node, options), snapshot,
                books.get(node.uuid))
            if parsed_args.full is None or fullness >= parsed_args.full:
                rows.append(row)
        return rows

    def _books(self, conf, computes: list[str]) -> dict[str, dict[str, Book]]:
        """UUID of each compute node with a ledger -> class -> its book."""
        from nfv_sched.ledger import client as ledger_client
        threads = conf.nfv_sched.ledger_threads
        try:
            with contextlib.closing(
                    ledger_client.Client(conf, threads)) as client:
                published = {provider.compute: provider.uuid
                             for provider in client.providers()}
                known = [uuid for uuid in computes if uuid in published]
                with futures.ThreadPoolExecutor(threads) as pool:
                    return dict(zip(known, pool.map(
                        lambda uuid: _book(client, published[uuid]), known)))
        except ledger_client.PlacementError as exc:
            self._missing.append(f'Placement cannot be read: {exc}')
            return {}


def _book(client, provider: str) -> dict[str, Book]:
    """Resource class -> its book, of one provider of the ledger."""
    from nfv_sched.ledger import client as ledger_client
    try:
        _generation, inventories = client.inventories(provider)
        _generation, allocations = client.allocations(provider)
    except ledger_client.NotFoundError:
        return {}  # gone since it was listed
    books = {}
    for name, inventory in inventories.items():
        allocated = sum(
            amounts.get(name, 0) for amounts in allocations.values())
        books[name] = Book(
            inventory['total'], allocated,
            inventory['total'] - inventory['reserved'] - allocated)
    return books


def _row(node, limits, snapshot, books: dict[str, Book] | None):
    """The row of a host, and the fullness of its fuller limit in percent."""
    from nfv_sched.ledger import names
    books = books or {}
    shown = snapshot.host(node.host) if snapshot is not None else None
    ports = _figures(
        shown and shown.vswitch_ports + limits.vswitch_physical_ports,
        limits.vswitch_ports_per_node, books.get(names.PORTS))
    rules = _figures(
        shown and shown.rules, limits.security_rules_per_node,
        books.get(names.RULES))
    sources = ([] if shown is None else [f'neutron ({snapshot.source})']) + (
        ['ledger'] if books else [])
    return (
        node.host, *ports.cells(), *rules.cells(),
        shown.dhcp_servers if shown and snapshot.dhcp_known else None,
        shown and shown.routers, _shown(limits.network_services_per_node),
        ', '.join(sources) or None,
        None if snapshot is None else round(snapshot.age(), 1),
        ', '.join(filter(None, (
            _overdrawn('ports', ports, books.get(names.PORTS)),
            _overdrawn('rules', rules, books.get(names.RULES))))) or None,
    ), max(ports.fullness, rules.fullness)


def _overdrawn(what: str, figures: Figures, book: Book | None) -> str:
    """The note if more is allocated than there is; else empty."""
    if book is None:
        return ''
    # The service raises a total to what is allocated.
    total = min(figures.limit, book.total)
    if book.allocated <= total:
        return ''
    return f'{book.allocated} {what} allocated of {total:g}'


def _figures(used: int | None, limit: float, book: Book | None) -> Figures:
    if math.isinf(limit):
        return Figures(used, limit, math.inf)
    if book is not None:
        return Figures(used, limit, book.free)
    return Figures(
        used, limit, None if used is None else max(limit - used, 0))
