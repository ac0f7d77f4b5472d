# SPDX-License-Identifier: Apache-2.0
"""Small hosts and guests with every policy, and what is right for them.

A case is plain data: it can be printed, pasted and run again.
:class:`Oracle` goes through all assignments of guest NUMA nodes to host NUMA
nodes and all choices of devices, and holds each against the definition of
the policies.  It knows nothing of how the plugin decides.  What Nova itself
asks of a host is asked of Nova.
"""

import collections
import itertools
import uuid

from hypothesis import strategies as st
from nova import exception
from nova import objects
from nova.virt import hardware

from nfv_sched.tests import strategies

TOPOLOGY = 'NFVTopologyFilter'
VSWITCH = 'VSwitchNUMAAffinityFilter'
PCI = 'PCINUMAAffinityFilter'
PLACE = 'PlaceNUMAAffinityFilter'
SHARED = 'SharedVCPUFilter'
THREADS = 'CPUThreadPolicyFilter'
STOCK = 'NUMATopologyFilter'
SWITCH_LABEL = 'nfv_vswitch'
#: Places that hosts declare; requests may also ask for that of the switch.
PLACES = ('osd', 'nvme')
AT = 'nfv:numa_affinity.'
AWAY = 'nfv:numa_anti_affinity.'
MEMORY = 4096
PHYSNET = 'physnet0'


@st.composite
def _usage(draw, cells, pools):
    return {
        'shared': [draw(st.integers(0, 3 * cell['shared']))
                   for cell in cells],
        'pinned': [draw(st.sampled_from((0, 0, 0, 1, 2, cell['dedicated'])))
                   for cell in cells],
        'high': [draw(st.booleans()) for _ in cells],
        'memory': [draw(st.sampled_from((0, 0, 1024, MEMORY)))
                   for _ in cells],
        'free': [draw(st.integers(0, pool['count'])) for pool in pools],
    }


@st.composite
def _guest(draw, nodes):
    """Flavor: (vCPUs, extra specs), as Nova's API lets it through."""
    cells = draw(st.sampled_from(
        [1, 1, 1] + [min(2, nodes), min(2, nodes), min(3, nodes)]))
    each = draw(st.integers(1, 3))
    vcpus = cells * each
    specs = {}
    policy = draw(st.sampled_from(
        (None, 'dedicated', 'dedicated', 'mixed', 'mixed')))
    if cells > 1 or policy is None and draw(st.integers(0, 7)) != 1:
        specs['hw:numa_nodes'] = str(cells)
    shared = draw(st.integers(0, vcpus - 1))
    if policy == 'mixed' and vcpus > 1:
        specs['hw:cpu_policy'] = 'mixed'
        mask = '^%d' % shared
        if cells > 1 and each > 1 and draw(st.booleans()):
            # One in every guest NUMA node.
            mask = ','.join('^%d' % (cell * each) for cell in range(cells))
        specs['hw:cpu_dedicated_mask'] = mask
    elif policy is not None:
        specs['hw:cpu_policy'] = 'dedicated'
    if policy is not None:
        threads = draw(st.sampled_from(
            (None,) * 6 + ('prefer', 'require', 'isolate')))
        if threads:
            specs['hw:cpu_thread_policy'] = threads
    if cells > 1 and vcpus > cells and draw(st.integers(0, 3)) == 1:
        # Guest NUMA nodes of unlike size.
        cuts = [str(number) for number in range(cells - 1)] + [
            '%d-%d' % (cells - 1, vcpus - 1)]
        for number, cpus in enumerate(cuts):
            specs['hw:numa_cpus.%d' % number] = cpus
            specs['hw:numa_mem.%d' % number] = '512'
    mixed = 'hw:cpu_dedicated_mask' in specs
    if draw(st.sampled_from((True, False) if mixed else
                            (False,) * 11 + (True,))):
        specs['nfv:shared_vcpu'] = str(
            shared if draw(st.integers(0, 9)) != 1
            else draw(st.integers(0, vcpus)))
    return vcpus, cells, specs


