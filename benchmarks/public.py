# SPDX-License-Identifier: Apache-2.0
"""Plans and the fragmentation weigher on public data.

The data are not part of this repository.  ``NFV_SCHED_PUBLIC_DATA``, or
``--data``, names a folder with files of:

* github.com/bytedance/DRL-based-VM-Rescheduling (Apache-2.0): mappings of
  servers to NUMA nodes, as snapshots of nfv-sched (``*.json.gz``; one core for
  a CPU, one page of 1 GiB for a vCPU, no ports);
* github.com/mdl1104/Dataset-for-topology-aware-VM-placement (CC0): hosts
  (``PM_res.xlsx``) and sequences of requests (``VM_data_*.xlsx``), to be read
  with openpyxl;
* sequences as ``nfv-sched simulation run --sequence`` reads them (``*.csv``).

Printed are, for each snapshot, the servers of a flavor that fit after at most
M moves, how many are proved to be possible, and the CPU time; the same for
hosts that are emptied, and for CPUs of NUMA nodes that are too many or too few
in use after a host was emptied and has come back; and for each sequence, for
each policy as the only weigher: refused servers with one and with two NUMA
nodes, hosts in use, and how many servers of 16 vCPUs on one NUMA node and of
32 on two fit in the end.  There, servers are pinned, and as Nova's claim does,
each takes the emptiest NUMA node of its host; those of xlsx never leave.
With ``--groups``, those of server groups are kept together or apart.

Usage: python benchmarks/public.py [--data FOLDER] [--moves 10,25,50,100]
       [--vcpus 16] [--groups] [--quick]
"""

import argparse
import bisect
import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import functools
import logging
import os
import pathlib
import sys
import time
import typing as ty
import warnings

warnings.simplefilter('ignore')

from nfv_sched.fit.numa import fragmentation  # noqa: E402
from nfv_sched.fit.numa import topology  # noqa: E402
from nfv_sched.ops.answers.plans import defrag  # noqa: E402
from nfv_sched.ops.answers.plans import document  # noqa: E402
from nfv_sched.ops.answers.plans import drain  # noqa: E402
from nfv_sched.ops.answers.plans import rearrange  # noqa: E402
from nfv_sched.ops.cloud.cloud_file import sequence  # noqa: E402
from nfv_sched.ops.cloud import file as cloud_file  # noqa: E402
from nfv_sched.ops.cloud import snapshot  # noqa: E402
from nfv_sched.ops.model import arrangements  # noqa: E402
from nfv_sched.ops.model import trial  # noqa: E402
from nfv_sched.ops.run import values  # noqa: E402
from nfv_sched.ops.simulator import start  # noqa: E402

GIB_KB = 1024 * 1024
#: Highest number of servers that are to fit after moves.
MOST = 1000


