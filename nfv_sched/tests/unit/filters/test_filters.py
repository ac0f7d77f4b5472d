#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""The filters on Nova's own HostStates, limits and claims."""

import itertools
import threading

import fixtures
from nova import exception
from nova import objects
from nova.scheduler import filters as nova_filters
from nova.scheduler.filters import numa_topology_filter
from nova.virt import hardware

from nfv_sched.filters import all_filters
from nfv_sched.filters import nfv_topology
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.nova import scheduler as nova_scheduler
from nfv_sched.tests import base
from nfv_sched.tests import outcomes
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds


def claimed(host_topology, guest, limits):
    """Host node of each guest cell as nova-compute claims; None if it fails.

    :param limits: the limits of a Selection
    """
    result = hardware.numa_fit_instance_to_host(
        strategies.clone(host_topology), strategies.clone(guest),
        provider_mapping=None, limits=limits)
    return None if result is None else [cell.id for cell in result.cells]


class FilterTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='summary')
        self.topology = nfv_topology.NFVTopologyFilter()
        self.vswitch = vswitch_numa_affinity.VSwitchNUMAAffinityFilter()
        self.stock = numa_topology_filter.NUMATopologyFilter()
        self.handler = nova_filters.HostFilterHandler()

    def orders(self):
        """Sets of filters that must come to the same result."""
        return ([self.topology, self.vswitch], [self.vswitch, self.topology],
                [self.stock, self.vswitch], [self.vswitch, self.stock],
                [self.vswitch])

    def passing(self, hosts, spec, enabled=None, index=0):
        """Names of the hosts that Nova's handler lets pass."""
        return [host.host for host in self.handler.get_filtered_objects(
            enabled or [self.topology, self.vswitch], hosts, spec, index)]

    def refusal(self, hosts, spec, enabled=None):
        """What the tenant reads."""
        error = self.assertRaises(
            exception.NoValidHost, self.passing, hosts, spec, enabled)
        return str(error)

    def node_of(self, host_state, guest=None):
        """Where the claim puts the guest, with the limits of the host."""
        selection = objects.Selection.from_host_state(host_state)
        return claimed(host_state.numa_topology, guest or clouds.guest(),
                       selection.limits.numa_topology)


