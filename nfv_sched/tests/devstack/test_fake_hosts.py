# SPDX-License-Identifier: Apache-2.0
"""Compute nodes that are made up: local.conf.no-kvm.

The plugin prepares them, and Nova's own code goes on: it loads the driver that
the nova.conf names, filters the hosts that the driver reports, and claims.
"""

from concurrent import futures
import json
import os
import pathlib
import subprocess

import fixtures
from nova.compute import power_state
from nova import exception
from nova import objects
import nova.virt
from nova.virt import driver
from nova.virt import fake
from nova.virt import hardware
import openstackclient.compute.v2.server as osc_server
import openstackclient.compute.v2.service as osc_service
import openstackclient.image.v2.image as osc_image
from oslo_utils.fixture import uuidsentinel as uuids

from nfv_sched.tests.devstack import base
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds

SAMPLE = 'local.conf.no-kvm'
NAMES = ['Devstack-1.example1', 'Devstack-1.example2']
DEVSTACK = pathlib.Path(base.REPOSITORY) / 'devstack'


class FakeHostsTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.state = self.directory / 'data' / 'nova'
        self.given('controller.conf')
        # What DevStack writes for VIRT_DRIVER=fake.
        self.edit(('[DEFAULT]\n', '[DEFAULT]\ncompute_driver = '
                   'fake.FakeDriverWithoutFakeNodes\n'))
        self.before = self.text()

    def stack(self):
        added = self.given_sample(SAMPLE)
        output = self.run_phases(*base.STACK[:3])
        # local.conf is merged after the plugins.
        with self.nova_conf.open('a') as nova_conf:
            nova_conf.write(added)
        return output + self.run_phases(*base.STACK[3:])


class TestPlugin(FakeHostsTestCase):

    def test_sample(self):
        output = self.stack()
        self.assertNotIn('WARNING', output)
        self.assertEqual('nfv-sched https://example.org/nfv-sched',
                         (self.directory / 'plugins').read_text().split(
                             '\n')[0])
        sections = base.parse(self.text())
        self.assertEqual(['nfv_sched_live.LiveDriver'],
                         sections['DEFAULT']['compute_driver'])
        # Nothing of this machine.
        self.assertFalse({'compute', 'neutron_physnet_nfv_vswitch'}
                         & set(sections))
        self.assertEqual(30, self.load().scheduler[
            'discover_hosts_in_cells_interval'])
        self.assertIn('NFVTopologyFilter', self.enabled_filters())

    def test_again_and_undone(self):
        self.stack()
        guests = self.state / NAMES[0] / 'guests.json'
        guests.write_text('[]')
        self.run_phases(*base.STACK)
        self.assertFalse(guests.exists())
        self.assertEqual(['nfv_sched_live.py'], os.listdir(self.drivers))
        self.run_phases('unstack', 'clean')
        self.assertEqual([], os.listdir(self.drivers))
        self.assertEqual(['fake.FakeDriverWithoutFakeNodes'], base.parse(
            self.text())['DEFAULT']['compute_driver'])

    def test_compute_node_only(self):
        """The driver is installed there, and no commands."""
        self.given_sample(SAMPLE)
        self.given('compute.conf', 'n-cpu')
        self.run_phases(*base.STACK)
        self.assertEqual([str(base.REPOSITORY)], (
            self.directory / 'installed').read_text().split())
        self.assertEqual([], os.listdir(self.bin))

    def test_not_without_compute(self):
        self.given_sample(SAMPLE)
        self.given('controller.conf', base.CONTROLLER)
        self.run_phases(*base.STACK)
        self.assertEqual([], os.listdir(self.drivers))
        self.assertFalse(self.state.exists())

    def test_wrong_settings(self):
        for settings, message in (
            ({'NFV_SCHED_FAKE_HOSTS': '/nonexistent'},
             'there is no file /nonexistent'),
            ({'VIRT_DRIVER': 'libvirt'}, 'needs VIRT_DRIVER=fake'),
            ({'NFV_SCHED_VSWITCH_NUMA_NODES': '0'},
             'NFV_SCHED_VSWITCH_NUMA_NODES is of this machine'),
            ({'NFV_SCHED_CPU_SHARED_SET': '0-1'},
             'NFV_SCHED_CPU_SHARED_SET is of this machine'),
            ({'NFV_SCHED_VSWITCH_LABEL': 'ovs'}, 'needs the labels'),
        ):
            self.given_sample(SAMPLE)
            self.settings.update(settings)
            self.assertIn(message, self.run_phases(
                'stack/pre-install', fails=True))
            for name in settings:
                del self.settings[name]

    def test_wrong_description(self):
        path = self.directory / 'hosts.yaml'
        for text, message in (
            ('hosts: [', 'cannot be read'),
            ('hosts: {a: {}}', 'numa_nodes'),
            ('hosts: {a: {numa_nodes: [{cores: 1, memory_mb: 1024}]}}',
             'describes 1 compute nodes, and there are to be 2'),
        ):
            path.write_text(text)
            self.given_sample(SAMPLE)
            self.settings['NFV_SCHED_FAKE_HOSTS'] = path
            output = self.run_phases('stack/post-config', fails=True)
            self.assertIn(message, output)
            self.assertNotIn('Traceback', output)


