# SPDX-License-Identifier: Apache-2.0
"""What servers occupy of a host, compared with Nova's own records.

Servers come and go in generated order.  After each step the host must be as
``HostState.consume_from_request`` leaves it, and as the resource tracker
records it when it adds up its servers.
"""

import types
import uuid

import hypothesis
from hypothesis import strategies as st
from nova.compute import resource_tracker
from nova import objects

from nfv_sched.fit.numa import evaluation
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import topology
from nfv_sched.fit import occupancy
from nfv_sched.fit import pci_pools
from nfv_sched.nova import records
from nfv_sched.ops.cloud import database
from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.model.counting import host_count
from nfv_sched.tests.equivalence import claims
from nfv_sched.tests.equivalence import test_capacity
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies

NO_RATIOS = fit.Ratios(float('inf'), float('inf'))
STEPS = 10


def state(host):
    return [(cell.free_cpus, cell.cpu_usage, cell.memory_usage, cell.pages)
            for cell in host.cells]


def tracked(host, servers, sign=1):
    """Return a host after the resource tracker has counted servers.

    :param sign: -1 for servers that leave
    """
    node = objects.ComputeNode(
        memory_mb=1, memory_mb_used=0, local_gb=0, local_gb_used=0,
        vcpus_used=0, numa_topology=host._to_json())
    tracker = types.SimpleNamespace(
        compute_nodes={'node': node},
        stats={'node': types.SimpleNamespace(num_instances=0)})
    for server in servers:
        resource_tracker.ResourceTracker._update_usage(
            tracker, {'memory_mb': 0, 'numa_topology': server}, 'node', sign)
    return objects.NUMATopology.obj_from_db_obj(node.numa_topology)


def consume(host, guest):
    """Put a guest on a host as Nova's scheduler does.

    :returns: the host and the guest's topology then; None if the guest does
        not fit, or Nova cannot record it
    """
    before = strategies.clone(host)
    host_state = strategies.host_state(before)
    spec = strategies.request_spec(guest)
    # Nova logs what fails in there, and goes on.
    host_state.consume_from_request(spec)
    if spec.numa_topology is None or host_state.numa_topology is before:
        return None
    return host_state.numa_topology, spec.numa_topology


def claim(host, guest):
    """Return what a guest would occupy and the host then; None if refused."""
    evaluated = evaluation.Evaluation(host, topology.guest(guest), NO_RATIOS)
    claimed = evaluated.claimed()
    if claimed is None:
        return None
    parts = occupancy.claimed_shares(
        evaluated.pristine, evaluated.host, claimed)
    # What is asked of Placement is no less than what is pinned.
    for index, (cell, part) in enumerate(zip(evaluated.pristine.cells, parts)):
        asked = cell.number_of_pins(
            host.cells[part.position],
            0 if index else evaluated.pristine.reserved)
        if part.cpus and not len(part.cpus) <= asked <= len(part.cpus) + (
                host.cells[part.position].threads if cell.threads ==
                topology.THREADS_ISOLATE and evaluated.pristine.reserved
                else 0):
            raise AssertionError((cell, part, asked))
    try:
        return parts, occupancy.take(host, parts)
    except occupancy.UnrecordedError:
        return None


@st.composite
def large_hosts(draw):
    """Hosts that several guests fit one after the other."""
    threads = draw(st.sampled_from((1, 2, 2, 4)))
    width = threads * draw(st.integers(4, 8))
    # Of new-style hosts, some CPUs are for shared vCPUs.
    shared_width = draw(st.sampled_from((0, threads, None, None)))
    sizes = draw(st.sampled_from(((4,), (2048,), (4, 2048, 1048576))))
    cells = []
    for number in range(draw(st.sampled_from((1, 2, 4, 8)))):
        cpus = list(range(number * width, (number + 1) * width))
        shared, dedicated = (
            (set(cpus), set(cpus)) if shared_width is None else
            (set(cpus[:shared_width]), set(cpus[shared_width:])))
        cells.append(objects.NUMACell(
            id=number, cpuset=shared, pcpuset=dedicated, memory=16384,
            cpu_usage=0, memory_usage=0, pinned_cpus=set(), socket=number,
            siblings=[set(cpus[first:first + threads])
                      for first in range(0, width, threads)],
            mempages=[objects.NUMAPagesTopology(
                size_kb=size, total=16384 * 1024 // size, used=0,
                reserved=draw(st.integers(0, 3))) for size in sizes],
            network_metadata=objects.NetworkMetadata(
                physnets=set(), tunneled=False)))
    return objects.NUMATopology(cells=cells)


