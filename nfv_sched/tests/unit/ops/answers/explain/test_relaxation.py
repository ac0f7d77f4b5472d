# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools

import fixtures

from nfv_sched.ops.answers.explain import relaxation
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import request
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base as tests_base
from nfv_sched.tests.unit.ops.answers.explain import clouds
from nfv_sched.tests.unit.ops.answers.explain import test_explanation


def asked(vcpus=8, memory=4096, **specs):
    """A request; extra specs with ``__`` for a colon."""
    return request.BootRequest(flavor=snapshot.Flavor(
        name='f', vcpus=vcpus, memory=memory, extra_specs={
            name.replace('__', ':'): value
            for name, value in specs.items()}))


class SearchesTest(tests_base.TimedTestCase):

    def texts(self, wanted):
        return [[change.text for change in search]
                for search in relaxation.searches(wanted)]

    def test_vcpus(self):
        """Half of them at least, and as the topology allows."""
        for wanted, vcpus in (
                (asked(3), [2]), (asked(1), []), (asked(), range(4, 8)),
                (asked(hw__numa_nodes='2'), [4, 6]),
                (asked(4, hw__cpu_thread_policy='require'), [2]),
                (asked(400), range(200, 400)),
                (asked(hw__cpu_threads='2'), [4, 6]),
                (asked(hw__cpu_sockets='1', hw__cpu_cores='4',
                       hw__cpu_threads='2'), []),
                (asked(hw__cpu_max_sockets='1', hw__cpu_max_cores='4',
                       hw__cpu_max_threads='2'), [4, 6]),
                (asked(hw__cpu_threads='odd'), [4, 5, 6, 7]),
                (asked(hw__cpu_threads='9' * 5000), [4, 5, 6, 7]),
                (dataclasses.replace(
                    asked(), image={'hw_cpu_threads': '2'}), [4, 6])):
            self.assertEqual([f'{count} vCPUs' for count in vcpus],
                             self.texts(wanted)[0])
        # Not each number, of which a file may ask for any.
        self.assertLess(len(self.texts(asked(65535))[0]), 512)

    def test_devices(self):
        self.assertEqual(
            [['the PCI devices nic:1', 'the PCI devices nic:2']],
            self.texts(asked(1, 64, pci_passthrough__alias='gpu:1, nic:3'))[
                2:])
        *_others, (change,) = relaxation.searches(asked(
            pci_passthrough__alias='gpu:1,nic:2'))
        self.assertEqual('gpu:1,nic:1', change.requested.flavor.extra_specs[
            'pci_passthrough:alias'])

    def test_ports(self):
        data, mgmt = (snapshot.Network(id=name, name=name)
                      for name in ('data', 'mgmt'))
        wanted = dataclasses.replace(asked(), ports=(
            (data, ()), (mgmt, ()), (data, ('web',)), (data, ())))
        *_others, search = relaxation.searches(wanted)
        self.assertEqual(
            [('without the 3 ports on data', [mgmt]),
             ('with 2 ports fewer on data', [data, mgmt]),
             ('with 1 port fewer on data', [data, mgmt, data])],
            [(change.text, [network for network, _groups
                            in change.requested.ports])
             for change in search])

    def test_memory(self):
        """In whole pages on each NUMA node, and not too many steps."""
        for memory, nodes, size, expected in (
                (4096, '1', '1GB', ['2 GiB', '3 GiB']),
                (4096, '2', '1GB', ['2 GiB']), (1024, '1', '1048576', [])):
            self.assertEqual(expected, self.texts(asked(
                memory=memory, hw__mem_page_size=size,
                hw__numa_nodes=nodes))[1])
        many = self.texts(asked(memory=1024 * 1024))[1]
        self.assertEqual(('512 GiB', 16), (many[0], len(many)))