class TestTable(FilterTestCase):
    """The outcomes of vSwitch NUMA affinity, filter sets in every order."""

    def _result(self, spec, guest=None, **topology):
        outcomes = set()
        for enabled in self.orders():
            self.flags(expose_reasons='none')
            host = clouds.host(**topology)
            request = spec()
            if self.passing([host], request, enabled):
                outcomes.add(tuple(self.node_of(host, guest) or ()))
            else:
                outcomes.add('refused')
        self.assertEqual(1, len(outcomes), outcomes)
        return outcomes.pop()

    def test_control_stock_takes_node_0(self):
        host = clouds.host()
        self.assertTrue(self.stock.host_passes(host, clouds.spec()))
        self.assertEqual([0], self.node_of(host))

    def test_outcomes(self):
        for row, declares in itertools.product(
                outcomes.OUTCOMES, outcomes.Declares):
            switch = range(2 - row.wanted_nodes, 2)
            topology = {
                'switch': (
                    None if declares is outcomes.Declares.NOTHING else switch),
                'node_labels': declares is outcomes.Declares.ALL,
                # A mapped guest does not go to node 0 by itself.
                'free': {1: 1} if row.full else (
                    {0: 2} if row.mapped_away else {})}
            guest = clouds.guest(cells=row.guest_nodes)
            found = self._result(
                lambda row=row: clouds.spec(
                    cells=row.guest_nodes,
                    extra_specs=row.extra_specs(node=0)),
                guest, **topology)
            self.assertEqual(
                row.ends[declares],
                self._ends(found, row, switch, guest, topology),
                f'{row.title}; hosts declare {declares.value}: {found}')

    def _ends(self, found, row, switch, guest, topology):
        if found == 'refused':
            return outcomes.Ends.REFUSED
        if topology['switch'] is None:
            # The host has no limits: this is what Nova does by itself.
            stock = self.node_of(clouds.host(**topology), guest)
            return outcomes.Ends.ANYWHERE if list(found) == stock else None
        if set(found) <= set(switch):
            self.assertEqual(row.guest_nodes, len(set(found)))
            return outcomes.Ends.WITH
        self.assertFalse(set(found) & set(switch), found)
        return outcomes.Ends.AWAY

    def test_no_declaration(self):
        self.assertEqual('refused', self._result(
            lambda: clouds.spec('strict'), switch=None))
        self.assertEqual((0,), self._result(
            lambda: clouds.spec('prefer'), switch=None))

    def test_four_nodes_exact(self):
        two = clouds.guest(cells=2)
        spec = lambda: clouds.spec('strict', cells=2)  # noqa: E731
        self.assertEqual({2, 3}, set(self._result(
            spec, two, nodes=4, switch=(2, 3), free={2: 2, 3: 2})))
        # The switch's label alone holds one guest node, not both.
        self.assertEqual('refused', self._result(
            spec, two, nodes=4, switch=(2, 3), node_labels=False))

    def test_predicted_is_enough_if_the_operator_says_so(self):
        self.flags(strict_enforcement='predicted')
        two = clouds.guest(cells=2)
        spec = lambda: clouds.spec('strict', cells=2)  # noqa: E731
        self.assertEqual({2, 3}, set(self._result(
            spec, two, nodes=4, switch=(2, 3), node_labels=False,
            free={0: 2, 1: 2})))
        self.assertEqual('refused', self._result(
            spec, two, nodes=4, switch=(2, 3), node_labels=False,
            free={2: 2, 3: 2}))

    def test_split_switch(self):
        split = {'switch': (0, 1), 'physnets': {'foo': (0,), 'bar': (1,)}}
        self.assertEqual((1,), self._result(
            lambda: clouds.spec('strict', network=clouds.network('bar')),
            **split))
        self.assertEqual('refused', self._result(
            lambda: clouds.spec(
                'strict', network=clouds.network('foo', 'bar')), **split))
        self.assertEqual((0, 1), self._result(
            lambda: clouds.spec(
                'strict', network=clouds.network('foo', 'bar'), cells=2),
            clouds.guest(cells=2), **split))

    def test_switch_declared_by_the_networks(self):
        self.assertEqual((1,), self._result(
            lambda: clouds.spec('strict', network=clouds.network('bar')),
            switch=None, node_labels=False, physnets={'bar': (1,)}))

    def test_one_node_host_without_guest_topology(self):
        self.flags(expose_reasons='none')
        for host, expected in (
                (clouds.host(nodes=1, switch=(0,)), ['host1']),
                (clouds.host(nodes=1, switch=None), []),
                (clouds.host(nodes=2, switch=(0, 1)), [])):
            self.assertEqual(expected, self.passing(
                [host], clouds.spec('strict', numa=False)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host()], clouds.spec('prefer', numa=False)))


