# SPDX-License-Identifier: Apache-2.0
"""Time and requests of a round of nfv-sched-ledger.

A process of its own serves a real Placement on SQLite over HTTP, one request
at a time; Nova's database and Neutron are made up.  Each guest has two ports
with ten rules each and an allocation from the ledger, and two pinned CPUs of
one of two NUMA nodes; each host has a DHCP server.  Measured are

* the first round of all, which creates the providers;
* the first round of another instance, which reads everything;
* a round where nothing has changed;
* a round where one guest came to one host in twenty, as Neutron tells.

``placement`` is the CPU time of the process that serves Placement, ``own``
that of the publisher.

The database is in the directory for temporary files; have that in memory.

Usage: python benchmarks/ledger_publish.py [--hosts 1000] [--guests 20]
                                           [--threads 8] [--quick]
"""

import argparse
import json
import logging
import multiprocessing
import os
import tempfile
import time
import types
import uuid
import warnings

warnings.simplefilter('ignore')

from nova import objects  # noqa: E402

from nfv_sched.ledger import publisher  # noqa: E402
from nfv_sched.limits import names  # noqa: E402
from nfv_sched.limits import usage  # noqa: E402
from nfv_sched.nova import database  # noqa: E402
from nfv_sched.tests.unit import clouds  # noqa: E402

PORTS = 2
RULES = 20
VERSION = {'OpenStack-API-Version': 'placement 1.28',
           'Content-Type': 'application/json', 'Accept': 'application/json'}


def identifier(kind, number):
    """A UUID by its number."""
    return str(uuid.UUID(int=(kind << 64) + number + (0x5eed << 80)))


def serve(directory, hosts, pipe):
    """Serve Placement; sends its address, its requests and its CPU time."""
    from oslo_config import cfg
    from placement import conf as placement_conf
    from placement.db.sqlalchemy import migration
    from placement import db_api

    from nfv_sched.tests import placement_api

    logging.disable(logging.WARNING)
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf.set_override('connection', f'sqlite:///{directory}/p.sqlite',
                      'placement_database')
    conf.set_override('auth_strategy', 'noauth2', 'api')
    conf([], default_config_files=[])
    db_api.configure(conf)
    migration.create_schema(db_api.get_placement_engine())
    api = placement_api.PlacementAPI(conf)
    for number in range(hosts):
        api.answer('POST', '/resource_providers', VERSION, json.dumps({
            'uuid': identifier(1, number),
            'name': f'node{number}'}).encode())
    api.start()
    pipe.send(api.url)
    while (question := pipe.recv()) is not None:
        if question == 'figures':
            pipe.send((list(api.requests), time.process_time()))
            api.requests.clear()
        else:  # allocations
            for start in range(0, len(question), 100):
                status, _headers, body = api.answer(
                    'POST', '/allocations', VERSION, json.dumps({
                        consumer: {
                            'allocations': {names.provider_uuid(compute): {
                                'resources': {names.PORTS: PORTS,
                                              names.RULES: RULES}}},
                            'consumer_generation': None, 'project_id': 'p',
                            'user_id': 'u'}
                        for consumer, compute in question[start:start + 100]
                    }).encode())
                if not status.startswith('204'):
                    raise RuntimeError(body)
            pipe.send(None)


