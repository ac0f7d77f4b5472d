# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the schedulers, and what is promised all the same.

No guest with a strict policy is away from the virtual switch, no limit is
overrun, and servers can be created again afterwards without a restart of
``nova-scheduler`` or ``nfv-sched-ledger``.  Each test leaves the bed whole.
"""

from collections.abc import Mapping
from concurrent import futures
import contextlib
import itertools
import time

from keystoneauth1 import exceptions as ks_exceptions
from openstack import exceptions
from oslo_utils import timeutils

from nfv_sched.tests.live import base
from nfv_sched.tests.live.bed import cloud
from nfv_sched.tests.live.bed import configuration
from nfv_sched.tests.live.bed import schema
from nfv_sched.tests.live.bed import services

# Seconds.
_RECOVERY = 120
_SETTLED = 240
# A build whose message was lost in a restart is never finished by Nova.
_STUCK = 45
# More than a round of nfv-sched-ledger and the pause after it.
_ROUND = 10


class FaultTestCase(base.LiveTestCase):
    """Services are ended, frozen and started by the tests."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self._mend)
        self.strict = self.flavor(**base.STRICT)

    def _mend(self):
        """Start what does not run, and wait until Nova knows."""
        for service in self.bed.services.values():
            service.thaw()
            service.run()
        self.bed.wait_for_listeners()
        self.wait_until_up()

    def _are_gone(self, ids):
        """Whether guests are gone; delete them again if need be.

        If the database ends while a compute node claims, Nova may later give
        back CPUs of a guest that were never counted.  Where another guest
        had been given them, the deletion of that one ends in ERROR; the next
        one succeeds.
        """
        servers = [server for server in self.admin.compute.servers(
            all_projects=True) if server.id in ids]
        for server in servers:
            if server.status == 'ERROR' and server.task_state is None:
                self.admin.compute.delete_server(server)
        return not servers

    def compute_service(self, host):
        return next(self.admin.compute.services(
            host=host, binary='nova-compute'), None)

    def wait_until_up(self):
        """Wait until all services of Nova have said again that they are up.

        For a while Nova takes them to be up though it hears nothing of them.
        """
        since = timeutils.utcnow()

        def up(service):
            reported = timeutils.parse_isotime(service.updated_at)
            return (service.state == 'up'
                    and timeutils.normalize_time(reported) > since)

        self.wait_until(
            lambda: all(map(up, self.admin.compute.services())), _RECOVERY,
            'all services of Nova are up')

    def limit_each(self, count):
        """Let each host take so many ports of guests.

        That the limit arrives in Placement shows that nfv-sched-ledger works.
        """
        self.limit_ports(dict.fromkeys(self.hosts, count))

    def burst(self, count):
        with futures.ThreadPoolExecutor(count) as pool:
            return list(pool.map(
                lambda _: self.request(self.strict, networks=self.networks()),
                range(count)))

    def all_settled(self, servers, more_statuses=(), tasks=True):
        """Wait until all are there; without tasks, until they are at rest."""
        ids = {server.id for server in servers}

        def done():
            shown = [server for server in self.admin.compute.servers(
                all_projects=True) if server.id in ids]
            return shown if len(shown) == len(ids) and all(
                server.status in ('ACTIVE', 'ERROR', *more_statuses)
                and (tasks or server.task_state is None)
                for server in shown) else None

        return self.wait_until(done, _SETTLED, f'{len(ids)} guests are there')

    def assert_kept(self, servers, doubled=False):
        """No strict guest is astray, and the ledger is within its limits.

        :param servers: all that there are
        :param doubled: whether guests may have allocated more: where a build
            fails while Placement is down, Nova claims the next host besides
        :returns: those that are active
        """
        active = [server for server in servers if server.status == 'ACTIVE']
        for server in active:
            self.assert_strict(server)
            self.assertLessEqual(1, self.allocated(
                server.id, base.PORTS, server.compute_host))
            if not doubled:
                self.assertEqual(1, self.allocated(server.id, base.PORTS))
        used = self.used(base.PORTS)
        for host, room in self.room(base.PORTS).items():
            there = [server for server in active
                     if server.compute_host == host]
            self.assertLessEqual(len(there), room, host)
            self.assertLessEqual(used[host], room, host)
        self.assertEqual(
            sum(used.values()),
            sum(self.allocated(server.id, base.PORTS) for server in servers))
        for host in () if doubled else (
                {base.LEFT, base.RIGHT} & set(self.hosts)):
            node, = self.switch_nodes(host)
            self.wait_until(lambda: self.pinned_cpus(host) == sum(
                self.allocated(
                    server.id, f'CUSTOM_NFV_NODE{node}_PCPU', host)
                for server in active if server.compute_host == host),
                60, f'as much of node {node} of {host} is allocated as pinned')
        return active

    def assert_works(self):
        """A guest is created with its port, claimed where it is, and goes."""
        server = self.boot(self.strict, networks=self.networks())
        self.assert_kept([server])
        self.delete(server)
        self.wait_until(lambda: not any(self.used(base.PORTS).values()), 30,
                        'nothing is allocated in the ledger')