class TestNovaSearch(FilterTestCase):
    """Where Nova's search over permutations would break a promise."""

    def test_labels_that_lead_to_stale_pins(self):
        # Labels on nodes 1 and 3 of an empty host make Nova choose node 3
        # with the pins of node 2, which cannot be recorded.
        self.flags(expose_reasons='none')
        two = clouds.guest(cells=2)
        for switch in itertools.combinations(range(4), 2):
            host = clouds.host(nodes=4, switch=switch)
            spec = clouds.spec('strict', cells=2)
            if not self.passing([host], spec):
                continue
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            placed = hardware.numa_fit_instance_to_host(
                strategies.clone(host.numa_topology), two.obj_clone(),
                provider_mapping=None, limits=limits)
            self.assertEqual(set(switch), {c.id for c in placed.cells})
            hardware.numa_usage_from_instance_numa(
                host.numa_topology, placed)

    def test_claims_that_would_take_long(self):
        # Nova would go through millions of permutations to get to the last
        # nodes of the host.
        for last, passed in ((4, ['host1']), (16, [])):
            self.flags(expose_reasons='none')
            host = clouds.host(nodes=16, switch=tuple(range(last - 4, last)))
            self.assertEqual(passed, self.passing(
                [host], clouds.spec('strict', cells=4, vcpus=1)))

    def test_prefer_never_costs_a_host(self):
        for nodes, cells in ((4, 2), (8, 4), (16, 6)):
            for switch in ((1, 3), tuple(range(nodes - cells, nodes))):
                self.assertEqual(['host1'], self.passing(
                    [clouds.host(nodes=nodes, switch=switch)],
                    clouds.spec('prefer', cells=cells)))

    def test_prefer_where_nova_mistakes_the_guest_nodes(self):
        # No host node has room for the third guest node; Nova's search takes
        # another one for it.
        guest = clouds.guest(cells=3)
        for cell, cpus in zip(guest.cells, ({0, 1}, {2}, {3, 4, 5, 6})):
            cell.pcpuset = cpus
        free = {node: 3 for node in range(3)}
        prefer = {'nfv:vswitch_numa_affinity': 'prefer'}
        for enabled, specs in (
                ([self.stock], {}), ([self.topology], {}),
                ([self.topology, self.vswitch], prefer),
                ([self.vswitch], prefer)):
            host = clouds.host(nodes=3, free=free)
            spec = strategies.request_spec(guest.obj_clone(), None, specs)
            self.assertEqual(['host1'], self.passing([host], spec, enabled))
            self.assertEqual(3, len(self.node_of(host, guest.obj_clone())))

    def test_unlike_guest_nodes_may_be_taken_for_each_other(self):
        guest = clouds.guest(cells=2)
        guest.cells[1].pcpuset = {2}
        host = clouds.host(nodes=3, switch=(0, 1), node_labels=False)
        for specs in ({'nfv:vswitch_numa_affinity': 'strict'},
                      {'nfv:numa_node.1': '0'}):
            self.refusal([host], strategies.request_spec(guest, None, specs))

    def test_large_pages_of_several_sizes(self):
        # Node 0 has 4 KiB and 2 MiB pages, node 1 only 2 MiB: "large" fits
        # node 1 once Nova has narrowed it to 2 MiB on node 0.
        topology = clouds.host_topology(switch=(0,))
        pages = [objects.NUMAPagesTopology(
            size_kb=size, total=1024, used=0, reserved=0)
            for size in (4, 2048)]
        topology.cells[0].mempages = pages
        topology.cells[1].mempages = pages[1:]
        guest = clouds.guest()
        guest.cells[0].pagesize = -2
        for specs in ({'nfv:vswitch_numa_affinity': 'strict'},
                      {'nfv:numa_node.0': '0'}):
            host = strategies.host_state(strategies.clone(topology))
            self.assertEqual(['host1'], self.passing(
                [host], strategies.request_spec(guest, None, specs)))
            self.assertTrue(
                host.limits['numa_topology'].network_metadata.physnets)


