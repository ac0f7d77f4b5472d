# SPDX-License-Identifier: Apache-2.0

"""What the functional tests share: a small cloud in one process.

Nova's own fixtures run the API, the conductor, the scheduler, one compute
service per host on a fake libvirt, and a real Placement.  This module adds
hosts that declare where their virtual switch runs, guests with a policy, and
the questions the tests ask: on which host NUMA nodes is this guest, what
does its owner read when it was refused, is anything left in Placement.

Unless a test case says otherwise, every host has five CPUs per NUMA node: the
first is shared, the other four are for pinned guests.  The test cases put the
switch on node 1 and leave node 0 at least as empty as node 1, where Nova by
itself prefers node 0; a guest on node 1 is there because it was steered.

Nova sends a guest with PCI devices to the NUMA node with the most devices of
any kind.  The test cases put devices that nobody asks for on the node where a
guest must not go.

Differences between the supported releases of Nova are kept here.
"""

import collections
import contextlib
import functools
from importlib import metadata
import json
import os
import re
import time
import traceback

import fixtures
from lxml import etree
from neutronclient.common import exceptions
from nova.api.openstack import common
import nova.conf
from nova import context
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from nova import objects
from nova.scheduler import manager
from nova import test
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api import client
from nova.tests.functional.libvirt import base
from nova.virt import hardware
from nova.virt.libvirt import driver
from oslo_utils import uuidutils
import sqlalchemy as sa
from testtools import content

from nfv_sched.base import conf
from nfv_sched.fit import rules
from nfv_sched.nova import scheduler
from nfv_sched.scheduler import process
from nfv_sched.tests.functional import economy

CONF = nova.conf.CONF
economy.share_statements()
economy.repeat_no_answers()
# Tests set options before the scheduler loads the filters.
conf.register_opts(CONF)

#: CPUs of one host NUMA node: one shared, the rest for pinned guests.
NODE_CPUS = 5
PINNED_CPUS_PER_NODE = NODE_CPUS - 1

#: Vcpus of most guests: two of them fill the pinned CPUs of a node.
GUEST_VCPUS = 2

IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'

FOO = base.LibvirtNeutronFixture.network_1['id']
BAR = base.LibvirtNeutronFixture.network_2['id']
TUNNELED = base.LibvirtNeutronFixture.network_3['id']

#: A network for SR-IOV ports, on physnet4.
SRIOV = base.LibvirtNeutronFixture.network_4['id']

#: How much a host says about its nodes: where the switch runs and the name
#: of each node, only where the switch runs, nothing.
ALL_LABELS = 'all'
SWITCH_LABEL = 'switch'
NO_LABELS = 'none'

#: Whether the claim of a live migration gets the scheduler's NUMA limits (bug
#: 2153425); otherwise it is free to choose any node that fits.
LIVE_MIGRATION_IS_STEERED = scheduler.live_migration_carries_limits()


@functools.cache
def api_paste_config() -> str:
    """Return the path of the api-paste.ini that the nova package installed.

    Nova's fixtures look for it beside the package, pip puts it under the
    prefix of the environment.
    """
    for path in metadata.files('nova') or ():
        if path.name == 'api-paste.ini':
            return os.path.realpath(path.locate())
    beside = os.path.join(os.path.dirname(nova.conf.__file__), '..', '..',
                          'etc', 'nova', 'api-paste.ini')
    return os.path.realpath(beside)


