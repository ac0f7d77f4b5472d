# SPDX-License-Identifier: Apache-2.0
"""Time and memory of a full reading of Neutron.

A process of its own serves a cloud over HTTP, from pages made beforehand, so
that what is measured is the reading alone: wall time, CPU time, the growth of
the process (resident memory) at its highest and afterwards, and for how long
another thread of the process was kept from running at most.  The second
reading, with the first at hand, is what ``nova-scheduler`` does from then on.

The last column says how often a worker reads such a cloud by default, so as to
spend at most a twentieth of its time with it and have no stale figures.

Each guest has two ports and each port two security groups of ten rules; one
port in ten bypasses the switch.  Every other group is the default one of a
project.  Every host has a DHCP and an L3 agent, and there is a network for
every fifty ports.

Usage: python benchmarks/neutron_refresh.py [--ports 1000,10000,100000]
                                            [--rules 5000]
                                            [--page-size 1000] [--quick]
"""

import argparse
import gc
import http.server
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid
import warnings

warnings.simplefilter('ignore')

from nfv_sched.ledger import neutron  # noqa: E402
from nfv_sched.limits import reservations  # noqa: E402

PORTS_OF_HOST = 100
PORTS_OF_NETWORK = 50
RULES = 10
PAGE = os.sysconf('SC_PAGE_SIZE')


def identifier(kind, number):
    """A UUID that sorts by its number."""
    return str(uuid.UUID(int=(number << 64) + (kind << 32) + 0x5eed))


