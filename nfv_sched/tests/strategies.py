# SPDX-License-Identifier: Apache-2.0
"""Generated hosts and guests, as Nova's own objects.

Shared by the tests that compare the NUMA engine with the installed Nova.
"""

import uuid

from hypothesis import strategies as st
from nova import objects
from nova.pci import stats
from nova.scheduler import host_manager

PHYSNETS = ('physnet0', 'physnet1', 'physnet2')
GUEST_MEMORY = (128, 256, 512, 1024, 2048)
PAGE_SETS = (
    (), (4,), (4, 2048), (4, 2048, 1048576), (2048,), (4, 1048576))
VENDOR = '8086'
PRODUCTS = ('154d', '10ed')
NUMA_POLICIES = ('legacy', 'required', 'preferred', 'socket')


@st.composite
def _siblings(draw, cpus):
    """Sibling sets of a cell's CPUs; sometimes odd ones."""
    threads = draw(st.sampled_from((1, 1, 2, 2, 2, 4)))
    if draw(st.integers(0, 9)) == 0:
        # Cores of unequal size, or CPUs that no core claims.
        sets, left = [], list(cpus)
        while left:
            size = draw(st.integers(1, 4))
            sets.append(set(left[:size]))
            left = left[size:]
        if len(sets) > 1 and draw(st.booleans()):
            sets.pop()
        return sets
    return [set(cpus[i:i + threads]) for i in range(0, len(cpus), threads)]


