# SPDX-License-Identifier: Apache-2.0
"""Run Nova's scheduler without a database, services and Placement.

Candidates, filters, weighers, multi-create, alternates and selections are
Nova's own code.  Only its sources are replaced: compute nodes, services,
aggregates and instances come from the simulated hosts, and Placement is
:class:`~nfv_sched.ops.simulator.placement.Placement`.

As in Nova, HostStates are created for every request.  Only the parsed record
of a compute node is cached until it changes.
"""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
import copy
import dataclasses
import functools
import typing as ty

from nova import exception
from nova import objects

from nfv_sched.base import strings
from nfv_sched.fit.numa import decide
from nfv_sched.fit.numa import evaluation
from nfv_sched.fit import request
from nfv_sched.limits import demand
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import placement as placement_mod
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import refusals
from nfv_sched.scheduler import visit

NOT_ENOUGH = 'There are not enough hosts available.'


class _PciDeviceStats(nova_internals.PciDeviceStats):
    """Pools of PCI devices that are copied fast, as for each host."""

    def __deepcopy__(self, memo):
        copied = copy.copy(self)
        copied.pools = [dict(pool) for pool in self.pools]
        return copied


class _HostState(nova_internals.HostState):
    """A HostState that reads its compute node from a cache.

    :param cache: UUID of compute node -> (version, attributes of HostState)
    """

    def __init__(self, host: str, node: str, cell_uuid: str, cache: dict,
                 version: int):
        super().__init__(host, node, cell_uuid)
        self._sim_cache = cache
        self._sim_version = version

    def update(self, compute=None, service=None, aggregates=None,
               inst_dict=None):
        # As in Nova, but without the lock by host name: only one thread uses a
        # HostState here.
        self._update_from_compute_node(compute)
        self.aggregates = aggregates
        self.service = nova_internals.ReadOnlyDict(service)
        self.instances = inst_dict

    def _update_from_compute_node(self, compute_node):
        version, parsed = self._sim_cache.get(compute_node.uuid, (None, None))
        if version != self._sim_version:
            # What Nova has set is found by comparison, so that attributes of
            # other releases are cached, too.
            before = dict(vars(self))
            super()._update_from_compute_node(compute_node)
            parsed = {name: value for name, value in vars(self).items()
                      if name not in before or before[name] is not value}
            parsed['_sim_pci'] = self.numa_topology, parsed.pop(
                'pci_stats').pools
            self._sim_cache[compute_node.uuid] = (self._sim_version, parsed)
        vars(self).update(parsed)
        vars(self).pop('pci_stats', None)
        # Copied, as Nova changes these in place.
        self.stats = dict(self.stats)
        self.supported_instances = list(self.supported_instances)

    @functools.cached_property
    def pci_stats(self) -> nova_internals.PciDeviceStats:
        """The pools of PCI devices, which Nova changes in place."""
        topology, pools = self._sim_pci
        stats = _PciDeviceStats(topology)
        stats.pools = [dict(pool) for pool in pools]
        return stats


class _Instances(collections.UserDict):
    """Instances of a host by UUID, made on access, as that is slow."""

    def __init__(self, servers: Mapping[str, ty.Any]):
        self.data = dict(servers)

    def __getitem__(self, uuid: str) -> objects.Instance:
        server = self.data[uuid]
        return (server if isinstance(server, objects.Instance)
                else server.instance)


@dataclasses.dataclass(slots=True)
class Filtering:
    """A run of a filter for one server."""

    name: str
    before: tuple[str, ...]  #: names of the hosts that it was given
    after: tuple[str, ...] = ()
    #: the exception that it raised; None if it raised none
    error: str | None = None


def names_of(hosts: Iterable) -> tuple[str, ...]:
    return tuple(host.host for host in hosts)


class _RecordedFilter:
    """A wrapper of a filter that records the hosts that pass.

    It replaces the filter in Nova's filter handler, by a class with the name
    of the filter, so that Nova's log shows the usual names.
    """

    def __init__(self, inner: ty.Any, filterings: list[Filtering]):
        self.inner = inner
        self._filterings = filterings

    def run_filter_for_index(self, index: int) -> bool:
        return self.inner.run_filter_for_index(index)

    def filter_all(self, hosts: Iterable, spec_obj: ty.Any):
        hosts = list(hosts)
        noted = Filtering(type(self).__name__, names_of(hosts))
        self._filterings.append(noted)
        try:
            passing = self.inner.filter_all(hosts, spec_obj)
            passing = None if passing is None else list(passing)
        except Exception as exc:
            # Filters of nfv-sched raise it on purpose, for the reason that
            # tenants read.
            if not isinstance(exc, exception.NoValidHost):
                noted.error = f'{type(exc).__name__}: {exc}'
            raise
        noted.after = names_of(passing or ())
        return passing


