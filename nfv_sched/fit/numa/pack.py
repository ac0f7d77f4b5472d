# SPDX-License-Identifier: Apache-2.0
"""Choose the host CPUs of pinned vCPUs, as Nova does.

The CPUs are those that Nova's ``_pack_instance_onto_cores`` chooses on a host
cell that has been chosen before.  The tests compare guest after guest with the
installed Nova.
"""

import itertools

from nfv_sched.fit.numa import topology
from nfv_sched.fit.numa.topology import GuestCell
from nfv_sched.fit.numa.topology import HostCell


def pins(host: HostCell, cell: GuestCell, reserved: int) -> set[int]:
    """Return the host CPUs of a guest cell, emulator threads included.

    :param host: a host cell that the guest cell fits, by
        :func:`nfv_sched.fit.numa.fit.check`
    :param reserved: further CPUs for the guest's emulator threads
    """
    free, need = host.free_cpus, cell.dedicated
    cores = [list(core & free) for core in host.siblings]
    isolate = cell.threads == topology.THREADS_ISOLATE
    if isolate:
        # One thread of each wholly free core; Nova's resource tracker then
        # marks the siblings as used (pin_cpus_with_siblings).
        usable = [core[:1] for core in cores if len(core) == host.threads]
    else:
        usable = _divide_evenly(cores, need)
    cpus = set(itertools.islice(itertools.chain(*usable), need))
    if reserved:
        # For isolated vCPUs the rest of their cores stays idle.
        spare_cores = [core for core in cores if not (
            isolate and cpus.intersection(core))]
        cpus.update(itertools.islice(
            (cpu for cpu in itertools.chain(*spare_cores) if cpu not in cpus),
            reserved))
    return cpus


def _divide_evenly(cores: list[list[int]], need: int) -> list[list[int]]:
    """Return the CPUs to use of each core: the same number of each.

    The largest number of threads with which there are enough CPUs.
    """
    for threads in range(max(map(len, cores), default=0), 0, -1):
        usable = [core[:threads] for core in cores if len(core) >= threads]
        if threads * len(usable) >= need:
            return usable
    # Nova's fallback without sibling threads: all CPUs, core by core.
    return cores
