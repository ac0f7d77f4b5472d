# SPDX-License-Identifier: Apache-2.0
"""Machines: that of the worked example, and generated ones."""

from hypothesis import strategies as st

from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import derivation

GIB = 1024
FLAGS = frozenset((2048, 1048576))


def machine(cores=14, nodes=2, threads=2, memory=128 * GIB, **fields):
    """A machine whose sibling threads are numbered split, as usual.

    :param cores: physical cores of each NUMA node
    :param nodes: how many, or the NUMA nodes themselves
    :param memory: MiB of each
    """
    if isinstance(nodes, int):
        total = cores * nodes
        nodes = tuple(values.MachineNode(
            number=node, memory=memory, cores=tuple(
                values.Core(socket=node, cpus=tuple(
                    node * cores + core + thread * total
                    for thread in range(threads))) for core in range(cores)))
            for node in range(nodes))
    return values.Machine(**{**dict(
        nodes=nodes,
        nics=(values.NIC(name='ens1f0', address='0000:3b:00.0', node=0),
              values.NIC(name='ens6f0', address='0000:af:00.0', node=1,
                         most_vfs=64, vf_product='154c'),
              values.NIC(name='eth0', address='virtio0')),
        page_sizes=FLAGS, vendor='intel'), **fields})


def derive(of=None, **chosen):
    return derivation.derive(machine() if of is None else of,
                             choices.Choices(**chosen))


def pages(node, field='total'):
    return {each.size_kib: count for each in node.pages
            if (count := getattr(each, field))}


def reserved(found):
    return {(each.node, each.size_kib): each.count
            for each in found.nova.reserved_huge_pages}


def texts(found):
    return [warning.warning for warning in found.warnings]


@st.composite
def _numbers(draw, nodes, cores, threads):
    """(node, core, thread) -> CPU, in one of the ways that are known."""
    every = [(node, core, thread) for node in range(nodes)
             for core in range(cores) for thread in range(threads)]
    how = draw(st.sampled_from(('split', 'adjacent', 'interleaved', 'odd')))
    if how == 'split':
        every.sort(key=lambda each: (each[2], each[0], each[1]))
    elif how == 'interleaved':
        every.sort(key=lambda each: (each[2], each[1], each[0]))
    elif how == 'odd':
        every = draw(st.permutations(every))
    gap = draw(st.sampled_from((1, 1, 2)))
    return {each: number * gap for number, each in enumerate(every)}


@st.composite
def machines(draw, most_nodes=8, most_cores=12, memories=(
        0, 4 * GIB, *(13 * GIB + 5, 16 * GIB, 64 * GIB) * 3)):
    count = draw(st.integers(1, most_nodes))
    threads = draw(st.sampled_from((1, 2, 2, 4)))
    cores = draw(st.sampled_from((*range(1, most_cores + 1),
                                  most_cores, most_cores)))
    numbers = draw(_numbers(count, cores, threads))
    offline = set(draw(st.lists(st.sampled_from(sorted(
        numbers.values())), max_size=3))) if draw(st.booleans()) else set()
    step = draw(st.sampled_from((1, 1, 1, 8)))
    nodes = []
    for node in range(count):
        bare = draw(st.integers(0, 9)) == 0
        online = [tuple(sorted(
            numbers[node, core, thread] for thread in range(threads)
            if numbers[node, core, thread] not in offline))
            for core in range(cores)]
        nodes.append(values.MachineNode(
            number=node * step, memory=draw(st.sampled_from(memories)),
            cores=() if bare else tuple(
                values.Core(cpus=cpus, socket=node)
                for cpus in sorted(filter(None, online)))))
    return values.Machine(
        nodes=tuple(nodes), offline=dict.fromkeys(offline),
        page_sizes=draw(st.sampled_from((
            None, FLAGS, FLAGS, frozenset((2048,)),
            frozenset((2048, 524288, 16777216))))),
        nics=tuple(values.NIC(
            name=f'ens{number}', node=draw(st.sampled_from((
                None, *(node.number for node in nodes)))))
            for number in range(2)))


@st.composite
def chosen(draw, of, layouts=choices.LAYOUTS):
    numbers = [node.number for node in of.nodes]
    some = st.sampled_from(numbers)
    return choices.Choices(
        layout=draw(st.sampled_from(layouts)),
        switch_cores=draw(st.one_of(
            st.none(), st.integers(0, 3),
            st.dictionaries(some, st.integers(0, 2), max_size=3))),
        switch_nics=tuple(choices.ChosenNIC(name=f'ens{number}')
                          for number in range(draw(st.integers(0, 2)))),
        sriov_nics=tuple(choices.ChosenNIC(name=f'ens{number}', vfs=number)
                         for number in range(draw(st.integers(0, 2)))),
        mtus=draw(st.sampled_from((
            frozenset(), frozenset((1500,)), frozenset((1500, 9000))))),
        shared=draw(st.booleans()),
        pages=draw(st.sampled_from((
            None, None, ((1048576, 0.8),), ((2048, 1.0),), ((4, 1.0),),
            ((524288, 0.5),), ((1048576, 0.5), (2048, 0.5))))),
        network_node=draw(st.sampled_from((False, False, True))),
        osds=draw(st.sampled_from((
            {}, {}, {'hdd': 2}, {'nvme': 1}, {'ssd': 1, 'hdd': 1}))),
        ceph_node=draw(st.one_of(st.none(), some)),
        guest_gb=draw(st.sampled_from((None, None, 2.0))),
        utilisation=draw(st.sampled_from((1.0, 0.5))))
