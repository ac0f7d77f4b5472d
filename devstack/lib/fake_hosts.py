# SPDX-License-Identifier: Apache-2.0
"""Prepare made-up compute nodes.

usage: fake_hosts.py DESCRIPTION STATE HOST...

DESCRIPTION is a file like devstack/fake-hosts.yaml. Its first compute node is
what HOST, the first one, is to report, and so on: in STATE/HOST is written
what the driver reads there. It forgets the servers that were recorded there.
"""

import pathlib
import sys

import yaml

from nfv_sched.tests.live.bed import cloud
from nfv_sched.tests.live.bed import errors


def main(argv):
    if len(argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    description, state = map(pathlib.Path, argv[1:3])
    names = argv[3:]
    try:
        described = len(cloud.load(description))
        if described < len(names):
            raise errors.BedError(
                f'{description} describes {described} compute nodes, and '
                f'there are to be {len(names)}')
    except errors.BedError as exc:
        print(exc, file=sys.stderr)
        return 1
    hosts = yaml.safe_load(description.read_text())['hosts']
    for name, host in zip(names, hosts.values()):
        directory = state / name
        (directory / 'cloud.yaml').write_text(
            yaml.safe_dump({'hosts': {name: host}}))
        (directory / 'guests.json').unlink(missing_ok=True)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