def _place_keys():
    """Keys of places; now and then a place is asked for and avoided.

    One draw of all that there can be: hypothesis is not to like some better.
    """
    ones = [(prefix + place, value)
            for prefix in (AWAY, AT) for place in (*PLACES, 'vswitch')
            for value in ('strict', 'prefer')]
    pairs = [(one, other) for one, other in itertools.combinations(ones, 2)
             if one[0] != other[0]]
    single = [(one,) for one in ones]
    few = len(pairs) // len(single)
    return st.sampled_from(
        2 * few * single + pairs + 3 * len(pairs) * [()]).map(dict)


@st.composite
def _pools(draw, nodes):
    kinds = draw(st.sampled_from((
        ('type-VF',), ('type-VF', 'type-PF'), ('type-VF', 'type-PCI'))))
    where = list(range(nodes))
    if draw(st.integers(0, 3)) == 1:
        where.append(None)
    products = draw(st.sampled_from((('10ed',), ('10ed', '154d'))))
    ports = draw(st.integers(0, 3)) == 1
    return [
        {'node': draw(st.sampled_from(where)),
         'count': draw(st.integers(1, 3)),
         'type': draw(st.sampled_from(kinds)),
         'product': draw(st.sampled_from(products)),
         'physnet': PHYSNET if ports and draw(st.booleans()) else None}
        for _ in range(draw(st.sampled_from((2, 3, 4, 1))))]


@st.composite
def _requests(draw, pools, policies):
    common = draw(st.sampled_from(policies))
    same = draw(st.integers(0, 3)) != 1
    requests = []
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        pool = draw(st.sampled_from(pools))
        port = bool(pool['physnet']) and draw(st.booleans())
        requests.append({
            'count': 1 if port else draw(st.sampled_from((1, 1, 1, 2, 3))),
            'product': None if port else pool['product'],
            'type': pool['type'] if (
                pool['type'] == 'type-PF' or draw(st.booleans()) and
                not port) else None,
            'physnet': pool['physnet'] if port else None,
            'policy': common if same else draw(st.sampled_from(policies))})
    return requests


@st.composite
def _mappings(draw, pools, requests, now):
    """For each candidate and request, the pool that gives each device.

    As Placement makes candidates: of free devices, wherever they are.
    """
    candidates = []
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        mapping = []
        free = list(now['free'])
        for request in requests:
            chosen = []
            for _ in range(request['count']
                           if request['physnet'] is None else 0):
                suited = [
                    number for number, pool in enumerate(pools)
                    if suits(pool, request) and free[number] and
                    pool['physnet'] is None]
                if not suited:
                    return None
                chosen.append(draw(st.sampled_from(suited)))
                free[chosen[-1]] -= 1
            mapping.append(chosen)
        candidates.append(mapping)
    return candidates


