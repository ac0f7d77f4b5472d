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
"""What the claim of a guest takes from the NUMA nodes of a host.

The CPUs that vCPUs are pinned to are those that Nova's
``_pack_instance_onto_cores`` chooses, and what is recorded is what its
``numa_usage_from_instance_numa`` records, but nothing is changed: each claim
gives a new view of the host.  Which host cells are chosen is not decided here.
The tests compare guest after guest with the installed Nova.
"""

import itertools

from nfv_sched.numa import evaluation as numa_evaluation
from nfv_sched.numa import topology
from nfv_sched.numa.topology import GuestCell
from nfv_sched.numa.topology import HostCell


class UnrecordedError(Exception):
    """Nova makes such a claim, but fails when it records it."""


def pins(host: HostCell, cell: GuestCell, reserved: int) -> set[int]:
    """The CPUs that a guest cell gets for itself.

    :param host: a host cell that the guest cell fits, by
        :func:`nfv_sched.numa.fit.check`
    :param cell: the guest cell
    :param reserved: further CPUs for the guest's emulator threads
    :returns: host CPUs, those for emulator threads included
    """
    free, need = host.free_cpus, cell.dedicated
    cores = [list(core & free) for core in host.siblings]
    isolate = cell.threads == topology.THREADS_ISOLATE
    if isolate:
        usable = [core[:1] for core in cores if len(core) == host.threads]
    else:
        usable = _evenly(cores, need)
    found = set(itertools.islice(itertools.chain(*usable), need))
    if reserved:
        # For isolated vCPUs the rest of their cores stays idle.
        left = [core for core in cores if not (
            isolate and found.intersection(core))]
        found.update(itertools.islice(
            (cpu for cpu in itertools.chain(*left) if cpu not in found),
            reserved))
    return found


def _evenly(cores: list[list[int]], need: int) -> list[list[int]]:
    """The CPUs that Nova uses: of each core the same number of threads.

    That is the largest number with which there are enough CPUs.

    :param cores: the free CPUs of each core
    :param need: number of CPUs
    :returns: for each core that is used, the CPUs in question
    """
    for threads in range(max(map(len, cores), default=0), 0, -1):
        usable = [core[:threads] for core in cores if len(core) >= threads]
        if threads * len(usable) >= need:
            return usable
    return cores


def taken(
    host: HostCell, cell: GuestCell, pagesize: int | None, cpus: set[int],
) -> HostCell:
    """A host cell after the claim of a guest cell was recorded.

    :param host: the host cell
    :param cell: the guest cell
    :param pagesize: its page size, KiB; None if it has none of its own
    :param cpus: the host CPUs that it has for itself
    :raises UnrecordedError: if CPUs are not free, or not for pinned vCPUs, or
        the host cell has no memory pages at all
    """
    pages = host.pages
    if pagesize is None:
        if not pages:
            raise UnrecordedError()
        pagesize = min(page.size_kb for page in pages)
    need = cell.memory * 1024
    free = host.free_cpus
    if cell.cpus != topology.SHARED:
        if cell.threads == topology.THREADS_ISOLATE:
            # Nova ignores those of other host cells here.
            cpus = set(itertools.chain(*(
                core for core in host.siblings if core & cpus)))
        if not cpus <= free:
            raise UnrecordedError()
        free = free - cpus
    return host.changed(
        free=free, cpu_usage=host.cpu_usage + cell.shared,
        memory_usage=host.memory_usage + cell.memory,
        pages=tuple([
            page._replace(free_kb=page.free_kb - need)
            if page.size_kb == pagesize else page for page in pages]))


def claim(
    evaluation: numa_evaluation.Evaluation,
    claimed: numa_evaluation.Claimed,
) -> topology.HostTopology:
    """A host after the claim of a guest was recorded.

    :param evaluation: the guest on the host
    :param claimed: what the claim chooses
    :raises UnrecordedError: if Nova fails to record it
    """
    guest = evaluation.pristine
    before = evaluation.host.cells
    after = list(before)
    for index, (cell, host, pagesize, pinned) in enumerate(zip(
            guest.cells, *claimed)):
        cpus: set[int] = set()
        # Nova's search may take a guest cell for another that has been fitted
        # already. Then it has no pins.
        if cell.cpus != topology.SHARED and pinned >= 0:
            cpus = pins(before[pinned], cell,
                        0 if index else guest.reserved)
        after[host] = taken(after[host], cell, pagesize or None, cpus)
    return evaluation.host.changed(tuple(after))
