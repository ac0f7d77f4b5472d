# SPDX-License-Identifier: Apache-2.0
"""Cores and devices of a NUMA node: whose they are, and what fits."""

import hypothesis
from hypothesis import strategies as st
from nova import objects
from nova.virt import hardware

from nfv_sched.nova import scheduler
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts import nodes
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests import snapshots

State = document.CPUState


def machine(*nodes, offline=()):
    """Return a machine; nodes are the CPUs of each core of each NUMA node."""
    return values.Machine(nodes=tuple(
        values.MachineNode(number=number, cores=tuple(
            values.Core(cpus=cpus) for cpus in cores))
        for number, cores in enumerate(nodes)), offline=dict.fromkeys(offline))


def tenancies(*servers, node=0):
    return [
        (view.server_on_host(
            server, snapshots.host(), server.name, frozenset()), part)
        for server in servers for part in server.nodes or ()
        if part.host_node == node]


def states(found):
    return {cpu.cpu: (cpu.state, [user.server for user in cpu.users])
            for core in found for cpu in core.cpus}


class CoresTest(base.TestCase):

    # CPUs 0 and 4 are shared, 1 and 5, 2 and 6, 3 and 7 are siblings.
    NODE = dict(cores=4, threads=2, nodes=1)

    def test_order(self):
        self.assertEqual([[0, 4], [1, 5], [2, 6], [3, 7]],
                         nodes.siblings(snapshots.node(**self.NODE)))
        self.assertEqual([[0], [1], [2]], nodes.siblings(
            snapshots.node(cores=3, threads=1)))

    def test_siblings(self):
        """CPUs of neither set are shown if facts have them.

        Of a CPU that Nova has switched off only Nova knows the core; it says
        no siblings where it has one CPU of each core.
        """
        whole = [(core, core + 4) for core in range(4)]
        for cpus, facts, expected in (
                ([1, 2, 6], [], [[1], [2, 6]]),
                ([1, 2, 6], whole, [[0, 4], [1, 5], [2, 6], [3, 7]]),
                ([1, 5, 6], [(1,), (2,)], [[1, 5], [2, 6]])):
            node = snapshots.node(
                shared=0, dedicated=frozenset(cpus), cores=4, nodes=1)
            self.assertEqual(expected, nodes.siblings(
                node, map(frozenset, facts)))
        self.assertEqual([[1, 3], [2]], nodes.siblings(
            snapshots.node(shared=0, dedicated=frozenset([1, 2]),
                           siblings=()), map(frozenset, [(1, 3), (2,)])))

    def test_not_of_nova(self):
        guest = snapshots.server('a', {0: [3]})
        node = snapshots.node(
            dedicated=frozenset([1, 3]), pinned=frozenset([3]), **self.NODE)
        facts = machine([(core, core + 4) for core in range(4)])
        self.assertEqual({
            0: (State.SHARED, []), 4: (State.SHARED, []),
            1: (State.FREE, []), 5: (State.OTHER, []),
            2: (State.OTHER, []), 6: (State.OTHER, []),
            3: (State.GUEST, ['a']), 7: (State.OTHER, []),
        }, states(nodes.cores(node, tenancies(guest), facts)))

    def test_a_guest_where_nova_has_no_cpu(self):
        """A guest that is there all the same is what is shown."""
        guest = snapshots.server('a', {0: [2]})
        node = snapshots.node(dedicated=frozenset([1]), **self.NODE)
        self.assertEqual((State.GUEST, ['a']), states(nodes.cores(
            node, tenancies(guest), machine([(2, 6)])))[2])

    def test_states(self):
        guest = snapshots.server('a', {0: [5, 1]})
        node = snapshots.node(pinned=frozenset([1, 5, 2]), **self.NODE)
        found = nodes.cores(node, tenancies(guest))
        self.assertEqual([1, 0], [cpu.users[0].vcpu for cpu in found[1].cpus])
        self.assertEqual({
            0: (State.SHARED, []), 4: (State.SHARED, []),
            1: (State.GUEST, ['a']), 5: (State.GUEST, ['a']),
            2: (State.UNKNOWN, []), 6: (State.FREE, []),
            3: (State.FREE, []), 7: (State.FREE, []),
        }, states(found))

    def test_isolated(self):
        """The thread beside a guest that wants its cores alone is idle.

        So is that beside its emulator threads.
        """
        for reserved, other in (([], State.UNKNOWN), ([2], State.IDLE)):
            guest = snapshots.server('a', {0: [1]}, fields=dict(
                cpu_policy='dedicated', thread_policy='isolate',
                reserved=frozenset(reserved)))
            node = snapshots.node(pinned=frozenset([1, 5, 2, 6]), **self.NODE)
            found = states(nodes.cores(node, tenancies(guest)))
            self.assertEqual([(State.IDLE, []), (other, [])],
                             [found[5], found[6]])

    def test_emulator_threads(self):
        guest = snapshots.server('a', {0: [1]}, fields=dict(
            reserved=frozenset([2])))
        node = snapshots.node(pinned=frozenset([1, 2]), **self.NODE)
        self.assertEqual((State.EMULATOR, ['a']), states(
            nodes.cores(node, tenancies(guest)))[2])

    def test_two_guests_on_a_cpu(self):
        pair = [snapshots.server(name, {0: [1]}) for name in 'ab']
        node = snapshots.node(pinned=frozenset([1]), **self.NODE)
        self.assertEqual((State.CONFLICT, ['a', 'b']), states(
            nodes.cores(node, tenancies(*pair)))[1])
        self.assertEqual(['node 0: CPU 1 taken by several servers'],
                         list(nodes.problems(node, tenancies(*pair))))

    def test_problems(self):
        guest = snapshots.server('a', {0: [0, 1, 9]})
        node = snapshots.node(pinned=frozenset([2, 3]), **self.NODE)
        self.assertEqual([
            'node 0: CPU 2-3 taken by a server that is not known, such as one '
            'that is being moved',
            'node 0: CPU 1 of a server, but free by the record of the host',
            'node 0: CPU 0,9 of a server, but not for pinned servers here',
        ], list(nodes.problems(node, tenancies(guest))))


