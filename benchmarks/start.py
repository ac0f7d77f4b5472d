# SPDX-License-Identifier: Apache-2.0
"""Time to start the commands: CPU seconds, of Python too, without an answer.

The aim is 0.2 s for --help, and 0.5 s for hosts of a snapshot.  Each command
runs in a process of its own, the first time to compile modules.  Between them
an empty program runs: on a busy machine compare the ratios to it.

Usage: python benchmarks/start.py [--runs 3] [--quick]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

_SAVE = """\
import sys
from nfv_sched.ops.cloud import file
from nfv_sched.ops.commands import source
file.save(source.load('telco'), sys.argv[1])
"""
_MAIN = ('import sys; from nfv_sched.ops.cli import main; '
         'sys.exit(main.main())')
#: Command lines; SNAPSHOT stands for a file.
COMMANDS = (
    '--help', '--version', 'host list --help', 'complete',
    'host list --from SNAPSHOT', 'host show compute-1 --from SNAPSHOT',
    'host map --from SNAPSHOT', 'flavor translate --all --from SNAPSHOT',
    'flavor lint --all --from SNAPSHOT', 'capacity list --from SNAPSHOT',
    'cloud audit --from SNAPSHOT', 'host drain compute-1 --from SNAPSHOT',
    'agent rebalance --from SNAPSHOT', 'host list --from telco')


def seconds(code: str, *args: str) -> float:
    """Return the CPU seconds of a Python program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, '-W', 'ignore', '-c', code, *args],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime
            - before.ru_utime - before.ru_stime)


def main() -> int:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--quick', action='store_true')
    args = parser.parse_args()
    commands = COMMANDS[:2] if args.quick else COMMANDS
    os.environ.pop('PYTHONDONTWRITEBYTECODE', None)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'cloud.json.gz')
        subprocess.run([sys.executable, '-W', 'ignore', '-c', _SAVE, path],
                       check=True)
        for line in commands:
            words = line.replace('SNAPSHOT', path).split()
            seconds(_MAIN, *words)
            empty = min(seconds('pass') for _ in range(args.runs))
            least = min(seconds(_MAIN, *words) for _ in range(args.runs))
            print(f'{least:5.2f} s  {least / empty:4.0f} times python -c pass'
                  f'  {line}', flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