@st.composite
def cases(draw):
    """A host, a guest, the filters that are enabled, and later states."""
    place_keys = draw(_place_keys())
    nodes = draw(st.sampled_from((2, 2, 2, 3, 4, 1)))
    threads = draw(st.sampled_from((1, 1, 2)))
    alike = draw(st.integers(0, 3)) != 1
    cells, cell = [], None
    for node in range(nodes):
        if cell is None or not alike:
            cell = {'shared': threads * draw(st.sampled_from((1, 2, 2, 0))),
                    'dedicated': threads * draw(st.sampled_from((4, 3, 2, 1)))}
        cells.append(dict(cell))
    switch = draw(st.lists(st.integers(0, nodes - 1), unique=True,
                           min_size=1, max_size=nodes))
    vcpus, guest_cells, specs = draw(_guest(nodes))
    if draw(st.integers(0, 2)) == 1:
        specs['nfv:vswitch_numa_affinity'] = draw(
            st.sampled_from(('strict', 'strict', 'prefer')))
    specs.update(place_keys)
    pools, requests, mappings = [], [], None
    busy = draw(st.booleans())
    if draw(st.integers(0, 3)) != 1:
        pools = draw(_pools(nodes))
    # A claim may look at the devices of a host that the guest does not want.
    if pools and draw(st.integers(0, 3)) != 1:
        affinity = draw(st.sampled_from((None, 'strict', 'strict', 'prefer')))
        policies = {
            None: (None, 'legacy', 'required', 'preferred', 'socket'),
            'strict': (None, 'legacy', 'required', 'preferred', 'socket'),
            'prefer': (None, 'legacy', 'preferred', 'preferred'),
        }[affinity]
        requests = draw(_requests(pools, policies))
        if affinity:
            specs['nfv:pci_numa_affinity'] = affinity
    now = draw(_usage(cells, pools)) if busy else {
        'shared': [0] * nodes, 'pinned': [0] * nodes,
        'high': [False] * nodes, 'memory': [0] * nodes,
        'free': [pool['count'] for pool in pools]}
    if requests and draw(st.booleans()):
        mappings = draw(_mappings(pools, requests, now))
    if draw(st.integers(0, 3)) == 1:
        for cell in draw(st.lists(st.integers(0, guest_cells - 1),
                                  unique=True, min_size=1)):
            specs['nfv:numa_node.%d' % cell] = str(
                draw(st.integers(0, nodes - 1)))
    network = None
    if draw(st.integers(0, 2)) == 1:
        network = {'physnet': draw(st.booleans()),
                   'tunneled': draw(st.booleans())}
    return {
        'threads': threads,
        'pin_set': draw(st.integers(0, 9)) == 1,
        'cells': cells,
        'sockets': draw(st.sampled_from(('node', 'pair', None))),
        'labels': draw(st.sampled_from(('nodes', 'nodes', 'vswitch', 'no'))),
        'switch': sorted(switch),
        'places': {
            place: sorted(draw(st.lists(
                st.integers(0, nodes - 1), unique=True, max_size=nodes,
                min_size=draw(st.sampled_from((1, 1, 1, 0))))))
            for place in PLACES},
        'physnet': sorted(draw(st.lists(st.integers(0, nodes - 1),
                                        unique=True, max_size=nodes))),
        'tunnel': sorted(draw(st.lists(st.integers(0, nodes - 1),
                                       unique=True, max_size=nodes))),
        'pools': pools,
        'now': now,
        'later': draw(st.lists(_usage(cells, pools), min_size=2,
                               max_size=3)),
        'vcpus': vcpus,
        'specs': specs,
        'requests': requests,
        'mappings': mappings,
        'network': network,
        'enabled': [TOPOLOGY] + [
            name for name in (VSWITCH, PCI, PLACE, SHARED, THREADS)
            if draw(st.integers(0, 4)) != 1],
        'packing': draw(st.integers(0, 3)) == 1,
        'cpu_ratio': draw(st.sampled_from((1.0, 4.0, 16.0))),
        'per_core': draw(st.sampled_from((16.0, 2.0, 1.0, 3.5, 0.0))),
    }


def suits(pool, request):
    if request['physnet'] is not None:
        if pool['physnet'] != request['physnet']:
            return False
    elif pool['product'] != request['product']:
        return False
    if request['type'] is not None:
        return pool['type'] == request['type']
    return pool['type'] != 'type-PF'


def request_id(number):
    return str(uuid.UUID(int=number + 1))