class RelaxTest(test_explanation.ExplanationTestCase):
    """A change, or two where no single one helps."""

    CLOUD = """\
hosts:
  - name: h
    count: 2
    cores: 8
    memory: 32 GiB
    pages: {1G: 8}
    switch_nodes: [0]
    shared_cores_per_node: 0
flavors:
  full:
    vcpus: 4
    memory: 1 GiB
    extra_specs:
      {hw:cpu_policy: dedicated, nfv:vswitch_numa_affinity: strict}
steps:
  - {boot: full, flavor: full, count: 2}
"""
    SPECS = {'hw__cpu_policy': 'dedicated', 'nfv__numa_node.0': '0',
             'nfv__vswitch_numa_affinity': 'strict'}

    def test_numa_nodes(self):
        """A change is all that its text says, and no more."""
        with self.simulation(self.CLOUD) as simulation:
            specs = {change.text: change.requested.flavor.extra_specs
                     for change, *_larger in relaxation.changes(
                         simulation.state, asked(4, **self.SPECS))}
        self.assertEqual({
            'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '2',
            'nfv:vswitch_numa_affinity': 'strict'}, specs[
                'hw:numa_nodes=2, without nfv:numa_node.0'])

    def test_fewest_ports(self):
        cloud = source.load('refusals')
        with start.started(cloud) as state:
            for name, change, host in (
                    ('full-switch', 'with 1 port fewer on lan', 'compute-2'),
                    ('many-ports', 'with 2 ports fewer on lan', 'compute-2')):
                wanted = subject.server(cloud, state, name).requested
                result = relaxation.relax(
                    state, wanted, 100, lambda done, total: None)
                self.assertEqual([(change, 1, host)], [
                    (each.text, each.hosts, each.host)
                    for each in result.changes])

    def test_flavors_are_last(self):
        """After pairs, too, of whatever size, and on however many hosts."""
        fitting = [dataclasses.replace(
            clouds.change(text, hosts), size=size) for text, hosts, size in (
                ('flavor', 9, relaxation.FLAVOR), ('pair', 1, 7))]
        self.assertEqual(['pair', 'flavor'], [
            each.text for each in relaxation.Trials(None, fitting).changes])

    def test_flavors(self):
        """The largest first; none that is private, disabled or larger."""
        text = self.CLOUD.replace('flavors:\n', '''flavors:
  two: {vcpus: 2, memory: 512 MiB, <<: &dedicated {
    extra_specs: {hw:cpu_policy: dedicated}}}
  three: {vcpus: 3, memory: 1 GiB, <<: *dedicated}
  fat: {vcpus: 3, memory: 1 GiB, disk: 1 GiB, <<: *dedicated}
  secret: {vcpus: 3, memory: 1 GiB, <<: *dedicated}
  large: {vcpus: 9, memory: 512 MiB, <<: *dedicated}
''')
        with self.simulation(text) as simulation:
            simulation.run()
            state = simulation.state
            state.flavors['secret'] = dataclasses.replace(
                state.flavors['secret'], public=False)
            wanted = asked(8, 4096, hw__cpu_policy='dedicated',
                           nfv__vswitch_numa_affinity='strict')
            found = relaxation.relax(state, wanted, 100,
                                     lambda done, total: None).changes
        self.assertEqual(['flavor three', 'flavor two'], [
            each.text for each in found
            if each.text.startswith('flavor')])
        self.assertFalse(found[0].text.startswith('flavor'))

    def test_two_reasons_for_one_node(self):
        found = self.explain(8, 4096, text=self.CLOUD, **self.SPECS)
        change, = found.changes
        self.assertEqual(
            ('nfv:vswitch_numa_affinity=prefer and without nfv:numa_node.0',
             2, {'hw:cpu_policy': 'dedicated',
                 'nfv:vswitch_numa_affinity': 'prefer'}),
            (change.text, change.hosts,
             change.requested.flavor.extra_specs))

    def test_no_pairs_if_a_change_helps(self):
        found = self.explain(
            8, 4096, text=self.CLOUD, hw__cpu_policy='dedicated',
            nfv__vswitch_numa_affinity='strict')
        self.assertIn('nfv:vswitch_numa_affinity=prefer', self.changes(found))
        self.assertFalse([each.text for each in found.changes
                          if ' and ' in each.text])

    def test_a_change_and_an_amount(self):
        found = self.explain(12, 4096, text=self.CLOUD,
                             hw__cpu_policy='dedicated',
                             nfv__vswitch_numa_affinity='strict')
        self.assertEqual(2, self.changes(found)[
            'nfv:vswitch_numa_affinity=prefer and 8 vCPUs'])
        self.assertLessEqual(len(found.changes), 3)

    def test_pairs_worth_trying(self):
        with self.simulation(self.CLOUD) as simulation:
            simulation.run()
            lan, wan = (snapshot.Network(id=name, name=name)
                        for name in ('lan', 'wan'))
            pairs = relaxation.pairs(simulation.state, dataclasses.replace(
                asked(hw__cpu_policy='dedicated', hw__mem_page_size='1GB',
                      nfv__vswitch_numa_affinity='strict'),
                ports=((lan, ()), (wan, ()))))
        sizes = [pair[0].size for pair in pairs]
        self.assertEqual(sorted(sizes), sizes)
        texts = [pair[-1].text for pair in pairs]
        self.assertIn('nfv:vswitch_numa_affinity=prefer and '
                      'hw:mem_page_size=small', texts)
        for text in texts:
            self.assertFalse('on lan' in text and 'on wan' in text, text)
        # Not one way and then the other way round.
        self.assertEqual(len(texts), len({
            frozenset(text.split(' and ')) for text in texts}))

    def test_hosts_that_are_down(self):
        """What is tried on a host that is down does not stay there."""
        with self.simulation(self.CLOUD) as simulation:
            state = simulation.state
            for host in state.hosts.values():
                host.down = True
            before = self.books(simulation)
            result = relaxation.relax(
                state, asked(4, hw__cpu_policy='dedicated'), 100,
                lambda done, total: None)
            self.assertEqual(
                [2, 1, 1], [each.hosts for each in result.changes])
            self.assertEqual({}, state.residues)
            self.assertEqual(before, self.books(simulation))

    def test_time(self):
        """A quarter of it at most."""
        with self.simulation(self.CLOUD) as simulation:
            simulation.run()
            wanted = asked(
                hw__cpu_policy='dedicated', trait__CUSTOM_A='required',
                trait__CUSTOM_B='required', trait__CUSTOM_C='required')
            singles = len([*relaxation.changes(simulation.state, wanted)])
            self.useFixture(fixtures.MonkeyPatch(
                'nfv_sched.ops.answers.explain.relaxation.time.monotonic',
                itertools.count().__next__))
            result = relaxation.relax(simulation.state, wanted, 100,
                                      lambda done, total: None)
        self.assertEqual((), result.changes)
        self.assertGreater(result.untried, 0)
        # A trial begins each second, those of pairs for 25 seconds.
        self.assertLessEqual(result.tried, singles * 3 + 25)
