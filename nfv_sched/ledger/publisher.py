# SPDX-License-Identifier: Apache-2.0
"""Keep the ledger in Placement up to date with Nova and Neutron.

A round reads the providers of the ledger, the compute nodes, Neutron, the
servers for which Nova has plugged ports, and the allocations from each
provider, in this order, and writes the inventories that have to change
(:mod:`nfv_sched.ledger.inventory`).  The providers come first:
otherwise one that is created after the compute nodes were read would look as
if its compute node were gone.  Before more is reserved than in the round
before, the ports concerned are read once more, as they may be leaving.

Several processes may do rounds at once.  They come to the same results from
the same figures, every write is guarded by the generation of the provider, and
values that are right already are not written again.  A process with older
data from Neutron must not undo what another has written.  So more capacity
is published only if nobody else has published anything since before Neutron
was read: the generation is still the one that was listed first, or, because
every server that arrives changes that, the inventories are still those of the
round before.  Otherwise the host waits for the next round.  Less capacity is
always published.  (Two changes of others that cancel each other out within one
round are not noticed; the next round corrects the consequences.)

No provider is deleted: nova-compute caches the providers below its own, and
cannot report to Placement while one of them is missing.

If Neutron cannot be read, a round changes nothing.  The same is true of the
hosts of a cell whose database does not answer.
"""

import collections
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent import futures
import contextlib
import dataclasses
import enum
import random
import threading
import time
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from nfv_sched.base import strings
from nfv_sched.ledger import client as ledger_client
from nfv_sched.ledger import inventory as ledger_inventory
from nfv_sched.ledger import metrics
from nfv_sched.ledger import neutron
from nfv_sched.ledger import nodes as ledger_nodes
from nfv_sched.limits import names as ledger_names
from nfv_sched.limits import options as nfv_limits
from nfv_sched.limits import usage
from nfv_sched.nova import database
from nfv_sched.nova import records
from nfv_sched.nova import scheduler

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF

_BARE_METAL = 'ironic'
# Attempts for a host in one round if others write at the same time.
_ATTEMPTS = 8
# Removing allocations does not change the generation. So a host where nothing
# else has changed is read again after at most so many rounds.
ROUNDS = 10
# Seconds between two log lines about the progress of a round.
_PROGRESS = 10.0
_NAMED = 5  # hosts that get lines of their own in the log
_WORDS = {ledger_names.PORTS: 'ports', ledger_names.RULES: 'rules'}


class RoundError(strings.MaskedError):
    """A round could not be completed."""


class Action(enum.Enum):
    CREATED = 'created'
    CHANGED = 'changed'
    UNCHANGED = 'unchanged'
    #: More capacity has to be published, but another process has written
    #: meanwhile; the next round does it.
    LATER = 'later'
    REMOVED = 'removed'
    #: Its compute node is gone, but servers still have allocations.
    IN_USE = 'in use'
    #: Its compute node has no resource provider yet.
    WAITING = 'waiting'
    #: Bare metal, or several compute nodes: not possible in the ledger.
    LEFT_OUT = 'left out'
    FAILED = 'failed'


class HostReport(ty.NamedTuple):
    #: name of the compute service; of the provider if the compute node is gone
    host: str
    action: Action
    #: resource class -> account; empty if not worked out
    accounts: dict[str, ledger_inventory.Account]
    note: str = ''  #: the reason, and other remarks; may be empty

    @property
    def overdrawn(self) -> str:
        return ', '.join(
            f'{account.allocated} {_word(name)} of {account.limit:g}'
            for name, account in self.accounts.items() if account.overdrawn)


class RoundReport(ty.NamedTuple):
    hosts: list[HostReport]  #: reports, sorted by name of the host
    #: errors that concern no single host, such as a cell that does not answer
    failures: list[str]
    took: float  #: duration in seconds

    @property
    def failed(self) -> bool:
        return bool(self.failures) or any(
            report.action is Action.FAILED for report in self.hosts)