class Case:
    """A case as Nova's objects.

    :param data: what :func:`cases` draws
    :raises nova.exception.NovaException: if Nova's API would not let such a
        flavor through
    """

    def __init__(self, data):
        self.data = data
        self.nodes = len(data['cells'])
        self.specs = data['specs']
        flavor = objects.Flavor(
            vcpus=data['vcpus'], memory_mb=512 * int(
                self.specs.get('hw:numa_nodes', 1)),
            extra_specs=dict(self.specs))
        image = objects.ImageMeta(properties=objects.ImageMetaProps())
        self.guest = hardware.numa_get_constraints(flavor, image)
        self.requests = [
            objects.InstancePCIRequest(
                count=request['count'], request_id=request_id(number),
                alias_name=None if request['physnet'] else 'a%d' % number,
                numa_policy=request['policy'],
                spec=[{key: value for key, value in (
                    ('product_id', request['product']),
                    ('physical_network', request['physnet']),
                    ('dev_type', request['type'])) if value}])
            for number, request in enumerate(data['requests'])]
        self.network = None
        if data['network']:
            self.network = objects.NetworkMetadata(
                physnets={PHYSNET} if data['network']['physnet'] else set(),
                tunneled=data['network']['tunneled'])

    def host(self, usage):
        data, cells, base = self.data, [], 0
        for node, cell in enumerate(data['cells']):
            count = cell['shared'] + cell['dedicated']
            cpus = list(range(base, base + count))
            base += count
            shared = set(cpus[:cell['shared']])
            dedicated = set(cpus) - shared
            if data['pin_set']:
                shared = dedicated = set(cpus)
            ordered = sorted(dedicated, reverse=usage['high'][node])
            labels = set()
            if data['labels'] != 'no' and node in data['switch']:
                labels.add(SWITCH_LABEL)
            if data['labels'] != 'no':
                labels.update('nfv_' + place for place, near in
                              data['places'].items() if node in near)
            if data['labels'] == 'nodes':
                labels.add('nfv_node%d' % node)
            if node in data['physnet']:
                labels.add(PHYSNET)
            threads = data['threads']
            cells.append(objects.NUMACell(
                id=node, cpuset=shared, pcpuset=dedicated, memory=MEMORY,
                cpu_usage=usage['shared'][node],
                memory_usage=usage['memory'][node],
                pinned_cpus=set(ordered[:usage['pinned'][node]]),
                siblings=[set(cpus[start:start + threads])
                          for start in range(0, count, threads)],
                mempages=[objects.NUMAPagesTopology(
                    size_kb=4, total=MEMORY * 256,
                    used=usage['memory'][node] * 256, reserved=0)],
                socket={'node': node, 'pair': node // 2, None: None}[
                    data['sockets']],
                network_metadata=objects.NetworkMetadata(
                    physnets=labels, tunneled=node in data['tunnel'])))
        return objects.NUMATopology(cells=cells)

    def pools(self, usage, candidate=None):
        """The free devices, as the compute node reports them.

        Devices without NUMA information that were all in use when the
        scheduler looked are invisible to it: that limit is known.

        :param candidate: the allocation candidate that was claimed; nobody
            else gets those devices
        """
        pools = []
        kept = collections.Counter()
        if candidate is not None and self.data['mappings'] is not None:
            for chosen in self.data['mappings'][candidate['number']]:
                kept.update(chosen)
        for number, (pool, free) in enumerate(
                zip(self.data['pools'], usage['free'])):
            free = max(free, kept[number])
            if pool['node'] is None and not self.data['now']['free'][number]:
                continue
            if not free:
                continue
            made = {'vendor_id': '8086', 'product_id': pool['product'],
                    'numa_node': pool['node'], 'count': free,
                    'dev_type': pool['type'],
                    'address': '0000:%02x:00.0' % number}
            if pool['physnet']:
                made['physical_network'] = pool['physnet']
            if self.data['mappings'] is not None and not pool['physnet']:
                made['rp_uuid'] = strategies.provider(number)
            pools.append(made)
        return pools

    def candidates(self):
        if self.data['mappings'] is None:
            return [{'allocations': {}, 'number': 0,
                     'mappings': {'': [strategies.ROOT]}}]
        return [
            {'allocations': {}, 'number': number, 'mappings': dict(
                [('', [strategies.ROOT])] + [
                    ('%s-%d' % (request_id(request), index),
                     [strategies.provider(pool)])
                    for request, pools in enumerate(mapping)
                    for index, pool in enumerate(pools)])}
            for number, mapping in enumerate(self.data['mappings'])]

    def state(self):
        return strategies.host_state(
            self.host(self.data['now']), self.data['cpu_ratio'], 1.5,
            candidates=self.candidates(), pools=self.pools(self.data['now']))

    def spec(self):
        return strategies.request_spec(
            self.guest, self.network, self.specs, pci=self.requests)