def too_many_arrangements(host_state: ty.Any,
                          spec: objects.RequestSpec) -> bool:
    """Return whether Nova's NUMA fit would take practically forever.

    It does if it finds nothing, or finds something only after more than
    ``MAX_CLAIM_TRIES`` of so many arrangements.
    """
    topologies = host_state.numa_topology, spec.numa_topology
    if not all(topologies) or not evaluation.many_permutations(
            *(len(topology.cells) for topology in topologies)):
        return False
    note = notes.note_of(spec)
    sorting = active_rules.settings(note).sorting
    # The filter always sorts by devices; claims of some releases do not.
    return any(_takes_forever(host_state, spec, note.read(spec), each)
               for each in {sorting, sorting._replace(devices_in_claims=True)})


def _takes_forever(host_state: ty.Any, spec: objects.RequestSpec,
                   parsed: request.Request,
                   sorting: evaluation.CellSorting) -> bool:
    resources = visit.resources(host_state)
    if None in (parsed.guest, resources.read(), resources.cpu_ratio,
                resources.ram_ratio):
        return True
    evaluated = resources.evaluate(parsed, sorting)
    groups: Sequence[int] = ()
    if 'network_metadata' in spec and spec.network_metadata:
        groups = decide.claim_groups(
            evaluated.host, spec.network_metadata, decide.PLAIN)
    # Nova tries every allocation candidate.
    mappings = [candidate.get('mappings') for candidate
                in host_state.allocation_candidates or ()]
    for mapping in mappings if mappings and parsed.demands else (None,):
        devices = resources.devices(parsed, mapping)
        chosen = evaluated.choose(
            groups, None if devices is None else devices.stock)
        if chosen is None or evaluated.claim_tries(
                chosen) > evaluation.MAX_CLAIM_TRIES:
            return True
    return False


def _passes_in_time(host_passes: Callable[..., bool], host_state: ty.Any,
                    spec: objects.RequestSpec) -> bool:
    """Let NUMATopologyFilter decide, unless it would not end."""
    return not too_many_arrangements(host_state, spec) and host_passes(
        host_state, spec)


class HostManager(nova_internals.HostManager):
    def __init__(self, hosts: Mapping[str, compute.ComputeHost],
                 aggregates: Sequence[snapshot.Aggregate]):
        self._hosts = hosts
        self._by_uuid = {host.uuid: host for host in hosts.values()}
        self._order = {name: i for i, name in enumerate(hosts)}
        self._aggregates = aggregates
        #: See :class:`_HostState`.
        self.cache: dict[str, tuple[int, dict]] = {}
        #: Of the last filtering.
        self.filterings: list[Filtering] = []
        #: Number of the server in the last filtering, from 0.
        self.index = 0
        names = dict.fromkeys(host.record.cell for host in hosts.values())
        self.cell_by_name = {name: objects.CellMapping(
            id=number, uuid=scenario.stable_uuid('cell', name), name=name,
            disabled=False, transport_url='none://',
            database_connection='none://')
            for number, name in enumerate(names, 1)}
        super().__init__()
        for f in self.enabled_filters:
            if type(f) is nova_internals.NUMATopologyFilter:
                f.host_passes = functools.partial(
                    _passes_in_time, f.host_passes)
        # Nova logs the class name of a filter, so each wrapper gets a class of
        # that name.
        self.enabled_filters = [
            type(type(f).__name__, (_RecordedFilter,), {})(f, self.filterings)
            for f in self.enabled_filters]

    def get_filtered_hosts(self, hosts, spec_obj, index=0):
        self.filterings.clear()
        self.index = index
        return super().get_filtered_hosts(hosts, spec_obj, index)

    def aggregates_of(self, host: str) -> list[objects.Aggregate]:
        return self._get_aggregates_info(host)

    # Nova's sources of information, replaced

    def refresh_cells_caches(self):
        self.enabled_cells = list(self.cell_by_name.values())
        self.cells = {cell.uuid: cell for cell in self.enabled_cells}
        self.host_to_cell_uuid = {}

    def _init_aggregates(self):
        for number, spec in enumerate(self._aggregates, 1):
            self.update_aggregates(objects.Aggregate(
                id=number, name=spec.name, hosts=list(spec.hosts),
                uuid=spec.uuid, metadata=dict(spec.metadata)))

    def _init_instance_info(self, computes_by_cell=None):
        pass

    def _get_instance_info(self, context, compute_node):
        return _Instances(self._hosts[compute_node.host].instances)

    def _get_computes_for_cells(self, context, cells, compute_uuids):
        hosts = list(self._hosts.values()) if compute_uuids is None else [
            self._by_uuid[u] for u in compute_uuids if u in self._by_uuid]
        nodes = {cell.uuid: [] for cell in cells}
        for host in hosts:
            cell = self.cell_by_name[host.record.cell].uuid
            if cell in nodes:
                nodes[cell].append(host.node)
        return (nodes, {host.name: host.service() for host in hosts})

    def get_compute_nodes_by_host_or_node(self, ctxt, host, node, cell=None):
        compute_host = self._hosts.get(host or node)
        return objects.ComputeNodeList(
            objects=[compute_host.node] if compute_host is not None else [])

    def host_state_cls(self, host, node, cell, **kwargs):
        return _HostState(host, node, cell, self.cache,
                          self._hosts[host].version)

    def _get_host_states(self, context, compute_nodes, services):
        states = super()._get_host_states(context, compute_nodes, services)
        # Nova's order is that of a set, hence arbitrary.  A fixed order makes
        # runs repeatable.
        return iter(sorted(states, key=lambda s: self._order[s.host]))


