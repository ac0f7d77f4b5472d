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
from nfv_sched.ops.snapshot import snapshot
from nfv_sched import reasons
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
            self.kinds(self.host('one', 4, 4), self.host('two', 8, 8)))
        # There is no other host to which a server could move.
        self.assertEqual([('add-host', 6, 8, True)],
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

        # Nor is what a host without a switch has.
        apart = self.host('three', 0, 0)
        apart = dataclasses.replace(apart, nodes=tuple([
            dataclasses.replace(each, physnets=frozenset())
            for each in apart.nodes]))
        step, = self.steps(flavors=cloud.flavors, hosts=(*cloud.hosts, apart))
        self.assertEqual(('add-host', 4), (step.kind, step.free))

    def flavor_steps(self, *hosts, flavor, ports=0, limits=None, image=None):
        """What is to be done, and the sentences."""
        options = {'nfv_sched': limits} if limits else {}
        cloud = small_clouds.cloud(*hosts, flavors=(flavor,), **options)
        with start.started(cloud) as state:
            asked = subject.flavor(cloud, state, flavor.name, image=image,
                                   networks=['lan,physnet='] * ports)
            found = explanation.explain(
                state, asked.text, asked.requested, relax_seconds=0)
        return [(str(each.kind), each.resource, each.needed, each.free,
                 sentences.step(each))
                for each in next_steps.find(cloud, asked, found)]

    def paged(self, name, *used):
        """A host with two NUMA nodes of 16 pages, some of which are used."""
        return small_clouds.host(name, *[
            small_clouds.node(number, huge=count)
            for number, count in enumerate(used)])

    def test_huge_pages(self):
        flavor = small_clouds.flavor(
            2, memory=8192, hw__mem_page_size='1GB')
        needed = ('8192 MiB of memory in pages of the requested size are '
                  'needed on one NUMA node')
        self.assertEqual(
            [('defrag', 'pages', 8192, 16384, f'{needed}; 16384 are free, but '
              'not on one; moves that make room, if there are any')],
            self.flavor_steps(self.paged('one', 12, 12),
                              self.paged('two', 12, 12), flavor=flavor))
        self.assertEqual(
            [('add-host', 'pages', 8192, 4096,
              f'Add a host: {needed}, 4096 are free in all')],
            self.flavor_steps(self.paged('one', 15, 15),
                              self.paged('two', 15, 15), flavor=flavor))
        # Pages of another size do not count.
        found = self.flavor_steps(*[
            small_clouds.host(name, *[dataclasses.replace(node, pages=(
                *node.pages, snapshot.Pages(size=2048, total=8192)))
                for node in self.paged(name, 15, 15).nodes])
            for name in ('one', 'two')], flavor=small_clouds.flavor(
                2, memory=8192, hw__mem_page_size='1048576KB'))
        self.assertEqual([('add-host', 'pages', 8192, 4096)],
                         [each[:4] for each in found])
        self.assertEqual(
            [('larger-host', 'pages', 17408, 16384)],
            [each[:4] for each in self.flavor_steps(
                self.paged('one', 0, 0), self.paged('two', 0, 0),
                flavor=small_clouds.flavor(
                    2, memory=17408, hw__mem_page_size='1GB'))])

    def test_pages_of_several_sizes(self):
        """A guest has those of one size."""
        # On each NUMA node 8 GiB are free in small pages, 6 in those of 2 MiB
        # and 4 in those of 1 GiB.
        hosts = [small_clouds.host(name, *[
            dataclasses.replace(node, pages=(
                dataclasses.replace(node.pages[0], used=8192 * 256),
                snapshot.Pages(size=2048, total=8192, used=5120),
                node.pages[1])) for node in self.paged(name, 12, 12).nodes])
            for name in ('one', 'two')]
        for value, image, memory, kind, amount in (
                ('any', None, 10240, 'defrag', 4 * 8192),
                ('any', None, 18432, 'larger-host', 16384),
                ('large', None, 10240, 'defrag', 4 * 6144),
                ('large', '1GB', 10240, 'defrag', 4 * 4096),
                ('small', None, 10240, 'defrag', 4 * 8192)):
            flavor = small_clouds.flavor(
                2, memory=memory, hw__mem_page_size=value)
            steps = self.flavor_steps(
                *hosts, flavor=flavor,
                image=image and {'hw_mem_page_size': image})
            self.assertEqual([(kind, 'pages', memory, amount)],
                             [each[:4] for each in steps], (value, image))

    def floating(self, name, *used, traits=()):
        """A host with two NUMA nodes of 4 shared CPUs, for 16 vCPUs each.

        :param used: shared vCPUs of guests on each NUMA node
        """
        host = small_clouds.host(name, *[
            dataclasses.replace(
                small_clouds.node(number), dedicated=frozenset(), siblings=(),
                shared=frozenset(range(8 * number, 8 * number + 4)),
                shared_used=count) for number, count in enumerate(used)],
            traits=traits)
        root, = host.providers
        return dataclasses.replace(
            host, vcpus=8, vcpus_used=sum(used), providers=(
                dataclasses.replace(root, inventories={
                    'MEMORY_MB': root.inventories['MEMORY_MB'],
                    'VCPU': snapshot.Inventory(
                        total=8, ratio=4.0, max_unit=8,
                        used=sum(used))}),))

    def floating_steps(self, *hosts, vcpus, **specs):
        """Kind, resource and amounts of what is to be done."""
        return [each[:4] for each in self.flavor_steps(
            *hosts, flavor=snapshot.Flavor(
                name='floating', vcpus=vcpus, memory=512, extra_specs={
                    key.replace('__', ':'): value
                    for key, value in specs.items()}))]

    def test_shared_cpus(self):
        for used, vcpus, resource, kind, free in (
                ((0, 0), 6, 'shared_cpus', 'larger-host', 4),
                ((13, 13), 4, 'shared_vcpus', 'defrag', 12)):
            self.assertEqual(
                [(kind, resource, vcpus, free)], self.floating_steps(
                    self.floating('one', *used), self.floating('two', *used),
                    vcpus=vcpus, hw__numa_nodes='1'))

    def test_memory_ratio(self):
        """Each of 4 NUMA nodes may have 48 GiB; 8 are left."""
        hosts = []
        for name in ('one', 'two'):
            host = self.floating(name, 0, 0)
            root, = host.providers
            hosts.append(dataclasses.replace(
                host, memory_ratio=1.5, memory_used=2 * 40960,
                nodes=tuple([dataclasses.replace(node, memory_used=40960)
                             for node in host.nodes]),
                providers=(dataclasses.replace(root, inventories={
                    **root.inventories, 'MEMORY_MB': snapshot.Inventory(
                        total=65536, ratio=1.5, used=2 * 40960)}),)))
        step, = self.flavor_steps(*hosts, flavor=snapshot.Flavor(
            name='floating', vcpus=2, memory=12288,
            extra_specs={'hw:numa_nodes': '1'}))
        self.assertEqual(('defrag', 'memory_ratio', 12288, 4 * 8192), step[:4])

    def test_amounts_of_placement(self):
        for used, vcpus, kind, free in (
                ((14, 15), 6, 'defrag', 6), ((15, 15), 6, 'add-host', 4),
                ((0, 0), 9, 'larger-host', 8)):
            self.assertEqual(
                [(kind, 'VCPU', vcpus, free)], self.floating_steps(
                    self.floating('one', *used), self.floating('two', *used),
                    vcpus=vcpus))

    def test_unknown_to_placement(self):
        """Of a host of which Placement was not read, nothing is free."""
        unread = dataclasses.replace(self.floating('unread', 0, 0),
                                     providers=())
        self.assertEqual([('defrag', 'VCPU', 9, 32)], self.floating_steps(
            self.floating('one', 0, 0), unread, vcpus=9))
        # One has 4, and another lacks only the trait.
        self.assertEqual([('defrag', 'VCPU', 6, 10)], self.floating_steps(
            self.floating('one', 14, 14, traits=('CUSTOM_A',)),
            self.floating('two', 0, 0),
            unread, vcpus=6, trait__CUSTOM_A='required'))

    def test_memory(self):
        flavor = small_clouds.flavor(2, memory=20480)
        hosts = [small_clouds.host(name, *[
            small_clouds.node(number, memory_used=16384)
            for number in range(2)]) for name in ('one', 'two')]
        self.assertEqual(
            [('defrag', 'memory', 20480, 65536)],
            [each[:4] for each in self.flavor_steps(
                *hosts, flavor=dataclasses.replace(flavor, extra_specs={
                    **flavor.extra_specs, 'hw:numa_nodes': '1'}))])
        # Placement refuses it.
        self.assertEqual(
            [('larger-host', 'MEMORY_MB', 102400, 65536)],
            [each[:4] for each in self.flavor_steps(
                *hosts, flavor=small_clouds.flavor(2, memory=102400))])

    def with_devices(self, name, *status):
        return small_clouds.host(name, devices=tuple(
            small_clouds.device(number, 0, status=each)
            for number, each in enumerate(status)))

    def test_devices(self):
        for count, used, kind, free in (
                (1, 2, 'add-host', 0), (2, 1, 'defrag', 2),
                (3, 0, 'larger-host', 2)):
            flavor = small_clouds.flavor(
                2, pci_passthrough__alias=f'nic:{count}')
            status = ['allocated'] * used + ['available'] * (2 - used)
            found = self.flavor_steps(
                self.with_devices('one', *status),
                self.with_devices('two', *status), flavor=flavor)
            self.assertEqual([(kind, 'pci_devices', count, free)],
                             [each[:4] for each in found])

    def test_other_devices(self):
        """Only what Nova would give is free: no vDPA devices, as it is here.

        They are of the same product.
        """
        hosts = []
        for name in ('one', 'two'):
            host = self.with_devices(name, 'allocated', *['available'] * 3)
            first, *others = host.devices
            hosts.append(dataclasses.replace(host, devices=(first, *[
                dataclasses.replace(device, kind='vdpa')
                for device in others])))
        found = self.flavor_steps(*hosts, flavor=small_clouds.flavor(
            2, pci_passthrough__alias='nic:1'))
        self.assertEqual([('add-host', 'pci_devices', 1, 0)],
                         [each[:4] for each in found])

    def test_devices_beside_cpus(self):
        """Each is free, but on other NUMA nodes."""
        flavor = small_clouds.flavor(
            4, pci_passthrough__alias='nic:1', nfv__pci_numa_affinity='strict')
        for status, kind, free, text in (
                ('available', 'defrag', 2, 'on one NUMA node that also has '
                 '4 free dedicated CPUs; 2 are free, but not on one'),
                ('allocated', 'add-host', 0, '0 are free in all')):
            devices = (small_clouds.device(0, 0, status=status),
                       small_clouds.device(1, 1, status='allocated'))
            step, = self.flavor_steps(
                *[small_clouds.host(
                    name, small_clouds.node(0, range(used)),
                    small_clouds.node(1), devices=devices)
                  for name, used in (('one', 6), ('two', 7))], flavor=flavor)
            self.assertEqual((kind, 'pci_devices', 1, free), step[:4])
            self.assertIn(text, step[4])

    def test_as_much_is_free(self):
        """What is free on other NUMA nodes than the rest is not counted."""
        cause = values.CommonCause(
            kind=values.CauseKind.SHORTAGE, hosts=('one',), nearest='one',
            refusal=values.FilterRefusal(
                filter='AFilter', shortage=reasons.Shortage(
                    reasons.Amount(reasons.Resource.PCI_DEVICES, 1, 'VF'), 0,
                    ('with the virtual switch',))))
        self.assertEqual(
            '1 VF is needed on one NUMA node with the virtual switch; as much '
            'is free, but not on one; moves that make room, if there are any',
            sentences.step(values.NextStep(
                kind=values.StepKind.DEFRAG, cause=cause, needed=1)))

    def test_limits(self):
        """A port more than each host has."""
        def steps(ports, limits, *used):
            return [each[:4] for each in self.flavor_steps(*[
                small_clouds.host(f'h{number}', network=(
                    snapshot.HostNetwork(
                        vswitch_ports=count, security_rules=0)))
                for number, count in enumerate(used)],
                ports=ports,
                flavor=small_clouds.flavor(2),
                limits=limits)]

        # Four of them are physical ones.
        limit = {'vswitch_ports_per_node': 16}
        self.assertEqual([('defrag', 'vswitch_ports', 8, 14)],
                         steps(8, limit, 5, 5))
        self.assertEqual([('add-host', 'vswitch_ports', 8, 4)],
                         steps(8, limit, 10, 10))
        # No host may have so many: nothing helps.
        self.assertEqual([], steps(13, limit, 5, 5))

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
        step, = self.steps(self.host('one', 4, 4), self.host('two', 8, 8),
                           options=('--from', 'a b', '--network', 'lan'))
        self.assertEqual(
            ('nfv-sched', 'cloud', 'defrag', '--flavor=pinned', '--from',
             'a b', '--network', 'lan'), step.command)
