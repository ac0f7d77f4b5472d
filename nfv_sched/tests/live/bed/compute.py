# SPDX-License-Identifier: Apache-2.0
"""nova-compute with the driver of the bed.

Usage: python -m nfv_sched.tests.live.bed.compute --config-file FILE
"""

import pathlib
import sys

# First, as it chooses how the process does several things at a time.
from nova.cmd import compute
import nova.virt


def main():
    nova.virt.__path__.append(str(pathlib.Path(__file__).parent / 'virt'))
    return compute.main()


if __name__ == '__main__':
    sys.exit(main())
