# SPDX-License-Identifier: Apache-2.0

import dataclasses
from unittest import mock

from nfv_sched.ops.answers.plans import failover
from nfv_sched.ops.answers.plans import rendering
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model import movable
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.answers.plans import running

_SERVER = snapshot.Server(
    uuid='', name='', host='one',
    flavor=snapshot.Flavor(name='f', vcpus=1, memory=1))


class FailoverTest(running.RunningTestCase):

    def check(self, *servers, hosts=('one',), together=False, steps='',
              head=running.HEAD, options=None, **changes):
        """Reasons of those that are stranded, by name.

        :param changes: name of a server -> fields that are otherwise
        """
        cloud = self.running(*servers, steps=steps, head=head, **changes)
        cloud = dataclasses.replace(
            cloud, options={**cloud.options, **(options or {})})
        self.analyzed = cloud
        tried = failover.FailoverAnalysis.tried
        with mock.patch.object(failover.FailoverAnalysis, 'tried',
                               autospec=True,
                               side_effect=tried) as tried:
            self.losses = failover.check(
                cloud, hosts, together=together).hosts
        self.simulated = [
            len(call.args[1]) for call in tried.call_args_list]
        return {each.server: running.causes(each) for loss in self.losses
                for each in loss.stranded}

    def test_changed_alias(self):
        """Filters ask for what it meant, the claim for what it means now."""
        servers = ('a vf one', 'b vf two', 'c p1 two')
        self.assertEqual({}, self.check(*servers))
        self.assertEqual([0], self.simulated)
        for name in ('nic', 'other'):
            found = self.check(*servers, options={'pci': {'alias': [
                f'{{"name": "{name}", "vendor_id": "8086", '
                '"product_id": "ffff"}']}})
            self.assertEqual(['a'], list(found))
            self.assertIs(movable.ObstacleKind.REFUSED, found['a'].kind)

    def test_order_of_the_api(self):
        """The latest first; those of one time by UUID."""
        servers = [
            dataclasses.replace(_SERVER, uuid=uuid, created=created)
            for uuid, created in (
                ('5', '2026-01-01T00:00:01Z'), ('3', '2026-01-01T00:00:01Z'),
                ('1', '2026-01-01T00:00:00Z'), ('4', '2026-01-02T00:00:00Z'),
                ('2', '2026-01-01T00:00:01.000007Z'), ('6', ''), ('0', ''))]
        self.assertEqual('4235106', ''.join(
            server.uuid for server in failover.listed(servers)))

    def test_same_age_on_several_hosts(self):
        """The last of all is first, whichever host is named first."""
        for hosts in (('one', 'two'), ('two', 'one')):
            self.assertEqual(['a'], list(self.check(
                'a p4 one', 'b p4 two', 'c p4 three', hosts=hosts,
                together=True)))

    def test_pairs(self):
        """For each host the worst of those with which it is lost."""
        cloud = self.running('a p4 one', 'b p4 two', 'c p4 three', 'd p1 two')
        found = failover.check(
            cloud, ['one', 'two', 'three'], at_once=2)
        self.assertEqual(
            {'one': (('two',), ['a']), 'two': (('one',), ['b']),
             'three': (('one',), ['c'])},
            {loss.host: (loss.lost_with, [each.server for each
                                          in loss.stranded])
             for loss in found.hosts})
        self.assertEqual(
            'If any 2 of 3 hosts are lost at once: 3 servers of 3 hosts find '
            'no place, or more.', rendering.failover_text(found)[0].text)
        self.assertIn('one with two ', tables.render([
            rendering.failover_table(found)]))

    def test_refused(self):
        """Those that ask for the same are tried once."""
        with mock.patch('nfv_sched.ops.simulator.request.of_move',
                        side_effect=servers.Refused('no')) as of_move:
            found = self.check('a p1 one', 'b p1 one', 'c p2 one')
        self.assertEqual(
            dict.fromkeys('abc', movable.obstacle(
                movable.ObstacleKind.REFUSED, 'no')), found)
        self.assertEqual(2, of_move.call_count)

    def test_shelved(self):
        self.assertEqual({}, self.check(
            'a p1 one', 'b p1 one', a={'state': 'shelved'},
            steps='- {shelve: b}'))
        self.assertEqual(0, self.losses[0].servers)

    def test_down_already(self):
        servers = ('a p4 one', 'b p4 two', 'c p4 two')
        self.assertEqual({}, self.check(*servers, steps='- {host_down: one}'))
        self.assertEqual(1, self.losses[0].evacuable)
        self.assertEqual(
            {}, self.check(*servers, hosts=('two',),
                           steps='- {host_down: one}'))
        self.assertEqual(1, len(self.check(
            *servers, 'd p2 three', hosts=('two',),
            steps='- {host_down: one}')))

    def test_groups_without_filter(self):
        """Nobody asks whether their policies are kept."""
        self.assertEqual({}, self.check(
            'a p1 one together', 'b p1 two apart', 'c p1 three apart',
            'd p1 one apart', options={'filter_scheduler': {
                'enabled_filters': ['ComputeFilter', 'NUMATopologyFilter',
                                    'PciPassthroughFilter']}}))

    def test_claims_may_fail(self):
        """Without a filter of NUMA nodes the simulator is asked."""
        servers = ('a p2 one', 'b p3 two', 'c p3 two', 'd fat3 three',
                   'e p1 three')
        # The host with more memory, two, has no two free CPUs on one node.
        for multiplier, obstacles in (
                (-100.0, {}), (100.0, {'a': movable.ObstacleKind.REFUSED})):
            found = self.check(*servers, options={'filter_scheduler': {
                'ram_weight_multiplier': multiplier, 'enabled_filters': [
                    'ComputeFilter', 'PciPassthroughFilter']}})
            self.assertEqual([1], self.simulated)
            self.assertEqual(obstacles, {
                name: obstacle.kind for name, obstacle in found.items()})

    def test_devices(self):
        """The simulator is as before, also after devices were given."""
        self.check('a vf one', 'c p4 one', 'b p3 one', 'd vf two',
                   'f p4 two', 'e p3 two',
                   a={'created': '2026-03-01'}, b={'created': '2026-02-01'})
        self.assertTrue(self.simulated[0])
        with start.started(self.analyzed) as state:
            checking = failover.FailoverAnalysis(self.analyzed, state)
            first, again = [list(checking.losses(['one'])) for _ in 'ab']
        self.assertEqual(self.losses, tuple(first))
        self.assertEqual(first, again)
