# SPDX-License-Identifier: Apache-2.0
"""Simulate a compute node: its reports to Nova, and its claims.

The claims are Nova's own code.  This module does what the resource tracker of
nova-compute does in addition: it keeps the usage in the ``ComputeNode`` up to
date.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import typing as ty

from nova import exception
from nova import objects
from oslo_utils import timeutils

from nfv_sched.fit import occupancy
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import nova_internals
from nfv_sched.ops.simulator import placement


@dataclasses.dataclass(frozen=True, slots=True)
class ServerClaim:
    flavor: objects.Flavor
    topology: objects.InstanceNUMATopology | None
    devices: tuple[objects.PciDevice, ...]
    #: the PCI requests that the devices fulfil
    requests: objects.InstancePCIRequests


def compute_node(number: int, record: snapshot.Host,
                 topology_json: str | None) -> objects.ComputeNode:
    """Return a host's compute node; ``number`` is its ID in the database."""
    node = objects.ComputeNode(
        id=number, uuid=record.uuid, host=record.name,
        hypervisor_hostname=record.hypervisor,
        hypervisor_type=record.hypervisor_type,
        hypervisor_version=record.hypervisor_version, host_ip='192.0.2.1',
        vcpus=record.vcpus, vcpus_used=record.vcpus_used,
        memory_mb=record.memory, memory_mb_used=record.memory_used,
        local_gb=record.disk, local_gb_used=record.disk_used,
        disk_available_least=record.disk_available_least,
        current_workload=0, cpu_info=record.cpu_info, metrics='[]',
        stats=dict(record.stats), numa_topology=topology_json,
        supported_hv_specs=[
            objects.HVSpec.from_list(list(each))
            for each in record.supported or scenario.X86_64],
        pci_device_pools=None, cpu_allocation_ratio=record.cpu_ratio,
        ram_allocation_ratio=record.memory_ratio,
        disk_allocation_ratio=record.disk_ratio, mapped=1,
        updated_at=timeutils.utcnow(with_timezone=True))
    node.running_vms = int(node.stats.get('num_instances', 0))
    node.free_ram_mb = node.memory_mb - node.memory_mb_used
    node.free_disk_gb = node.local_gb - node.local_gb_used
    node.obj_reset_changes()
    return node


