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

"""A compute node: what it reports to Nova, and its claims.

The claims are Nova's own code.  This module does what the resource tracker of
nova-compute does around them: it keeps the usage in the ``ComputeNode`` up to
date.
"""

from collections.abc import Callable, Iterator, Sequence, Set
import dataclasses
import functools
import typing as ty
import uuid

from nova import exception
from nova import objects
from nova.objects import fields
import os_resource_classes as orc
import os_traits
from oslo_serialization import jsonutils
from oslo_utils import timeutils

from nfv_sched.host import occupancy
from nfv_sched.simulator.cloud_file import model
from nfv_sched.simulator.cloud_file import pci
from nfv_sched.simulator.cloud_file import problems
from nfv_sched.simulator import nova_api
from nfv_sched.simulator import placement

NAMESPACE = uuid.UUID('4f1d3f3c-5f0b-5d0a-9f57-0f6f1f1b7a11')
HYPERTHREADING = os_traits.HW_CPU_HYPERTHREADING
DISABLED = os_traits.COMPUTE_STATUS_DISABLED
# Traits that Nova's libvirt driver always reports.
_DRIVER_TRAITS = frozenset((os_traits.COMPUTE_SOCKET_PCI_NUMA_AFFINITY,))


def stable_uuid(kind: str, name: str) -> str:
    """A UUID that is the same in every run.

    :param kind: kind of the object
    :param name: name of the object, unique in its kind
    """
    return str(uuid.uuid5(NAMESPACE, f'{kind}:{name}'))


def numa_topology(nodes: ty.Sequence[model.NodeLayout]):
    """``nova.objects.NUMATopology`` as the libvirt driver reports it.

    :param nodes: the NUMA nodes of the host
    """
    cells = []
    for node in nodes:
        guests = node.shared | node.dedicated
        siblings = [set(core & guests) for core in node.siblings]
        cells.append(objects.NUMACell(
            id=node.id,
            socket=node.socket,
            cpuset=set(node.shared),
            pcpuset=set(node.dedicated),
            memory=node.memory_mib,
            cpu_usage=0,
            memory_usage=0,
            pinned_cpus=set(),
            siblings=[core for core in siblings if core],
            mempages=[objects.NUMAPagesTopology(
                size_kb=page.size_kib, total=page.total, used=0,
                reserved=page.reserved) for page in node.pages],
            network_metadata=objects.NetworkMetadata(
                physnets=set(node.physnets), tunneled=node.tunneled)))
    return objects.NUMATopology(cells=cells)


def topology_json(nodes: ty.Sequence[model.NodeLayout]) -> str:
    """The NUMA topology as JSON text, as in the record of a compute node.

    :param nodes: the NUMA nodes of the host
    """
    return numa_topology(nodes)._to_json()


def _reported(device: model.PCIDevice) -> dict[str, ty.Any]:
    """A PCI device as the libvirt driver reports it."""
    found = {
        'dev_id': 'pci_' + device.address.replace(':', '_').replace('.', '_'),
        'address': device.address,
        'vendor_id': device.vendor,
        'product_id': device.product,
        'label': f'label_{device.vendor}_{device.product}',
        'numa_node': device.node,
        'dev_type': pci.NOVA_TYPES[device.kind],
    }
    if device.parent is not None:
        found['parent_addr'] = device.parent
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class Claimed:
    """What a server has claimed on a host besides amounts of its flavor.

    :ivar topology: its NUMA topology there, or None
    :ivar devices: its PCI devices
    :ivar requests: the PCI requests they are for
    """

    topology: ty.Any
    devices: tuple[objects.PciDevice, ...]
    requests: objects.InstancePCIRequests


#: What a host that is given no more can run.
X86_64 = ((fields.Architecture.X86_64, fields.HVType.KVM,
           fields.VMMode.HVM),)


