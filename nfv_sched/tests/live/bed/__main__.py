# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched-live``: the live test bed up, down and looked at."""

import argparse
import os
import pathlib
import sys

from nfv_sched.tests.live.bed import bed as bed_module
from nfv_sched.tests.live.bed import cloud
from nfv_sched.tests.live.bed import errors
from nfv_sched.tests.live.bed import layout as bed_layout
from nfv_sched.tests.live.bed import runner

PROG = 'nfv-sched-live'

_KEEP = 'NFV_SCHED_LIVE_KEEP'

_DESCRIPTION = """\
An OpenStack cloud on this machine to try nfv-sched in: MariaDB, RabbitMQ,
Keystone, Placement, Glance, Neutron, Nova with two schedulers of two workers
each and several compute nodes, and nfv-sched-ledger. All of it listens on the
loopback interface only and is kept in one directory.
"""


def _up(arguments: argparse.Namespace) -> int:
    bed_module.Bed.up(arguments.directory, description=arguments.cloud)
    print(f'Credentials: eval "$({PROG} env --directory '
          f'{bed_module.directory_of(arguments.directory)})"')
    return 0


def _down(arguments: argparse.Namespace) -> int:
    bed_module.Bed.down(arguments.directory, purge=arguments.purge)
    return 0


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.command:
        raise errors.BedError('run: no command was given')
    return runner.run(
        bed_module.directory_of(arguments.directory), arguments.command,
        new=arguments.new, keep=os.environ.get(_KEEP, '0') not in ('', '0'),
        description=arguments.cloud)


def _status(arguments: argparse.Namespace) -> int:
    services = bed_module.Bed(arguments.directory).services.values()
    for service in services:
        print(f'{service.name:20} {service.pid or "":>8} '
              f'{service.state:8} {service.url}')
    return 0 if all(
        service.state == 'running' for service in services) else 3


def _env(arguments: argparse.Namespace) -> int:
    bed = bed_module.Bed(arguments.directory)
    names = {f'OS_{name.upper()}': value for name, value in
             bed.layout.credentials(arguments.tenant).items()}
    names.update({
        'OS_IDENTITY_API_VERSION': '3',
        'OS_REGION_NAME': bed_layout.REGION,
        'NO_PROXY': '127.0.0.1,localhost',
        'no_proxy': '127.0.0.1,localhost',
        bed_module.VARIABLE: str(bed.directory),
    })
    for name, value in names.items():
        print(f"export {name}='{value}'")
    return 0


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        '--directory', metavar='DIR',
        help=f'directory of the bed; by default that in the environment '
             f'variable {bed_module.VARIABLE}, or .live in the source tree')
    parser = argparse.ArgumentParser(prog=PROG, description=_DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')

    def command(name, function, text):
        added = commands.add_parser(name, parents=[common], help=text,
                                    description=text)
        added.set_defaults(function=function)
        return added

    def description(added):
        added.add_argument(
            '--cloud', type=pathlib.Path, metavar='FILE',
            help='description of the compute nodes of a new bed (default: '
                 f'{cloud.DEFAULT})')

    description(command('up', _up, 'bring the bed up, a new one or one that '
                                   'was taken down'))
    down = command('down', _down, 'end all processes of the bed')
    down.add_argument('--purge', action='store_true',
                      help='remove its directory too')
    command('status', _status, 'show its services; exit with 3 unless all of '
                               'them run')
    env = command('env', _env, 'print credentials for a shell')
    env.add_argument('--tenant', action='store_true',
                     help='of the ordinary tenant, not the administrator')
    run = command('run', _run, 'bring the bed up, run a command, and take '
                               'the bed down unless it ran before or the '
                               f'environment variable {_KEEP} is 1')
    description(run)
    run.add_argument('--new', action='store_true',
                     help='begin with a new bed, and remove it if the '
                          'command succeeds')
    run.add_argument('command', nargs='*', metavar='COMMAND',
                     help='program and arguments, after "--"; it is told '
                          f'the directory in {bed_module.VARIABLE}')
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    try:
        return arguments.function(arguments)
    except errors.BedError as exc:
        print(f'{PROG}: {exc}', file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
