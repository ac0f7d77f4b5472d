# SPDX-License-Identifier: Apache-2.0
"""The number of guests that a host takes, against Nova's own fit and claim.

On generated hosts Nova's own functions put guest after guest until one is
refused: the fit with the limits of the scheduler, the record of its usage, and
the PCI devices that it takes.  The count must be the same.  The number of
cases comes from the environment, ``NFV_SCHED_EQUIVALENCE_CASES``.

Nova goes through permutations of host cells.  Cases with more than
``MAX_PERMUTATIONS`` of them are skipped, and counted.
"""

import collections
import functools
import random

import hypothesis
from hypothesis import strategies as st
from nova import exception
from nova import objects
from nova.scheduler.filters import pci_passthrough_filter
from nova.virt import hardware

from nfv_sched import filters
from nfv_sched.fit.numa import fit
from nfv_sched.fit.numa import topology
from nfv_sched.fit import pci_pools
from nfv_sched.limits import options
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import document
from nfv_sched.ops.model.counting import host_count
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.scheduler import active_rules
from nfv_sched.scheduler import notes
from nfv_sched.tests.equivalence import claims
from nfv_sched.tests.equivalence import joint
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies
from nfv_sched.tests.unit.ops import small_clouds

MAX_PERMUTATIONS = 2000
#: More guests than Nova is asked to put on a host.
LIMIT = 60

FAILURES = (exception.NovaException, IndexError, ValueError)


def wanted(spec):
    """The guest of a request, as the enabled filters decide about it."""
    note = notes.note_of(spec)
    request = note.read(spec)
    return host_count.GuestRequest(
        request, active_rules.deciding(note, request),
        active_rules.limits_claim(note, request),
        active_rules.settings(note).sorting)


def record(host, claimed):
    """The host's topology after a claim; raises if Nova cannot record it."""
    if claimed is None or not claimed.cells:
        return host
    return hardware.numa_usage_from_instance_numa(
        strategies.clone(host), claimed)


@st.composite
def device_sets(draw, nodes):
    """PCI devices as a virt driver reports them: PFs with VFs, and others."""
    devices = []
    products = draw(st.sampled_from(
        (strategies.PRODUCTS[:1], strategies.PRODUCTS)))
    for number in range(draw(st.sampled_from((4, 3, 5, 2, 1, 0)))):
        node = draw(st.sampled_from(nodes + (None,)))
        kind = draw(st.sampled_from(('nic', 'nic', 'nic', 'plain')))
        product = draw(st.sampled_from(products))
        address = '0000:%02x:00.0' % (number + 16)
        common = {'vendor_id': strategies.VENDOR, 'numa_node': node,
                  'label': 'label', 'product_id': product}
        if kind == 'plain':
            devices.append(dict(common, address=address, dev_id=address,
                                dev_type='type-PCI'))
            continue
        devices.append(dict(
            common, address=address, dev_id=address, dev_type='type-PF'))
        for function in range(draw(st.sampled_from((4, 6, 2, 1, 0)))):
            vf = '0000:%02x:01.%d' % (number + 16, function)
            devices.append(dict(
                common, address=vf, dev_id=vf, dev_type='type-VF',
                parent_addr=address))
    return devices


@st.composite
def device_requests(draw, devices):
    """PCI requests of aliases, mostly for devices that there are."""
    common = draw(st.sampled_from(strategies.NUMA_POLICIES + (None,)))
    requests = []
    for number in range(draw(st.sampled_from((1, 1, 2, 3)))):
        spec = {'vendor_id': strategies.VENDOR,
                'product_id': strategies.PRODUCTS[0], 'dev_type': 'type-VF'}
        if devices and draw(st.integers(0, 9)):
            device = draw(st.sampled_from(devices))
            spec.update(product_id=device['product_id'],
                        dev_type=device['dev_type'])
        requests.append(objects.InstancePCIRequest(
            request_id=joint.request_id(number), alias_name='a%d' % number,
            count=draw(st.sampled_from((1, 1, 1, 2, 3))), spec=[spec],
            numa_policy=common))
    return requests


