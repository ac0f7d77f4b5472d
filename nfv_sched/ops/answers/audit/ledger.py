# SPDX-License-Identifier: Apache-2.0
"""Compare the ledger in Placement with what Neutron has bound to a host."""

from nfv_sched.ledger import inventory
from nfv_sched.limits import names
from nfv_sched.limits import usage
from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import snapshot


def check(site: hosts.Site) -> hosts.Findings:
    """Compare the ledger with Neutron, unless a server comes or goes."""
    if (not site.whole.has_ledgers or not site.host.providers
            or len(site.steady) < len(site.servers)
            or any(not move.settled for move in site.moves)):
        return
    network = site.host.network
    if network is None or network.vswitch_ports is None:
        return
    uuid = names.provider_uuid(site.host.uuid)
    ledger = next((provider for provider in site.host.providers
                   if provider.uuid == uuid), None)
    if ledger is None:
        yield site.finding(values.LEDGER, 'has no ledger in Placement')
        return
    for name, account in _accounts(site, network, uuid).items():
        have = ledger.inventories.get(name)
        capacity = 0 if have is None else have.capacity
        expected = account.inventory().capacity
        if capacity != expected:
            yield site.finding(
                values.LEDGER, f'{name}: {capacity} for servers by the '
                f'ledger, {expected} by Neutron')


def _accounts(site: hosts.Site, network: snapshot.HostNetwork,
              ledger: str) -> dict[str, inventory.Account]:
    """Return limit and usage of ports, and of rules if those are known."""
    guests = {}
    rules_known = network.security_rules is not None
    for server in site.servers:
        ports = occupied.vswitch_ports(server)
        rules_known = rules_known and all(
            port.rules is not None for port in ports)
        guests[server.uuid] = usage.GuestUsage(
            tuple(port.id for port in ports),
            sum(port.rules or 0 for port in ports))
    allocations = {
        consumer: by_provider[ledger]
        for consumer, by_provider in site.whole.holders.get(ledger, ())}
    accounts = inventory.accounts(
        inventory.Load(network.vswitch_ports or 0,
                       network.security_rules or 0, guests),
        inventory.by_server(allocations, {
            move.uuid: move.server for move in site.cloud.moves or ()}),
        view.limits_of(site.cloud, site.host, site.metadata))
    if not rules_known:
        del accounts[names.RULES]
    return accounts
