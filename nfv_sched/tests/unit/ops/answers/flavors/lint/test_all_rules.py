# SPDX-License-Identifier: Apache-2.0
"""Each rule finds what breaks it, and nothing where nothing does."""

import dataclasses
import inspect

import fixtures
from nova import objects

from nfv_sched.fit import rules as nfv_rules
from nfv_sched.nova import flavors
from nfv_sched.ops.answers.flavors import document as flavors_document
from nfv_sched.ops.answers.flavors.lint import all_rules
from nfv_sched.ops.answers.flavors.lint import flavor as lint_flavor
from nfv_sched.ops.answers.flavors.lint import hosts
from nfv_sched.ops.answers.flavors.lint import images
from nfv_sched.ops.answers.flavors.lint import keys
from nfv_sched.ops.answers.flavors.lint import values
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import document
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import limited_clouds
from nfv_sched.tests.unit.ops import small_clouds
from nfv_sched.tests.unit import test_example_rule

CLOUD = small_clouds.cloud(
    small_clouds.host('one', devices=(small_clouds.device(1, 0),
                                      small_clouds.device(2, 0))),
    small_clouds.host('two'))
#: Its hosts, whose small pages are all for the platform.
HUGE = dataclasses.replace(CLOUD, hosts=tuple(
    small_clouds.stocked(host, MEMORY_MB=dataclasses.replace(
        host.providers[0].inventories['MEMORY_MB'], reserved=sum(
            pages.total * pages.size // 1024 for node in host.nodes
            for pages in node.pages if pages.size == 4)))
    for host in CLOUD.hosts))
#: They take servers with shared vCPUs.
WITH_VCPUS = tuple(
    small_clouds.stocked(
        host, VCPU=snapshot.Inventory(total=16, max_unit=16))
    for host in CLOUD.hosts)
#: A server without NUMA nodes runs on one of its hosts.
FLOATING = dataclasses.replace(CLOUD, servers=(snapshot.Server(
    uuid='u', name='vm', host='one',
    flavor=snapshot.Flavor(name='floating', vcpus=1, memory=512)),))
#: The alias has a NUMA policy.
REQUIRED = dataclasses.replace(CLOUD, options={**CLOUD.options, 'pci': {
    'alias': [CLOUD.options['pci']['alias'][0].replace(
        '{', '{"numa_policy": "required", ')]}})
CARD = limited_clouds.card()
PLACES = small_clouds.cloud(
    *CLOUD.hosts, filters=small_clouds.FILTERS)
STOCK = small_clouds.cloud(
    *CLOUD.hosts, filters=('NUMATopologyFilter', 'PciPassthroughFilter'))
SINGLE = small_clouds.cloud(small_clouds.host(
    'one', small_clouds.node(0, threads=1), small_clouds.node(1, threads=1)))
#: Hosts of SINGLE and of CLOUD.
BOTH = dataclasses.replace(
    CLOUD, hosts=CLOUD.hosts + (dataclasses.replace(
        SINGLE.hosts[0], name='three', uuid=SINGLE.hosts[0].uuid.replace(
            '0000-4000', '0001-4000'), providers=()),))

#: Hosts of CLOUD, and one with fewer CPUs, none of them siblings.
MIXTURE = small_clouds.cloud(*CLOUD.hosts, small_clouds.host(
    'three',
    *(small_clouds.node(number, cpus=7, threads=1) for number in (0, 1))))


def without_labels(*physnets):
    return dataclasses.replace(CLOUD, hosts=tuple([
        dataclasses.replace(host, nodes=tuple([
            dataclasses.replace(node, physnets=frozenset(physnets))
            for node in host.nodes])) for host in CLOUD.hosts]))