def compute_node(number: int, name: str, group: model.HostGroup,
                 topology_json: str | None, **values: ty.Any):
    """The record of a compute node.

    :param number: its number in the database
    :param name: name of the host
    :param group: what the host is like
    :param topology_json: its NUMA topology; None if it reports none
    :param values: fields that are not as those of an empty host
    :returns: ``nova.objects.ComputeNode``
    """
    memory = sum(node.memory_mib for node in group.nodes)
    # With vcpu_pin_set the same CPUs are shared and dedicated.
    vcpus = sum(len(node.shared | node.dedicated) for node in group.nodes)
    supported = values.pop('supported', None) or X86_64
    node = objects.ComputeNode(**{
        'id': number,
        'uuid': stable_uuid('host', name),
        'host': name,
        'hypervisor_hostname': name,
        'hypervisor_type': 'QEMU',
        'hypervisor_version': 8002000,
        'host_ip': '192.0.2.1',
        'vcpus': vcpus,
        'vcpus_used': 0,
        'memory_mb': memory,
        'memory_mb_used': group.reserved_memory,
        'local_gb': group.disk,
        'local_gb_used': 0,
        'disk_available_least': None,
        'current_workload': 0,
        'cpu_info': jsonutils.dumps({'arch': 'x86_64'}),
        'metrics': '[]',
        'stats': {'num_instances': '0', 'io_workload': '0',
                  'failed_builds': '0'},
        'numa_topology': topology_json,
        'supported_hv_specs': [
            objects.HVSpec.from_list(list(each)) for each in supported],
        'pci_device_pools': None,
        'cpu_allocation_ratio': group.cpu_allocation_ratio,
        'ram_allocation_ratio': group.ram_allocation_ratio,
        'disk_allocation_ratio': group.disk_allocation_ratio,
        'mapped': 1,
        'updated_at': timeutils.utcnow(with_timezone=True),
        **values})
    node.running_vms = int(node.stats.get('num_instances', 0))
    node.free_ram_mb = node.memory_mb - node.memory_mb_used
    node.free_disk_gb = node.local_gb - node.local_gb_used
    node.obj_reset_changes()
    return node


