# SPDX-License-Identifier: Apache-2.0
"""As much of Neutron's API, and of Keystone's, as reading a snapshot takes.

Answers as Neutron does: only the fields asked for, sorted, page by page with
links; agents, which Neutron does not page, all at once.  A test can make any
resource misbehave.
"""

import json
import re
import urllib.parse
import uuid

from nfv_sched.tests import http_server

# Fields by which items are chosen.
FILTERS = {'agent_type', 'device_owner', 'id', 'name', 'project_id',
           'security_group_id'}
# What agents serve -> key of the answer.
SERVED = {'dhcp-networks': 'networks', 'l3-routers': 'routers'}

TOKEN = 'gAAAAAB-not-a-real-token'
PASSWORD = 'not-a-real-password'


def port(owner='compute:nova', device=None, host='', vnic_type='normal',
         groups=(), port_id=None, project='', network=''):
    """A port as Neutron shows it to an administrator."""
    return {
        'id': port_id or str(uuid.uuid4()),
        'name': '',
        'status': 'ACTIVE',
        'admin_state_up': True,
        'mac_address': 'fa:16:3e:00:00:00',
        'fixed_ips': [{'subnet_id': str(uuid.uuid4()),
                       'ip_address': '192.0.2.7'}],
        'device_owner': owner,
        'device_id': str(uuid.uuid4()) if device is None else device,
        'binding:host_id': host,
        'binding:vnic_type': vnic_type,
        'binding:profile': {},
        'network_id': network,
        'security_groups': list(groups),
        'project_id': project,
    }


def rule(group, direction='ingress'):
    return {
        'id': str(uuid.uuid4()),
        'security_group_id': group,
        'direction': direction,
        'ethertype': 'IPv4',
        'protocol': 'tcp',
    }


def group(project, name='default'):
    return {'id': str(uuid.uuid4()), 'name': name, 'project_id': project}


def agent(agent_type, host, alive=True, **configurations):
    return {
        'id': str(uuid.uuid4()),
        'agent_type': agent_type,
        'host': host,
        'alive': alive,
        'admin_state_up': True,
        'configurations': configurations,
    }


def network(name='net', physnet=None, kind='vlan', **fields):
    """A network as Neutron shows it to an administrator."""
    return {
        'id': str(uuid.uuid4()), 'name': name,
        'provider:network_type': kind, 'provider:physical_network': physnet,
        'availability_zone_hints': [], **fields}


def router(name='router', **fields):
    return {'id': str(uuid.uuid4()), 'name': name, 'ha': False,
            'distributed': False, 'admin_state_up': True,
            'availability_zone_hints': [], **fields}