def pinned(**extra_specs) -> dict[str, str]:
    """Return the extra specs of a pinned guest.

    :param extra_specs: more of them; an underscore pair stands for a colon
        and a number at the end is set off by a point.
    """
    specs = {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1'}
    for key, value in extra_specs.items():
        key = re.sub(r'_(\d+)$', r'.\1', key.replace('__', ':'))
        specs[key] = value
    return specs


class HostDevices(fakelibvirt.HostPCIDevicesInfo):
    """The PCI devices of a host.

    The parents of virtual functions are of a product of their own, which
    Nova is not told to give away: PCI in Placement does not take a device
    and its virtual functions together.
    """

    NIC = fakelibvirt.PCI_PROD_ID
    PF = fakelibvirt.PF_PROD_ID
    VF = fakelibvirt.VF_PROD_ID
    #: Virtual and physical functions for SR-IOV ports.
    PORT_VF = '154c'
    PORT_PF = '158b'
    #: Virtual functions of vDPA ports and of remote-managed ports.
    PORT_VDPA = '101e'
    PORT_REMOTE = '1021'
    PARENT = '1572'

    def __init__(self, nics=(), pfs=(), vfs=(), port_vfs=(), port_pfs=(),
                 port_vdpas=(), port_remotes=()):
        """Put devices on NUMA nodes.

        Each sequence has the NUMA node of each device, None for a device
        that does not tell.

        :param nics: devices without virtual functions
        :param pfs: whole physical functions, without virtual functions
        :param vfs: virtual functions, for aliases
        :param port_vfs: virtual functions, for ports on physnet4
        :param port_pfs: whole physical functions, for such ports
        :param port_vdpas: virtual functions with a vDPA device, for ports
        :param port_remotes: virtual functions of a DPU, for ports
        """
        super().__init__(num_pci=0, num_pfs=0, num_vfs=0)
        self._used = 0
        self.vdpa = fakelibvirt.HostVDPADevicesInfo()
        for node in nics:
            self._add('PCI', node)
        for node in pfs:
            self._add('PF', node, prod_id=self.PF, vf_ratio=0)
        for node in port_pfs:
            self._add('PF', node, prod_id=self.PORT_PF, vf_ratio=0,
                      mac_address='52:54:00:00:01:%02x' % self._used)
        self._add_functions(self.VF, vfs)
        self._add_functions(self.PORT_VF, port_vfs)
        self._add_functions(self.PORT_VDPA, port_vdpas)
        self._add_functions(self.PORT_REMOTE, port_remotes, vpd_fields={
            'name': 'DPU', 'readonly': {'serial_number': 'MT0000X00001'}})

    def _add(self, kind, node, bus=0x81, function=0, **more):
        # One slot for each device and its functions.
        self._used += not function
        device = self.add_device(
            kind, bus=bus, slot=self._used, function=function,
            iommu_group=40 + len(self.devices),
            numa_node=-1 if node is None else node, **more)
        if more.get('prod_id') == self.PORT_VDPA:
            index = len(self.vdpa.devices)
            self.vdpa.add_device(f'vdpa_vdpa{index}', index, device)
        return bus, self._used, function

    def _add_functions(self, product, nodes, **more):
        # No parent has more than four, so that all are in its slot.
        nodes = sorted(nodes, key=lambda node: -1 if node is None else node)
        for node in sorted(set(nodes), key=nodes.index):
            left = nodes.count(node)
            while left:
                count = min(left, 4)
                left -= count
                parent = self._add(
                    'PF', node, prod_id=self.PARENT, vf_ratio=count,
                    mac_address='52:54:00:00:00:%02x' % (self._used + 1))
                for function in range(1, count + 1):
                    self._add('VF', node, function=function, parent=parent,
                              prod_id=product, vf_ratio=count, **more)


def pci_alias(name, product, **more):
    return json.dumps(dict(more, name=name, product_id=product,
                           vendor_id=fakelibvirt.PCI_VEND_ID))


class NeutronFixture(base.LibvirtNeutronFixture):
    """Nova's networks on physical networks, with any number of ports."""

    def create_port(self, body=None):
        port = dict(self.network_1_port_2, **body['port'])
        port['id'] = uuidutils.generate_uuid()
        digits = port['id'].replace('-', '')
        port['mac_address'] = 'fa:16:3e:%s:%s:%s' % (
            digits[0:2], digits[2:4], digits[4:6])
        network = self._networks[port['network_id']]
        port['fixed_ips'] = [{'ip_address': '192.168.1.10',
                              'subnet_id': network['subnets'][0]['id']}]
        port.setdefault('tenant_id', self.tenant_id)
        port['admin_state_up'] = True
        vnic_type = port['binding:vnic_type']
        if vnic_type != 'normal':
            port['binding:vif_details'] = {'vlan': 42}
            if vnic_type == 'virtio-forwarder':
                port['binding:vif_details'] = {
                    'vhostuser_mode': 'server',
                    'vhostuser_socket': '/run/' + port['id'][:8]}
            port['binding:vif_type'] = {
                'direct': 'hw_veb', 'macvtap': 'hw_veb',
                'direct-physical': 'hostdev_physical',
                'vdpa': 'ovs', 'remote-managed': 'ovs',
                'virtio-forwarder': 'agilio_ovs'}[vnic_type]
        self._ports[port['id']] = port
        return {'port': dict(port)}

    def find_resource(self, resource, name_or_id, *args, **kwargs):
        """Called by Nova for security groups."""
        for found in getattr(self, '_%ss' % resource).values():
            if name_or_id in (found['id'], found['name']):
                return found
        raise exceptions.NotFound()


def _ranges(cpus):
    return ','.join(map(str, sorted(cpus))) or None


class CloudTestCase(base.LibvirtMigrationMixin, base.ServersTestBase):
    """A cloud scheduled by stock Nova with its NUMATopologyFilter.

    ``self.api`` is an ordinary tenant, ``self.admin_api`` the operator.
    """

    ADMIN_API = False
    microversion = 'latest'
    REQUIRES_LOCKING = False

    #: Filters beside Nova's default ones, in this order.
    extra_filters = ['NUMATopologyFilter']
    available_filters = ['nova.scheduler.filters.all_filters']
    weight_classes = ['nova.scheduler.weights.all_weighers']

    #: The NUMA nodes of all hosts of a test case.
    node_cores = NODE_CPUS
    node_threads = 1
    #: NUMA nodes of a socket; all are on one if None.
    nodes_per_socket = None
    #: 1 GiB huge pages of each NUMA node.
    huge_pages = 0

    def setUp(self):
        #: What each host declares, see start_host().
        self.declared = {}
        self.host_nodes = {}
        self.online_cpus = frozenset()
        self.booted = []
        self.has_moved = False
        #: The last domain XML of each guest.
        self.domains = {}
        # Nova keeps the log of a test, but not that of its own clean-up,
        # which would go to the standard output.
        self.useFixture(fixtures.FakeLogger(
            format='%(asctime)s %(levelname)s [%(name)s] %(message)s'))
        self._declare_per_host()
        self._forget_network()
        self.addCleanup(self._forget_network)
        self.useFixture(economy.Connections())
        super().setUp()
        economy.keep_what_is_there()
        self.useFixture(economy.PatientThreads())
        self.ctxt = context.get_admin_context()
        self.neutron = self.useFixture(NeutronFixture(self))
        # Nothing answers for Neutron when a port is plugged.
        self.flags(vif_plugging_timeout=0)
        # On a busy machine Placement takes half a minute to find the
        # combinations of eight devices, which the API waits for.
        self.flags(rpc_response_timeout=300)
        self.flags(cores=-1, instances=-1, ram=-1, group='quota')
        # What Nova asks of itself in its own tests only: whether its answers
        # are as documented.  Nova 29 does not have it.
        if 'response_validation' in CONF.api:
            self.flags(response_validation='ignore', group='api')
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.libvirt.host.Host.get_online_cpus',
            lambda host: set(self.online_cpus)))
        self._record_domains()
        self._complete_domains()
        # The fake libvirt detaches a device at once and sends no event; Nova
        # waits 20 seconds for it and then sees that the device is gone.
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.libvirt.driver.AsyncDeviceEventsHandler.Waiter.wait',
            lambda waiter, timeout: False))
        # Nova runs the program uptime, which a minimal system lacks.
        self.useFixture(fixtures.MockPatchObject(
            driver.LibvirtDriver, 'get_host_uptime', return_value=''))
        self.useFixture(fixtures.MockPatch(
            'nova.virt.libvirt.driver.LibvirtDriver.'
            'migrate_disk_and_power_off', return_value='{}'))
        self.useFixture(fixtures.MockPatch(
            'nova.virt.libvirt.driver.LibvirtDriver.snapshot'))

    @staticmethod
    def _forget_network():
        """Nothing is left of what another test's cloud was like.

        The weighers start to read Neutron in any of them, and where there is
        none they try again and again, with longer and longer pauses.
        """
        process.STATE.reset()

    # -- the cloud ----------------------------------------------------------

    def _setup_scheduler_service(self):
        # The first flags that are set after Nova's fixtures have reset all
        # options, and before any service has read them.
        self.flags(api_paste_config=api_paste_config(), group='wsgi')
        defaults = list(CONF.filter_scheduler.enabled_filters)
        self.flags(available_filters=self.available_filters,
                   enabled_filters=defaults + self.extra_filters,
                   weight_classes=self.weight_classes,
                   group='filter_scheduler')
        # The numbers show what a refusal was based on.
        self.flags(expose_reasons='summary', group='nfv_sched')
        self.configure()
        return self.start_service('scheduler')

    def configure(self):
        """Set options before the scheduler starts; tests override it."""

    def _declare_per_host(self):
        # All compute services of the process share one configuration, and
        # the driver reads it anew at every update.  So the affinity of each
        # host is put into what its own driver reports.
        real = driver.LibvirtDriver._get_host_numa_topology

        def declaring(libvirt_driver):
            topology = real(libvirt_driver)
            host = libvirt_driver._host.get_hostname()
            if topology is None or host not in self.declared:
                return topology
            physnets, tunnel = self.declared[host]
            for cell in topology.cells:
                cell.network_metadata = objects.NetworkMetadata(
                    physnets={name for name, nodes in physnets.items()
                              if cell.id in nodes},
                    tunneled=cell.id in tunnel)
            return topology

        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.libvirt.driver.LibvirtDriver._get_host_numa_topology',
            declaring))

    def _record_domains(self):
        # The fake libvirt forgets how a domain's CPUs are tuned.
        define = fakelibvirt.Connection.defineXML

        def recording(connection, xml):
            domain = etree.fromstring(xml.encode())
            self.domains[domain.findtext('uuid')] = domain
            return define(connection, xml)

        self.useFixture(fixtures.MonkeyPatch(
            'nova.tests.fixtures.libvirt.Connection.defineXML', recording))

    def _complete_domains(self):
        # The fake libvirt gives interfaces of macvtap and vhost-user ports no
        # address in the guest, as libvirt does; live migration copies it.
        describe = fakelibvirt.Domain.XMLDesc

        def described(domain, flags):
            return describe(domain, flags).replace(
                '</source>\n        </interface>',
                "</source><address type='pci' domain='0x0000' bus='0x00' "
                "slot='0x03' function='0x0'/></interface>")

        self.useFixture(fixtures.MonkeyPatch(
            'nova.tests.fixtures.libvirt.Domain.XMLDesc', described))

    def start_two(self, **kwargs):
        for name in ('host1', 'host2'):
            self.start_host(name, **kwargs)

    def start_host(self, name='host1', switch=(1,), labels=ALL_LABELS,
                   nodes=2, physnets=None, tunnel=(), memory_gib=16,
                   devices=None, places=None):
        """Start a compute service on a host with a virtual switch.

        :param switch: the NUMA nodes where the switch runs.
        :param nodes: 0 for a host that reports no NUMA topology at all.
        :param physnets: physical network -> NUMA nodes it is attached to.
        :param tunnel: NUMA nodes where tunnels end.
        :param memory_gib: of all nodes together, in GiB; with equal guests,
            Nova's weighers prefer the host that has more.
        :param devices: PCI devices by kind, see HostDevices.
        :param places: place -> NUMA nodes, declared where the switch is
        """
        declared = dict(physnets or {})
        if labels != NO_LABELS:
            places = dict(places or {}, vswitch=switch)
            declared.update({f'nfv_{place}': tuple(where)
                             for place, where in places.items() if where})
        if labels == ALL_LABELS:
            for node in range(nodes):
                declared['nfv_node%d' % node] = (node,)
        self.declared[name] = (declared, tuple(tunnel))
        self.host_nodes[name] = nodes
        self._divide_cpus(nodes)
        per_socket = self.nodes_per_socket or max(nodes, 1)
        host_info = fakelibvirt.HostInfo(
            cpu_nodes=per_socket, cpu_sockets=max(nodes, 1) // per_socket,
            cpu_cores=self.node_cores, cpu_threads=self.node_threads,
            kB_mem=memory_gib * 1024 * 1024)
        for cell in host_info.numa_topology.cells:
            huge = self.huge_pages * 1024 * 1024
            cell.mempages = fakelibvirt.create_mempages(
                [(4, (cell.memory - huge) // 4),
                 (1024 * 1024, self.huge_pages)])
        if not nodes:
            host_info.numa_topology.cells = []
        pci_info = HostDevices(**(devices or {}))
        self.start_compute(hostname=name, host_info=host_info,
                           pci_info=pci_info, vdpa_info=pci_info.vdpa)
        return name

    @property
    def node_cpus(self):
        return self.node_cores * self.node_threads

    def node_of(self, cpu):
        return cpu // self.node_cpus

    def shared_cpus(self, nodes):
        """Return the shared CPUs of a host: the first core of each node.

        Tests override it.
        """
        return {node * self.node_cpus + thread
                for node in range(nodes)
                for thread in range(self.node_threads)}

    def dedicated_cpus(self, nodes):
        return (set(range(nodes * self.node_cpus)) -
                self.shared_cpus(nodes))

    def _divide_cpus(self, nodes):
        # The driver reads these anew at every update, as it does the
        # affinities; so all hosts of a test have as many nodes.
        if len(set(self.host_nodes.values())) > 1:
            raise ValueError('hosts with different numbers of NUMA nodes')
        nodes = max(nodes, 1)
        self.declare_cpus(self.shared_cpus(nodes), self.dedicated_cpus(nodes))
        self.online_cpus = set(range(nodes * self.node_cpus))

    def declare_cpus(self, shared, dedicated):
        self.flags(cpu_shared_set=_ranges(shared),
                   cpu_dedicated_set=_ranges(dedicated), group='compute')

    def _get_connection(self, host_info=None, pci_info=None, mdev_info=None,
                        vdpa_info=None, libvirt_version=None,
                        qemu_version=None, hostname=None):
        # Nova's own method stops at 15 CPUs.
        return fakelibvirt.Connection(
            'qemu:///system',
            version=libvirt_version or fakelibvirt.FAKE_LIBVIRT_VERSION,
            hv_version=qemu_version or fakelibvirt.FAKE_QEMU_VERSION,
            host_info=host_info, pci_info=pci_info, mdev_info=mdev_info,
            vdpa_info=vdpa_info, hostname=hostname)

    def cell_context(self, uuid=None):
        """The context of the database of a cell; that of the hosts if none.

        Without it, Nova's fixture takes the cell that was read last, perhaps
        by another thread.
        """
        cell = objects.CellMapping.get_by_uuid(
            self.ctxt, uuid or self.cell_mappings[test.CELL1_NAME].uuid)
        cell_context = context.get_admin_context()
        context.set_target_cell(cell_context, cell)
        return cell_context

    def _migrate_stub(self, domain, destination, params, flags):
        # Called in place of libvirt's migration, which fakes the arrival of
        # the guest at the host it is moving to.
        migration = objects.Migration.get_by_instance_and_status(
            self.cell_context(), domain.UUIDString(), 'running')
        target = self.computes[migration.dest_compute]
        target.driver._host.get_connection().defineXML(
            params['destination_xml']).create()
        domain.complete_job()

    def fail_job(self, host, uuid):
        connection = self.computes[host].driver._host.get_connection()
        connection.lookupByUUIDString(uuid).fail_job()

    def fail_host(self, name):
        service = self.computes.pop(name)
        service.stop()
        self.admin_api.put_service_force_down(
            service.service_ref.uuid, True)

    # -- guests -------------------------------------------------------------

    def flavor(self, vcpus=GUEST_VCPUS, **extra_specs):
        return self.flavor_with(pinned(**extra_specs), vcpus=vcpus)

    def flavor_with(self, extra_specs, vcpus=GUEST_VCPUS, memory_mb=256):
        return self._create_flavor(
            vcpu=vcpus, memory_mb=memory_mb, disk=1, ephemeral=0,
            extra_spec=extra_specs)

    def port(self, vnic_type='direct', policy=None):
        """Create an SR-IOV port on physnet4; returns it as boot() wants it.

        :param vnic_type: ``direct-physical`` takes a whole device, ``vdpa``
            and ``remote-managed`` a virtual function of their own kind, all
            others one of ``port_vfs``
        :param policy: the port's PCI NUMA affinity policy
        """
        port = {'network_id': SRIOV, 'binding:vnic_type': vnic_type,
                'numa_affinity_policy': policy}
        return {'port': self.neutron.create_port(
            {'port': port})['port']['id']}

    def boot(self, flavor, networks='none', host=None, expect='ACTIVE',
             **request):
        """Boot a guest as a tenant, or on a host as the operator.

        :param networks: network ids, ports from port(), or 'none'.
        :param expect: the status it must get, or several.
        :returns: the server as the operator sees it.
        """
        if networks != 'none':
            networks = [
                network if isinstance(network, dict) else {'uuid': network}
                for network in networks]
        body = self._build_server(image_uuid=IMAGE, flavor_id=flavor,
                                  networks=networks, host=host)
        body.update(request)
        api = self.admin_api if host else self.api
        server = api.post_server({'server': body})
        self.booted.append(server['id'])
        return self.wait_for(server, expect)

    def boot_many(self, flavor, count, minimum=None, expect='ACTIVE',
                  networks='none'):
        body = self._build_server(image_uuid=IMAGE, flavor_id=flavor,
                                  networks=networks)
        body['max_count'] = count
        body['min_count'] = count if minimum is None else minimum
        body['return_reservation_id'] = True
        reservation = self.api.api_post(
            '/servers', {'server': body}).body['reservation_id']
        servers = self.admin_api.api_get(
            '/servers/detail?reservation_id=%s' % reservation
        ).body['servers']
        self.booted.extend(server['id'] for server in servers)
        return [self.wait_for(server, expect) for server in servers]

    def wait_for(self, server, expect, seconds=30.0):
        # Nova's own helper asks the API every half second. Its answer costs a
        # tenth of what it waits for, in the same process.
        expected = (expect,) if isinstance(expect, str) else expect
        deadline = time.monotonic() + seconds
        while True:
            while (self._status_in_database(server) not in
                   (None, 'ERROR', *expected) and
                   time.monotonic() < deadline):
                time.sleep(0.05)
            server = self.show(server)
            if server['status'] in expected and (
                    server['status'] != 'ERROR' or 'fault' in server):
                return server
            if time.monotonic() > deadline or (
                    server['status'] == 'ERROR' and 'fault' in server):
                # Why a build failed on nova-compute is in its log alone.
                why = self.stdlog.logger.output.rpartition(
                    'Failed to build and run instance')[2]
                self.fail('expected %s, got %s: %s (%s)' % (
                    expect, server['status'],
                    server.get('fault', {}).get('message'),
                    why.partition('\n20')[0][-300:].strip()))
            time.sleep(0.2)

    def _status_in_database(self, server):
        """Return what the API would say; None for a guest of no host."""
        instance = main_models.Instance
        with main_db.get_context_manager(self.ctxt).reader.using(self.ctxt):
            row = self.ctxt.session.execute(
                sa.select(instance.vm_state, instance.task_state).where(
                    instance.uuid == server['id'])).first()
        return row and common.status_from_state(*row)

    def occupy(self, flavor, host, times=1):
        return [self.nodes(self.boot(flavor, host=host))
                for _ in range(times)]

    def delete_all(self, servers=None):
        """Delete these guests, or all that the test booted.

        Hosts between which guests have moved report afterwards: until their
        next report they may show the CPUs of deleted guests as taken.
        """
        for uuid in list(self.booted if servers is None else servers):
            self.booted.remove(uuid)
            with contextlib.suppress(client.OpenStackApiNotFoundException):
                self.admin_api.delete_server(uuid)
        if self.has_moved:
            self._run_periodics()

    def resize(self, server, flavor):
        """Resize up to the state where the tenant confirms or reverts."""
        self.has_moved = True
        with self.unless_placement_is_lost():
            self.api.post_server_action(
                server['id'], {'resize': {'flavorRef': flavor}})
            return self._wait_for_state_change(server, 'VERIFY_RESIZE')

    def shelve_and_unshelve(self, server):
        self._shelve_server(server)
        return self._unshelve_server(server)

    def evacuate(self, server, start=True):
        with self.unless_placement_is_lost():
            server = self._evacuate_server(server, expected_state='SHUTOFF')
        return self._start_server(server) if start else server

    def cold_migrate(self, server, host=None):
        self.has_moved = True
        with self.unless_placement_is_lost():
            self.admin_api.post_server_action(
                server['id'], {'migrate': {'host': host} if host else None})
            return self._wait_for_state_change(server, 'VERIFY_RESIZE')

    def move_cold(self, server, *nodes_and_host):
        """Migrate a guest, confirm that, and assert where it is then."""
        self.cold_migrate(server)
        self._confirm_resize(server)
        if nodes_and_host:
            self.assertPlaced(server, *nodes_and_host)

    @contextlib.contextmanager
    def unless_placement_is_lost(self):
        """Skip the test if Nova has an outdated view of Placement.

        With PCI in Placement the claim of a move heals the allocation, and
        now and then comes with providers that somebody else has changed.
        """
        try:
            yield
        except client.OpenStackApiException as exc:
            if 'ReshapeFailed' in str(exc):
                self.skipTest('Nova lost a race for Placement')
            raise

    def live_migrate(self, server, host=None):
        """Live migrate, to a host of the scheduler's choice by default.

        The hosts report afterwards, as they do every minute: until then Nova
        may show the CPUs that the guest had on its former host as taken.
        """
        self.has_moved = True
        self.admin_api.post_server_action(server['id'], {
            'os-migrateLive': {'host': host, 'block_migration': 'auto'}})
        self._wait_for_migration_status(server, ['completed'])
        server = self._wait_for_state_change(server, 'ACTIVE')
        self._run_periodics()
        return server

    # -- questions ----------------------------------------------------------

    def show(self, server):
        return self.admin_api.get_server(server['id'])

    def instance(self, server):
        """Return a guest that has a host, as an object.

        The API says no more of it, and takes three times as long.
        """
        return objects.Instance.get_by_uuid(
            self.ctxt, server['id'], expected_attrs=['numa_topology'])

    def host(self, server):
        return self.instance(server).host

    def compute_node(self, host):
        return objects.ComputeNode.get_first_node_by_host_for_old_compat(
            self.ctxt, host)

    def topology(self, host):
        """Return what the compute node has recorded of its NUMA nodes."""
        return objects.NUMATopology.obj_from_db_obj(
            self.compute_node(host).numa_topology)

    def nodes(self, server):
        """Return the host NUMA node of each guest NUMA node.

        Read from the topology that the claim of the compute service stored;
        pinned CPUs must agree with it.
        """
        return self._nodes(self.instance(server))

    def _nodes(self, instance):
        if instance.numa_topology is None:
            return None
        nodes = []
        for cell in instance.numa_topology.cells:
            for cpu in (cell.cpu_pinning or {}).values():
                self.assertEqual(cell.id, self.node_of(cpu))
            nodes.append(cell.id)
        return nodes

    def pins(self, server):
        return {vcpu: cpu
                for cell in self.instance(server).numa_topology.cells
                for vcpu, cpu in (cell.cpu_pinning or {}).items()}

    def domain_cpus(self, server):
        """Return the CPUs each vCPU may run on, by the last started domain."""
        return {
            int(pin.get('vcpu')): hardware.parse_cpu_spec(pin.get('cpuset'))
            for pin in self.domains[server['id']].iterfind('cputune/vcpupin')}

    def pci_devices(self, server):
        """Return the PCI devices of a guest on its host, as objects."""
        node = self.compute_node(self.host(server))
        return [device for device in objects.PciDeviceList.
                get_by_instance_uuid(self.ctxt, server['id'])
                if device.compute_node_id == node.id]

    def device_nodes(self, server):
        """Return the NUMA nodes of a guest's devices, sorted, None first."""
        devices = self.pci_devices(server)
        hostdevs = self.domains[server['id']].findall('devices/hostdev')
        hostdevs += self.domains[server['id']].findall(
            'devices/interface[@type="hostdev"]')
        self.assertEqual(len(devices), len(hostdevs))
        return sorted((device.numa_node for device in devices),
                      key=lambda node: -1 if node is None else node)

    def assertPlaced(self, server, nodes, host=None, devices=None,
                     status='ACTIVE'):
        """Assert where a guest is, and return it.

        :param nodes: the host NUMA node of each guest NUMA node, None for a
            guest without NUMA topology
        :param devices: the host NUMA node of each PCI device, in order
        """
        instance = self.instance(server)
        self.assertEqual(status, common.status_from_state(
            instance.vm_state, instance.task_state))
        self.assertEqual(nodes if nodes is None else list(nodes),
                         self._nodes(instance))
        if host is not None:
            self.assertEqual(host, instance.host)
        if devices is not None:
            self.assertEqual(list(devices), self.device_nodes(server))
        return server

    def fault(self, server):
        return self.api.get_server(server['id'])['fault']['message']

    def assertRefused(self, server, *words):
        """Assert that a guest was not placed, and what its owner reads."""
        server = self.show(server)
        self.assertEqual('ERROR', server['status'])
        self.assertIsNone(server['OS-EXT-SRV-ATTR:host'])
        self.assertEqual({}, self._get_allocations_by_server_uuid(
            server['id']))
        message = self.fault(server)
        self.assertLessEqual(len(message.encode()), 255)
        for word in words:
            self.assertIn(word, message)
        for name in self.declared:
            self.assertNotIn(name, message)

    def assertMoveRefused(self, move, server, *args):
        """Assert that no host is found for a move and nothing has changed.

        Nova's fixtures turn casts into calls, so that the refusal, which an
        operator finds in the list of the server's actions, comes back as the
        answer to the request.
        """
        before = self.host(server), self.nodes(server), self.usages()
        error = self.assertRaises(client.OpenStackApiException,
                                  move, server, *args)
        self.assertIn(error.response.status_code, (400, 500))
        self.assertIn('NoValidHost', str(error))
        self.assertEqual(
            before, (self.host(server), self.nodes(server), self.usages()))

    def usages(self):
        """Return what each host has given away, according to Placement.

        The providers below that of the host, as those of PCI devices, are
        part of it.
        """
        found = {}
        for name, uuid in self.compute_rp_uuids.items():
            total = collections.Counter()
            for provider in self._get_all_rps_in_a_tree(uuid):
                total.update(self._get_provider_usages(provider['uuid']))
            found[name] = dict(+total)
        return found

    def assertNothingLeft(self):
        """Delete all guests; neither Placement nor Nova may miss a thing."""
        self.delete_all()
        self.assertEqual(
            {name: {} for name in self.compute_rp_uuids}, self.usages())
        for name in self.compute_rp_uuids:
            node = self.compute_node(name)
            self.assertEqual([], [
                device.address for device in objects.PciDeviceList.
                get_by_compute_node(self.ctxt, node.id)
                if not device.is_available()])
            for cell in self.topology(name).cells:
                self.assertEqual((set(), 0, 0), (
                    cell.pinned_cpus, cell.cpu_usage, cell.memory_usage))

    @contextlib.contextmanager
    def row(self, title):
        """One of several cases that share the hosts of a test.

        A failure is recorded under the title and the test goes on; all
        guests that the case booted are deleted.
        """
        before = list(self.booted)
        try:
            yield
        except self.skipException:
            raise
        except Exception:
            # Not force_failure: Nova's test case deletes its own attributes
            # before testtools reads that one.
            self.addCleanup(self.fail, 'failed row: ' + title)
            self.addDetailUniqueName(
                title, content.text_content(traceback.format_exc()))
        finally:
            self.delete_all([uuid for uuid in self.booted
                             if uuid not in before])


class PCI:
    """Hosts that give PCI devices away; a mixin for a cloud.

    Aliases ``nic``, ``pf``, ``vf`` have no policy of their own; ``nic`` is
    there also as ``nic-required``, ``nic-preferred`` and ``nic-socket``.
    """

    #: Whether Placement is asked for PCI devices.
    in_placement = False

    def configure(self):
        super().configure()
        spec = [{'vendor_id': fakelibvirt.PCI_VEND_ID, 'product_id': product}
                for product in (HostDevices.NIC, HostDevices.PF,
                                HostDevices.VF)]
        spec += [{'vendor_id': fakelibvirt.PCI_VEND_ID,
                  'product_id': product, 'physical_network': 'physnet4'}
                 for product in (HostDevices.PORT_VF, HostDevices.PORT_PF,
                                 HostDevices.PORT_VDPA)]
        spec.append({
            'vendor_id': fakelibvirt.PCI_VEND_ID, 'remote_managed': 'true',
            'product_id': HostDevices.PORT_REMOTE,
            'physical_network': 'physnet4'})
        alias = [
            pci_alias('nic', HostDevices.NIC, device_type='type-PCI'),
            pci_alias('pf', HostDevices.PF, device_type='type-PF'),
            pci_alias('vf', HostDevices.VF, device_type='type-VF')]
        alias += [
            pci_alias('nic-' + policy, HostDevices.NIC,
                      device_type='type-PCI', numa_policy=policy)
            for policy in ('required', 'preferred', 'socket')]
        self.flags(device_spec=list(map(json.dumps, spec)), alias=alias,
                   report_in_placement=self.in_placement, group='pci')
        self.flags(pci_in_placement=self.in_placement,
                   group='filter_scheduler')

    def pci_flavor(self, alias, vcpus=GUEST_VCPUS, **extra_specs):
        return self.flavor(
            vcpus=vcpus, pci_passthrough__alias=alias, **extra_specs)

    def strict_pci(self, alias, vcpus=GUEST_VCPUS, **extra_specs):
        return self.pci_flavor(alias, vcpus, nfv__pci_numa_affinity='strict',
                               **extra_specs)

    def fill(self, host, node):
        filler = self.flavor(vcpus=PINNED_CPUS_PER_NODE,
                             nfv__numa_node_0=str(node))
        self.assertEqual([[node]], self.occupy(filler, host))


class NFVCloudTestCase(CloudTestCase):
    """A cloud with the plugin, as its documentation says to enable it."""

    extra_filters = ['NFVTopologyFilter', 'VSwitchNUMAAffinityFilter']
    available_filters = ['nova.scheduler.filters.all_filters',
                         'nfv_sched.filters.all_filters']
    weight_classes = ['nova.scheduler.weights.all_weighers',
                      'nfv_sched.weights.all_weighers']

    def record_selections(self):
        """Record the selections of the scheduler, for :meth:`labels`."""
        self.selections = []
        schedule = manager.SchedulerManager._schedule

        def recording(*args, **kwargs):
            found = schedule(*args, **kwargs)
            self.selections += [server[0] for server in found]
            return found

        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.manager.SchedulerManager._schedule', recording))

    def labels(self):
        """Labels in the limits of the server that was scheduled last."""
        limits = self.selections[-1].limits.numa_topology
        if 'network_metadata' not in limits:
            return set()
        return {name for name in limits.network_metadata.physnets
                if name.startswith('nfv_')}


class CappedCPUs:
    """Two shared vCPUs for each core with shared CPUs, on every host."""

    def configure(self):
        super().configure()
        self.flags(shared_vcpus_per_core=2.0, group='nfv_sched')
        self.flags(cpu_allocation_ratio=16.0)


class WholePluginTestCase(NFVCloudTestCase):
    """A cloud with all filters that look after NUMA nodes."""

    extra_filters = ['PciPassthroughFilter', *rules.filters()]