class TestNodeMapping(FilterTestCase):
    """Guest nodes on named host nodes, or a refusal."""

    def test_one_guest_node(self):
        for node in (0, 1):
            host = clouds.host()
            self.assertEqual(['host1'], self.passing(
                [host], clouds.spec(nodes={0: node})))
            self.assertEqual([node], self.node_of(host))

    def test_needs_a_label(self):
        self.assertIn('nfv_node', self.refusal(
            [clouds.host(node_labels=False)], clouds.spec(nodes={0: 0})))

    def test_the_label_of_the_switch_will_do(self):
        host = clouds.host(node_labels=False, switch=(1,))
        self.assertEqual(
            ['host1'], self.passing([host], clouds.spec(nodes={0: 1})))
        self.assertEqual([1], self.node_of(host))

    def test_order_of_interchangeable_nodes(self):
        two = clouds.guest(cells=2)
        host = clouds.host()
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(nodes={0: 0, 1: 1}, cells=2)))
        self.assertEqual([0, 1], self.node_of(host, two))
        # Nova puts them in the host's order; labels cannot turn them round.
        self.assertIn('change places', self.refusal(
            [clouds.host()], clouds.spec(nodes={0: 1, 1: 0}, cells=2)))
        self.assertIn('change places', self.refusal(
            [clouds.host(nodes=4)], clouds.spec(nodes={0: 2}, cells=2)))

    def test_held_by_capacity(self):
        # Guest node 0 has more vCPUs than host node 0 has CPUs.
        topology = clouds.host_topology(cpus=14)
        topology.cells[0].pcpuset = set(range(1, 14))
        guest = clouds.guest(cells=2, vcpus=14)
        guest.cells[1].pcpuset = set(range(14, 27))
        host = strategies.host_state(topology)
        spec = strategies.request_spec(
            guest, None, {'nfv:numa_node.0': '1', 'nfv:numa_node.1': '0'})
        self.assertEqual(['host1'], self.passing([host], spec))
        self.assertEqual([1, 0], self.node_of(host, guest))

    def test_keys_of_later_filters(self):
        for specs in ({'nfv:shared_vcpu': '0'},
                      {'nfv:shared_vcpu': '0',
                       'hw:cpu_policy': 'dedicated'}):
            self.assertIn('hw:cpu_policy=mixed', self.refusal(
                [clouds.host()], clouds.spec(extra_specs=specs)))

    def test_absent_nodes(self):
        self.assertIn('host NUMA node 7 needed', self.refusal(
            [clouds.host()], clouds.spec(nodes={0: 7})))
        self.assertIn('the guest has 1 NUMA node', self.refusal(
            [clouds.host()], clouds.spec(nodes={1: 0})))