class SchedulerTest(FaultTestCase):

    def test_worker_killed_during_a_burst(self):
        self.limit_each(3)
        full = dict.fromkeys(self.hosts, 3)
        service = self.bed.schedulers[0]
        workers = set(service.worker_pids)
        self.assertEqual(configuration.SCHEDULER_WORKERS, len(workers))
        victim = min(workers)
        with futures.ThreadPoolExecutor(1) as pool:
            burst = pool.submit(self.burst, 20)
            self.wait_until(lambda: any(self.used(base.PORTS).values()), 60,
                            'a guest has been scheduled')
            service.kill_worker(victim)
            servers = self.all_settled(burst.result())

        active = self.assert_kept(servers)

        self.assertTrue(active)
        self.assertLessEqual(len(active), 3 * len(self.hosts))
        self.wait_until(
            lambda: len(set(service.worker_pids) - {victim}) == len(workers),
            30, 'another worker has been forked')
        # No slot is lost: what those who were scheduled by the worker do not
        # have, others get.
        while self.used(base.PORTS) != full:
            server = self.boot(self.strict, networks=self.networks())
            servers.append(self.show(server))
            self.assert_kept(servers)
        self.boot_refused(self.strict, networks=self.networks())
        self.delete(*servers)
        self.assertEqual({0}, set(self.used(base.PORTS).values()))
        self.assert_works()


class NeutronTest(FaultTestCase):

    def test_stopped_and_started(self):
        server = self.boot(self.strict, networks=self.networks())
        self.bed.services['neutron'].stop()

        # By what is published. Without Neutron Nova's API shows no server.
        other = self.request(self.strict)
        self.wait_until(
            lambda: self.bed.database(
                'nova', 'SELECT id FROM instances WHERE uuid = %s AND '
                'vm_state = %s', (other.id, 'active')),
            _SETTLED, 'a guest is created without Neutron')
        topology = self.bed.instance_topology(other.id)
        self.assertLessEqual(set(topology.host_nodes),
                             self.switch_nodes(topology.host))
        # The ledger stays as it is; it gives nothing free.
        self.assertEqual(1, sum(self.used(base.PORTS).values()))

        self.bed.services['neutron'].run()
        self.wait_until(
            lambda: list(self.admin.network.ports(device_id=server.id)),
            _RECOVERY, 'Neutron knows its ports')
        self.delete(server, other)
        self.limit_each(5)
        self.assert_works()


class ComputeTest(FaultTestCase):

    def test_frozen_during_a_burst(self):
        """Nova sends guests there as long as it believes that it is up."""
        self.limit_each(3)
        frozen = self.bed.computes[base.LEFT]
        frozen.freeze()
        servers = self.burst(16)
        others = 3 * (len(self.hosts) - 1)
        self.wait_until(
            lambda: sum(self.used(base.PORTS).values()) >= others, 60,
            'the other hosts are full')
        frozen.thaw()
        self.wait_until_up()
        active = self.assert_kept(self.all_settled(servers))
        self.assertGreaterEqual(len(active), others)
        self.delete(*servers)
        self.assert_works()


