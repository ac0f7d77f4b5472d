# SPDX-License-Identifier: Apache-2.0
"""As much of the APIs of Nova and Placement as reading a cloud by them takes.

With Keystone and Neutron from :mod:`nfv_sched.tests.unit.limits.neutron_api`;
a test can make each list misbehave.
"""

import json
import urllib.parse

import openstack

from nfv_sched.tests import http_server
from nfv_sched.tests.unit.limits import neutron_api


def flavor(name, vcpus=4, memory=2048, **extra_specs):
    """A flavor as Nova shows it; ``__`` in keys stands for a colon."""
    return {
        'id': f'id-of-{name}', 'name': name, 'vcpus': vcpus, 'ram': memory,
        'disk': 20, 'swap': '', 'rxtx_factor': 1.0, 'description': None,
        'OS-FLV-EXT-DATA:ephemeral': 0, 'OS-FLV-DISABLED:disabled': False,
        'os-flavor-access:is_public': True, 'links': [],
        'extra_specs': {key.replace('__', ':'): value
                        for key, value in extra_specs.items()}}


def server(name, of):
    """A server as Nova shows it to an administrator.

    :param of: its flavor
    """
    return {
        'id': f'id-of-{name}', 'name': name, 'tenant_id': 'p',
        'status': 'ACTIVE', 'flavor': {
            'original_name': of['name'], 'vcpus': of['vcpus'],
            'ram': of['ram'], 'disk': of['disk'], 'ephemeral': 0, 'swap': 0,
            'extra_specs': dict(of['extra_specs'])}}


def placed_server(name, of, host, **fields):
    """The same at the newest microversion, with all that is of its place.

    :param host: name of its host; None if it has none
    """
    return {
        **server(name, of), 'created': '2026-01-02T03:04:05Z',
        'image': {'id': 'i', 'links': [], 'properties': {}},
        'OS-EXT-SRV-ATTR:host': host, 'OS-EXT-STS:vm_state': 'active',
        'OS-EXT-STS:task_state': None, 'OS-EXT-STS:power_state': 1,
        'locked': False, 'locked_reason': None,
        'pinned_availability_zone': None, 'scheduler_hints': {}, **fields}


def numa_node(host_node, pins, shared=(), memory=1024):
    """A NUMA node of a server, as Nova shows it to an administrator.

    :param pins: vCPU -> CPU of the host
    """
    vcpus = sorted([*pins, *shared])
    return {'vcpu_set': vcpus, 'siblings': [vcpus], 'memory_mb': memory,
            'host_node': host_node, 'cpu_pinning': {
                str(vcpu): cpu for vcpu, cpu in pins.items()}}


def topology(*nodes, page_size=None):
    """The NUMA topology of a server.

    :param page_size: KiB
    """
    return {'nodes': list(nodes), 'pagesize_kb': page_size}


def hypervisor(host, name=None, **fields):
    """A compute node as Nova shows it before microversion 2.88."""
    name = name or host
    return {
        'id': f'id-of-{name}', 'hypervisor_hostname': name,
        'hypervisor_type': 'QEMU', 'hypervisor_version': 8002000,
        'host_ip': '192.0.2.2', 'state': 'up', 'status': 'enabled',
        'service': {'id': f'service-{host}', 'host': host,
                    'disabled_reason': None},
        'cpu_info': {'arch': 'x86_64'}, 'vcpus': 8, 'vcpus_used': 2,
        'memory_mb': 4096, 'memory_mb_used': 1024, 'local_gb': 100,
        'local_gb_used': 20, 'disk_available_least': -5, **fields}


def service(host, **fields):
    """A service nova-compute."""
    return {
        'binary': 'nova-compute', 'host': host, 'id': f'service-{host}',
        'zone': 'nova', 'status': 'enabled', 'state': 'up',
        'updated_at': '2026-01-02T03:04:05.000000', 'disabled_reason': None,
        'forced_down': False, **fields}


def aggregate(number, name, hosts=(), **metadata):
    """A host aggregate."""
    return {
        'id': number, 'uuid': f'id-of-{name}', 'name': name,
        'availability_zone': metadata.get('availability_zone'),
        'hosts': list(hosts), 'metadata': metadata, 'deleted': False}


def group(name, members=(), policy='anti-affinity', **rules):
    """A server group."""
    return {'id': f'id-of-{name}', 'name': name, 'policy': policy,
            'rules': rules, 'members': list(members), 'project_id': 'p',
            'user_id': 'u'}


# What Nova calls them in paths.
_RESOURCES = {'os-hypervisors': 'hypervisors', 'os-services': 'services',
              'os-aggregates': 'aggregates',
              'os-server-groups': 'server_groups'}


def quota_set(**limits):
    """A quota as Nova shows it in detail.

    :param limits: resource -> (limit, in use)
    """
    return {'id': 'p', 'key_pairs': {'limit': 100, 'in_use': 0, 'reserved': 0},
            **{name: {'limit': limit, 'in_use': used, 'reserved': 0}
               for name, (limit, used) in limits.items()}}