class _LastResult(ty.NamedTuple):
    generation: int
    load: ledger_inventory.Load
    uncovered: dict[str, tuple[int, int]]
    limits: nfv_limits.Limits
    accounts: dict[str, ledger_inventory.Account]
    inventories: dict[str, dict]  # in Placement
    rounds: int  # until the host is read again in any case
    wasteful: bool  # whether servers have unused allocations

    def holds(self, provider: ledger_client.ProviderRow | None,
              load: ledger_inventory.Load,
              host_limits: nfv_limits.Limits) -> bool:
        """Return whether nothing has changed, as far as can be known."""
        # The generation stays the same when allocations are removed; without a
        # query of them that is not noticed.
        return provider is not None and self.rounds > 0 and (
            self.generation, self.load, self.limits,
        ) == (provider.generation, load, host_limits)


class _HostNodes(ty.NamedTuple):
    column: str | None  # of the database
    topology: ty.Any  # ``nova.objects.NUMATopology``, or None
    #: resource class -> total; None if the column cannot be read
    totals: dict[str, int] | None


class _State(ty.NamedTuple):
    generation: int
    held: dict[str, ledger_names.Held]
    inventories: dict[str, dict]
    new: bool = False  # just created, or still to be created


class Publisher:
    """A publisher of the ledger, which brings it up to date round by round.

    For use by one thread, in the process that made it.

    :param stopped: once this is set, a round ends with an error
    """

    def __init__(self, conf=CONF, stopped: threading.Event | None = None):
        self._conf = conf
        self._stopped = stopped or threading.Event()
        self._client: ledger_client.Client | None = None
        self._reader: neutron.Reader | None = None
        self._snapshot: usage.Snapshot | None = None
        self._doubts = neutron.ReadingCheck(conf)
        self._defined = False
        self._number = 0  # of the rounds that have read Neutron
        self._last_results: dict[str, _LastResult] = {}
        # UUID of a provider -> UUID of a consumer -> last sight.
        self._sights: dict[str, dict[str, ledger_inventory.Sight]] = {}
        # Of this round: ports on the switch by name of the host, and servers
        # by port; host NUMA nodes, and what servers have pinned of them, by
        # name of the host.
        self._ports: dict[str, list[usage.NeutronPort]] = {}
        self._servers: dict[str, str] = {}
        self._nodes: dict[str, _HostNodes] = {}
        self._unknown: set[str] = set()  # hosts of which pins were not read
        self._pins: dict[str, dict[str, dict[str, int]]] = {}
        self._reader_lock = threading.Lock()
        self._traced = threading.Event()
        self._instances: dict[str, str] = {}
        self._left_out: frozenset[str] = frozenset()

    def close(self) -> None:
        client, self._client = self._client, None
        reader, self._reader = self._reader, None
        for connection in filter(None, (client, reader)):
            connection.close()
        self._defined = False

    def round(self, dry_run: bool = False) -> RoundReport:
        """Do a round.

        :raises RoundError: if Neutron, Placement or Nova's database cannot be
            used; changes written before that stay
        """
        began = time.monotonic()
        try:
            return self._round(dry_run, began)
        except RoundError:
            self.close()
            raise
        except (neutron.NeutronError, ledger_client.PlacementError) as exc:
            self.close()
            raise RoundError(str(exc)) from exc

    def _round(self, dry_run: bool, began: float) -> RoundReport:
        if self._client is None:
            self._client = ledger_client.Client(
                self._conf, self._conf.nfv_sched.ledger_threads)
        if not self._defined and not dry_run:
            self._client.define()
            self._defined = True
        published = {provider.parent: provider
                     for provider in self._client.providers()}
        try:
            nodes, failures = database.compute_nodes()
        except Exception as exc:
            raise RoundError(f"Nova's database cannot be read: {exc}") from exc
        # Cells that do not answer do not keep the hosts of others from being
        # brought up to date.
        if failures and not nodes:
            raise RoundError("Nova's database cannot be read: "
                             + '; '.join(failures))
        chosen, left_out = self._choose(nodes)
        if self._reader is None:
            self._reader = neutron.Reader(
                self._conf, self._stopped, self._doubts)
        self._snapshot = self._reader.read(self._snapshot)
        self._number += 1
        self._traced.clear()
        readable, unread = self._attribute(chosen)
        failures = failures + unread
        if not dry_run:
            self._client.define_nodes(
                name for host_nodes in self._nodes.values()
                for name in host_nodes.totals or ())
        host_limits = nfv_limits.by_host(nfv_limits.defaults(self._conf))
        present = {node.uuid for node in nodes}
        reports: list[HostReport] = []
        # In this thread, so that bad values of an aggregate are logged once.
        for tasks in (
            # The compute nodes of a cell that does not answer would look as if
            # they were gone.
            [] if failures else [
                (provider.name, self._retire, provider)
                for compute, provider in published.items()
                if compute not in present],
            [(host, self._leave_out, host, note, [
                published[node.uuid] for node in host_nodes
                if node.uuid in published])
             for host, note, host_nodes in left_out],
            [(node.host, self._host, node, published.get(node.uuid),
              host_limits.for_host(node)) for node in readable],
        ):
            reports += self._map_in_threads(
                lambda task: self._report(*task, dry_run), tasks, began)
        self._forget({ledger_names.provider_uuid(node.uuid)
                      for node in chosen})
        reports.sort(key=lambda report: report.host)
        return RoundReport(reports, failures, time.monotonic() - began)

    def _attribute(
        self, nodes: list[database.ComputeNode],
    ) -> tuple[list[database.ComputeNode], list[str]]:
        """Attribute ports to servers; return what can be read, and errors."""
        ports = self._ports = self._snapshot.switch_ports()
        try:
            self._servers, unread = records.plugged_servers(
                (node, [port.id for port in ports[node.host]])
                for node in nodes if node.host in ports)
            self._nodes = {
                node.host: self._nodes[node.host] if node.host in self._nodes
                and self._nodes[node.host].column == node.numa_topology
                else _nodes_of(node) for node in nodes}
            self._pins, silent = self._pinned([
                node for node in nodes if self._nodes[node.host].totals
                and node.cell.uuid not in unread])
            # Ports do not wait for them.
            self._unknown = {
                node.host for node in nodes if node.cell.uuid in silent}
        except Exception as exc:
            raise RoundError(f"Nova's database cannot be read: {exc}") from exc
        readable = [node for node in nodes if node.cell.uuid not in unread]
        if unread and not readable:
            raise RoundError("Nova's database cannot be read: "
                             + '; '.join(unread.values()))
        return readable, [*unread.values(), *silent.values()]

    def _pinned(
        self, nodes: list[database.ComputeNode],
        servers: Collection[str] | None = None,
    ) -> tuple[dict[str, dict[str, dict[str, int]]], dict[str, str]]:
        """Return what servers have pinned, by host, server and resource class.

        :returns: also UUID of a cell that cannot be read -> error text
        """
        stored, unread = records.pinned_cells(nodes, servers)
        pins: dict[str, dict[str, dict[str, int]]] = {}
        for host, of_host in stored.items():
            for server, cells in of_host.items():
                host_nodes = self._nodes[host]
                try:
                    amounts = ledger_nodes.pinned(
                        host_nodes.topology, host_nodes.totals or {}, cells)
                except records.MALFORMED as exc:
                    LOG.debug('The NUMA nodes of server %s cannot be read: %s',
                              server, exc)
                else:
                    pins.setdefault(host, {})[server] = amounts
        return pins, unread

    def _choose(
        self, nodes: Iterable[database.ComputeNode],
    ) -> tuple[list[database.ComputeNode],
               list[tuple[str, str, list[database.ComputeNode]]]]:
        """Choose the compute nodes that the ledger can have.

        Bare metal is left out, and hosts with several compute nodes: Neutron
        binds ports to the host, not to one of them.

        :returns: (compute nodes; (host, reason, its compute nodes) of each
            host that is left out)
        """
        by_host: dict[str, list] = {}
        for node in nodes:
            by_host.setdefault(node.host, []).append(node)
        chosen, left_out = [], []
        for host, host_nodes in by_host.items():
            if any(node.hypervisor_type.lower() == _BARE_METAL
                   for node in host_nodes):
                left_out.append((host, 'manages bare metal', host_nodes))
            elif len(host_nodes) > 1:
                left_out.append(
                    (host, 'has several compute nodes', host_nodes))
            else:
                chosen += host_nodes
        names = frozenset(host for host, _note, _nodes in left_out)
        if names - self._left_out:
            LOG.info('Hosts that have no place in the ledger, because they '
                     'manage bare metal or have several compute nodes: %s',
                     strings.some(names))
        self._left_out = names
        return chosen, left_out

    def _map_in_threads(self, function, items: list, began: float) -> list:
        """Call a function with each item in threads; return results unordered.

        :raises RoundError: if the publisher is stopped
        """
        results: list = []
        if not items:
            return results
        with futures.ThreadPoolExecutor(
            min(self._conf.nfv_sched.ledger_threads, len(items)),
            thread_name_prefix='nfv-sched-ledger',
        ) as pool:
            pending = {pool.submit(function, item) for item in items}
            last_logged = max(time.monotonic(), began + _PROGRESS)
            try:
                while pending:
                    # A short timeout, to notice that the service is to stop.
                    finished, pending = futures.wait(
                        pending, timeout=1.0,
                        return_when=futures.FIRST_EXCEPTION)
                    results += [future.result() for future in finished]
                    if self._stopped.is_set():
                        raise RoundError('stopped')
                    now = time.monotonic()
                    if pending and now - last_logged >= _PROGRESS:
                        last_logged = now
                        LOG.info('The ledger: %d of %d hosts done',
                                 len(results), len(items))
            finally:
                for future in pending:
                    future.cancel()
        return results

    def _report(self, host: str, function: Callable[..., HostReport],
                *args: ty.Any) -> HostReport:
        try:
            return function(*args)
        # Ends the round: otherwise each of a thousand hosts would wait for its
        # time-out.
        except (ledger_client.UnavailableError, neutron.NeutronError,
                neutron.Stopped):
            raise
        except ledger_client.NoParentError as exc:
            return HostReport(host, Action.WAITING, {}, str(exc))
        except ledger_client.PlacementError as exc:
            return HostReport(host, Action.FAILED, {}, str(exc))
        except Exception as exc:
            # It may be the same for all hosts, so only one trace is logged.
            if not self._traced.is_set():
                self._traced.set()
                LOG.exception('Host %s', host)
            return HostReport(host, Action.FAILED, {},
                              f'{type(exc).__name__}: '
                              f'{strings.mask_secrets(str(exc))}')

    def _retire(self, provider: ledger_client.ProviderRow,
                dry_run: bool) -> HostReport:
        """Remove a provider from the ledger whose compute node is gone.

        It only exists because the compute node's provider still does.
        """
        try:
            if dry_run:
                if self._client.held(provider.uuid)[1]:
                    raise ledger_client.InUseError()
            else:
                generation, inventories = self._client.inventories(
                    provider.uuid)
                remaining = {name: inventory
                             for name, inventory in inventories.items()
                             if name not in _WORDS and
                             name not in ledger_inventory.FIGURES and
                             not ledger_names.is_of_node(name)}
                if remaining != inventories:
                    self._client.replace(provider.uuid, generation, remaining)
                self._client.unmark(provider.uuid)
        except ledger_client.InUseError:
            return HostReport(provider.name, Action.IN_USE, {},
                              'the compute node is gone, allocations are not')
        except ledger_client.ConflictError as exc:
            return HostReport(provider.name, Action.LATER, {}, str(exc))
        except ledger_client.NotFoundError:
            pass
        return HostReport(provider.name, Action.REMOVED, {},
                          'the compute node is gone')

    def _leave_out(self, host: str, note: str,
                   published: list[ledger_client.ProviderRow],
                   dry_run: bool) -> HostReport:
        # Servers may still have allocations, so the inventories stay.
        for provider in () if dry_run else published:
            with contextlib.suppress(ledger_client.NotFoundError):
                self._client.unmark(provider.uuid)
        return HostReport(host, Action.LEFT_OUT, {}, note)

    def _host(self, node: database.ComputeNode,
              provider: ledger_client.ProviderRow | None,
              host_limits: nfv_limits.Limits, dry_run: bool) -> HostReport:
        uuid = ledger_names.provider_uuid(node.uuid)
        load = self._load(node.host, self._servers)
        last_result = self._last_results.get(uuid)
        if last_result is not None and last_result.holds(
                provider, load, host_limits) and (
                    not last_result.wasteful or not self._look_again(uuid)):
            self._last_results[uuid] = last_result._replace(
                rounds=last_result.rounds - 1)
            return HostReport(
                node.host, Action.UNCHANGED, last_result.accounts)
        returned: collections.Counter[str] = collections.Counter()
        for attempt in range(_ATTEMPTS):
            if attempt:
                # Servers that arrive on a busy host raise the generation
                # meanwhile.
                self._stopped.wait(random.uniform(0, 0.05 * attempt))
            try:
                return self._attempt(
                    node, provider, load, last_result, host_limits,
                    returned, dry_run)
            except ledger_client.ConflictError as exc:
                conflict = exc
        raise conflict

    def _attempt(self, node: database.ComputeNode,
                 provider: ledger_client.ProviderRow | None,
                 load: ledger_inventory.Load, last_result: _LastResult | None,
                 host_limits: nfv_limits.Limits,
                 returned: collections.Counter[str],
                 dry_run: bool) -> HostReport:
        """Bring the provider of one compute node up to date, in one attempt.

        :param returned: resource class -> amount; amounts given back are added
        :raises ConflictError: if another client changes the provider meanwhile
        """
        uuid = ledger_names.provider_uuid(node.uuid)
        state = self._read(node, provider, last_result, dry_run)
        migrations = self._look(node, state.held, load.servers)
        lowered = self._take_back(
            node, state.held, migrations, returned, dry_run)
        if lowered:
            state = (state._replace(held={**state.held, **lowered}) if dry_run
                     else self._read(node, provider, last_result, dry_run))
            migrations = self._look(node, state.held, load.servers)
        covered = ledger_inventory.by_server(
            {consumer: each.resources
             for consumer, each in state.held.items()}, migrations)
        doubtful = () if state.new else ledger_inventory.doubtful(
            load, covered, host_limits,
            last_result.uncovered if last_result is not None
            and last_result.limits == host_limits else {})
        if doubtful:
            load = self._reread(node, load, doubtful)
        accounts = ledger_inventory.accounts(load, covered, host_limits)
        can_raise = (
            # Nobody has published anything, or not all of it is left (both
            # inventories are written at once), ...
            not _WORDS.keys() <= state.inventories.keys()
            # ... or changed it since before Neutron was read.
            or provider is not None and provider.generation == state.generation
            or last_result is not None
            and last_result.inventories == state.inventories)
        written, complete = ledger_inventory.update(
            state.inventories, {name: account.inventory()
                                for name, account in accounts.items()},
            can_raise, load.figures(), {
                name: sum(amounts.get(name, 0) for amounts in covered.values())
                for name in state.inventories if load.nodes is not None
                and ledger_names.is_of_node(name) and name not in accounts})
        generation = state.generation
        if written != state.inventories and not dry_run:
            generation = self._client.replace(uuid, generation, written)
        if provider is None and written.keys() >= _WORDS.keys():
            # Perhaps with less capacity than there is, but that can be raised
            # only if the provider was listed first.
            action = Action.CREATED
            if not dry_run:
                generation = self._client.mark(uuid, generation, state.new)
        elif written != state.inventories or returned.total():
            action = Action.CHANGED
        else:
            action = Action.UNCHANGED if complete else Action.LATER
        if not dry_run:
            self._last_results[uuid] = _LastResult(
                generation, load, ledger_inventory.uncovered(
                    load, covered, host_limits),
                host_limits, accounts, written,
                # Not all hosts in the same round.
                random.randint(1, ROUNDS) if complete else 0,
                any(self._used_part(sight) != sight.held.resources
                    for sight in self._sights[uuid].values()))
        notes = [excess(accounts)] if excess(accounts) else []
        if returned:
            notes.append(f'{_in_words(returned)} given back')
        if not complete:
            notes.append('there is more room, but others have written '
                         'meanwhile')
        return HostReport(node.host, action, accounts, '; '.join(notes))

    def _load(self, host: str, servers: Mapping[str, str],
              gone: Collection[str] = (),
              pins: Mapping[str, Mapping[str, int]] | None = None,
              ) -> ledger_inventory.Load:
        """Return the load of a host as last read, but for ports now gone.

        :param pins: what servers have pinned of it; None as last read
        """
        total = self._snapshot.host(host)
        listed = self._ports.get(host, ())
        ports = [port for port in listed if port.id not in gone]
        guests = self._snapshot.guests(ports, servers)
        if pins is None:
            pins = self._pins.get(host, {})
        for server, amounts in pins.items():
            guests[server] = dataclasses.replace(
                guests.get(server, usage.NOTHING), pins=amounts)
        return ledger_inventory.Load(
            total.vswitch_ports - len(listed) + len(ports),
            total.rules - sum(self._snapshot.rules_of(port.security_groups)
                              for port in listed if port.id in gone),
            guests,
            frozenset(port.id for port in ports if port.id not in servers),
            total.dhcp_servers if self._snapshot.dhcp_known else None,
            total.routers,
            None if host in self._unknown else self._nodes[host].totals)

    def _reread(self, node: database.ComputeNode, load: ledger_inventory.Load,
                doubtful: Collection[str]) -> ledger_inventory.Load:
        ports = [port for uuid in doubtful for port in (
            load.servers[uuid].ports if uuid in load.servers else (uuid,))]
        unplugged = [port for port in ports if port not in self._servers]
        # Of a cell that does not answer they stay unplugged, hence reserved.
        servers = records.plugged_servers(
            [(node, unplugged)])[0] if unplugged else {}
        # After that: Nova unbinds a port before it deletes its row.
        hosts = {}
        if ports:
            with self._reader_lock:
                hosts = self._reader.hosts_of(ports)
        pins = dict(self._pins.get(node.host, {}))
        if pinning := pins.keys() & set(doubtful):
            read_again, unread = self._pinned([node], pinning)
            if not unread:
                for server in pinning:
                    del pins[server]
                pins.update(read_again.get(node.host, {}))
        return self._load(
            node.host, {**self._servers, **servers},
            {port for port in ports if hosts.get(port) != node.host}, pins)

    def _read(self, node: database.ComputeNode,
              provider: ledger_client.ProviderRow | None,
              last_result: _LastResult | None, dry_run: bool) -> _State:
        """Read or create a provider; raise ConflictError if it changes."""
        uuid = ledger_names.provider_uuid(node.uuid)
        if provider is None and dry_run:
            if not self._client.exists(node.uuid):
                raise ledger_client.NoParentError(
                    'the compute node has no resource provider')
            if not self._client.exists(uuid):
                return _State(0, {}, {}, True)
        # Created without the trait, so that the scheduler does not see it
        # before its inventory is written.
        elif provider is None:
            generation = self._client.create(node.uuid, node.name)
            if generation is not None:
                return _State(generation, {}, {}, True)
        generation, held = self._client.held(uuid)
        # Each change of inventories raises the generation, so they are the
        # same.
        if last_result is not None and last_result.generation == generation:
            return _State(generation, held, last_result.inventories)
        read, existing = self._client.inventories(uuid)
        if read != generation:
            raise ledger_client.ConflictError('changed while it was read')
        return _State(generation, held, existing)

    def _look(self, node: database.ComputeNode,
              held: Mapping[str, ledger_names.Held],
              guests: Mapping[str, usage.GuestUsage]) -> dict[str, str]:
        """Update the sights of consumers; return those that are migrations.

        :returns: UUID of a migration -> UUID of the server that it moves
        """
        provider = ledger_names.provider_uuid(node.uuid)
        migrations = self._migrations(node, [
            consumer for consumer in held if consumer not in guests])
        before = self._sights.get(provider, {})
        self._sights[provider] = {
            consumer: ledger_inventory.look(
                before.get(consumer), allocation,
                guests.get(consumer, usage.NOTHING), self._number)
            for consumer, allocation in held.items()}
        return migrations

    def _look_again(self, uuid: str) -> bool:
        """Update the sights of a host; return whether any can give back."""
        sights = self._sights[uuid] = {
            consumer: ledger_inventory.look(
                sight, sight.held, sight.guest, self._number)
            for consumer, sight in self._sights[uuid].items()}
        return any(
            sight.due and self._used_part(sight) != sight.held.resources
            for sight in sights.values())

    def _used_part(self, sight: ledger_inventory.Sight) -> dict[str, int]:
        # A security group that is not shown looks like one without rules.
        return ledger_inventory.used_part(
            sight, not self._snapshot.hides_groups)

    def _take_back(
        self, node: database.ComputeNode,
        held: Mapping[str, ledger_names.Held], migrations: Mapping[str, str],
        returned: collections.Counter[str], dry_run: bool,
    ) -> dict[str, ledger_names.Held]:
        """Lower the allocations of servers that do not use all of theirs.

        Not while Nova builds or moves the server, nor while a migration of it
        has an allocation here, as the server may return.

        :param returned: resource class -> amount; amounts given back are added
        :returns: consumer UUID -> allocation now, of those that were lowered
        """
        sights = self._sights[ledger_names.provider_uuid(node.uuid)]
        due = {consumer: self._used_part(sight)
               for consumer, sight in sights.items() if sight.due}
        # A server that is moving may come back with all its ports.
        moving = {*migrations, *migrations.values()}
        lowered = {}
        for consumer, remaining in due.items():
            if remaining == sights[consumer].held.resources:
                continue
            if (consumer not in moving
                    and database.is_idle(node.cell, consumer)
                    and (dry_run or self._lower(node, consumer, remaining,
                                                held[consumer]))):
                lowered[consumer] = held[consumer]._replace(
                    resources=remaining)
                returned.update(_given_back(held[consumer], remaining))
            else:
                # Nova is busy with the server, or its allocation has just
                # changed: wait for ROUNDS rounds again.
                sights[consumer] = sights[consumer]._replace(rounds=0)
        return lowered

    def _lower(self, node: database.ComputeNode, consumer: str,
               remaining: dict[str, int], held: ledger_names.Held) -> bool:
        try:
            if not self._client.lower(
                    consumer, ledger_names.provider_uuid(node.uuid), held,
                    remaining):
                return False
        except ledger_client.UnavailableError:
            raise
        except ledger_client.ConflictError:
            return False
        except ledger_client.PlacementError as exc:
            LOG.warning('Server %s cannot give back what it does not use on '
                        'host %s: %s', consumer, node.host, exc)
            return False
        LOG.info('Server %s has given back %s on host %s, not used for %d '
                 'rounds', consumer, _in_words(_given_back(held, remaining)),
                 node.host, ledger_inventory.ROUNDS)
        return True

    def _migrations(self, node: database.ComputeNode,
                    consumers: list[str]) -> dict[str, str]:
        """Return migration UUID -> server UUID."""
        instances = {}
        for consumer in consumers:
            if (instance := self._instances.get(consumer)) is None:
                instance = database.moving_instance(node.cell, consumer)
            if instance is not None:
                instances[consumer] = self._instances[consumer] = instance
        return instances

    def _forget(self, present: set[str]) -> None:
        for cache in (self._last_results, self._sights):
            for uuid in cache.keys() - present:
                del cache[uuid]
        # Migrations never change their server, so this is only to save
        # queries; it must not grow for ever.
        if len(self._instances) > 10000:
            self._instances.clear()


