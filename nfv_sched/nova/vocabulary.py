# SPDX-License-Identifier: Apache-2.0
"""List words of Nova and Placement that identify nobody."""

import functools
import importlib
import inspect
import pkgutil
import re
import types

from nova.api.validation.extra_specs import validators
from nova.compute import task_states
from nova.compute import vm_states
from nova.network import model as network_model
from nova.objects import fields
from nova.objects import image_meta
from nova.scheduler import filters
from nova.scheduler import weights
import os_resource_classes
import os_traits

from nfv_sched.nova import scheduler

# Words of values and keys that cannot be read from any list in Nova.
_OTHERS = """
    true false yes no on off none null unknown
    in or all-in s
    required forbidden preferred legacy socket prefer isolate require share
    strict shared dedicated mixed large small any
    affinity anti-affinity soft-affinity soft-anti-affinity
    max_server_per_host
    type-VF type-PF type-PCI type-VDPA vdpa available claimed allocated removed
    deleted unavailable unclaimable
    migration resize live-migration evacuation queued preparing running
    post-migrating pre-migrating migrating finished confirming confirmed
    reverting reverted done completed accepted cancelled error failed
    dhcp router ovn dvr dvr_snat dvr_no_external vlan vxlan gre geneve flat
    local
    availability_zone filter_tenant_id instance_type pinned
    cpu_allocation_ratio ram_allocation_ratio disk_allocation_ratio
    max_instances_per_host max_io_ops_per_host
    num_instances io_workload failed_builds num_
    physical_network trusted managed remote_managed dev_type capabilities
    resource_class traits rp_uuid rp_uuids parent_ifname vendor_id product_id
    network sriov vpd rx tx sg tso gso gro lro ufo rxvlan txvlan rxhash rdma
    arch model vendor topology features cells cores sockets threads
    architecture hypervisor_type vm_mode cpu_arch
    nova nfv_sched scheduler filters weights all_filters all_weighers
    resources trait member_of in_tree root_required group_policy
    wrs nfv hw os quota allow deny stock claim predicted accept refuse
    placement policy summary hosts default pack spread nfv_vswitch nfv_node
    Intel AMD
    name capability_type device_type numa_policy live_migratable pci address
    devname product_id domain bus slot function
""".split()
# Properties of images that contain numbers, though Nova accepts any text.
_NUMBERS = ('hw_cpu_realtime_mask', 'hw_mem_page_size')
# Properties with names of older releases, and those of nfv-sched.
_PROPERTY = re.compile(
    r'(?:architecture|hypervisor_type|vm_mode|hw_numa_(?:cpus|mem)\.\d{1,4}'
    r'|(?:trait|nfv|hw:wrs):.*|nfv_.*|hw_wrs_.*)', re.DOTALL)
_FREE_FIELDS = (fields.StringField, fields.UUIDField,
                fields.ListOfDictOfNullableStringsField)


@functools.cache
def words() -> frozenset[str]:
    names = set(_OTHERS)
    names.update(os_traits.get_traits(), os_resource_classes.STANDARDS)
    for trait in os_traits.get_traits():
        # libvirt's names of CPU features.
        names.update(trait.lower().split('_'))
    for module in (vm_states, task_states, network_model):
        names.update(value for name, value in vars(module).items()
                     if name.isupper() and isinstance(value, str))
    for _name, kind in inspect.getmembers(fields, inspect.isclass):
        values = getattr(kind, 'ALL', ())
        if isinstance(values, tuple | list | frozenset):
            names.update(filter(lambda value: isinstance(value, str), values))
    # The spelling that drivers report.
    names.update(map(str.upper, fields.HVType.ALL))
    names.update(image_meta.ImageMetaProps.fields)
    validators.load_validators()
    for key, validator in validators.VALIDATORS.items():
        if key.startswith(('hw', 'os:', 'quota:', 'pci_', 'accel:', 'group_',
                           'capabilities:', 'aggregate_', 'nfv:', 'hide_')):
            names.update(re.findall(r'[\w-]+', re.sub(r'\{.*?\}', '', key)))
            names.update(map(str, validator.value.get('enum', ())))
    names.update(_classes(filters), _classes(weights))
    return frozenset(names)


def _classes(package: types.ModuleType) -> set[str]:
    names = set()
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f'{package.__name__}.{info.name}')
        names.add(info.name)
        names.update(name for name, _kind in inspect.getmembers(
            module, inspect.isclass) if name.endswith(('Filter', 'Weigher')))
    return names


def is_image_property(name: str) -> bool:
    """Return whether an image property has few values or is a number."""
    if (field := image_meta.ImageMetaProps.fields.get(name)) is not None:
        return name in _NUMBERS or not isinstance(field, _FREE_FIELDS)
    return _PROPERTY.fullmatch(name) is not None


@functools.lru_cache(maxsize=4096)
def is_extra_spec(name: str) -> bool:
    # Names of metadata and of device profiles are chosen by administrators.
    return not name.startswith(('aggregate_', 'accel:')) and any(
        re.fullmatch(validator.name_regex, name)
        for validator in validators.VALIDATORS.values())


def options(section: str) -> frozenset[str]:
    conf = scheduler.CONF
    if section == 'DEFAULT':
        return frozenset(conf)
    return frozenset(conf[section]) if section in conf else frozenset()