class Node(ty.NamedTuple):
    """A host NUMA node; memory in GiB."""

    cpus: int
    memory: int
    free_cpus: int
    free_memory: int

    def takes(self, cpus: int, memory: int) -> bool:
        return self.free_cpus >= cpus and self.free_memory >= memory

    def less(self, cpus: int, memory: int) -> 'Node':
        return self._replace(free_cpus=self.free_cpus - cpus,
                             free_memory=self.free_memory - memory)

    def count(self, cpus: int, memory: int) -> int:
        return min(self.free_cpus // cpus, self.free_memory // memory)

    def view(self, number: int) -> ty.Any:
        """The attributes of topology.HostCell that the weigher reads."""
        return argparse.Namespace(
            id=number, dedicated=self.cpus, shared=0,
            siblings=tuple([frozenset([cpu]) for cpu in range(self.cpus)]),
            free_cpus=frozenset(range(self.free_cpus)),
            memory=self.memory * 1024,
            memory_usage=(self.memory - self.free_memory) * 1024,
            pages=(topology.CellPages(4, 0, 0, 0), topology.CellPages(
                GIB_KB, self.free_memory * GIB_KB, self.memory * GIB_KB, 0)))


Host = tuple[Node, ...]


class Kind(ty.NamedTuple):
    """What counts of a server for a host."""

    nodes: int
    cpus: int  #: of a NUMA node
    memory: int  #: likewise


@functools.cache
def chosen(host: Host, kind: Kind) -> tuple[int, ...] | None:
    """The nodes that a claim chooses: the emptiest first."""
    order = sorted(range(len(host)),
                   key=lambda node: -host[node].free_cpus)
    fits = [node for node in order
            if host[node].takes(kind.cpus, kind.memory)]
    return tuple(fits[:kind.nodes]) if len(fits) >= kind.nodes else None


def changed(host: Host, kind: Kind, there: Sequence[int],
            sign: int = 1) -> Host:
    return tuple([node.less(sign * kind.cpus, sign * kind.memory)
                  if number in there else node
                  for number, node in enumerate(host)])


@functools.cache
def view(host: Host) -> ty.Any:
    return argparse.Namespace(
        cells=[node.view(number) for number, node in enumerate(host)])


@functools.cache
def lost(host: Host, kind: Kind) -> float:
    cell = argparse.Namespace(
        dedicated=kind.cpus, memory=kind.memory * 1024, pagesize=GIB_KB,
        threads=topology.THREADS_PREFER)
    return fragmentation.lost(
        view(host), ty.cast(ty.Any, argparse.Namespace(
            cells=[cell] * kind.nodes, reserved=0)),
        chosen(host, kind) or ())


def free_memory(host: Host, kind: Kind) -> int:
    return sum(node.free_memory for node in host)


#: Policy -> cost of a host; the first of the cheapest is taken.
POLICIES: Mapping[str, Callable[[Host, Kind], float]] = {
    "Nova's default (most free memory)":
        lambda host, kind: -free_memory(host, kind),
    'ram_weight_multiplier = -1': free_memory,
    'first host that fits': lambda host, kind: 0,
    'NUMAFragmentationWeigher': lost,
}


def play(hosts: Sequence[Host], servers: Mapping[int, sequence.SequenceServer],
         cost: Callable[[Host, Kind], float], groups: bool) -> list[int]:
    """Place servers one after the other; the columns of the table."""
    alike: dict[Host, list[int]] = collections.defaultdict(list)
    state = list(hosts)
    for number, host in enumerate(hosts):
        alike[host].append(number)
    refused = collections.Counter[int]()
    policies = {each.group: each.policy for each in servers.values()
                if each.policy is not None}
    members: dict[ty.Any, list[int]] = collections.defaultdict(list)
    placed: dict[int, tuple[int, tuple[int, ...]]] = {}

    def change(number: int, *args: ty.Any) -> None:
        host = state[number]
        alike[host].remove(number)
        if not alike[host]:
            del alike[host]
        state[number] = changed(host, *args)
        bisect.insort(alike[state[number]], number)

    for line, comes in sequence.in_order(servers):
        server = servers[line]
        nodes = server.numa_nodes
        kind = Kind(nodes, server.vcpus // nodes,
                    server.memory // 1024 // nodes)
        policy = policies.get(server.group)
        there = members[server.group] if groups and (
            policy in ('affinity', 'anti-affinity')) else []
        if not comes:
            if line in placed:
                number, parts = placed.pop(line)
                change(number, kind, parts, -1)
                if there:
                    there.remove(number)
            continue
        options: list[tuple[float, int]] = []
        if there and policy == 'affinity':
            options = [(0, there[0])] if chosen(
                state[there[0]], kind) is not None else []
        else:
            for host, numbers in alike.items():
                number = next((each for each in numbers
                               if each not in there), None)
                if number is not None and chosen(host, kind) is not None:
                    options.append((cost(host, kind), number))
        if not options:
            refused[nodes] += 1
            continue
        _cost, number = min(options)
        there.append(number)
        placed[line] = number, chosen(state[number], kind) or ()
        change(number, kind, placed[line][1])
    return [
        refused[1], refused[2],
        sum(now != before for now, before in zip(state, hosts)),
        sum(node.count(16, 32) for host in state for node in host),
        sum(min(node.count(16, 32) for node in host) for host in state
            if len(host) > 1)]


def rows(path: pathlib.Path) -> Iterator[dict[str, ty.Any]]:
    import openpyxl
    sheet = openpyxl.load_workbook(path, read_only=True).worksheets[0]
    titles, *lines = sheet.iter_rows(values_only=True)
    for line in lines:
        yield dict(zip(titles, line))


def sequences(folder: pathlib.Path, groups: bool) -> None:
    if not (path := folder / 'PM_res.xlsx').exists():
        return
    hosts = [tuple([Node(cpus, memory, cpus, memory) for cpus, memory in (
        (int(row[f'CPU{number}'] or 0), int(row[f'RAM{number}'] or 0))
        for number in (1, 2))]) for row in rows(path)]
    for path in sorted([*folder.glob('VM_data_*.xlsx'),
                        *folder.glob('*.csv')]):
        servers = sequence.read(str(path)) if path.suffix == '.csv' else {
            line: sequence.SequenceServer(
                arrival=line, vcpus=int(row['flavor_vcpus']),
                memory=int(row['flavor_ram']) * 1024,
                numa_nodes=int(row['numa']), policy=row['strategy'],
                group=f'{row["strategy"]} {row["group"]}')
            for line, row in enumerate(rows(path), 2)}
        print(f'\n{path.name}: {len(servers)} servers, {len(hosts)} hosts')
        print(f'{"":<34} refused 1  refused 2  hosts  16 on 1  32 on 2')
        for name, cost in POLICIES.items():
            print(f'{name:<34} %9d  %9d  %5d  %7d  %7d' % tuple(
                play(hosts, servers, cost, groups)), flush=True)


def plans(folder: pathlib.Path, vcpus: int, numbers: Sequence[int]) -> None:
    for path in sorted(folder.glob('*.json.gz')):
        cloud = cloud_file.load(str(path))
        flavor = next((each for each in (
            *cloud.flavors, *[server.flavor for server in cloud.servers])
            if each.vcpus == vcpus
            and each.extra_specs.get('hw:numa_nodes', '1') == '1'), None)
        if flavor is None:
            print(f'\n{path.name}: no flavor of {vcpus} vCPUs')
            continue
        print(f'\n{path.name}: {len(cloud.hosts)} hosts, '
              f'{len(cloud.servers)} servers; new ones of {vcpus} vCPUs on '
              'one NUMA node')
        print('moves at most  fit before  after  possible  moves  CPU s')
        for most in numbers:
            began = time.process_time()
            plan = defrag.plan(
                cloud, flavor, MOST, document.DefragOptions(
                    max_moves=most, avoid=(), networks=(), like=None,
                    ports=None))
            bound = '?' if plan.bound is None else plan.bound
            print(f'{most:13}  {plan.fits_before:10}  {plan.fits_after:5}  '
                  f'{bound:>8}  {len(plan.moves):5}  '
                  f'{time.process_time() - began:5.1f}', flush=True)


def moved(cloud: snapshot.Cloud,
          moves: Sequence[values.Move]) -> snapshot.Cloud:
    with start.started(cloud) as state:
        after, failure = trial.run(
            cloud, arrangements.Positions(cloud, state), moves)
    assert failure is None, failure
    return after


def emptied(cloud: snapshot.Cloud) -> snapshot.Cloud:
    """The cloud after the first host that can be emptied was emptied."""
    for host in cloud.hosts:
        plan = drain.plan(cloud, host.name)
        if plan.moves and not plan.staying:
            return moved(cloud, plan.moves)
    return cloud


def rearrangements(folder: pathlib.Path, numbers: Sequence[int]) -> None:
    for path in sorted(folder.glob('*.json.gz')):
        cloud = cloud_file.load(str(path))
        for spread, now, points in (
                (False, cloud, (None,)), (True, emptied(cloud), (None, 20))):
            print(f'\n{path.name}: ' + (
                'CPUs of uneven NUMA nodes after a host came back' if spread
                else 'hosts without servers'))
            print('moves at most  points  before  after  possible  moves  '
                  'MiB  moves of a second plan  CPU s')
            for most in numbers:
                for each in points:
                    began = time.process_time()
                    options = document.RearrangeOptions(
                        spread=spread, max_moves=most, avoid=(), points=each)
                    plan = rearrange.plan(now, options)
                    seconds = time.process_time() - began
                    again = rearrange.plan(
                        moved(now, document.moves_of(plan)), options)
                    memory = sum(move.memory_mib for move in plan.moves)
                    bound = '?' if plan.bound is None else plan.bound
                    print(f'{most:13}  {each or "":>6}  {plan.before:6}  '
                          f'{plan.after:5}  {bound:>8}  {len(plan.moves):5}  '
                          f'{memory}  {len(again.moves)}  {seconds:5.1f}',
                          flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--data', default=os.environ.get(
        'NFV_SCHED_PUBLIC_DATA'), help='folder of the files')
    parser.add_argument('--moves', default='10,25,50,100')
    parser.add_argument('--vcpus', type=int, default=16)
    parser.add_argument('--groups', action='store_true')
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if not args.data or not os.path.isdir(args.data):
        # Not an error: they are not part of the repository.
        print(__doc__.partition('\n\n')[2].partition('\n\nPrinted')[0])
        return 0
    folder = pathlib.Path(args.data)
    numbers = [10] if args.quick else list(map(int, args.moves.split(',')))
    plans(folder, args.vcpus, numbers)
    if not args.quick:
        rearrangements(folder, numbers)
        sequences(folder, args.groups)
    return 0


if __name__ == '__main__':
    sys.exit(main())
