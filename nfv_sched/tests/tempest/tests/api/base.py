# SPDX-License-Identifier: Apache-2.0
"""What the API tests have in common.

A test boots guests as an ordinary tenant, reads as an administrator where
they run, and takes what the cloud looks like from the group ``nfv_sched`` of
tempest.conf.  The guests have no console and need no network unless a test
is about ports.
"""

import re

from tempest.common import waiters
from tempest import config
from tempest import exceptions
from tempest.lib.common import api_version_utils
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest import test

CONF = config.CONF

NO_VALID_HOST = 'No valid host was found. '


def parse_nodes(option, host):
    """Return the NUMA nodes that an option like ``vswitch_nodes`` gives.

    :param option: dict, host name or ``*`` to nodes joined by ``+``
    :returns: frozenset of int; empty if the option does not know the host
    """
    text = option.get(host, option.get('*', ''))
    return frozenset(int(node) for node in text.split('+') if node.strip())


def pinned(**extra_specs):
    """vCPUs and extra specs of a guest that Nova places by NUMA node."""
    specs = {'hw:numa_nodes': '1', **extra_specs}
    if CONF.nfv_sched.dedicated_cpus:
        specs['hw:cpu_policy'] = 'dedicated'
    return 2, specs


class NFVSchedTest(api_version_utils.BaseMicroversionTest, test.BaseTestCase):
    """Boots guests as a tenant, looks at them as an administrator."""

    credentials = ['primary', 'admin']
    # 2.86: the API validates extra specs. Before: 2.78 shows topologies, 2.74
    # takes the name of a host.
    min_microversion = '2.86'
    max_microversion = 'latest'

    #: Filters of nfv-sched without which the tests make no sense.
    needed_filters = ()

    #: Options of [nfv_sched] that have to be set for them.
    needed_options = ()

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        for service in ('nova', 'nfv_sched'):
            if not getattr(CONF.service_available, service):
                raise cls.skipException(f'{service} is not available')
        api_version_utils.check_skip_with_microversion(
            cls.min_microversion, cls.max_microversion,
            CONF.compute.min_microversion, CONF.compute.max_microversion)
        cls.require_filters(*cls.needed_filters)
        cls.require_options(*cls.needed_options)

    @classmethod
    def require_filters(cls, *names):
        missing = sorted(set(names) - set(CONF.nfv_sched.enabled_filters))
        if missing:
            raise cls.skipException(
                f'[nfv_sched] enabled_filters lacks {", ".join(missing)}')

    @classmethod
    def require_options(cls, *names):
        for name in names:
            if not CONF.nfv_sched[name]:
                raise cls.skipException(
                    f'[nfv_sched] {name} is {CONF.nfv_sched[name]}')

    @classmethod
    def setup_credentials(cls):
        cls.set_network_resources()
        super().setup_credentials()

    @classmethod
    def setup_clients(cls):
        super().setup_clients()
        cls.servers_client = cls.os_primary.servers_client
        cls.admin_servers_client = cls.os_admin.servers_client
        cls.flavors_client = cls.os_admin.flavors_client
        cls.topology_client = (
            cls.os_admin.nfv_sched_compute.ServerTopologyClient())

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.setup_api_microversion_fixture(
            compute_microversion=api_version_utils.select_request_microversion(
                cls.min_microversion, CONF.compute.min_microversion))
        services = cls.os_admin.services_client.list_services(
            binary='nova-compute')['services']
        cls.hosts = sorted(
            service['host'] for service in services
            if service['state'] == 'up' and service['status'] == 'enabled')

    # The cloud

    def vswitch_nodes(self, host):
        return parse_nodes(CONF.nfv_sched.vswitch_nodes, host)

    def numa_nodes(self, host):
        option = CONF.nfv_sched.numa_nodes
        return int(option.get(host, option.get('*', 1)))

    # Guests

    def create_flavor(self, vcpus, extra_specs):
        flavor = self.flavors_client.create_flavor(
            name=data_utils.rand_name('nfv-sched', prefix='tempest'),
            ram=CONF.nfv_sched.guest_ram, vcpus=vcpus,
            disk=CONF.nfv_sched.guest_disk)['flavor']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.flavors_client.delete_flavor, flavor['id'])
        if extra_specs:
            self.flavors_client.set_flavor_extra_spec(
                flavor['id'], **extra_specs)
        return flavor['id']

    def request_server(self, flavor, client=None, networks='none', **kwargs):
        """Ask for a server that goes away with the test; return its UUID."""
        client = client or self.servers_client
        server = client.create_server(
            name=data_utils.rand_name('nfv-sched', prefix='tempest'),
            imageRef=CONF.compute.image_ref, flavorRef=flavor,
            networks=networks, **kwargs)['server']
        self.addCleanup(self.delete_server, server['id'])
        return server['id']

    def delete_server(self, server_id):
        test_utils.call_and_ignore_notfound_exc(
            self.admin_servers_client.delete_server, server_id)
        waiters.wait_for_server_termination(
            self.admin_servers_client, server_id, ignore_error=True)

    def settled(self, server_id, client=None):
        """Wait until a new server is active or in error, and return it."""
        client = client or self.servers_client
        try:
            waiters.wait_for_server_status(client, server_id, 'ACTIVE')
        except exceptions.BuildErrorException:
            pass  # the caller looks at the status
        return client.show_server(server_id)['server']

    def boot(self, flavor, **kwargs):
        """Boot a server, wait until it is active, and return its UUID."""
        server_id = self.request_server(flavor, **kwargs)
        server = self.settled(server_id, kwargs.get('client'))
        self.assertEqual('ACTIVE', server['status'], server.get('fault'))
        return server_id

    def boot_refused(self, flavor, **kwargs):
        """Boot a server that no host may take; return what its owner reads."""
        server_id = self.request_server(flavor, **kwargs)
        server = self.settled(server_id, kwargs.get('client'))
        self.assertEqual('ERROR', server['status'])
        message = server['fault']['message']
        self.assertTrue(message.startswith(NO_VALID_HOST), message)
        # Unless the operator says so.
        if CONF.nfv_sched.expose_reasons != 'hosts':
            for host in self.hosts:
                self.assertNotRegex(message, rf'\b{re.escape(host)}\b')
        return message

    def guest_nodes(self, server_id):
        return self.topology_client.show_server_topology(server_id)['nodes']

    def host_nodes(self, server_id):
        return [node['host_node'] for node in self.guest_nodes(server_id)]

    # What must hold

    def assert_with(self, nodes_of, server_id):
        """Every NUMA node of the guest is on one of a kind.

        :param nodes_of: called with a host for its nodes of that kind
        :returns: the host of the server
        """
        server = self.admin_servers_client.show_server(server_id)['server']
        host, nodes = (server['OS-EXT-SRV-ATTR:host'],
                       self.host_nodes(server_id))
        self.assertTrue(nodes, f'{server_id} has no NUMA topology')
        self.assertLessEqual(
            set(nodes), nodes_of(host),
            f'{server_id} is on NUMA nodes {nodes} of {host}')
        return host

    def assert_reason(self, message, *parts):
        """A refusal says what refused and what was needed."""
        if CONF.nfv_sched.expose_reasons == 'none':
            self.assertEqual(NO_VALID_HOST.strip(), message.strip())
            return
        for part in parts:
            self.assertIn(part, message)