def ports(count, groups):
    """Ports as Neutron shows them, with the fields that are asked for."""
    for number in range(count):
        yield {
            'id': identifier(1, number),
            'device_owner': 'compute:nova',
            'device_id': identifier(2, number // 2),
            'binding:host_id': f'compute-{number // PORTS_OF_HOST:05d}',
            'binding:vnic_type': 'direct' if number % 10 == 9 else 'normal',
            'security_groups': [identifier(3, number % groups),
                                identifier(3, (number + 7) % groups)],
            'project_id': identifier(6, number % groups // 2 * 2),
        }


def rules(groups):
    """The rules of all groups."""
    for number in range(groups * RULES):
        yield {'id': identifier(4, number),
               'security_group_id': identifier(3, number % groups)}


def networks(count):
    """Networks, of which one in ten has no port security."""
    for number in range(count // PORTS_OF_NETWORK):
        yield {'id': identifier(7, number),
               'port_security_enabled': number % 10 != 9}


def default_groups(groups):
    """The groups that Neutron makes for each project."""
    for number in range(0, groups, 2):
        yield {'id': identifier(3, number),
               'project_id': identifier(6, number)}


def agents(count):
    """Two agents a host."""
    for number in range(max(count // PORTS_OF_HOST, 1)):
        for kind, figures in (('DHCP agent', {'networks': 3}),
                              ('L3 agent', {'routers': 1})):
            yield {'id': identifier(5, number), 'agent_type': kind,
                   'host': f'compute-{number:05d}', 'alive': True,
                   'configurations': figures}


def pages(items, key, size):
    """The bodies of all pages, by the marker that asks for them."""
    items, bodies, marker = list(items), {}, None
    for begin in range(0, max(len(items), 1), size):
        page = items[begin:begin + size]
        body = {key: page}
        if len(page) == size:
            body[f'{key}_links'] = [{'rel': 'next', 'href': ''}]
        bodies[marker] = json.dumps(body).encode()
        marker = page[-1]['id'] if page else None
    bodies[marker] = bodies.get(marker) or json.dumps({key: []}).encode()
    return bodies


def serve(count, groups, size, pipe, served):
    """Serve a cloud.

    :param pipe: is told the URL
    :param served: requests and bytes of all answers so far
    """
    contents = {
        '/v2.0/ports': pages(ports(count, groups), 'ports', size),
        '/v2.0/security-group-rules': pages(
            rules(groups), 'security_group_rules', size),
        '/v2.0/security-groups': pages(
            default_groups(groups), 'security_groups', size),
        '/v2.0/networks': pages(networks(count), 'networks', size),
        '/v2.0/agents': {None: json.dumps(
            {'agents': list(agents(count))}).encode()},
    }

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'
        disable_nagle_algorithm = True

        def log_message(self, *args):
            pass

        def do_GET(self):  # noqa: N802
            url = urllib.parse.urlsplit(self.path)
            marker = urllib.parse.parse_qs(url.query).get('marker', [None])
            if url.path in contents:
                body = contents[url.path][marker[0]]
            elif url.path in ('', '/', '/v2.0', '/v2.0/'):
                body = json.dumps({'versions': [{
                    'id': 'v2.0', 'status': 'CURRENT', 'links': [{
                        'rel': 'self', 'href': f'{address}/v2.0/'}],
                }]}).encode()
            else:
                # Not 404: then the reader would do without.
                self.send_error(501, 'Not served by the benchmark')
                return
            with served.get_lock():
                served[0] += 1
                served[1] += len(body)
            self.send_response(200)
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
    address = 'http://%s:%d' % server.server_address
    pipe.send(address)
    server.serve_forever()


def resident():
    """Resident memory of this process, bytes."""
    with open('/proc/self/statm') as statm:
        return int(statm.read().split()[1]) * PAGE


class Watch(threading.Thread):
    """Looks every few milliseconds what becomes of the process."""

    def __init__(self):
        super().__init__(daemon=True)
        self.before = self.peak = resident()
        self.delay = 0.0
        self.done = threading.Event()

    def run(self):
        begin = time.perf_counter()
        while not self.done.wait(0.002):
            now = time.perf_counter()
            self.delay = max(self.delay, now - begin - 0.002)
            self.peak = max(self.peak, resident())
            begin = time.perf_counter()


def check(snapshot, count, groups):
    """See that a snapshot has everything that was served."""
    hosts = snapshot.hosts.values()
    for what, found, served in (
        ('ports', len(snapshot.ports), count),
        ('ports of hosts', sum(
            host.vswitch_ports + host.sriov_ports for host in hosts), count),
        ('rules', sum(snapshot.rules.values()), groups * RULES),
        ('default groups', len(snapshot.default_groups), groups // 2),
        ('networks', len(snapshot.networks), count // PORTS_OF_NETWORK),
        ('hosts with agents', sum(
            host.dhcp_servers == 3 and host.routers == 1 for host in hosts),
         max(count // PORTS_OF_HOST, 1)),
    ):
        if found != served:
            sys.exit(f'{what}: {found} were read, not {served}')


ROW = '%8s %8s %-8s %8s %8s %8s %9s %9s %9s %9s %8s'


def measure(count, groups, size):
    """Print two lines for one number of ports."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context('fork')
    served = context.Array('q', 2)
    server = context.Process(
        target=serve, args=(count, groups, size, sender, served), daemon=True)
    server.start()
    sender.close()
    address = receiver.recv()
    gc.collect()
    try:
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as nova_conf:
            nova_conf.write(
                '[neutron]\nauth_type = none\n'
                f'endpoint_override = {address}\n'
                f'[nfv_sched]\nneutron_page_size = {size}\n')
            nova_conf.flush()
            neutron.CONF(['--config-file', nova_conf.name], project='nova')
            reader, snapshot = neutron.Reader(), None
            for name in ('first', 'second'):
                watch = Watch()
                watch.start()
                requests, volume = served
                cpu, begin = time.process_time(), time.perf_counter()
                snapshot = reader.read(snapshot)
                wall = time.perf_counter() - begin
                cpu = time.process_time() - cpu
                watch.done.set()
                watch.join()
                gc.collect()
                requests, volume = (
                    served[0] - requests, served[1] - volume)
                check(snapshot, count, groups)
                pause = max(
                    neutron.CONF.nfv_sched.neutron_refresh_interval - wall,
                    neutron.NeutronRefresher(
                        neutron.CONF, reservations.Memory()).least_pause(wall))
                print(ROW % (
                    count, groups * RULES, name, requests,
                    f'{volume / 1e6:.1f}', f'{wall:.2f}', f'{cpu:.2f}',
                    f'{(watch.peak - watch.before) / 2**20:.1f}',
                    f'{(resident() - watch.before) / 2**20:.1f}',
                    f'{watch.delay * 1e3:.0f}', f'{pause + wall:.0f}'))
                sys.stdout.flush()
            reader.close()
    finally:
        server.terminate()
        server.join()


def main():
    """Print two lines for each number of ports."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument(
        '--ports', default='1000,10000,100000',
        help='numbers of ports, comma-separated (default: %(default)s)')
    parser.add_argument(
        '--rules', type=int, default=5000,
        help='security-group rules (default: %(default)s)')
    parser.add_argument(
        '--page-size', type=int, default=1000,
        help='ports or rules in a request (default: %(default)s)')
    parser.add_argument(
        '--quick', action='store_true',
        help='only see that this works: few ports, small pages')
    parser.add_argument(
        '--in-process', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.ports, options.page_size = '1000', 200
    counts = options.ports.split(',')
    if not options.in_process:
        print(ROW % (
            'ports', 'rules', 'reading', 'requests', 'MB', 'wall s', 'CPU s',
            'peak MiB', 'kept MiB', 'delay ms', 'every s'))
        sys.stdout.flush()
        # Memory that one number of ports leaves behind would hide what the
        # next one takes.
        for count in counts:
            status = subprocess.call([
                sys.executable, __file__, '--in-process', '--ports', count,
                '--rules', str(options.rules),
                '--page-size', str(options.page_size)])
            if status:
                sys.exit(status)
        return
    logging.disable(logging.CRITICAL)
    measure(int(counts[0]), max(options.rules // RULES, 1),
            options.page_size)


if __name__ == '__main__':
    main()
