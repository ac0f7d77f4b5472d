# SPDX-License-Identifier: Apache-2.0
"""What the tools say fits a cloud, against servers that are booted there.

Generated clouds are simulated: servers of each flavor are booted, by Nova's
own scheduler and claims, until one is refused.  Their number must be what was
counted before.  Placement offers devices in the order in which they are
counted.  The number of clouds is a tenth of
``NFV_SCHED_EQUIVALENCE_CASES``.
"""

import collections
import dataclasses

import hypothesis
from hypothesis import strategies as st

from nfv_sched.fit import rules
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.simulator import lifecycle
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.tests.equivalence import test_stock

#: Flavors of which more fit are not booted.
MOST = 60
PINNED = {'hw:cpu_policy': 'dedicated'}
OURS = tuple(rules.filters())
LIMITS = ['VSwitchPortLimitFilter', 'SecurityRuleLimitFilter']
#: Physical network -> begin of the UUID of a network on it.
NETWORKS = {'data': 'd0000000', 'away': 'a0000000', 'none': 'e0000000',
            None: 'f0000000'}
PORTS = (('normal', 'data'), ('normal', 'away'), ('normal', None),
         ('normal', 'none'), ('direct', 'data'), ('direct', 'data'),
         ('direct', 'away'), ('direct-physical', 'data'), ('direct', None))
ALIAS = ('{"name": "nic", "vendor_id": "8086", "product_id": "154d", '
         '"device_type": "type-VF"}')
FLAVORS = {
    'pinned.2': (2, PINNED), 'pinned.4': (4, PINNED),
    'two.4': (4, {**PINNED, 'hw:numa_nodes': '2'}),
    'pages.2': (2, {**PINNED, 'hw:mem_page_size': '2MB'}),
    'large.2': (2, {**PINNED, 'hw:mem_page_size': 'large'}),
    'require.2': (2, {**PINNED, 'hw:cpu_thread_policy': 'require'}),
    'isolate.2': (2, {**PINNED, 'hw:cpu_thread_policy': 'isolate'}),
    'emulator.2': (2, {**PINNED, 'hw:emulator_threads_policy': 'isolate'}),
    'mixed.3': (3, {'hw:cpu_policy': 'mixed',
                    'hw:cpu_dedicated_mask': '^0'}),
    'shared.2': (2, {'hw:numa_nodes': '1'}), 'floating.3': (3, {}),
    'vf.2': (2, {**PINNED, 'pci_passthrough:alias': 'nic:1'}),
    'vf2.2': (2, {**PINNED, 'pci_passthrough:alias': 'nic:2',
                  'hw:pci_numa_affinity_policy': 'required'}),
    'prefer.2': (2, {**PINNED, 'pci_passthrough:alias': 'nic:1',
                     'nfv:pci_numa_affinity': 'prefer'}),
    'strict.2': (2, {**PINNED, 'nfv:vswitch_numa_affinity': 'strict'}),
    'trait.2': (2, {**PINNED, 'trait:CUSTOM_FAST': 'required'}),
    'group.2': (2, {**PINNED,
                    'aggregate_instance_extra_specs:kind': 'nfv'}),
}


@st.composite
def nodes(draw, first, number):
    """A NUMA node; and CPUs, MiB and shared vCPUs that guests have."""
    threads = draw(st.sampled_from((1, 2)))
    cores = draw(st.sampled_from((4, 6, 3)))
    cpus = list(range(first, first + cores * threads))
    siblings = tuple(frozenset(cpus[at:at + threads])
                     for at in range(0, len(cpus), threads))
    kept = threads * draw(st.sampled_from((1, 0, 1)))
    shared, dedicated = frozenset(cpus[:kept]), frozenset(cpus[kept:])
    pinned = frozenset(draw(st.lists(
        st.sampled_from(sorted(dedicated)), unique=True, max_size=5)))
    floating = draw(st.integers(0, 2)) if kept else 0
    pages = draw(st.integers(0, 3))
    memory = 8192
    labels = {f'nfv_node{number}'} | (
        {'nfv_vswitch'} if number == 0 else set())
    labels |= draw(st.sampled_from((set(), {'data'}, {'away'})))
    return snapshot.Node(
        number=number, socket=number, shared=shared, dedicated=dedicated,
        pinned=pinned, siblings=siblings, memory=memory,
        memory_used=1024 * pages, shared_used=floating,
        physnets=frozenset(labels), tunneled=draw(st.sampled_from(
            (False, False, number == 0))), pages=(
            snapshot.Pages(size=4, total=1024 * 1024),
            snapshot.Pages(size=2048, total=2048, used=512 * pages)))


