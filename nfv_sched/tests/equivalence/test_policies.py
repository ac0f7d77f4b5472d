# SPDX-License-Identifier: Apache-2.0
"""Strict policies against Nova's own claim, on generated hosts.

A host that the filters accept for a strict policy or a node mapping is
claimed with the limits that they left, on the host as the scheduler saw it
and on the same host with other usage, as if other guests had arrived first or
had left.  The claim may fail; it must never end against the policy.

A brute-force search over assignments, with Nova's check of single cells,
says whether the refusals were right.
"""

import itertools
import logging

import hypothesis
from hypothesis import strategies as st
from nova import exception
from nova import objects
from nova.virt import hardware

from nfv_sched.filters import nfv_topology
from nfv_sched.filters import vswitch_numa_affinity
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies

VSWITCH = 'nfv_vswitch'


@st.composite
def labelled_hosts(draw):
    """A host, the nodes of its switch, and which labels it declares."""
    host = draw(strategies.host_topologies(max_cells=6))
    nodes = [cell.id for cell in host.cells]
    switch = set(draw(st.lists(st.sampled_from(nodes), unique=True,
                               max_size=len(nodes))))
    labels = draw(st.sampled_from(('nodes', 'nodes', 'vswitch', 'none')))
    for cell in host.cells:
        names = set()
        if labels != 'none' and cell.id in switch:
            names.add(VSWITCH)
        if labels == 'nodes':
            names.add('nfv_node%d' % cell.id)
        if 'network_metadata' in cell:
            names |= cell.network_metadata.physnets
            tunneled = cell.network_metadata.tunneled
        else:
            tunneled = False
        cell.network_metadata = objects.NetworkMetadata(
            physnets=names, tunneled=tunneled)
    return host, switch, labels