@dataclasses.dataclass(eq=False, repr=False)
class ComputeHost:
    """A compute service with its compute node."""

    record: snapshot.Host  #: before the first step, with allocation ratios
    node: objects.ComputeNode  #: with the present usage
    #: makes the PCI tracker on its first use, as it is slow
    make_tracker: Callable[[], nova_internals.PCITracker]
    switch_nodes: Sequence[int]  #: those on which the virtual switch runs
    places: Mapping[str, Sequence[int]]  #: name of place -> its NUMA nodes
    version: int = 0  #: grows with each change of the compute node
    down: bool = False
    #: UUID -> server on the host, with its ``instance``
    instances: dict[str, ty.Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.record.name
        #: UUID of the compute node and of its resource provider.
        self.uuid = self.record.uuid

    @functools.cached_property
    def pci_tracker(self) -> nova_internals.PCITracker:
        return self.make_tracker()

    def free_devices(self) -> frozenset[str]:
        if not self.record.devices:
            return frozenset()
        return frozenset(device.address for device
                         in self.pci_tracker.stats.get_free_devs())

    def service(self) -> dict[str, ty.Any]:
        """Return the compute service, with the keys that filters read."""
        record = self.record
        return {
            'host': self.name, 'binary': 'nova-compute',
            # Nova fails to build servers on a host without mapping.
            'disabled': not record.enabled or not record.mapped,
            'mapped': record.mapped, 'forced_down': self.down,
            'disabled_reason': record.disabled_reason,
            'last_seen_up': timeutils.utcnow(), 'created_at': None}

    def report_devices(self) -> list[snapshot.Provider]:
        """Report the PCI devices; return their resource providers, if any."""
        if not self.record.devices:
            return []
        provider_data = nova_internals.pci_providers(
            self.pci_tracker, self.node,
            lambda name: scenario.stable_uuid('provider', name))
        self.report_pools()
        return [
            snapshot.Provider(
                uuid=data.uuid, name=data.name, parent=self.uuid,
                traits=frozenset(data.traits), inventories={
                    name: placement.inventory(
                        values['total'], values.get('reserved', 0))
                    for name, values in data.inventory.items()})
            for data in provider_data]

    def report_pools(self) -> None:
        self.pci_tracker.stats.populate_pools_metadata_from_assigned_devices()
        self.node.pci_device_pools = (
            self.pci_tracker.stats.to_device_pools_obj())

    def claim(self, context: ty.Any, server: ty.Any, limits: ty.Any,
              kind: str | None = None,
              flavor: objects.Flavor | None = None) -> ServerClaim:
        """Claim resources for a server, as nova-compute does.

        :param server: the server as it is on its source, or with the NUMA
            topology made by the API
        :param kind: migration, resize, live-migration or evacuation; None for
            a server without a host
        :param flavor: the flavor after a move, by default that of the server
        :raises NovaException: one of ``nova_internals.CLAIM_ERRORS``
        """
        instance = server.instance
        flavor = flavor or instance.flavor
        if kind is None:
            requests = instance.pci_requests
            claim = nova_internals.Claim(
                context, instance, self.name, self, self.node, requests,
                limits=limits)
        else:
            requests = nova_internals.move_requests(flavor, instance)
            claim = nova_internals.MoveClaim(
                context, instance, self.name, flavor, server.image_meta, self,
                self.node, requests, objects.Migration(
                    instance_uuid=instance.uuid, migration_type=kind),
                limits=limits)
        topology = claim.claimed_numa_topology
        batches = [requests]
        if kind == 'live-migration':
            # A live migration keeps the requests of the source.  Devices for
            # ports are assigned after those for aliases.
            requests = instance.pci_requests
            batches = [
                objects.InstancePCIRequests(requests=[
                    request for request in requests.requests
                    if (request.source ==
                        objects.InstancePCIRequest.NEUTRON_PORT) is port])
                for port in (False, True)]
        devices: list[objects.PciDevice] = []
        try:
            for batch in batches:
                devices += self.pci_tracker.claim_devices(
                    batch, topology, instance)
            # May raise as well, and then the devices go back.
            self._count(flavor, topology, 1)
        except exception.NovaException:
            self.pci_tracker.free_devices(devices, instance)
            raise
        return ServerClaim(flavor, topology, tuple(devices), requests)

    def give_back(self, instance: objects.Instance,
                  claimed: ServerClaim) -> None:
        self.pci_tracker.free_devices(claimed.devices, instance)
        self._count(claimed.flavor, claimed.topology, -1)

    def _count(self, flavor: objects.Flavor, topology: ty.Any,
               sign: int) -> None:
        """Add a server's usage to the node, or subtract it: ``sign`` -1."""
        node = self.node
        if topology is not None and node.numa_topology is not None:
            # NOTE: This must come first: it raises CPUPinningUnknown where
            # Nova's fit left a guest cell with the pins of another host cell.
            node.numa_topology = nova_internals.numa_usage_from_instance_numa(
                objects.NUMATopology.obj_from_db_obj(node.numa_topology),
                topology, free=sign < 0)._to_json()
        occupancy.record(node, occupancy.NOTHING.plus(
            occupancy.amounts(flavor), sign))
        # Replaced, not changed: HostStates of earlier requests may share the
        # old one.
        node.stats = {**node.stats, 'num_instances': str(node.running_vms)}
        if self.record.devices:
            self.report_pools()
        node.updated_at = timeutils.utcnow(with_timezone=True)
        # The parsed record of the host in the scheduler's cache is out of
        # date.
        self.version += 1

    def topology(self) -> objects.NUMATopology:
        if self.node.numa_topology is None:
            return objects.NUMATopology(cells=[])
        return objects.NUMATopology.obj_from_db_obj(self.node.numa_topology)


def is_mapped(host_state: ty.Any) -> bool:
    return host_state.service.get('mapped', True)
