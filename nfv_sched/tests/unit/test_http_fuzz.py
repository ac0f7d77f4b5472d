# SPDX-License-Identifier: Apache-2.0
"""Answers of Nova, Placement and Neutron with values that were changed.

``NFV_SCHED_FUZZ_SECONDS`` says how long each service is tried.
"""

import copy
import json
import os
import random
import time

import fixtures

from nfv_sched.cloud import api
from nfv_sched.network import neutron
from nfv_sched.tests.unit.cloud import nova_api
from nfv_sched.tests.unit.network import base
from nfv_sched.tests.unit.network import neutron_api

SECONDS = float(os.environ.get('NFV_SCHED_FUZZ_SECONDS', '6'))

_VALUES = (None, True, False, 0, -1, 1 << 63, 10 ** 400, 1.5, 1e300,
           float('inf'), float('nan'), '', 'x' * 10000, '\x00\u202e', '\ud800',
           '9' * 5000, [], {}, [None], {'': None}, [[[]]])


def places(value, path=()):
    """Return the paths of all values in a document."""
    yield path
    items = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    for key, each in items:
        yield from places(each, (*path, key))


def changed(document, chance):
    """Return a document with some of its values replaced or removed."""
    document = copy.deepcopy(document)
    for _number in range(chance.choice((1, 1, 2, 4))):
        path = chance.choice(list(places(document)))
        if not path:
            return chance.choice(_VALUES)
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        if chance.random() < 0.2:
            del parent[path[-1]]
        else:
            parent[path[-1]] = chance.choice(_VALUES)
    return document


class FuzzTest(base.NeutronTestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('keystoneauth'))
        self.flags(neutron_request_timeout=10.0)

    def fuzz(self, read, errors):
        """Read changed answers until the time is over."""
        deadline = time.monotonic() + SECONDS
        seed = 0
        while time.monotonic() < deadline:
            self.chance = random.Random(seed)
            try:
                read()
            except errors as exc:
                self.assertLess(len(str(exc)), 100000, f'seed {seed}')
            except Exception as exc:
                raise AssertionError(f'seed {seed}: {exc!r}') from exc
            seed += 1
        self.assertGreater(seed, 5)

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