def excess(accounts: Mapping[str, ledger_inventory.Account]) -> str:
    return '; '.join(
        f'{account.allocated + account.unallocated} {_WORDS[name]}, limit '
        f'{account.limit:g}' for name, account in accounts.items()
        if name in _WORDS
        and account.allocated + account.unallocated > account.limit)


def _nodes_of(node: database.ComputeNode) -> _HostNodes:
    topology = totals = None
    try:
        topology = database.numa_topology(node)
        totals = ledger_nodes.totals(topology)
    except Exception as exc:
        # nfv-sched-status tells of it, and the filters refuse the host.
        LOG.debug('The NUMA topology of host %s cannot be read: %s',
                  node.host, exc)
    return _HostNodes(node.numa_topology, topology, totals)


def _word(resource_class: str) -> str:
    if word := _WORDS.get(resource_class):
        return word
    node, noun, more = ledger_names.of_node(resource_class)
    return f'{noun}s{more} of NUMA node {node}'


def _given_back(held: ledger_names.Held,
                remaining: Mapping[str, int]) -> collections.Counter[str]:
    return collections.Counter(held.resources) - collections.Counter(remaining)


def _in_words(amounts: Mapping[str, int]) -> str:
    return ' and '.join(
        f'{amounts[name]} {_word(name)}'
        for name in (*_WORDS, *sorted(amounts.keys() - _WORDS.keys()))
        if amounts.get(name))


