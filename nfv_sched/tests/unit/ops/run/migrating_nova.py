# SPDX-License-Identifier: Apache-2.0
"""As much of Nova's API as carrying out a plan takes, with its failures.

What Nova itself does is tested in nfv_sched/tests/functional/test_plan_run.py.
"""

import threading
import uuid

from nfv_sched.tests.unit.ops.cloud import nova_api


def id_of(name):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def evacuation(*moves, **fields):
    """The document of ``host evacuate``, with fields as of document()."""
    drain = document(*moves, **fields)
    return {'hosts': ['one'], 'relax': False, **{
        name: drain[name] for name in (
            'schema', 'servers', 'failed', 'exact', 'unread')}}


def document(*moves, others=None, stays=()):
    """The document of ``host drain`` for host "one".

    :param moves: ``name how destination [related ...]``; of a server that is
        shelved the destination is ``-``
    :param stays: names of servers that stay
    """
    servers = []
    for number, text in enumerate(moves, 1):
        name, how, destination, *related = text.split()
        if destination == '-':
            destination = None
        servers.append({
            'move': number, 'server': name, 'server_id': id_of(name),
            'flavor': 'f', 'how': how, 'source': 'one',
            'destination': destination,
            'destination_id': destination and id_of(destination),
            'obstacle': None,
            'lacks': [], 'related': list(map(id_of, related))})
    servers += [{
        **dict.fromkeys(('move', 'how', 'destination', 'destination_id',
                         'obstacle')), 'server': name, 'flavor': 'f',
        'server_id': id_of(name), 'source': 'one', 'lacks': [],
        'related': []} for name in stays]
    return {'schema': 1, 'host': 'one', 'host_id': id_of('one'),
            'servers': servers, 'others': others, 'unfinished': [],
            'failed': [], 'exact': True, 'unread': [],
            'options': {'make_room': False, 'relax': False}}


