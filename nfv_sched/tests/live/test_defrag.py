# SPDX-License-Identifier: Apache-2.0
"""A plan that makes room, carried out on a cloud of real processes."""

import collections
import signal

from nfv_sched.ops.cloud import file
from nfv_sched.tests.live import base
from nfv_sched.tests.live import test_plans


class DefragTest(test_plans.PlanTestCase):

    def fill(self, flavor):
        """Boot guests until no more fit."""
        row, = self.document(
            'capacity', 'list', '--flavor', flavor.name)['capacities']
        for server in self.request_many(flavor, row['fits']):
            self.assertEqual('ACTIVE', self.settled(server).status)

    def by_node(self):
        """(host, number of a NUMA node) -> UUIDs of the guests there."""
        found = collections.defaultdict(list)
        for server in file.load(self.save()[0]).servers:
            for node in server.nodes or ():
                found[server.host, node.host_node].append(server.uuid)
        return found

    def test_carried_out(self):
        small = self.flavor(2, **base.pinned())
        large = self.flavor(6, **base.pinned())
        self.fill(small)
        self.boot_refused(large)
        here = self.by_node()
        # One guest is in the way here; there is room for it there.
        source = next(host for (host, _node), guests in here.items()
                      if len(guests) == 3)
        guests = next(guests for (host, _node), guests in here.items()
                      if host == source and len(guests) == 3)
        there = next(guests for (host, _node), guests in here.items()
                     if host != source)
        for uuid in (*guests[1:], there[0]):
            self.delete(self.admin.compute.get_server(uuid))
        self.boot_refused(large)

        plan = self.document('cloud', 'defrag', '--flavor', large.name)
        self.assertEqual((0, 1, True), (
            plan['fits_before'], plan['fits_after'], plan['exact']))
        move, = plan['moves']
        self.assertEqual(source, move['source'])
        # Killed, it leaves the move to Nova, and its end to the next run.
        path = self.directory / 'plan.json'
        self.assertEqual(-signal.SIGKILL, self.interrupt(
            signal.SIGKILL, 'cloud', 'defrag', '--flavor', large.name,
            '--save', str(path), '--run', '--yes',
            journal=self.directory / 'plan.json.journal'))
        self.assertIn(': goes on\n', self.go_on(path))
        self.assertEqual(move['destination'], self.admin.compute.get_server(
            move['server_id']).compute_host)
        self.assertEqual(source, self.boot(large).compute_host)
