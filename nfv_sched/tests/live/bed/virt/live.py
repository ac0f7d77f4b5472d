# SPDX-License-Identifier: Apache-2.0
"""A compute driver that reports the host that a YAML file describes.

It is loaded as ``nova.virt.live.LiveDriver``: Nova looks for drivers below
``nova.virt`` only, which :mod:`nfv_sched.tests.live.bed.compute` extends by
this directory.  In DevStack a link there, ``nova.virt.nfv_sched_live``, leads
to it.  Guests are entries in a file, so that they outlive the process
of nova-compute; resource tracker, claims and RPC are Nova's own.
"""

import json
import os
import pathlib
import threading
import time

import nova.conf
from nova import objects
from nova.objects import migrate_data
from nova.virt import driver
from nova.virt import fake
from nova.virt import node
import os_resource_classes as orc
import os_traits
from oslo_utils import units

from nfv_sched.tests.live.bed import cloud

CONF = nova.conf.CONF

_SMALL_KIB = 4
_PAGES_KIB = {'pages_2m': 2048, 'pages_1g': 1048576}


def _mempages(numa_node):
    huge = [objects.NUMAPagesTopology(
        size_kb=size, total=getattr(numa_node, name), used=0, reserved=0)
        for name, size in _PAGES_KIB.items()]
    left = numa_node.memory_mb * units.Ki - sum(
        page.total * page.size_kb for page in huge)
    small = objects.NUMAPagesTopology(
        size_kb=_SMALL_KIB, total=left // _SMALL_KIB, used=0, reserved=0)
    return [small] + huge


def _cell(host, index, first_cpu):
    numa_node = host.numa_nodes[index]
    cpus = list(range(first_cpu, first_cpu + numa_node.cpus))
    return objects.NUMACell(
        id=index,
        socket=numa_node.socket,
        cpuset=set(cpus[:numa_node.shared_cpus]),
        pcpuset=set(cpus[numa_node.shared_cpus:]),
        siblings=[set(cpus[start:start + numa_node.threads])
                  for start in range(0, len(cpus), numa_node.threads)],
        memory=numa_node.memory_mb,
        mempages=_mempages(numa_node),
        cpu_usage=0, memory_usage=0, pinned_cpus=set(),
        network_metadata=objects.NetworkMetadata(
            physnets={name for name, nodes in host.physnets.items()
                      if index in nodes},
            tunneled=False))


def numa_topology(host):
    """The NUMA topology of a host, without usage."""
    cells = []
    first_cpu = 0
    for index, numa_node in enumerate(host.numa_nodes):
        cells.append(_cell(host, index, first_cpu))
        first_cpu += numa_node.cpus
    return objects.NUMATopology(cells=cells)


def _device(nic, address, product_id, dev_type, **more):
    return {
        'dev_id': 'pci_' + address.replace(':', '_').replace('.', '_'),
        'address': address,
        'vendor_id': cloud.VENDOR,
        'product_id': product_id,
        'label': f'label_{cloud.VENDOR}_{product_id}',
        'dev_type': dev_type,
        'numa_node': nic.numa_node,
        'status': 'available',
        'parent_addr': None,
        **more,
    }


def pci_devices(host):
    devices = []
    for nic in host.pci:
        parent = f'0000:{nic.bus}:00.0'
        if not nic.vfs:
            devices.append(_device(
                nic, parent, nic.product_id, 'type-PCI'))
            continue
        devices.append(_device(
            nic, parent, nic.product_id, 'type-PF',
            mac_address=f'02:00:00:00:{nic.bus}:00'))
        devices += [
            _device(nic, f'0000:{nic.bus}:{1 + index // 8:02x}.{index % 8}',
                    cloud.VF_PRODUCT, 'type-VF', parent_addr=parent)
            for index in range(nic.vfs)]
    return devices


class LiveDriver(fake.FakeDriver):
    """One host of the cloud, the one that is called as CONF.host is."""

    capabilities = dict(
        fake.FakeDriver.capabilities,
        supports_pcpus=True,
        supports_socket_pci_numa_affinity=True,
    )

    def __init__(self, virtapi, read_only=False):
        state = pathlib.Path(CONF.state_path)
        self._host_description = cloud.load(state / 'cloud.yaml')[CONF.host]
        host = self._host_description
        self.vcpus = host.vcpus + host.pcpus
        self.memory_mb = host.memory_mb
        self.local_gb = host.disk_gb
        super().__init__(virtapi, read_only)
        self._guests_file = state / 'guests.json'
        # nova-compute builds several guests at a time.
        self._saving = threading.Lock()

    def init_host(self, host):
        super().init_host(host)
        try:
            guests = json.loads(self._guests_file.read_text())
        except FileNotFoundError:
            return
        for guest in guests:
            self.instances[guest['uuid']] = fake.FakeInstance(
                guest['name'], guest['state'], guest['uuid'])

    def _save_guests(self):
        partial = self._guests_file.with_suffix(f'.{os.getpid()}.new')
        with self._saving:
            partial.write_text(json.dumps(
                [{'name': guest.name, 'state': guest.state,
                  'uuid': guest.uuid}
                 for guest in list(self.instances.values())]))
            partial.replace(self._guests_file)

    def spawn(self, *args, **kwargs):
        super().spawn(*args, **kwargs)
        self._save_guests()

    def destroy(self, *args, **kwargs):
        super().destroy(*args, **kwargs)
        self._save_guests()

    def power_off(self, *args, **kwargs):
        super().power_off(*args, **kwargs)
        self._save_guests()

    def power_on(self, *args, **kwargs):
        super().power_on(*args, **kwargs)
        self._save_guests()

    def get_nodenames_by_uuid(self, refresh=False):
        # The base class of the fake driver gives what is in the file
        # compute_id, so that a restarted nova-compute is the same node.
        return driver.ComputeDriver.get_nodenames_by_uuid(self, refresh)

    def get_available_resource(self, nodename):
        resources = super().get_available_resource(nodename)
        resources['uuid'] = node.get_local_node_uuid()
        resources['numa_topology'] = numa_topology(
            self._host_description)._to_json()
        resources['pci_passthrough_devices'] = json.dumps(
            pci_devices(self._host_description))
        return resources

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        ratios = self._get_allocation_ratios(
            provider_tree.data(nodename).inventory)
        host = self._host_description
        totals = {
            orc.VCPU: (host.vcpus, ratios[orc.VCPU]),
            orc.PCPU: (host.pcpus, 1.0),
            orc.MEMORY_MB: (host.memory_mb, ratios[orc.MEMORY_MB]),
            orc.DISK_GB: (host.disk_gb, ratios[orc.DISK_GB]),
        }
        provider_tree.update_inventory(nodename, {
            name: {'total': total, 'min_unit': 1, 'max_unit': total,
                   'step_size': 1, 'allocation_ratio': ratio, 'reserved': 0}
            for name, (total, ratio) in totals.items() if total})
        if host.threads > 1:
            provider_tree.add_traits(
                nodename, os_traits.HW_CPU_HYPERTHREADING)
        else:
            provider_tree.remove_traits(
                nodename, os_traits.HW_CPU_HYPERTHREADING)

    # With these flags the compute manager makes a claim on the destination of
    # a live migration, and pins the guest anew.
    def check_can_live_migrate_destination(self, context, instance, *args,
                                           **kwargs):
        data = super().check_can_live_migrate_destination(
            context, instance, *args, **kwargs)
        if instance.numa_topology:
            data.dst_supports_numa_live_migration = True
        return data

    def check_can_live_migrate_source(self, context, instance,
                                      dest_check_data, block_device_info=None):
        if instance.numa_topology:
            dest_check_data.src_supports_numa_live_migration = True
        return dest_check_data

    def post_claim_migrate_data(self, context, instance, migrate_data_, claim):
        cells = claim.claimed_numa_topology.cells
        migrate_data_.dst_numa_info = migrate_data.LibvirtLiveMigrateNUMAInfo(
            cpu_pins={str(guest_cpu): {host_cpu} for cell in cells
                      for guest_cpu, host_cpu in (
                          cell.cpu_pinning or {}).items()},
            cell_pins={str(index): {cell.id}
                       for index, cell in enumerate(cells)})
        return migrate_data_

    def live_migration(self, context, instance, *args, **kwargs):
        time.sleep(float(instance.metadata.get(cloud.MIGRATION_SECONDS, 0)))
        super().live_migration(context, instance, *args, **kwargs)

    def post_live_migration_at_source(self, context, instance, network_info):
        self.instances.pop(instance.uuid, None)
        self._save_guests()
