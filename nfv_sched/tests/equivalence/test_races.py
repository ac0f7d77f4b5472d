# SPDX-License-Identifier: Apache-2.0
"""Pinned CPUs when other guests come and go between decision and claim.

The filters decide on a host as the scheduler knows it.  Until nova-compute
claims with the limits of that decision, guests leave the host and others
arrive.  The claim may fail then, but one that succeeds is held against a book
that the test keeps of every guest's CPUs, made from the guests' own pins and
not from the host's record:

* each guest NUMA node has its CPUs on the host node that it is recorded on,
  and no CPU has two owners;
* a strict guest is on nodes with the virtual switch, a mapped guest node on
  the host node that it is mapped to;
* a request without any key of ours has the hosts and the limits that stock
  Nova gives it, and a preference costs no host.

Nova can end with pins of another host node than the one it records.  Under
the thread policy ``isolate`` it does not notice
(``NUMACell.pin_cpus_with_siblings`` leaves out CPUs that are not its own), so
``isolate`` is what most guests here have.
"""

import collections
import copy

import hypothesis
from hypothesis import strategies as st
from nova import exception
from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from nova.virt import hardware

from nfv_sched.filters import all_filters
from nfv_sched.tests.equivalence import claims
from nfv_sched.tests.equivalence import joint
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies

FILTERS = (joint.TOPOLOGY, joint.VSWITCH, joint.PCI, joint.SHARED,
           joint.THREADS)
