# SPDX-License-Identifier: Apache-2.0
"""How long ``nfv-sched snapshot serve`` takes, of a cloud in a MariaDB.

The cloud is that of ``benchmarks/snapshot.py``; the real command runs in a
process of its own, with users of each role, and answers over TLS.

What is printed: seconds from the start to the first snapshot of operators and
to that of readers, with the imports, and to the metrics, and the CPU seconds
of the service until then; milliseconds of an answer of 304, with the TLS
handshake, while the service rests and while it counts flavors; the most
memory that it had; and seconds of ``server explain`` with ``--from https``. At
full size it ends with an error if an aim is missed.

Usage: python benchmarks/serve.py [--hosts 1000] [--once] [--quick]
"""

import argparse
import base64
import contextlib
import http.client
import os
import re
import signal
import ssl
import statistics
import subprocess
import sys
import time
import warnings

warnings.simplefilter('ignore')

import bcrypt  # noqa: E402
import snapshot  # noqa: E402, the benchmark

from nfv_sched.ops.cloud import remote  # noqa: E402
from nfv_sched.tests import certificates  # noqa: E402
from nfv_sched.tests import mariadb  # noqa: E402
from nfv_sched.tests import nova_database  # noqa: E402

SECONDS = 30
MEMORY = 1000  # MB
MILLISECONDS = 5
EXPLAIN_SECONDS = 5
# Exit codes of an answer: the server could stay, or could not.
EXPLAINED = (0, 3)
ANSWERS = 200
COMMAND = (sys.executable, '-W', 'ignore', '-m', 'nfv_sched.ops.cli.base')
AGE = re.compile(rb'^nfv_sched_snapshot_timestamp_seconds (\S+)$', re.M)


class Client:
    """A client with the password of a user."""

    def __init__(self, port, authority):
        self._port = port
        self._tls = ssl.create_default_context(cafile=authority)

    def ask(self, path, user='ann', tag=''):
        """Return status, ETag and body of an answer; status 0 if cut off."""
        client = http.client.HTTPSConnection(
            '127.0.0.1', self._port, timeout=60, context=self._tls)
        account = base64.b64encode(f'{user}:secret'.encode()).decode()
        with contextlib.closing(client):
            try:
                client.request('GET', path, headers={
                    'Authorization': f'Basic {account}',
                    'If-None-Match': tag})
                answer = client.getresponse()
                return answer.status, answer.headers['ETag'], answer.read()
            except OSError as exc:
                print(f'{path}: {exc}')
                return 0, '', b''

    def wait(self, user, before=''):
        """Wait for a snapshot with another ETag; return its ETag."""
        while True:
            status, tag, _body = self.ask('/snapshot', user, before)
            if status == 200:
                return tag
            time.sleep(0.1)

    def wait_for_metrics(self, before=None):
        """Wait for metrics of another reading; return its time."""
        while True:
            taken = AGE.search(self.ask('/metrics')[2])
            if taken and taken[1] not in (before, b'0.0'):
                return taken[1]
            time.sleep(0.1)

    def milliseconds(self, tag):
        """Return how long each of some answers of 304 took."""
        took = []
        for _number in range(ANSWERS):
            began = time.perf_counter()
            status, _tag, _body = self.ask('/snapshot', 'ann', tag)
            took.append(1000 * (time.perf_counter() - began))
            if status != 304:
                break
            time.sleep(0.02)
        return took


def cpu(process):
    """Return the CPU seconds of a process."""
    with open(f'/proc/{process.pid}/stat') as stat:
        fields = stat.read().rpartition(')')[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf('SC_CLK_TCK')


def memory(process):
    """Return the most memory that a process had, in MB."""
    with open(f'/proc/{process.pid}/status') as status:
        return int(re.search(r'VmHWM:\s+(\d+) kB', status.read())[1]) / 1000


def show(what, began, process):
    """Print how long something took; return the seconds."""
    seconds = time.monotonic() - began
    print(f'{what:36} {seconds:8.1f} s, {cpu(process):.1f} s of the CPU',
          flush=True)
    return seconds


def write_users(path):
    """Write a file of users."""
    with open(path, 'w', opener=lambda path, flags: os.open(
            path, flags, 0o600)) as out:
        for user, role in (('ann', 'operator'), ('bob', 'reader')):
            hashed = bcrypt.hashpw(b'secret', bcrypt.gensalt(10)).decode()
            out.write(f'{user}:{hashed}:{role}\n')


def measure(conf, folder, interval, once):
    """Start the service, and print figures.

    :param interval: seconds between two readings
    :param once: do not wait for the second reading
    :returns: what misses an aim
    """
    authority = certificates.Authority(folder)
    users = os.path.join(folder, 'users')
    write_users(users)
    began = time.monotonic()
    process = subprocess.Popen(
        [*COMMAND, 'snapshot', 'serve', '--config-file', conf, '--listen',
         '127.0.0.1:0', '--tls-cert',
         authority.certificate('server', 'IP:127.0.0.1'), '--auth-file',
         users, '--interval', str(interval)],
        stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip()
        client = Client(int(url.rpartition(':')[2]), authority.path)
        tag = client.wait('ann')
        show('snapshot of operators', began, process)
        client.wait('bob')
        readers = show('snapshot of readers', began, process)
        counting = client.milliseconds(tag)
        taken = client.wait_for_metrics()
        show('metrics', began, process)
        rest = client.milliseconds(tag)
        os.environ.update({remote.TOKEN: 'ann:secret',
                           remote.CA: authority.path})
        explained = time.monotonic()
        code = subprocess.run(
            [*COMMAND, 'server', 'explain', nova_database.identifier(
                'server', 0, 0), '--from', url],
            stdout=subprocess.DEVNULL).returncode
        if code not in EXPLAINED:
            raise RuntimeError(f'server explain ended with {code}')
        explained = time.monotonic() - explained
        if not once:
            client.wait('ann', tag)
            client.wait_for_metrics(taken)
        print(f'{"server explain":36} {explained:8.1f} s')
        for what, took in (('304 while counting', counting),
                           ('304 at rest', rest)):
            print(f'{what:36} {statistics.median(took):8.1f} ms median, '
                  f'{max(took):.1f} ms at most, of {len(took)}')
        used = memory(process)
        print(f'{"memory":36} {used:8.0f} MB')
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    return [what for what, value, aim in (
        ('reading', readers, SECONDS), ('memory', used, MEMORY),
        ('304', statistics.median(rest), MILLISECONDS),
        ('explain', explained, EXPLAIN_SECONDS)) if value > aim]


def main():
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--guests', type=int, default=10,
                        help='of each host')
    parser.add_argument('--nested', type=int, default=4,
                        help='resource providers below that of each host')
    parser.add_argument('--interval', type=int, default=120)
    parser.add_argument('--workers', type=int, default=2,
                        help='processes of Placement')
    parser.add_argument('--once', action='store_true',
                        help='do not wait for the second reading')
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    if not mariadb.is_installed():
        print('MariaDB is not installed')
        return
    hosts = 20 if args.quick else args.hosts
    with snapshot.cloud(hosts, args.guests, args.nested, args.workers) as (
            conf, folder):
        print(f'{hosts} hosts, {hosts * args.guests} guests')
        missed = measure(conf, folder, 5 if args.quick else args.interval,
                         args.once)
    if missed and not args.quick:
        sys.exit(f'aims are missed: {", ".join(missed)}')


if __name__ == '__main__':
    main()