@st.composite
def hosts(draw, number, in_placement):
    """A host; with PCI in Placement nothing of it is used."""
    name = f'compute-{number}'
    made, first = [], 0
    for which in range(draw(st.sampled_from((2, 1, 2, 3)))):
        node = draw(nodes(first, which))
        first += len(node.shared | node.dedicated)
        if in_placement:
            node = snapshot.Node(**{
                **{field: getattr(node, field) for field in (
                    'number', 'socket', 'shared', 'dedicated', 'siblings',
                    'memory', 'physnets', 'tunneled')},
                'pages': tuple(snapshot.Pages(
                    size=pages.size, total=pages.total)
                    for pages in node.pages)})
        made.append(node)
    devices = []
    for which in range(draw(st.integers(0, 2))):
        parent = f'0000:{which:02x}:00.0'
        place = draw(st.sampled_from((0, len(made) - 1)))
        network = draw(st.sampled_from((
            {}, {'physical_network': 'data'}, {'physical_network': 'away'})))
        devices += [snapshot.Device(
            address=f'0000:{which:02x}:02.{function}', vendor='8086',
            product='154d', kind='type-VF', node=place, parent=parent,
            tags={'address': f'0000:{which:02x}:02.{function}',
                  'remote_managed': 'false', **network})
            for function in range(draw(st.integers(1, 4)))]
    uuid = f'0000000{number}-0000-4000-8000-000000000000'
    dedicated = sum(len(node.dedicated) for node in made)
    shared = sum(len(node.shared) for node in made)
    memory = sum(node.memory for node in made)
    inventories = {
        'PCPU': snapshot.Inventory(
            total=dedicated, max_unit=dedicated,
            used=sum(len(node.pinned) for node in made)),
        'MEMORY_MB': snapshot.Inventory(
            total=memory, max_unit=memory, reserved=draw(
                st.sampled_from((512, 0, 4096))),
            used=sum(node.memory_used for node in made)),
        'DISK_GB': snapshot.Inventory(total=100, max_unit=100)}
    if shared:
        inventories['VCPU'] = snapshot.Inventory(
            total=shared, ratio=4.0, max_unit=shared,
            used=sum(node.shared_used for node in made))
    return snapshot.Host(
        name=name, hypervisor=name, uuid=uuid, cell='cell1',
        nodes=tuple(made), devices=tuple(devices), cpu_ratio=4.0,
        memory_ratio=1.0, disk_ratio=1.0,
        vcpus=shared + dedicated, memory=memory, disk=100,
        enabled=draw(st.integers(0, 7)) != 1,
        up=draw(st.integers(0, 7)) != 1,
        stats={'num_instances': str(draw(st.integers(0, 3)))},
        network=snapshot.HostNetwork(
            vswitch_ports=draw(st.integers(0, 6)),
            security_rules=draw(st.integers(0, 20))),
        providers=() if in_placement else (snapshot.Provider(
            uuid=uuid, name=name, inventories=inventories,
            traits=frozenset(draw(st.sets(st.sampled_from(
                ('CUSTOM_FAST', 'HW_CPU_HYPERTHREADING')))))),))


@st.composite
def clouds(draw):
    in_placement = draw(st.integers(0, 3)) == 1
    made = tuple(draw(hosts(number, in_placement))
                 for number in range(draw(st.integers(1, 3))))
    filters = ['ComputeFilter', 'AggregateInstanceExtraSpecsFilter',
               'PciPassthroughFilter']
    filters += draw(st.sampled_from(
        (OURS, OURS, ('NUMATopologyFilter',), ())))
    if draw(st.booleans()):
        filters.append('NumInstancesFilter')
    if draw(st.booleans()):
        filters += LIMITS
    shadow = draw(st.one_of(st.just([]), st.lists(
        st.sampled_from((*OURS, *LIMITS)), unique=True)))
    return snapshot.Cloud(
        taken='2026-11-22T00:00:00Z', hosts=made, aggregates=(
            snapshot.Aggregate(
                name='nfv', uuid='a0000000-0000-4000-8000-000000000000',
                metadata={'kind': 'nfv'}, hosts=tuple(
                    host.name for host in made if draw(st.booleans()))),),
        options={
            'filter_scheduler': {
                'enabled_filters': filters,
                'max_instances_per_host': draw(st.sampled_from((5, 50))),
                'pci_in_placement': in_placement},
            'pci': {'alias': [ALIAS],
                    'report_in_placement': in_placement},
            'nfv_sched': {'vswitch_ports_per_node': 12,
                          'security_rules_per_node': 40,
                          'shadow': shadow},
            'compute': {'packing_host_numa_cells_allocation_strategy': draw(
                st.booleans())}})


def flavors():
    return {name: snapshot.Flavor(
        name=name, vcpus=vcpus, memory=512 * vcpus, extra_specs=specs)
        for name, (vcpus, specs) in FLAVORS.items()}


@st.composite
def servers_of(draw, flavor, number):
    """A server of a flavor that failed, with ports of all kinds."""
    return snapshot.Server(
        uuid=f'5{number:07}-0000-4000-8000-000000000000',
        name=f'old-{number}', state='error', flavor=flavor,
        ports=tuple(snapshot.Port(
            id=f'6{number:07}-{order:04}-4000-8000-000000000000',
            network=f'{NETWORKS[physnet]}-0000-4000-8000-000000000000',
            vnic_type=vnic_type, physnet=physnet,
            rules=draw(st.sampled_from((0, 3, 5))))
            for order, (vnic_type, physnet) in enumerate(draw(
                st.lists(st.sampled_from(PORTS), min_size=1, max_size=3)))))