class NovaAPI(http_server.LocalServer):
    """A server on a port of its own.

    :ivar flavors: what it has; so are ``servers``, ``hypervisors``,
        ``services``, ``aggregates`` and ``server_groups``
    :ivar quota_sets: ID of a project -> its quota, as Nova shows it
    :ivar topologies: ID of a server -> its NUMA topology, see
        :func:`numa_node`; or (status, body)
    :ivar microversion: the newest that it has; None to name none
    :ivar max_limit: most items of a page
    :ivar answers: resource -> (status, body) that it answers instead
    :ivar requests: (resource, query, microversion) of what was asked
    """

    def __init__(self):
        super().__init__(_handler_class(self))
        self.flavors = []
        self.servers = []
        self.hypervisors = []
        self.services = []
        self.aggregates = []
        self.server_groups = []
        self.quota_sets = {}
        self.topologies = {}
        self.microversion = '2.100'
        self.max_limit = 1000
        self.answers = {}
        self.requests = []

    def answer(self, method, path, query, body):
        """What a subclass answers, as (status, body).

        :param path: of the URL, without version, in parts
        :param query: of the URL
        :param body: of the request; None if it has none
        """
        if method != 'GET':
            return 405, {}
        if path[2:] == ['topology']:
            found = self.topologies.get(path[1], topology())
            return found if isinstance(found, tuple) else (200, found)
        resource = _RESOURCES.get(path[0], path[0])
        if resource in self.answers:
            return self.answers[resource]
        if resource == 'os-quota-sets':
            return 200, {'quota_set': self.quota_sets[
                urllib.parse.unquote(path[1])]}
        return 200, self.page(resource, query)

    def page(self, resource, query):
        """The body that Nova would send."""
        items = getattr(self, resource)
        if resource in ('services', 'aggregates'):
            return {resource: items}
        if resource == 'server_groups':
            start = int(query['offset'][0])
            limit = min(self.max_limit, int(query['limit'][0]))
            return {resource: items[start:start + limit]}
        if resource == 'servers' and 'host' in query:
            items = [each for each in items
                     if each['OS-EXT-SRV-ATTR:host'] in query['host']]
        if 'marker' in query:
            marker, = query['marker']
            items = items[[each['id'] for each in items].index(marker) + 1:]
        limit = min(self.max_limit, int(query['limit'][0]))
        body = {resource: items[:limit]}
        if len(items) > limit:
            body[f'{resource}_links'] = [
                {'rel': 'next', 'href': 'http://192.0.2.1/proxy'}]
        return body


def _handler_class(api):

    class Handler(http_server.Handler):

        def do_GET(self):  # noqa: N802
            url = urllib.parse.urlsplit(self.path)
            parts = url.path.strip('/').split('/')
            status, body = 200, {'version': {
                'id': 'v2.1', 'status': 'CURRENT',
                'version': api.microversion or '',
                'min_version': '2.1' if api.microversion else '', 'links': [
                    {'rel': 'self', 'href': f'{api.url}/v2.1/'}]}}
            if len(parts) > 1:
                resource = ('topologies' if parts[3:] == ['topology']
                            else _RESOURCES.get(parts[1], parts[1]))
                query = urllib.parse.parse_qs(url.query)
                api.requests.append((resource, query, self.headers.get(
                    'OpenStack-API-Version')))
                if self.headers.get('X-Auth-Token') != neutron_api.TOKEN:
                    status, body = 401, {}
                else:
                    length = int(self.headers.get('Content-Length', 0))
                    status, body = api.answer(
                        self.command, parts[1:], query, json.loads(
                            self.rfile.read(length)) if length else None)
            if status is not None:
                _reply(self, status, body)

        do_POST = do_PUT = do_GET  # noqa: N815

    return Handler


