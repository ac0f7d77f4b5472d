# SPDX-License-Identifier: Apache-2.0
"""Compare the nova.conf of a running host with its profile."""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import typing as ty

from oslo_serialization import jsonutils

from nfv_sched.fit.numa import rule
from nfv_sched.fit.rules import place
from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import configuration
from nfv_sched.ops.answers.profile import cpus as cpu_functions
from nfv_sched.ops.answers.profile import derivation as profiles
from nfv_sched.ops.answers.profile import document

#: CPU allocation ratios that differ by less count as equal.
_CLOSE = 1e-4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StartError:
    """An error that nova-compute finds in its options when it starts."""

    starts: bool  #: whether it starts all the same, without reporting its host
    reason: str  #: in Nova's words


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptionDifference:
    """An option whose value differs from the profile."""

    section: str  #: section of nova.conf
    option: str  #: name of the option
    #: its value, in the syntax of nova.conf; null if it is not set
    has: str | None
    should_have: str | None  #: value of the profile, likewise
    #: section in which Nova reads the option, if it stands in another one;
    #: else null
    belongs: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OptionDifferences:
    """Differences of a nova.conf from the profile (--check)."""

    #: what nova-compute finds wrong when it starts
    start_errors: tuple[StartError, ...]
    #: options that differ from the profile
    differences: tuple[OptionDifference, ...]
    #: CPUs that Nova has switched off, and that count as there
    powered_down: tuple[int, ...] = ()
    #: whether there is a profile to compare with: not if it depends on the
    #: cores of CPUs that Nova has switched off
    compares: bool = True
    #: deviations of the machine and its profile from the guides; none if
    #: CPUs are switched off, as their cores are not known
    warnings: tuple[document.ProfileWarning, ...] = ()


def compare(paths: Sequence[str], chosen: choices.Choices,
            machine: values.Machine) -> OptionDifferences:
    """Compare a nova.conf with the profile of a machine.

    :param paths: files and folders, as nova-compute gets them
    :raises OptionsError: if they cannot be read
    :raises ProfileError: if the machine cannot be set up as chosen
    :raises MachineError: if the facts lack what is needed
    """
    from nfv_sched.nova import compute_conf
    from nfv_sched.nova import compute_start
    conf = compute_conf.read(paths)
    start_errors = tuple([
        StartError(starts=starts, reason=reason)
        for starts, reason in compute_start.errors(
            conf, {node.number: node.cpus for node in machine.nodes},
            machine.offline, machine.governors)])
    with compute_conf.naming(paths):
        wrong = tuple([
            OptionDifference(section=section, option=option,
                             has='; '.join(texts), should_have=None,
                             belongs=belongs)
            for section, option, texts, belongs
            in compute_conf.misplaced(conf)])
    try:
        with compute_conf.naming(paths):
            has = _options(conf)
            # Nova has deprecated these, and no profile has them.
            deprecated = tuple([
                OptionDifference(section='DEFAULT', option=option,
                                 has=str(conf[option]), should_have=None)
                for option in ('vcpu_pin_set', 'reserved_host_cpus')
                if conf[option]])
            powers_down = conf.libvirt.cpu_power_management and (
                conf.libvirt.cpu_power_management_strategy == 'cpu_state')
    except compute_conf.OptionsError:
        if not start_errors:
            raise
        return OptionDifferences(start_errors=start_errors, differences=wrong)
    dedicated = frozenset(has.cpu_dedicated_set)
    missing = dedicated - machine.cpus - machine.offline.keys()
    if powers_down and missing and not machine.knows_offline:
        raise values.MachineError(
            'the facts have only CPUs that are online, and Nova switches '
            f'dedicated ones off: give what "{facts.LSCPU}" prints')
    down = dedicated & machine.offline.keys() if powers_down else frozenset()
    try:
        host_profile = profiles.derive(_power_up(machine, down), chosen)
    except choices.ProfileError:
        if not down:
            raise
        host_profile = None
    differing = () if host_profile is None else (
        *deprecated, *_differences(has, host_profile.nova, chosen))
    # Else the answer would change with each server that is booted.
    compares = not down or host_profile is not None and _is_placed(
        machine, down, host_profile, has) and not any(
            each.section == 'compute' for each in differing)
    return OptionDifferences(
        start_errors=start_errors, powered_down=tuple(sorted(down)),
        compares=compares, differences=wrong + (differing if compares else ()),
        warnings=host_profile.warnings if host_profile and not down else ())


