# SPDX-License-Identifier: Apache-2.0
"""Answers of Nova, Placement and Neutron with values that were changed."""

import contextlib
import json
import random
import time

import fixtures

from nfv_sched.ledger import client
from nfv_sched.ledger import neutron
from nfv_sched.limits import demand
from nfv_sched.limits import names
from nfv_sched.ops.cloud import api
from nfv_sched.ops.cloud import database
from nfv_sched.tests.fuzz import base
from nfv_sched.tests.fuzz.mutations import changed
from nfv_sched.tests import http_server
from nfv_sched.tests.unit.limits import base as network_base
from nfv_sched.tests.unit.limits import neutron_api
from nfv_sched.tests.unit.ops.cloud import nova_api

_HOST = '11111111-1111-4111-8111-111111111111'
_SERVER = '22222222-2222-4222-8222-222222222222'


class FuzzTest(network_base.NeutronTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('keystoneauth'))
        self.flags(neutron_request_timeout=10.0)

    def fuzz(self, read, errors):
        def run(chance):
            # The servers have threads of their own.
            self.chance = random.Random(chance.getrandbits(64))
            try:
                read()
            except errors as exc:
                self.assertLess(len(str(exc)), 100000)

        base.count_cases(self, run)

    def test_neutron(self):
        """All that is read, and what one request lacks by itself."""
        port = neutron_api.port(host='h', groups=['sg'])
        self.api.ports = [port, neutron_api.port('network:dhcp', host='h')]
        self.api.rules = [neutron_api.rule('sg')]
        self.api.groups = [neutron_api.group('p')]
        self.api.networks = [neutron_api.network(physnet='data')]
        self.api.agents = [
            neutron_api.agent('DHCP agent', 'h', networks=1),
            neutron_api.agent('L3 agent', 'h', routers=1)]
        self.api.missing = set()
        self.api.default_rules = [{'id': 'r', 'used_in_default_sg': True}]
        self.api.page = self.changing(self.api.page)
        lacking = demand.Lacking(
            (port['id'],), ('sg',), ('p', 'q'),
            (self.api.networks[0]['id'],))

        def read():
            with contextlib.closing(neutron.Reader()) as reader:
                if self.chance.random() < 0.5:
                    reader.read()
                else:
                    reader.probe()
                    reader.look_up(lacking, time.monotonic() + 10)

        self.fuzz(read, neutron.NeutronError)

    def cloud(self):
        cloud = nova_api.CloudAPI().start_for(self)
        for service in cloud, cloud.nova:
            service.page = self.changing(service.page)
        return cloud

    def changing(self, answer):
        def maybe(*args):
            document = answer(*args)
            if document is None or self.chance.random() < 0.8:
                return document
            return changed(document, self.chance)

        return maybe

    def fuzz_cloud(self, cloud, *kinds):
        """Read a cloud in one of several ways, each of which may succeed."""
        read = set()

        def read_one():
            parts = self.chance.choice(kinds)
            api.read(cloud.connect(), parts)
            read.add(parts)

        self.fuzz(read_one, api.APIError)
        self.assertNotEqual(set(), read)

    def test_nova(self):
        cloud = self.cloud()
        flavor = nova_api.flavor('f', hw__numa_nodes='1')
        cloud.nova.flavors = [flavor]
        cloud.nova.services = [nova_api.service('h')]
        cloud.nova.servers = [
            nova_api.server(name, flavor) for name in 'ab']
        self.fuzz_cloud(cloud, ('flavors',), ('servers',))

    def test_network_agents(self):
        cloud = self.cloud()
        cloud.networks = [
            neutron_api.network(physnet='data'),
            neutron_api.network(kind='vxlan')]
        cloud.agents = [
            neutron_api.agent('DHCP agent', 'h', networks=1),
            neutron_api.agent('L3 agent', 'h', routers=1),
            neutron_api.agent('Open vSwitch agent', 'h', bridge_mappings={
                'data': 'br-data'}, tunnel_types=['vxlan']),
            neutron_api.agent('OVN Controller Gateway agent', 'h',
                              bridge_mappings='data:br-data')]
        cloud.served = {
            cloud.agents[0]['id']: cloud.networks,
            cloud.agents[1]['id']: [neutron_api.router()]}
        cloud.ports = [
            neutron_api.port(owner, host='h', network=cloud.networks[0]['id'])
            for owner in ('network:dhcp', 'network:router_gateway',
                          'network:router_interface')]
        self.fuzz_cloud(cloud, ('network_agents',))

    def test_ledger(self):
        """Each call that the ledger makes, with each kind of answer."""
        service = _LedgerAPI(lambda: self.chance).start_for(self)
        with open(self.nova_conf, 'a') as nova_conf:
            nova_conf.write('[placement]\nauth_type = none\n'
                            f'endpoint_override = {service.url}\n'
                            'timeout = 10\n')
        network_base.CONF(['--config-file', self.nova_conf], project='nova')
        placement = client.Client(network_base.CONF)
        self.addCleanup(placement.close)
        held = names.Held(1, {names.PORTS: 2})
        calls = (
            placement.define, placement.undefined, placement.providers,
            placement.members, placement.traits, placement.resource_classes,
            lambda: placement.create(_HOST, 'h'),
            lambda: placement.exists(_HOST),
            lambda: placement.mark(_HOST, 1),
            lambda: placement.unmark(_HOST),
            lambda: placement.members(f'?member_of={_HOST}'),
            lambda: placement.inventories(_HOST),
            lambda: placement.held(_HOST),
            lambda: placement.replace(_HOST, 1, {}),
            lambda: placement.lower(_SERVER, _HOST, held, {names.PORTS: 1}),
            lambda: placement.lower(_SERVER, _HOST, held, {}),
            lambda: database.read_places(placement, 1, [_HOST], [_HOST],
                                         lambda *progress: None))
        completed = set()

        def read():
            number = self.chance.randrange(len(calls))
            calls[number]()
            completed.add(number)

        self.fuzz(read, client.PlacementError)
        self.assertGreater(len(completed), 5)


class _LedgerAPI(http_server.LocalServer):
    """A Placement that answers all requests by all it ever says, changed."""

    def __init__(self, chance):
        super().__init__(_ledger_handler_class(chance))


def _ledger_handler_class(chance):
    inventory = {'total': 8, 'reserved': 0, 'allocation_ratio': 1.0,
                 'min_unit': 1, 'max_unit': 8, 'step_size': 1}
    allocation = {'resources': {names.PORTS: 2}, 'consumer_generation': 1}
    answer = {
        'generation': 1, 'resource_provider_generation': 1,
        'consumer_generation': 1, 'project_id': 'p', 'user_id': 'u',
        'resource_providers': [{
            'uuid': _HOST, 'name': 'h', 'generation': 1,
            'parent_provider_uuid': None, 'root_provider_uuid': _HOST}],
        'traits': ['CUSTOM_T', names.TRAIT],
        'resource_classes': [{'name': names.PORTS}],
        'inventories': {names.PORTS: inventory},
        'allocations': {_SERVER: allocation, _HOST: allocation},
        'errors': [{'code': 'placement.inventory.inuse', 'status': 409,
                    'detail': f'no such trait: {names.TRAIT}'}]}

    class Handler(http_server.Handler):

        def _any(self):
            self.rfile.read(int(self.headers.get('Content-Length', 0)))
            document = answer
            if chance().random() < 0.7:
                document = changed(answer, chance())
            data = json.dumps(document).encode()
            self.send_response(chance().choice(
                (200, 200, 200, 200, 400, 404, 409, 503)))
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = _any  # noqa: N815

    return Handler