def _reply(handler, status, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header('Content-Type', 'application/json')
    handler.send_header('Content-Length', str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


class PlacementAPI(http_server.LocalServer):
    """A server on a port of its own; only what is read of Placement.

    :ivar providers: what it has, see :meth:`add`
    :ivar answers: path -> (status, body) that it answers instead
    """

    def __init__(self):
        super().__init__(_placement_handler_class(self))
        self.providers = []
        self.answers = {}

    def add(self, uuid, parent=None, traits=(), aggregates=(),
            allocations=None, **totals):
        """Add a provider.

        :param allocations: consumer -> resource class -> amount
        :param totals: resource class -> total
        """
        self.providers.append({
            'uuid': uuid, 'name': f'name-of-{uuid}', 'generation': 1,
            'parent_provider_uuid': parent,
            'root_provider_uuid': parent or uuid, 'traits': list(traits),
            'aggregates': list(aggregates), 'links': [],
            'allocations': {
                consumer: {'resources': resources, 'consumer_generation': 1}
                for consumer, resources in (allocations or {}).items()},
            'inventories': {name: {
                'total': total, 'reserved': 1, 'allocation_ratio': 2.0,
                'min_unit': 1, 'max_unit': total, 'step_size': 1}
                for name, total in totals.items()}})

    def body(self, path, query):
        """The body that Placement would send; None for an unknown path."""
        if path == '':
            return {'versions': [{
                'id': 'v1.0', 'min_version': '1.0', 'max_version': '1.39',
                'status': 'CURRENT', 'links': [{'rel': 'self', 'href': ''}]}]}
        if path == 'resource_classes':
            return {'resource_classes': [{'name': name} for name in sorted({
                name for each in self.providers
                for name in each['inventories']})]}
        if path == 'traits':
            return {'traits': sorted({
                trait for each in self.providers for trait in each['traits']})}
        if path == 'resource_providers':
            return {path: [
                each for each in self.providers
                if set(query.get('required', ())) <= set(each['traits'])
                and set(query.get('member_of', ())) <= set(
                    each['aggregates'])]}
        _providers, uuid, what = path.split('/')
        for each in self.providers:
            if each['uuid'] == uuid:
                return {'resource_provider_generation': 1, what: each[what]}
        return None


def _placement_handler_class(api):

    class Handler(http_server.Handler):

        def do_GET(self):  # noqa: N802
            url = urllib.parse.urlsplit(self.path)
            path = url.path.strip('/')
            status, body = 200, api.body(
                path, urllib.parse.parse_qs(url.query))
            if body is None:
                status = 404
            _reply(self, *api.answers.get(path, (status, body)))

    return Handler


class GlanceAPI(http_server.LocalServer):
    """A server on a port of its own; only what is read of Glance.

    :ivar images: images, as Glance shows them
    :ivar status: of all answers to requests for images
    """

    def __init__(self):
        super().__init__(_glance_handler_class(self))
        self.images = []
        self.status = 200

    def body(self, path, query):
        """The body that Glance would send; None for an unknown path."""
        if path == '':
            return {'versions': [{
                'id': 'v2.16', 'status': 'CURRENT', 'links': [
                    {'rel': 'self', 'href': f'{self.url}/v2/'}]}]}
        if path == 'v2/images':
            names = query.get('name')
            return {'images': [each for each in self.images if not names
                               or each['name'] in names]}
        return next((each for each in self.images
                     if path == f'v2/images/{each["id"]}'), None)


def _glance_handler_class(api):

    class Handler(http_server.Handler):

        def do_GET(self):  # noqa: N802
            url = urllib.parse.urlsplit(self.path)
            path = url.path.strip('/')
            body = api.body(path, urllib.parse.parse_qs(url.query))
            if body is None:
                _reply(self, 404, {})
            else:
                _reply(self, api.status if path else 300, body)

    return Handler


class CloudAPI(neutron_api.NeutronAPI):
    """Keystone and Neutron, and Nova, Placement and Glance beside them.

    :param nova: instead of a :class:`NovaAPI`
    :ivar nova: Nova
    :ivar glance: Glance
    :ivar placement: Placement; None if the cloud has none
    :ivar services: types of those in the catalog
    """

    def __init__(self, nova=None):
        super().__init__()
        self.needs_token = True
        self.nova = nova or NovaAPI()
        self.placement = PlacementAPI()
        self.glance = GlanceAPI()
        self._all = (self.nova, self.placement, self.glance)
        self.services = (
            'network', 'compute', 'placement', 'image', 'identity')

    def start(self):
        """Listen."""
        super().start()
        for api in self._all:
            api.start()

    def stop(self):
        """Refuse connections from now on."""
        super().stop()
        for api in self._all:
            api.stop()

    def token(self):
        """Keystone's answer, with all of them in the catalog."""
        found = super().token()
        found['token']['catalog'] = [
            {'type': kind, 'name': name, 'id': name, 'endpoints': [
                {'id': name, 'interface': 'public', 'url': url,
                 'region': 'RegionOne', 'region_id': 'RegionOne'}]}
            for kind, name, url in (
                ('network', 'neutron', self.url),
                ('compute', 'nova', f'{self.nova.url}/v2.1'),
                ('placement', 'placement',
                 self.placement and self.placement.url),
                ('image', 'glance', self.glance.url),
                ('identity', 'keystone', f'{self.url}/identity/v3'))
            if url and kind in self.services]
        return found

    def connect(self, **fields):
        """A connection with the account, whatever files and variables say.

        :param fields: further ones of ``openstack.connect``
        """
        return openstack.connect(
            load_yaml_config=False, load_envvars=False,
            region_name='RegionOne', auth={
                'auth_url': f'{self.url}/identity/v3', 'username': 'admin',
                'password': neutron_api.PASSWORD, 'project_name': 'admin',
                'user_domain_id': 'default', 'project_domain_id': 'default'},
            **fields)

    def variables(self, password=neutron_api.PASSWORD):
        """The account, as environment variables."""
        return {
            'OS_AUTH_URL': f'{self.url}/identity/v3', 'OS_USERNAME': 'admin',
            'OS_PASSWORD': password, 'OS_PROJECT_NAME': 'admin',
            'OS_USER_DOMAIN_ID': 'default',
            'OS_PROJECT_DOMAIN_ID': 'default'}