class Place:
    """What one key of a place asks for, as the documentation has it.

    :ivar label: by which the host declares the place, None if it does not
    :ivar wanted: host nodes where the guest is to be
    """

    def __init__(self, data, key, value):
        place = key.partition('.')[2]
        declared = set(data['switch'] if place == 'vswitch'
                       else data['places'][place])
        if data['labels'] == 'no':
            declared = set()
        self.name = place
        self.strict = value == 'strict'
        self.away = key.startswith(AWAY)
        self.label = 'nfv_' + place if declared else None
        # A host that does not declare a place has none: nobody can be at it,
        # and everybody is away from it.
        self.wanted = declared
        if self.away:
            self.wanted = set(range(len(data['cells']))) - declared

    @property
    def nowhere(self):
        """Whether every guest on the host is away from the place."""
        return self.away and self.label is None


class Oracle:
    """What the policies mean, for one case."""

    def __init__(self, case):
        self.case = case
        self.data = case.data
        enabled = case.data['enabled']
        specs = case.specs
        self.switch = set(self.data['switch'])
        if self.data['labels'] == 'no':
            self.switch = self._network_nodes()
        vswitch = specs.get('nfv:vswitch_numa_affinity')
        self.vswitch = vswitch if VSWITCH in enabled else None
        self.pci = None
        if PCI in enabled and case.requests:
            self.pci = specs.get('nfv:pci_numa_affinity')
            if self.pci is None and any(
                    each.numa_policy == 'preferred'
                    for each in case.requests):
                self.pci = 'prefer'
        self.node_map = {
            int(key.rpartition('.')[2]): int(value)
            for key, value in specs.items()
            if key.startswith('nfv:numa_node.')}
        self.shared_vcpu = None
        if SHARED in enabled and 'nfv:shared_vcpu' in specs:
            self.shared_vcpu = int(specs['nfv:shared_vcpu'])
        self.threads = specs.get('hw:cpu_thread_policy')
        self.all_places = [Place(self.data, key, value)
                           for key, value in sorted(specs.items())
                           if key.startswith((AT, AWAY))]
        self.places = self.all_places if PLACE in enabled else []
        others = bool(
            self.vswitch == 'strict' or self.pci == 'strict' or
            self.node_map or self.shared_vcpu is not None)
        self.strict = others or any(place.strict for place in self.places)
        #: What a guest whose CPUs float over two host nodes cannot keep.
        self.needs_topology = others or any(
            place.strict and not place.nowhere for place in self.places)

    def _network_nodes(self):
        """Where the switch of an unlabelled host is; empty if unknown."""
        places = []
        network = self.data['network']
        if network and network['physnet']:
            places.append(set(self.data['physnet']))
        if network and network['tunneled']:
            places.append(set(self.data['tunnel']))
        return set().union(*places) if all(places) else set()

    # -- the request

    def at_and_away(self):
        names = [place.name for place in self.all_places]
        return len(set(names)) < len(names)

    def contradiction(self):
        """Whether no host at all can take the request."""
        if self.at_and_away():
            return True
        guest = self.case.guest
        cells = len(guest.cells) if guest else 0
        if any(node >= cells for node in self.node_map if cells):
            return True
        if len(set(self.node_map.values())) < len(self.node_map):
            return True
        if 'nfv:shared_vcpu' not in self.case.specs:
            return False
        vcpu = int(self.case.specs['nfv:shared_vcpu'])
        if self.case.specs.get('hw:cpu_policy') != 'mixed':
            return True
        home = [cell for cell in guest.cells if vcpu in cell.cpuset]
        return not home or not home[0].pcpuset or self.threads in (
            'isolate', 'require')

    # -- one state of the host

    def cap(self, cell):
        """Shared vCPUs that a host node may have; None for any number."""
        per_core = self.data['per_core']
        if self.shared_vcpu is None or per_core <= 0:
            return None
        cores = sum(bool(core & cell.cpuset) for core in cell.siblings)
        return per_core * cores

    def fits(self, host, ratio):
        """Host nodes that each guest cell fits, one by one."""
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=ratio, ram_allocation_ratio=1.5)
        fits = []
        guest = self.case.guest
        for number, cell in enumerate(guest.cells):
            nodes = set()
            for host_cell in host.cells:
                try:
                    if hardware._numa_fit_instance_cell(
                            host_cell, strategies.clone(cell), limits,
                            int(guest.emulator_threads_isolated and
                                not number)):
                        nodes.add(host_cell.id)
                except exception.MemoryPageSizeNotSupported:
                    pass
            fits.append(nodes)
        return fits

    def near_networks(self, nodes):
        """Nova's rule for the networks of a request."""
        network = self.data['network']
        if not network:
            return True
        for wanted, places in ((network['physnet'], self.data['physnet']),
                               (network['tunneled'], self.data['tunnel'])):
            if wanted and places and not set(places) & set(nodes):
                return False
        return True

    def local_devices(self, usage, nodes, mapping):
        """Whether local devices for all the requests are free at once."""
        pools = self.data['pools']
        here = [number for number, pool in enumerate(pools)
                if self.case.nodes == 1 or pool['node'] in nodes]

        def serve(number, free):
            if number == len(self.data['requests']):
                return True
            request = self.data['requests'][number]
            suited = [p for p in here if suits(pools[p], request)]
            fixed = mapping[number] if mapping else []
            if fixed:
                choices = [fixed]
            else:
                choices = itertools.combinations_with_replacement(
                    suited, request['count'])
            for choice in choices:
                left = list(free)
                for pool in choice:
                    left[pool] -= 1
                if min(left, default=0) >= 0 and \
                        set(choice) <= set(suited) and \
                        serve(number + 1, left):
                    return True
            return False

        return serve(0, usage['free'])

    def assignments(self, usage, candidate):
        """Return the assignments that satisfy all that is asked for."""
        case = self.case
        host = case.host(usage)
        pci_stats = strategies.pci_stats(host, case.pools(usage))
        mapping = None
        if self.data['mappings'] is not None:
            mapping = self.data['mappings'][candidate['number']]
        found = []
        fits = self.fits(host, self.data['cpu_ratio'])
        for nodes in itertools.permutations(
                range(case.nodes), len(case.guest.cells)):
            if not all(node in fitting
                       for node, fitting in zip(nodes, fits)):
                continue
            cells = [objects.InstanceNUMACell(id=node) for node in nodes]
            if not self.near_networks(nodes) or (
                    case.requests and not pci_stats.support_requests(
                        case.requests, candidate['mappings'], cells)):
                continue
            if self.keeps(nodes) and self.in_cap(host, nodes) and (
                    self.pci != 'strict' or
                    self.local_devices(usage, nodes, mapping)):
                found.append(nodes)
        return found

    def in_cap(self, host, nodes):
        for cell, node in zip(self.case.guest.cells, nodes):
            cap = self.cap(host.cells[node])
            if cap is not None and cell.cpuset and \
                    host.cells[node].cpu_usage + len(cell.cpuset) > cap:
                return False
        return True

    def keeps(self, nodes):
        if self.vswitch == 'strict' and not set(nodes) <= self.switch:
            return False
        if self.strays(nodes) is not None:
            return False
        return all(nodes[cell] == node
                   for cell, node in self.node_map.items())

    def strays(self, nodes):
        """A strict place that the host nodes do not suit, or None."""
        return next((place for place in self.places if place.strict and
                     not set(nodes) <= place.wanted), None)

    # -- what a claim has done

    def at_places(self, claimed):
        """For each preferred place, the part of the guest that suits it."""
        return [sum(node in place.wanted for node in claimed.nodes) /
                len(claimed.nodes)
                for place in self.places if not place.strict]

    def locality(self, claimed):
        """What of the guest is where it should be.

        :returns: part of its devices on its nodes, part of its nodes with
            the switch
        """
        local = [self.case.nodes == 1 or node in claimed.nodes
                 for _request, node in claimed.devices]
        switch = [node in self.switch for node in claimed.nodes]
        return (sum(local) / len(local) if local else 0.0,
                sum(switch) / len(switch) if switch else 0.0)

    def broken(self, claimed, usage):
        """What a claim has broken, as text; None if nothing."""
        nodes, case = claimed.nodes, self.case
        if not case.guest:
            if self.needs_topology and case.nodes > 1:
                return 'a strict policy without a guest NUMA topology'
            stray = self.strays((0,)) if case.nodes == 1 else None
            return stray and 'place: %s' % stray.name
        if self.vswitch == 'strict' and not set(nodes) <= self.switch:
            return 'vswitch: %s not on %s' % (nodes, self.switch)
        stray = self.strays(nodes)
        if stray is not None:
            return 'place %s: %s not on %s' % (
                stray.name, nodes, stray.wanted)
        if not all(nodes[cell] == node
                   for cell, node in self.node_map.items()):
            return 'node mapping: %s not %s' % (nodes, self.node_map)
        asked = sum(each['count'] for each in self.data['requests'])
        if self.pci == 'strict' and (len(claimed.devices) < asked or
                                     self.locality(claimed)[0] < 1):
            return 'PCI: %d devices asked for, %s for a guest on %s' % (
                asked, claimed.devices, nodes)
        host = case.host(usage)
        if self.shared_vcpu is not None:
            if not self.in_cap(host, nodes):
                return 'shared vCPU: more than the limit on %s' % (nodes,)
            for cell, node in zip(claimed.topology.cells, nodes):
                if self.shared_vcpu in cell.cpuset and not \
                        host.cells[node].cpuset:
                    return 'shared vCPU: no shared CPUs on %d' % node
                if self.shared_vcpu in (cell.cpu_pinning or {}):
                    return 'shared vCPU: pinned'
        for cell, node in zip(claimed.topology.cells, nodes):
            pins = set((cell.cpu_pinning or {}).values())
            cores = [core & pins for core in host.cells[node].siblings
                     if core & pins]
            if not pins <= host.cells[node].pcpuset:
                return 'pins %s outside of node %d' % (pins, node)
            if self.threads == 'isolate' and any(
                    len(core) > 1 for core in cores):
                return 'isolate: %s' % cores
            if self.threads == 'require' and pins and (
                    self.data['threads'] < 2 or
                    sum(len(core) == 1 for core in cores) > 1):
                return 'require: %s' % cores
        return None

    # -- what can be enforced

    def holds(self, candidate, nodes):
        """Return whether Nova's claim keeps PCI devices local on these nodes.

        In whatever state of the host, as far as the scheduler can see it.
        """
        if self.pci != 'strict' or self.case.nodes == 1:
            return True
        mapping = None
        if self.data['mappings'] is not None:
            mapping = self.data['mappings'][candidate['number']]
        for number, request in enumerate(self.data['requests']):
            policy = request['policy'] or 'legacy'
            if policy == 'required':
                continue
            if mapping and mapping[number]:
                if all(self.data['pools'][pool]['node'] in nodes
                       for pool in mapping[number]):
                    continue
                return False
            if policy == 'socket':
                if self.data['sockets'] == 'node':
                    continue
                return False
            unknown = any(
                pool['node'] is None and free and suits(pool, request)
                for pool, free in zip(self.data['pools'],
                                      self.data['now']['free']))
            if policy == 'legacy' and not unknown:
                continue
            return False
        return True
