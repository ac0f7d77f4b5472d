# SPDX-License-Identifier: Apache-2.0
"""Host NUMA nodes of strict servers in Placement.

After each operation what Placement has allocated and reserved of the nodes
is what Nova has pinned there; and no strict server comes to a node that
Placement has given to another, however old the scheduler's figures are.
"""

import copy

import fixtures
from nova.db.main import api as main_api
from nova.db.main import models as main_models
from nova.scheduler import host_manager
from nova.tests.functional.api import client

from nfv_sched.ledger import reader
from nfv_sched.limits import names
from nfv_sched.ops.answers.audit import all_checks
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.cloud import database
from nfv_sched.ops.simulator import start
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import network

GIB = 1024 ** 2  # KiB


class NodesTestCase(network.NetworkCloudTestCase):

    extra_filters = [*network.NetworkCloudTestCase.extra_filters,
                     'VSwitchNUMAAffinityFilter']
    limits = {'vswitch_ports_per_node': 0, 'security_rules_per_node': 0}
    huge_pages = 3
    hosts = ('host1', 'host2')

    def strict(self, vcpus=2, memory_mb=1024, **extra_specs):
        return self.flavor_with(base.pinned(
            nfv__vswitch_numa_affinity='strict', hw__mem_page_size='1GB',
            **extra_specs), vcpus, memory_mb)

    def kept(self, host):
        """Amounts of NUMA nodes in Placement: allocated, reserved."""
        uuid = self.provider(host)
        inventories = self.placement.get(
            f'/resource_providers/{uuid}/inventories').body['inventories']
        usages = self.placement.get(
            f'/resource_providers/{uuid}/usages').body['usages']
        return {name: (usages[name], inventory['reserved'])
                for name, inventory in inventories.items()
                if names.is_of_node(name)}

    def pinned(self, host):
        """What Nova has recorded of them."""
        amounts = {}
        for cell in self.topology(host).cells:
            amounts[names.node_cpus(cell.id)] = len(cell.pinned_cpus)
            amounts[names.node_pages(cell.id, GIB)] = sum(
                page.used for page in cell.mempages if page.size_kb == GIB)
        return amounts

    def differing(self):
        """Hosts whose ledger differs, by the audit."""
        self.cloud = database.read(base.CONF)
        return [each.host for each in all_checks.findings(self.cloud)
                if each.kind == values.LEDGER]

    def check(self, *allocated):
        """Compare Placement with the pins.

        :param allocated: of each host: CPUs of node 1 that are allocated
        """
        # What Nova frees it records with the next update.
        self._run_periodics()
        self.publish()
        for host, cpus in zip(self.hosts, allocated):
            kept = self.kept(host)
            self.assertEqual(self.pinned(host), {
                name: sum(amounts) for name, amounts in kept.items()}, host)
            self.assertEqual(cpus, kept[names.node_cpus(1)][0], host)
        self.assertEqual([], self.differing())