class Scheduler(nova_internals.SchedulerManager):
    """Nova's scheduler manager over simulated hosts."""

    def __init__(self, hosts: HostManager, placement: placement_mod.Placement,
                 lookups: demand.LookupSource):
        # Without the original, which makes clients of RPC and Placement.
        self.host_manager = hosts
        self.servicegroup_api = nova_internals.ServiceGroupAPI()
        self.notifier = None
        self._placement = placement
        self._lookups = lookups

    @property
    def placement_client(self):
        return self._placement

    def _select_destinations(self, context, spec_obj, instance_uuids,
                             alloc_reqs_by_rp_uuid, provider_summaries,
                             allocation_request_version=None,
                             return_alternates=False):
        notes.placement_answered(spec_obj, provider_summaries)
        # Nova's method sends notifications before and after this.
        return self._schedule(
            context, spec_obj, instance_uuids, alloc_reqs_by_rp_uuid,
            provider_summaries, allocation_request_version,
            return_alternates)

    def select(self, context: ty.Any, spec: objects.RequestSpec,
               uuids: Sequence[str], alternates: bool,
               ) -> list[list[objects.Selection]]:
        """Choose hosts for a request; NoValidHost has the reason if not."""
        self.host_manager.filterings.clear()
        self._placement.queries.clear()
        # The scheduler gets its own copy, as the request crosses RPC in Nova.
        note = notes.note_of(spec)
        spec = spec.obj_clone()
        notes.note_of(spec).use(self._lookups, note.live_migration)
        try:
            return self.select_destinations(
                context, spec_obj=spec, instance_uuids=list(uuids),
                return_objects=True, return_alternates=alternates)
        # select_destinations is decorated with expected_exceptions for RPC.
        except nova_internals.ExpectedException as e:
            error = e.exc_info[1]
        reason = str(error.kwargs.get('reason') or '')
        # Nova's own reason says nothing about the cause.
        if reason in ('', NOT_ENOUGH):
            reason = self._no_host_reason(len(uuids), notes.note_of(spec))
        raise exception.NoValidHost(reason=reason)

    def _no_host_reason(self, num_instances: int,
                        note: notes.RequestNote) -> str:
        if not (filterings := self.host_manager.filterings):
            queries = self._placement.queries
            for query, count in queries:
                if count:
                    text = ('the only hosts with capacity in Placement are '
                            'the source of the move, or left out of the '
                            'request')
                    reason = self._placement.explain_rest(query)
                    return f'{text}; {reason}' if reason else text
            # A second query is the fallback for pinned guests on hosts without
            # PCPU inventory; its reason adds nothing.
            return self._placement.explain(queries[0][0])
        counts = [(each.name, len(each.before), len(each.after))
                  for each in filterings]
        name, start, end = counts[-1]
        if end == 0:
            last = 'host' if start == 1 else f'{start} hosts'
            steps = ', '.join(f'{n} {a} -> {b}' for n, a, b in counts if b < a)
            text = f'{name} removed the last {last} ({steps})'
            # A filter of nfv-sched gives no reason for later servers; see
            # refusals.report().
            if note.passes and note.passes[-1][0] == name:
                text = refusals.exposed([
                    (host, refusals.resolve(reason))
                    for host, reason in note.rejected]) or text
            if num_instances > 1:
                text += (f'; server {self.host_manager.index + 1} of '
                         f'{num_instances} in the request')
            return text
        return ('Placement took no claim for the request on any of '
                f'{strings.count(end, "host")}')
