# SPDX-License-Identifier: Apache-2.0
"""Small clouds in which all that can limit a flavor does."""

import dataclasses

from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests.unit.ops import small_clouds


def _shared_node():
    """Return a host whose NUMA node has two shared CPUs."""
    return small_clouds.stocked(
        small_clouds.host('one', dataclasses.replace(
            small_clouds.node(0), shared=frozenset((0, 1)),
            dedicated=frozenset(range(2, 8)), shared_used=1)),
        VCPU=snapshot.Inventory(total=2, ratio=4.0, max_unit=8))


def _little_memory():
    """A host that has reserved most memory in Placement."""
    host = small_clouds.host()
    return small_clouds.stocked(host, MEMORY_MB=dataclasses.replace(
        host.providers[0].inventories['MEMORY_MB'], reserved=61440))


def _with_gpus():
    host = small_clouds.host()
    return dataclasses.replace(host, providers=(*host.providers, *(
        snapshot.Provider(
            uuid=f'{used}' * 8 + host.uuid[8:], name=f'gpu{used}',
            parent=host.uuid, traits=frozenset({'CUSTOM_GPU'}), inventories={
                'VGPU': snapshot.Inventory(total=2, used=used)})
        for used in (0, 1))))


def card(**more):
    """A cloud with a PF and its VF, which no claim gets together."""
    vf = small_clouds.device(1, 1)
    pf = dataclasses.replace(
        vf, kind='type-PF', address='0000:01:00.0',
        tags={'address': '0000:01:00.0'})
    return small_clouds.cloud(
        small_clouds.host(devices=(pf, dataclasses.replace(
            vf, parent=pf.address, tags=pf.tags))),
        pci={'alias': [
            f'{{"name": "{name}", "device_type": "type-{kind}", '
            '"vendor_id": "8086", "product_id": "154d"}'
            for name, kind in (('pf', 'PF'), ('vf', 'VF'))]}, **more)


def _cloud(*hosts, **flavors):
    return small_clouds.cloud(*hosts, flavors=tuple([
        small_clouds.flavor(fields.pop('vcpus', 4), name=name, **fields)
        for name, fields in flavors.items()]))


_NODE, _HOST, _DEVICE = (
    small_clouds.node, small_clouds.host, small_clouds.device)
_HUGE = {'hw__mem_page_size': '1GB'}
_SWITCH = {'nfv__vswitch_numa_affinity': 'strict'}
_REQUIRE = {'hw__cpu_thread_policy': 'require'}
_THREADS = ('HW_CPU_HYPERTHREADING',)
#: What it shows -> cloud. What is told of each is in golden/limits.*.txt.
LIMITED = {
    'pages': _cloud(_HOST('one', _NODE(0, huge=15), _NODE(1, huge=16)),
                    huge=_HUGE),
    # One CPU of each core is free.
    'threads': _cloud(
        _HOST('one', _NODE(0, (0, 2, 4, 6)), traits=_THREADS),
        require=_REQUIRE,
        device={**_REQUIRE, 'pci_passthrough__alias': 'nic:1'}),
    'policy': _cloud(
        _HOST(), strict=_SWITCH, large={'vcpus': 9},
        shared={**_SWITCH, 'hw__cpu_policy': 'shared'}),
    # The free CPUs of the other NUMA node are told apart.
    'free elsewhere': _cloud(
        _HOST('one', _NODE(0, range(6)), _NODE(1, range(2))), strict=_SWITCH),
    # Devices are where no CPUs are free.
    'devices': _cloud(
        _HOST('one', _NODE(0), _NODE(1, range(6)),
              devices=(_DEVICE(1, 1), _DEVICE(2, 1))),
        near={'pci_passthrough__alias': 'nic:1',
              'hw__pci_numa_affinity_policy': 'required'},
        many={'vcpus': 2, 'pci_passthrough__alias': 'nic:3'}),
    'one card': dataclasses.replace(card(), flavors=(small_clouds.flavor(
        name='both', pci_passthrough__alias='pf:1,vf:1'),)),
    'trait': _cloud(_HOST(), _HOST('two', traits=['CUSTOM_FAST']),
                    fast={'trait__CUSTOM_FAST': 'required'}),
    'memory': _cloud(_little_memory(), pinned={}),
    'nested class': _cloud(_with_gpus(), gpu={
        'vcpus': 2, 'resources__VGPU': '1',
        'trait__CUSTOM_GPU': 'required'}),
    # Empty or not, a host without a mapping takes nobody.
    'services': _cloud(
        _HOST(enabled=False), _HOST('two', up=False),
        _HOST('new', mapped=False), _HOST('six'), pinned={}),
    # Of what there is enough of, nothing is said, and as many are named as
    # suffice.
    'several': _cloud(
        _HOST('one', _NODE(0, range(8)), _NODE(1, huge=16)),
        _HOST('two', _NODE(0, range(8), huge=16)),
        _HOST('three', _NODE(0, range(8)), _NODE(1, range(5), huge=16),
              devices=(_DEVICE(1, 0),)),
        _HOST('four', _NODE(0, range(4)), _NODE(1, range(5)),
              devices=(_DEVICE(1, 0),)),
        _HOST('five', _NODE(0, range(8)), _NODE(1)),
        huge=_HUGE, strict={**_HUGE, **_SWITCH},
        devices={**_HUGE, 'pci_passthrough__alias': 'nic:2'},
        all={**_HUGE, **_SWITCH, 'pci_passthrough__alias': 'nic:2'},
        one={**_SWITCH, 'pci_passthrough__alias': 'nic:1'}),
    # The figures are those of the host without other servers.
    'too small': _cloud(
        _HOST('one', _NODE(0, range(3), huge=5),
              _NODE(1, range(2), huge=16)),
        cpus={'vcpus': 9}, pages={**_HUGE, 'memory': 17408},
        both={**_HUGE, 'vcpus': 9, 'memory': 17408},
        strict={**_HUGE, **_SWITCH, 'memory': 17408},
        nodes={'hw__numa_nodes': '4'},
        size={'vcpus': 2, 'memory': 17408, 'hw__mem_page_size': '2MB'},
        multiple={'vcpus': 2, 'memory': 2560, **_HUGE},
        any={'vcpus': 2, 'memory': 2560, 'hw__mem_page_size': 'large'}),
    'too small for threads': _cloud(
        _HOST('one', _NODE(0, range(3), threads=1), traits=_THREADS),
        _HOST('two', _NODE(0, threads=1)),
        require={**_HUGE, **_REQUIRE, 'memory': 17408},
        isolate={**_HUGE, 'memory': 17408,
                 'hw__cpu_thread_policy': 'isolate'}),
    'too small for shared vCPUs': _cloud(_shared_node(), mixed={
        'vcpus': 8, 'memory': 17408, 'hw__cpu_policy': 'mixed',
        'hw__cpu_dedicated_mask': '^0-2', **_HUGE}),
    'node fragmentation': _cloud(
        _HOST('one', _NODE(0, range(5)), _NODE(1, range(5))), pinned={}),
}