class CapacityTestCase(test_stock.EquivalenceTestCase):
    def tracker(self, host, devices):
        node = objects.ComputeNode(
            id=1, uuid=strategies.ROOT, hypervisor_hostname='host1',
            numa_topology=host._to_json())
        tracker = nova_internals.PCITracker(node, nova_internals.device_filter(
            [{'vendor_id': strategies.VENDOR}]))
        if devices:
            tracker.report(devices)
        return tracker

    def assert_counts(self, seen, expected, counted):
        self.assertEqual(expected, counted.fits)
        seen['run'] += 1
        seen['guests'] += expected
        seen['none'] += not expected
        seen['several'] += expected > 1


SEEN = ('run', 'skipped', 'guests', 'none', 'several')


class TestStockCapacity(CapacityTestCase):
    def fill(self, host, guest, limits):
        for count in range(LIMIT):
            try:
                claimed = hardware.numa_fit_instance_to_host(
                    host, strategies.clone(guest), None, limits)
                if claimed is None:
                    return count
                host = record(host, claimed)
            except FAILURES:
                return count
        return LIMIT

    def test_same_number_of_guests(self):
        self.flags('filter_scheduler', enabled_filters=['NUMATopologyFilter'])
        seen = dict.fromkeys(SEEN, 0)

        @test_stock.SETTINGS
        @hypothesis.given(
            host=strategies.host_topologies(max_cells=8),
            guest=strategies.guest_topologies(max_cells=4),
            network=strategies.network_metadata(),
            cpu_ratio=st.sampled_from((1.0, 2.0, 4.5)),
            ram_ratio=st.sampled_from((1.0, 1.5)),
            packing=st.sampled_from((False, False, True)))
        def check(host, guest, network, cpu_ratio, ram_ratio, packing):
            if test_stock.permutations(host, guest) > MAX_PERMUTATIONS:
                seen['skipped'] += 1
                return
            self.flags('compute',
                       packing_host_numa_cells_allocation_strategy=packing)
            limits = objects.NUMATopologyLimits(
                cpu_allocation_ratio=cpu_ratio,
                ram_allocation_ratio=ram_ratio)
            if network is not None:
                limits.network_metadata = network
            counter = host_count.Counter(wanted(
                strategies.request_spec(guest, network)))
            view = host_count.FreeResources(
                topology.host_topology(strategies.clone(host)))
            counted = counter.count(
                view, fit.ratios(cpu_ratio, ram_ratio), LIMIT)
            self.assert_counts(
                seen, self.fill(host, guest, limits), counted)

        check()
        print('capacity, stock: %s' % seen)
        self.assertGreater(seen['run'], test_stock.CASES // 2)
        self.assert_seen(seen['several'], test_stock.CASES // 10)


class TestDeviceCapacity(CapacityTestCase):
    """Hosts with PCI devices, whose VFs and PFs exclude each other."""

    def fill(self, host, guest, limits, tracker, requests):
        for count in range(LIMIT):
            claimed = None
            try:
                if not tracker.stats.support_requests(requests, None):
                    return count
                if guest is not None:
                    claimed = claims.numa_fit(
                        host, strategies.clone(guest), limits, requests,
                        tracker.stats)
                    if claimed is None:
                        return count
                host = record(host, claimed)
                if not tracker.stats.consume_requests(
                        requests, claimed.cells if claimed else None):
                    return count
            except FAILURES:
                return count
        return LIMIT

    def test_same_number_of_guests(self):
        self.flags('filter_scheduler', enabled_filters=[
            'NUMATopologyFilter', 'PciPassthroughFilter'])
        seen = dict.fromkeys(SEEN, 0)

        @test_stock.SETTINGS
        @hypothesis.given(data=st.data())
        def check(data):
            host = data.draw(strategies.host_topologies(
                max_cells=data.draw(st.sampled_from((3, 3, 3, 8)))))
            guest = data.draw(st.one_of(
                *[strategies.guest_topologies(max_cells=2)] * 5, st.none()))
            if guest is not None and test_stock.permutations(
                    host, guest) > MAX_PERMUTATIONS:
                seen['skipped'] += 1
                return
            nodes = tuple(cell.id for cell in host.cells)
            devices = data.draw(device_sets(nodes))
            requests = data.draw(device_requests(devices))
            if data.draw(st.booleans()):
                shift = data.draw(st.sampled_from((1, 4)))
                for cell in host.cells:
                    cell.socket = cell.id // shift
            limits = objects.NUMATopologyLimits(
                cpu_allocation_ratio=4.0, ram_allocation_ratio=1.5)
            tracker = self.tracker(host, devices)
            counter = host_count.Counter(wanted(
                strategies.request_spec(guest, pci=requests)))
            view = host_count.FreeResources(
                topology.host_topology(strategies.clone(host)),
                pci_pools.PCIPools.read(tracker.stats.pools))
            counted = counter.count(view, fit.ratios(4.0, 1.5), LIMIT)
            self.assert_counts(
                seen, self.fill(host, guest, limits, tracker, requests),
                counted)

        check()
        print('capacity, PCI devices: %s' % seen)
        self.assert_seen(seen['several'], test_stock.CASES // 20)


class TestPolicyCapacity(CapacityTestCase):
    """Hosts with labels and guests with policies, and nfv-sched's filters."""

    def limit(self, default, name):
        return options.aggregate_limit(
            strategies.host_state(None), name, default)

    def fill(self, case, host, tracker, chain):
        data = case.data
        for count in range(LIMIT):
            spec = case.spec()
            state = strategies.host_state(
                host, data['cpu_ratio'], 1.5)
            state.pci_stats = nova_internals.PciDeviceStats(
                host, tracker.stats.to_device_pools_obj())
            for each in chain:
                try:
                    if not list(each.filter_all([state], spec)):
                        return count
                except exception.NoValidHost:
                    return count
            try:
                requests = case.requests
                if requests and not tracker.stats.support_requests(
                        requests, None):
                    return count
                claimed = None
                if case.guest is not None:
                    claimed = claims.numa_fit(
                        host, strategies.clone(case.guest),
                        state.limits.get('numa_topology'), requests,
                        tracker.stats)
                    if claimed is None:
                        return count
                host = record(host, claimed)
                if requests and not tracker.stats.consume_requests(
                        requests, claimed.cells if claimed else None):
                    return count
            except FAILURES:
                return count
        return LIMIT

    def test_same_number_of_guests(self):
        seen = dict.fromkeys((*SEEN, 'contradictions'), 0)
        known = {each.__name__: each for each in filters.all_filters()}

        @test_stock.SETTINGS
        @hypothesis.given(data=joint.cases())
        def check(data):
            data = dict(data, mappings=None)
            try:
                case = joint.Case(data)
            except exception.NovaException:
                return
            if case.guest is None and not case.requests:
                return
            enabled = data['enabled']
            self.flags('filter_scheduler', enabled_filters=enabled)
            self.flags('compute', packing_host_numa_cells_allocation_strategy=(
                data['packing']))
            self.flags(shared_vcpus_per_core=data['per_core'])
            host = case.host(data['now'])
            devices = []
            for number, pool in enumerate(data['pools']):
                for each in range(data['now']['free'][number]):
                    address = '0000:%02x:%02x.0' % (number, each)
                    devices.append({
                        'address': address, 'dev_id': address,
                        'vendor_id': '8086', 'product_id': pool['product'],
                        'numa_node': pool['node'], 'label': '',
                        'dev_type': pool['type']})
            tracker = self.tracker(host, devices)
            chain = [known[name]() for name in enabled if name in known]
            chain.append(pci_passthrough_filter.PciPassthroughFilter())
            guest = wanted(case.spec())
            view = topology.host_topology(strategies.clone(host))
            ratio = data['cpu_ratio']
            for rule in guest.terms.capping if guest.terms else ():
                ratio = rule.cpu_ratio(
                    view, ratio, functools.partial(
                        self.limit, data['per_core']))
            counted = host_count.Counter(guest).count(
                host_count.FreeResources(
                    view, pci_pools.PCIPools.read(tracker.stats.pools)),
                fit.ratios(ratio, 1.5), LIMIT)
            seen['contradictions'] += guest.request.error is not None
            if case.guest is None and counted.fits == LIMIT:
                return
            self.assert_counts(
                seen, self.fill(case, host, tracker, chain), counted)

        check()
        print('capacity, policies: %s' % seen)
        self.assert_seen(seen['several'], test_stock.CASES // 20)


class TestLostCapacity(test_stock.EquivalenceTestCase):
    """What is lost to a limit is what fits besides without it."""

    HOSTS = 150
    STRICT = document.LostLimit(
        document.BindingKind.POLICY, 'nfv:vswitch_numa_affinity=strict')
    #: Limit -> extra spec without which it is lifted.
    EXTRA_SPECS = {
        STRICT: 'nfv:vswitch_numa_affinity',
        document.LostLimit(document.BindingKind.PAGES, '1 GiB'):
            'hw:mem_page_size',
        document.LostLimit(document.BindingKind.THREADS):
            'hw:cpu_thread_policy',
        document.LostLimit(document.BindingKind.DEVICES, 'VF'):
            'pci_passthrough:alias',
        document.LostLimit(document.BindingKind.DEVICES_NEAR, 'VF'):
            'pci_passthrough:alias'}
    NETWORKS = document.LostLimit(document.BindingKind.NETWORKS_NEAR)
    SPECS = {'nfv:vswitch_numa_affinity': 'strict', 'hw:mem_page_size': '1GB',
             'hw:cpu_thread_policy': 'require',
             'pci_passthrough:alias': 'nic:1'}

    def host(self, rng, number):
        nodes = tuple(small_clouds.near(small_clouds.node(
            each, rng.sample(range(8), rng.randrange(9)),
            huge=rng.choice((0, 8, 13, 15, 16))),
            *['wan'] * rng.choice((True, False))) for each in range(2))
        return small_clouds.host(f'h{number}', *nodes, devices=tuple([
            small_clouds.device(each + 1, rng.randrange(2))
            for each in range(rng.randrange(4))]),
            traits=['HW_CPU_HYPERTHREADING'])

    def count(self, cloud, keys, networks):
        found, = capacity.capacities(cloud, [small_clouds.flavor(
            2, **{key.replace(':', '__'): self.SPECS[key] for key in keys})],
            capacity.NewServers(ports=assumed_ports.of_networks(
                cloud, ['x,physnet=wan']) if networks else 1))
        self.assertIsNone(found.error)
        return found

    def test_without_each_limit(self):
        rng = random.Random(1)
        seen = collections.Counter()
        for case in range(max(2, test_stock.CASES // 2000)):
            cloud = small_clouds.cloud(*(
                self.host(rng, number) for number in range(self.HOSTS)))
            keys = rng.sample(sorted(self.SPECS), rng.randrange(1, 4))
            networks = bool(case % 2)
            found = self.count(cloud, keys, networks)
            without = {key: self.count(
                cloud, [other for other in keys if other != key], networks)
                for key in keys}
            if networks:
                without[None] = self.count(cloud, keys, False)
            limits = dict(self.EXTRA_SPECS)
            limits[self.NETWORKS] = None
            for name, host in found.hosts.items():
                self.assertEqual(host.placement_grants - host.fits,
                                 sum(host.lost.values()))
                lost = collections.Counter()
                for cause, number in host.lost.items():
                    seen[len(cause.limits), cause.any_one] += 1
                    if cause.any_one:
                        lost.update({limits.get(limit, limit): number
                                     for limit in cause.limits})
                for key, other in without.items():
                    fits = min(other.hosts[name].fits, host.placement_grants)
                    self.assertEqual(
                        max(0, fits - host.fits), lost[key],
                        (key, keys, networks, name, host))
        print('capacity, lost: %s' % dict(seen))
        self.assertTrue(seen[1, True] and seen[2, False])
