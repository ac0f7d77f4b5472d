# SPDX-License-Identifier: Apache-2.0
"""What servers occupy of a host, compared with Nova's own records.

Servers come and go in generated order.  After each step the host must be as
``HostState.consume_from_request`` leaves it, and as the resource tracker
records it when it adds up its servers.
"""

import logging
import types

import hypothesis
from hypothesis import strategies as st
from nova.compute import resource_tracker
from nova import objects

from nfv_sched.cloud import server_shares
from nfv_sched.host import occupancy
from nfv_sched.numa import evaluation
from nfv_sched.numa import fit
from nfv_sched.numa import topology
from nfv_sched.simulator import record
from nfv_sched.tests import base
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import strategies

NO_RATIOS = fit.Ratios(float('inf'), float('inf'))
STEPS = 10


def state(host):
    """Return all figures of a host that servers change."""
    return [(cell.free_cpus, cell.cpu_usage, cell.memory_usage, cell.pages)
            for cell in host.cells]


def tracked(host, servers, sign=1):
    """Return a host after the resource tracker has counted servers.

    :param host: ``NUMATopology``; not changed
    :param servers: ``InstanceNUMATopology`` each
    :param sign: -1 for servers that leave
    """
    node = objects.ComputeNode(
        memory_mb=1, memory_mb_used=0, local_gb=0, local_gb_used=0,
        vcpus_used=0, numa_topology=host._to_json())
    tracker = types.SimpleNamespace(
        compute_nodes={'node': node},
        stats={'node': types.SimpleNamespace(num_instances=0)})
    for server in servers:
        resource_tracker.ResourceTracker._update_usage(
            tracker, {'memory_mb': 0, 'numa_topology': server}, 'node', sign)
    return objects.NUMATopology.obj_from_db_obj(node.numa_topology)


def consume(host, guest):
    """Put a guest on a host as Nova's scheduler does.

    :returns: the host and the guest's topology then; None if the guest does
        not fit, or Nova cannot record it
    """
    before = strategies.clone(host)
    host_state = strategies.host_state(before)
    spec = strategies.request_spec(guest)
    # Nova logs what fails in there, and goes on.
    host_state.consume_from_request(spec)
    if spec.numa_topology is None or host_state.numa_topology is before:
        return None
    return host_state.numa_topology, spec.numa_topology


def claim(host, guest):
    """Return what a guest would occupy, and the host then.

    :returns: None if the guest does not fit, or Nova cannot record it
    """
    evaluated = evaluation.Evaluation(host, topology.guest(guest), NO_RATIOS)
    claimed = evaluated.claimed()
    if claimed is None:
        return None
    parts = occupancy.claimed_shares(evaluated, claimed)
    try:
        return parts, occupancy.take(host, parts)
    except occupancy.UnrecordedError:
        return None


@st.composite
def large_hosts(draw):
    """Hosts that several guests fit one after the other."""
    threads = draw(st.sampled_from((1, 2, 2, 4)))
    width = threads * draw(st.integers(4, 8))
    # Of new-style hosts, some CPUs are for shared vCPUs.
    shared_width = draw(st.sampled_from((0, threads, None)))
    sizes = draw(st.sampled_from(((4,), (2048,), (4, 2048, 1048576))))
    cells = []
    for number in range(draw(st.sampled_from((1, 2, 4, 8)))):
        cpus = list(range(number * width, (number + 1) * width))
        shared, dedicated = (
            (set(cpus), set(cpus)) if shared_width is None else
            (set(cpus[:shared_width]), set(cpus[shared_width:])))
        cells.append(objects.NUMACell(
            id=number, cpuset=shared, pcpuset=dedicated, memory=16384,
            cpu_usage=0, memory_usage=0, pinned_cpus=set(), socket=number,
            siblings=[set(cpus[first:first + threads])
                      for first in range(0, width, threads)],
            mempages=[objects.NUMAPagesTopology(
                size_kb=size, total=16384 * 1024 // size, used=0,
                reserved=draw(st.integers(0, 3))) for size in sizes],
            network_metadata=objects.NetworkMetadata(
                physnets=set(), tunneled=False)))
    return objects.NUMATopology(cells=cells)


class TestOccupancy(base.TestCase):

    def setUp(self):
        super().setUp()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)

    def test_take_and_give_back(self):
        seen = dict.fromkeys(('hosts', 'taken', 'refused', 'given back',
                              'isolated'), 0)

        @hypothesis.settings(test_stock.SETTINGS)
        @hypothesis.given(
            first=st.one_of(
                large_hosts(), large_hosts(),
                strategies.host_topologies(max_cells=8)),
            kinds=st.lists(strategies.guest_topologies(max_cells=2),
                           min_size=2, max_size=4), data=st.data())
        def check(first, kinds, data):
            if any(test_stock.permutations(first, guest)
                   > test_stock.MAX_PERMUTATIONS for guest in kinds):
                return
            for cell in first.cells:
                if 'network_metadata' not in cell:
                    cell.network_metadata = objects.NetworkMetadata(
                        physnets=set(), tunneled=False)
            host = topology.host_topology(first)
            seen['hosts'] += 1
            nova, servers = first, []
            for _step in range(data.draw(st.integers(2, STEPS))):
                if servers and data.draw(st.integers(0, 2)) == 0:
                    server = servers.pop(data.draw(
                        st.integers(0, len(servers) - 1)))
                    host = occupancy.give_back(host, self.shares(
                        first, server))
                    nova = tracked(nova, [server], -1)
                    seen['given back'] += 1
                else:
                    guest = data.draw(st.sampled_from(kinds))
                    consumed, claimed = consume(nova, guest), claim(
                        host, guest)
                    self.assertEqual(consumed is None, claimed is None)
                    if consumed is None:
                        seen['refused'] += 1
                        continue
                    nova, server = consumed
                    parts, after = claimed
                    self.assertEqual(parts, self.shares(first, server))
                    self.assertEqual(
                        state(host), state(occupancy.give_back(after, parts)))
                    host = after
                    servers.append(server)
                    seen['taken'] += 1
                    seen['isolated'] += any(
                        cell.cpu_thread_policy == 'isolate'
                        for cell in server.cells)
                self.assertEqual(
                    state(topology.host_topology(nova)), state(host))
                self.assertEqual(state(topology.host_topology(
                    tracked(first, servers))), state(host))

        check()
        print('occupancy: %s' % seen)
        self.assertGreater(seen['taken'], seen['hosts'] // 10)
        self.assertGreater(seen['given back'], 0)
        self.assertGreater(seen['isolated'], 0)

    def shares(self, host, server):
        """Return what a server of a snapshot occupies.

        :param host: ``NUMATopology``
        :param server: ``InstanceNUMATopology``
        """
        nodes = [record.host_node(cell) for cell in host.cells]
        found = [server_shares.share(nodes, part)
                 for part in record.guest_nodes(server)]
        self.assertNotIn(None, found)
        return tuple(found)