class BurstTest(FaultTestCase):
    """Something happens while 24 guests are created, for 12 slots."""

    slots = 3  # of each host
    count = 24
    #: Host -> NUMA nodes from which its switch has just moved.
    left_behind: Mapping[str, set[int]] = {}

    def switch_nodes(self, host: str) -> set[int]:
        return super().switch_nodes(host) | self.left_behind.get(host, set())

    def ask(self) -> None:
        """Ask for a guest of an API that may not be able to answer."""
        with contextlib.suppress(exceptions.SDKException,
                                 ks_exceptions.ClientException):
            self.request(self.strict, networks=self.networks())

    def own(self) -> list:
        """All guests of the test, those included whose answer was lost."""
        servers = [server for server in self.admin.compute.servers(
            all_projects=True) if server.name.startswith(self._prefix)]
        self._servers = [server.id for server in servers]
        return servers

    def at_rest(self) -> list:
        """Wait until all guests are active or in error, or nothing moves."""
        seen, since = None, time.monotonic()

        def done():
            nonlocal seen, since
            servers = self.own()
            states = {server.id: (server.status, server.compute_host)
                      for server in servers}
            if states != seen:
                seen, since = states, time.monotonic()
            settled = all(server.status in ('ACTIVE', 'ERROR')
                          for server in servers)
            return servers if settled or (
                time.monotonic() - since > _STUCK) else None

        return self.wait_until(done, _SETTLED, 'the guests are at rest')

    def wait_for_slots(self) -> None:
        """Wait until all slots are given back, and stay so.

        A round of nfv-sched-ledger that has read the ports of a guest before
        they were deleted, and its allocation after that, reserves room for
        them until the next round.
        """
        room = dict.fromkeys(self.hosts, self.slots)
        since: float | None = None

        def done():
            nonlocal since
            if any(self.used(base.PORTS).values()) or (
                    self.room(base.PORTS) != room):
                since = None
                return False
            if since is None:
                since = time.monotonic()
            return time.monotonic() - since > _ROUND

        self.wait_until(done, 60, 'all slots are given back')

    def restart(self, *names: str) -> None:
        for name in names:
            self.bed.services[name].stop()
            self.bed.services[name].run()

    def disturbed(self, disturb, *args, count=count) -> None:
        """Do something in the middle of a burst of so many guests.

        Slots are given back in the end, and can all be taken again.
        """
        self.limit_each(self.slots)
        with futures.ThreadPoolExecutor(count + 1) as pool:
            asked = [pool.submit(self.ask) for _ in range(count)]
            self.wait_until(lambda: any(self.used(base.PORTS).values()), 60,
                            'a guest has been scheduled')
            disturb(*args)
            for future in asked:
                future.result()
        self.bed.wait_for_listeners()
        self.wait_until_up()

        servers = self.at_rest()
        self.assertTrue(servers)
        self.assert_kept(servers, doubled=True)
        self.delete(*servers)
        self.left_behind = {}
        self.wait_for_slots()
        again = self.all_settled(self.burst(self.count))
        self.assertEqual(self.slots * len(self.hosts),
                         len(self.assert_kept(again)))
        self.delete(*again)
        self.assert_works()

    def test_schedulers(self):
        self.disturbed(
            self.restart, *[each.name for each in self.bed.schedulers])

    def test_ledger(self):
        self.disturbed(self.restart, 'nfv-sched-ledger')

    def test_second_ledger(self):
        second = services.ledger(self.bed.layout, self.hosts, '-2')
        self.addCleanup(second.kill)
        self.disturbed(second.run)

    def test_switch_moves(self):
        """To another NUMA node; guests that came before stay on the first."""
        # As nova-compute of this host reads it.
        description = (
            self.bed.layout.state / 'nova' / base.LEFT / 'cloud.yaml')
        text, hosts = description.read_text(), self.bed.hosts

        def describe(new_text: str) -> None:
            description.write_text(new_text)
            self.restart(f'nova-{base.LEFT}')

        def move():
            self.left_behind = {base.LEFT: self.switch_nodes(base.LEFT)}
            describe(text.replace('vswitch: [0]', 'vswitch: [1]', 1))
            self.bed.hosts = cloud.load(description)

        self.addCleanup(setattr, self.bed, 'hosts', hosts)
        self.addCleanup(describe, text)
        self.disturbed(move)

    def remove(self, host) -> None:
        """Take a host out as operators do, and let it forget who it was."""
        self.admin.compute.disable_service(self.compute_service(host))

        def emptied():
            """Move what is there, and what was on its way there."""
            there = [server for server in self.own()
                     if server.compute_host == host]
            for server in there:
                if server.status == 'ACTIVE' and server.task_state is None:
                    self.admin.compute.live_migrate_server(
                        server, block_migration='auto')
            return not there and not self.used(base.PORTS)[host]

        self.wait_until(emptied, _SETTLED, f'{host} is empty')
        self.bed.computes[host].stop()
        self.admin.compute.delete_service(self.compute_service(host))
        (self.bed.layout.state / 'nova' / host / 'compute_id').unlink()
        self.bed.hosts = {name: each for name, each in self.bed.hosts.items()
                          if name != host}

    def add(self, host, hosts) -> None:
        """Take a host in, closed until its limit is published."""
        process = self.bed.services[f'nova-{host}']
        if not process.alive:
            process.start()
        self.admin.compute.disable_service(self.wait_until(
            lambda: self.compute_service(host), 60, f'{host} is known'))
        try:
            process.wait_ready()
            schema.discover_hosts(self.bed.layout)
            self.bed.hosts = hosts
            self.limit_each(self.slots)
        finally:
            self.admin.compute.enable_service(self.compute_service(host))

    def test_host_added(self):
        """While guests are created, or soon after; it is filled later."""
        hosts = self.bed.hosts
        self.addCleanup(self.add, base.BOTH, hosts)
        self.remove(base.BOTH)
        self.disturbed(self.add, base.BOTH, hosts)

    def test_host_removed(self):
        """That to which the first goes: all find room on the others."""
        hosts = self.bed.hosts
        count = self.slots * (len(hosts) - 1)

        def remove():
            host = max(hosts, key=self.used(base.PORTS).get)
            self.addCleanup(self.add, host, hosts)
            self.remove(host)
            self.assertEqual(count, len(self.assert_kept(self.at_rest())))

        self.disturbed(remove, count=count)

    def test_broker(self):
        self.disturbed(self.restart, 'rabbitmq')

    def test_database(self):
        self.disturbed(self.restart, 'mariadb')

    def test_placement(self):
        self.disturbed(self.restart, 'placement')