class Keeper:
    """A loop of rounds, which logs their results."""

    #: Pause after a first failure, in seconds; it doubles with each further
    #: one, up to the interval.
    FIRST_PAUSE = 1.0

    def __init__(self, conf=CONF):
        self._conf = conf
        self._failures = 0  # since the last successful round
        self._failing_since = 0.0  # seconds of time.monotonic()
        self._latest = 0.0  # when the last complete round began; 0 without one
        self._stopped = threading.Event()
        self._interval = conf.nfv_sched.ledger_publish_interval
        self._cells: list[str] = []
        self._failed: frozenset[str] = frozenset()
        self._over: frozenset[str] = frozenset()

    def stop(self) -> None:
        self._stopped.set()

    def resume(self) -> None:
        self._stopped.clear()

    def run(self) -> None:
        with contextlib.closing(
                Publisher(self._conf, self._stopped)) as publisher:
            while not self._stopped.is_set():
                began = time.monotonic()
                try:
                    # nova.conf may have been read again, and be wrong now.
                    self._interval = (
                        self._conf.nfv_sched.ledger_publish_interval)
                    round_report = publisher.round()
                except Exception as exc:
                    if self._stopped.is_set():
                        break
                    self._went_wrong(exc, began)
                else:
                    self._went_well(round_report)
                self._write_metrics()
                self._stopped.wait(self._pause(time.monotonic() - began))

    def _pause(self, took: float) -> float:
        pause = max(self._interval - took, took)
        if self._failures:
            pause = min(self.FIRST_PAUSE * 2 ** min(self._failures - 1, 32),
                        max(self._interval, self.FIRST_PAUSE))
        # So that processes that started together do not read all at once.
        return pause * random.uniform(0.9, 1.1)

    def _write_metrics(self) -> None:
        try:
            if path := self._conf.nfv_sched.ledger_metrics:
                metrics.write(path, self._latest)
        except Exception as exc:
            LOG.warning('The metrics cannot be written: %s', exc)

    def _went_wrong(self, exc: Exception, began: float) -> None:
        self._failures += 1
        if self._failures > 1:
            LOG.debug('Attempt %d to bring the ledger up to date failed: %s',
                      self._failures, exc)
            return
        self._failing_since = began
        LOG.warning(
            'The ledger cannot be brought up to date; what is published stays '
            'as it is, and it is tried again: %s', str(exc).rstrip('.'),
            exc_info=not isinstance(exc, (RoundError, cfg.Error)))

    def _went_well(self, round_report: RoundReport) -> None:
        if self._failures:
            LOG.info('The ledger is kept up to date again, after %d failed '
                     'attempts in %.0f s', self._failures,
                     time.monotonic() - self._failing_since)
        self._failures = 0
        if round_report.failures and not self._cells:
            LOG.warning('Compute nodes that are not known now keep what is '
                        'published: %s', '; '.join(round_report.failures))
        elif self._cells and not round_report.failures:
            LOG.info('All compute nodes are known again')
        self._cells = round_report.failures
        counts = collections.Counter(
            report.action for report in round_report.hosts)
        if not round_report.failed:
            self._latest = time.time() - round_report.took
        changed = any(counts[action] for action in (
            Action.CREATED, Action.CHANGED, Action.REMOVED))
        LOG.log(
            logging.INFO if changed else logging.DEBUG,
            'The ledger was brought up to date in %.1f s: %s',
            round_report.took,
            ', '.join(f'{counts[action]} {action.value}' for action in Action
                      if counts[action]) or 'no hosts')
        over = {report.host: text for report in round_report.hosts
                if (text := excess(report.accounts))}
        self._over = _warn_of_new(
            over, self._over, 'carries more than it may',
            'carry more than they may')
        overdrawn = {report.host: text for report in round_report.hosts
                     if (text := report.overdrawn)}
        if overdrawn:
            LOG.error(
                'More is allocated than there is: %s. Unless a limit was '
                'lowered, Placement grants too much: try "nfv-sched-status '
                'ledger probe"',
                strings.some(f'host {host} ({what})' for host, what in
                             overdrawn.items()))
        failed = {report.host: report.note for report in round_report.hosts
                  if report.action is Action.FAILED}
        self._failed = _warn_of_new(
            failed, self._failed, 'cannot be brought up to date',
            'cannot be brought up to date')


def _warn_of_new(reasons: Mapping[str, str], before: Collection[str],
                 what: str, what_many: str) -> frozenset[str]:
    """Warn of hosts that were not among those before; return all."""
    new = sorted(reasons.keys() - before)
    for host in new[:_NAMED]:
        LOG.warning('Host %s %s: %s', host, what, reasons[host])
    if len(new) > _NAMED:
        LOG.warning('%d more hosts %s', len(new) - _NAMED, what_many)
    return frozenset(reasons)
