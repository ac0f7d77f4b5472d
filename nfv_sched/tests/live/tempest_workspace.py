# SPDX-License-Identifier: Apache-2.0
"""A workspace in which Tempest tests the cloud of the live test bed.

Usage: python -m nfv_sched.tests.live.tempest_workspace [REGEX]

The workspace is in the directory of the bed.  What the cloud offers is
written to its tempest.conf from the description of the compute nodes.
"""

from collections.abc import Iterable, Mapping
import configparser
import pathlib
import re
import subprocess
import sys

from nfv_sched.tests.live.bed import bed as live_bed
from nfv_sched.tests.live.bed import errors
from nfv_sched.tests.live.bed import layout

REGEX = r'^nfv_sched\.'

_NAME = 'tempest'
_CONCURRENCY = 2
_TIMEOUT = 900  # seconds
_COUNT = re.compile(r'^ - (Passed|Skipped|Failed): (\d+)$', re.MULTILINE)


def _joined(nodes: Iterable[int]) -> str:
    return '+'.join(str(node) for node in sorted(nodes))


def _by_host(values: Mapping[str, object]) -> str:
    return ','.join(f'{host}:{value}' for host, value in values.items())


def _cloud(bed: live_bed.Bed) -> dict[str, object]:
    """What the plugin has to know about the compute nodes."""
    hosts = bed.hosts
    return {
        'numa_nodes': _by_host({name: len(host.numa_nodes)
                                for name, host in hosts.items()}),
        'vswitch_nodes': _by_host({
            name: _joined(host.physnets['nfv_vswitch'])
            for name, host in hosts.items()}),
        'node_labels': True,
        'dedicated_cpus': True,
        'shared_cpus': True,
        'pci_alias': 'vf',
        'pci_nodes': _by_host({
            name: _joined({nic.numa_node for nic in host.pci if nic.vfs})
            for name, host in hosts.items()}),
        'ledger': True,
    }


def _settings(bed: live_bed.Bed,
              workspace: pathlib.Path) -> dict[str, dict[str, object]]:
    credentials = bed.layout.credentials()
    cloud = bed.connect()
    image = next(cloud.image.images()).id
    return {
        'DEFAULT': {'log_dir': workspace / 'logs'},
        'oslo_concurrency': {'lock_path': workspace / 'tempest_lock'},
        'auth': {
            'use_dynamic_credentials': True,
            'admin_username': credentials['username'],
            'admin_password': credentials['password'],
            'admin_project_name': credentials['project_name'],
            'admin_domain_name': 'Default',
        },
        'identity': {
            'auth_version': 'v3',
            'uri_v3': credentials['auth_url'],
            'region': layout.REGION,
        },
        'compute': {
            'image_ref': image,
            'max_microversion': 'latest',
            'min_compute_nodes': len(bed.hosts),
            'build_interval': 1,
            'build_timeout': 180,
        },
        'compute-feature-enabled': {
            'cold_migration': True, 'live_migration': True},
        'service_available': {
            'nova': True, 'neutron': True, 'glance': True, 'cinder': False,
            'swift': False, 'horizon': False},
        'validation': {'run_validation': False},
        'nfv_sched': _cloud(bed),
    }


def prepare(bed: live_bed.Bed) -> pathlib.Path:
    """Make the workspace, or bring its tempest.conf up to date."""
    workspace = bed.directory / _NAME
    if not (workspace / '.stestr.conf').exists():
        _tempest(['init', '--workspace-path',
                  str(bed.directory / 'workspace.yaml'), str(workspace)],
                 bed.directory, check=True)
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_dict({
        section: {option: str(value) for option, value in options.items()}
        for section, options in _settings(bed, workspace).items()})
    path = workspace / 'etc' / 'tempest.conf'
    path.touch(mode=0o600)
    with path.open('w', encoding='utf-8') as output:
        settings.write(output)
    return workspace


def run(bed: live_bed.Bed, regex: str = REGEX) -> tuple[bool, str]:
    """Run these tests; return whether all passed unskipped, and the output."""
    workspace = prepare(bed)
    result = _tempest(
        ['run', '--workspace-path', str(bed.directory / 'workspace.yaml'),
         '--workspace', _NAME, '--regex', regex,
         '--concurrency', str(_CONCURRENCY)], workspace)
    counts = {name: int(number)
              for name, number in _COUNT.findall(result.stdout)}
    succeeded = (result.returncode == 0 and counts.get('Passed', 0) > 0
                 and counts.get('Failed') == counts.get('Skipped') == 0)
    return succeeded, result.stdout


def _tempest(arguments: list[str], directory: pathlib.Path,
             check: bool = False) -> subprocess.CompletedProcess:
    program = pathlib.Path(sys.executable).parent / 'tempest'
    if not program.exists():
        raise errors.BedError(
            f'{program} is not there: install test-requirements.txt in the '
            'environment of the live test bed')
    return subprocess.run(
        [str(program), *arguments], cwd=directory, check=check, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_TIMEOUT)


def main(argv: list[str]) -> int:
    succeeded, output = run(live_bed.Bed(), *argv[1:2])
    print(output)
    return 0 if succeeded else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv))
