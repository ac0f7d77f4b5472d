# SPDX-License-Identifier: Apache-2.0

"""Several requests in the scheduler at once.

The filters and weighers are shared by all threads of nova-scheduler.  What
one request has worked out must never show in another, and a strict guest
that loses a race for the last place must not land elsewhere.
"""

from concurrent import futures
import datetime
import sys
import threading
from unittest import mock

from oslo_utils import timeutils

from nfv_sched.nova import database
from nfv_sched.nova import records
from nfv_sched.tests.functional import base

THREADS = 12
ROUNDS = 15


class SharedFiltersTest(base.NFVCloudTestCase):
    """Nova's own filter and weight handlers, on threads.

    The hosts' states and the requests come from the database of a real
    cloud; the threads do what a scheduler does between reading them and
    claiming in Placement.
    """

    def setUp(self):
        super().setUp()
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        for number, switch in enumerate([[1], [0], [0, 1]]):
            self.start_host('host%d' % number, switch=switch)
        # One place is left on the first host's node 1.
        self.occupy(self.flavor(vcpus=3, nfv__numa_node_0='1'), 'host0')

    def requests(self):
        """Return what real requests of all kinds asked the scheduler."""
        flavors = [
            self.flavor(vcpus=1, nfv__vswitch_numa_affinity='strict'),
            self.flavor(nfv__vswitch_numa_affinity='strict'),
            self.flavor(nfv__vswitch_numa_affinity='prefer'),
            self.flavor(nfv__vswitch_numa_affinity='strict',
                        hw__numa_nodes='2'),
            self.flavor(nfv__numa_node_0='0'),
            self.flavor(nfv__numa_node_0='1'),
            self.flavor(),
        ]
        specs = []
        manager = self.scheduler.manager
        decide = manager._schedule

        def record(context, spec, *args, **kwargs):
            specs.append(spec.obj_clone())
            return decide(context, spec, *args, **kwargs)

        with mock.patch.object(manager, '_schedule', record):
            for flavor in flavors:
                server = self.boot(flavor)
                self.delete_all([server['id']])
        self.assertEqual(len(flavors), len(specs))
        return specs

    def host_states(self, spec):
        host_manager = self.scheduler.manager.host_manager
        return list(host_manager.get_host_states_by_uuids(
            self.ctxt, list(self.compute_rp_uuids.values()), spec))

    def schedule(self, spec, hosts):
        host_manager = self.scheduler.manager.host_manager
        for host in hosts:
            host.allocation_candidates = [{'allocations': {}, 'mappings': {}}]
        passed = list(host_manager.get_filtered_hosts(hosts, spec, 0))
        weighed = host_manager.get_weighed_hosts(passed, spec)
        return [(weighed_host.obj.host, round(weighed_host.weight, 6),
                 self.labels(weighed_host.obj)) for weighed_host in weighed]

    @staticmethod
    def labels(host):
        limits = host.limits.get('numa_topology')
        if limits is None or 'network_metadata' not in limits:
            return None
        return sorted(limits.network_metadata.physnets)

    def test_requests_do_not_mix(self):
        specs = self.requests()
        expected = [self.schedule(spec, self.host_states(spec))
                    for spec in specs]
        # Something to mix up: no two requests end alike by accident.
        self.assertGreater(len({str(result) for result in expected}), 4)

        work = [(number, specs[number].obj_clone(),
                 self.host_states(specs[number]))
                for number in range(len(specs))
                for _ in range(ROUNDS)]
        chunks = [work[start::THREADS] for start in range(THREADS)]
        gate = threading.Barrier(THREADS)

        def run(chunk):
            gate.wait()
            return [(number, self.schedule(spec, hosts))
                    for number, spec, hosts in chunk]

        sys.setswitchinterval(1e-5)
        with futures.ThreadPoolExecutor(THREADS) as pool:
            results = [result for future in
                       [pool.submit(run, chunk) for chunk in chunks]
                       for result in future.result()]
        self.assertEqual(len(work), len(results))
        for number, result in results:
            self.assertEqual(expected[number], result)


class LostRace:
    """Somebody takes the place between the decision and the claim."""

    def boot_behind(self, flavor, thief):
        """Boot a guest, and call ``thief`` between decision and claim."""
        # Not select_destinations, which is looked up once by the RPC server.
        manager = self.scheduler.manager
        decide = manager._select_destinations
        pending = [thief]

        def decide_slowly(*args, **kwargs):
            decision = decide(*args, **kwargs)
            if pending:
                pending.pop()()
            return decision

        with mock.patch.object(
                manager, '_select_destinations', decide_slowly):
            server = self.boot(flavor, expect=('ACTIVE', 'ERROR'))
        self.assertEqual([], pending)
        return server

    def assertLost(self, server):
        self.assertEqual('ERROR', server['status'])
        self.assertEqual({}, self._get_allocations_by_server_uuid(
            server['id']))


