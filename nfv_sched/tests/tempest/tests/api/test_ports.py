# SPDX-License-Identifier: Apache-2.0
"""Ports of the virtual switch: of a guest, and in the ledger."""

import ipaddress

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import decorators

from nfv_sched.tests.tempest.tests.api import base

CONF = config.CONF

PORT = 'CUSTOM_NFV_VSWITCH_PORT'


class PortTest(base.NFVSchedTest):
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
        return [{'uuid': self.network}] * count

    @decorators.attr(type=['negative'])
    @decorators.idempotent_id('2f9b6c14-d0a7-4c3e-8b5d-9e4a7f1c3502')
    def test_above_the_limit_negative(self):
        self.require_options('vnics_per_guest')
        most = CONF.nfv_sched.vnics_per_guest
        message = self.boot_refused(self.create_flavor(1, {}),
                                    networks=self.ports(most + 1))
        self.assert_reason(message, 'vNICs of a server', f'{most + 1} needed')

    @decorators.idempotent_id('2f9b6c14-d0a7-4c3e-8b5d-9e4a7f1c3504')
    def test_ports_are_allocated(self):
        self.require_options('ledger')
        server = self.boot(self.create_flavor(1, {}), networks=self.ports(3))
        self.assertEqual([3], self.ledgered(server))
        self.delete_server(server)
        self.assertEqual([], self.ledgered(server))

    def ledgered(self, server_id):
        allocations = self.os_admin.placement_client.list_allocations(
            server_id)['allocations']
        return [
            entry['resources'][PORT] for entry in allocations.values()
            if PORT in entry['resources']]