@st.composite
def choices(draw, cloud, how):
    """Ports that are chosen by an option, or by none."""
    if how == '--like':
        return assumed_ports.of_server(
            draw(st.sampled_from(cloud.servers)))
    if how == '--network':
        return assumed_ports.of_networks(cloud, [
            f'net-{physnet},physnet={physnet or ""},vnic-type={vnic_type}'
            for vnic_type, physnet in draw(st.lists(
                st.sampled_from(PORTS), min_size=1, max_size=3))])
    return None


def boot_until_refused(state, flavor, plugs=()):
    """Boot servers until one is refused, delete them; count them by host."""
    booted = []
    try:
        while True:
            server = servers.SimulatedServer(f'more-{len(booted)}', flavor)
            state.servers[server.name] = server
            lifecycle.boot_as(state, server, request.BootRequest(
                flavor=state.flavors[flavor], ports=plugs))
            booted.append(server)
    except servers.Refused:
        pass
    counts = dict.fromkeys(state.hosts, 0)
    for server in booted:
        counts[server.host.name] += 1
        lifecycle.delete(state, server, None)
    return counts


class TestClouds(test_stock.EquivalenceTestCase):

    def compare(self, state, counting, flavor, seen, plugs=()):
        """Boot as many servers as were counted; None if too many fit."""
        found = counting.capacity(flavor)
        if found.fits > MOST:
            seen['skipped'] += 1
            return None
        self.assertEqual(
            {name: host.fits for name, host in found.hosts.items()},
            boot_until_refused(state, flavor.name, plugs),
            (flavor.name, plugs))
        self.assertTrue(all(host.limits for host in found.hosts.values()))
        seen['run'] += 1
        seen['servers'] += found.fits
        return found

    def test_same_number_of_servers(self):
        seen = dict.fromkeys(
            ('run', 'skipped', 'servers', 'fewer than Placement says'), 0)

        @hypothesis.settings(
            test_stock.SETTINGS, max_examples=max(10, test_stock.CASES // 10))
        @hypothesis.given(cloud=clouds(), chosen=st.lists(
            st.sampled_from(sorted(FLAVORS)), unique=True, min_size=3,
            max_size=6))
        def check(cloud, chosen):
            known = flavors()
            cloud = snapshot.Cloud(
                taken=cloud.taken, hosts=cloud.hosts, options=cloud.options,
                aggregates=cloud.aggregates,
                flavors=tuple(known[name] for name in chosen))
            with start.started(cloud) as state:
                # How many fit may depend on it, without a filter of NUMA
                # nodes even on whether the claim fails.
                state.placement.shuffled = False
                counting = capacity.Counting(
                    state, assumed_ports.always(0), figures=False)
                for flavor in cloud.flavors:
                    found = self.compare(state, counting, flavor, seen)
                    seen['fewer than Placement says'] += bool(
                        found and found.fits < found.placement)

        check()
        print('capacity, clouds: %s' % seen)
        self.assert_seen(seen['servers'], seen['run'])
        self.assert_seen(seen['fewer than Placement says'],
                         seen['run'] // 10)

    def test_same_number_of_servers_with_ports(self):
        """Ports as servers of the flavor, --like or --network have them."""
        seen = dict.fromkeys(
            ('run', 'skipped', 'servers', 'fewer than without ports'), 0)
        bases = collections.Counter()

        @hypothesis.settings(
            test_stock.SETTINGS, max_examples=max(4, test_stock.CASES // 30))
        @hypothesis.given(data=st.data(), cloud=clouds(), chosen=st.lists(
            st.sampled_from(sorted(FLAVORS)), unique=True, min_size=3,
            max_size=6))
        def check(data, cloud, chosen):
            known = flavors()
            cloud = dataclasses.replace(
                cloud, flavors=tuple(known[name] for name in chosen),
                servers=tuple(data.draw(servers_of(known[name], number))
                              for number, name in enumerate(chosen)))
            hosts = dataclasses.replace(cloud, servers=())
            ports_of = assumed_ports.per_flavor(
                cloud, data.draw(choices(cloud, how)))
            with start.started(hosts) as state:
                state.placement.shuffled = False
                counting = capacity.Counting(state, ports_of)
                for flavor in cloud.flavors:
                    found = self.compare(state, counting, flavor, seen,
                                         ports_of(flavor).plugs)
                    if found is None:
                        continue
                    bases[found.ports.basis] += 1
                    seen['fewer than without ports'] += (
                        found.fits < capacity.Counting(
                            state, assumed_ports.always(0),
                        ).capacity(flavor).fits)

        for how in (None, '--like', '--network'):
            check()
        print('capacity, clouds with ports: %s, %s' % (seen, dict(bases)))
        self.assert_seen(seen['servers'], seen['run'] // 4)
        self.assert_seen(seen['fewer than without ports'],
                         seen['run'] // 10)
        self.assertEqual(
            {assumed_ports.Basis.SERVERS, assumed_ports.Basis.SERVER,
             assumed_ports.Basis.NETWORKS}, set(bases))
