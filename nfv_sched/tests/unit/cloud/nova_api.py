#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""As much of Nova's API as reading flavors and servers by it takes.

With Keystone and Neutron from :mod:`nfv_sched.tests.unit.network.neutron_api`;
a test can make each list misbehave.
"""

import json
import urllib.parse

from nfv_sched.tests import http_server
from nfv_sched.tests.unit.network import neutron_api


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


class NovaAPI(http_server.LocalServer):
    """A server on a port of its own.

    :ivar flavors: what it has; so are ``servers``
    :ivar max_limit: most items of a page
    :ivar answers: resource -> (status, body) that it answers instead
    :ivar requests: (resource, query, microversion) of what was asked
    """

    def __init__(self):
        super().__init__(_handler_class(self))
        self.flavors = []
        self.servers = []
        self.max_limit = 1000
        self.answers = {}
        self.requests = []

    def page(self, resource, query):
        """The body that Nova would send."""
        items = {'flavors': self.flavors, 'servers': self.servers}[resource]
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
                'id': 'v2.1', 'status': 'CURRENT', 'version': '2.96',
                'min_version': '2.1', 'links': [
                    {'rel': 'self', 'href': f'{api.url}/v2.1/'}]}}
            if len(parts) == 3:
                query = urllib.parse.parse_qs(url.query)
                api.requests.append((parts[1], query, self.headers.get(
                    'OpenStack-API-Version')))
                if self.headers.get('X-Auth-Token') != neutron_api.TOKEN:
                    status, body = 401, {}
                elif parts[1] in api.answers:
                    status, body = api.answers[parts[1]]
                else:
                    body = api.page(parts[1], query)
            data = body if isinstance(body, bytes) else (
                json.dumps(body).encode())
            self.send_response(status)
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


class CloudAPI(neutron_api.NeutronAPI):
    """Keystone and Neutron, and a Nova beside them.

    :ivar nova: Nova
    """

    def __init__(self):
        super().__init__()
        self.needs_token = True
        self.nova = NovaAPI()

    def start(self):
        """Listen."""
        super().start()
        self.nova.start()

    def stop(self):
        """Refuse connections from now on."""
        super().stop()
        self.nova.stop()

    def token(self):
        """Keystone's answer, with Nova in the catalog."""
        found = super().token()
        found['token']['catalog'] = [
            {'type': kind, 'name': name, 'id': name, 'endpoints': [
                {'id': name, 'interface': 'public', 'url': url,
                 'region': 'RegionOne', 'region_id': 'RegionOne'}]}
            for kind, name, url in (
                ('network', 'neutron', self.url),
                ('compute', 'nova', f'{self.nova.url}/v2.1'))]
        return found

    def variables(self, password=neutron_api.PASSWORD):
        """The account, as environment variables."""
        return {
            'OS_AUTH_URL': f'{self.url}/identity/v3', 'OS_USERNAME': 'admin',
            'OS_PASSWORD': password, 'OS_PROJECT_NAME': 'admin',
            'OS_USER_DOMAIN_ID': 'default',
            'OS_PROJECT_DOMAIN_ID': 'default'}
