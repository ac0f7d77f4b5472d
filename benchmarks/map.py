# SPDX-License-Identifier: Apache-2.0
"""Time to look at all hosts of a cloud and draw a map of them.

Each host has two NUMA nodes of 14 cores with two threads, and ten guests.  The
aim is 20 seconds for the page of 1000 hosts, and 10 kB of it for each host.

Usage: python benchmarks/map.py [--hosts 1000] [--quick]
"""

import argparse
import sys
import time
import warnings

warnings.simplefilter('ignore')

from nfv_sched.ops.answers.hosts.map import page  # noqa: E402
from nfv_sched.ops.answers.hosts.map import text  # noqa: E402
from nfv_sched.ops.answers.hosts import view  # noqa: E402
from nfv_sched.tests import snapshots  # noqa: E402

_FORMATS = {'html': page.render, 'svg': page.render_picture,
            'text': text.render}


def main() -> int:
    """Print what each step takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--quick', action='store_true',
                        help='few hosts, to see that it works')
    args = parser.parse_args()
    cloud = snapshots.generated(
        20 if args.quick else args.hosts, threads=2, guests=16)
    began = time.perf_counter()
    views = view.views(cloud)
    looked = time.perf_counter() - began
    print(f'{len(views)} hosts with {len(cloud.servers)} guests: looked at '
          f'in {looked:.2f} s')
    for name, render in _FORMATS.items():
        began = time.perf_counter()
        size = sum(len(piece.encode()) for piece in render(cloud, views))
        seconds = time.perf_counter() - began
        print(f'{name:4} drawn in {seconds:5.2f} s, {looked + seconds:5.2f} '
              f's in all, {size / len(views):6.0f} bytes a host')
    return 0


if __name__ == '__main__':
    sys.exit(main())