class NeutronAPI(http_server.LocalServer):
    """A server on a port of its own.

    :ivar ports: what it has; so are ``rules``, ``groups``, ``networks``,
        ``default_rules`` and ``agents``
    :ivar catalog_url: what Keystone says where Neutron is
    :ivar max_limit: Neutron's ``pagination_max_limit``, None if not set
    :ivar max_agents: most agents of an answer, None if not set
    :ivar served: UUID of an agent -> networks or routers that it serves
    :ivar hides_groups: whether security groups and their rules are shown to
        nobody; otherwise the groups of ports are there even if not listed
    :ivar faults: resource -> function that gets the handler, the query and
        the right body, and answers instead; it returns true if it did not
    :ivar projects: projects that Keystone has
    :ivar requests: (resource, query) of what was asked
    :ivar changes: (add or remove, UUID of an agent, of a network or router)
    :ivar refusing: UUIDs of agents that are given nothing
    :ivar missing: resources whose API extension is not loaded
    """

    def __init__(self):
        super().__init__(_handler_class(self))
        self.catalog_url = self.url
        self.ports = []
        self.rules = []
        self.groups = []
        self.networks = []
        self.default_rules = []
        self.agents = []
        self.served = {}
        self.hides_groups = False
        self.max_limit = None
        self.max_agents = None
        self.needs_token = False
        self.projects = []
        self.faults = {}
        self.missing = {'default-security-group-rules'}
        self.changes = []
        self.refusing = set()
        self.requests = []

    def asked(self, resource):
        return [query for asked, query in self.requests if asked == resource]

    def items(self, resource):
        if resource.startswith('agents/'):
            return self.served.get(resource.split('/')[1], [])
        return {'ports': self.ports, 'agents': self.agents,
                'networks': self.networks,
                'default-security-group-rules': self.default_rules,
                'security-groups': self.groups,
                'security-group-rules': self.rules}[resource]

    def page(self, resource, query):
        """The body that Neutron would send, or None for an unknown marker."""
        if re.fullmatch('agents/[^/]+', resource):
            return next(({'agent': each} for each in self.agents
                         if each['id'] == resource.split('/')[1]), None)
        items = self.items(resource)
        if self.hides_groups and resource.startswith('security-group'):
            items = []
        elif resource == 'security-groups' and 'id' in query:
            items = items + [
                {'id': group} for group in query['id']
                if any(group in port.get('security_groups', ())
                       for port in self.ports)]
        key = SERVED.get(
            resource.rpartition('/')[2], resource).replace('-', '_')
        body = {}
        for name in FILTERS & query.keys():
            items = [item for item in items if item[name] in query[name]]
        if resource == 'agents' and self.max_agents is not None:
            items = items[:self.max_agents]
        elif not resource.startswith('agents') and 'limit' in query:
            limit = int(query['limit'][0])
            if self.max_limit is not None:
                limit = min(limit, self.max_limit)
            sort_key = query.get('sort_key', ['id'])[0]
            items = sorted(items, key=lambda item: item[sort_key])
            if 'marker' in query:
                marker = query['marker'][0]
                for index, item in enumerate(items):
                    if item['id'] == marker:
                        break
                else:
                    return None
                items = items[index + 1:]
            items = items[:limit]
            if len(items) == limit:
                body[f'{key}_links'] = [
                    {'rel': 'next', 'href': f'{self.url}/v2.0/{resource}'}]
            if 'marker' in query and items:
                body.setdefault(f'{key}_links', []).append(
                    {'rel': 'previous', 'href': self.url})
        fields = query.get('fields')
        body[key] = [
            {name: value for name, value in item.items()
             if fields is None or name in fields} for item in items]
        return body

    def change(self, what, agent, served):
        self.changes.append((what, agent, served))
        items = self.served.setdefault(agent, [])
        is_added = what == 'add'
        refusal = ''
        if is_added and agent in self.refusing:
            refusal = 'It is full.'
        elif is_added == ({'id': served} in items):
            refusal = f'It is {"already" if is_added else "not"} hosted.'
        if refusal:
            return 409, {'NeutronError': {
                'type': 'X', 'message': refusal, 'detail': ''}}
        if is_added:
            items.append({'id': served})
            return 201, {}
        items.remove({'id': served})
        return 204, b''

    def versions(self):
        return {'versions': [{
            'id': 'v2.0', 'status': 'CURRENT',
            'links': [{'rel': 'self', 'href': f'{self.url}/v2.0/'}]}]}

    def keystone_versions(self):
        return {'version': {
            'id': 'v3.14', 'status': 'stable', 'links': [
                {'rel': 'self', 'href': f'{self.url}/identity/v3/'}]}}

    def token(self):
        return {'token': {
            'methods': ['password'],
            'expires_at': '2999-01-01T00:00:00.000000Z',
            'issued_at': '2026-01-01T00:00:00.000000Z',
            'user': {'id': 'u', 'name': 'nova', 'domain': {'id': 'default'}},
            'project': {'id': 'p', 'name': 'service',
                        'domain': {'id': 'default'}},
            'roles': [{'id': 'r', 'name': 'service'}],
            'catalog': [{
                'type': 'network', 'name': 'neutron', 'id': 's',
                'endpoints': [{
                    'id': 'e', 'interface': interface, 'url': url,
                    'region': region, 'region_id': region}
                    for interface, region, url in (
                        ('internal', 'RegionOne', self.catalog_url),
                        ('internal', 'RegionTwo', 'http://127.0.0.1:9'),
                        ('public', 'RegionOne', 'http://127.0.0.1:9'))]}],
        }}


def _handler_class(api):

    class Handler(http_server.Handler):

        def reply(self, body, status=200, headers=()):
            data = body if isinstance(body, bytes) else (
                json.dumps(body).encode())
            self.send_response(status)
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(data)))
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):  # noqa: N802
            try:
                self._answer()
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _answer(self):
            url = urllib.parse.urlsplit(self.path)
            query = urllib.parse.parse_qs(url.query)
            path = url.path.strip('/')
            if path == '':
                return self.reply(api.versions(), 300)
            if path == 'v2.0':
                return self.reply({'resources': []})
            if path == 'identity/v3':
                return self.reply(api.keystone_versions())
            resource = path.removeprefix('v2.0/')
            api.requests.append((resource, query))
            if api.needs_token and self.headers.get('X-Auth-Token') != TOKEN:
                return self.reply({'error': {'code': 401}}, 401)
            if path == 'identity/v3/projects' and path not in api.faults:
                return self.reply({'projects': api.projects, 'links': {}})
            if path == resource or resource in api.missing:
                return self.reply({'NeutronError': 'no such resource'}, 404)
            body = api.page(resource, query)
            fault = api.faults.get(resource)
            if fault is not None and not fault(self, query, body):
                return None
            if body is None:
                return self.reply({'NeutronError': 'no such marker'}, 404)
            return self.reply(body)

        def do_DELETE(self):  # noqa: N802
            _version, _agents, agent, _kind, served = (
                self.path.strip('/').split('/'))
            status, body = api.change('remove', agent, served)
            return self.reply(body, status)

        def do_POST(self):  # noqa: N802
            body = json.loads(self.rfile.read(
                int(self.headers['Content-Length'])))
            if self.path.startswith('/v2.0/agents/'):
                served, = body.values()
                status, body = api.change(
                    'add', self.path.split('/')[3], served)
                return self.reply(body, status)
            api.requests.append((self.path, {}))
            password = body['auth']['identity']['password']['user']
            if (self.path != '/identity/v3/auth/tokens'
                    or password['password'] != PASSWORD):
                return self.reply({'error': {'code': 401}}, 401)
            return self.reply(api.token(), 201, [('X-Subject-Token', TOKEN)])

    return Handler
