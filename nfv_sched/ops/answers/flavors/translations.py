# SPDX-License-Identifier: Apache-2.0
"""List keys of Helion / Titanium Carrier Grade and Intel with translations.

Sources: validators and metadata definitions of Titanium, the Helion Carrier
Grade guide, Intel's guide to Enhanced Platform Awareness.  Values are not
checked here.
"""

from collections.abc import Callable, Mapping
import re
import typing as ty

import os_traits
from oslo_utils import strutils

from nfv_sched.base import extra_specs

#: Where a name is used.
FLAVOR, IMAGE = 'flavor', 'image'

#: The same key with the same value in Nova.
SAME = 'same'
#: The same key with another value.
CHANGED = 'changed'
#: Another key with the same meaning.
RENAMED = 'renamed'
#: Several keys together, or a key that comes close.
COMBINATION = 'combination'
#: An option of hosts, not of a flavor.
HOST = 'host option'
#: A feature of another service.
SERVICE = 'other service'
#: No counterpart.
NONE = 'none'
#: Kinds that leave something to do by hand, or are lost.
LOST = (HOST, SERVICE, NONE)

Specs = Mapping[str, str]
#: Function that translates a key: (its value, all keys) -> keys with values.
Becomes = Callable[[str, Specs], Specs]


class Translation(ty.NamedTuple):
    where: str  #: where it is used, such as :data:`FLAVOR`
    #: the key; ``.N`` at its end stands for a number, ``*`` for anything
    key: str
    kind: str  #: :data:`SAME` and so on
    becomes: Becomes
    do: str = ''  #: what else to do, or what is lost
    #: values equal to the default, besides "no"
    harmless: tuple[str, ...] = ()

    def is_harmless(self, value: str) -> bool:
        """Return whether nothing is lost if the value is dropped."""
        return self.kind != SAME and value.strip().lower() in (
            *self.harmless, *_OFF)


# Keys of Titanium, which was strict about PCI devices unless told otherwise.
WRS = ('hw:wrs:', 'sw:wrs:')
_PCI_AFFINITY = (*extra_specs.PCI_KEYS, extra_specs.NATIVE_PCI_KEY)

_OFF = ('false', 'no', 'off', 'n', 'f')
is_true = strutils.bool_from_string


def _drop(value: str, specs: Specs) -> Specs:
    return {}


def _move_to(key: str) -> Becomes:
    return lambda value, specs: {key: value}


def _if_true(key: str, fixed: str) -> Becomes:
    return lambda value, specs: {
        key: specs.get(key, fixed)} if is_true(value) else {}


def _cpu_policy(value: str, specs: Specs) -> Specs:
    is_mixed = value == 'dedicated' and not specs.keys().isdisjoint((
        extra_specs.SHARED_VCPU,
        extra_specs.SYNONYMS[extra_specs.SHARED_VCPU]))
    return {'hw:cpu_policy': 'mixed' if is_mixed else value}


def _pages(value: str, specs: Specs) -> Specs:
    return {'hw:mem_page_size': {
        '2048': '2MB', '1048576': '1GB'}.get(value, value)}


def _pci_affinity(value: str, specs: Specs) -> Specs:
    """Set Nova's own key as well, so that the claim cannot differ."""
    replacement = {extra_specs.PCI_NUMA_AFFINITY: value}
    native = {'strict': 'required', 'prefer': 'preferred'}.get(value)
    if native is not None and extra_specs.NATIVE_PCI_KEY not in specs:
        replacement[extra_specs.NATIVE_PCI_KEY] = native
    return replacement


def _shared_vcpu(value: str, specs: Specs) -> Specs:
    """Set the policy ``mixed`` with all vCPUs dedicated but this one.

    A mask of real-time vCPUs also says which ones are dedicated, and Nova
    accepts only one of the two masks.
    """
    replacement = {extra_specs.SHARED_VCPU: value, 'hw:cpu_policy': 'mixed'}
    realtime = is_true(specs.get('hw:cpu_realtime', '')) and (
        'hw:cpu_realtime_mask' in specs)
    if not realtime and 'hw:cpu_dedicated_mask' not in specs:
        replacement['hw:cpu_dedicated_mask'] = f'^{value}'
    return replacement


def _realtime(value: str, specs: Specs) -> Specs:
    replacement = {'hw:cpu_realtime': value}
    if is_true(value) and 'hw:emulator_threads_policy' not in specs:
        replacement['hw:emulator_threads_policy'] = 'share'
    return replacement


