# SPDX-License-Identifier: Apache-2.0
"""Answers of Nova, Placement and Neutron with values that were changed."""

import json
import random

import fixtures

from nfv_sched.cloud import api
from nfv_sched.network import neutron
from nfv_sched.tests.fuzz import base
from nfv_sched.tests.fuzz.mutations import changed
from nfv_sched.tests.unit.cloud import nova_api
from nfv_sched.tests.unit.network import base as network_base
from nfv_sched.tests.unit.network import neutron_api


class FuzzTest(network_base.NeutronTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('keystoneauth'))
        self.flags(neutron_request_timeout=10.0)

    def fuzz(self, read, errors):
        """Read changed answers until the time is over."""
        def run(chance):
            # The servers have threads of their own.
            self.chance = random.Random(chance.getrandbits(64))
            try:
                read()
            except errors as exc:
                self.assertLess(len(str(exc)), 100000)

        base.count_cases(self, run)

    def test_neutron(self):
        self.api.ports = [
            neutron_api.port(host='h', groups=['sg']),
            neutron_api.port('network:dhcp', host='h')]
        self.api.rules = [neutron_api.rule('sg')]
        self.api.groups = [neutron_api.group('p')]
        self.api.networks = [neutron_api.network(physnet='data')]
        self.api.agents = [
            neutron_api.agent('DHCP agent', 'h', networks=1),
            neutron_api.agent('L3 agent', 'h', routers=1)]
        page = self.api.page
        self.api.page = lambda resource, query: (
            changed(page(resource, query), self.chance)
            if self.chance.random() < 0.4 else page(resource, query))

        def read():
            reader = neutron.Reader()
            try:
                reader.read()
            finally:
                reader.close()

        self.fuzz(read, neutron.NeutronError)

    def test_nova(self):
        cloud = nova_api.CloudAPI()
        cloud.start()
        self.addCleanup(cloud.stop)
        flavor = {'id': '1', 'name': 'f', 'vcpus': 1, 'ram': 1, 'disk': 1,
                  'swap': 0, 'extra_specs': {'hw:numa_nodes': '1'}}

        def read():
            cloud.nova.answers['flavors'] = 200, json.dumps(changed(
                {'flavors': [flavor]}, self.chance)).encode()
            api.read(cloud.connect(), ('flavors',))

        self.fuzz(read, api.APIError)

    def test_hosts(self):
        """Hosts by Nova, with their providers by Placement."""
        cloud = nova_api.CloudAPI()
        cloud.start()
        self.addCleanup(cloud.stop)
        host = '11111111-1111-4111-8111-111111111111'
        cloud.placement.add(host, traits=['CUSTOM_T'], VCPU=8,
                            allocations={'c': {'VCPU': 1}})
        documents = {
            'services': [{
                'id': 's', 'host': 'h', 'binary': 'nova-compute',
                'status': 'enabled', 'state': 'up', 'zone': 'nova',
                'disabled_reason': None}],
            'aggregates': [{'id': 1, 'uuid': host, 'name': 'a',
                            'metadata': {'k': 'v'}, 'hosts': ['h']}],
            'hypervisors': [{
                'id': host, 'hypervisor_hostname': 'h',
                'hypervisor_type': 'QEMU', 'hypervisor_version': 1,
                'service': {'host': 'h'}, 'cpu_info': {}, 'vcpus': 8,
                'vcpus_used': 0, 'memory_mb': 1, 'memory_mb_used': 0,
                'local_gb': 1, 'local_gb_used': 0,
                'disk_available_least': 0}]}
        body, page = cloud.placement.body, cloud.nova.page
        for name, rows in documents.items():
            setattr(cloud.nova, name, rows)

        def maybe(document):
            if document is None or self.chance.random() < 0.8:
                return document
            return changed(document, self.chance)

        cloud.placement.body = lambda path, query: maybe(body(path, query))
        cloud.nova.page = lambda resource, query: maybe(page(resource, query))

        def read():
            api.read(cloud.connect(), ('hosts',))
            self.whole = True

        self.whole = False
        self.fuzz(read, api.APIError)
        self.assertTrue(self.whole)