class Reader:
    """Neutron, without reading it.

    :ivar guests: guests of each host
    :ivar servers: UUID of a port -> UUID of its server
    """

    guests: list[int] = []
    servers: dict[str, str] = {}

    def __init__(self, conf, stopped, doubts):
        pass

    def close(self):
        """Nothing is open."""

    def hosts_of(self, ports):
        """Where some ports are: where they were."""
        return dict.fromkeys(ports, '')

    def read(self, previous):
        """A snapshot."""
        builder = usage.SnapshotBuilder()
        for _ in range(RULES // PORTS):
            builder.add_rule('group')
        for number, count in enumerate(self.guests):
            host = f'host{number}'
            builder.add_port(identifier(2, number), 'network:dhcp', '', host,
                             'normal', ())
            for guest in range(count):
                server = identifier(4, number * 1000 + guest)
                for index in range(PORTS):
                    port = identifier(
                        3, (number * 1000 + guest) * 10 + index)
                    self.servers[port] = server
                    builder.add_port(port, 'compute:nova', server, host,
                                     'normal', ('group',))
        return builder.build()


def guest_topology():
    """A NUMA node with two pinned CPUs, as Nova stores it."""
    guest = clouds.guest()
    guest.cells[0].id = 1
    guest.cells[0].cpu_pinning_raw = {'0': 32, '1': 33}
    return guest._to_json()


def main():
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--guests', type=int, default=20)
    parser.add_argument('--threads', type=int, default=8)
    parser.add_argument(
        '--quick', action='store_true',
        help='only see that this works: few hosts and guests')
    args = parser.parse_args()
    if args.quick:
        args.hosts, args.guests, args.threads = 40, 2, 2
    logging.disable(logging.WARNING)
    objects.register_all()
    stored = clouds.host_topology(cpus=32, pages=1 << 14)._to_json()
    cell = types.SimpleNamespace(uuid='cell')
    nodes = [database.ComputeNode(
        uuid=identifier(1, number), name=f'node{number}',
        host=f'host{number}', hypervisor_type='QEMU', cell=cell,
        aggregates=[], numa_topology=stored) for number in range(args.hosts)]
    guest = guest_topology()
    deserialized = publisher.records.deserialized
    publisher.database = types.SimpleNamespace(
        compute_nodes=lambda: (nodes, []),
        numa_topology=database.numa_topology,
        moving_instance=lambda cell, consumer: None,
        is_idle=lambda cell, instance: True)
    publisher.records = types.SimpleNamespace(
        plugged_servers=lambda ports: (Reader.servers, {}),
        pinned_cells=lambda nodes, servers=None: ({
            node.host: {
                identifier(4, int(node.host[4:]) * 1000 + each): deserialized(
                    guest)['cells']
                for each in range(Reader.guests[int(node.host[4:])])}
            for node in nodes}, {}),
        MALFORMED=publisher.records.MALFORMED)
    publisher.neutron = types.SimpleNamespace(
        Reader=Reader, ReadingCheck=publisher.neutron.ReadingCheck,
        NeutronError=publisher.neutron.NeutronError)
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe()
    with tempfile.TemporaryDirectory() as directory:
        process = context.Process(
            target=serve, args=(directory, args.hosts, theirs), daemon=True)
        process.start()
        theirs.close()
        url = ours.recv()
        conf_file = os.path.join(directory, 'nova.conf')
        with open(conf_file, 'w') as conf:
            conf.write('[placement]\nauth_type = none\n'
                       f'endpoint_override = {url}\n'
                       '[nfv_sched]\nvswitch_ports_per_node = 1000\n'
                       f'ledger_threads = {args.threads}\n')
        publisher.CONF(['--config-file', conf_file], project='nova')
        Reader.guests = [0] * args.hosts
        made = publisher.Publisher()

        def measure(title):
            ours.send('figures')
            _requests, before = ours.recv()
            began, own = time.perf_counter(), time.process_time()
            done = made.round()
            took = time.perf_counter() - began
            own = time.process_time() - own
            ours.send('figures')
            requests, after = ours.recv()
            allocated = sum(report.accounts[names.PORTS].allocated
                            for report in done.hosts)
            if done.failed or allocated != sum(Reader.guests) * PORTS:
                raise RuntimeError(done)
            print(f'{title:30} {took:7.2f} s {own:7.2f} s own '
                  f'{after - before:7.2f} s placement {len(requests):6} '
                  'requests, of these '
                  f'{sum(method != "GET" for method, _ in requests)} writes')

        def allocate(guests):
            ours.send([
                (identifier(4, number * 1000 + guest), nodes[number].uuid)
                for number, count in enumerate(guests)
                for guest in range(Reader.guests[number], count)])
            ours.recv()
            Reader.guests = guests

        print(f'{args.hosts} hosts, {args.guests} guests on each, '
              f'{args.threads} threads')
        measure('first of all')
        allocate([args.guests] * args.hosts)
        made = publisher.Publisher()
        measure('first of another instance')
        measure('nothing changed')
        allocate([args.guests + (number % 20 == 0)
                  for number in range(args.hosts)])
        measure('one host in twenty changed')
        ours.send(None)
        process.join()


if __name__ == '__main__':
    main()