def _features(value: str, specs: Specs) -> Specs:
    name = value.removeprefix('<in>').strip().upper()
    name = {'AES': 'AESNI', 'PCLMULQDQ': 'CLMUL'}.get(name, name)
    trait = f'HW_CPU_X86_{name.replace(".", "").replace("-", "_")}'
    if trait in os_traits.get_traits('HW_CPU_X86_'):
        return {f'trait:{trait}': 'required'}
    return {'capabilities:cpu_info:features': value}


def _tpm(value: str, specs: Specs) -> Specs:
    """Set a TPM version, without which Nova ignores the model."""
    if not is_true(value):
        return {}
    if 'hw:tpm_version' in specs:
        return {'hw:tpm_version': specs['hw:tpm_version']}
    return {'hw:tpm_version': '2.0',
            'hw:tpm_model': specs.get('hw:tpm_model', 'tpm-crb')}


def _avp(value: str, specs: Specs) -> Specs:
    if value != 'avp':
        return {'hw_vif_model': value}
    return {'hw_vif_model': 'virtio', 'hw_vif_multiqueue_enabled': 'true'}


_HOST_WIDE = 'an option of [libvirt] in the nova.conf of the hosts: '
_TRAIT = ('nova.conf of the hosts: [libvirt] cpu_mode, cpu_models; in the '
          'flavor: trait:HW_CPU_X86_*=required for what it must have')
_HPET = ('a property of the image: openstack image set --property '
         'hw_time_hpet=true IMAGE')
_MASAKARI = ('Masakari restarts servers (metadata HA_Enabled of the server, '
             'by its configuration)')
_ISOLATE = ('Nova keeps isolate only on hosts without hyperthreading, or '
            'with vcpu_pin_set; on others use require and twice the vCPUs')
_PIECES = ('each guest NUMA node may have another size; 2MB or 1GB is the '
           'same everywhere, also after a migration')

# "No" for a key that is not a number.
_ZERO = ('0',)

_FLAVORS = (
    *((key, SAME, None) for key in (
        'hw:cpu_thread_policy', 'hw:numa_nodes', 'hw:numa_cpus.N',
        'hw:numa_mem.N', 'hw:cpu_realtime_mask', 'pci_passthrough:alias',
        'quota:disk_*')),
    ('hw:cpu_policy', SAME, _cpu_policy),
    ('hw:mem_page_size', SAME, _pages),
    ('hw:numa_node.N', RENAMED, _move_to('nfv:numa_node.N')),
    ('hw:wrs:vswitch_numa_affinity', RENAMED,
     _move_to(extra_specs.VSWITCH_NUMA_AFFINITY)),
    ('hw:wrs:pci_numa_affinity', RENAMED, _pci_affinity),
    ('hw:wrs:shared_vcpu', COMBINATION, _shared_vcpu),
    ('hw:wrs:min_vcpus', NONE, _drop,
     'a server has all its vCPUs; resize it to another flavor'),
    ('hw:cpu_realtime', SAME, _realtime),
    ('hw:wrs:vcpu:scheduler', COMBINATION, _drop,
     'by hand: hw:cpu_realtime=true and hw:cpu_realtime_mask with the vCPUs '
     'that are not to be realtime, such as ^0'),
    ('hw:cpu_model', HOST, _drop, _TRAIT),
    ('hw:wrs:nested_vmx', HOST,
     _if_true('trait:HW_CPU_X86_VMX', 'required'),
     'hosts must pass vmx to their servers, by [libvirt] cpu_mode or '
     'cpu_model_extra_flags', _ZERO),
    ('hw:hpet', COMBINATION, _drop, _HPET, _ZERO),
    ('sw:wrs:guest:hpet', COMBINATION, _drop, _HPET, _ZERO),
    *((key, NONE, _drop, 'Nova allocates no cache') for key in (
        'hw:cache_l3.N', 'hw:cache_l3_code.N', 'hw:cache_l3_data.N',
        'hw:cache_vcpus.N')),
    ('hw:pci_irq_affinity_mask', NONE, _drop,
     'interrupts of devices are not placed by Nova'),
    ('hw:wrs:live_migration_timeout', HOST, _drop,
     _HOST_WIDE + 'live_migration_completion_timeout, seconds per GiB'),
    ('hw:wrs:live_migration_max_downtime', HOST, _drop,
     _HOST_WIDE + 'live_migration_downtime'),
    ('hw:wrs:live_migration_auto_converge', HOST, _drop,
     _HOST_WIDE + 'live_migration_permit_auto_converge', _ZERO),
    ('hw:wrs:live_migration_tunnel', HOST, _drop,
     _HOST_WIDE + 'live_migration_with_native_tls (tunnelled migration is '
     'deprecated)', _ZERO),
    ('sw:wrs:auto_recovery', SERVICE, _drop, _MASAKARI, _ZERO),
    ('sw:wrs:guest:heartbeat', COMBINATION,
     _if_true('hw:watchdog_action', 'reset'),
     'the server needs a watchdog daemon; other actions: poweroff, pause, '
     'none', _ZERO),
    ('sw:wrs:vtpm', COMBINATION, _tpm,
     'hosts need [libvirt] swtpm_enabled and the key manager', _ZERO),
    ('sw:wrs:srv_grp_messaging', NONE, _drop,
     'servers of a server group talk over a network', _ZERO),
    ('hw:wrs:nic_isolation', NONE, _drop,
     'see hw:mem_page_size and port security', _ZERO),
    ('aggregate_instance_extra_specs:storage', SAME, None,
     'needs AggregateInstanceExtraSpecsFilter, and storage in the metadata '
     'of aggregates'),
    # Intel
    ('hw:capabilities:cpu_info:features', COMBINATION, _features),
    ('hw:numa_mempolicy', NONE, _drop,
     'memory is always taken strictly from the NUMA nodes of the server',
     ('strict',)),
)

