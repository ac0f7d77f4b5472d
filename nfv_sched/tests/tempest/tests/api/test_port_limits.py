# SPDX-License-Identifier: Apache-2.0
"""Ports of the virtual switch: of a guest, of a host, in the ledger."""

import ipaddress

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import decorators

from nfv_sched.tests.tempest.tests.api import base

CONF = config.CONF

PORT = 'CUSTOM_NFV_VSWITCH_PORT'


class PortTest(base.NFVSchedTest):
    """Guests with ports on a network of the tenant."""

    needed_filters = ('VSwitchPortLimitFilter',)

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.service_available.neutron:
            raise cls.skipException('Neutron is not available')

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        networks = cls.os_primary.networks_client
        network = networks.create_network(
            name=data_utils.rand_name('nfv-sched', prefix='tempest'))
        cls.network = network['network']['id']
        cls.addClassResourceCleanup(
            test_utils.call_and_ignore_notfound_exc,
            networks.delete_network, cls.network)
        cidr = ipaddress.ip_network(CONF.network.project_network_cidr)
        subnets = cls.os_primary.subnets_client
        subnet = subnets.create_subnet(
            network_id=cls.network, cidr=str(cidr), ip_version=4,
            enable_dhcp=False, gateway_ip=None)
        cls.addClassResourceCleanup(
            test_utils.call_and_ignore_notfound_exc,
            subnets.delete_subnet, subnet['subnet']['id'])

    def ports(self, count):
        """So many interfaces, as a request for a server has them."""
        return [{'uuid': self.network}] * count


class GuestPortLimitTest(PortTest):
    """The number of ports of one guest is limited."""

    needed_options = ('vnics_per_guest',)

    @decorators.idempotent_id('2f9b6c14-d0a7-4c3e-8b5d-9e4a7f1c3501')
    def test_at_the_limit(self):
        self.boot(self.create_flavor(1, {}),
                  networks=self.ports(CONF.nfv_sched.vnics_per_guest))

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('2f9b6c14-d0a7-4c3e-8b5d-9e4a7f1c3502')
    def test_above_the_limit_negative(self):
        most = CONF.nfv_sched.vnics_per_guest
        message = self.boot_refused(self.create_flavor(1, {}),
                                    networks=self.ports(most + 1))
        self.assert_reason(message, 'vNICs of a server', f'{most + 1} needed')


@decorators.serial
class HostPortLimitTest(PortTest):
    """An aggregate lowers the limit of a host below what a guest needs."""

    def limit_host(self, host, ports):
        """Give a host a limit of its own, for the time of the test.

        :returns: what takes the limit away
        """
        aggregates = self.os_admin.aggregates_client
        aggregate = aggregates.create_aggregate(
            name=data_utils.rand_name('nfv-sched', prefix='tempest'))
        number = aggregate['aggregate']['id']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        aggregates.delete_aggregate, number)
        aggregates.set_metadata(
            number, metadata={'vswitch_ports_per_node': str(ports)})
        aggregates.add_host(number, host=host)
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        aggregates.remove_host, number, host=host)
        return lambda: aggregates.remove_host(number, host=host)

    @decorators.idempotent_id('2f9b6c14-d0a7-4c3e-8b5d-9e4a7f1c3503')
    def test_limit_of_an_aggregate(self):
        host = self.hosts[0]
        flavor = self.create_flavor(1, {})
        lift = self.limit_host(host, 1)
        self.wait_for_ledger(host, lambda room: room < 2)
        # The tenant's network is not the administrator's.
        networks = [{'port': self.admin_port()} for _ in range(2)]
        message = self.boot_refused_on(host, flavor, networks=networks)
        self.assert_reason(message, 'vSwitch ports: 2 needed')
        lift()
        self.wait_for_ledger(host, lambda room: room >= 2)
        server = self.boot(flavor, client=self.admin_servers_client,
                           host=host, networks=networks)
        self.assertEqual(host, self.host_of(server))

    def wait_for_ledger(self, host, expected):
        """Wait until nfv-sched-ledger has published a limit.

        :param expected: called with the ports that guests may allocate
        """
        if not CONF.nfv_sched.ledger:
            return
        nodes = self.os_admin.hypervisor_client.list_hypervisors(
            detail=True)['hypervisors']
        node, = [node['hypervisor_hostname'] for node in nodes
                 if node['service']['host'] == host]
        client = self.os_admin.resource_providers_client
        provider, = client.list_resource_providers(
            name=f'{node}_nfv_ledger')['resource_providers']

        def published():
            entry = client.list_resource_provider_inventories(
                provider['uuid'])['inventories'][PORT]
            return expected(entry['total'] - entry['reserved'])

        self.assertTrue(
            test_utils.call_until_true(
                published, CONF.compute.build_timeout,
                CONF.compute.build_interval),
            f'the limit of {host} is not published in the ledger')

    def admin_port(self):
        """A port that an administrator may give a server."""
        ports = self.os_admin.ports_client
        port = ports.create_port(network_id=self.network)['port']['id']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        ports.delete_port, port)
        return port


class LedgerTest(PortTest):
    """The ports of a guest are allocated in Placement while it lives."""

    needed_options = ('ledger',)

    def ledgered(self, server_id):
        """What a server has allocated in the ledger of each provider."""
        allocations = self.os_admin.placement_client.list_allocations(
            server_id)['allocations']
        return [
            entry['resources'][PORT] for entry in allocations.values()
            if PORT in entry['resources']]

    @decorators.idempotent_id('2f9b6c14-d0a7-4c3e-8b5d-9e4a7f1c3504')
    def test_ports_are_allocated(self):
        server = self.boot(self.create_flavor(1, {}), networks=self.ports(3))
        self.assertEqual([3], self.ledgered(server))
        self.delete_server(server)
        self.assertEqual([], self.ledgered(server))

    @decorators.idempotent_id('2f9b6c14-d0a7-4c3e-8b5d-9e4a7f1c3505')
    def test_guest_without_ports(self):
        server = self.boot(self.create_flavor(1, {}))
        self.assertEqual([], self.ledgered(server))