class RacingMovesTest(FaultTestCase):
    """New guests and guests that move want the last slots."""

    def race(self, move) -> list:
        """Move guests while others are created; return all, once at rest."""
        self.limit_each(3)
        movers = self.all_settled(
            [self.request(self.strict, networks=self.networks(), host=host)
             for host in self.hosts for _ in range(2)])
        self.assertEqual(2 * len(self.hosts), len(self.assert_kept(movers)))
        with futures.ThreadPoolExecutor(20) as pool:
            moving = [pool.submit(move, server) for server in movers]
            asked = [pool.submit(self.request, self.strict,
                                 networks=self.networks())
                     for _ in range(10)]
            pending = [*moving, *asked]
            # At no moment too many. Not compared with the capacity that is
            # published: between two rounds of nfv-sched-ledger it may be less.
            while pending:
                for host, used in self.used(base.PORTS).items():
                    self.assertLessEqual(used, 3, host)
                pending = [future for future in pending if not future.done()]
            for future in moving:
                future.result()
            new = [future.result() for future in asked]
        return [*movers, *new]

    def assert_exact(self, servers, movers: int) -> None:
        """Assert that no guest and no slot is lost; the movers come first."""
        self.wait_until(
            lambda: sum(self.used(base.PORTS).values()) == len(
                [server for server in map(self.show, servers)
                 if server.status == 'ACTIVE']),
            60, 'every slot that is taken is of an active guest')
        shown = [self.show(server) for server in servers]
        self.assertEqual({'ACTIVE'},
                         {server.status for server in shown[:movers]})
        self.assert_kept(shown)
        self.delete(*shown)
        self.assert_works()

    def test_live_migrations(self):
        def move(server):
            with contextlib.suppress(exceptions.BadRequestException):
                self.admin.compute.live_migrate_server(
                    server, block_migration='auto')

        servers = self.race(move)
        self.all_settled(servers, tasks=False)
        self.assert_exact(servers, 2 * len(self.hosts))

    def test_cold_migrations(self):
        servers = self.race(self.admin.compute.migrate_server)
        shown = self.all_settled(servers, ['VERIFY_RESIZE'], tasks=False)
        confirmed = itertools.cycle((True, False))
        for server in shown:
            if server.status == 'VERIFY_RESIZE':
                if next(confirmed):
                    self.admin.compute.confirm_server_resize(server)
                else:
                    self.admin.compute.revert_server_resize(server)
        self.all_settled(servers, tasks=False)
        self.assert_exact(servers, 2 * len(self.hosts))
