# SPDX-License-Identifier: Apache-2.0
"""How long it takes to check the loss of each host of a cloud.

Clouds of hosts with two NUMA nodes and about ten guests each: a roomy one, a
tight one and one that is nearly full.  What is not sure is done in the
simulator.  The aim is that each host of a thousand is checked in ten minutes
on one core.  What is printed is CPU time.

Usage: python benchmarks/failover.py [--hosts 1000] [--quick]
"""

import argparse
import logging
import sys
import time
import warnings

warnings.simplefilter('ignore')

from nfv_sched.ops.answers.plans import failover  # noqa: E402
from nfv_sched.tests import filled  # noqa: E402

AIM = 600.0  # seconds, of 1000 hosts
SIZES = (4, 8, 12)
#: Name of a cloud, and share of its CPUs for pinned guests that are pinned.
CLOUDS = (('roomy', 0.6), ('tight', 0.9), ('nearly full', 0.95))


def measure(hosts, name, share):
    """Check each host of a cloud; CPU seconds."""
    cloud = filled.filled(filled.cloud(
        [filled.host(f'compute-{number:04}', cores=28)
         for number in range(hosts)],
        [filled.flavor(size) for size in SIZES]), share)
    began = time.process_time()
    losses = failover.check(cloud, [host.name for host in cloud.hosts]).hosts
    spent = time.process_time() - began
    stranded = sum(len(loss.stranded) for loss in losses)
    print(f'{name}: {hosts} hosts, {len(cloud.servers)} guests, '
          f'{stranded} stranded: {spent:.1f} s')
    return spent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    if args.quick:
        args.hosts = 40
    logging.disable(logging.CRITICAL)
    aim = AIM * args.hosts / 1000
    slowest = max(measure(args.hosts, *each) for each in CLOUDS)
    print(f'slowest {slowest:.1f} s, aim {aim:.1f} s')
    return 0 if slowest <= aim else 1


if __name__ == '__main__':
    sys.exit(main())
