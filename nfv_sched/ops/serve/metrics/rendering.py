# SPDX-License-Identifier: Apache-2.0
"""Convert the state of a cloud to metrics for Prometheus.

The Prometheus library formats them.  Labels have names of hosts, flavors,
aggregates and zones, but never UUIDs.
"""

import collections
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
import datetime
import typing as ty

import os_resource_classes as orc
from prometheus_client import core
from prometheus_client import registry

from nfv_sched.ops.answers.audit import values as audit_values
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.journal import reading
from nfv_sched.ops.answers.plans import document as plan_document
from nfv_sched.ops.answers.rebalance import document as rebalance_document
from nfv_sched.ops.cloud import snapshot

if ty.TYPE_CHECKING:
    from nfv_sched.ops.model.counting import capacity

#: Maximum number of time series of a host. If there were more, some metrics of
#: its nodes are combined, with WHOLE in place of the node.
HOST_SERIES = 60
WHOLE = 'all'
#: Maximum number of these that are about the host, not its nodes.
_OF_HOST = 15

#: The aggregate of figures of the whole cloud: an empty label is no label.
_CLOUD = ''

_RESOURCES = (orc.MEMORY_MB, orc.VCPU, orc.PCPU)


class Metric(ty.NamedTuple):
    """A metric; ``text`` is its help."""

    name: str
    labels: tuple[str, ...]
    text: str


#: The metrics of a cloud. The library adds ``_total`` to names of counters.
GAUGES = (
    Metric('nfv_sched_host_info', ('host', 'zone', 'state'),
           'Always 1: availability zone of a host, and whether it is up.'),
    Metric('nfv_sched_host_resources', ('host', 'resource', 'state'),
           'Resources of a host in Placement, with its allocation ratios.'),
    Metric('nfv_sched_node_pcpus', ('host', 'node', 'state'),
           'CPUs for pinned servers of a host NUMA node.'),
    Metric('nfv_sched_node_largest_fit_pcpus', ('host', 'node'),
           'Most pinned vCPUs of a server with one NUMA node that fits.'),
    Metric('nfv_sched_node_pages', ('host', 'node', 'size', 'state'),
           'Memory pages of a host NUMA node for servers; size in KiB.'),
    Metric('nfv_sched_node_pci_devices', ('host', 'node', 'type', 'state'),
           'PCI devices for servers near a host NUMA node.'),
    Metric('nfv_sched_vswitch_ports', ('host', 'state'),
           'Ports of the virtual switch of a host, within its limit.'),
    Metric('nfv_sched_security_rules', ('host', 'state'),
           'Security-group rules on a host, within its limit.'),
    Metric('nfv_sched_network_services', ('host', 'kind'),
           'DHCP servers and routers on a host.'),
    Metric('nfv_sched_imbalance', ('kind',),
           'How many more DHCP servers or routers one agent has than another '
           'one.'),
    Metric('nfv_sched_rebalance_moves', ('kind',),
           'Moves of DHCP servers or routers that are due.'),
    Metric('nfv_sched_rebalance_stuck', ('kind',),
           'DHCP servers or routers that ought to be moved and cannot be.'),
    Metric('nfv_sched_failover_stranded_servers', ('host',),
           'Servers of a host that would find no place if it were lost.'),
    Metric('nfv_sched_failover_stranded_guests', ('host',),
           'The same by its old name, for one more release.'),
    Metric('nfv_sched_flavor_fits', ('flavor', 'aggregate', 'ports'),
           'More servers of a flavor that fit, in an aggregate, or without '
           'the label in the cloud, with such ports as most servers of the '
           'flavor have.'),
    Metric('nfv_sched_flavor_fits_placement',
           ('flavor', 'aggregate', 'ports'),
           'More servers of a flavor that Placement has capacity for.'),
    Metric('nfv_sched_flavor_servers', ('flavor',),
           'Servers of a flavor that are on hosts.'),
    Metric('nfv_sched_flavor_lost', ('flavor', 'limits'),
           'Servers of a flavor that Placement has capacity for and that do '
           'not fit, by the limits that keep them off.'),
    Metric('nfv_sched_fragmentation_ratio', ('flavor',),
           'Part of the servers that Placement has capacity for that do not '
           'fit, as the free CPUs are not on one NUMA node.'),
    Metric('openstack_free_capacity_by_flavor_total',
           ('flavor_name', 'public'),
           'More servers of a flavor that fit in the cloud.'),
    Metric('nfv_sched_audit_findings', ('kind',),
           'What the audit finds not to be as it was promised or recorded.'),
    Metric('nfv_sched_late_failures', ('reason',),
           'Servers with a failed claim on nova-compute in the last hour.'),
    Metric('nfv_sched_retries', ('operation',),
           'Attempts on nova-compute in the last hour after the first.'),
)
SNAPSHOT_TIME = Metric(
    'nfv_sched_snapshot_timestamp_seconds', (),
    'When the cloud was read, seconds since the epoch.')
