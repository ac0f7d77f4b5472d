# SPDX-License-Identifier: Apache-2.0
"""How long nova-scheduler takes for a request, with nfv-sched and without.

Servers are created one after the other on the live test bed, and deleted
again.  All schedulers are restarted with the stock filters and weighers, then
with those of nfv-sched, in turn, round after round.  What is printed is the
time of ``select_destinations`` as oslo.messaging logs it in nova-scheduler,
from the arrival of the request to the reply: the host states read from the
database, Placement asked for candidates and for the claim, filters, weighers.

The guest has two dedicated CPUs and, with ``--ports``, ports; a strict vSwitch
NUMA affinity, which stock Nova does not know.

A bed must run: see ``tools/nfv-sched-live``, or let it be started for this:

    tools/nfv-sched-live run -- .tox/live/bin/python benchmarks/live_latency.py

Usage: python benchmarks/live_latency.py [--rounds 3] [--requests 20]
                                         [--ports 1] [--directory DIR]
                                         [--quick]
"""

import argparse
import re
import statistics
import sys
import warnings

warnings.simplefilter('ignore')

from nfv_sched.tests.live import bed as live_bed  # noqa: E402
from nfv_sched.tests.live.bed import configuration  # noqa: E402

STOCK = 'stock'
PLUGIN = 'nfv-sched'

# For each worker of the schedulers, before anything is measured.
_WARM_UP = 3
_SECONDS = 120
_REPLY = re.compile(
    r'(req-[0-9a-f-]{36}).* sending reply .*time elapsed: ([0-9.e-]+)s')


class Benchmark:
    """Creates servers and reads the logs.

    :param bed: the bed
    :param ports: of each guest
    """

    def __init__(self, bed, ports):
        self._bed = bed
        self._cloud = bed.connect()
        self._networks = 'none'
        if ports:
            network = self._cloud.network.find_network('tenant')
            self._networks = [{'uuid': network.id}] * ports
        self._image = self._cloud.image.find_image('tiny')
        self._flavor = self._cloud.compute.find_flavor('pinned-strict')

    def measure(self, count):
        """Create servers.

        :returns: seconds that the scheduler took for each
        """
        before = self._bed.scheduler_logs()
        wanted = [self._create() for _ in range(count)]
        took = {}
        for line in self._bed.scheduler_lines(before):
            found = _REPLY.search(line)
            if found:
                took[found[1]] = float(found[2])
        missing = [request for request in wanted if request not in took]
        if missing:
            raise live_bed.BedError(
                f'The logs of the schedulers say nothing of {missing}')
        return [took[request] for request in wanted]

    def _create(self):
        """Create a server and delete it.

        :returns: the request's id
        """
        compute = self._cloud.compute
        server = compute.create_server(
            name='latency', image_id=self._image.id,
            flavor_id=self._flavor.id, networks=self._networks)
        try:
            compute.wait_for_server(server, wait=_SECONDS, interval=0.2)
            return next(action.request_id
                        for action in compute.server_actions(server)
                        if action.action == 'create')
        finally:
            compute.delete_server(server)
            compute.wait_for_delete(server, wait=_SECONDS, interval=0.2)


def report(name, seconds):
    """Print what was measured.

    :returns: the median
    """
    median = statistics.median(seconds)
    print(f'{name:20} {len(seconds):4} requests  '
          f'median {median * 1000:7.1f} ms  '
          f'best {min(seconds) * 1000:7.1f} ms  '
          f'90 % {statistics.quantiles(seconds, n=10)[-1] * 1000:7.1f} ms',
          flush=True)
    return median


def parse_arguments():
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--requests', type=int, default=20,
                        help='in each round, with each configuration')
    parser.add_argument('--ports', type=int, default=1)
    parser.add_argument('--directory', help='of the bed')
    parser.add_argument('--quick', action='store_true',
                        help='only see that this works: one round of two '
                        'requests')
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.requests = 1, 2
    return arguments


def main():
    """Run the benchmark."""
    arguments = parse_arguments()
    bed = live_bed.Bed(arguments.directory)
    bed.check_running()
    benchmark = Benchmark(bed, arguments.ports)
    warm_up = 1 if arguments.quick else (
        _WARM_UP * configuration.SCHEDULER_WORKERS
        * len(configuration.SCHEDULERS))
    took = {STOCK: [], PLUGIN: []}
    try:
        for number in range(arguments.rounds):
            for kind, seconds in took.items():
                bed.restart_schedulers(stock=kind == STOCK)
                benchmark.measure(warm_up)
                now = benchmark.measure(arguments.requests)
                seconds += now
                report(f'{number + 1}: {kind}', now)
    finally:
        bed.restart_schedulers()
    medians = {kind: report(f'all: {kind}', seconds)
               for kind, seconds in took.items()}
    print(f'ratio of the medians {medians[PLUGIN] / medians[STOCK]:.2f}')
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except live_bed.BedError as exc:
        sys.exit(f'live_latency: {exc}')