_IMAGES = (
    *((key, SAME, None) for key in (
        'hw_mem_page_size', 'hw_cpu_policy', 'hw_cpu_thread_policy',
        'hw_numa_nodes', 'hw_numa_cpus.N', 'hw_numa_mem.N',
        'hw_cpu_realtime_mask', 'hw_vif_multiqueue_enabled')),
    ('hw_vif_model', COMBINATION, _avp),
    ('hw_numa_node.N', NONE, _drop,
     'set nfv:numa_node.N in the flavor: this property cannot reach Nova\'s '
     'objects, so nfv-sched cannot read it'),
    ('hw_cpu_model', HOST, _drop, _TRAIT),
    ('hw_wrs_live_migration_timeout', HOST, _drop,
     _HOST_WIDE + 'live_migration_completion_timeout, seconds per GiB'),
    ('hw_wrs_live_migration_max_downtime', HOST, _drop,
     _HOST_WIDE + 'live_migration_downtime'),
    ('hw_wrs_*', NONE, _drop, 'remove it'),
    ('sw_wrs_auto_recovery', SERVICE, _drop, _MASAKARI, _ZERO),
    ('sw_wrs_*', NONE, _drop, 'remove it'),
)

TABLE = tuple([
    Translation(where, key, kind, becomes or _move_to(key), *rest)
    for where, rows in ((FLAVOR, _FLAVORS), (IMAGE, _IMAGES))
    for key, kind, becomes, *rest in rows])


def find(where: str, key: str) -> Translation | None:
    return next((each for each in TABLE if each.where == where and
                 _match(each.key, key) is not None), None)


def becomes(translation: Translation, key: str, value: str,
            specs: Specs) -> dict[str, str]:
    varying = _match(translation.key, key) or ''
    return {_PLACE.sub(lambda _match: varying, each): new
            for each, new in translation.becomes(value, specs).items()}


def advice(translation: Translation, value: str, specs: Specs) -> str:
    if translation.key == 'pci_passthrough:alias' and (
            any(key.startswith(WRS) for key in specs) and
            specs.keys().isdisjoint(_PCI_AFFINITY)):
        return (f'devices were on the NUMA nodes of the server, or it was '
                f'refused; set {extra_specs.PCI_NUMA_AFFINITY}=strict if that '
                'is wanted')
    more = {('hw:cpu_thread_policy', 'isolate'): _ISOLATE,
            ('hw:mem_page_size', 'large'): _PIECES,
            ('hw:mem_page_size', 'any'): _PIECES,
            ('hw_vif_model', 'avp'): 'set hw:mem_page_size in the flavor, too'}
    return more.get((translation.key, value), translation.do)


# The variable part of a key of the table.
_PLACE = re.compile(r'(?<=\.)N$|\*$')
_PATTERNS = {'N': '[0-9]+', '*': '.*', '': ''}


def _match(table_key: str, key: str) -> str | None:
    """Return the variable part of a key; None if it does not match."""
    begin = _PLACE.sub('', table_key)
    pattern = _PATTERNS[table_key[len(begin):]]
    rest = key.removeprefix(begin)
    return rest if key.startswith(begin) and re.fullmatch(
        pattern, rest) else None
