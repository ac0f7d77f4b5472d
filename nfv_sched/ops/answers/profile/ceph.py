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

    @property
    def reserved(self) -> int:
        return self.osd_memory + self.overhead


def vcpus_per_osd(ceph: choices.Ceph) -> int:
    """Return the CPUs of an OSD: TripleO's figures by the type of its disk.

    With several types of disks it is one CPU.
    """
    types = {kind for kind, count in ceph.osds.items() if count}
    if types == {choices.SSD}:
        return 4
    if types == {choices.NVME}:
        return 3 if ceph.per_device == BEST_PER_NVME else 4
    return 1


def plan(ceph: choices.Ceph, memory: int, cpus: int,
         guest_gb: float | None = None, utilisation: float = 1.0,
         osd_cpus: int | None = None, set_aside: int = 0) -> CephPlan:
    """Share memory and CPUs between OSDs and servers.

    :param memory: memory of the host in MiB
    :param cpus: logical CPUs that servers and OSDs share
    :param guest_gb: memory of an average server in GB; None if it is not
        known
    :param utilisation: CPU utilisation of an average server, up to 1
    :param osd_cpus: number of these CPUs for OSDs; None for what they need
    :param set_aside: memory of the host in MiB for neither OSDs nor servers
    :raises ProfileError: if it is not enough: more than 80 % of the memory is
        reserved, or the ratio is less than 0.5
    """
    # As fractions: 0.5 GB for each server must not become 0.499.
    available = Fraction(memory - set_aside, 1024)
    for_osds = _fraction(ceph.gb_per_osd) * ceph.count
    if ceph.count and for_osds > available:
        raise choices.ProfileError(
            f'{ceph.count} OSDs need {float(for_osds):g} GB of memory, but '
            f'{float(available):.0f} GB are there')
    plan = CephPlan(osd_memory=int(for_osds * ceph.mb_per_gb))
    if guest_gb is not None:
        guests = max(int(
            (available - for_osds) / (_fraction(guest_gb) + OVERHEAD)), 0)
        if osd_cpus is None:
            osd_cpus = vcpus_per_osd(ceph) * ceph.count
        vcpus = (cpus - osd_cpus) / _fraction(utilisation)
        ratio = vcpus / cpus if cpus else None
        # Like the guide, multiply the sum: rounding loses a MB only once.
        reserved = int(ceph.mb_per_gb * (for_osds + OVERHEAD * guests))
        plan = dataclasses.replace(
            plan, guests=guests, overhead=reserved - plan.osd_memory,
            vcpus=max(int(vcpus), 0),
            ratio=None if ratio is None else float(ratio))
        if ratio is not None and ratio < LEAST_RATIO:
            raise choices.ProfileError(
                f'{cpus} CPUs are not enough for {ceph.count} OSDs and '
                f'servers: the CPU allocation ratio would be '
                f'{float(ratio):.2f}, less than {float(LEAST_RATIO)}')
    if ceph.count:
        refuse_much(plan.reserved, memory, ceph.mb_per_gb)
    return plan


def refuse_much(reserved: int, memory: int, mb_per_gb: int) -> None:
    """Refuse hosts that keep nearly all memory, in MiB, from servers.

    :param reserved: in MB, of which a GB has ``mb_per_gb``
    :raises ProfileError: if that is more than 80 %
    """
    most = MOST_RESERVED * Fraction(memory * mb_per_gb, 1024)
    if reserved > most:
        raise choices.ProfileError(
            f'{reserved} MB would be kept from servers, more than 80 % of the '
            f'{memory} MiB of memory: use fewer OSDs, or other hosts')


def _fraction(number: float) -> Fraction:
    """Return a number exactly as written: 0.1 is a tenth."""
    return Fraction(str(number))