class TestReasons(FilterTestCase):
    """Who reads what."""

    def test_summary(self):
        hosts = [clouds.host('secret1', free={1: 1}),
                 clouds.host('secret2', free={1: 0})]
        text = self.refusal(hosts, clouds.spec('strict'))
        self.assertEqual(
            'No valid host was found. nfv:vswitch_numa_affinity=strict: 2 '
            'dedicated CPUs on one NUMA node with the virtual switch needed, '
            'best host: 1 free (2 hosts)', text)

    def test_default(self):
        """How full hosts are and how many there are changes nothing."""
        self.config.conf.clear_override('expose_reasons', group='nfv_sched')
        for free in ([0], [1], [0, 1], [1, 0, 0]):
            hosts = [clouds.host(f'secret{number}', free={1: cpus})
                     for number, cpus in enumerate(free)]
            self.assertEqual(
                'No valid host was found. nfv:vswitch_numa_affinity=strict: 2 '
                'dedicated CPUs on one NUMA node with the virtual switch '
                'needed, no host has it',
                self.refusal(hosts, clouds.spec('strict')))
        # The log keeps it all.
        self.assertIn('best host: 1 free (3 hosts)', self.log.output)

    def test_default_on_a_broken_host(self):
        """What the host has reported stays with the operator."""
        self.config.conf.clear_override('expose_reasons', group='nfv_sched')
        host = clouds.host()
        host.numa_topology.cells[0].mempages = [
            objects.NUMAPagesTopology(size_kb=0, total=7, used=0)]
        text = self.refusal([host], clouds.spec('strict'))
        self.assertIn('NUMA topology: a readable record of the host needed, '
                      'no host has it', text)
        self.assertIn('memory pages of 0 KiB (1 host)', self.log.output)

    def test_hosts(self):
        self.flags(expose_reasons='hosts')
        self.assertIn('secret: nfv:vswitch', self.refusal(
            [clouds.host('secret', free={1: 0})], clouds.spec('strict')))

    def test_none(self):
        self.flags(expose_reasons='none')
        self.assertEqual([], self.passing(
            [clouds.host(free={1: 0})], clouds.spec('strict')))
        self.assertIn('refused the last host', self.log.output)

    def test_reasons_of_all_filters(self):
        hosts = [clouds.host('full', free={0: 0, 1: 0}),
                 clouds.host('away', free={1: 0})]
        text = self.refusal(hosts, clouds.spec('strict'))
        self.assertIn('NUMA topology: 2 dedicated CPUs', text)
        self.assertIn('with the virtual switch', text)

    def test_mapped_away(self):
        self.assertIn(
            'the virtual switch on host NUMA node 0 needed '
            '(nfv:numa_node.0=0), it runs on 1',
            self.refusal([clouds.host()],
                         clouds.spec('strict', nodes={0: 0})))

    def test_missing_key_is_named(self):
        self.assertIn('hw:numa_nodes', self.refusal(
            [clouds.host()], clouds.spec('strict', numa=False)))

    def test_bad_value(self):
        for enabled in ([self.topology], [self.vswitch]):
            self.assertIn("'always' is not one of strict, prefer",
                          self.refusal([clouds.host()],
                                       clouds.spec('always'), enabled))

    def test_unknown_key(self):
        """Refused by whichever filter comes first, with all kinds of keys."""
        for enabled in [[cls()] for cls in all_filters()] + [
                [cls() for cls in all_filters()],
                [self.stock, self.vswitch]]:
            for numa in (True, False):
                for specs in ({}, {'hw:cpu_policy': 'dedicated'},
                              {'nfv:vswitch_numa_affinity': 'prefer'}):
                    specs = {'nfv:vswitch_affinity': 'strict', **specs}
                    self.assertEqual(
                        'No valid host was found. flavor: unknown key '
                        'nfv:vswitch_affinity, did you mean '
                        'nfv:vswitch_numa_affinity',
                        self.refusal(
                            [clouds.host('a'), clouds.host('b', nodes=1)],
                            clouds.spec(numa=numa, extra_specs=specs),
                            enabled))

    def test_unknown_keys_fit_into_a_fault(self):
        keys = {'nfv:' + 'vswitch_numa_affinity' * 12: 'strict',
                **{f'nfv:\U0001f4a5{number}' * 9: '' for number in range(999)}}
        text = self.refusal([clouds.host()], clouds.spec(extra_specs=keys))
        self.assertIn('unknown key', text)
        self.assertLessEqual(len(text.encode()), 255)

    def test_later_servers_of_a_request_do_not_raise(self):
        self.assertEqual([], self.passing(
            [clouds.host(free={1: 0})], clouds.spec('strict'), index=1))

    def test_no_hosts_to_begin_with(self):
        self.assertEqual([], self.passing([], clouds.spec('strict')))


class TestMoves(FilterTestCase):
    """A move, of which Nova says that a tunnelled network is used."""

    def test_tunnel_elsewhere(self):
        topology = {'physnets': {'bar': (1,)}, 'tunnel': (0,)}
        network = clouds.network('bar', tunneled=True)
        host = clouds.host(**topology)
        self.assertFalse(self.stock.host_passes(
            host, clouds.spec(network=network, move=True)))
        for networks in (['a'], ['a', 'b']):
            host = clouds.host(**topology)
            self.assertEqual(['host1'], self.passing([host], clouds.spec(
                network=network, move=True, networks=networks)))
            self.assertEqual([1], self.node_of(host))

    def test_believed_where_it_can_be_kept(self):
        host = clouds.host(physnets={'bar': (1,)}, tunnel=(1,))
        self.passing([host], clouds.spec(
            network=clouds.network('bar', tunneled=True), move=True,
            networks=['a', 'b']))
        self.assertTrue(
            host.limits['numa_topology'].network_metadata.tunneled)

    def test_true_of_a_new_server(self):
        self.flags(expose_reasons='none')
        self.assertEqual([], self.passing(
            [clouds.host(physnets={'bar': (1,)}, tunnel=(0,))],
            clouds.spec(network=clouds.network('bar', tunneled=True))))

    def test_strict_on_a_move(self):
        host = clouds.host(tunnel=(0,))
        self.assertEqual(['host1'], self.passing([host], clouds.spec(
            'strict', network=clouds.network(tunneled=True), move=True,
            networks=['a'])))
        self.assertEqual([1], self.node_of(host))

    def test_limits_that_a_live_migration_loses(self):
        # As on releases before 2026.2, where a move may be such a one.
        self.useFixture(fixtures.MockPatchObject(
            nova_scheduler, 'live_migration_carries_limits', lambda: False))
        moved = clouds.spec('strict', move=True)
        self.assertEqual(['host1'], self.passing([clouds.host()], moved))
        self.flags(moves_without_limits='refuse')
        self.assertIn('may lose them', self.refusal(
            [clouds.host()], clouds.spec('strict', move=True)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host(switch=(0, 1))], clouds.spec('strict', move=True)))
        self.assertEqual(['host1'], self.passing(
            [clouds.host()], clouds.spec('strict')))
        self.assertEqual(['host1'], self.passing(
            [clouds.host()], clouds.spec('prefer', move=True)))