RATIOS = (1.0, 4.0, 16.0)
MEMORY = (4096, 4096, 8192)  # MiB on a host node
# vCPUs and extra specs of other guests; MiB are 256 for each NUMA node
OTHERS = (
    (1, {'hw:cpu_policy': 'dedicated'}),
    (2, {'hw:cpu_policy': 'dedicated'}),
    (4, {'hw:cpu_policy': 'dedicated'}),
    (1, {'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': 'isolate'}),
    (3, {'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': 'isolate'}),
    (2, {'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': 'require'}),
    (2, {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0'}),
    (4, {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2'}),
    (2, {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
         'hw:cpu_thread_policy': 'isolate'}),
    (2, {'hw:numa_nodes': '1'}),
)


# -- what is generated, as plain data

@st.composite
def _hosts(draw, hard):
    """Draw a compute node; if hard, one where Nova's search can end wrong."""
    nodes = draw(st.sampled_from(
        (4, 5, 3, 4, 6, 8, 7) if hard else (2, 3, 4, 1, 5, 6, 7, 8)))
    threads = draw(st.sampled_from((1, 1, 2)))
    alike = hard or draw(st.integers(0, 2)) != 1
    cells, cell = [], None
    for _ in range(nodes):
        if cell is None or not alike:
            cores = draw(st.sampled_from(
                (4, 3, 2, 6, 8) if threads == 1 else (2, 4, 3, 1)))
            cell = {'cpus': cores * threads,
                    'shared': threads * draw(st.sampled_from(
                        (0, min(1, cores - 1), min(1, cores - 1)))),
                    'memory': draw(st.sampled_from(MEMORY))}
        cells.append(dict(cell))
    return {
        'threads': threads,
        # vcpu_pin_set instead of cpu_dedicated_set and cpu_shared_set
        'legacy': hard and threads == 2 or draw(st.booleans()),
        # CPUs are counted node by node, or one of each node in turn
        'in turn': draw(st.integers(0, 3)) == 1,
        'cells': cells,
        'switch': sorted(draw(st.lists(
            st.integers(0, nodes - 1), unique=True,
            min_size=min(nodes, 3) if hard else 1, max_size=nodes))),
        'node labels': hard or draw(st.integers(0, 7)) != 1,
        'physnet': sorted(draw(st.lists(
            st.integers(0, nodes - 1), unique=True, max_size=nodes))),
        'huge pages': not hard and draw(st.integers(0, 5)) == 1,
    }


@st.composite
def _guests(draw, host, hard):
    """What a flavor says of CPUs and memory.

    :param hard: whether it is isolated, has several NUMA nodes, and the host
        has more
    """
    counts = (2, 2, 3, 4) if hard else (2, 1, 2, 3, 4)
    widths = (2, 1, 2, 3)
    # Most of all, what an empty host like this could take.
    threads = host['threads']
    room = min(cell['cpus'] - cell['shared'] for cell in host['cells'])
    if hard or draw(st.integers(0, 9)) != 1:
        widths = [width for width in widths if width * threads <= room] or [1]
        counts = [min(count, len(host['cells']) - hard) for count in counts]
    count = draw(st.sampled_from(counts))
    even = draw(st.integers(0, 2)) != 1
    width = draw(st.sampled_from(widths))
    sizes = [width if even else draw(st.sampled_from(widths))
             for _ in range(count)]
    memory = [256 if even else draw(st.sampled_from((256, 512, 1024)))
              for _ in range(count)]
    vcpus = sum(sizes)
    specs = {'hw:numa_nodes': str(count)}
    start = 0
    for number, size in enumerate(() if even else sizes):
        specs['hw:numa_cpus.%d' % number] = ','.join(
            map(str, range(start, start + size)))
        specs['hw:numa_mem.%d' % number] = str(memory[number])
        start += size
    policy = draw(st.sampled_from(
        ('dedicated',) * 7 + ('mixed',) * 2 + (None,) * (not hard)))
    if policy == 'mixed' and vcpus > 1:
        specs['hw:cpu_policy'] = 'mixed'
        specs['hw:cpu_dedicated_mask'] = '^%d' % draw(
            st.integers(0, vcpus - 1))
    elif policy is not None:
        specs['hw:cpu_policy'] = 'dedicated'
    if policy is not None:
        policies = ['isolate'] * 5 + [None, 'prefer', 'require']
        if hard:
            policies = ['isolate']
        elif threads == 1 and draw(st.integers(0, 9)) != 1:
            policies.remove('require')
        elif threads == 2 and not host['legacy']:
            # No isolation there (Nova's bug 1889633).
            policies[1:5] = [None, 'require', 'require', 'prefer']
        thread_policy = draw(st.sampled_from(policies))
        if thread_policy:
            specs['hw:cpu_thread_policy'] = thread_policy
        if draw(st.integers(0, 11)) == 1:
            specs['hw:emulator_threads_policy'] = 'isolate'
    if draw(st.integers(0, 9)) == 1:
        specs['hw:mem_page_size'] = draw(
            st.sampled_from(('small', 'large', 'any')))
    return {'vcpus': vcpus, 'memory': sum(memory), 'specs': specs}


@st.composite
def _others(draw, host):
    """Another guest, and the host node it is told to go to; None for any."""
    vcpus, specs = draw(st.sampled_from(OTHERS))
    nodes = int(specs.get('hw:numa_nodes', 1))
    return {
        'vcpus': vcpus, 'memory': 256 * nodes, 'specs': specs,
        'node': draw(st.sampled_from((None, *range(len(host['cells']))))
                     ) if nodes == 1 else None}


@st.composite
def races(draw):
    """Draw a host with guests, a request, and what comes before its claim."""
    hard = draw(st.integers(0, 3)) != 3
    host = draw(_hosts(hard))
    nodes = len(host['cells'])
    before = draw(st.lists(_others(host), max_size=2))
    guest = draw(_guests(host, hard))
    specs = guest['specs']
    affinity = draw(st.sampled_from(
        ('strict', 'prefer') if hard else ('strict', 'prefer', None)))
    if affinity:
        specs['nfv:vswitch_numa_affinity'] = affinity
    count = int(specs['hw:numa_nodes'])
    if draw(st.integers(0, 7)) == 1:
        # Each guest node to another one.
        places = draw(st.permutations(range(max(nodes, count))))
        for number in draw(st.lists(st.integers(0, count - 1), unique=True,
                                    min_size=1)):
            specs['nfv:numa_node.%d' % number] = str(places[number])
    devices = []
    if draw(st.integers(0, 7)) == 1:
        devices = draw(st.lists(st.integers(0, nodes - 1), min_size=1,
                                max_size=3))
        key, value = draw(st.sampled_from((
            ('hw:pci_numa_affinity_policy', 'preferred'),
            ('hw:pci_numa_affinity_policy', 'required'),
            ('nfv:pci_numa_affinity', 'prefer'))))
        specs[key] = value
    meanwhile = st.fixed_dictionaries({
        'leave': st.sets(st.integers(0, max(0, len(before) - 1)),
                         max_size=len(before)).map(sorted),
        'arrive': st.lists(_others(host), max_size=2)})
    return {
        'host': host, 'before': before, 'guest': guest,
        'devices': devices,
        'network': draw(st.integers(0, 7)) == 1,
        'alternate': draw(st.booleans()),
        'packing': draw(st.integers(0, 3)) == 1,
        'cpu_ratio': draw(st.sampled_from(RATIOS)),
        'meanwhile': draw(st.lists(
            meanwhile, min_size=6 if hard else 3, max_size=8)),
    }


# -- the same as Nova's objects

def topology_of(host):
    """The ``NUMATopology`` that an empty compute node reports."""
    cells, first = [], 0
    nodes = len(host['cells'])
    for node, cell in enumerate(host['cells']):
        cpus = (range(node, node + nodes * cell['cpus'], nodes)
                if host['in turn'] else range(first, first + cell['cpus']))
        cpus = list(cpus)
        first += cell['cpus']
        shared = set(cpus[:cell['shared']])
        dedicated = set(cpus) - shared
        if host['legacy']:
            shared = dedicated = set(cpus)
        labels = set()
        if node in host['switch']:
            labels.add(joint.SWITCH_LABEL)
        if host['node labels']:
            labels.add('nfv_node%d' % node)
        if node in host['physnet']:
            labels.add(joint.PHYSNET)
        memory, huge = cell['memory'], 0
        if host['huge pages']:
            huge = memory // 2
        pages = [objects.NUMAPagesTopology(
            size_kb=4, total=(memory - huge) * 256, used=0, reserved=0)]
        if huge:
            pages.append(objects.NUMAPagesTopology(
                size_kb=2048, total=huge // 2, used=0, reserved=0))
        cells.append(objects.NUMACell(
            id=node, cpuset=shared, pcpuset=dedicated, memory=memory,
            cpu_usage=0, memory_usage=0, pinned_cpus=set(), socket=node,
            siblings=[set(cpus[start:start + host['threads']])
                      for start in range(0, len(cpus), host['threads'])],
            mempages=pages, network_metadata=objects.NetworkMetadata(
                physnets=labels, tunneled=False)))
    return objects.NUMATopology(cells=cells)


def flavor_of(guest):
    return objects.Flavor(
        name='guest', vcpus=guest['vcpus'], memory_mb=guest['memory'],
        root_gb=0, ephemeral_gb=0, swap=0, extra_specs=dict(guest['specs']))


def guest_topology_of(guest):
    """A fresh ``InstanceNUMATopology``, as each service makes it.

    :raises nova.exception.NovaException: if Nova's API would not let such a
        flavor through
    """
    return hardware.numa_get_constraints(
        flavor_of(guest),
        objects.ImageMeta(properties=objects.ImageMetaProps()))


def labels_in(limits):
    if limits is None or 'network_metadata' not in limits:
        return set()
    return {name for name in limits.network_metadata.physnets
            if name.startswith('nfv_')}


def described(limits):
    """Limits as plain values, to compare; None if the host is refused."""
    if limits is None:
        return None
    metadata = (limits.network_metadata
                if 'network_metadata' in limits else None)
    return (limits.cpu_allocation_ratio, limits.ram_allocation_ratio,
            sorted(metadata.physnets) if metadata else [],
            bool(metadata and metadata.tunneled))


class Wrong(AssertionError):
    """What a claim that succeeded has done wrong."""


class NotPinned(Wrong):
    """A guest node has none of the CPUs that it should be pinned to.

    Nova accepts some guests with unlike nodes so, without any limits.
    """


class Host:
    """A compute node: Nova's record of it, and a book of its own.

    The book has the CPUs that each guest keeps others from, by the pins that
    the guest has.
    """

    def __init__(self, topology):
        self.topology = topology
        self.node_of = {cpu: cell.id for cell in topology.cells
                        for cpu in cell.pcpuset}
        self.core_of = {cpu: core for cell in topology.cells
                        for core in cell.siblings for cpu in core}
        self.guests = {}  # name: (InstanceNUMATopology, CPUs)

    def copy(self):
        other = copy.copy(self)
        other.guests = dict(self.guests)
        return other

    def taken(self):
        return set().union(*(cpus for _guest, cpus in self.guests.values()))

    def pins(self, cell):
        """The CPUs that one NUMA node of a guest runs on."""
        return set((cell.cpu_pinning or {}).values()) | set(
            cell.cpuset_reserved or ())

    def kept(self, cell):
        """The same, with what is kept from others under ``isolate``."""
        pins = self.pins(cell)
        if cell.cpu_thread_policy == 'isolate':
            return set().union(*(self.core_of[cpu] for cpu in pins))
        return pins

    def fit(self, guest, limits=None, pools=(), requests=()):
        """Nova's choice of host nodes and CPUs for a guest; None if none."""
        pci_stats = strategies.pci_stats(self.topology, pools)
        if requests and not pci_stats.support_requests(
                requests, provider_mapping=None):
            return None
        return claims.numa_fit(
            self.topology, guest, limits, requests, pci_stats)

    def check(self, claimed):
        """Hold the choice against the book.

        :raises Wrong: if its pins are not those of its nodes, or not free
        :raises NotPinned: if it has none
        """
        taken = self.taken()
        nodes = [cell.id for cell in claimed.cells]
        if len(set(nodes)) < len(nodes):
            raise Wrong('two guest nodes on one host node: %s' % nodes)
        for number, cell in enumerate(claimed.cells):
            pins = self.pins(cell)
            where = {self.node_of.get(cpu) for cpu in pins}
            if where - {cell.id}:
                raise Wrong(
                    'pins of another node: guest node %d is recorded on '
                    'node %d, its CPUs %s are of %s' % (
                        number, cell.id, sorted(pins), sorted(where)))
            kept = self.kept(cell)
            if kept & taken:
                raise Wrong('pinned twice: %s' % sorted(kept & taken))
            taken |= kept
        for number, cell in enumerate(claimed.cells):
            if len(cell.cpu_pinning or ()) != len(cell.pcpuset):
                raise NotPinned('not pinned: guest node %d' % number)

    def record(self, name, claimed):
        """Record as the resource tracker does; return whether Nova could."""
        try:
            self.topology = hardware.numa_usage_from_instance_numa(
                self.topology, claimed)
        except (exception.CPUPinningUnknown, exception.CPUPinningInvalid):
            return False
        self.guests[name] = claimed, set().union(
            *map(self.kept, claimed.cells))
        return True

    def leave(self, name):
        if name in self.guests:
            claimed, _cpus = self.guests.pop(name)
            self.topology = hardware.numa_usage_from_instance_numa(
                self.topology, claimed, free=True)

    def arrive(self, name, other):
        """Another guest comes, if there is room.

        A single guest NUMA node may have been sent to its host node; Nova's
        own choice is sound then.

        :returns: whether Nova would have broken the book without any limits;
            such a guest is left out
        """
        try:
            guest = guest_topology_of(other)
        except exception.NovaException:
            return False
        limits = None
        if other['node'] is not None:
            limits = objects.NUMATopologyLimits(
                cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0,
                network_metadata=objects.NetworkMetadata(
                    physnets={'nfv_node%d' % other['node']},
                    tunneled=False))
        claimed = self.fit(guest, limits)
        if claimed is None:
            return False
        try:
            self.check(claimed)
        except Wrong:
            return True
        self.record(name, claimed)
        return False

    def check_record(self):
        """Raise Wrong if Nova's record has not the CPUs that the book has."""
        recorded = set().union(*(
            cell.pinned_cpus for cell in self.topology.cells))
        if recorded != self.taken():
            raise Wrong('recorded as pinned %s, taken %s' % (
                sorted(recorded), sorted(self.taken())))

    def check_next(self):
        """Raise Wrong if a guest for the last CPUs gets another guest's."""
        free = max(len(cell.free_pcpus) for cell in self.topology.cells)
        claimed = free and self.fit(guest_topology_of({
            'vcpus': free, 'memory': 4,
            'specs': {'hw:cpu_policy': 'dedicated'}}))
        if claimed:
            self.check(claimed)
            self.record('next to %d' % len(self.guests), claimed)


class Race:
    """A case, its decision and its claims.

    :raises nova.exception.NovaException: if Nova's API would not let such a
        flavor through
    """

    def __init__(self, data):
        self.data = data
        self.specs = data['guest']['specs']
        self.guest = guest_topology_of(data['guest'])
        self.switch = set(data['host']['switch'])
        self.affinity = self.specs.get('nfv:vswitch_numa_affinity')
        self.node_map = {
            int(key.rpartition('.')[2]): int(value)
            for key, value in self.specs.items()
            if key.startswith('nfv:numa_node.')}
        self.strict = self.affinity == 'strict' or bool(self.node_map)
        self.ours = any(key.startswith('nfv:') for key in self.specs)
        self.isolate = self.specs.get('hw:cpu_thread_policy') == 'isolate'
        self.hard = self.isolate and 1 < len(self.guest.cells) < len(
            data['host']['cells'])
        self.stock_astray = 0
        self.host = Host(topology_of(data['host']))
        for number, other in enumerate(data['before']):
            self.stock_astray += self.host.arrive(
                'before %d' % number, other)
        self.pools = [
            {'vendor_id': '8086', 'product_id': '10ed', 'numa_node': node,
             'count': 2, 'dev_type': 'type-VF',
             'address': '0000:%02x:00.0' % number}
            for number, node in enumerate(data['devices'])]
        self.requests = [objects.InstancePCIRequest(
            count=1, request_id=joint.request_id(0), alias_name='nic',
            numa_policy=self.specs.get('hw:pci_numa_affinity_policy'),
            spec=[{'vendor_id': '8086', 'product_id': '10ed'}])
        ] if self.pools else []
        self.network = objects.NetworkMetadata(
            physnets={joint.PHYSNET}, tunneled=False
        ) if data['network'] else None

    def decide(self, filters):
        """What the scheduler does with this host as its only one.

        Half of the cases take it for an alternate of the host that was
        chosen: nothing tells the filters that a server may go there.

        :returns: the ``NUMATopologyLimits`` of its selection; None if the
            host is refused
        """
        state = strategies.host_state(
            strategies.clone(self.host.topology), self.data['cpu_ratio'],
            1.5, pools=self.pools)
        spec = strategies.request_spec(
            self.guest, self.network, self.specs, pci=self.requests)
        spec.flavor = flavor_of(self.data['guest'])
        try:
            passed = list(nova_filters.HostFilterHandler()
                          .get_filtered_objects(
                              filters, [state], spec, 0) or ())
        except exception.NoValidHost:
            return None
        if not passed:
            return None
        if not self.data['alternate']:
            state.consume_from_request(spec)
        return strategies.clone(
            objects.SchedulerLimits.from_dict(state.limits)).numa_topology

    def claim(self, limits, change):
        """Claim as nova-compute does once others have come and gone.

        :returns: the node and what it has given the guest; None if it fails
        """
        host = self.host.copy()
        for number in change['leave']:
            host.leave('before %d' % number)
        for number, other in enumerate(change['arrive']):
            self.stock_astray += host.arrive('arrived %d' % number, other)
        claimed = host.fit(guest_topology_of(self.data['guest']), limits,
                           self.pools, self.requests)
        if claimed is None:
            return None
        book = host.copy()
        if not host.record('guest', claimed):
            return None
        return book, host, claimed

    def check(self, book, host, claimed):
        """Hold a claim that has succeeded against what was asked for.

        :param book: the node before the claim; ``host`` is it afterwards
        :raises Wrong: if it is not what was asked for
        """
        if self.affinity == 'strict':
            for cell in claimed.cells:
                nodes = {cell.id} | {
                    book.node_of[cpu] for cpu in book.pins(cell)}
                if not nodes <= self.switch:
                    raise Wrong(
                        'astray: recorded on node %d, runs on %s, the '
                        'switch on %s' % (cell.id, sorted(nodes),
                                          sorted(self.switch)))
        for number, node in self.node_map.items():
            cell = claimed.cells[number]
            if {cell.id} | {book.node_of[cpu] for cpu in book.pins(
                    cell)} != {node}:
                raise Wrong('mapped to node %d: %s' % (node, cell))
        book.check(claimed)
        host.check_record()
        host.check_next()


class RaceTestCase(test_stock.EquivalenceTestCase):
    def setUp(self):
        super().setUp()
        classes = {cls.__name__: cls for cls in all_filters()}
        passthrough = pci_passthrough_filter.PciPassthroughFilter()
        self.filters = [passthrough] + [classes[name]() for name in FILTERS]
        self.stock = [passthrough,
                      numa_topology_filter.NUMATopologyFilter()]


class TestRaces(RaceTestCase):
    def test_races(self):
        seen = collections.Counter()

        @test_stock.SETTINGS
        @hypothesis.given(data=races())
        def check(data):
            self.check_race(data, seen)

        check()
        print('races: %s' % dict(sorted(seen.items())))
        cases = test_stock.CASES
        self.assertGreater(seen['decided'], cases // 2)
        self.assert_seen(seen['refused'], cases // 20)
        self.assert_seen(seen['isolate claims'], cases // 2)
        self.assert_seen(seen['strict claimed'], cases // 10)
        self.assert_seen(seen['labelled claimed'], cases // 10)
        self.assert_seen(seen['failed'], cases // 100)
        self.assert_seen(seen['several nodes, some to spare'], cases // 5)

    def check_race(self, data, seen):
        self.flags('compute', packing_host_numa_cells_allocation_strategy=(
            data['packing']))
        try:
            race = Race(data)
        except exception.NovaException:
            # Nova's API would not accept such a flavor.
            return
        seen['decided'] += 1
        limits = race.decide(self.filters)
        if not race.strict:
            stock = race.decide(self.stock)
            self.assertEqual(stock is None, limits is None,
                             'a preference changes the hosts')
            if not race.ours:
                self.assertEqual(described(stock), described(limits))
        if limits is None:
            seen['refused'] += 1
            return
        for change in data['meanwhile']:
            self.check_claim(race, limits, change, seen)
        seen['others left out'] += race.stock_astray

    def check_claim(self, race, limits, change, seen):
        seen['claims'] += 1
        seen['isolate claims'] += race.isolate
        done = race.claim(limits, change)
        if done is None:
            seen['failed'] += 1
            return
        try:
            race.check(*done)
        except Wrong as error:
            if not self.excused(race, limits, change, error):
                raise
            seen['broken by stock'] += 1
            return
        seen['claimed'] += 1
        seen['strict claimed'] += race.strict
        seen['labelled claimed'] += bool(labels_in(limits))
        changed = change['leave'] or change['arrive']
        seen['several nodes, some to spare'] += bool(race.hard and changed)

    def excused(self, race, limits, change, error):
        """Whether Nova would have done it without this plugin.

        Whoever is steered by labels gets no wrong CPUs, and a strict guest
        never does.
        """
        if not isinstance(error, NotPinned) and (
                race.strict or labels_in(limits)):
            return False
        done = race.claim(race.decide(self.stock), change)
        if done is not None:
            try:
                race.check(*done)
            except Wrong:
                return True
        return False
