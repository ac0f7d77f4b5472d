# SPDX-License-Identifier: Apache-2.0
"""Nova's databases with a cloud in them: schema, cells, hosts and servers.

To be run as a process of its own, with a nova.conf:

    python -m nfv_sched.tests.nova_database --config-file nova.conf
        --hosts 2 --guests 3 cell0=URL cell1=URL

It makes the schema as nova-manage does, in databases that exist and are empty.
Hosts are dealt to the cells after the first.  Each has two NUMA nodes of 28
dedicated CPUs, 16 VFs, and pinned guests with a VF and two ports each.  What
is stored is what Nova's objects say; names and UUIDs follow from numbers.
"""

import argparse
from collections.abc import Iterator
import datetime
import json
import sys
import typing as ty
import uuid

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova.db import migration
from nova import objects

from nfv_sched.nova import database

CORES = 14  # of a node, each of two threads
#: Number of the guest of each host that has a share of Manila.
SHARING = 2
VFS = 16
VCPUS = 4
MIB = 4096
FLAVORS = 20
_PAGE = 1024 * 1024  # KiB
_NODE_MIB = 128 * 1024
_ROWS = 500  # of one statement
_NAMESPACE = uuid.UUID('8cc3d4b6-8a4a-4f1d-9d43-fb40cbf7d8a3')
_NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


def identifier(kind: str, *numbers: int) -> str:
    """Return the UUID of something.

    :param numbers: its number, and those of what it belongs to
    """
    return str(uuid.uuid5(_NAMESPACE, f'{kind} {numbers}'))


def host_name(number: int) -> str:
    return f'compute-{number:04d}'


def ports(hosts: int, guests: int) -> Iterator[dict[str, ty.Any]]:
    """The ports of the guests, as arguments of ``neutron_api.port``."""
    for host in range(hosts):
        for guest in range(guests):
            for number in range(2):
                yield {
                    'port_id': identifier('port', host, guest, number),
                    'device': identifier('server', host, guest),
                    'host': host_name(host),
                    'vnic_type': 'direct' if number else 'normal',
                    'project': identifier('project', host % 100)}


def _address(host: int, vf: int) -> str:
    return f'0000:{0x81 + vf // 8:02x}:{vf % 8 // 4 + 2:02x}.{vf % 4}'