class OperationsTest(NodesTestCase):

    def test_moves(self):
        flavor = self.strict()
        server = self.boot(flavor, host='host1')
        self.check(2, 0)
        other = self.boot(self.flavor(vcpus=2), host='host1')
        self.check(2, 0)
        self.cold_migrate(server)
        self.check(2, 2)
        self._revert_resize(server)
        self.check(2, 0)
        self.resize(server, self.strict(vcpus=3))
        self.check(2, 3)
        self._confirm_resize(server)
        self.check(0, 3)
        self.live_migrate(server, host='host1')
        if base.LIVE_MIGRATION_IS_STEERED:
            self.check(3, 0)
        else:
            self.check(0, 0)
        self._delete_server(other)
        self.check(*(3, 0) if base.LIVE_MIGRATION_IS_STEERED else (0, 0))
        self.shelve_and_unshelve(server)
        self.check(*(3, 0) if self.host(server) == 'host1' else (0, 3))
        self._delete_server(server)
        self.check(0, 0)
        self.assertNothingLeft()

    def test_evacuation(self):
        server = self.boot(self.strict(), host='host1')
        self.fail_host('host1')
        self.evacuate(server, start=False)
        self.publish()
        self.assertEqual((2, 0), self.kept('host2')[names.node_cpus(1)])
        # As long as the host is down, Nova keeps what is allocated there.
        self.assertEqual((2, 0), self.kept('host1')[names.node_cpus(1)])

    def test_failed_resize(self):
        """Nova leaves the context of the move, with what it did not get."""
        server = self.boot(self.strict(), host='host1')
        with fixtures.MonkeyPatch(
                'nova.virt.libvirt.driver.LibvirtDriver.'
                'migrate_disk_and_power_off', lambda *args, **kwargs: 1 / 0):
            # The fixtures turn casts into calls.
            self.assertRaises(
                client.OpenStackApiException, self.api.post_server_action,
                server['id'], {'resize': {'flavorRef': self.strict(4)}})
            self.wait_for(server, 'ERROR')
        self.check(2, 0)

    def test_resize_to_floating(self):
        """What it had pinned it keeps until the resize is confirmed."""
        server = self.boot(self.flavor(vcpus=2), host='host1')
        self.resize(server, self.small)
        self.check(0, 0)
        self.assertEqual(2, sum(
            reserved for name, (_held, reserved) in self.kept('host1').items()
            if name.endswith('PCPU')))
        self._confirm_resize(server)
        self.check(0, 0)

    def test_labels_go(self):
        """Nothing can be claimed of nodes then; what is allocated stays."""
        server = self.boot(self.strict(), host='host1')
        self.check(2, 0)
        with fixtures.MonkeyPatch(
                'nfv_sched.ledger.nodes.totals', lambda host: {}):
            self.publish()
        name = names.node_cpus(1)
        self.assertEqual({name, names.node_pages(1, GIB)},
                         self.kept('host1').keys())
        self.assertEqual((2, 4), self.kept('host1')[name])
        self.assertEqual({}, self.kept('host2'))
        self._delete_server(server)
        self.check(0, 0)

    def test_resize_on_the_same_host(self):
        self.flags(allow_resize_to_same_host=True)
        self.fail_host('host2')
        server = self.boot(self.strict(vcpus=1), host='host1')
        self.resize(server, self.strict(vcpus=2))
        self.check(3)
        self._confirm_resize(server)
        self.check(2)

    def test_odd_records(self):
        """They concern no other server."""
        self.boot(self.strict(), host='host1')
        server = self.boot(self.flavor(nfv__numa_node_0='1'), host='host1')
        extra = main_models.InstanceExtra.__table__
        for text in '{', '[]', '{"cells": 1}', '{"cells": [{}]}':
            with main_api.get_context_manager(
                    self.cell_context()).writer.using(
                        self.cell_context()) as session:
                session.execute(extra.update().where(
                    extra.c.instance_uuid == server['id']).values(
                        numa_topology=text))
            self.publish()
            self.assertEqual((4, 0), self.kept('host1')[names.node_cpus(1)])

    def test_several_at_once(self):
        servers = self.boot_many(self.strict(), 4)
        self.check(4, 4)
        reserved = []

        def is_leaving(*args):
            """Nova has deleted the allocation, and not yet the row."""
            self.publish()
            reserved.append(self.kept('host1')[names.node_cpus(1)][1])

        self.useFixture(fixtures.MonkeyPatch(
            'nova.compute.manager.ComputeManager.'
            '_clean_instance_console_tokens', is_leaving))
        for server in servers:
            self._delete_server(server)
        self.assertEqual([0] * 4, reserved)
        self.check(0, 0)

    def test_all_nodes(self):
        """A server that takes each node of the host, and its mapping."""
        self.boot(self.flavor_with({
            'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
            'hw:mem_page_size': '1GB', 'nfv:numa_node.0': '0',
            'nfv:numa_node.1': '1'}, 4, 2048), host='host1')
        self.check(2, 0)
        self.boot(self.flavor(nfv__numa_node_0='1'), host='host1')
        self.check(4, 0)

    def test_servers_from_before(self):
        """What was placed without the ledger is reserved, until it leaves."""
        with fixtures.MonkeyPatch(
                'nfv_sched.ledger.reader.Reading.nodes_left',
                lambda *args: {}):
            server = self.boot(self.strict(), host='host1')
        self.assertEqual(['host1'] * 2, self.differing())  # CPUs and pages
        self.check(0, 0)
        with start.started(self.cloud) as state:
            self.assertFalse([
                name for provider in state.placement.providers.values()
                for name in provider.inventories if names.is_of_node(name)])
        self.assertEqual((0, 2), self.kept('host1')[names.node_cpus(1)])
        self.cold_migrate(server)
        self.check(0, 2)
        self._confirm_resize(server)
        self.check(0, 2)


class RaceTest(NodesTestCase):
    """The scheduler sees the hosts as they were at the beginning."""

    def setUp(self):
        super().setUp()
        update = host_manager.HostState.update
        empty = {host: self.topology(host) for host in self.hosts}

        def outdated(state, *args, **kwargs):
            result = update(state, *args, **kwargs)
            state.numa_topology = copy.deepcopy(empty[state.host])
            return result

        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.host_manager.HostState.update', outdated))
        self.flags(max_attempts=1, group='scheduler')
        self.flavor = self.strict(base.PINNED_CPUS_PER_NODE)
        self.claims = self.useFixture(
            fixtures.FakeLogger('nova.compute.claims'))

    def test_full_by_placement(self):
        for _ in self.hosts:
            self.boot(self.flavor)
        server = self.boot(self.flavor, expect='ERROR')
        self.assertRefused(server, 'nfv:vswitch_numa_affinity=strict')
        self.assertNotIn('Failed to claim', self.claims.output)
        self.check(4, 4)

    def test_refused_by_placement(self):
        """Placement has given the node away since it was read."""
        reads = reader.Reading.nodes_left
        with fixtures.MonkeyPatch(
                'nfv_sched.ledger.reader.Reading.nodes_left',
                lambda *args: dict.fromkeys(reads(*args), 99)):
            for _ in self.hosts:
                self.boot(self.flavor)
            self.boot(self.flavor, expect='ERROR')
        self.assertNotIn('Failed to claim', self.claims.output)
        self.check(4, 4)

    def test_pages(self):
        flavor = self.strict(1)
        for _ in range(2 * self.huge_pages):
            self.boot(flavor)
        server = self.boot(flavor, expect='ERROR')
        self.assertRefused(server, '1 page of 1 GiB')
        self.check(3, 3)