class TestMultiCreate(FilterTestCase):
    """Several servers of one request on the same HostStates."""

    def _place(self, host, spec, index, enabled):
        """One server, as Nova's scheduler does it; whether it is placed."""
        if not self.passing([host], spec, enabled, index):
            return False
        host.consume_from_request(spec)
        return True

    def test_limits_serve_all_servers_placed(self):
        for enabled in self.orders():
            self.flags(expose_reasons='none')
            host = clouds.host()
            host.stats = {'num_instances': 0}
            before = host.numa_topology
            spec = clouds.spec('strict')
            self.assertTrue(self._place(host, spec, 0, enabled))
            self.assertTrue(self._place(host, spec, 1, enabled))
            self.assertFalse(self._place(host, spec, 2, enabled))
            # Nova filters once more to find alternates.
            self.assertEqual([], self.passing([host], spec, enabled, 1))
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            self.assertEqual([1], claimed(before, clouds.guest(), limits))
            self.assertEqual(
                {4, 5, 6, 7}, host.numa_topology.cells[1].pinned_cpus)
            self.assertEqual(set(), host.numa_topology.cells[0].pinned_cpus)

    def test_a_refused_spill_leaves_the_limits_alone(self):
        for enabled in self.orders():
            host = clouds.host()
            before = host.numa_topology
            spec = clouds.spec('prefer')
            self.assertTrue(self._place(host, spec, 0, enabled))
            self.assertTrue(self._place(host, spec, 1, enabled))
            # The next server could be here only away from the switch. Nova
            # may choose another host for it, or look for alternates only.
            self.assertEqual(['host1'], self.passing(
                [host], spec, enabled, 2))
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            self.assertEqual([1], claimed(before, clouds.guest(), limits))

    def test_a_spill_drops_the_preference(self):
        for enabled in self.orders():
            host = clouds.host()
            spec = clouds.spec('prefer')
            for index in range(3):
                self.assertTrue(self._place(host, spec, index, enabled))
            limits = objects.Selection.from_host_state(
                host).limits.numa_topology
            labels = limits.network_metadata.physnets \
                if 'network_metadata' in limits else set()
            self.assertNotIn(clouds.VSWITCH, labels)
            self.assertEqual(2, len(host.numa_topology.cells[0].pinned_cpus))
            self.assertEqual(4, len(host.numa_topology.cells[1].pinned_cpus))

    def test_labels_of_servers_that_differ_are_not_mixed(self):
        # Room for one guest on nodes 0 and 1, for another on 2 and 3; the
        # switch runs on all but one guest's nodes serve both.
        self.flags(expose_reasons='none')
        host = clouds.host(nodes=5, cpus=2, switch=(0, 1, 2, 3))
        spec = clouds.spec('strict', cells=2)
        enabled = [self.topology, self.vswitch]
        self.assertTrue(self._place(host, spec, 0, enabled))
        first = {cell.id for cell in host.numa_topology.cells
                 if cell.pinned_cpus}
        self.assertFalse(self._place(host, spec, 1, enabled))
        limits = objects.Selection.from_host_state(host).limits.numa_topology
        self.assertEqual(
            {clouds.VSWITCH, *(f'nfv_node{node}' for node in first)},
            limits.network_metadata.physnets)