@st.composite
def other_usage(draw, host):
    """The same host with other guests on it."""
    host = strategies.clone(host)
    for cell in host.cells:
        keep = draw(st.integers(0, 3))
        cpus = sorted(cell.pcpuset)
        cell.pinned_cpus = set(cpus[:len(cpus) * keep // 4])
        cell.memory_usage = cell.memory * draw(st.integers(0, 3)) // 4
        cell.cpu_usage = draw(st.integers(0, 2 * len(cell.cpuset)))
        for pages in cell.mempages:
            pages.used = pages.total * draw(st.integers(0, 3)) // 4
    return host


def claim(host, guest, limits):
    """Host node of each guest cell as nova-compute would claim; or None."""
    result = hardware.numa_fit_instance_to_host(
        strategies.clone(host), strategies.clone(guest),
        provider_mapping=None, limits=limits)
    return None if result is None else [cell.id for cell in result.cells]


def recorded(host, guest, limits):
    """The same, and Nova can write down what the guest takes.

    :raises nova.exception.CPUPinningUnknown: where the claim has pinned the
        guest to CPUs of other host nodes than those it chose
    """
    result = hardware.numa_fit_instance_to_host(
        strategies.clone(host), strategies.clone(guest),
        provider_mapping=None, limits=limits)
    if result is not None and all(cell.mempages for cell in host.cells):
        hardware.numa_usage_from_instance_numa(
            strategies.clone(host), result)
    return result and [cell.id for cell in result.cells]


def always_found(host, guest):
    """Whether Nova finds every set of nodes and pins the guest there.

    With more host nodes to spare, labels may lead its search over
    permutations to pins that belong to other nodes; such hosts are refused.
    """
    cells = len(guest.cells)
    return len(set(map(repr, guest.cells))) == 1 and (
        cells == 1 or len(host.cells) - cells <= 1)


def network_allows(host, nodes, network):
    """Nova's rule for the networks of a request."""
    if network is None:
        return True
    for physnet in network.physnets:
        declared = {cell.id for cell in host.cells
                    if physnet in cell.network_metadata.physnets}
        if declared and not declared & set(nodes):
            return False
    declared = {cell.id for cell in host.cells
                if cell.network_metadata.tunneled}
    return not (network.tunneled and declared and
                not declared & set(nodes))


def network_nodes(host, network):
    """Where the switch of an unlabelled host is, by the request's networks.

    Nowhere if the host does not say so of every network.
    """
    if network is None:
        return set()
    places = [{cell.id for cell in host.cells
               if physnet in cell.network_metadata.physnets}
              for physnet in network.physnets]
    if network.tunneled:
        places.append({cell.id for cell in host.cells
                       if cell.network_metadata.tunneled})
    return set().union(*places) if all(places) else set()


def brute_force(host, guest, network, allowed, limits):
    """Return whether some assignment to the allowed nodes keeps the policy."""
    fits = []
    for index, cell in enumerate(guest.cells):
        reserved = int(guest.emulator_threads_isolated and index == 0)
        nodes = set()
        for host_cell in host.cells:
            if host_cell.id not in allowed[index]:
                continue
            try:
                if hardware._numa_fit_instance_cell(
                        host_cell, strategies.clone(cell), limits, reserved):
                    nodes.add(host_cell.id)
            except (exception.MemoryPageSizeNotSupported, ValueError):
                pass
        fits.append(nodes)
    return any(
        len(set(nodes)) == len(nodes) and network_allows(host, nodes, network)
        for nodes in itertools.product(*fits))


class TestStrictIsStrict(test_stock.EquivalenceTestCase):
    """No claim ends against a strict policy, whatever happened meanwhile."""

    def setUp(self):
        super().setUp()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def _filters(self, state, spec, order):
        filters = [nfv_topology.NFVTopologyFilter(),
                   vswitch_numa_affinity.VSwitchNUMAAffinityFilter()]
        if order:
            filters.reverse()
        return all(f.host_passes(state, spec) for f in filters)

    def _check(self, extra_specs, mapped, enforcement='claim'):
        seen = {'run': 0, 'accepted': 0, 'claimed': 0}
        strict = extra_specs.get('nfv:vswitch_numa_affinity') == 'strict'

        @test_stock.SETTINGS
        @hypothesis.given(
            labelled=labelled_hosts(),
            guest=strategies.guest_topologies(max_cells=4),
            network=strategies.network_metadata(),
            order=st.booleans(), data=st.data())
        def check(labelled, guest, network, order, data):
            host, switch, labels = labelled
            if test_stock.permutations(host, guest) > 2000:
                return
            seen['run'] += 1
            specs = dict(extra_specs)
            node_map = {}
            if mapped:
                cells = data.draw(st.lists(
                    st.integers(0, len(guest.cells) - 1), unique=True,
                    min_size=1))
                for index in cells:
                    node_map[index] = data.draw(
                        st.integers(0, len(host.cells) - 1))
                    specs['nfv:numa_node.%d' % index] = str(node_map[index])
            state = strategies.host_state(strategies.clone(host), 2.0, 1.5)
            accepted = self._filters(
                state, strategies.request_spec(guest, network, specs), order)

            nodes = {cell.id for cell in host.cells}
            within = nodes
            if strict:
                within = (switch if labels != 'none' and switch
                          else network_nodes(host, network))
            allowed = [
                within & ({node_map[index]} if index in node_map else nodes)
                for index in range(len(guest.cells))]
            if accepted:
                seen['accepted'] += 1
                limits = state.limits['numa_topology']
                if 'network_metadata' in limits and (
                        limits.network_metadata.physnets - set(
                            network.physnets if network else ())):
                    placed = recorded(host, guest, limits)
                else:
                    placed = claim(host, guest, limits)
                self.assertIsNotNone(placed)
                self.assertKept(placed, allowed)
                if enforcement == 'claim':
                    for _ in range(3):
                        meanwhile = data.draw(other_usage(host))
                        placed = claim(meanwhile, guest, limits)
                        if placed is not None:
                            seen['claimed'] += 1
                            self.assertKept(placed, allowed)
            elif labels == 'nodes' and not mapped and always_found(
                    host, guest) and not any(
                        (cell.pagesize or 0) < 0 for cell in guest.cells):
                # The label of each node enforces any set of nodes. (Guests
                # with unlike cells or pages may meet Nova's order of search.)
                limits = objects.NUMATopologyLimits(
                    cpu_allocation_ratio=2.0, ram_allocation_ratio=1.5)
                self.assertFalse(brute_force(
                    host, guest, network, allowed, limits))

        check()
        print('%s: %s' % (self.id().rpartition('.')[2], seen))
        self.assert_seen(seen['accepted'], 0)

    def assertKept(self, placed, allowed):
        for node, nodes in zip(placed, allowed):
            self.assertIn(node, nodes)

    def test_strict_vswitch(self):
        self._check({'nfv:vswitch_numa_affinity': 'strict'}, mapped=False)

    def test_node_mapping(self):
        self._check({}, mapped=True)

    def test_strict_vswitch_and_node_mapping(self):
        self._check({'nfv:vswitch_numa_affinity': 'strict'}, mapped=True)

    def test_prefer_keeps_the_node_mapping(self):
        self._check({'nfv:vswitch_numa_affinity': 'prefer'}, mapped=True)

    def test_predicted_holds_on_the_host_as_it_is(self):
        self.flags(strict_enforcement='predicted')
        self._check({'nfv:vswitch_numa_affinity': 'strict'}, mapped=True,
                    enforcement='predicted')


class TestPrefer(test_stock.EquivalenceTestCase):
    """A preference never costs a host, and is kept where there is room."""

    def setUp(self):
        super().setUp()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def test_prefer(self):
        seen = {'run': 0, 'accepted': 0, 'local': 0}

        @test_stock.SETTINGS
        @hypothesis.given(
            labelled=labelled_hosts(),
            guest=strategies.guest_topologies(max_cells=3),
            network=strategies.network_metadata())
        def check(labelled, guest, network):
            host, switch, labels = labelled
            if test_stock.permutations(host, guest) > 2000:
                return
            seen['run'] += 1
            plain = nfv_topology.NFVTopologyFilter().host_passes(
                strategies.host_state(strategies.clone(host), 2.0, 1.5),
                strategies.request_spec(guest, network))
            state = strategies.host_state(strategies.clone(host), 2.0, 1.5)
            spec = strategies.request_spec(
                guest, network, {'nfv:vswitch_numa_affinity': 'prefer'})
            instance = vswitch_numa_affinity.VSwitchNUMAAffinityFilter()
            accepted = instance.host_passes(state, spec)
            self.assertEqual(plain, accepted)
            if not accepted:
                return
            seen['accepted'] += 1
            placed = claim(host, guest, state.limits['numa_topology'])
            self.assertIsNotNone(placed)
            if labels != 'nodes' or not switch:
                return
            limits = objects.NUMATopologyLimits(
                cpu_allocation_ratio=2.0, ram_allocation_ratio=1.5)
            if always_found(host, guest) and brute_force(
                    host, guest, network, [switch] * len(guest.cells),
                    limits):
                seen['local'] += 1
                self.assertLessEqual(set(placed), switch)

        check()
        print('prefer: %s' % seen)
        self.assert_seen(seen['local'], 0)
