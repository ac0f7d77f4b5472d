# SPDX-License-Identifier: Apache-2.0
"""No strict server fails late on a node that its own kind has over-claimed.

Random interleavings of requests, claims on compute nodes, moves and deletions
with the steps of two publishers, as in :mod:`test_sequences`, of which the
model of Placement and the steps are.  Strict servers take node 1 of a host,
in Placement first; others take what is free of it when they land.
``NFV_SCHED_NODE_SEQUENCES`` says how many are tried.
"""

import os

import fixtures
from nfv_sched.ledger import nodes
from nfv_sched.limits import names
from nfv_sched.tests import base
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.limits import snapshots
from nfv_sched.tests.unit.limits import test_sequences

SEQUENCES = int(os.environ.get('NFV_SCHED_NODE_SEQUENCES', '100'))
NODE = names.node_cpus(1)
HOSTS = test_sequences.HOSTS


class Server(test_sequences.Guest):
    """A server with CPUs of node 1.

    :ivar pins: host -> CPUs that it has pinned there
    :ivar known: as of when what was published was known when it was let in
    """

    def __init__(self, host, cpus, strict):
        super().__init__(host)
        self.cpus, self.strict, self.pins = cpus, strict, {}
        self.known = 0

    def busy(self):
        return self.host not in self.pins


class World(test_sequences.World):
    EVENTS = ('create',) * 4 + ('land',) * 6 + ('confirm',) * 2 + (
        'move', 'revert', 'delete', 'delete')

    def __init__(self, rng):
        super().__init__(rng)
        self.cpus = rng.randint(3, 8)
        self.limits = {NODE: self.cpus}
        self.dhcp = {}
        self.grown = {(host, NODE): [] for host in HOSTS}
        self.uncovered = dict.fromkeys(self.grown, 0)
        self.known = self.late = None  # see SequencesTest

    def nodes(self):
        stored = clouds.host_topology(cpus=self.cpus)._to_json()
        return [node._replace(numa_topology=stored)
                for node in super().nodes()[0]], []

    def read(self, pause=lambda: None):
        pause()
        return snapshots.snapshot([], {})

    def pinned_cells(self, servers):
        """See ``records.pinned_cells``."""
        cells = {}
        for name, server in self.guests.items():
            for host, cpus in server.pins.items():
                if servers is None or name in servers:
                    cells.setdefault(host, {})[name] = [{
                        'id': 1, 'memory': 64, 'pagesize': None,
                        'cpu_pinning_raw': dict(enumerate(range(cpus)))}]
        return cells, {}

    def uncovered_on(self, host, name):
        return sum(max(0, server.pins.get(host, 0) - sum(
            self.held(consumer, host, name)
            for consumer in (uuid, server.migration) if consumer))
            for uuid, server in self.guests.items())

    def free(self, host):
        return self.cpus - sum(server.pins.get(host, 0)
                               for server in self.guests.values())

    def claim(self, consumer, host, server):
        """Claim in Placement; only strict servers take the node there."""
        uuid = names.provider_uuid(f'{host}-node')
        provider = self.placement.providers.get(uuid)
        allocations = {f'{host}-node': {'resources': {'VCPU': 1}}}
        if server.strict and provider and NODE in provider.inventories:
            allocations[uuid] = {'resources': {NODE: server.cpus}}
        existing = self.placement.consumers.get(consumer)
        response = self.placement.claim(consumer, {
            'allocations': allocations, 'project_id': 'p', 'user_id': 'u',
            'consumer_generation': existing and existing.generation})
        self.seen[f'claim {response.status_code}'] += 1
        server.known = self.known(host)
        return response.status_code == 204

    def create(self):
        name = f'vm{next(self.numbers)}'
        server = Server(self.rng.choice(HOSTS), self.rng.randint(1, 3),
                        self.rng.random() < 0.6)
        if self.claim(name, server.host, server):
            self.guests[name] = server

    def land(self):
        """A server is claimed on its host, or fails late."""
        if (name := self._guest(lambda server: server.busy())) is None:
            return
        server = self.guests[name]
        if self.free(server.host) >= server.cpus:
            server.pins[server.host] = server.cpus
            server.built = True
            return
        if server.strict and self.held(name, server.host, NODE):
            self.seen['late'] += 1
            self.late(server)
        del self.placement.consumers[name]
        if server.migration:
            self.placement.move(server.migration, name)
            server.host, server.source, server.migration = (
                server.source, None, None)
        else:
            del self.guests[name]

    def move(self):
        if (name := self._idle_guest()) is None:
            return
        server, migration = self.guests[name], f'move{next(self.numbers)}'
        host, = {*HOSTS} - {server.host}
        self.placement.move(name, migration)
        self.migrations[migration] = name
        if not self.claim(name, host, server):
            self.placement.move(migration, name)
            return
        self.seen['moves'] += 1
        server.source, server.host, server.migration = (
            server.host, host, migration)

    def confirm(self):
        name = self._guest(lambda server: (
            server.migration and not server.busy()))
        if name is not None:
            server = self.guests[name]
            del server.pins[server.source]
            self.note()
            del self.placement.consumers[server.migration]
            server.source = server.migration = None

    def revert(self):
        name = self._guest(lambda server: server.migration)
        if name is not None:
            self.guests[name].pins.pop(self.guests[name].host, None)
            super().revert()

    def delete(self):
        name = self._guest(lambda server: not server.migration)
        if name is not None:
            # Nova deletes the row first and the allocation last.
            del self.guests[name]
            self.note()
            self.placement.consumers.pop(name, None)

    def settle(self):
        while self._guest(lambda server: server.migration or server.busy()):
            self.land()
            self.note()
            self.confirm()
            self.note()


