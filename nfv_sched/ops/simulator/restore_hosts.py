# SPDX-License-Identifier: Apache-2.0
"""Make simulated hosts, with their usage, from the hosts of a snapshot."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import typing as ty

from nova import exception
from nova import objects
from nova.objects import fields

from nfv_sched.ops.cloud import occupied
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import compute
from nfv_sched.ops.simulator import nova_internals

# Tags that Nova derives itself, or stores in extra_info of the device.
_OWN_TAGS = ('address', 'dev_type')
_KEPT_TAGS = ('rp_uuid', 'parent_ifname')
# Stats that Nova's scheduler reads as numbers.
_NUMBERS = ('num_instances', 'io_workload', 'failed_builds')
_UNDERSCORES = str.maketrans(':.', '__')
_Kind = tuple[str, str, str]


def hosts(scenario: scenarios.Scenario) -> Iterator[
        tuple[compute.ComputeHost, Sequence[snapshot.Provider]]]:
    """Yield the hosts of a cloud, each with its resource providers.

    Without Placement, these are derived from the compute node.
    """
    cloud = scenario.cloud
    aggregates = scenarios.aggregates_by_host(cloud.aggregates)
    without_placement = not any(host.providers for host in cloud.hosts)
    # Any other host without providers is unknown to Placement.
    unread = cloud.unread(snapshot.MissingKind.PROVIDERS)
    totals = functools.cache(lambda: occupied.totals(cloud))
    switch_label = scenarios.label_names(cloud).vswitch
    options = cloud.options.get('DEFAULT', {})
    cpu_ratio, ram_ratio, disk_ratio = [
        options.get(f'{of}_allocation_ratio')
        or options.get(f'initial_{of}_allocation_ratio') or 1.0
        for of in ('cpu', 'ram', 'disk')]
    common = {} if scenario.new_hosts else _common_tags(cloud)
    # Many hosts have equal NUMA nodes, which are slow to convert.
    topology_json = functools.cache(lambda nodes: topology(nodes)._to_json())
    reported: dict[tuple, objects.PciDevicePoolList] = {}
    for number, original in enumerate(scenarios.hosts_of(cloud), 1):
        if wrong := list(_problems(original)):
            raise problems.InputError(
                [f'host {original.name}: {text}' for text in wrong])
        record = dataclasses.replace(
            original, cell=original.cell or scenarios.CELL,
            uuid=original.uuid or scenarios.stable_uuid('host', original.name),
            cpu_ratio=original.cpu_ratio or cpu_ratio,
            memory_ratio=original.memory_ratio or ram_ratio,
            disk_ratio=original.disk_ratio or disk_ratio)
        node = compute.compute_node(
            number, record,
            None if record.nodes is None else topology_json(record.nodes))
        host = compute.ComputeHost(
            record, node, functools.partial(_new_tracker, node, record)
            if scenario.new_hosts else
            functools.partial(_tracker, node, record, common),
            [each.number for each in record.nodes or ()
             if switch_label in each.physnets],
            scenario.places.get(record.name, {}))
        if not scenario.new_hosts:
            host.down = not record.up
            _set_pools(host, reported)
        if scenario.new_hosts:
            try:
                providers = [*record.providers, *host.report_devices()]
            except exception.NovaException as e:
                raise problems.InputError(
                    [f'{scenario.path}: host {host.name}: {e}'])
        elif record.providers:
            providers = list(record.providers)
        elif without_placement or original.uuid in unread:
            providers = [scenarios.reported_provider(
                record, occupied.reserved_memory(
                    record, totals()[record.name].memory),
                {each.uuid for each in aggregates[record.name]})]
            # NOTE: Nova cannot report some devices: their configuration is
            # another, or VFs have no parent.  Placement would not have them
            # either.
            with contextlib.suppress(exception.NovaException, ValueError):
                providers += host.report_devices()
        else:
            providers = [snapshot.Provider(uuid=host.uuid,
                                           name=record.hypervisor)]
        yield host, providers


def _problems(host: snapshot.Host) -> Iterator[str]:
    """Yield values of a host that are impossible in Nova or Placement."""
    for name in _NUMBERS:
        value = host.stats.get(name, '0')
        if not str(value).lstrip('-').isdecimal():
            yield f'{name} of its stats is not a number: {value!r}'
    for spec in host.supported:
        if len(spec) < 3:
            yield ('supported_instances: not architecture, hypervisor type '
                   f'and VM mode: {", ".join(spec)}')
    for device in host.devices:
        for value, valid in ((device.kind, fields.PciDeviceType.ALL),
                             (device.status, fields.PciDeviceStatus.ALL)):
            if value not in valid:
                yield f'PCI device {device.address}: {value!r} is not known'
    for provider in host.providers:
        for name, inventory in provider.inventories.items():
            if inventory.step_size < 1:
                yield f'{name} in steps of {inventory.step_size}'


def _set_pools(host: compute.ComputeHost,
               reported: dict[tuple, objects.PciDevicePoolList]) -> None:
    """Set the PCI pools of a compute node; hosts share ``reported`` ones.

    Nova stores tags with the pools of free devices only.  If one lacks them,
    its pool has to be worked out; otherwise the pools are as reported.
    """
    record = host.record
    if all(device.tags for device in record.devices
           if device.status == occupied.AVAILABLE):
        # The tracker is slow to make.
        host.node.pci_device_pools = _pools(record.devices)
        return
    providers = {each.name: each.uuid for each in record.providers}
    key = tuple([
        (device.address, _kind(device), device.node, device.status,
         device.parent, *sorted(device.tags.items()),
         providers.get(_provider_name(record, device)))
        for device in record.devices])
    if key not in reported:
        host.report_pools()
        reported[key] = host.node.pci_device_pools
    host.node.pci_device_pools = reported[key]


def topology(nodes: tuple[snapshot.Node, ...]) -> objects.NUMATopology:
    return objects.NUMATopology(cells=[objects.NUMACell(
        id=node.number, socket=node.socket, cpuset=set(node.shared),
        pcpuset=set(node.dedicated), memory=node.memory,
        cpu_usage=node.shared_used, memory_usage=node.memory_used,
        pinned_cpus=set(node.pinned),
        siblings=[set(core) for core in node.cores],
        mempages=[objects.NUMAPagesTopology(
            size_kb=pages.size, total=pages.total, used=pages.used,
            reserved=pages.reserved) for pages in node.pages],
        network_metadata=objects.NetworkMetadata(
            physnets=set(node.physnets), tunneled=node.tunneled))
        for node in nodes])


def _kind(device: snapshot.Device) -> _Kind:
    return device.vendor, device.product, device.kind


def _common_tags(cloud: snapshot.Cloud) -> dict[_Kind, dict[str, str]]:
    """Return the tags of each kind of device, if all that have tags agree.

    They stand in for tags that Nova does not store: those of devices in a
    pool without a free device.
    """
    seen: dict[_Kind, list[dict[str, str]]] = {}
    for host in cloud.hosts:
        for device in host.devices:
            if device.tags:
                tags = _spec_tags(device.tags)
                of_kind = seen.setdefault(_kind(device), [])
                if tags not in of_kind:
                    of_kind.append(tags)
    return {kind: of_kind[0] for kind, of_kind in seen.items()
            if len(of_kind) == 1}


def _spec_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that ``[pci] device_spec`` gives to a device."""
    return {name: value for name, value in tags.items()
            if name not in _OWN_TAGS and name not in _KEPT_TAGS}


