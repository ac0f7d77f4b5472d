# SPDX-License-Identifier: Apache-2.0

import dataclasses
import subprocess
import sys

import fixtures
from openstackclient.compute.v2 import service

from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.answers.explain import next_steps
from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.answers.plans import running
from nfv_sched.tests.unit.ops import small_clouds

_GROUP = '4f1d3f3c-5f0b-5d0a-9f57-0f6f1f1b7a11'


class NextStepsTest(running.RunningTestCase):
    """Only what helps; tests/equivalence carries steps out."""

    def steps(self, cloud, name='pinned', seconds=0, options=(), **asked):
        with start.started(cloud) as state:
            asked = subject.flavor(cloud, state, name, **asked)
            found = explanation.explain(
                state, asked, relax_seconds=seconds)
        return list(next_steps.find(cloud, asked, found, options))

    def kinds(self, *hosts, vcpus=6, image=None, count=1, networks=(),
              limits=None, **specs):
        return [(each.kind, *each.like) for each in self.steps(
            small_clouds.cloud(
                *hosts, flavors=(small_clouds.flavor(vcpus, **specs),),
                **({'nfv_sched': limits} if limits else {})),
            image=image, count=count, networks=networks)]

    def host(self, name, *used):
        """A host with two NUMA nodes of 8 CPUs, some of which are used."""
        return small_clouds.host(name, *[
            small_clouds.node(number, range(count))
            for number, count in enumerate(used)])

    def test_moves(self):
        """Half of a NUMA node is free on each host."""
        cloud = self.running(*[
            f'{host}{number} p2 {host}' for host in ('one', 'two', 'three')
            for number in range(3)])
        step, servers = self.steps(cloud, 'p4', options=('--from', 'a b'))
        self.assertEqual(
            ('defrag', 1, ('nfv-sched', 'cloud', 'defrag', '--flavor=p4',
                           '--from', 'a b')),
            (step.kind, step.moves, step.command))
        self.assertEqual('servers', servers.kind)
        # No other host helps a server that must be beside others.
        self.assertEqual(['servers'], [each.kind for each in self.steps(
            self.running('a p4 one together', 'b p4 one together'), 'p4',
            group='together')])

    def test_seconds(self):
        """The search for moves takes no longer than the others."""
        plan, seen = defrag.plan, []
        self.useFixture(fixtures.MonkeyPatch(
            'nfv_sched.ops.answers.plans.defrag.plan',
            lambda *args, seconds, **more: seen.append(seconds) or plan(
                *args, seconds=seconds, **more)))
        self.steps(self.running(*[
            f'{host}{number} p2 {host}' for host in ('one', 'two', 'three')
            for number in range(3)]), 'p4')
        self.assertEqual([next_steps.SECONDS], seen)

    def test_servers_that_stay(self):
        """Their number shows that room is there, and it cannot be joined."""
        cloud = self.running(*[f'{host}{number} p3 {host}'
                               for host in ('one', 'two', 'three')
                               for number in range(2)])
        self.assertEqual(
            ['add-host', 'servers'],
            [each.kind for each in self.steps(cloud, 'p2')])

    def test_add_host(self):
        self.assertEqual([('add-host', 'one')],
                         self.kinds(self.host('one', 6, 6)))
        # One like a host that is down may do.
        small = small_clouds.host('one', small_clouds.node(0))
        self.assertEqual([('add-host', 'two')], self.kinds(
            small, dataclasses.replace(self.host('two', 0, 0), up=False),
            vcpus=10, hw__numa_nodes='2'))
        self.assertEqual(
            [('add-host', 'one', 'two')], self.kinds(
                self.host('one', 8, 8), self.host('two', 8, 8), vcpus=8,
                count=3))

    def test_larger_host(self):
        for vcpus, lacks in ((10, 1), (20, 2)):
            step, = self.steps(small_clouds.cloud(
                self.host('one', 0, 0), flavors=(small_clouds.flavor(vcpus),)))
            self.assertEqual(('larger-host', ('one',), lacks),
                             (step.kind, step.like, len(step.lacks)))
        uneven = small_clouds.host('uneven', small_clouds.node(0, cpus=12),
                                   dataclasses.replace(
                                       small_clouds.node(1, cpus=2), siblings=(
                                           frozenset({2, 3}),)))
        self.assertEqual(
            [('larger-host', 'uneven')],
            self.kinds(uneven, vcpus=8, hw__numa_nodes='2'))

    def test_larger_hosts_of_a_group(self):
        """As many as servers that must be apart need."""
        cloud = small_clouds.cloud(
            self.host('one', 0, 0), flavors=(small_clouds.flavor(20),))
        for policy, rules, hosts in (
                ('anti-affinity', {}, 3), ('soft-anti-affinity', {}, 1),
                ('anti-affinity', {'max_server_per_host': '\u00b2'}, 3),
                ('anti-affinity', {'max_server_per_host': '2'}, 2)):
            step, = self.steps(dataclasses.replace(cloud, groups=(
                snapshot.Group(uuid=_GROUP, name='g', policy=policy,
                               rules=rules),)), count=3, group='g')
            self.assertEqual(('larger-host', ('one',) * hosts),
                             (step.kind, step.like))

    def test_more_devices(self):
        """More come to the NUMA nodes where there are such."""
        nodes = (small_clouds.node(0),
                 small_clouds.near(small_clouds.node(1), 'data'))
        for places, helps in (((0,), False), ((1,), True), ((0, 1), True)):
            host = small_clouds.host('one', *nodes, devices=tuple([
                small_clouds.device(number, place)
                for number, place in enumerate(places)]))
            self.assertEqual(
                [('larger-host', 'one')] if helps else [], self.kinds(
                    host, networks=['data,physnet=data'],
                    pci_passthrough__alias='nic:2'), places)

    def test_no_host_helps(self):
        """More of it would not help, or there is none of it."""
        for specs in ({'hw__mem_page_size': '1GB', 'memory': 2560},
                      {'hw__mem_page_size': '16MB', 'memory': 2048},
                      {'hw__cpu_thread_policy': 'isolate'},
                      {'pci_passthrough__alias': 'nic:1'},
                      {'trait__CUSTOM_A': 'required'},
                      {'hw__numa_nodes': '3'},
                      {'vcpus': 2, 'networks': ['lan,physnet='] * 13,
                       'limits': {'vswitch_ports_per_node': 16}}):
            self.assertEqual([], self.kinds(self.host('one', 0, 0), **specs),
                             specs)

    def test_not_the_flavor_of_the_cloud(self):
        """Plans are made for flavors of the cloud."""
        cloud = small_clouds.cloud(self.host('one', 4, 4), flavors=(
            small_clouds.flavor(6),))
        with start.started(cloud) as state:
            asked = subject.flavor(cloud, state, 'pinned')
            found = explanation.explain(
                state, asked, relax_seconds=0)
        for flavors in ((), (small_clouds.flavor(5),)):
            self.assertEqual([], list(next_steps.find(
                dataclasses.replace(cloud, flavors=flavors), asked, found)))
        self.assertEqual([], list(next_steps.find(
            cloud, dataclasses.replace(asked, present='one'), found)))

    def test_hosts(self):
        """Hosts that would take it: each command parses."""
        odd = dataclasses.replace(self.host('-odd', 0, 0), enabled=False)
        new = dataclasses.replace(self.host('new', 0, 0), mapped=False)
        down = dataclasses.replace(self.host('down', 0, 0), enabled=False,
                                   up=False)
        full = dataclasses.replace(self.host('full', 6, 6), enabled=False)
        steps = self.steps(small_clouds.cloud(
            odd, new, down, full, flavors=(small_clouds.flavor(6),)),
            seconds=60)
        by_kind = {each.kind: each for each in steps}
        self.assertEqual({'enable', 'map', 'add-host'},
                         by_kind.keys())
        words = by_kind['enable'].command
        self.assertEqual(('openstack', 'compute', 'service', 'set'), words[:4])
        args = service.SetService(None, None).get_parser('set').parse_args(
            words[4:])
        self.assertEqual(('-odd', 'nova-compute', True),
                         (args.host, args.service, args.enable))
        words = by_kind['map'].command
        self.assertEqual('nova-manage', words[0])
        # In a process of its own: nova-manage patches the standard library.
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c',
             'from nova.cmd import manage; manage.main()', *words[1:],
             '--help'], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn(f'{" ".join(words[1:])} [-h]', done.stdout)
