# SPDX-License-Identifier: Apache-2.0
"""Make the host that nova-compute would report for a profile.

The profile is the JSON document of ``host profile``.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import pathlib
import re
import uuid

import os_resource_classes as orc
import os_traits

from nfv_sched.base import files
from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import document
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import validation

_NAMESPACE = uuid.UUID('6b9b2f0e-1f5e-4c5e-8a8e-7d0c2b0f4a11')
_NOT_IN_NAME = re.compile('[^A-Za-z0-9._-]+')
#: What Nova takes where the option is not set.
_CPU_RATIO, _MEMORY_RATIO = 4.0, 1.0
_UNLIKE = snapshot.Host(name='', hypervisor='', uuid='', disk_ratio=1.0)
_DRIVER = 'COMPUTE_'
#: Names of hosts in Nova's database have 255 characters at most.
_MOST_NAME = 200


def load(path: str) -> document.Profile:
    with files.naming(path, errors.CloudUnreadError):
        return codec.decode_document(document.Profile, documents.parse(
            files.read(path), lambda data: (
                {'nova', 'numa_nodes'} <= data.keys()),
            'not a document of "host profile -f json"'))


def model(cloud: snapshot.Cloud) -> snapshot.Host | None:
    """Return the host, in use if any is, whose software a new one has."""
    return min(cloud.hosts, default=None, key=lambda host: (
        not (host.enabled and host.up), host.name))


def added_to(cloud: snapshot.Cloud, path: str) -> snapshot.Host:
    """Return the host of a profile, as it would be in a cloud.

    What a profile does not say is that of :func:`model`: hypervisor, traits of
    the driver, disk, and allocation ratios; a host without PCI devices and
    aggregates.

    :raises CloudUnreadError: with the path, if there can be no such host
    """
    like = model(cloud)
    name = _NOT_IN_NAME.sub('-', pathlib.PurePath(path).stem)
    name = name.strip('.-_')[:_MOST_NAME] or 'profile'
    new = host(load(path), name, like)
    new = dataclasses.replace(
        new, zone=cloud.options.get('DEFAULT', {}).get(
            'default_availability_zone') or new.zone)
    if like is not None and not any(each.providers for each in cloud.hosts):
        # Where Placement was not read, the simulator makes all providers.
        new = dataclasses.replace(new, providers=())
    with files.naming(f'{path}: there can be no such host',
                      errors.CloudUnreadError):
        # As strict as the reading of a snapshot with this host.
        checked = codec.decode(snapshot.Cloud, codec.encode(snapshot.Cloud(
            taken=cloud.taken, hosts=(new,))))
        validation.check_names(checked)
        validation.check(checked)
    return new


def host(profile: document.Profile, name: str,
         like: snapshot.Host | None = None) -> snapshot.Host:
    """Return an empty host, as nova-compute reports it with a profile.

    :param like: a host with the same software; None for what Nova takes where
        nothing is configured
    """
    like = like or _UNLIKE
    nova = profile.nova
    shared, dedicated = set(nova.cpu_shared_set), set(nova.cpu_dedicated_set)
    memory = sum(node.memory_mib for node in profile.numa_nodes)
    cpu_ratio = nova.cpu_allocation_ratio or like.cpu_ratio or _CPU_RATIO
    memory_ratio = like.memory_ratio or _MEMORY_RATIO
    inventories = {orc.MEMORY_MB: snapshot.Inventory.of_total(
        memory, nova.reserved_host_memory_mib, ratio=memory_ratio)}
    if dedicated:
        inventories[orc.PCPU] = snapshot.Inventory.of_total(len(dedicated))
    if shared:
        inventories[orc.VCPU] = snapshot.Inventory.of_total(
            len(shared), ratio=cpu_ratio)
    traits: Iterable[str] = ()
    if like.providers:
        root = like.providers[0]
        traits = [trait for trait in root.traits if trait.startswith(_DRIVER)
                  and trait != os_traits.COMPUTE_STATUS_DISABLED]
        if orc.DISK_GB in root.inventories:
            inventories[orc.DISK_GB] = dataclasses.replace(
                root.inventories[orc.DISK_GB], used=0)
    if _threads(profile) > 1:
        traits = [*traits, os_traits.HW_CPU_HYPERTHREADING]
    own = str(uuid.uuid5(_NAMESPACE, name))
    return snapshot.Host(
        name=name, hypervisor=name, uuid=own, nodes=tuple(_nodes(profile)),
        vcpus=len(shared) + len(dedicated), memory=memory,
        memory_used=nova.reserved_host_memory_mib,
        cpu_ratio=cpu_ratio, memory_ratio=memory_ratio,
        stats={'num_instances': '0'},
        providers=(snapshot.Provider(
            uuid=own, name=name, inventories=inventories,
            traits=frozenset(traits)),),
        cell=like.cell, hypervisor_type=like.hypervisor_type,
        hypervisor_version=like.hypervisor_version,
        supported=like.supported, disk=like.disk, disk_ratio=like.disk_ratio,
        disk_available_least=(
            None if like.disk_available_least is None else like.disk),
        network=like.network)


def _threads(profile: document.Profile) -> int:
    return max((len(core) for node in profile.numa_nodes
                for core in node.cores), default=0)


def _nodes(profile: document.Profile) -> Iterator[snapshot.Node]:
    """Yield the NUMA nodes, as libvirt and nova.conf show them to Nova."""
    nova = profile.nova
    has_siblings = _threads(profile) > 1
    all_shared = frozenset(nova.cpu_shared_set)
    all_dedicated = frozenset(nova.cpu_dedicated_set)
    reserved = {(each.node, each.size_kib): each.count
                for each in nova.reserved_huge_pages}
    for node in profile.numa_nodes:
        cpus = frozenset(cpu for core in node.cores for cpu in core)
        shared, dedicated = cpus & all_shared, cpus & all_dedicated
        siblings = [(shared | dedicated).intersection(core)
                    for core in node.cores] if has_siblings else ()
        huge = sum(each.size_kib * each.total for each in node.pages)
        yield snapshot.Node(
            number=node.node, socket=node.node, shared=shared,
            dedicated=dedicated, siblings=tuple(filter(None, siblings)),
            memory=node.memory_mib, pages=(
                snapshot.Pages(size=choices.SMALL, total=(
                    node.memory_mib * 1024 - huge) // choices.SMALL),
                *[snapshot.Pages(
                    size=each.size_kib, total=each.total, reserved=(
                        reserved.get((node.node, each.size_kib), 0)))
                    for each in node.pages]),
            physnets=frozenset(
                name for name, nodes in nova.physnets.items()
                if node.node in nodes))
