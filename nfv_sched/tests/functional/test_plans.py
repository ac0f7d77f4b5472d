# SPDX-License-Identifier: Apache-2.0
"""Plans of a cloud whose Neutron cannot be read, carried out by the API."""

from nova import objects
import testtools

from nfv_sched.ops.answers.audit import all_checks
from nfv_sched.ops.answers.audit import values as audit_values
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import failover
from nfv_sched.ops.answers.plans import gap
from nfv_sched.ops.model import movable
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_snapshot


class WithoutNeutronTestCase(test_snapshot.SnapshotTestCase):

    node_threads = 1
    huge_pages = 0

    def drained(self, host):
        """Plan to empty a host without Neutron."""
        self.neutron_api.stop()
        cloud = self.read()
        plan = drain.plan(cloud, host)
        return plan, {guest.server_id: guest for guest in plan.servers}

    def carry_out(self, plan, servers):
        """Do as the plan says; whoever stays must be refused by the API."""
        by_uuid = {server['id']: server for server in servers}
        for move in plan.moves:
            server = by_uuid[move.id]
            if move.kind == movable.LIVE:
                self.live_migrate(server, host=move.destination)
            else:
                self.cold_migrate(server, host=move.destination)
            self.assertEqual(move.destination, self.host(server))
        for guest in plan.staying:
            self.assertMoveRefused(self.cold_migrate, by_uuid[guest.server_id])


class PortsTest(WithoutNeutronTestCase):
    """A guest with an SR-IOV port goes where there is a device for it."""

    devices = {'host1': {'port_vfs': [0, 0], 'port_pfs': [1]},
               'host2': {'port_vfs': [0], 'port_pfs': [1]}, 'host3': {}}

    def test_drain(self):
        flavor = self.flavor_with(base.pinned(), vcpus=1)
        servers = [self.boot(flavor, networks=networks, host='host1')
                   for networks in (
                       [self.port()], [self.port()],
                       [self.port('direct-physical')], [base.FOO], 'none')]
        self.boot(flavor, networks=[self.port('direct-physical')],
                  host='host2')
        plan, guests = self.drained('host1')
        first, second, physical, plain, bare = [
            guests[server['id']].how for server in servers]
        self.assertEqual(1, [first, second].count(None))
        self.assertIsNone(physical)
        self.assertNotIn(None, (plain, bare))
        self.assertFalse(plan.exact)
        self.assertIn(gap.GapKind.NEUTRON, [each.kind for each in plan.unread])
        self.carry_out(plan, servers)

    def test_failover(self):
        flavor = self.flavor_with(base.pinned(), vcpus=1)
        servers = [self.boot(flavor, networks=[self.port()], host='host1')
                   for _ in range(2)]
        self.neutron_api.stop()
        loss, = failover.check(self.read(), ['host1']).hosts
        stranded, = loss.stranded
        self.fail_host('host1')
        for server in sorted(servers, key=lambda server: (
                server['id'] == stranded.server_id)):
            if server['id'] == stranded.server_id:
                self.assertMoveRefused(self.evacuate, server)
            else:
                self.evacuate(server, start=False)
                self.assertEqual('host2', self.host(server))


class UnmappedTest(WithoutNeutronTestCase):
    """A host for which discover_hosts was forgotten takes nobody."""

    devices = {'host1': {}, 'host2': {}}

    def test_boot(self):
        mapping = objects.HostMapping.get_by_host(self.ctxt, 'host2')
        first = self.boot(self.flavor_with(base.pinned(), vcpus=1),
                          host='host1')
        mapping.destroy()
        self.neutron_api.stop()
        cloud = self.read()
        self.assertEqual([True, False],
                         [host.mapped for host in cloud.hosts])
        self.assertIn((audit_values.UNMAPPED, 'host2'), [
            (each.kind, each.host) for each in all_checks.findings(cloud)])
        plan = drain.plan(cloud, 'host1')
        self.assertEqual([first['id']],
                         [guest.server_id for guest in plan.staying])
        # The scheduler prefers it, as it is empty.
        second = self.boot(self.flavor_with(base.pinned(), vcpus=1),
                           expect='ERROR')
        self.assertIn("Host 'host2' is not mapped to any cell",
                      second['fault']['message'])


class PolicyTest(WithoutNeutronTestCase):
    """The NUMA policy of a port is in no cache, but in the PCI request."""

    devices = {'host1': {'port_vfs': [0, 0]}, 'host2': {'port_vfs': [0, 0]}}

    def full(self, vcpus):
        """A flavor of guests that fill node 0 with what is there."""
        return self.flavor_with(base.pinned(nfv__numa_node_0='0'), vcpus)

    def test_drain(self):
        """Who has a remote device may have one again."""
        flavor = self.flavor_with(base.pinned(), vcpus=1)
        required = self.boot(
            flavor, networks=[self.port(policy='required')], host='host1')
        others = self.full(base.PINNED_CPUS_PER_NODE - 1)
        filling = self.boot(others, host='host1')
        preferred = self.boot(
            flavor, networks=[self.port(policy='preferred')], host='host1')
        whole = self.occupy(self.full(base.PINNED_CPUS_PER_NODE), 'host2')
        self.assertEqual([[1], [0], [0]], [
            list(self.nodes(preferred)), list(self.nodes(required)),
            list(whole[0])])
        plan, guests = self.drained('host1')
        self.assertEqual(
            ['live', None],
            [guests[server['id']].how for server in (preferred, required)])
        self.carry_out(plan, [preferred, required, filling])


@testtools.skipIf(base.LIVE_MIGRATION_IS_STEERED,
                  'this Nova steers live migrations')
class AstrayTest(test_snapshot.SnapshotTestCase):
    """A server that a live migration has led away from the switch."""

    devices = {}
    node_threads = 1
    huge_pages = 0

    def broken(self, cloud):
        """Return the servers that are not where their policy says."""
        return [each.server_id for each in all_checks.findings(cloud)
                if each.kind == audit_values.POLICY]

    def test_way_back(self):
        self.flags(moves_without_limits='accept', group='nfv_sched')
        self.start_two(switch=[1])
        flavor = self.flavor(nfv__vswitch_numa_affinity='strict')
        server = self.boot(flavor, host='host1', networks='none')
        # Node 0 has more room now, which the claim prefers.
        stays = self.boot(flavor, host='host2', networks='none')
        self.live_migrate(server)
        self.assertPlaced(server, [0], 'host2')
        cloud = self.read()
        self.assertEqual([server['id']], self.broken(cloud))
        plan = drain.plan(cloud, 'host2', uuids=[server['id']])
        move, = plan.moves
        self.assertEqual((movable.COLD, 'host1'),
                         (move.kind, move.destination))
        self.cold_migrate(server, host=move.destination)
        self._confirm_resize(server)
        self.assertPlaced(server, [1], 'host1')
        self.assertPlaced(stays, [1], 'host2')
        self.assertEqual([], self.broken(self.read()))