def _power_up(machine: values.Machine, cpus: frozenset[int]) -> values.Machine:
    """Return a machine on which offline CPUs are on, each a core.

    Where its NUMA node is not known, a CPU is put on any node that has CPUs;
    see :func:`_is_placed`.
    """
    numbers = [node.number for node in machine.nodes]
    usual = next((node.number for node in machine.nodes if node.cores), None)
    places = {cpu: node if (node := machine.offline[cpu]) in numbers else usual
              for cpu in cpus}
    return dataclasses.replace(machine, nodes=tuple([
        dataclasses.replace(node, cores=tuple(sorted((*node.cores, *(
            values.Core(cpus=(cpu,)) for cpu, place in places.items()
            if place == node.number)), key=lambda core: core.cpus)))
        for node in machine.nodes]))


def _is_placed(machine: values.Machine, cpus: frozenset[int],
               host_profile: document.Profile,
               has: document.NovaOptions) -> bool:
    """Return whether a profile is the same wherever CPUs really are.

    It is if all cores that are not for pinned servers are whole, and none of
    the CPUs, wherever it may be, would be chosen before one of them.

    :param host_profile: of the machine with these CPUs, which it lacks
    :param has: settings, which may name a node of which no CPU is online
    """
    threads = max(machine.threads, machine.core_threads or 1)
    anywhere = min((cpu for cpu in cpus if machine.offline[cpu] is None),
                   default=None)
    numbers = {node.number for node in machine.nodes}
    if anywhere is not None and not numbers.issuperset(
            frozenset().union(*has.physnets.values())):
        return False
    for node in host_profile.numa_nodes:
        if anywhere is not None and node.memory_mib and not node.cores:
            return False
        guests = frozenset(node.cpus[cpu_functions.GUESTS])
        for core in node.cores:
            if not guests.issuperset(core) and (
                    len(core) < threads
                    or anywhere is not None and anywhere < core[0]):
                return False
    return True


def _options(conf: ty.Any) -> document.NovaOptions:
    """Return options as a profile has them; raise any error of a value."""
    from nfv_sched.nova import compute_conf
    return document.NovaOptions(
        cpu_shared_set=compute_conf.cpus(conf.compute.cpu_shared_set),
        cpu_dedicated_set=compute_conf.cpus(conf.compute.cpu_dedicated_set),
        reserved_host_memory_mib=conf.reserved_host_memory_mb,
        reserved_huge_pages=tuple([
            document.ReservedPages(node=node, size_kib=size, count=count)
            for (node, size), count in sorted(compute_conf.reserved_pages(
                conf.reserved_huge_pages).items()) if count]),
        cpu_allocation_ratio=conf.cpu_allocation_ratio,
        physnets={name: tuple(sorted(set(
            conf[f'neutron_physnet_{name}'].numa_nodes)))
            for name in conf.neutron.physnets},
        device_spec=tuple([
            jsonutils.dumps(spec, sort_keys=True)
            for entry in map(jsonutils.loads, conf.pci.device_spec)
            for spec in (entry if isinstance(entry, list) else [entry])]))


def _differences(has: document.NovaOptions, wants: document.NovaOptions,
                 chosen: choices.Choices) -> Iterator[OptionDifference]:
    """Yield the options of a nova.conf that differ from the profile.

    Additional physical networks and PCI devices are not the profile's
    business; additional labels are.
    """
    if set(wants.device_spec) <= set(has.device_spec):
        has = dataclasses.replace(has, device_spec=wants.device_spec)
    one, other = has.cpu_allocation_ratio, wants.cpu_allocation_ratio
    if other is None or one is not None and abs(one - other) <= _CLOSE:
        has = dataclasses.replace(has, cpu_allocation_ratio=other)
    own = configuration.options(has)
    for section, options in configuration.options(wants).items():
        for option, texts in options.items():
            if own[section][option] != texts:
                yield OptionDifference(
                    section=section, option=option,
                    has='; '.join(own[section][option]) or None,
                    should_have='; '.join(texts) or None)
    names = rule.Names(chosen.vswitch_label, chosen.node_label_prefix)
    labels = (names.vswitch, place.label_of(profiles.OSD, names))
    for name in sorted({*has.physnets, *wants.physnets}):
        ours = name in labels or names.node(name) is not None
        one, other = (_nodes(physnets.get(name))
                      for physnets in (has.physnets, wants.physnets))
        if one != other and (name in wants.physnets or ours):
            yield OptionDifference(
                section=f'neutron_physnet_{name}', option='numa_nodes',
                has=one, should_have=other)


def _nodes(nodes: Iterable[int] | None) -> str | None:
    if nodes is None:
        return 'not in [neutron] physnets'
    return ','.join(map(str, nodes)) or None
