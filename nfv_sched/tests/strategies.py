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
"""Generated hosts and guests, as Nova's own objects.

Shared by the tests that compare the NUMA engine with the installed Nova.
"""

from hypothesis import strategies as st
from nova import objects
from nova.scheduler import host_manager

PHYSNETS = ('physnet0', 'physnet1', 'physnet2')
GUEST_MEMORY = (128, 256, 512, 1024, 2048)
PAGE_SETS = (
    (), (4,), (4, 2048), (4, 2048, 1048576), (2048,), (4, 1048576))


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
def guest_topologies(draw, max_cells=8, min_cells=1):
    """An ``InstanceNUMATopology`` of up to ``max_cells`` cells."""
    count = draw(st.one_of(
        st.integers(min_cells, max(min_cells, min(2, max_cells))),
        st.integers(min_cells, max_cells)))
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
    """The networks of a request, or None."""
    if draw(st.integers(0, 2)) == 0:
        return None
    return objects.NetworkMetadata(
        physnets=set(draw(st.lists(
            st.sampled_from(PHYSNETS + ('elsewhere',)), max_size=2))),
        tunneled=draw(st.booleans()))


def request_spec(guest, network=None, extra_specs=None, properties=None):
    """A RequestSpec as the scheduler gets it.

    :param guest: ``InstanceNUMATopology`` or None; copied
    :param network: ``NetworkMetadata`` or None
    """
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            name='guest', vcpus=1, memory_mb=512, root_gb=0, ephemeral_gb=0,
            swap=0, extra_specs=dict(extra_specs or {})),
        image=objects.ImageMeta(
            properties=objects.ImageMetaProps(**(properties or {}))),
        numa_topology=guest.obj_clone() if guest is not None else None,
        pci_requests=objects.InstancePCIRequests(requests=[]),
        scheduler_hints={}, num_instances=1, instance_group=None,
        requested_resources=[], limits=objects.SchedulerLimits(),
        instance_uuid='6a0ae9d2-1d5e-4d2c-9c54-5c0f0b1b3a55')
    if network is not None:
        spec.network_metadata = network
    return spec


def host_state(topology, cpu_ratio=1.0, ram_ratio=1.0, name='host1',
               candidates=1):
    """A HostState with a NUMA topology.

    :param candidates: number of allocation candidates
    """
    state = host_manager.HostState(
        name, name, '11111111-2222-3333-4444-555555555555')
    state.numa_topology = topology
    state.cpu_allocation_ratio = cpu_ratio
    state.ram_allocation_ratio = ram_ratio
    state.uuid = 'f1c2b4de-9b0a-4c05-8a4e-1f6a0d9b8f10'
    state.stats = {}
    state.allocation_candidates = [
        {'allocations': {}, 'mappings': {'': [state.uuid]}}
        for _ in range(candidates)]
    return state


def clone(topology):
    """A copy that shares nothing with the original."""
    return type(topology).obj_from_primitive(topology.obj_to_primitive())