class TestGuests(FakeHostsTestCase):
    def setUp(self):
        super().setUp()
        self.stack()
        # Nova is installed elsewhere here; there it is this directory.
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.__path__', [*nova.virt.__path__, str(self.drivers)]))
        self.nova_cpu_conf = self.nova_conf.with_name('nova-cpu.conf')
        self.nova_cpu_conf.write_text(self.text())

    def driver(self, name):
        """The driver that nova-compute loads for a host.

        It is started as DevStack does: with a file of its own after
        nova-cpu.conf, and an ID in its directory.
        """
        own = self.nova_conf.with_name(f'nova-fake-{name}.conf')
        own.write_text(f'[DEFAULT]\nhost = {name}\n'
                       f'state_path = {self.state / name}\n')
        base.base.CONF(
            ['--config-file', str(self.nova_cpu_conf),
             '--config-file', str(own)], project='nova',
            default_config_files=[], default_config_dirs=[])
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.node.LOCAL_NODE_UUID', None))
        (self.state / name / 'compute_id').write_text(
            '7e3c1f5a-2b4d-4c6e-8f90-0123456789ab')
        found = driver.load_compute_driver(None)
        found.init_host(name)
        return found

    def topology(self, name):
        found = self.driver(name)
        node, = found.get_available_nodes()
        resources = found.get_available_resource(node)
        return objects.NUMATopology.obj_from_db_obj(
            resources['numa_topology'])

    def test_many_guests_at_once(self):
        """nova-compute builds them in threads; each saves them all."""
        found = self.driver(NAMES[0])
        guest = objects.Instance(uuid=uuids.guest)
        found.instances[guest.uuid] = fake.FakeInstance(
            'guest', power_state.SHUTDOWN, guest.uuid)
        with futures.ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(found.power_on, None, guest, None)
                           for _ in range(400)]:
                future.result()
        saved, = json.loads(
            (self.state / NAMES[0] / 'guests.json').read_text())
        self.assertEqual(
            (guest.uuid, power_state.RUNNING), (saved['uuid'], saved['state']))

    def test_strict_guest(self):
        """It is pinned where the switch runs, until there is no room."""
        hosts = {name: self.topology(name) for name in NAMES}
        manager = self.host_manager()
        filters = [enabled for enabled in manager.enabled_filters
                   if 'NUMA' in type(enabled).__name__
                   or 'Topology' in type(enabled).__name__]
        self.assertLess(2, len(filters))
        readme = (DEVSTACK / 'README.md').read_text()
        for index, (name, node, room) in enumerate((
                (NAMES[0], 0, 6), (NAMES[1], 1, 3)), start=1):
            topology = hosts[name]
            for count in range(room):
                spec = clouds.spec('strict', vcpus=1, memory=256)
                state = strategies.host_state(topology, name=name)
                self.assertEqual([state], list(
                    manager.filter_handler.get_filtered_objects(
                        filters, [state], spec)))
                claimed = hardware.numa_fit_instance_to_host(
                    topology, spec.numa_topology, {},
                    limits=state.limits['numa_topology'])
                self.assertEqual(
                    [node], [cell.id for cell in claimed.cells])
                self.assertLessEqual(
                    set(claimed.cells[0].cpu_pinning.values()),
                    set(topology.cells[node].pcpuset))
                if not count:
                    pins = {str(vcpu): cpu for vcpu, cpu in (
                        claimed.cells[0].cpu_pinning.items())}
                    self.assertIn(
                        f'HOST{index}: host NUMA node {node}, vCPUs on CPUs '
                        f'{pins}\n', readme)
                topology = hardware.numa_usage_from_instance_numa(
                    topology, claimed)
            state = strategies.host_state(topology, name=name)
            refused = self.assertRaises(
                exception.NoValidHost,
                manager.filter_handler.get_filtered_objects, filters, [state],
                clouds.spec('strict', vcpus=1, memory=256))
            self.assertIn('nfv:vswitch_numa_affinity=strict', str(refused))