class SequencesTest(test_sequences.SequencesTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.nova.records.pinned_cells', self.pinned_cells))

    def pinned_cells(self, hosts, servers=None):
        self.sequence.acting.pause()
        return self.sequence.world.pinned_cells(servers)

    def known(self, host):
        return max(self.sequence.written[host], self.sequence.confirmed[host])

    def late(self, server):
        """It was let in, so others must have landed that were not known."""
        world = self.sequence.world
        self.assertLessEqual(
            server.cpus - world.free(server.host), sum(
                amount for moment, amount in world.grown[server.host, NODE]
                if moment > server.known))

    def make_run(self, seed):
        run = test_sequences.Run(self, seed, world=World)
        run.world.late, run.world.known = self.late, self.known
        return run

    def turn(self, stepper):
        self.sequence.step(stepper)

    def check_end(self):
        world = self.sequence.world
        for host in HOSTS:
            inventory = self.sequence.inventory(host, NODE)
            self.assertEqual(world.cpus, inventory['total'])
            self.assertEqual(
                sum(server.pins.get(host, 0)
                    for server in world.guests.values()),
                inventory['reserved'] + world.placement.used(
                    names.provider_uuid(f'{host}-node'), NODE), host)

    def test_sequences(self):
        self.try_all(range(SEQUENCES), 'claim 204', 'claim 409', 'moves',
                     'reverts', 'late', 'written')


class NodesTest(base.TestCase):

    def test_totals(self):
        host, one, unlabelled = [
            clouds.host_topology(pages=9) for _ in range(3)]
        host.cells[1].mempages[1].reserved = 1
        self.assertEqual({
            names.node_cpus(0): 4, names.node_pages(0, 2048): 9,
            NODE: 4, names.node_pages(1, 2048): 8}, nodes.totals(host))
        del one.cells[0]
        for cell in unlabelled.cells:
            cell.network_metadata.physnets = set()
        for none in None, one, unlabelled, clouds.host_topology(cpus=0):
            self.assertEqual({}, nodes.totals(none))

    def test_isolated_siblings(self):
        host = clouds.host_topology(pages=9)
        host.cells[1].siblings = [{4, 5}, {6, 7}]
        stored = {'id': 1, 'memory': 8, 'pagesize': 2048,
                  'cpu_pinning_raw': {'0': 4}, 'cpuset_reserved': [6],
                  'cpu_thread_policy': 'isolate'}
        for expected in 4, 2:
            self.assertEqual(
                {NODE: expected, names.node_pages(1, 2048): 4},
                nodes.pinned(host, nodes.totals(host), [stored]))
            stored['cpu_thread_policy'] = 'prefer'
