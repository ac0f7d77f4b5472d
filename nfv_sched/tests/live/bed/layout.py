# SPDX-License-Identifier: Apache-2.0
"""Where everything of a bed is: files, ports, credentials."""

from collections.abc import Mapping
import dataclasses
import json
import os
import pathlib
import secrets
import sys

import nfv_sched
from nfv_sched.tests.live.bed import errors
from nfv_sched.tests.live.bed import ports

SOURCE = pathlib.Path(nfv_sched.__file__).resolve().parent.parent

REGION = 'RegionOne'
USER = 'openstack'
TENANT = 'demo'

# Marks the processes of a bed; their children inherit it.
MARK = 'NFV_SCHED_LIVE_BED'

PORTS = ('mariadb', 'rabbitmq', 'rabbitmq-distribution', 'epmd', 'keystone',
         'placement', 'glance', 'neutron', 'nova-api')

_FILE = 'bed.json'
# Of what is kept in a directory; to be raised when that changes.
_VERSION = 4
# The longest path of a Unix socket, less the file's name.
_LONGEST = 107 - len('/run/mariadb.sock')


@dataclasses.dataclass(slots=True)
class Layout:
    """A bed's directory and what has been decided for it.

    :param directory: absolute path
    :param ports: by name, see ``PORTS``
    :param password: of the database, the broker and all users
    :param complete: whether databases and catalogue have been filled
    """

    directory: pathlib.Path
    ports: Mapping[str, int]
    password: str
    complete: bool = False

    @property
    def etc(self) -> pathlib.Path:
        return self.directory / 'etc'

    @property
    def state(self) -> pathlib.Path:
        return self.directory / 'state'

    @property
    def run(self) -> pathlib.Path:
        return self.directory / 'run'

    @property
    def log(self) -> pathlib.Path:
        return self.directory / 'log'

    @property
    def home(self) -> pathlib.Path:
        return self.directory / 'home'

    @property
    def cloud(self) -> pathlib.Path:
        """Description of the compute nodes."""
        return self.etc / 'cloud.yaml'

    @property
    def agents(self) -> pathlib.Path:
        """Description of the agents that report to Neutron."""
        return self.etc / 'agents.yaml'

    def url(self, service: str, path: str = '') -> str:
        return f'http://{ports.ADDRESS}:{self.ports[service]}{path}'

    def database_url(self, name: str) -> str:
        return (f'mysql+pymysql://{USER}:{self.password}@{ports.ADDRESS}:'
                f'{self.ports["mariadb"]}/{name}?charset=utf8')

    @property
    def transport_url(self) -> str:
        return (f'rabbit://{USER}:{self.password}@{ports.ADDRESS}:'
                f'{self.ports["rabbitmq"]}/')

    def credentials(self, tenant: bool = False) -> dict[str, str]:
        """Return who to be for openstacksdk: administrator or tenant."""
        name = TENANT if tenant else 'admin'
        return {
            'auth_url': self.url('keystone', '/v3'),
            'username': name,
            'password': self.password,
            'project_name': name,
            'user_domain_id': 'default',
            'project_domain_id': 'default',
        }

    def environment(self) -> dict[str, str]:
        programs = pathlib.Path(sys.executable).parent
        etc = self.etc
        return {
            'HOME': str(self.home),
            'LC_ALL': 'C.UTF-8',
            'PATH': f'{programs}:{os.environ.get("PATH", os.defpath)}',
            'PYTHONPATH': f'{self.etc / "python"}:{SOURCE}',
            'PYTHONWARNINGS': 'ignore',
            'no_proxy': f'{ports.ADDRESS},localhost',
            'OS_KEYSTONE_CONFIG_DIR': str(etc / 'keystone'),
            'OS_PLACEMENT_CONFIG_DIR': str(etc / 'placement'),
            'OS_GLANCE_CONFIG_DIR': str(etc / 'glance'),
            'OS_NEUTRON_CONFIG_DIR': str(etc / 'neutron'),
            'OS_NEUTRON_CONFIG_FILES': 'neutron.conf;ml2_conf.ini',
            'OS_NOVA_CONFIG_DIR': str(etc / 'nova'),
            'OS_NOVA_CONFIG_FILES': 'api-paste.ini;nova.conf',
            MARK: str(self.directory),
        }

    def account(self) -> dict[str, str]:
        """Environment of a client with the account of the operator."""
        return {**self.environment(), **{
            f'OS_{name.upper()}': value
            for name, value in self.credentials().items()},
            'OS_IDENTITY_API_VERSION': '3', 'OS_REGION_NAME': REGION}

    def save(self) -> None:
        text = json.dumps({'version': _VERSION,
                           'ports': dict(self.ports),
                           'password': self.password,
                           'complete': self.complete}, indent=2)
        partial = self.directory / (_FILE + '.new')
        partial.touch(mode=0o600)
        partial.write_text(text + '\n')
        partial.replace(self.directory / _FILE)


def exists(directory: pathlib.Path) -> bool:
    return (directory / _FILE).exists()


def load(directory: pathlib.Path) -> Layout:
    """Read what has been decided.

    :raises BedError: if there is no bed, or one of another version
    """
    try:
        decided = json.loads((directory / _FILE).read_text())
        if decided.get('version') != _VERSION:
            raise errors.BedError(
                f'The bed in {directory} was made by another version; end its '
                'processes with that one and remove it, or use another '
                'directory')
        return Layout(directory, decided['ports'], decided['password'],
                      decided['complete'])
    except FileNotFoundError:
        raise errors.BedError(
            f'There is no bed in {directory}; bring one up: '
            f'nfv-sched-live up --directory {directory}')
    except (OSError, ValueError, KeyError) as exc:
        raise errors.BedError(
            f'{directory / _FILE} cannot be read: {exc!r}; end the processes '
            f'that have {MARK}={directory} in their environment, and remove '
            'the directory')


def create(directory: pathlib.Path) -> Layout:
    """Make the directories of a new bed, and choose its ports."""
    if len(os.fsencode(directory)) > _LONGEST:
        raise errors.BedError(
            f'The path {directory} is too long for a socket; use a directory '
            f'with at most {_LONGEST} bytes')
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(entry.name != 'lock' for entry in directory.iterdir()):
            raise errors.BedError(
                f'{directory} is not empty and has no bed; use another '
                'directory')
        layout = Layout(directory, ports.reserve(directory, PORTS),
                        secrets.token_hex(12))
        for part in (layout.etc, layout.state, layout.run, layout.log,
                     layout.home):
            part.mkdir()
    except OSError as exc:
        raise errors.BedError(f'{directory} cannot be used: {exc}')
    layout.save()
    return layout