def _pins(guest: int) -> tuple[int, list[int]]:
    """The host node of a guest, and the CPUs that it is pinned to."""
    node, place = guest % 2, guest // 2
    first = node * CORES + place * VCPUS // 2
    cores = range(first, first + VCPUS // 2)
    return node, [cpu for core in cores for cpu in (core, core + 2 * CORES)]


def _topology(guests: int) -> str:
    cells = []
    for node in range(2):
        own = [_pins(guest) for guest in range(guests) if guest % 2 == node]
        cores = range(node * CORES, (node + 1) * CORES)
        cells.append(objects.NUMACell(
            id=node, socket=node, cpuset=set(),
            pcpuset={cpu for core in cores
                     for cpu in (core, core + 2 * CORES)},
            memory=_NODE_MIB, cpu_usage=VCPUS * len(own),
            memory_usage=MIB * len(own),
            pinned_cpus={cpu for _, cpus in own for cpu in cpus},
            siblings=[{core, core + 2 * CORES} for core in cores],
            mempages=[
                objects.NUMAPagesTopology(
                    size_kb=4, total=8 * 1024 * 1024, used=0, reserved=0),
                objects.NUMAPagesTopology(
                    size_kb=_PAGE, total=96, used=MIB // 1024 * len(own),
                    reserved=1)],
            network_metadata=objects.NetworkMetadata(
                physnets={f'nfv_node{node}'}, tunneled=node == 0)))
    return objects.NUMATopology(cells=cells)._to_json()


def _free_devices(guests: int) -> str:
    pools = objects.PciDevicePoolList(objects=[
        objects.PciDevicePool(
            vendor_id='8086', product_id='154c', numa_node=node,
            count=len([vf for vf in range(guests, VFS) if vf % 2 == node]),
            tags={'dev_type': 'type-VF', 'physical_network': 'physnet2'})
        for node in range(2)])
    return json.dumps(pools.obj_to_primitive())


def _guest_topology(guest: int):
    node, cpus = _pins(guest)
    cell = objects.InstanceNUMACell(
        id=node, cpuset=set(), pcpuset=set(range(VCPUS)), memory=MIB,
        pagesize=_PAGE, cpu_policy='dedicated', cpu_thread_policy='prefer',
        cpu_pinning=dict(enumerate(cpus)))
    return objects.InstanceNUMATopology(cells=[cell])


def _extra_specs(number: int) -> dict[str, str]:
    return {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '1GB',
            'pci_passthrough:alias': 'nic:1',
            'nfv:vswitch_numa_affinity': ('strict', 'prefer')[number % 2]}


def _flavor(number: int):
    return objects.Flavor(
        id=number + 1, name=f'flavor-{number}', flavorid=str(number),
        memory_mb=MIB, vcpus=VCPUS, root_gb=20, ephemeral_gb=0, swap=0,
        rxtx_factor=1.0, vcpu_weight=0, is_public=True, disabled=False,
        extra_specs=_extra_specs(number))


def _network_info(host: int, guest: int) -> str:
    return json.dumps([{
        'id': identifier('port', host, guest, number),
        'address': 'fa:16:3e:00:00:00', 'type': 'ovs',
        'vnic_type': 'direct' if number else 'normal',
        'profile': {'pci_slot': _address(host, guest)} if number else {},
        'ovs_interfaceid': identifier('port', host, guest, number),
        'devname': 'tap00000000-00', 'active': True, 'details': {},
        'network': {
            'id': identifier('network', number), 'bridge': 'br-int',
            'label': f'network-{number}',
            'meta': {'injected': False, 'physical_network': 'physnet2'}
            if number else {'injected': False, 'tunneled': True},
            'subnets': [{
                'cidr': '192.0.2.0/24', 'dns': [], 'routes': [],
                'gateway': {'address': '192.0.2.1', 'type': 'gateway'},
                'ips': [{'address': '192.0.2.7', 'type': 'fixed',
                         'floating_ips': [], 'meta': {}, 'version': 4}],
                'version': 4, 'meta': {}}]},
    } for number in range(2)])


def _request_spec(server: str, flavor, topology) -> str:
    return json.dumps(objects.RequestSpec(
        instance_uuid=server, flavor=flavor, num_instances=1,
        project_id=identifier('project', 0), user_id='user',
        availability_zone=None, scheduler_hints={},
        image=objects.ImageMeta(
            properties=objects.ImageMetaProps(hw_vif_model='virtio')),
        numa_topology=topology,
        pci_requests=objects.InstancePCIRequests(
            instance_uuid=server, requests=[]),
    ).obj_to_primitive())


class _Tables:
    """Rows to be written, some at a time."""

    def __init__(self, manager, context):
        self._manager = manager
        self._context = context
        self._rows = {}

    def add(self, model, **values):
        rows = self._rows.setdefault(model.__table__, [])
        rows.append(values)
        if len(rows) == _ROWS:
            # Whole, and in order: rows refer to rows of other tables.
            self.flush()

    def _write(self, table):
        rows, self._rows[table] = self._rows.get(table), []
        if rows:
            with self._manager.writer.using(self._context) as session:
                session.execute(table.insert(), rows)

    def flush(self):
        for table in list(self._rows):
            self._write(table)


def _fill_host(tables: _Tables, api: _Tables, cell: int, number: int,
               row: int, guests: int, flavors: list) -> None:
    name = host_name(number)
    api.add(api_models.HostMapping, host=name, cell_id=cell)
    tables.add(
        main_models.Service, uuid=identifier('service', number), host=name,
        binary='nova-compute', topic='compute', report_count=1,
        disabled=False, forced_down=False, created_at=_NOW,
        last_seen_up=datetime.datetime.now(), version=68, deleted=0)
    tables.add(
        main_models.ComputeNode, id=row, uuid=identifier('compute', number),
        host=name, hypervisor_hostname=name, hypervisor_type='QEMU',
        hypervisor_version=8002000, cpu_info=json.dumps(
            {'arch': 'x86_64', 'model': 'Icelake-Server', 'features': [
                f'feature-{index}' for index in range(80)]}),
        vcpus=4 * CORES, vcpus_used=VCPUS * guests, memory_mb=2 * _NODE_MIB,
        memory_mb_used=MIB * guests, local_gb=2000, local_gb_used=20 * guests,
        stats=json.dumps({'num_instances': guests}),
        cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0,
        disk_allocation_ratio=1.0, numa_topology=_topology(guests),
        pci_stats=_free_devices(guests), deleted=0)
    for vf in range(VFS):
        server = identifier('server', number, vf) if vf < guests else None
        tables.add(
            main_models.PciDevice, uuid=identifier('device', number, vf),
            compute_node_id=row, address=_address(number, vf),
            vendor_id='8086', product_id='154c', dev_type='type-VF',
            dev_id=f'pci_{vf}', label='label_8086_154c', numa_node=vf % 2,
            status='allocated' if server else 'available',
            parent_addr=f'0000:{0x81 + vf // 8:02x}:00.0',
            instance_uuid=server, request_id=None,
            extra_info='{"capabilities": "{}"}', deleted=0)
    for guest in range(guests):
        _fill_guest(tables, api, number, guest,
                    flavors[(number + guest) % len(flavors)])


def _fill_guest(tables: _Tables, api: _Tables, host: int, guest: int,
                flavor) -> None:
    server = identifier('server', host, guest)
    topology = _guest_topology(guest)
    tables.add(
        main_models.Instance, uuid=server, display_name=f'vm-{host}-{guest}',
        hostname=f'vm-{host}-{guest}', host=host_name(host),
        node=host_name(host), project_id=identifier('project', host % 100),
        vm_state='active', vcpus=VCPUS, memory_mb=MIB, root_gb=20,
        ephemeral_gb=0, hidden=False, created_at=_NOW, deleted=0)
    tables.add(
        main_models.InstanceExtra, instance_uuid=server,
        numa_topology=topology._to_json(), flavor=json.dumps(
            {'cur': flavor.obj_to_primitive(), 'old': None, 'new': None}),
        deleted=0)
    tables.add(
        main_models.InstanceInfoCache, instance_uuid=server,
        network_info=_network_info(host, guest), deleted=0)
    for key, value in (
        ('image_hw_vif_model', 'virtio'), ('image_hw_disk_bus', 'virtio'),
        ('image_min_ram', '0'), ('image_min_disk', '20'),
        ('image_base_image_ref', server), ('image_os_distro', 'debian'),
        ('boot_roles', 'member'), ('owner_user_name', 'user'),
    ):
        tables.add(main_models.InstanceSystemMetadata, instance_uuid=server,
                   key=key, value=value, deleted=0)
    if guest == SHARING:
        tables.add(main_models.ShareMapping, uuid=server,
                   instance_uuid=server, share_id=server, tag='share',
                   status='active', share_proto='NFS',
                   export_location='nfs.example:/share')
    api.add(api_models.RequestSpec, instance_uuid=server,
            spec=_request_spec(server, flavor, topology))


def _fill_api(tables: _Tables, hosts: int,
              flavors: list) -> None:
    for flavor in flavors:
        tables.add(api_models.Flavors, **{
            name: getattr(flavor, name) for name in (
                'id', 'name', 'flavorid', 'memory_mb', 'vcpus', 'root_gb',
                'ephemeral_gb', 'swap', 'rxtx_factor', 'vcpu_weight',
                'is_public', 'disabled')})
    tables.flush()
    for flavor in flavors:
        for key, value in flavor.extra_specs.items():
            tables.add(api_models.FlavorExtraSpecs, flavor_id=flavor.id,
                       key=key, value=value)
    tables.add(api_models.Aggregate, id=1, uuid=identifier('aggregate', 0),
               name='racks')
    tables.flush()
    tables.add(api_models.AggregateMetadata, aggregate_id=1,
               key='availability_zone', value='west')
    for number in range(0, hosts, 2):
        tables.add(api_models.AggregateHost, aggregate_id=1,
                   host=host_name(number))
    tables.flush()


def make(cells: dict[str, str], hosts: int, guests: int) -> None:
    """Make the schema in the databases, and fill them.

    :param cells: name -> address of the database; the first one is cell0
    :param hosts: in all cells
    :param guests: on each host
    """
    context = nova_context.get_admin_context()
    migration.db_sync(database='api')
    mappings = []
    for name, url in cells.items():
        mapping = objects.CellMapping(
            context, name=name, transport_url='none:///',
            uuid=identifier('cell', len(mappings)) if mappings
            else objects.CellMapping.CELL0_UUID,
            database_connection=url, disabled=False)
        mapping.create()
        mappings.append(mapping)
        with nova_context.target_cell(context, mapping) as cell:
            migration.db_sync(context=cell)
    flavors = [_flavor(number) for number in range(FLAVORS)]
    api = _Tables(api_db.context_manager, context)
    _fill_api(api, hosts, flavors)
    for index, mapping in enumerate(mappings[1:]):
        with nova_context.target_cell(context, mapping) as cell:
            tables = _Tables(main_db.get_context_manager(cell), cell)
            for row, number in enumerate(
                    range(index, hosts, len(mappings) - 1), 1):
                _fill_host(tables, api, mapping.id, number, row, guests,
                           flavors)
            tables.flush()
    api.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--config-file', required=True)
    parser.add_argument('--hosts', type=int, required=True)
    parser.add_argument('--guests', type=int, required=True)
    parser.add_argument('cells', nargs='+', metavar='NAME=URL')
    args = parser.parse_args()
    database.read_configuration(
        [f'--config-file={args.config_file}'], parser.prog, '')
    make(dict(cell.split('=', 1) for cell in args.cells), args.hosts,
         args.guests)
    return 0


if __name__ == '__main__':
    sys.exit(main())
