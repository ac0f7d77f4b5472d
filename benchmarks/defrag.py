# SPDX-License-Identifier: Apache-2.0
"""Time of a plan that makes room.

A cloud that random guests have filled, with gaps where others have gone, and
a flavor for which there is no more room on most hosts.  What is printed is CPU
time, the trial in the simulator included.

Usage: python benchmarks/defrag.py [--hosts 1000] [--share 0.8] [--count 5]
"""

import argparse
import logging
import resource
import sys
import time
import warnings

warnings.simplefilter('ignore')

from nfv_sched.ops.answers.plans import defrag  # noqa: E402
from nfv_sched.ops.model.counting import capacity  # noqa: E402
from nfv_sched.tests import filled  # noqa: E402

WANTED = filled.flavor(16)


def main() -> int:
    """Print what a plan takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--share', type=float, default=.8,
                        help='of the CPUs for pinned guests that are pinned')
    parser.add_argument('--count', type=int, default=5,
                        help='guests that are to fit, besides those that do')
    parser.add_argument('--quick', action='store_true',
                        help='few hosts, to see that it works')
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    hosts, count = (10, 2) if args.quick else (args.hosts, args.count)
    flavors = [filled.flavor(vcpus) for vcpus in filled.SIZES]
    cloud = filled.filled(filled.cloud(
        [filled.host(f'host-{number}', 18) for number in range(hosts)],
        [*flavors, WANTED]), args.share, 1, flavors)
    found, = capacity.capacities(cloud, [WANTED])
    began = time.process_time()
    plan = defrag.plan(cloud, WANTED, found.fits + count)
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f'{hosts} hosts, {len(cloud.servers)} guests, {args.share:.0%} of '
          f'the CPUs: {plan.fits_before} of 16 vCPUs fit, {plan.fits_after} '
          f'after {len(plan.moves)} moves\n'
          f'plan and trial: {seconds:.1f} s of CPU, {memory:.0f} MiB '
          f'(aim: 60 s at 1000 hosts)')
    return 0 if plan.enough else 1


if __name__ == '__main__':
    sys.exit(main())