@st.composite
def _pages(draw, memory, sizes, roomy):
    pages = []
    for size in sizes:
        most = memory * 1024 // size
        total = draw(st.sampled_from(
            (most, most // 2) if roomy else (most, most // 2, 2, 0)))
        pages.append(objects.NUMAPagesTopology(
            size_kb=size, total=total,
            used=draw(st.sampled_from(
                (0, 0, total // 2) if roomy else (0, total // 2, total))),
            reserved=draw(st.sampled_from((0, 0, 0, min(1, total))))))
    return pages


@st.composite
def _usage(draw, cpus, kinds):
    """CPUs that guests are pinned to."""
    how = draw(st.sampled_from(kinds))
    ordered = sorted(cpus)
    if how == 'none' or not ordered:
        return set()
    count = (draw(st.integers(0, len(ordered))) if how == 'some'
             else max(0, len(ordered) - draw(st.integers(0, 3))))
    step = draw(st.sampled_from((1, 1, 2, 3)))
    picked = ordered[::step] + [c for c in ordered if c not in ordered[::step]]
    return set(picked[:count])


@st.composite
def host_topologies(draw, max_cells=16, labels=()):
    """A ``NUMATopology`` of 1 to ``max_cells`` cells.

    :param labels: further physical networks that cells may be near
    """
    count = draw(st.one_of(
        st.integers(1, min(4, max_cells)), st.integers(1, max_cells)))
    legacy = draw(st.integers(0, 5)) == 0
    split = draw(st.sampled_from(('dedicated', 'shared', 'both', 'both')))
    sizes = draw(st.sampled_from(PAGE_SETS))
    networked = draw(st.booleans()) or bool(labels)
    alike = draw(st.booleans())
    roomy = draw(st.integers(0, 3)) > 0
    shape = None
    cells, base = [], 0
    for index in range(count):
        if shape is None or not alike:
            shape = (draw(st.integers(6 if roomy else 1, 12)),
                     draw(st.sampled_from(
                         (8192, 16384) if roomy else (1024, 2048, 4096))))
        width, memory = shape
        cpus = list(range(base, base + width))
        base += width
        if legacy:
            shared = dedicated = set(cpus)
        else:
            kept = {'dedicated': 0, 'shared': width}.get(
                split, width // 3 if roomy else draw(st.integers(0, width)))
            shared, dedicated = set(cpus[:kept]), set(cpus[kept:])
        if draw(st.integers(0, 7)) == 0:
            sizes = draw(st.sampled_from(PAGE_SETS))
        cell = objects.NUMACell(
            id=index, cpuset=shared, pcpuset=dedicated, memory=memory,
            cpu_usage=draw(st.integers(
                0, len(shared) if roomy else 2 * len(shared))),
            memory_usage=draw(st.sampled_from(
                (0, memory // 2) if roomy else
                (0, memory // 2, memory - 128, memory))),
            pinned_cpus=draw(_usage(
                dedicated, ('none', 'none', 'some') if roomy else
                ('none', 'some', 'most'))),
            siblings=draw(_siblings(cpus)),
            mempages=draw(_pages(memory, sizes, roomy)), socket=index // 2)
        if networked and draw(st.integers(0, 9)) != 0:
            cell.network_metadata = objects.NetworkMetadata(
                physnets=set(draw(st.lists(
                    st.sampled_from(PHYSNETS + tuple(labels)), max_size=3))),
                tunneled=draw(st.booleans()))
        cells.append(cell)
    return objects.NUMATopology(cells=cells)


@st.composite
def guest_topologies(draw, max_cells=8):
    count = draw(st.one_of(
        st.integers(1, min(2, max_cells)), st.integers(1, max_cells)))
    policy = draw(st.sampled_from(
        (None, 'shared', 'dedicated', 'dedicated', 'mixed')))
    threads = None
    if policy in ('dedicated', 'mixed'):
        threads = draw(st.sampled_from(
            (None, None, None, 'prefer', 'require', 'isolate')))
    pagesize = draw(st.sampled_from(
        (None,) * 6 + (-1, -2, -3, 4, 2048, 1048576)))
    alike = draw(st.booleans())
    width = memory = None
    cells, base = [], 0
    for index in range(count):
        if width is None or not alike:
            width = draw(st.integers(1, 4))
            memory = draw(st.sampled_from(GUEST_MEMORY))
            pinned = draw(st.integers(0, width))
        cpus = set(range(base, base + width))
        base += width
        if policy == 'dedicated':
            shared, dedicated = set(), cpus
        elif policy == 'mixed':
            dedicated = set(sorted(cpus)[:pinned])
            shared = cpus - dedicated
        else:
            shared, dedicated = cpus, set()
        cells.append(objects.InstanceNUMACell(
            id=index, cpuset=shared, pcpuset=dedicated, memory=memory,
            pagesize=pagesize, cpu_policy=policy, cpu_thread_policy=threads))
    topology = objects.InstanceNUMATopology(cells=cells)
    if policy in ('dedicated', 'mixed'):
        emulator = draw(st.sampled_from(
            (None, None, None, 'share', 'isolate')))
        if emulator:
            topology.emulator_threads_policy = emulator
    return topology


@st.composite
def network_metadata(draw):
    if draw(st.integers(0, 2)) == 0:
        return None
    return objects.NetworkMetadata(
        physnets=set(draw(st.lists(
            st.sampled_from(PHYSNETS + ('elsewhere',)), max_size=2))),
        tunneled=draw(st.booleans()))


def provider(number):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))


@st.composite
def pci_pools(draw, nodes, max_pools=6, in_placement=None, max_count=4):
    """Draw pools of PCI devices as a compute node reports them, as dicts.

    :param in_placement: whether the devices are resource providers; drawn
        if None
    :param max_count: devices in a pool at most; 0 is possible too
    """
    if in_placement is None:
        in_placement = draw(st.booleans())
    where = draw(st.sampled_from((
        tuple(nodes), tuple(nodes), tuple(nodes) + (None,),
        tuple(nodes) + (None, None, 99))))
    alike = draw(st.booleans())
    pools, kind = [], None
    for index in range(draw(st.sampled_from(range(max_pools, -1, -1)))):
        if kind is None or not alike:
            kind = {
                'vendor_id': VENDOR,
                'product_id': draw(st.sampled_from(PRODUCTS)),
                'dev_type': draw(st.sampled_from(
                    ('type-VF',) * 4 + ('type-PF', 'type-PCI', 'vdpa'))),
            }
            if kind['dev_type'] != 'type-PCI':
                kind['remote_managed'] = draw(st.sampled_from(
                    ('false', 'false', 'false', 'true')))
                if draw(st.integers(0, 4 if in_placement else 1)) == 1:
                    kind['physical_network'] = draw(
                        st.sampled_from(PHYSNETS[:2]))
            if draw(st.integers(0, 4)) == 0:
                kind['trusted'] = draw(st.sampled_from(('true', 'false')))
            if draw(st.integers(0, 3)) == 0:
                kind['live_migratable'] = draw(
                    st.sampled_from(('true', 'false')))
        pool = dict(
            kind, numa_node=draw(st.sampled_from(where)),
            count=draw(st.integers(
                0 if draw(st.integers(0, 4)) == 1 else 1, max_count)),
            address='0000:%02x:00.0' % index)
        if draw(st.integers(0, 9)) == 0:
            pool['parent_ifname'] = 'ens%d' % index
        if in_placement and 'physical_network' not in pool:
            # Nova does not tell Placement of devices for networks. One in
            # twenty shares a provider with another pool, which is odd.
            pool['rp_uuid'] = provider(
                0 if draw(st.integers(0, 19)) == 1 else index)
        pools.append(pool)
    return pools


def pci_stats(topology, pools):
    """``PciDeviceStats`` as the scheduler makes them of a host's pools."""
    return stats.PciDeviceStats(
        numa_topology=topology,
        stats=objects.PciDevicePoolList(objects=[
            objects.PciDevicePool.from_dict(pool) for pool in pools]))


@st.composite
def _alias_spec(draw):
    spec = {'vendor_id': VENDOR,
            'product_id': draw(st.sampled_from(PRODUCTS))}
    kind = draw(st.sampled_from(
        (None, None, 'type-VF', 'type-VF', 'type-PF', 'type-PCI', 'vdpa')))
    if kind:
        spec['dev_type'] = kind
    if draw(st.integers(0, 7)) == 0:
        spec['live_migratable'] = draw(st.sampled_from(('true', 'false')))
    if draw(st.integers(0, 7)) == 0:
        spec['resource_class'] = 'CUSTOM_NIC'
    return spec


@st.composite
def _port_spec(draw):
    spec = {'physical_network': draw(st.sampled_from(PHYSNETS[:2])),
            'remote_managed': draw(st.sampled_from(
                ('False', 'False', 'False', 'True')))}
    kind = draw(st.sampled_from((None, None, None, 'type-PF', 'vdpa')))
    if kind:
        spec['dev_type'] = kind
    if draw(st.integers(0, 5)) == 0:
        spec['trusted'] = draw(st.sampled_from(('True', 'False')))
    return spec


def _spec_of(pool, port, keys):
    """What an alias or a port says to get a device of this pool.

    :param keys: which of the optional keys it gives
    """
    kind = pool['dev_type']
    if port:
        spec = {'physical_network': pool['physical_network'],
                'remote_managed': pool['remote_managed'].title()}
        if kind != 'type-VF':
            spec['dev_type'] = kind
        keys &= {'trusted'}
    else:
        spec = {'vendor_id': pool['vendor_id'],
                'product_id': pool['product_id']}
        if kind in ('type-PF', 'vdpa') or 'dev_type' in keys:
            spec['dev_type'] = kind
        if pool.get('remote_managed') == 'true':
            spec['remote_managed'] = 'true'
        keys &= {'trusted', 'live_migratable'}
    spec.update({key: pool[key] for key in keys if key in pool})
    return spec


@st.composite
def pci_requests(draw, pools, min_requests=1, max_requests=3, max_count=3,
                 policies=NUMA_POLICIES + (None, '')):
    """A list of ``InstancePCIRequest`` of aliases and SR-IOV ports.

    :param pools: PCI devices of the host that is to serve them; some requests
        want others
    :param policies: values of ``numa_policy``; an empty one leaves it unset
    """
    requests = []
    common = draw(st.sampled_from(policies))
    each = draw(st.booleans())
    port = None
    alike = draw(st.booleans())
    present = [pool for pool in pools if pool['count']]
    for number in range(draw(st.sampled_from(
            [min_requests] * 2 + list(
                range(min_requests, max_requests + 1))))):
        if port is None or not alike:
            pool = None
            if present and draw(st.integers(0, 11)) != 1:
                pool = draw(st.sampled_from(present))
            if pool is not None:
                port = 'physical_network' in pool and draw(st.booleans())
                spec = [_spec_of(pool, port, draw(st.sets(st.sampled_from(
                    ('trusted', 'dev_type', 'live_migratable')))))]
            else:
                port = draw(st.booleans())
                spec = [draw(_port_spec() if port else _alias_spec())]
            if not port and draw(st.integers(0, 7)) == 1:
                # An alias may be defined more than once.
                spec.append(draw(_alias_spec()))
            suited = sum(
                other['count'] for other in present if pool is not None and
                other['dev_type'] == pool['dev_type'] and
                other['product_id'] == pool['product_id'])
        count = draw(st.integers(1, max(1, min(max_count, suited))))
        request = objects.InstancePCIRequest(
            request_id=str(uuid.UUID(int=number + 1)), count=count,
            spec=[dict(item) for item in spec],
            alias_name=None if port else 'nic%d' % number)
        policy = draw(st.sampled_from(policies)) if each else common
        if policy != '':
            request.numa_policy = policy
        requests.append(request)
    return requests


@st.composite
def pci_candidates(draw, requests, pools, root):
    """Allocation candidates that say which provider gives which device.

    Most are such as Placement makes them: of what is free.

    :param root: UUID of the host's own provider
    """
    rps = sorted({pool['rp_uuid'] for pool in pools if 'rp_uuid' in pool})
    mapped = bool(rps) and draw(st.integers(0, 5)) != 1
    apart = draw(st.booleans())  # another provider in each candidate
    candidates = []
    for number in range(draw(st.sampled_from((3, 2, 1)))):
        mappings = {'': [root]}
        odd = draw(st.integers(0, 14)) == 1
        free = {rp: sum(pool['count'] for pool in pools
                        if pool.get('rp_uuid') == rp) for rp in rps}
        for request in requests if mapped else ():
            if request.alias_name is None:
                continue
            suited = sorted({
                pool['rp_uuid'] for pool in pools if 'rp_uuid' in pool and
                any(all(pool.get(key) == value
                        for key, value in spec.items()
                        if key != 'resource_class')
                    for spec in request.spec)})
            rp = None
            for index in range(request.count):
                choice = [each for each in suited if free[each] > 0]
                if odd or not choice:
                    choice = rps + [provider('elsewhere')]
                if rp not in choice or draw(st.booleans()):
                    rp = (choice[number % len(choice)] if apart
                          else draw(st.sampled_from(choice)))
                free[rp] = free.get(rp, 0) - 1
                mappings['%s-%d' % (request.request_id, index)] = [rp]
        candidates.append({'allocations': {}, 'number': number,
                           'mappings': mappings})
    return candidates


def request_spec(guest, network=None, extra_specs=None, properties=None,
                 pci=()):
    """Return a RequestSpec with copies of the guest and the PCI requests."""
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            name='guest', vcpus=1, memory_mb=512, root_gb=0, ephemeral_gb=0,
            swap=0, extra_specs=dict(extra_specs or {})),
        image=objects.ImageMeta(
            properties=objects.ImageMetaProps(**(properties or {}))),
        numa_topology=guest.obj_clone() if guest is not None else None,
        pci_requests=objects.InstancePCIRequests(
            requests=[request.obj_clone() for request in pci]),
        scheduler_hints={}, num_instances=1, instance_group=None,
        requested_resources=[], limits=objects.SchedulerLimits(),
        instance_uuid='6a0ae9d2-1d5e-4d2c-9c54-5c0f0b1b3a55')
    if network is not None:
        spec.network_metadata = network
    return spec


ROOT = 'f1c2b4de-9b0a-4c05-8a4e-1f6a0d9b8f10'


def host_state(topology, cpu_ratio=1.0, ram_ratio=1.0, name='host1',
               candidates=1, pools=None):
    """A HostState with a NUMA topology.

    :param candidates: number of allocation candidates, or a list of them
    :param pools: PCI devices of the host; None for no statistics at all
    """
    state = host_manager.HostState(
        name, name, '11111111-2222-3333-4444-555555555555')
    state.numa_topology = topology
    state.cpu_allocation_ratio = cpu_ratio
    state.ram_allocation_ratio = ram_ratio
    state.uuid = ROOT
    state.stats = {}
    if isinstance(candidates, int):
        candidates = [{'allocations': {}, 'mappings': {'': [state.uuid]}}
                      for _ in range(candidates)]
    state.allocation_candidates = [dict(each) for each in candidates]
    if pools is not None:
        state.pci_stats = pci_stats(topology, pools)
    return state


def clone(topology):
    return type(topology).obj_from_primitive(topology.obj_to_primitive())
