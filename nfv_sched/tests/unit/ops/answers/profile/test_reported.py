# SPDX-License-Identifier: Apache-2.0
"""What a new host has that its profile does not say.

What it says is counted in ``test_capacity``; files are read in
``commands/test_source``.
"""

import dataclasses
import json
import os

import fixtures

from nfv_sched.ops.answers.profile import reported
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import snapshot
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops.answers.profile import machines
from nfv_sched.tests.unit.ops import small_clouds

DISK = snapshot.Inventory(total=500, max_unit=500, ratio=1.5)


def existing(name, **fields):
    host = small_clouds.host(name, traits=(
        'COMPUTE_NODE', 'COMPUTE_STATUS_DISABLED', 'HW_CPU_X86_AVX2'))
    root = host.providers[0]
    return dataclasses.replace(host, **{**dict(
        cell='cell7', disk=500, disk_ratio=1.5, hypervisor_version=8002000,
        supported=(('x86_64', 'kvm', 'hvm'),), cpu_ratio=3.0,
        providers=(dataclasses.replace(root, inventories={
            **root.inventories, 'DISK_GB': dataclasses.replace(
                DISK, used=70)}),)), **fields})


class ReportedTest(base.TestCase):

    def added(self, *hosts, name='Big box!', cpu_ratio=None, **options):
        path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, f'{name}.json')
        content = documents.builtins_of(machines.derive(shared=True))
        content['nova']['cpu_allocation_ratio'] = cpu_ratio
        with open(path, 'w') as stream:
            json.dump({'schema': documents.VERSION, **content}, stream)
        return reported.added_to(
            small_clouds.cloud(*hosts, **options), path)

    def test_software_of_a_host_in_use(self):
        host = self.added(
            existing('a', enabled=False, cell='no'),
            existing('a-down', up=False, cell='no'),
            existing('c', cell='no'), existing('b'),
            DEFAULT={'default_availability_zone': 'east'})
        root, = host.providers
        self.assertEqual(
            ('Big-box', 'cell7', 'east', 8002000, (('x86_64', 'kvm', 'hvm'),),
             500, 3.0, ()),
            (host.name, host.cell, host.zone, host.hypervisor_version,
             host.supported, host.disk, host.cpu_ratio, host.aggregates))
        self.assertEqual({'COMPUTE_NODE', 'HW_CPU_HYPERTHREADING'},
                         root.traits)
        self.assertEqual(DISK, root.inventories['DISK_GB'])

    def test_figures_of_a_host_in_use(self):
        network = snapshot.HostNetwork(vswitch_ports=3, security_rules=4)
        host = self.added(existing(
            'a', memory_ratio=1.25, disk_available_least=20, network=network))
        inventories = host.providers[0].inventories
        self.assertEqual(
            (1.25, 1.25, 3.0, 500, network),
            (host.memory_ratio, inventories['MEMORY_MB'].ratio,
             inventories['VCPU'].ratio, host.disk_available_least,
             host.network))
        host = self.added(existing('a', disk_available_least=None),
                          cpu_ratio=2.5)
        self.assertEqual((None, 2.5, 2.5), (
            host.disk_available_least, host.cpu_ratio,
            host.providers[0].inventories['VCPU'].ratio))

    def test_names(self):
        """Nova takes 255 characters at most, and no name is empty."""
        for name, expected in (('a' * 250, 'a' * 200), ('!', 'profile')):
            self.assertEqual(expected, self.added(name=name).name)

    def test_no_hosts(self):
        host = self.added()
        self.assertEqual(('', 'nova', 4.0), (
            host.cell, host.zone, host.cpu_ratio))
        self.assertEqual({'MEMORY_MB', 'PCPU', 'VCPU'},
                         set(host.providers[0].inventories))

    def test_placement_was_not_read(self):
        """One host with providers would have the others count for nothing."""
        host = self.added(existing('a', providers=()))
        self.assertEqual((), host.providers)
        # Nova counts what nova-compute reports then.
        root, = self.added().providers
        reserved = root.inventories['MEMORY_MB'].reserved
        self.assertNotEqual(0, reserved)
        self.assertEqual(reserved, host.memory_used)