AGE = Metric('nfv_sched_snapshot_age_seconds', (), 'Age of the figures.')
MISSING = Metric('nfv_sched_snapshot_missing', (),
                 'What could not be read when the cloud was.')
REFUSALS = Metric('nfv_sched_refusals', ('policy',),
                  'Servers that found no host, by the policies that refused '
                  'some; of the decision journal.')
LATEST_REFUSAL = Metric(
    'nfv_sched_latest_refusal_timestamp_seconds', (),
    'When a server found no host last, seconds since the epoch.')
SHADOW = Metric('nfv_sched_shadow_servers', ('outcome',),
                'Servers that were placed, by what would have become of them '
                'if filters and weighers in shadow had counted.')
DECISIONS = Metric('nfv_sched_shadow_decisions', ('name', 'outcome'),
                   'The same by what each filter or weigher in shadow would '
                   'have changed.')
LATEST_SHADOW = Metric(
    'nfv_sched_latest_shadow_timestamp_seconds', (),
    'When a server that was examined in shadow was placed last, seconds since '
    'the epoch.')
ERRORS = Metric('nfv_sched_collection_errors', (),
                'Failed attempts to read the cloud.')
SECONDS = Metric('nfv_sched_collection_seconds', (),
                 'Time that it took to read the cloud and count.')

Key = tuple[ty.Any, ...]
#: Name of a metric -> values of its labels -> figure.
Figures = dict[str, collections.Counter[Key]]


def _family(metric: Metric, by_labels: Mapping[Key, float],
            kind: type[core.Metric] = core.GaugeMetricFamily) -> core.Metric:
    family = kind(metric.name, metric.text, labels=metric.labels)
    for key, value in by_labels.items():
        family.add_metric(list(map(str, key)), value)
    return family


def families(
    cloud: snapshot.Cloud, hosts: Sequence[document.HostDetails],
    capacities: 'Sequence[capacity.FlavorCapacity]',
    *, findings: Iterable[audit_values.AuditedFinding] | None = (),
    rebalance: rebalance_document.Rebalance | None = None,
    losses: Sequence[plan_document.LostHost] = (),
    late: Collection[tuple[tuple[str, str], int]] = (),
) -> list[core.Metric]:
    """Return the metrics of a cloud.

    :param findings: of the audit; None if no host could be checked
    :param losses: effects of the loss of each host; empty if not requested
    :param late: items of ``records.late_failures``
    """
    metrics: Figures = collections.defaultdict(collections.Counter)
    for (name, label), count in late:
        metrics[f'nfv_sched_{name}'][label,] = count
    if findings is not None:
        for kind in audit_values.KINDS:
            metrics['nfv_sched_audit_findings'][kind,] = 0
        for finding in findings:
            metrics['nfv_sched_audit_findings'][finding.kind,] += 1
    providers = {host.uuid: host.providers for host in cloud.hosts}
    for host in hosts:
        _host(metrics, host, providers[host.host_id])
        _nodes(metrics, host)
    servers = collections.Counter(server.flavor.name for server
                                  in cloud.servers if server.host is not None)
    for of_flavor in capacities:
        _flavor(metrics, cloud, of_flavor)
        name = of_flavor.flavor.name
        metrics['nfv_sched_flavor_servers'][name,] += servers[name]
    for plan in rebalance.plans if rebalance else ():
        metrics['nfv_sched_imbalance'][plan.kind,] += plan.imbalance
        metrics['nfv_sched_rebalance_moves'][plan.kind,] += len(
            rebalance.moves_of(plan))
        metrics['nfv_sched_rebalance_stuck'][plan.kind,] += sum(
            len(stay.services) for stay in plan.stays)
    for loss in losses:
        for name in 'servers', 'guests':
            metrics[f'nfv_sched_failover_stranded_{name}'][
                loss.host,] += len(loss.stranded)
    return [_family(metric, metrics[metric.name]) for metric in GAUGES
            if late or metric.name not in (
                'nfv_sched_late_failures', 'nfv_sched_retries')]