class ComputeHost:
    """A compute service with its compute node.

    :ivar name: name of the host
    :ivar group: what it is like; of a cloud file, the group it is from
    :ivar node: ``nova.objects.ComputeNode``, kept up to date
    :ivar version: number that grows with each change of the compute node
    :ivar down: whether the compute service is down
    :ivar instances: servers on the host by UUID, with their ``instance``
    :param make_tracker: makes the PCI tracker of the compute node when it is
        used first
    """

    def __init__(self, name: str, group: model.HostGroup,
                 node: objects.ComputeNode,
                 make_tracker: Callable[[], nova_api.PCITracker]):
        self.name = name
        self.group = group
        self.node = node
        self.version = 0
        self.down = False
        self.instances: dict[str, ty.Any] = {}
        self._make_tracker = make_tracker

    @functools.cached_property
    def pci_tracker(self) -> nova_api.PCITracker:
        """Nova's tracker of the PCI devices of the host."""
        return self._make_tracker()

    def free_devices(self) -> frozenset[str]:
        """Addresses of the free PCI devices."""
        if not self.group.pci.devices:
            return frozenset()
        return frozenset(device.address for device
                         in self.pci_tracker.stats.get_free_devs())

    @property
    def uuid(self) -> str:
        """UUID of the compute node and of its resource provider."""
        return self.node.uuid

    def service(self) -> dict[str, ty.Any]:
        """Return the compute service, as ``ComputeFilter`` reads it.

        A host that is not mapped to its cell counts as disabled: Nova gives
        up a server that the scheduler puts there.
        """
        return {
            'host': self.name,
            'binary': 'nova-compute',
            'disabled': self.group.disabled or not self.group.mapped,
            'mapped': self.group.mapped,
            'disabled_reason': self.group.disabled_reason,
            'forced_down': self.down,
            'last_seen_up': timeutils.utcnow(),
            'created_at': None,
        }

    def provider(self, aggregates: Set[str] = frozenset(),
                 ) -> placement.Provider:
        """Return the resource provider that nova-compute would report.

        :param aggregates: UUIDs of the aggregates that Nova puts it into
        """
        group = self.group
        shared = sum(len(node.shared) for node in group.nodes)
        dedicated = 0 if group.legacy_pinning else sum(
            len(node.dedicated) for node in group.nodes)
        inventories = {
            orc.MEMORY_MB: placement.Inventory(
                self.node.memory_mb, group.reserved_memory,
                group.ram_allocation_ratio)}
        if shared:
            inventories[orc.VCPU] = placement.Inventory(
                shared, 0, group.cpu_allocation_ratio)
        if dedicated:
            inventories[orc.PCPU] = placement.Inventory(dedicated)
        if group.disk:
            inventories[orc.DISK_GB] = placement.Inventory(
                group.disk, 0, group.disk_allocation_ratio)
        traits = set(group.traits) | _DRIVER_TRAITS
        if group.threads > 1:
            traits.add(HYPERTHREADING)
        if group.disabled:
            traits.add(DISABLED)
        return placement.Provider(
            self.uuid, self.name, inventories, traits, aggregates)

    def report_devices(self) -> list[placement.Provider]:
        """Report the PCI devices to the scheduler, and to Placement if set.

        :returns: the resource providers of the devices
        :raises nova.exception.NovaException: if Nova cannot report them
        """
        if not self.group.pci.devices:
            return []
        found = nova_api.pci_providers(
            self.pci_tracker, self.node,
            lambda name: stable_uuid('provider', name))
        self.report_pools()
        return [
            placement.Provider(
                data.uuid, data.name,
                {name: placement.Inventory(values['total'],
                                           values.get('reserved', 0))
                 for name, values in data.inventory.items()},
                set(data.traits), parent=self.uuid) for data in found]

    def report_pools(self) -> None:
        """Report the pools of free PCI devices to the scheduler."""
        self.pci_tracker.stats.populate_pools_metadata_from_assigned_devices()
        self.node.pci_device_pools = (
            self.pci_tracker.stats.to_device_pools_obj())

    # Claims

    def claim(self, context: ty.Any, instance: objects.Instance,
              limits: ty.Any):
        """Claim resources for a new server as nova-compute does.

        :param context: request context
        :param instance: the server, with the NUMA topology made by the API
        :param limits: limits of the scheduler's selection
        :returns: the NUMA topology and the PCI devices that it gets
        :raises nova.exception.NovaException: one of
            :data:`nova_api.CLAIM_ERRORS`, if there is no room
        """
        requests = instance.pci_requests
        claim = nova_api.Claim(
            context, instance, self.name, self, self.node,
            requests, limits=limits)
        return self._take(instance, instance.flavor,
                          claim.claimed_numa_topology, requests, (requests,))

    def move_claim(self, context: ty.Any, instance: objects.Instance,
                   flavor: objects.Flavor, image_meta: objects.ImageMeta,
                   migration_type: str, limits: ty.Any):
        """Claim resources for a server that is moved here.

        :param context: request context
        :param instance: the server as it is on its source
        :param flavor: flavor that it will have here
        :param image_meta: its image
        :param migration_type: migration, resize, live-migration or
            evacuation
        :param limits: limits of the scheduler's selection
        :returns: the NUMA topology and the PCI devices that it gets here
        :raises nova.exception.NovaException: one of
            :data:`nova_api.CLAIM_ERRORS`, if there is no room
        """
        requests = nova_api.move_requests(flavor, instance)
        migration = objects.Migration(
            instance_uuid=instance.uuid, migration_type=migration_type)
        claim = nova_api.MoveClaim(
            context, instance, self.name, flavor, image_meta, self,
            self.node, requests, migration, limits=limits)
        batches = [requests]
        if migration.is_live_migration:
            # The requests of the source are used again, and those of ports
            # get their devices after those of aliases.
            requests = instance.pci_requests
            batches = [
                objects.InstancePCIRequests(requests=[
                    request for request in requests.requests
                    if (request.source ==
                        objects.InstancePCIRequest.NEUTRON_PORT) is port])
                for port in (False, True)]
        return self._take(instance, flavor, claim.claimed_numa_topology,
                          requests, batches)

    def _take(self, instance: objects.Instance, flavor: objects.Flavor,
              topology: ty.Any, requests: objects.InstancePCIRequests,
              batches: Sequence[objects.InstancePCIRequests]) -> Claimed:
        """Assign PCI devices, and count the usage of a successful claim.

        :param batches: the PCI requests, in the order of assignment
        """
        devices: list[objects.PciDevice] = []
        tracker = self.pci_tracker
        try:
            for batch in batches:
                devices += tracker.claim_devices(batch, topology, instance)
            self._count(flavor, topology, 1)
        except exception.NovaException:
            tracker.free_devices(devices, instance)
            raise
        return Claimed(topology, tuple(devices), requests)

    def give_back(self, instance: objects.Instance, flavor: objects.Flavor,
                  claimed: Claimed) -> None:
        """Free the resources of a server on this host.

        :param instance: the server
        :param flavor: flavor that it had here
        :param claimed: what else it had claimed
        """
        self.pci_tracker.free_devices(claimed.devices, instance)
        self._count(flavor, claimed.topology, -1)

    def _count(self, flavor: objects.Flavor, topology: ty.Any,
               sign: int) -> None:
        """Add the usage of a server to the compute node, or subtract it.

        :param sign: 1 or -1
        """
        node = self.node
        if topology is not None and node.numa_topology is not None:
            # NOTE: First, as it fails where Nova's fit left a guest cell with
            # the pins of another host cell (CPUPinningUnknown).
            node.numa_topology = nova_api.numa_usage_from_instance_numa(
                objects.NUMATopology.obj_from_db_obj(node.numa_topology),
                topology, free=sign < 0)._to_json()
        occupancy.record(node, occupancy.NOTHING.plus(
            occupancy.amounts(flavor), sign))
        node.stats = {**node.stats, 'num_instances': str(node.running_vms)}
        if self.group.pci.devices:
            self.report_pools()
        node.updated_at = timeutils.utcnow(with_timezone=True)
        self.version += 1

    def topology(self) -> objects.NUMATopology:
        """The NUMA topology of the host with its present usage."""
        if self.node.numa_topology is None:
            return objects.NUMATopology(cells=[])
        return objects.NUMATopology.obj_from_db_obj(self.node.numa_topology)


