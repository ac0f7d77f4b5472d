# SPDX-License-Identifier: Apache-2.0
"""How long ``host drain --run`` takes, against the migrations that it makes.

Servers are booted on one host of the live test bed, the host is drained, and
all is deleted again, round after round.  What is printed is the time from the
start of the command to the end of its last migration, to the end of the
command, and that of the slowest chain of migrations: ``plan run`` makes one
move at a time to each host, so a chain is those to one destination.  Times of
migrations are those of Nova's records, in whole seconds.

Guests have one vCPU: every other one a dedicated one.  The driver of the bed
copies no memory; ``--seconds`` says how long it takes for that.

A bed must run: see ``tools/nfv-sched-live``, or let it be started for this:

    tools/nfv-sched-live run -- .tox/live/bin/python benchmarks/live_drain.py

Usage: python benchmarks/live_drain.py [--rounds 3] [--servers 20]
                                       [--seconds 10] [--parallel 4]
                                       [--directory DIR] [--quick]
"""

import argparse
import collections
import datetime
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

warnings.simplefilter('ignore')

from nfv_sched.tests.live import bed as live_bed  # noqa: E402
from nfv_sched.tests.live.bed import cloud  # noqa: E402
from nfv_sched.tests.live.bed import configuration  # noqa: E402

HOST = 'compute-left'
_MEMORY_MB = 64
_SECONDS = 300
_EXTRA_SPECS = {
    'pinned': {'hw:cpu_policy': 'dedicated'},
    'shared': {},
}
_NAMES = ('pinned', 'shared')


def _seconds(timestamp):
    """Seconds since the epoch of a time of Nova's API."""
    return datetime.datetime.fromisoformat(
        timestamp.rstrip('Z')).replace(tzinfo=datetime.UTC).timestamp()


class Benchmark:
    """Boots servers and drains their host.

    :param bed: the bed
    :param options: of the command line
    """

    def __init__(self, bed, options):
        self._bed = bed
        self._options = options
        self._cloud = bed.connect()
        self._image = next(self._cloud.image.images()).id

    def measure(self):
        """Drain the host once.

        :returns: seconds to the end of the last migration, to the end of the
            command, and of the slowest chain
        """
        compute = self._cloud.compute
        service, = compute.services(binary='nova-compute', host=HOST)
        flavors, servers = {}, []
        try:
            for name, extra_specs in _EXTRA_SPECS.items():
                flavors[name] = compute.create_flavor(
                    name=f'drain-{name}', vcpus=1, ram=_MEMORY_MB, disk=1)
                if extra_specs:
                    compute.create_flavor_extra_specs(
                        flavors[name], extra_specs)
            for number, name in zip(range(self._options.servers),
                                    itertools.cycle(_NAMES)):
                servers.append(compute.create_server(
                    name=f'drain-{number}', host=HOST,
                    image_id=self._image, flavor_id=flavors[name].id,
                    networks='none', metadata={
                        cloud.MIGRATION_SECONDS: str(self._options.seconds)}))
            for server in servers:
                compute.wait_for_server(server, wait=_SECONDS)
            return self._drain(servers)
        finally:
            for server in servers:
                compute.delete_server(server)
            for server in servers:
                compute.wait_for_delete(server, wait=_SECONDS)
            for flavor in flavors.values():
                compute.delete_flavor(flavor)
            compute.enable_service(service.id)

    def _drain(self, servers):
        layout = self._bed.layout
        scheduler = (
            layout.etc / 'nova' / f'{configuration.SCHEDULERS[0]}.conf')
        with tempfile.TemporaryDirectory() as directory:
            began = time.time()
            done = subprocess.run(
                [sys.executable, '-m', 'nfv_sched.ops.cli.base', 'host',
                 'drain', HOST, '--config-file', str(scheduler), '--save',
                 str(pathlib.Path(directory) / 'plan.json'), '--run', '--yes',
                 '--parallel', str(self._options.parallel)],
                env=layout.account(), text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT)
            ended = time.time()
        if done.returncode:
            raise live_bed.BedError(done.stdout)
        chains = collections.Counter()
        empty = began
        for server in servers:
            migration, = self._cloud.compute.migrations(server_id=server.id)
            finished = _seconds(migration.updated_at)
            chains[migration.dest_compute] += finished - _seconds(
                migration.created_at)
            empty = max(empty, finished)
        return empty - began, ended - began, max(chains.values())


def parse_arguments():
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--servers', type=int, default=20)
    parser.add_argument('--seconds', type=float, default=10,
                        help='that a live migration copies memory')
    parser.add_argument('--parallel', type=int, default=4)
    parser.add_argument('--directory', help='of the bed')
    parser.add_argument('--quick', action='store_true',
                        help='only see that this works: one round of three '
                        'servers')
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.servers, arguments.seconds = 1, 3, 0
    return arguments


def main():
    """Run the benchmark."""
    arguments = parse_arguments()
    bed = live_bed.Bed(arguments.directory)
    bed.check_running()
    benchmark = Benchmark(bed, arguments)
    for number in range(arguments.rounds):
        empty, whole, chain = benchmark.measure()
        print(f'{number + 1}: {arguments.servers} servers  '
              f'host empty {empty:.1f} s  command {whole:.1f} s  '
              f'slowest chain {chain:.0f} s  '
              f'ratio {empty / max(chain, 1):.2f}', flush=True)
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except live_bed.BedError as exc:
        sys.exit(f'live_drain: {exc}')
