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
    """Return a server as Nova shows it to an administrator."""
    return {
        'id': f'id-of-{name}', 'name': name, 'tenant_id': 'p',
        'status': 'ACTIVE', 'flavor': {
            'original_name': of['name'], 'vcpus': of['vcpus'],
            'ram': of['ram'], 'disk': of['disk'], 'ephemeral': 0, 'swap': 0,
            'extra_specs': dict(of['extra_specs'])}}


def service(host, **fields):
    return {
        'binary': 'nova-compute', 'host': host, 'id': f'service-{host}',
        'zone': 'nova', 'status': 'enabled', 'state': 'up',
        'updated_at': '2026-01-02T03:04:05.000000', 'disabled_reason': None,
        'forced_down': False, **fields}


class NovaAPI(http_server.LocalServer):
    """A server on a port of its own.

    :ivar flavors: what it has; so are ``servers`` and ``services``
    :ivar microversion: the newest that it has; None to name none
    :ivar max_limit: most items of a page
    :ivar answers: resource -> (status, body) that it answers instead
    :ivar requests: (resource, query, microversion) of what was asked
    """

    def __init__(self):
        super().__init__(_handler_class(self))
        self.flavors = []
        self.servers = []
        self.services = []
        self.microversion = '2.100'
        self.max_limit = 1000
        self.answers = {}
        self.requests = []

    def answer(self, method, path, query, body):
        """Return what a subclass answers, as (status, body).

        :param path: of the URL, without version, in parts
        :param body: of the request; None if it has none
        """
        if method != 'GET':
            return 405, {}
        resource = path[0].removeprefix('os-')
        if resource in self.answers:
            return self.answers[resource]
        return 200, self.page(resource, query)

    def page(self, resource, query):
        items = getattr(self, resource)
        if resource == 'services':
            return {resource: items}
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
                resource = parts[1].removeprefix('os-')
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


class GlanceAPI(http_server.LocalServer):
    """A server on a port of its own; only what is read of Glance.

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
    """Keystone and Neutron, and Nova and Glance beside them.

    :param nova: instead of a :class:`NovaAPI`
    :ivar services: types of those in the catalog
    """

    def __init__(self, nova=None):
        super().__init__()
        self.needs_token = True
        self.nova = nova or NovaAPI()
        self.glance = GlanceAPI()
        self._all = (self.nova, self.glance)
        self.services = ('network', 'compute', 'image', 'identity')

    def start(self):
        super().start()
        for api in self._all:
            api.start()

    def stop(self):
        super().stop()
        for api in self._all:
            api.stop()

    def token(self):
        found = super().token()
        found['token']['catalog'] = [
            {'type': kind, 'name': name, 'id': name, 'endpoints': [
                {'id': name, 'interface': 'public', 'url': url,
                 'region': 'RegionOne', 'region_id': 'RegionOne'}]}
            for kind, name, url in (
                ('network', 'neutron', self.url),
                ('compute', 'nova', f'{self.nova.url}/v2.1'),
                ('image', 'glance', self.glance.url),
                ('identity', 'keystone', f'{self.url}/identity/v3'))
            if kind in self.services]
        return found

    def connect(self, **fields):
        """Return a connection, whatever files and variables say."""
        return openstack.connect(
            load_yaml_config=False, load_envvars=False,
            region_name='RegionOne', auth={
                'auth_url': f'{self.url}/identity/v3', 'username': 'admin',
                'password': neutron_api.PASSWORD, 'project_name': 'admin',
                'user_domain_id': 'default', 'project_domain_id': 'default'},
            **fields)

    def variables(self, password=neutron_api.PASSWORD):
        return {
            'OS_AUTH_URL': f'{self.url}/identity/v3', 'OS_USERNAME': 'admin',
            'OS_PASSWORD': password, 'OS_PROJECT_NAME': 'admin',
            'OS_USER_DOMAIN_ID': 'default',
            'OS_PROJECT_DOMAIN_ID': 'default'}


def start(test, nova=None):
    """Start a stand-in for the APIs of a cloud, until a test ends."""
    api = CloudAPI(nova)
    api.start()
    test.addCleanup(api.stop)
    return api