def is_mapped(host_state: ty.Any) -> bool:
    """Return whether Nova maps a simulated host to its cell."""
    return host_state.service.get('mapped', True)


def new_host(name: str, number: int, group: model.HostGroup,
             topology_json: str) -> ComputeHost:
    """An empty host of a cloud file.

    :param name: its name
    :param number: its number
    :param group: its group
    :param topology_json: its NUMA topology
    """
    node = compute_node(number, name, group, topology_json)

    def tracker() -> nova_api.PCITracker:
        config = group.pci
        tracker = nova_api.PCITracker(
            nova_api.admin_context(), node,
            nova_api.device_filter(config.device_spec))
        if config.devices:
            tracker.report([_reported(device) for device in config.devices])
        return tracker

    return ComputeHost(name, group, node, tracker)


def new_hosts(cloud: model.Cloud) -> Iterator[
        tuple[ComputeHost, list[placement.Provider]]]:
    """The hosts of a cloud file, each with its resource providers.

    :param cloud: the cloud file
    :raises InputError: if Nova cannot report the PCI devices of a host
    """
    aggregates = aggregates_by_host(cloud)
    number = 0
    for group in cloud.groups:
        text = topology_json(group.nodes)
        for name in group.names:
            number += 1
            host = new_host(name, number, group, text)
            root = host.provider(aggregates.get(name, set()))
            try:
                yield host, [root, *host.report_devices()]
            except exception.NovaException as e:
                raise problems.InputError([f'{cloud.path}: host {name}: {e}'])


def zone_of(cloud: model.Cloud, host: str) -> str:
    """The availability zone of a host.

    :param cloud: the cloud
    :param host: name of the host
    """
    zones = (aggregate.metadata.get('availability_zone')
             for aggregate in cloud.aggregates if host in aggregate.hosts)
    return next(filter(None, zones), nova_api.CONF.default_availability_zone)


def aggregate_uuid(aggregate: model.Aggregate) -> str:
    """UUID of an aggregate.

    :param aggregate: the aggregate
    """
    return aggregate.uuid or stable_uuid('aggregate', aggregate.name)


def network_uuid(network: model.Network) -> str:
    """UUID of a network.

    :param network: the network
    """
    return network.uuid or stable_uuid('network', network.name)


def group_uuid(group: model.ServerGroup) -> str:
    """UUID of a server group.

    :param group: the group
    """
    return group.uuid or stable_uuid('group', group.name)


def aggregates_by_host(cloud: model.Cloud) -> dict[str, set[str]]:
    """Name of each host -> UUIDs of its aggregates.

    :param cloud: the cloud
    """
    found: dict[str, set[str]] = {}
    for aggregate in cloud.aggregates:
        for name in aggregate.hosts:
            found.setdefault(name, set()).add(aggregate_uuid(aggregate))
    return found