@st.composite
def generated_nodes(draw):
    threads = draw(st.sampled_from((1, 2, 4)))
    found = snapshots.node(
        cores=draw(st.integers(1, 6)), threads=threads, nodes=1,
        shared=draw(st.integers(0, 2)))
    pages = tuple(
        snapshot.Pages(
            size=size, total=total, used=draw(st.integers(0, total)),
            reserved=draw(st.integers(0, 1)))
        for size, total in draw(st.sampled_from((
            (), ((4, 512),), ((4, 512), (2048, 3)),
            ((4, 300), (1048576, 2)), ((1048576, 1),)))))
    memory = 4096
    return snapshots.node(
        shared=0, dedicated=found.dedicated, siblings=found.siblings,
        cores=0, threads=threads,
        pinned=frozenset(draw(st.sets(st.sampled_from(
            sorted(found.dedicated))))) if found.dedicated else frozenset(),
        memory=memory, memory_used=draw(st.sampled_from((0, 64, memory))),
        pages=pages)


def nova_accepts(node, vcpus):
    """Whether Nova's fit takes a pinned guest, whatever its memory."""
    host = objects.NUMATopology(cells=[objects.NUMACell(
        id=node.number, cpuset=set(node.shared), pcpuset=set(node.dedicated),
        memory=node.memory, memory_usage=node.memory_used, cpu_usage=0,
        pinned_cpus=set(node.pinned),
        siblings=[set(core) for core in nodes.siblings(node)],
        mempages=[objects.NUMAPagesTopology(
            size_kb=pages.size, total=pages.total, used=pages.used,
            reserved=pages.reserved) for pages in node.pages],
        socket=0, network_metadata=objects.NetworkMetadata(
            physnets=set(), tunneled=False))])
    limits = objects.NUMATopologyLimits(
        cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0)
    for size in [pages.size for pages in node.pages] or [None]:
        guest = objects.InstanceNUMATopology(cells=[
            objects.InstanceNUMACell(
                id=0, cpuset=set(), pcpuset=set(range(vcpus)),
                memory=max(size or 1, 1024) // 1024, pagesize=size,
                cpu_policy='dedicated')])
        if hardware.numa_fit_instance_to_host(host, guest, limits):
            return True
    return False


class EquivalenceTest(base.TestCase):

    @hypothesis.settings(max_examples=300, deadline=None)
    @hypothesis.given(generated_nodes())
    def test_nova_agrees(self, node):
        """Nova takes a guest of that size, and none of one vCPU more."""
        fit = nodes.largest_fit(node)
        # Nova 29 also wants memory of the node, beside its pages.
        hypothesis.assume(
            not scheduler.pinned_guests_need_cell_memory() or
            node.memory_used < node.memory)
        if fit:
            self.assertTrue(nova_accepts(node, fit))
        self.assertFalse(nova_accepts(node, fit + 1))


# Siblings are 0 and 4, 1 and 5 on node 0, 2 and 6, 3 and 7 on node 1; the
# first core of each is the platform's.
HOST = snapshots.host(nodes=[snapshots.node(
    number, 2, 2, 2, shared=0, dedicated=frozenset(cpus))
    for number, cpus in ((0, [1, 5]), (1, [3, 7]))])
CORES = ([(0, 4), (1, 5)], [(2, 6), (3, 7)])