class TestLocalSh(base.TestCase):
    """local.sh.no-kvm, with stand-ins for the commands."""

    #: As the client prints the topology.
    TOPOLOGY = {'topology': {'nodes': [
        {'host_node': 1, 'cpu_pinning': {'0': 3}, 'memory_mb': 512,
         'siblings': [], 'vcpu_set': [0]}], 'pagesize_kb': None}}

    def setUp(self):
        super().setUp()
        (self.directory / 'tools').mkdir()
        self.script = self.directory / 'local.sh'
        self.script.write_text((DEVSTACK / 'local.sh.no-kvm').read_text())
        self.program(self.directory / 'tools' / 'discover_hosts.sh', 'true')
        self.program(self.bin / 'nfv-sched', 'echo "nfv-sched $*"')

    def program(self, path, text):
        path.write_text(f'#!/usr/bin/env bash\n{text}\n')
        path.chmod(0o755)

    def run_script(self, topology):
        self.program(self.bin / 'openstack', f"""
            printf '%s\\n' "$*" >> {self.directory}/calls
            case $* in
                image*) echo 3f6c ;;
                *list*) printf '%s\\n' one two ;;
                *create*) echo ACTIVE ;;
                *show*) echo '{json.dumps(topology)}' ;;
            esac""")
        return subprocess.run(
            ['bash', self.script], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=dict(
                os.environ, PATH=f'{self.bin}:{os.environ["PATH"]}'))

    def test_shown(self):
        done = self.run_script(self.TOPOLOGY)
        self.assertEqual(0, done.returncode, done.stdout)
        for host in 'one', 'two':
            self.assertIn(
                f"{host}: host NUMA node 1, vCPUs on CPUs {{'0': 3}}\n",
                done.stdout)
        self.assertIn('nfv-sched host list\n', done.stdout)

    def test_understood_by_the_client(self):
        self.run_script(self.TOPOLOGY)
        parsers = {
            'image list': osc_image.ListImage,
            'compute service list': osc_service.ListService,
            'server create': osc_server.CreateServer,
            'server show': osc_server.ShowServer}
        calls = (self.directory / 'calls').read_text().splitlines()
        self.assertEqual(6, len(calls))
        for call in calls:
            name, = (name for name in parsers if call.startswith(name))
            parser = parsers[name](None, None).get_parser(name)
            parser.parse_args(call.removeprefix(name).split())