def _pools(devices: Iterable[snapshot.Device]) -> objects.PciDevicePoolList:
    pools: dict[tuple, list[snapshot.Device]] = {}
    for device in devices:
        if device.tags:
            pools.setdefault((_kind(device), device.node,
                              tuple(sorted(device.tags.items()))),
                             []).append(device)
    return objects.PciDevicePoolList(objects=[
        objects.PciDevicePool(
            vendor_id=alike[0].vendor, product_id=alike[0].product,
            numa_node=alike[0].node,
            count=sum(device.status == occupied.AVAILABLE
                      for device in alike),
            tags={'dev_type': alike[0].kind, **alike[0].tags})
        for alike in pools.values()])


def _new_tracker(node: objects.ComputeNode,
                 record: snapshot.Host) -> nova_internals.PCITracker:
    # All devices on a bus have the same tags.
    specs = {device.address.rpartition(':')[0]: device.tags
             for device in record.devices}
    tracker = nova_internals.PCITracker(node, nova_internals.device_filter(
        [{'address': f'{bus}:*.*', **tags} for bus, tags in specs.items()]))
    if record.devices:
        tracker.report([_reported(device) for device in record.devices])
    return tracker


def _reported(device: snapshot.Device) -> dict[str, ty.Any]:
    values = _identity(device)
    if device.parent is not None:
        values['parent_addr'] = device.parent
    if device.tags.get('remote_managed') == 'true':
        # Nova leaves out such a device without the number of its card.
        values['capabilities'] = {
            'vpd': {'card_serial_number': device.parent or device.address}}
    return values


def _identity(device: snapshot.Device) -> dict[str, ty.Any]:
    return {
        'dev_id': 'pci_' + device.address.translate(_UNDERSCORES),
        'address': device.address, 'vendor_id': device.vendor,
        'product_id': device.product, 'numa_node': device.node,
        'label': f'label_{device.vendor}_{device.product}',
        'dev_type': device.kind}


def _tracker(node: objects.ComputeNode, host: snapshot.Host,
             common: Mapping[_Kind, Mapping[str, str]]
             ) -> nova_internals.PCITracker:
    # A device that was not free when the cloud was read has no tags; another
    # VF of the same card mostly has.
    of_card: dict[tuple, dict[str, str]] = {}
    for device in host.devices:
        if device.tags:
            of_card.setdefault((_kind(device), _card(device)),
                               _spec_tags(device.tags))
    providers = {provider.name: provider.uuid for provider in host.providers}
    tags, devices = {}, []
    for device in host.devices:
        tags[device.address] = _spec_tags(device.tags) if device.tags else (
            dict(of_card.get((_kind(device), _card(device)))
                 or common.get(_kind(device), {})))
        extra = {name: device.tags[name] for name in _KEPT_TAGS
                 if name in device.tags}
        if (uuid := providers.get(_provider_name(host, device))) is not None:
            extra['rp_uuid'] = uuid
        devices.append(nova_internals.pci_device(
            **_identity(device), compute_node_id=node.id,
            status=device.status, parent_addr=device.parent,
            instance_uuid=device.server, request_id=device.request,
            extra_info=extra))
    return nova_internals.PCITracker(
        node, nova_internals.KnownDevices(tags), devices,
        {device.address for device in host.devices if device.tags})


def _card(device: snapshot.Device) -> str:
    return device.parent or device.address


def _provider_name(host: snapshot.Host, device: snapshot.Device) -> str:
    return f'{host.hypervisor}_{_card(device).upper()}'