class MachinesTest(base.TestCase):

    def test_cores(self):
        for facts, expected in (
                (machine(*CORES), {2, 3, 6, 7}), (machine(CORES[0]), {3, 7}),
                (None, {3, 7})):
            self.assertEqual(expected, states(
                nodes.cores(HOST.nodes[1], [], facts)).keys())

    def test_contradictions(self):
        """Neither another NUMA node nor a CPU that is off is one."""
        platform, own = CORES
        for machine_nodes, offline, expected in (
                ((platform, own), (), []),
                ((platform, own, [(8, 9)]), (), []),
                (([(0, 4), (1,)], [(2, 6)]), (3, 5, 7), []),
                ((platform, [(2, 6)]), (), ['CPU 3,7 of node 1 missing']),
                ((own, platform), (), ['CPU 1,5 on node 1 instead of 0',
                                       'CPU 3,7 on node 0 instead of 1']),
                (([(0, 1), (4, 5)], own), (),
                 ['CPU 0-1,4-5 of node 0 with other siblings'])):
            self.assertEqual(expected, list(nodes.contradictions(
                HOST, machine(*machine_nodes, offline=offline))))

    def test_nodes_of_nova(self):
        """CPUs for shared guests must be there; Nova tells cores apart."""
        siblings = snapshots.node(
            0, shared=0, dedicated=frozenset([1, 2, 3, 5]), siblings=tuple(
                map(frozenset, ([1, 5], [2], [3]))))
        for node, cores, found in (
                (snapshots.node(0, 2, 2, 1, shared=1), [(2,), (1, 3)],
                 ['CPU 0 of node 0 missing']),
                (siblings, [(1, 5), (2, 6), (3, 7)], []),
                (siblings, [(1, 5), (2, 3)],
                 ['CPU 2-3 of node 0 with other siblings']),
                (snapshots.node(0, shared=0, dedicated=frozenset([1, 2]),
                                siblings=()), [(1, 2)], [])):
            self.assertEqual(found, list(nodes.contradictions(
                snapshots.host(nodes=[node]), machine(cores))), cores)

    def test_no_nodes(self):
        host = snapshot.Host(name='a', hypervisor='a', uuid='a')
        self.assertEqual([], list(nodes.contradictions(
            host, machine(*CORES))))

    def test_notes(self):
        """CPUs for which Nova's NUMA nodes have no place."""
        for facts, notes in (
                ((), ()), (([],), ()),
                (([(8, 9), (11,)],),
                 ('CPU 8-9,11 on node 2, which the host does not report, by '
                  'the facts about it',))):
            found, = view.views(snapshots.cloud([HOST]), facts={
                HOST.uuid: machine(*CORES, *facts)})
            self.assertEqual(notes, found.notes)


def device(number, kind='type-VF', status='available', **fields):
    return snapshot.Device(**{**dict(
        address=f'0000:01:00.{number}', vendor='8086', product='154c',
        kind=kind, status=status, node=0), **fields})


class DevicesTest(base.TestCase):

    def grouped(self, *found):
        return {node: [(group.name, group.kind, group.free, group.used,
                        group.total, group.servers) for group in groups]
                for node, groups in nodes.devices(
                    found, {'1': 'a', '2': 'b'}).items()}

    def test_nics(self):
        self.assertEqual({
            0: [('0000:01:00.0', 'VF', 1, 2, 4, ('a', 'b'))],
            1: [('0000:02:00.0', 'VF', 1, 0, 1, ())],
        }, self.grouped(
            device(0, 'type-PF', 'unavailable'),
            *(device(number, status=status, parent='0000:01:00.0', server=who)
              for number, status, who in (
                  (1, 'available', None), (2, 'allocated', '2'),
                  (3, 'claimed', '1'), (4, 'unavailable', None),
                  (5, 'removed', None), (6, 'deleted', None))),
            device(7, node=1, parent='0000:02:00.0')))

    def test_pf(self):
        """It is there if it can be had, or is had, or has no VFs."""
        for status, there in (('available', True), ('allocated', True),
                              ('unavailable', False)):
            (groups,) = self.grouped(
                device(0, 'type-PF', status), device(
                    1, parent='0000:01:00.0')).values()
            self.assertEqual(
                there, 'PF' in [kind for _name, kind, *_rest in groups])
        self.assertEqual(
            {0: [('0000:01:00.0', 'PF', 0, 0, 1, ())]},
            self.grouped(device(0, 'type-PF', 'unavailable')))

    def test_others(self):
        self.assertEqual({
            0: [('8086:154c', 'PCI', 1, 1, 2, ('unknown guest',))],
            None: [('8086:154c', 'VF', 1, 0, 1, ())],
        }, self.grouped(
            device(0, 'type-PCI'),
            device(1, 'type-PCI', 'allocated', server='9'),
            device(2, node=None)))

    def test_unknown_kind(self):
        self.assertEqual({0: [('8086:154c', 'odd', 1, 0, 1, ())]},
                         self.grouped(device(0, 'odd')))