class TestThreads(FilterTestCase):
    """Filters are shared by the threads of a scheduler."""

    def test_requests_do_not_see_each_other(self):
        wrong = []

        def work(number):
            for _ in range(60):
                switch = (number % 2,)
                host = clouds.host(f'host{number}', switch=switch)
                full = clouds.host(f'full{number}', switch=switch,
                                   free={0: 0, 1: 0})
                spec = clouds.spec('strict')
                if self.passing([full, host], spec) != [f'host{number}']:
                    wrong.append(number)
                if self.node_of(host) != [number % 2]:
                    wrong.append(number)
                try:
                    self.passing([clouds.host(free={1: number % 3 % 2})],
                                 clouds.spec('strict'))
                    wrong.append(number)
                except exception.NoValidHost as error:
                    if f'{number % 3 % 2} free' not in str(error):
                        wrong.append(str(error))

        threads = [threading.Thread(target=work, args=(number,))
                   for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)


class TestOddData(FilterTestCase):
    """Bad flavors and odd hosts are refused; nothing raises."""

    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='none')

    def test_host_without_numa_topology(self):
        host = clouds.host()
        host.numa_topology = None
        self.assertEqual([], self.passing([host], clouds.spec()))
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec(numa=False)))

    def test_host_without_cells(self):
        host = clouds.host()
        host.numa_topology = objects.NUMATopology(cells=[])
        self.assertEqual([], self.passing([host], clouds.spec('strict')))

    def test_host_without_ratios(self):
        host = clouds.host()
        host.cpu_allocation_ratio = host.ram_allocation_ratio = None
        for spec in (clouds.spec(), clouds.spec('strict')):
            self.assertEqual([], self.passing([host], spec))

    def test_cell_without_its_fields(self):
        host = clouds.host()
        host.numa_topology = objects.NUMATopology(
            cells=[objects.NUMACell(id=0)])
        for spec in (clouds.spec(), clouds.spec('strict')):
            self.assertEqual([], self.passing([host], spec))

    def test_cell_without_siblings(self):
        host = clouds.host()
        for cell in host.numa_topology.cells:
            cell.siblings = []
        self.assertEqual([], self.passing([host], clouds.spec()))

    def test_a_bad_host_does_not_harm_the_others(self):
        bad = clouds.host('bad')
        bad.numa_topology = 'nonsense'
        self.assertEqual(['good'], self.passing(
            [bad, clouds.host('good')], clouds.spec('strict')))

    def test_no_allocation_candidates(self):
        host = clouds.host()
        host.allocation_candidates = []
        self.assertEqual([], self.passing([host], clouds.spec()))

    def test_candidate_without_mappings(self):
        host = clouds.host()
        host.allocation_candidates = [{'allocations': {}}]
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec('strict')))

    def test_rebuild_passes(self):
        spec = clouds.spec('strict')
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.assertEqual(['host1'], self.passing(
            [clouds.host(switch=None)], spec))

    def test_limits_of_the_request_are_not_changed(self):
        network = clouds.network('foo')
        self.passing([clouds.host()], clouds.spec('strict', network=network))
        self.assertEqual({'foo'}, network.physnets)


class TestLoading(base.TestCase):

    def test_nova_loads_the_filters(self):
        classes = nova_filters.HostFilterHandler().get_matching_classes(
            ['nova.scheduler.filters.all_filters',
             'nfv_sched.filters.all_filters'])
        self.assertIn(nfv_topology.NFVTopologyFilter, classes)
        self.assertIn(vswitch_numa_affinity.VSwitchNUMAAffinityFilter,
                      classes)

    def test_names(self):
        self.assertEqual(
            ['CPUThreadPolicyFilter', 'NFVTopologyFilter',
             'PCINUMAAffinityFilter', 'PlaceNUMAAffinityFilter',
             'SecurityRuleLimitFilter', 'SharedVCPUFilter',
             'VSwitchNUMAAffinityFilter', 'VSwitchPortLimitFilter'],
            [cls.__name__ for cls in all_filters()])