PINNED = {'hw:cpu_policy': 'dedicated'}
MIXED = {'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0'}
STRICT = {'nfv:vswitch_numa_affinity': 'strict', 'hw:mem_page_size': '1GB',
          **PINNED}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A flavor, and what is found of it.

    :ivar found: severity and key, or part of it; None if the rule finds
        nothing
    """

    specs: dict
    found: tuple[str, str] | None = None
    vcpus: int = 4
    memory: int = 4096
    image: dict = dataclasses.field(default_factory=dict)
    cloud: snapshot.Cloud | None = None
    servers: bool = False
    ports: tuple[str, ...] | None = None
    needs: tuple[int, int] = (0, 0)
    disk: int = 0

    @property
    def flavor(self):
        return snapshot.Flavor(
            name='f', vcpus=self.vcpus, memory=self.memory, disk=self.disk,
            extra_specs=self.specs)

    def run(self):
        cloud = self.cloud
        if self.servers:
            cloud = dataclasses.replace(CLOUD, servers=(snapshot.Server(
                uuid='u', name='vm', host='one',
                ports=None if self.ports is None else tuple([
                    snapshot.Port(id=str(number), vnic_type=vnic_type)
                    for number, vnic_type in enumerate(self.ports)]),
                flavor=dataclasses.replace(self.flavor, extra_specs={})),))
        return all_rules.lint(
            [self.flavor], cloud=cloud, used=self.servers,
            image=flavors_document.Image('', self.image, *self.needs),
            on_hosts=self.cloud is not None)


def broken(severity, key, specs, **fields):
    return Case(specs=specs, found=(severity, key), **fields)


def fine(specs, **fields):
    return Case(specs=specs, **fields)


E, W, N = values.ERROR, values.WARNING, values.NOTE

CASES = {
    'too-many-keys': (
        broken(E, '', {f'x:{number}': '1' for number in range(257)}),
        fine({f'x:{number}': '1' for number in range(256)})),
    'form-refused': (
        broken(E, 'mine:gr\xf6\xdfe', {'mine:gr\xf6\xdfe': '1'}),
        broken(E, 'a/b', {'a/b': '1'}),
        broken(E, '', {'': '1'}),
        broken(E, 'x' * 127, {'x' * 256: '1'}),
        broken(E, 'mine:x', {'mine:x': 'x' * 256}),
        fine({'mine:x': 'x' * 255, 'x' * 255: '', 'a b-c.d_e:F': '1'})),
    'value-refused': (
        broken(E, 'nfv:vswitch_numa_affinity',
               {'nfv:vswitch_numa_affinity': 'stritc'}),
        broken(E, 'hw:numa_nodes', {'hw:numa_nodes': '0'}),
        broken(E, 'hw:wrs:shared_vcpu', {'hw:wrs:shared_vcpu': 'x'}),
        fine(STRICT)),
    'key-refused': (
        broken(E, 'hw:cpu_polcy', {'hw:cpu_polcy': 'dedicated'}),
        broken(E, 'hw:numa_cpu.0', {'hw:numa_cpu.0': '0'}),
        broken(E, 'hw:wrs:min_vcpus', {'hw:wrs:min_vcpus': '1'}),
        broken(E, 'nfv:x', {'nfv:x': '1'}),
        broken(E, 'trait:HW_CPU_X86_AVX51',
               {'trait:HW_CPU_X86_AVX51': 'required'}),
        fine({'trait:CUSTOM_X': 'required', 'mine:x': '1', 'plain': 'x'})),
    'numbers-of-vcpus': (
        broken(E, 'hw:numa_cpus.0', {'hw:numa_cpus.0': '0-9999999999999'}),
        broken(E, 'hw:cpu_dedicated_mask',
               {'hw:cpu_dedicated_mask': '0-65536'}),
        broken(E, 'hw_cpu_realtime_mask', {}, image={
            'hw_cpu_realtime_mask': '^4000000000'}),
        fine({**PINNED, 'hw:numa_cpus.0': '0-3', 'hw:numa_mem.0': '4096'})),
    'numbers-of-numa-nodes': (
        broken(E, 'hw:numa_nodes', {'hw:numa_nodes': '1025'}, vcpus=65535,
               memory=1025, cloud=CLOUD),
        broken(E, 'hw_numa_nodes', {}, image={'hw_numa_nodes': '9' * 30}),
        fine({'hw:numa_nodes': '1024'}, vcpus=1024, memory=1024)),
    'contradictions': (
        broken(E, 'nfv:vswitch_numa_affinity', {
            'nfv:vswitch_numa_affinity': 'strict',
            'hw:wrs:vswitch_numa_affinity': 'prefer'}),
        broken(E, 'nfv:numa_node.0', {
            'nfv:numa_node.0': '0', 'hw:numa_node.0': '1'}),
        broken(E, 'nfv:pci_numa_affinity', {
            'nfv:pci_numa_affinity': 'strict',
            'hw:pci_numa_affinity_policy': 'preferred'}),
        fine({**STRICT, 'hw:wrs:vswitch_numa_affinity': 'strict'})),
    'refused-by-nova': (
        broken(E, 'hw:numa_nodes', {'hw:numa_nodes': '2'}, vcpus=5),
        broken(E, 'hw:numa_cpus.0', {
            'hw:numa_nodes': '1', 'hw:numa_cpus.0': '0-2',
            'hw:numa_mem.0': '4096'}),
        broken(E, 'hw:numa_mem.0', {
            'hw:numa_nodes': '1', 'hw:numa_cpus.0': '0-3',
            'hw:numa_mem.0': '4095'}),
        broken(E, 'hw:cpu_thread_policy', {
            'hw:cpu_thread_policy': 'require'}),
        broken(E, 'hw:cpu_realtime_mask', {
            **PINNED, 'hw:cpu_realtime': 'true'}),
        broken(E, 'hw:cpu_realtime', {
            'hw:cpu_realtime': 'true', 'hw:cpu_realtime_mask': '^0'}),
        broken(E, 'hw:cpu_policy', {'hw:cpu_policy': 'mixed'}),
        broken(E, 'hw:cpu_dedicated_mask', {
            **PINNED, 'hw:cpu_dedicated_mask': '^0'}),
        # The API of Nova 29 has other names: hw:max_cpu_sockets.
        *([broken(E, 'hw:cpu_max_sockets', {
            'hw:cpu_max_sockets': '1', 'hw:cpu_max_cores': '2',
            'hw:cpu_max_threads': '1'}),
            # A prime number, and limits whose product is larger.
            broken(E, 'hw:cpu_max_sockets', {
                'hw:cpu_max_sockets': '65520', 'hw:cpu_max_cores': '65520',
                'hw:cpu_max_threads': '65520'}, vcpus=65521)]
          if flavors.refusal('hw:cpu_max_sockets', '1') is None else ()),
        fine({'hw:cpu_max_sockets': '1', 'hw:cpu_max_cores': '2',
              'hw:cpu_max_threads': '2'}),
        fine({'hw:cpu_max_sockets': '3'}),
        fine({**PINNED, 'hw:cpu_realtime': 'true',
              'hw:cpu_realtime_mask': '^0'})),
    'no-host-by-rules': (
        broken(E, 'nfv:shared_vcpu', {**PINNED, 'nfv:shared_vcpu': '0'}),
        broken(E, 'hw:wrs:shared_vcpu', {
            **MIXED, 'hw:wrs:shared_vcpu': '1'}),
        # The only vCPU of its guest NUMA node.
        broken(E, 'nfv:shared_vcpu', {
            **MIXED, 'nfv:shared_vcpu': '0', 'hw:numa_nodes': '2',
            'hw:numa_cpus.0': '0', 'hw:numa_cpus.1': '1-3',
            'hw:numa_mem.0': '2048', 'hw:numa_mem.1': '2048'}),
        broken(E, 'nfv:shared_vcpu', {
            **MIXED, 'nfv:shared_vcpu': '0',
            'hw:cpu_thread_policy': 'isolate'}),
        broken(E, 'nfv:numa_node.1', {**PINNED, 'nfv:numa_node.1': '0'}),
        fine({**MIXED, 'nfv:shared_vcpu': '0', 'nfv:numa_node.0': '1'})),
    'query-refused': (
        broken(E, 'group_policy', {'resources1:VGPU': '1',
                                   'resources2:VGPU': '1'}),
        fine({'resources1:VGPU': '1', 'resources2:VGPU': '1',
              'group_policy': 'none'}),
        # Nova leaves out what is zero.
        fine({'resources1:VGPU': '1', 'resources2:VGPU': '0'}),
        broken(E, 'traits:CUSTOM_X', {'traits:CUSTOM_X': 'required'}),
        broken(E, 'trait_A:CUSTOM_B', {'trait_A:CUSTOM_B': 'required'}),
        broken(E, 'resources_A:VGPU', {'resources_A:VGPU': '0',
                                       'trait_A:CUSTOM_B': 'required'}),
        fine({'resources_A:VGPU': '1', 'trait_A:CUSTOM_B': 'required'}),
        broken(E, 'resources:VCPU', {
            'resources:VCPU': '0', 'resources:MEMORY_MB': '0'}),
        fine({'resources:VCPU': '0', 'resources:MEMORY_MB': '0'}, disk=1),
        broken(E, 'trait:CUSTOM_X', {'trait:CUSTOM_X': 'forbidden'},
               image={'trait:CUSTOM_X': 'required'}),
        broken(E, 'trait:custom_x', {}, image={'trait:custom_x': 'required'}),
    ),
    'page-multiple': (
        broken(E, 'hw:mem_page_size', {'hw:mem_page_size': '2MB'},
               memory=4095),
        broken(E, 'hw:mem_page_size', {
            'hw:mem_page_size': '1GB', 'hw:numa_nodes': '2'}, memory=3072),
        fine({'hw:mem_page_size': '2MB'}),
        fine({'hw:mem_page_size': 'large'}, memory=4095)),
    'absurd-devices': (
        broken(E, 'pci_passthrough:alias', {
            'pci_passthrough:alias': 'nic:99999999999'}, cloud=CLOUD),
        fine({'pci_passthrough:alias': 'nic:\u00b2'}),
        fine({'pci_passthrough:alias': 'nic:1'})),
    'image-value-refused': (
        broken(E, 'hw_vif_model', {}, image={'hw_vif_model': 'avp'}),
        broken(E, 'hw_numa_cpus.0', {}, image={'hw_numa_cpus.0': 'x'}),
        fine({}, image={'hw_vif_model': 'virtio'})),
    'smaller-than-the-image': (
        broken(E, 'RAM', {}, needs=(4097, 20)),
        broken(W, 'disk', {}, needs=(0, 21), disk=20),
        fine({}, needs=(4096, 20), disk=20),
        fine({}, needs=(0, 21))),
    'image-conflict': (
        broken(E, 'hw_pci_numa_affinity_policy', {
            'hw:pci_numa_affinity_policy': 'required'},
            image={'hw_pci_numa_affinity_policy': 'preferred'}),
        broken(E, 'hw_numa_nodes', {'hw:numa_nodes': '2'},
               image={'hw_numa_nodes': '1'}),
        broken(E, 'hw_cpu_max_sockets', {
            'hw:cpu_max_cores': '2', 'hw:cpu_max_threads': '1'},
            image={'hw_cpu_max_sockets': '1'}),
        # Nova has it since 32.
        *([broken(E, 'hw_sound_model', {'hw:sound_model': 'sb16'},
                  image={'hw_sound_model': 'usb'})]
          if 'hw_sound_model' in objects.ImageMetaProps.fields else ()),
        broken(E, 'os_secure_boot', {'os:secure_boot': 'required'},
               image={'os_secure_boot': 'disabled'}),
        broken(E, 'hw_ephemeral_encryption', {
            'hw:ephemeral_encryption': 'true'}, image={
                'hw_ephemeral_encryption': 'false'}),
        fine({'hw:sound_model': 'sb16', 'os:secure_boot': 'required'},
             image={'hw_sound_model': 'sb16', 'os_secure_boot': 'required'}),
        fine({'hw:numa_nodes': '2'}, image={'hw_vif_model': 'virtio'})),
    'unknown-alias': (
        broken(E, 'pci_passthrough:alias', {
            'pci_passthrough:alias': 'other:1'}, cloud=CLOUD),
        fine({**PINNED, 'pci_passthrough:alias': 'nic:1'}, cloud=CLOUD)),
    'page-size-of-no-host': (
        broken(E, 'hw:mem_page_size', {'hw:mem_page_size': '2MB'},
               cloud=CLOUD),
        fine({**PINNED, 'hw:mem_page_size': '1GB'}, cloud=CLOUD),
        fine({**PINNED, 'hw:mem_page_size': 'large'}, cloud=CLOUD)),
    'threads-of-no-host': (
        broken(E, 'hw:cpu_thread_policy', {
            **PINNED, 'hw:cpu_thread_policy': 'isolate'}, cloud=CLOUD),
        broken(E, 'hw:cpu_thread_policy', {
            **PINNED, 'hw:cpu_thread_policy': 'require'}, cloud=SINGLE),
        fine({**PINNED, 'hw:cpu_thread_policy': 'isolate'}, cloud=BOTH),
        fine({**PINNED, 'hw:cpu_thread_policy': 'require'}, cloud=CLOUD)),
    'memory-of-the-platform': (
        broken(W, 'hw:mem_page_size', PINNED, cloud=HUGE),
        fine({**PINNED, 'hw:mem_page_size': '1GB'}, cloud=HUGE),
        fine(PINNED, cloud=CLOUD)),
    'beside-floating-servers': (
        broken(W, 'hw:mem_page_size', PINNED, cloud=FLOATING),
        fine({**PINNED, 'hw:mem_page_size': '1GB'}, cloud=FLOATING),
        fine({}, cloud=FLOATING)),
    'label-of-no-host': (
        broken(E, 'nfv:vswitch_numa_affinity', STRICT,
               cloud=without_labels()),
        broken(E, 'nfv:numa_affinity.osd', {
            **PINNED, 'nfv:numa_affinity.osd': 'strict'}, cloud=PLACES),
        # A host near all networks of a guest may take it.
        broken(W, 'nfv:vswitch_numa_affinity', STRICT,
               cloud=without_labels('physnet0')),
        fine(STRICT, cloud=CLOUD),
        fine({**PINNED, 'nfv:numa_affinity.osd': 'prefer'}, cloud=PLACES)),
    'filter-not-enabled': (
        broken(W, 'nfv:numa_affinity.osd', {
            **PINNED, 'nfv:numa_affinity.osd': 'prefer'}, cloud=STOCK),
        broken(W, 'nfv:vswitch_numa_affinity', STRICT, cloud=STOCK),
        broken(W, 'hw:numa_node.0', {**PINNED, 'hw:numa_node.0': '0'},
               cloud=STOCK),
        fine(STRICT, cloud=CLOUD), fine(PINNED, cloud=STOCK),
        fine({**PINNED, 'nfv:numa_affinity.osd': 'prefer'}, cloud=PLACES)),
    'node-of-no-host': (
        broken(E, 'nfv:numa_node.0', {**PINNED, 'nfv:numa_node.0': '2'},
               cloud=CLOUD),
        fine({**PINNED, 'nfv:numa_node.0': '1'}, cloud=CLOUD)),
    'no-host': (
        broken(E, 'vCPUs', PINNED, vcpus=9, cloud=CLOUD),
        broken(E, 'hw:mem_page_size', {**PINNED, 'hw:mem_page_size': '1GB'},
               memory=17 * 1024, cloud=CLOUD),
        broken(E, 'RAM', PINNED, memory=2 ** 20, cloud=CLOUD),
        broken(E, 'resources:VGPU', {**PINNED, 'resources:VGPU': '1'},
               cloud=CLOUD),
        broken(E, '-', {**PINNED, 'hw:pmem': '6GB'}, cloud=CLOUD),
        broken(E, 'trait:CUSTOM_X', {
            **PINNED, 'trait:CUSTOM_X': 'required'}, cloud=CLOUD),
        broken(E, 'pci_passthrough:alias', {
            **PINNED, 'pci_passthrough:alias': 'nic:3'}, cloud=CLOUD),
        broken(E, 'pci_passthrough:alias', {
            **PINNED, 'pci_passthrough:alias': 'pf:1,vf:1'}, cloud=CARD),
        fine({**PINNED, 'pci_passthrough:alias': 'pf:1'}, cloud=CARD),
        fine({**PINNED, 'pci_passthrough:alias': 'vf:1'}, cloud=CARD),
        broken(E, 'nfv:vswitch_numa_affinity', {
            **STRICT, 'hw:numa_nodes': '2'}, cloud=CLOUD),
        broken(W, '-', PINNED, cloud=small_clouds.cloud()),
        fine(PINNED, vcpus=8, cloud=CLOUD)),
    'key-unchecked': (
        broken(W, 'nvf:shared_vcpu', {'nvf:shared_vcpu': '0'}),
        broken(W, 'HW:CPU_POLICY', {'HW:CPU_POLICY': 'dedicated'}),
        broken(W, 'sw:wrs:vtpm', {'sw:wrs:vtpm': 'true'}),
        fine({'mine:something': 'x', 'aggregate': 'x'})),
    'no-topology': (
        broken(W, 'nfv:vswitch_numa_affinity', {
            'nfv:vswitch_numa_affinity': 'strict'}),
        broken(W, 'hw:wrs:pci_numa_affinity', {
            'hw:wrs:pci_numa_affinity': 'prefer'}),
        broken(W, 'nfv:numa_affinity.osd', {
            'nfv:numa_affinity.osd': 'strict'}),
        broken(W, 'nfv:numa_node.0', {'nfv:numa_node.0': '0'}),
        broken(E, 'nfv:numa_node.1', {'nfv:numa_node.1': '0'}),
        fine(STRICT), fine({}),
        fine({'nfv:vswitch_numa_affinity': 'strict'}, image={
            'hw_numa_nodes': '1'})),
    'switch-without-huge-pages': (
        broken(W, 'nfv:vswitch_numa_affinity', {
            **PINNED, 'nfv:vswitch_numa_affinity': 'prefer'}),
        broken(W, 'nfv:vswitch_numa_affinity', {
            **STRICT, 'hw:mem_page_size': 'small'}),
        *(broken(W, 'nfv:vswitch_numa_affinity', {
            **STRICT, 'hw:mem_page_size': size})
          for size in ('4', '4KiB', '4096B', '4096b', '0')),
        broken(W, 'nfv:vswitch_numa_affinity', {
            'nfv:vswitch_numa_affinity': 'strict'}),
        *(fine({**STRICT, 'hw:mem_page_size': size})
          for size in ('2048', '2MiB', 'large')),
        fine(STRICT)),
    'any-pages': (
        broken(W, 'hw:mem_page_size', {'hw:mem_page_size': 'any'}),
        broken(W, 'hw:mem_page_size', {'hw:mem_page_size': 'large'}),
        broken(W, 'hw:mem_page_size', {'hw:mem_page_size': '0'}),
        broken(W, 'hw:mem_page_size', {**PINNED, 'hw:mem_page_size': '64b'}),
        fine({'hw:mem_page_size': '1GB'})),
    'odd-threads': (
        broken(W, 'hw:cpu_thread_policy', {
            **PINNED, 'hw:cpu_thread_policy': 'require'}, vcpus=5),
        fine({**PINNED, 'hw:cpu_thread_policy': 'require'}),
        fine(PINNED, vcpus=5)),
    'isolate': (
        broken(W, 'hw:cpu_thread_policy', {
            **PINNED, 'hw:cpu_thread_policy': 'isolate'}),
        broken(W, 'trait:HW_CPU_HYPERTHREADING', {
            **PINNED, 'trait:HW_CPU_HYPERTHREADING': 'forbidden'}),
        fine({**PINNED, 'hw:cpu_thread_policy': 'prefer'})),
    'many-devices': (
        broken(W, 'pci_passthrough:alias', {
            'pci_passthrough:alias': 'a:4,b:5'}),
        fine({'pci_passthrough:alias': 'a:4,b:4'})),
    'alias-without-policy': (
        broken(W, 'pci_passthrough:alias', {
            **PINNED, 'pci_passthrough:alias': 'nic:1'}),
        broken(W, 'pci_passthrough:alias', {'pci_passthrough:alias': 'a:1'}),
        broken(W, 'pci_passthrough:alias', {
            **PINNED, 'pci_passthrough:alias': 'nic:1'}, cloud=CLOUD),
        fine({**PINNED, 'pci_passthrough:alias': 'nic:1'}, cloud=REQUIRED),
        fine({**PINNED, 'pci_passthrough:alias': 'nic:1',
              'nfv:pci_numa_affinity': 'strict'}),
        fine({**PINNED, 'pci_passthrough:alias': 'nic:1'}, image={
            'hw_pci_numa_affinity_policy': 'required'})),
    'ignored': (
        broken(W, 'hw:cpu_realtime_mask', {
            **PINNED, 'hw:cpu_realtime_mask': '^0'}),
        broken(W, 'hw:numa_cpus.0', {'hw:numa_cpus.0': '0-3'}),
        broken(W, 'hw:numa_mem.2', {
            'hw:numa_nodes': '1', 'hw:numa_cpus.0': '0-3',
            'hw:numa_mem.0': '4096', 'hw:numa_mem.2': '1'}),
        broken(W, 'hw:numa_mem.' + '9' * 40, {
            'hw:numa_nodes': '1', 'hw:numa_mem.' + '9' * 40: '1'}),
        broken(W, 'hw:numa_mem.01', {
            'hw:numa_nodes': '2', 'hw:numa_cpus.0': '0-1',
            'hw:numa_cpus.1': '2-3', 'hw:numa_mem.0': '2048',
            'hw:numa_mem.1': '2048', 'hw:numa_mem.01': '1'}),
        fine({'hw:numa_nodes': '1', 'hw:numa_cpus.0': '0-3',
              'hw:numa_mem.0': '4096'})),
    'image-needed': (
        broken(W, 'hw_firmware_type', {'hw:mem_encryption': 'true'}),
        broken(W, 'hw_firmware_type', {'hw:mem_encryption': 'true'},
               cloud=CLOUD),
        fine({'hw:mem_encryption': 'true'}, image={
            'hw_firmware_type': 'uefi'}),
        fine({'hw:mem_encryption': 'false'}),
        # An image does not make it right.
        fine({'hw:mem_encryption': 'true', 'hw:numa_nodes': '3'})),
    'image-dropped': (
        broken(W, 'hw_numa_node.0', {}, image={'hw_numa_node.0': '1'}),
        broken(W, 'hw_cpu_model', {}, image={'hw_cpu_model': 'Haswell'}),
        fine({}, image={
            'hw_numa_nodes': '1', 'hw_numa_cpus.0': '0-3',
            'hw_numa_mem.0': '4096', 'os_type': 'linux', 'hypervisor_type':
            'kvm', 'os_hash_algo': 'sha512', 'mine': 'x',
            'trait:CUSTOM_X': 'required'})),
    'image-differs': (
        broken(W, 'hw_cpu_realtime_mask', {
            **PINNED, 'hw:cpu_realtime': 'true',
            'hw:cpu_realtime_mask': '^0'}, image={
                'hw_cpu_realtime_mask': '^0-1'}),
        broken(W, 'hw_cpu_policy', PINNED, image={
            'hw_cpu_policy': 'shared'}),
        fine(PINNED, image={'hw_cpu_policy': 'dedicated'})),
    'straddles': (
        broken(W, 'hw:numa_nodes', {}, vcpus=9, cloud=CLOUD),
        broken(W, 'hw:numa_nodes', {}, memory=33000, cloud=CLOUD),
        fine({}, vcpus=8, cloud=CLOUD),
        fine(PINNED, vcpus=9, cloud=CLOUD)),
    'in-use': (
        broken(W, '-', PINNED, servers=True), fine(PINNED)),
    'only-vfs': (
        broken(W, '-', PINNED, servers=True, ports=('direct', 'vdpa')),
        fine(PINNED, servers=True, ports=('direct', 'normal')),
        fine(PINNED, servers=True, ports=('macvtap',)),
        fine(PINNED, servers=True, ports=()), fine(PINNED, servers=True)),
    'packs-badly': (
        broken(N, 'vCPUs', PINNED, vcpus=5, cloud=CLOUD),
        broken(N, 'vCPUs', {**PINNED, 'hw:numa_nodes': '2'}, vcpus=12,
               cloud=CLOUD),
        broken(N, 'vCPUs', PINNED, vcpus=4, cloud=MIXTURE),
        fine(PINNED, vcpus=4, cloud=CLOUD),
        fine(PINNED, vcpus=7, cloud=CLOUD),
        fine({**PINNED, 'hw:cpu_thread_policy': 'isolate'}, vcpus=3,
             cloud=MIXTURE),
        fine(PINNED, vcpus=5)),
}


class RulesTest(base.TestCase):

    def test_each_rule_has_cases(self):
        self.assertEqual(all_rules.RULES.keys(), CASES.keys())
        for name, cases in CASES.items():
            self.assertRegex(name, '^[a-z]+(-[a-z]+)*$')
            self.assertEqual({True, False}, {
                case.found is None for case in cases}, name)

    def test_each_function_is_a_rule(self):
        self.assertEqual(set(all_rules.RULES.values()), {
            each for module in (hosts, images, keys, lint_flavor)
            for each in vars(module).values() if inspect.isfunction(each)
            and each.__annotations__.get('return') is values.Findings})

    def test_rules(self):
        for name, cases in CASES.items():
            for case in cases:
                found = [each for each in case.run() if each.rule == name]
                what = f'{name}: {case}'
                if case.found is None:
                    self.assertEqual([], found, what)
                    continue
                severity, key = case.found
                self.assertEqual(
                    [severity], list({each.severity for each in found}),
                    what)
                self.assertIn(key, found[0].key or '-', what)
                for each in found:
                    self.assertTrue(each.finding and each.do, what)

    def test_nothing_else_of_too_many_keys(self):
        specs = {f'mine:\xf6{number}': '1' for number in range(257)}
        found, = broken(E, '', specs).run()
        self.assertEqual('too-many-keys', found.rule)

    def test_once(self):
        """What is wrong with a value is not told in other words, too."""
        for specs, rules in (
            ({'hw:cpu_policy': 'dedicatd'}, ['value-refused']),
            ({'nfv:vswitch_numa_affinity': 'x'}, ['value-refused']),
            ({'nfv:x': 'x'}, ['key-refused']),
            ({'nfv:\xdf': 'x'}, ['form-refused']),
            ({**PINNED, 'hw:mem_page_size': '2MB'},
             ['page-size-of-no-host']),
        ):
            self.assertEqual(rules, [each.rule for each in fine(
                specs, cloud=CLOUD).run() if each.severity == E])

    def test_misspelt_keys_of_ours(self):
        """Also the last of more than an error of a request names."""
        key = 'nfv:vswitch_affinity'
        found = fine({'nfv:a': '1', 'nfv:b': '1', 'nfv:c': '1', key: '1'})
        self.assertEqual(
            ['set nfv:vswitch_numa_affinity instead, if you meant that'],
            [each.do for each in found.run() if each.key == key])

    def test_errors_first(self):
        found = fine({
            'nfv:vswitch_numa_affinity': 'strict', 'hw:x': '1', **PINNED},
            vcpus=5, cloud=CLOUD).run()
        self.assertEqual([E, W], [each.severity for each in found][:2])

    def test_hosts_out_of_service(self):
        """Flavors are not to blame for them."""
        cloud = dataclasses.replace(CLOUD, hosts=tuple([
            dataclasses.replace(
                host, enabled=False, up=False, providers=tuple([
                    dataclasses.replace(
                        provider, traits=frozenset(
                            ['COMPUTE_STATUS_DISABLED']))
                    for provider in host.providers]))
            for host in CLOUD.hosts]))
        self.assertEqual([], fine(STRICT, cloud=cloud).run())

    def test_names_that_placement_does_not_know(self):
        cloud = dataclasses.replace(
            CLOUD, traits=frozenset(), resource_classes=frozenset())
        for key, value in (('trait:CUSTOM_NOWHERE', 'forbidden'),
                           ('trait:CUSTOM_NOWHERE', 'required'),
                           ('resources:CUSTOM_X', '1')):
            finding, = fine({key: value, **PINNED}, cloud=cloud).run()
            self.assertEqual((E, key), (finding.severity, finding.key))
        self.assertEqual([], fine({
            'trait:HW_CPU_X86_AVX2': 'forbidden', **PINNED},
            cloud=CLOUD).run())

    def test_other_numa_nodes(self):
        """Those that are named were tried, and the key is what hosts lack."""
        cloud = small_clouds.cloud(small_clouds.host(
            'uneven', small_clouds.node(0, cpus=12), dataclasses.replace(
                small_clouds.node(1, cpus=2), dedicated=frozenset({12, 13}),
                siblings=(frozenset({12, 13}),))))
        for specs, key, numbers in (
                ({'hw:numa_nodes': '2'}, 'hw:numa_nodes', [1, 4]),
                ({'hw:numa_nodes': '2', 'hw:mem_page_size': 'small'},
                 'hw:numa_nodes', [1, 4])):
            flavor = small_clouds.flavor(8, memory=4096)
            flavor = dataclasses.replace(
                flavor, extra_specs={**flavor.extra_specs, **specs})
            others = list(hosts.other_nodes(values.LintSubject(
                flavor=flavor), cloud))
            self.assertEqual(numbers, list(map(len, others)))
            result, = [each for each in all_rules.lint(
                [flavor], cloud=cloud, on_hosts=True)
                if each.rule == 'no-host']
            self.assertEqual(key, result.key)
            for other in others:
                found, = capacity.capacities(cloud, [dataclasses.replace(
                    flavor, extra_specs={**flavor.extra_specs, **other})])
                self.assertEqual(1, found.fits)
                for key_and_value in other.items():
                    self.assertIn('='.join(key_and_value), result.do)

    def test_several_policies_without_topology(self):
        cloud = small_clouds.cloud(*[
            dataclasses.replace(host, devices=(), nodes=tuple([
                small_clouds.near(node, 'nfv_osd') if node.number else node
                for node in host.nodes])) for host in WITH_VCPUS])
        for specs in (
            {'nfv:numa_affinity.osd': 'strict', 'nfv:numa_node.0': '0'},
            {'nfv:numa_affinity.osd': 'strict'}, {'nfv:numa_node.0': '0'},
            {'nfv:pci_numa_affinity': 'strict', 'nfv:numa_node.0': '0',
             'pci_passthrough:alias': 'nic:1'}):
            specs['nfv:vswitch_numa_affinity'] = 'strict'
            self.assertIn(('no-host', E), [
                (each.rule, each.severity)
                for each in fine(specs, cloud=cloud).run()], specs)

    def test_policy_that_no_host_keeps(self):
        """Why not, and how to mend it, as explanations have it."""
        found, = [each for each in fine(
            {'nfv:vswitch_numa_affinity': 'strict'}, cloud=dataclasses.replace(
                CLOUD, hosts=WITH_VCPUS)).run() if each.rule == 'no-host']
        self.assertEqual(
            ('nfv:vswitch_numa_affinity',
             'it fits no host, even an empty one: '
             'nfv:vswitch_numa_affinity=strict: a guest NUMA topology needed, '
             'set hw:numa_nodes (2 hosts)', lint_flavor.GIVE_TOPOLOGY),
            (found.key, found.finding, found.do))

    def test_what_to_do_about_a_binding(self):
        """A name that looks like another kind makes no difference."""
        kind, alias = document.BindingKind, 'pci_passthrough:alias'
        for each, name, key in (
                (kind.DEVICES, 'VF', alias),
                (kind.DEVICES_NEAR, 'PF', alias),
                (kind.FILTER, 'pages near NICs', '-'),
                (kind.NETWORKS_NEAR, '', '-'),
                (kind.RULES, '', '-')):
            counted = document.HostFit(
                host='one', host_id='', fits=0, placement_grants=0,
                numa_nodes=(), used_pcpus={}, limits=(document.HostLimit(
                    each, name, why='not worked out'),))
            flavor = small_clouds.flavor(pci_passthrough__alias='nic:1')
            found, = hosts.no_host(values.LintSubject(
                flavor=flavor, look=lambda subject: values.FlavorHosts(
                    cloud=CLOUD, capacity=capacity.FlavorCapacity(
                        flavor, {'one': counted}))))
            self.assertEqual((key, E), (found.key, found.severity), each)

    def test_rule_of_another_package(self):
        """With a label that no host has, and without NUMA nodes."""
        self.useFixture(test_example_rule.Installed())
        even, = (cls for cls in nfv_rules.classes()
                 if cls.name == 'even_nodes')
        self.useFixture(fixtures.MockPatchObject(
            even, 'label', lambda this, names: 'even'))
        self.useFixture(fixtures.MockPatchObject(
            even, 'read',
            lambda rule, host, names: host.labels.get('even')))
        key = test_example_rule.KEY
        cloud = small_clouds.cloud(*CLOUD.hosts, filters=(
            *small_clouds.FILTERS, test_example_rule.EVEN))
        for specs, hosts_too, rule, severity in (
                ({key: 'strict', **PINNED}, cloud, 'label-of-no-host', E),
                ({key: 'prefer', **PINNED}, cloud, None, None),
                ({key: 'strict'}, None, 'no-topology', W),
                ({key: 'prefer'}, None, 'no-topology', W),
                ({key: 'odd'}, None, None, None)):
            self.assertEqual([(rule, severity, key)] if rule else [], [
                (each.rule, each.severity, each.key)
                for each in fine(specs, cloud=hosts_too).run()
                if each.rule in ('label-of-no-host', 'no-topology')], specs)

    def test_numbers_without_end(self):
        """More digits than Python makes a number of."""
        for begin in ('hw:numa_cpus.', 'hw:numa_mem.', 'hw:numa_node.',
                      'nfv:numa_node.'):
            found = fine({'hw:numa_nodes': '1', begin + '9' * 5000: '1'})
            self.assertIn(('form-refused', E), [
                (each.rule, each.severity) for each in found.run()], begin)

    def test_hosts_without_nodes(self):
        cloud = dataclasses.replace(CLOUD, hosts=tuple([
            dataclasses.replace(host, nodes=()) for host in CLOUD.hosts]))
        for specs in (STRICT, PINNED, {'hw:numa_nodes': '1'}):
            self.assertIn(E, [each.severity for each in fine(
                specs, cloud=cloud).run()])

    def test_other_thread_policy(self):
        """What is advised is a value of the key that the flavor has."""
        trait = 'trait:HW_CPU_HYPERTHREADING'
        for key, value, cloud, advised in (
            ('hw:cpu_thread_policy', 'require', SINGLE, 'isolate'),
            (trait, 'required', SINGLE, 'forbidden'),
            ('hw:cpu_thread_policy', 'isolate', CLOUD, 'require'),
            (trait, 'forbidden', CLOUD, 'required'),
        ):
            (found,) = [each for each in fine(
                {**PINNED, key: value}, cloud=cloud).run()
                if each.rule == 'threads-of-no-host']
            self.assertEqual(key, found.key)
            self.assertIn(f'set {advised}', found.do)
            self.assertEqual([], [
                each for each in fine({**PINNED, key: advised},
                                      cloud=cloud).run()
                if each.rule == 'threads-of-no-host'])

    def test_image_makes_it_right(self):
        specs = {'hw:cpu_thread_policy': 'require'}
        self.assertEqual([E], [each.severity for each in fine(specs).run()])
        self.assertEqual([], fine(specs, image={
            'hw_cpu_policy': 'dedicated'}).run())

    def test_image_that_is_needed(self):
        """A flavor for such images is no error; one is without them."""
        specs = {'hw:mem_encryption': 'true'}
        self.assertEqual([W], [each.severity for each in fine(specs).run()])
        self.assertEqual(
            [(E, 'hw:mem_encryption')],
            [(each.severity, each.key) for each in fine(specs, image={
                'hw_firmware_type': 'bios'}).run()])
        on_hosts = fine(specs, cloud=CLOUD).run()
        self.assertNotIn('UEFI', str(on_hosts))
        self.assertNotIn('image metadata', str(on_hosts))


class NearTest(base.TestCase):

    def test_near(self):
        for key, near in (
            ('hw:cpu_polcy', 'hw:cpu_policy'),
            ('hw:cpu_ploicy', 'hw:cpu_policy'),
            ('hw:numa_cpu.3', 'hw:numa_cpus.3'),
            ('hw:numa_memory.0', 'hw:numa_mem.0'),
            # Not like a key of another product with a number.
            ('hw:numa_node', 'hw:numa_nodes'),
            ('hw:numa_nod.0', 'nfv:numa_node.0'),
            ('Hw:cpu_policy', 'hw:cpu_policy'),
            ('hw_cpu_policy', 'hw:cpu_policy'),
            ('aggregate_instance_extra_spec:x:y',
             'aggregate_instance_extra_specs:x:y'),
            ('resource:CUSTOM_QAT', 'resources:CUSTOM_QAT'),
            ('resource2:VGPU', 'resources2:VGPU'),
            ('traits_A:CUSTOM_X', 'trait_A:CUSTOM_X'),
            ('capabilites:cpu_inf:model', 'capabilities:cpu_info:model'),
            ('capabilities:boot_mode', None), ('custom:thing', None),
            ('nvf:vswitch_numa_affinity', 'nfv:vswitch_numa_affinity'),
            ('trait:HW_CPU_X86_AVX512', 'trait:HW_CPU_X86_AVX512F'),
            ('quota:disk_read_byte_sec', 'quota:disk_read_bytes_sec'),
            ('hw:cpu_poli', 'hw:cpu_policy'), ('hw:cpu_pol', None),
            ('trait:COMPUTE_SECURITY_UEFI_SECURE_BOTO',
             'trait:COMPUTE_SECURITY_UEFI_SECURE_BOOT'),
            ('hw:cpu_plcx', None), ('hw', None), ('x' * 300, None),
            # All that is short is like hw:pmu.
            ('x:pmu', None),
        ):
            found = keys.nearest(key, flavors.specs())
            if near == 'trait:HW_CPU_X86_AVX512F':
                self.assertTrue(found.startswith('trait:HW_CPU_X86_AVX'))
            else:
                self.assertEqual(near, found, key)