def _host(metrics: Figures, host: document.HostDetails,
          providers: Iterable[snapshot.Provider]) -> None:
    name, network = host.host, host.network
    metrics['nfv_sched_host_info'][
        name, host.availability_zone, host.state.replace(', ', ' ')] += 1
    for resource in _RESOURCES:
        for provider in providers:
            if (stock := provider.inventories.get(resource)) is not None:
                _used_and_free(
                    metrics, 'nfv_sched_host_resources', (name, resource),
                    stock.used, stock.capacity)
    for metric, use in (
            ('nfv_sched_vswitch_ports', network.vswitch_ports),
            ('nfv_sched_security_rules', network.security_rules)):
        _used_and_free(metrics, metric, (name,), use.used, use.limit)
    for kind, count in (('dhcp', network.dhcp_servers),
                        ('router', network.routers)):
        if count is not None:
            metrics['nfv_sched_network_services'][name, kind] += count


def _used_and_free(metrics: Figures, name: str, labels: Key, used: int | None,
                   most: int | None) -> None:
    """Add what is used, None if unknown, and free, if there is a limit."""
    if used is None:
        return
    metrics[name][*labels, 'used'] += used
    if most is not None:
        metrics[name][*labels, 'free'] += max(most - used, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class _Figures:
    metric: str
    #: node, and values of the labels after it -> figure
    by_node: Mapping[tuple[str, Key], float]
    #: function that combines the figures of all nodes
    whole: ty.Callable[[Iterable[float]], float] = sum

    def of_host(self) -> Mapping[tuple[str, Key], float]:
        figures_by_key: dict[tuple[str, Key], list[float]] = {}
        for (_node, rest), value in self.by_node.items():
            figures_by_key.setdefault((WHOLE, rest), []).append(value)
        return {key: self.whole(each) for key, each in figures_by_key.items()}


def _nodes(metrics: Figures, host: document.HostDetails) -> None:
    """Add metrics by NUMA node, within the maximum number of series."""
    figures = _figures(host)
    remaining = HOST_SERIES - _OF_HOST - sum(
        len(each.of_host()) for each in figures)
    for each in figures:
        more = len(each.by_node) - len(each.of_host())
        fits = more <= remaining
        remaining -= more if fits else 0
        for (node, rest), value in (
                each.by_node if fits else each.of_host()).items():
            metrics[each.metric][host.host, node, *rest] += value


def _figures(host: document.HostDetails) -> list[_Figures]:
    """Return figures of the NUMA nodes, the most informative first."""
    cpus: dict[tuple[str, Key], float] = {}
    fits: dict[tuple[str, Key], float] = {}
    pages: dict[int, dict[tuple[str, Key], float]] = {}
    devices: collections.Counter[tuple[str, Key]] = collections.Counter()
    for each in host.numa_nodes:
        node = str(each.node)
        if each.pcpus:
            cpus[node, ('used',)] = each.pcpus_used
            cpus[node, ('free',)] = each.pcpus_free
            fits[node, ()] = each.largest_fit
        for page in each.pages:
            if page.total or page.reserved or page.used:
                size = str(page.size_kib)
                of_size = pages.setdefault(page.size_kib, {})
                of_size[node, (size, 'used')] = page.used
                of_size[node, (size, 'free')] = page.free
        _count_devices(devices, node, each.devices)
    _count_devices(devices, 'unknown', host.devices_without_node)
    return [
        _Figures('nfv_sched_node_pcpus', cpus),
        _Figures('nfv_sched_node_largest_fit_pcpus', fits, max),
        *(_Figures('nfv_sched_node_pages', of_size) for _size, of_size
          in sorted(pages.items(), reverse=True)),
        _Figures('nfv_sched_node_pci_devices', devices)]


def _count_devices(counts: collections.Counter[tuple[str, Key]], node: str,
                   groups: Iterable[document.DevicesOfNIC]) -> None:
    for group in groups:
        for state, number in (('used', group.used), ('free', group.free)):
            counts[node, (group.kind, state)] += number


def _flavor(metrics: Figures, cloud: snapshot.Cloud,
            of_flavor: 'capacity.FlavorCapacity') -> None:
    flavor = of_flavor.flavor
    for aggregate, counted in [(_CLOUD, of_flavor)] + [
            (aggregate.name, of_flavor.within(aggregate.hosts))
            for aggregate in cloud.aggregates]:
        labels = flavor.name, aggregate, of_flavor.ports.label
        metrics['nfv_sched_flavor_fits'][labels] += counted.fits
        metrics['nfv_sched_flavor_fits_placement'][labels] += counted.placement
    for lost in of_flavor.lost:
        metrics['nfv_sched_flavor_lost'][
            flavor.name, lost.label] += lost.servers
    if of_flavor.placement:
        metrics['nfv_sched_fragmentation_ratio'][flavor.name,] += (
            of_flavor.fragmented / of_flavor.placement)
    metrics['openstack_free_capacity_by_flavor_total'][
        flavor.name, flavor.public] += of_flavor.fits


class Collected(ty.NamedTuple):
    families: Sequence[core.Metric]
    taken: float  #: when the cloud was read, seconds since the epoch
    seconds: float  #: how long it took to collect them
    missing: int  #: how much could not be read


class Collector(registry.Collector):
    """A collector that yields the latest metrics at each scrape.

    :ivar collected: None before the first reading
    :param clock: returns seconds since the epoch
    """

    def __init__(self, clock: ty.Callable[[], float]):
        self._clock = clock
        self.collected: Collected | None = None
        self.tally = reading.Tally()
        self.errors = 0

    def collect(self) -> Iterator[core.Metric]:
        collected, tally = self.collected, self.tally
        counter = core.CounterMetricFamily
        if collected is not None:
            yield from collected.families
        yield _family(ERRORS, {(): self.errors}, counter)
        yield _family(REFUSALS, {
            (policy,): count for policy, count in tally.counts.items()},
            counter)
        if tally.latest:
            yield _family(LATEST_REFUSAL, {(): seconds(tally.latest)})
        if tally.latest_placed:
            yield _family(SHADOW, {
                (outcome,): count for outcome, count
                in tally.servers.items()}, counter)
            yield _family(DECISIONS, tally.decisions, counter)
            yield _family(LATEST_SHADOW, {(): seconds(tally.latest_placed)})
        if collected is not None:
            yield _family(SNAPSHOT_TIME, {(): collected.taken})
            yield _family(AGE, {(): max(self._clock() - collected.taken, 0)})
            yield _family(MISSING, {(): collected.missing})
            yield _family(SECONDS, {(): collected.seconds})


def seconds(time_stamp: str) -> float:
    """Return epoch seconds of an ISO 8601 time in UTC; 0 if it is invalid."""
    try:
        return datetime.datetime.fromisoformat(time_stamp).replace(
            tzinfo=datetime.timezone.utc).timestamp()
    except ValueError:
        return 0.0
