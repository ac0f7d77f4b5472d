# SPDX-License-Identifier: Apache-2.0

import dataclasses

from nfv_sched.ops.answers.capacity import smallest_move
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops import small_clouds


class TestDeparture(running.RunningTestCase):

    def smallest(self, cloud, name, **kwargs):
        flavor = next(each for each in cloud.flavors if each.name == name)
        new = capacity.NewServers(**kwargs)
        found, = capacity.capacities(cloud, [flavor], new)
        fits = {host: each.fits for host, each in found.hosts.items()}
        leaving = dict(smallest_move.find(
            cloud, flavor, new, hosts=fits))
        return fits, {host: server.name for host, server in leaving.items()}

    def test_one_more_fits_without_it(self):
        """And without none of the smaller ones."""
        for wanted, flavor, *boots in (
                # A node of four must be empty: two small ones are on the
                # other.
                ('three', 'p4', 'three p3 one', 'two p2 one', 'deux p2 one'),
                (None, 'p4', 'a p2 one', 'b p2 one', 'c p2 one', 'd p2 one'),
                ('small', 'p4', 'small p1 one'),
                # Only next to the switch does room help.
                ('near', 'strict', 'near strict one', 'too strict one',
                 'far p1 one'),
                ('device', 'vf', 'plain p1 one', 'device vf one')):
            fits, leaving = self.smallest(self.running(*boots), flavor)
            self.assertEqual(wanted, leaving.get('one'), boots)
            for name in [boot.split()[0] for boot in boots]:
                after = self.running(*boots, steps=f'- delete: {name}')
                if wanted in (None, name):
                    self.assertEqual(
                        wanted == name,
                        self.smallest(after, flavor)[0]['one'] > fits['one'])

    def test_the_smaller_of_two_that_help(self):
        """By vCPUs, then by memory, then by name."""
        for wanted, *boots in (
                ('z', 'a p4 one', 'z fat3 one'),
                ('z', 'a fat3 one', 'z p3 one'),
                ('a', 'z p3 one', 'a p3 one')):
            self.assertEqual({'one': wanted}, self.smallest(
                self.running(*boots), 'p4')[1], boots)

    def test_ports(self):
        """One that has as many ports as new guests have makes room."""
        server = snapshot.Server(
            uuid='x', name='x', host='one', cell='cell1', state='active',
            flavor=small_clouds.flavor(1),
            ports=(snapshot.Port(id='p', rules=0),))
        cloud = small_clouds.limited(
            5, servers=(server,), flavors=(small_clouds.flavor(2),))
        self.assertEqual(({'one': 2}, {'one': 'x'}),
                         self.smallest(cloud, 'pinned'))
        self.assertEqual(({'one': 1}, {}),
                         self.smallest(cloud, 'pinned', ports=2))

    def test_servers_that_nova_is_busy_with(self):
        cloud = self.running('small p1 one')
        busy = dataclasses.replace(cloud, servers=tuple([
            dataclasses.replace(each, task='migrating')
            for each in cloud.servers]))
        self.assertEqual({'one': 'small'}, self.smallest(cloud, 'p4')[1])
        self.assertEqual({}, self.smallest(busy, 'p4')[1])

    def test_servers_whose_request_is_not_known(self):
        cloud = self.running('odd p3 one', 'sound p4 one')
        odd, sound = sorted(cloud.servers, key=lambda each: each.name)
        self.assertEqual({'one': 'odd'}, self.smallest(cloud, 'p4')[1])
        self.assertEqual({'one': 'sound'}, self.smallest(dataclasses.replace(
            cloud, servers=(dataclasses.replace(
                odd, image={'hw_cpu_policy': 'bogus'}), sound)), 'p4')[1])
