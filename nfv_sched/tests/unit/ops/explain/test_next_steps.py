# SPDX-License-Identifier: Apache-2.0

import dataclasses
import subprocess
import sys

from openstackclient.compute.v2 import service

from nfv_sched.ops.explain import explanation
from nfv_sched.ops.explain import next_steps
from nfv_sched.ops.explain import sentences
from nfv_sched.ops.explain import values
from nfv_sched.ops.requests import subject
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.explain import test_explanation
from nfv_sched.tests.unit.ops import small_clouds


class NextStepsTest(test_explanation.ExplanationTestCase):
    """Only what is known to apply."""

    def steps(self, *hosts, vcpus=6, options=(), seconds=0, count=1,
              **changes):
        cloud = dataclasses.replace(small_clouds.cloud(
            *hosts, flavors=(small_clouds.flavor(vcpus),)), **changes)
        with start.started(cloud) as state:
            asked = subject.flavor(cloud, state, 'pinned', count=count)
            found = explanation.explain(
                state, asked.text, asked.requested, relax_seconds=seconds)
        return list(next_steps.find(cloud, asked, found, options))

    def kinds(self, *hosts, **fields):
        return [(str(each.kind), each.needed, each.free, each.on_node)
                for each in self.steps(*hosts, **fields)]

    def host(self, name, *used):
        """A host with two NUMA nodes of 8 CPUs, some of which are used."""
        return small_clouds.host(name, *[
            small_clouds.node(number, range(count))
            for number, count in enumerate(used)])

    def test_fragmented(self):
        self.assertEqual(
            [('defrag', 6, 8, True)],
            self.kinds(self.host('one', 4, 4)))
        # Free CPUs of the whole host, as Placement counts them.
        self.assertEqual(
            [('defrag', 6, 6, False)],
            self.kinds(self.host('one', 7, 7), self.host('two', 6, 6)))

    def test_at_the_switch(self):
        """Free CPUs elsewhere are of no use."""
        for used, kind, free in (((5, 0, 5, 0), 'defrag', 6),
                                 ((6, 0, 6, 0), 'add-host', 4)):
            first, second = self.host('one', *used[:2]), self.host(
                'two', *used[2:])
            cloud = small_clouds.cloud(first, second, flavors=(
                small_clouds.flavor(
                    6, nfv__vswitch_numa_affinity='strict'),))
            step, = self.steps(flavors=cloud.flavors, hosts=cloud.hosts)
            self.assertEqual((kind, 6, free, True), (
                step.kind, step.needed, step.free, step.on_node))
            self.assertIn('on one NUMA node with the virtual switch',
                          sentences.step(step))

    def test_full(self):
        self.assertEqual([('add-host', 6, 4, False)],
                         self.kinds(self.host('one', 6, 6)))
        # CPUs of a disabled host do not count.
        self.assertEqual([('add-host', 6, 4, False)], self.kinds(
            self.host('one', 6, 6), dataclasses.replace(
                self.host('two', 0, 0), up=False)))

    def test_too_small(self):
        self.assertEqual([('larger-host', 10, 8, True)],
                         self.kinds(self.host('one', 0, 0), vcpus=10))
        self.assertEqual([('larger-host', 20, 16, False)],
                         self.kinds(self.host('one', 0, 0), vcpus=20))

    def test_fits(self):
        self.assertEqual([], self.kinds(self.host('one', 4, 2)))

    def test_not_the_flavor_of_the_cloud(self):
        """Plans are made for flavors of the cloud."""
        cloud = small_clouds.cloud(self.host('one', 4, 4), flavors=(
            small_clouds.flavor(6),))
        with start.started(cloud) as state:
            asked = subject.flavor(cloud, state, 'pinned')
            found = explanation.explain(
                state, asked.text, asked.requested, relax_seconds=0)
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
        steps = self.steps(odd, new, down, full, seconds=60)
        by_kind = {each.kind: each for each in steps}
        self.assertEqual(2, len(steps))
        words = by_kind[values.StepKind.ENABLE].command
        self.assertEqual(('openstack', 'compute', 'service', 'set'), words[:4])
        args = service.SetService(None, None).get_parser('set').parse_args(
            words[4:])
        self.assertEqual(('-odd', 'nova-compute', True),
                         (args.host, args.service, args.enable))
        words = by_kind[values.StepKind.MAP].command
        self.assertEqual('nova-manage', words[0])
        # In a process of its own: nova-manage patches the standard library.
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c',
             'from nova.cmd import manage; manage.main()', *words[1:],
             '--help'], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn(f'{" ".join(words[1:])} [-h]', done.stdout)

    def test_options(self):
        """The commands are for the same cloud and the same ports."""
        step, = self.steps(self.host('one', 4, 4),
                           options=('--from', 'a b', '--network', 'lan'))
        self.assertEqual(
            ('nfv-sched', 'cloud', 'defrag', '--flavor=pinned', '--from',
             'a b', '--network', 'lan'), step.command)