@st.composite
def small_guests(draw):
    """Pinned guests that fit most hosts several times."""
    return objects.InstanceNUMATopology(
        emulator_threads_policy=draw(st.sampled_from((None, 'isolate'))),
        cells=[objects.InstanceNUMACell(
            id=0, cpuset=set(), pcpuset=set(range(draw(st.integers(1, 3)))),
            memory=1024, pagesize=draw(st.sampled_from((None, 4, 2048))),
            cpu_policy='dedicated', cpu_thread_policy=draw(st.sampled_from(
                (None, 'require', 'isolate', 'isolate'))))])


class TestOccupancy(test_stock.EquivalenceTestCase):

    def test_take_and_give_back(self):
        seen = dict.fromkeys(('hosts', 'taken', 'refused', 'given back',
                              'isolated'), 0)

        @hypothesis.settings(test_stock.SETTINGS)
        @hypothesis.given(
            first=st.one_of(
                large_hosts(), large_hosts(),
                strategies.host_topologies(max_cells=8)),
            kinds=st.lists(st.one_of(
                small_guests(), strategies.guest_topologies(max_cells=2)),
                min_size=2, max_size=4), data=st.data())
        def check(first, kinds, data):
            if any(test_stock.permutations(first, guest)
                   > test_stock.MAX_PERMUTATIONS for guest in kinds):
                return
            for cell in first.cells:
                if 'network_metadata' not in cell:
                    cell.network_metadata = objects.NetworkMetadata(
                        physnets=set(), tunneled=False)
            host = topology.host_topology(first)
            seen['hosts'] += 1
            nova, servers = first, []
            for _step in range(data.draw(st.integers(2, STEPS))):
                if servers and data.draw(st.integers(0, 2)) == 0:
                    server = servers.pop(data.draw(
                        st.integers(0, len(servers) - 1)))
                    host = occupancy.give_back(host, self.shares(
                        first, server))
                    nova = tracked(nova, [server], -1)
                    seen['given back'] += 1
                else:
                    guest = data.draw(st.sampled_from(kinds))
                    consumed, claimed = consume(nova, guest), claim(
                        host, guest)
                    self.assertEqual(consumed is None, claimed is None)
                    if consumed is None:
                        seen['refused'] += 1
                        continue
                    nova, server = consumed
                    parts, after = claimed
                    self.assertEqual(parts, self.shares(first, server))
                    self.assertEqual(
                        state(host), state(occupancy.give_back(after, parts)))
                    host = after
                    servers.append(server)
                    seen['taken'] += 1
                    seen['isolated'] += any(
                        cell.cpu_thread_policy == 'isolate'
                        for cell in server.cells)
                self.assertEqual(
                    state(topology.host_topology(nova)), state(host))
                self.assertEqual(state(topology.host_topology(
                    tracked(first, servers))), state(host))

        check()
        print('occupancy: %s' % seen)
        self.assert_seen(seen['taken'], seen['hosts'] // 10)
        self.assert_seen(seen['given back'], 0)
        self.assert_seen(seen['isolated'], 0)

    def shares(self, host, server):
        return occupied.shares(
            [database.host_node(cell) for cell
             in records.deserialized(host._to_json())['cells']],
            database.guest_nodes(server))


def pools_of(tracker):
    """Return the pools of Nova's PCI tracker, and addresses of the devices."""
    return ([{name: value for name, value in pool.items()
              if name != 'devices'} for pool in tracker.stats.pools],
            [device.address for device in tracker.stats.get_free_devs()])


@st.composite
def single_devices(draw, devices):
    """A PCI request for a device that there is, so that it may be served."""
    if not devices:
        return []
    device = draw(st.sampled_from(devices))
    return [objects.InstancePCIRequest(
        request_id=str(uuid.UUID(int=1)), alias_name='a1', count=1,
        numa_policy='preferred', spec=[{
            name: device[name]
            for name in ('vendor_id', 'product_id', 'dev_type')}])]


def in_any_order(pools):
    return sorted(repr(sorted(pool.items())) for pool in pools
                  if pool['count'])


class TestDevices(test_capacity.CapacityTestCase):
    """Servers with PCI devices, compared with Nova's PCI tracker."""

    def claim(self, host, guest, requests, tracker, instance):
        """Claim a server as Nova does.

        :returns: the host and the guest's topology then; None if that fails
        """
        if not tracker.stats.support_requests(requests, None):
            return None
        claimed = None
        if guest is not None:
            claimed = claims.numa_fit(
                host, strategies.clone(guest), None, requests, tracker.stats)
            if claimed is None:
                return None
        try:
            host = test_capacity.record(host, claimed)
            tracker.claim_devices(objects.InstancePCIRequests(
                requests=requests), claimed, instance)
        except test_capacity.FAILURES:
            return None
        return host, claimed

    def test_take_and_give_back(self):
        self.flags('filter_scheduler', enabled_filters=[
            'PciPassthroughFilter'])
        seen = dict.fromkeys(('hosts', 'taken', 'refused', 'given back',
                              'PFs', 'in Placement'), 0)

        @test_stock.SETTINGS
        @hypothesis.given(first=large_hosts(), data=st.data())
        def check(first, data):
            guests = data.draw(st.lists(st.one_of(
                st.none(), small_guests(),
                strategies.guest_topologies(max_cells=2)),
                min_size=3, max_size=4))
            if any(guest is not None and test_stock.permutations(
                    first, guest) > test_stock.MAX_PERMUTATIONS
                    for guest in guests):
                return
            devices = data.draw(test_capacity.device_sets(
                tuple(cell.id for cell in first.cells)))
            kinds = [(guest, data.draw(st.one_of(
                single_devices(devices),
                test_capacity.device_requests(devices)))) for guest in guests]
            tracker = self.tracker(first, devices)
            in_placement = data.draw(st.booleans())
            for device in tracker.pci_devs if in_placement else ():
                device.extra_info['rp_uuid'] = strategies.provider(
                    device.parent_addr or device.address)
            tracker.stats.populate_pools_metadata_from_assigned_devices()
            nova, servers = first, []
            _pools, addresses = pools_of(tracker)
            host = host_count.FreeResources(topology.host_topology(first),
                                            pci_pools.PCIPools.read(
                                                tracker.stats.pools))
            seen['hosts'] += 1
            seen['in Placement'] += bool(in_placement and devices)
            for step in range(data.draw(st.integers(2, STEPS))):
                if servers and data.draw(st.integers(0, 2)) == 0:
                    instance, claimed, placed = servers.pop(data.draw(
                        st.integers(0, len(servers) - 1)))
                    found = pci_pools.PCIPools.read(
                        tracker.stats.pools, tracker.occupied())
                    self.assertEqual(
                        len(placed.devices),
                        len(found.of_server(instance.uuid)))
                    tracker.free_devices([
                        device for address in map(
                            addresses.__getitem__, placed.devices)
                        for device in tracker.pci_devs
                        if device.address == address], instance)
                    if claimed is not None:
                        nova = tracked(nova, [claimed], -1)
                    host = host_count.FreeResources(
                        occupancy.give_back(host.host, placed.shares),
                        host.devices.give_back(placed.devices))
                    seen['given back'] += 1
                    tracker.stats.\
                        populate_pools_metadata_from_assigned_devices()
                    # What was read while the server was there.
                    self.assertEqual(
                        in_any_order(host.devices.pools),
                        in_any_order(found.give_back(found.of_server(
                            instance.uuid)).pools))
                else:
                    guest, requests = data.draw(st.sampled_from(kinds))
                    before = pools_of(tracker)
                    requests = [each.obj_clone() for each in requests]
                    instance = objects.Instance(
                        uuid=str(uuid.UUID(int=step)),
                        pci_devices=objects.PciDeviceList(objects=[]))
                    claimed = self.claim(
                        nova, guest, requests, tracker, instance)
                    placed = host_count.place_first(host_count.Case(
                        test_capacity.wanted(strategies.request_spec(
                            guest, pci=requests)),
                        host, host_count.NO_RATIOS), [{}])
                    self.assertEqual(claimed is None, placed is None)
                    if claimed is None:
                        seen['refused'] += 1
                        if pools_of(tracker) != before:
                            # NOTE: A claim that fails between two requests
                            # does not free the devices that it has blocked.
                            return
                        continue
                    nova, topology_of_guest = claimed
                    self.assertEqual(
                        [device.address for device
                         in instance.pci_devices.objects],
                        [addresses[device] for device in placed.devices])
                    self.assertEqual(
                        in_any_order(host.devices.pools), in_any_order(
                            placed.room.devices.give_back(
                                placed.devices).pools))
                    host = placed.room
                    servers.append((instance, topology_of_guest, placed))
                    seen['taken'] += 1
                    seen['PFs'] += any(
                        device.dev_type == 'type-PF' for device
                        in instance.pci_devices.objects)
                self.assertEqual(state(topology.host_topology(nova)),
                                 state(host.host))
                pools, _free = pools_of(tracker)
                self.assertEqual(pools, host.devices.pools)

        check()
        print('occupancy, PCI devices: %s' % seen)
        for name, count in seen.items():
            self.assert_seen(count, 0, name)


class TestAmounts(test_stock.EquivalenceTestCase):
    """What is not of NUMA cells."""

    def test_same_amounts(self):
        node_figures = ('memory_mb_used', 'free_ram_mb', 'local_gb_used',
                        'free_disk_gb', 'vcpus_used', 'running_vms')
        state_figures = ('free_ram_mb', 'free_disk_mb', 'vcpus_used',
                         'num_instances')

        def figures(owner, names):
            return [getattr(owner, name) for name in names]

        @test_stock.SETTINGS
        @hypothesis.given(servers=st.lists(st.tuples(
            *[st.integers(0, 8)] * 4), max_size=4))
        def check(servers):
            nodes = [objects.ComputeNode(
                memory_mb=64, memory_mb_used=5, free_ram_mb=59, local_gb=9,
                local_gb_used=2, free_disk_gb=7, vcpus_used=1, running_vms=0,
                numa_topology=None) for _ in range(2)]
            states = [strategies.host_state(None) for _ in range(2)]
            for each in states:
                each.free_ram_mb, each.free_disk_mb = 59, 7 * 1024
                each.vcpus_used = each.num_instances = 0
            before = figures(nodes[1], node_figures), figures(
                states[1], state_figures)
            tracker = types.SimpleNamespace(
                compute_nodes={'node': nodes[0]},
                stats={'node': types.SimpleNamespace(num_instances=0)})
            undo = []
            for vcpus, memory, root, ephemeral in servers:
                spec = strategies.request_spec(None)
                for name, value in (
                        ('vcpus', vcpus), ('memory_mb', memory),
                        ('root_gb', root), ('ephemeral_gb', ephemeral)):
                    setattr(spec.flavor, name, value)
                states[0].consume_from_request(spec)
                tracker.stats['node'].num_instances += 1
                resource_tracker.ResourceTracker._update_usage(tracker, {
                    'memory_mb': memory, 'root_gb': root,
                    'ephemeral_gb': ephemeral, 'vcpus': vcpus}, 'node')
                self.assertEqual(occupancy.amounts(spec),
                                 occupancy.amounts(spec.flavor))
                amounts = occupancy.amounts(spec)
                undo += [occupancy.record(nodes[1], amounts),
                         occupancy.consume(states[1], amounts)]
            self.assertEqual(*(figures(each, node_figures)
                               for each in nodes))
            self.assertEqual(*(figures(each, state_figures)
                               for each in states))
            for each in reversed(undo):
                each()
            self.assertEqual(before, (
                figures(nodes[1], node_figures),
                figures(states[1], state_figures)))

        check()