class MigratingNova(nova_api.NovaAPI):
    """Servers that migrate while their migrations are looked at.

    :ivar placed: UUID of each server -> the server
    :ivar migrations: migrations, the newest first
    :ivar actions: (name of a server, action, host) of all that was asked
    :ivar faults: action, method or part of a path -> function that is called
        once Nova has acted, and returns what is answered instead
    :ivar moving: is set unless migrations stand still
    :ivar most: most migrations that there were at a time
    :ivar failing: names of servers whose migrations fail
    :ivar offloads: whether Nova offloads servers when they are shelved
    """

    def __init__(self, plan):
        super().__init__()
        self._lock = threading.RLock()
        self.placed = {}
        # Of a plan of several hosts, a server may move more than once.
        for each in plan['servers'] if 'servers' in plan else [
                server for of_round in plan['rounds']
                for host in of_round['hosts'] for server in host['servers']]:
            self.placed.setdefault(each['server_id'], {
                'id': each['server_id'], 'name': each['server'],
                'status': 'ACTIVE', 'locked': False,
                'OS-EXT-SRV-ATTR:host': each['source'],
                'OS-EXT-STS:vm_state': 'active',
                'OS-EXT-STS:task_state': None})
        self.services = [nova_api.service(name) for name in (
            'one', 'two', 'three')]
        self.migrations = []
        self.actions = []
        self.faults = {}
        self.moving = threading.Event()
        self.moving.set()
        self.most = 0
        self.failing = set()
        self.offloads = True
        # Shelvings, the newest first.
        self._shelvings = []
        # Servers whose failure Nova has not finished with when asked first.
        self.failed = set()

    def server(self, name):
        return next(each for each in self.placed.values()
                    if each['name'] == name)

    def answer(self, method, path, query, body):
        with self._lock:
            found = self._answer(method, path, query, body)
        for word in (*(body or ()), method, *path):
            if word in self.faults:
                return self.faults[word](found)
        return found

    def _answer(self, method, path, query, body):
        match method, path:
            case 'PUT', ['os-services', number]:
                service = next(each for each in self.services
                               if each['id'] == number)
                service.update(body)
                return 200, {'service': service}
            case 'GET', ['servers']:
                return 200, {'servers': [
                    each for each in self.placed.values()
                    if each['OS-EXT-SRV-ATTR:host'] in query['host']]}
            case 'GET', ['os-migrations']:
                return 200, {'migrations': [
                    dict(each) for each in self.migrations
                    if each['instance_uuid'] in query['instance_uuid']
                    and self._advance(each)]}
            case _, ['servers', server_id, *_] if server_id not in self.placed:
                return 404, {'itemNotFound': {
                    'code': 404, 'message': 'Instance could not be found.'}}
            case 'GET', ['servers', server_id]:
                return 200, {'server': self.placed[server_id]}
            case 'GET', ['servers', server_id, 'os-instance-actions']:
                return 200, {'instanceActions': [
                    *[each for each in self._shelvings
                      if each['server'] == server_id
                      and self._shelve(self.placed[server_id], each)],
                    *({'action': action, 'request_id': 'req-1'}
                      for action in ('live-migration', 'evacuate'))]}
            case 'GET', ['servers', server_id, 'os-instance-actions', _]:
                event = {'finish_time': None, 'result': None, 'details': None}
                if server_id in self.failed:
                    event = {'finish_time': '2026-11-26T05:00:00.000000',
                             'result': 'Error',
                             'details': 'No valid host was found. \n'}
                self.failed.add(server_id)
                return 200, {'instanceAction': {'events': [event]}}
            case 'POST', ['servers', server_id, 'action']:
                (action, options), = body.items()
                return self._act(self.placed[server_id], action, options)
        return super().answer(method, path, query, body)

    def _act(self, server, action, options):
        self.actions.append((server['name'], action, (options or {}).get(
            'host')))
        if action != 'evacuate' and (
                server['OS-EXT-STS:task_state'] is not None):
            return 409, {'conflictingRequest': {
                'code': 409, 'message': 'It is busy.'}}
        if action == 'confirmResize':
            migration = next(each for each in self.migrations
                             if each['instance_uuid'] == server['id'])
            migration['status'] = 'confirmed'
            server['status'] = 'ACTIVE'
            return 204, {}
        if action in ('shelve', 'shelveOffload'):
            server['OS-EXT-STS:task_state'] = {
                'shelve': 'shelving', 'shelveOffload': 'shelving_offloading'}[
                    action]
            self._shelvings.insert(0, {
                'action': action, 'server': server['id'], 'left': 3,
                'request_id': f'req-shelve-{len(self._shelvings)}'})
            return 202, {}
        server['OS-EXT-STS:task_state'] = (
            'rebuilding' if action == 'evacuate' else 'migrating')
        self.migrations.insert(0, {
            'uuid': id_of(f'migration-{len(self.migrations)}'),
            'instance_uuid': server['id'], 'status': 'running',
            'migration_type': {
                'os-migrateLive': 'live-migration', 'migrate': 'migration',
                'evacuate': 'evacuation'}[action],
            'to': options['host'], 'dest_compute': options['host'],
            'left': 4})
        self.most = max(self.most, sum(
            each['status'] == 'running' for each in self.migrations))
        return 202, {}

    def _shelve(self, server, shelving):
        """Let time pass for a shelving; always true."""
        if not shelving['left'] or not self.moving.is_set():
            return True
        shelving['left'] -= 1
        if shelving['left'] == 0:
            # Nova shows the server on its host after it has left.
            if server['status'] == 'SHELVED_OFFLOADED':
                server['OS-EXT-SRV-ATTR:host'] = None
        elif shelving['left'] == 1:
            server['OS-EXT-STS:task_state'] = None
            if server['name'] not in self.failing:
                server['status'] = (
                    'SHELVED_OFFLOADED' if self.offloads
                    or shelving['action'] == 'shelveOffload' else 'SHELVED')
                server['OS-EXT-STS:vm_state'] = server['status'].lower()
        return True

    def _advance(self, migration):
        """Let time pass for a migration; always true."""
        if migration['status'] != 'running' or not self.moving.is_set():
            return True
        migration['left'] -= 1
        if migration['left'] > 0:
            return True
        server = self.placed.get(migration['instance_uuid'])
        if server is None:
            migration['status'] = 'error'
            return True
        server['OS-EXT-STS:task_state'] = None
        if server['name'] in self.failing:
            migration['status'] = 'error'
            return True
        server['OS-EXT-SRV-ATTR:host'] = migration['to']
        migration['status'] = 'completed'
        if migration['migration_type'] == 'migration':
            migration['status'] = 'finished'
            server['status'] = 'VERIFY_RESIZE'
        return True
