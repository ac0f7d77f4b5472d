# SPDX-License-Identifier: Apache-2.0
"""Share memory and CPUs of a host between Ceph OSDs and servers.

The arithmetic is that of Red Hat's guide to hyper-converged clouds; refusals
and warnings are those of TripleO, which derived the same until it was retired.
"""

import dataclasses
from fractions import Fraction

from nfv_sched.ops.answers.profile import choices

#: Memory that the host needs for each server, in GB.
OVERHEAD = Fraction(1, 2)
#: Maximum part of the memory that may be reserved.
MOST_RESERVED = Fraction(4, 5)
LEAST_RATIO, MOST_RATIO = Fraction(1, 2), 16
#: Recommended OSDs on each NVMe device.
BEST_PER_NVME = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CephPlan:
    """The shares of OSDs and servers in a host."""

    osd_memory: int = 0  #: memory of the OSDs in MB
    #: number of servers that fit by memory; None without workload
    guests: int | None = None
    overhead: int = 0  #: memory that the host needs for these servers, in MB
    vcpus: int | None = None  #: vCPUs of servers that the CPUs carry, or None
    ratio: float | None = None  #: CPU allocation ratio, or None


def vcpus_per_osd(chosen: choices.Choices) -> int:
    """Return TripleO's CPUs of an OSD by type of disk; 1 with several."""
    types = {kind for kind, count in chosen.osds.items() if count}
    if types == {choices.SSD}:
        return 4
    if types == {choices.NVME}:
        return 3 if chosen.osds_per_device == BEST_PER_NVME else 4
    return 1


def plan(chosen: choices.Choices, memory: int, cpus: int,
         set_aside: int = 0) -> CephPlan:
    """Share memory and CPUs between OSDs and servers.

    :param memory: memory of the host in MiB
    :param cpus: logical CPUs of servers, and of OSDs that have none of their
        own
    :param set_aside: memory of the host in MiB for neither OSDs nor servers
    :raises ProfileError: if it is not enough: more than 80 % of the memory is
        reserved, or the ratio is less than 0.5
    """
    # As fractions: 0.5 GB for each server must not become 0.499; of texts, so
    # that 0.1 is a tenth.
    available = Fraction(memory - set_aside, 1024)
    count, mb_per_gb = chosen.osd_count, chosen.mb_per_gb
    for_osds = Fraction(str(chosen.gb_per_osd)) * count
    if count and for_osds > available:
        raise choices.ProfileError(
            f'{count} OSDs need {float(for_osds):g} GB of memory, but '
            f'{float(available):.0f} GB are there')
    plan = CephPlan(osd_memory=int(for_osds * mb_per_gb))
    if chosen.guest_gb is not None:
        guests = max(int((available - for_osds) / (
            Fraction(str(chosen.guest_gb)) + OVERHEAD)), 0)
        osd_cpus = vcpus_per_osd(chosen) * count if (
            chosen.layout == choices.FLOATING) else 0
        vcpus = (cpus - osd_cpus) / Fraction(str(chosen.utilisation))
        ratio = vcpus / cpus if cpus else None
        # Like the guide, multiply the sum: rounding loses a MB only once.
        reserved = int(mb_per_gb * (for_osds + OVERHEAD * guests))
        plan = CephPlan(
            osd_memory=plan.osd_memory, guests=guests,
            overhead=reserved - plan.osd_memory, vcpus=max(int(vcpus), 0),
            ratio=None if ratio is None else float(ratio))
        if ratio is not None and ratio < LEAST_RATIO:
            raise choices.ProfileError(
                f'{cpus} CPUs are not enough for {count} OSDs and '
                f'servers: the CPU allocation ratio would be '
                f'{float(ratio):.2f}, less than {float(LEAST_RATIO)}')
    refuse_much(chosen, plan.osd_memory + plan.overhead, memory)
    return plan


def refuse_much(chosen: choices.Choices, reserved: int, memory: int) -> None:
    """Raise ProfileError if more than 80 % of the memory is reserved.

    ``reserved`` is in MB of ``--mb-per-gb``, ``memory`` in MiB.
    """
    most = MOST_RESERVED * Fraction(memory * chosen.mb_per_gb, 1024)
    if chosen.osd_count and reserved > most:
        raise choices.ProfileError(
            f'{reserved} MB would be kept from servers, more than 80 % of the '
            f'{memory} MiB of memory: use fewer OSDs, or other hosts')