class LostRaceTest(LostRace, base.NFVCloudTestCase):
    """The switch node of a host fills."""

    def setUp(self):
        super().setUp()
        self.strict = self.flavor(nfv__vswitch_numa_affinity='strict')

    def boot_and_lose(self, flavor, host):
        return self.boot_behind(
            flavor, lambda: self.occupy(self.strict, host, times=2))

    def test_guest_goes_to_the_next_host(self):
        self.start_host('host1', switch=[1], memory_gib=64)
        self.start_host('host2', switch=[1], memory_gib=8)
        prefer = self.flavor(nfv__vswitch_numa_affinity='prefer')
        for title, flavor in ('strict', self.strict), ('prefer', prefer):
            with self.row(title):
                server = self.boot_and_lose(flavor, 'host1')
                self.assertPlaced(server, [1], 'host2')
        self.assertLate(0, 0, 2)

    def test_strict_guest_does_not_land_elsewhere(self):
        """Node 0 of the only host is free; it is not for this guest."""
        self.start_host('host1', switch=[1])
        self.assertLost(self.boot_and_lose(self.strict, 'host1'))
        # Nova does not store why the claim on the last host failed.
        self.assertLate(0, 1, 0)
        self.flags(max_attempts=1, group='scheduler')
        self.delete_all()
        self.assertLost(self.boot_and_lose(self.strict, 'host1'))
        self.assertLate(1, 1, 0)
        with mock.patch.object(timeutils, 'utcnow', lambda: (
                datetime.datetime.utcnow() + datetime.timedelta(hours=2))):
            self.assertLate(0, 0, 0)
        with mock.patch.object(database, 'read_cells', lambda *_: (
                {'cell1': {('late_failures', 'claim'): 1}}, ['cell2'])):
            self.assertEqual(({}, ['cell2']), records.late_failures())

    def assertLate(self, *figures):
        """Check claims, retries that ended, boots that were tried again."""
        self.assertEqual(
            (*figures, 0, 0), tuple(records.late_failures()[0].values()))


class LostDevices(LostRace, base.PCI):
    """CPUs or devices near the guest's devices are taken.

    There is capacity for the guest elsewhere, which it must not use.
    """

    def test_strict_guest_does_not_land_elsewhere(self):
        self.start_host('host1', switch=[0, 1],
                        devices={'nics': [1, 1], 'vfs': [0] * 3})
        filler = self.flavor(vcpus=base.PINNED_CPUS_PER_NODE,
                             nfv__numa_node_0='1')
        for alias in self.aliases:
            with self.row('CPUs, ' + alias):
                server = self.boot_behind(
                    self.strict_pci(alias + ':1'),
                    lambda: self.occupy(filler, 'host1'))
                self.assertLost(server)
        if not self.in_placement:
            # Placement would give no device out twice.
            with self.row('devices'):
                server = self.boot_behind(
                    self.strict_pci('nic:1'),
                    lambda: self.occupy(self.strict_pci('nic:2'), 'host1'))
                self.assertLost(server)
        self.assertNothingLeft()

    def test_strict_guest_takes_what_is_left(self):
        """The node that was decided on is full, another will do."""
        self.start_host('host1', switch=[0, 1], devices={'nics': [0, 1]})
        for node in (0, 1):
            with self.row('node %d is lost' % node):
                filler = self.flavor(vcpus=base.PINNED_CPUS_PER_NODE,
                                     nfv__numa_node_0=str(node))
                server = self.boot_behind(
                    self.strict_pci('nic:1'),
                    lambda: self.occupy(filler, 'host1'))
                if server['status'] == 'ACTIVE':
                    self.assertPlaced(server, [1 - node],
                                      devices=[1 - node])
                else:
                    self.assertLost(server)
        self.assertNothingLeft()


class LostDevicesTest(LostDevices, base.WholePluginTestCase):

    aliases = ['nic', 'nic-required']


class LostDevicesInPlacementTest(LostDevices, base.WholePluginTestCase):

    in_placement = True
    aliases = ['nic', 'nic-required', 'nic-preferred', 'nic-socket']


class LostSharedCPUsTest(base.CappedCPUs, LostRace, base.WholePluginTestCase):
    """The shared CPUs fill up to the cap, of which Nova knows nothing."""

    def test_cap_holds_at_the_claim(self):
        self.start_host('host1')
        specs = {'hw__cpu_policy': 'mixed', 'hw__cpu_dedicated_mask': '^0',
                 'nfv__shared_vcpu': '0'}
        shared = self.flavor(**specs)
        fillers = [self.flavor(nfv__numa_node_0=str(node), **specs)
                   for node in (0, 1)]

        def fill(*nodes):
            for node in nodes:
                self.occupy(fillers[node], 'host1', times=2)

        for node in (0, 1):
            with self.row('node %d is lost' % node):
                server = self.boot_behind(shared, lambda: fill(node))
                self.assertPlaced(server, [1 - node])
        with self.row('both are lost'):
            self.assertLost(self.boot_behind(shared, lambda: fill(0, 1)))
        self.assertNothingLeft()
