# SPDX-License-Identifier: Apache-2.0
"""A cloud of several processes on one machine, in one directory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import typing as ty

import openstack
import yaml

from nfv_sched.tests.live.bed import broker
from nfv_sched.tests.live.bed import catalogue
from nfv_sched.tests.live.bed import cloud
from nfv_sched.tests.live.bed import configuration
from nfv_sched.tests.live.bed import database
from nfv_sched.tests.live.bed import errors
from nfv_sched.tests.live.bed import layout as bed_layout
from nfv_sched.tests.live.bed import ports
from nfv_sched.tests.live.bed import processes
from nfv_sched.tests.live.bed import progress as bed_progress
from nfv_sched.tests.live.bed import schema
from nfv_sched.tests.live.bed import services

VARIABLE = 'NFV_SCHED_LIVE'

_UP_SECONDS = 180
_LISTEN_SECONDS = 90
# These lose less if they are asked to end.
_LAST = ('epmd', 'rabbitmq', 'mariadb')


@dataclasses.dataclass(frozen=True, slots=True)
class Topology:
    """Where a guest is.

    :param host: compute node, None if it has none
    :param host_nodes: host NUMA nodes, in the order of the guest's; none
        without a NUMA topology
    """

    host: str | None
    host_nodes: Sequence[int]


def directory_of(path: str | os.PathLike | None = None) -> pathlib.Path:
    """The directory of a bed: given, from the environment, or ``.live``."""
    chosen = path or os.environ.get(VARIABLE) or bed_layout.SOURCE / '.live'
    return pathlib.Path(chosen).absolute()


class Bed:
    """A bed that has been brought up, now or earlier.

    :param directory: of the bed; by default that in ``NFV_SCHED_LIVE``, or
        ``.live`` in the source tree
    :raises BedError: if there is no bed
    """

    def __init__(self, directory: str | os.PathLike | None = None):
        self._set(bed_layout.load(directory_of(directory)))

    def _set(self, layout: bed_layout.Layout) -> None:
        self.layout = layout
        self.directory = layout.directory
        self.hosts = cloud.load(layout.cloud)
        every = [database.service(layout), *broker.services(layout),
                 *services.web(layout), *services.neutron_rpc(layout),
                 *services.nova(layout, self.hosts),
                 services.ledger(layout, self.hosts)]
        #: services by name, as ``status`` shows them
        self.services: dict[str, processes.Service] = {
            service.name: service for service in every}

    @property
    def computes(self) -> dict[str, processes.Service]:
        return {host: self.services[f'nova-{host}'] for host in self.hosts}

    @property
    def schedulers(self) -> list[processes.Service]:
        return [self.services[f'nova-{name}']
                for name in configuration.SCHEDULERS]

    @property
    def running(self) -> bool:
        return all(service.alive for service in self.services.values())

    def check_running(self) -> None:
        if not self.running:
            raise errors.BedError(
                f'The bed in {self.directory} does not run; bring it up: '
                'tools/nfv-sched-live up')

    # What tests use.

    def connect(self, tenant: bool = False) -> openstack.connection.Connection:
        """Connect as the administrator, or as the ordinary tenant."""
        return catalogue.connect(self.layout, tenant)

    def database(self, name: str, statement: str,
                 parameters: Sequence = ()) -> list[dict]:
        """Ask a database of the cloud.

        :param name: such as ``nova``, ``nova_api``, ``placement``
        """
        return database.query(self.layout, name, statement, parameters)

    def instance_topology(self, server_id: str) -> Topology:
        """Return where a server is, as its claim on the compute node says."""
        rows = self.database(
            'nova',
            'SELECT i.host, e.numa_topology FROM instances i '
            'LEFT JOIN instance_extra e ON e.instance_uuid = i.uuid '
            'WHERE i.uuid = %s AND i.deleted = 0', (server_id,))
        if not rows:
            raise LookupError(f'no server {server_id} in the cell')
        text = rows[0]['numa_topology']
        cells = json.loads(text)['nova_object.data']['cells'] if text else ()
        return Topology(rows[0]['host'], [
            cell['nova_object.data']['id'] for cell in cells])

    def report_agents(self, agents: Sequence[Mapping]) -> None:
        """Let these agents, and no others, report to Neutron.

        :param agents: each with ``host``, ``agent_type`` (``DHCP agent``,
            ``L3 agent`` or ``Open vSwitch agent``) and ``configurations``
        """
        partial = self.layout.agents.with_suffix('.new')
        partial.write_text(yaml.safe_dump([dict(agent) for agent in agents]))
        partial.replace(self.layout.agents)

    def scheduler_logs(self) -> dict[str, int]:
        """Where the logs of the schedulers end now, in bytes by name."""
        return {service.name: service.log.stat().st_size
                for service in self.schedulers}

    def scheduler_lines(self, since: Mapping[str, int]) -> Iterator[str]:
        """Yield the lines that the schedulers have logged since then.

        Date, time and process id begin each line.
        """
        for name, start in since.items():
            with self.services[name].log.open('rb') as log:
                log.seek(start)
                for line in log:
                    yield line.decode(errors='replace')

    def restart_schedulers(self, stock: bool = False) -> None:
        """Restart the schedulers, without nfv-sched if stock, and wait."""
        for service in self.schedulers:
            service.stop()
        replacements = [services.scheduler(self.layout, name, stock)
                        for name in configuration.SCHEDULERS]
        for service in replacements:
            service.start()
        for service in replacements:
            service.wait_ready()
        self.wait_for_listeners()

    def wait_for_listeners(self, seconds: float = _LISTEN_SECONDS) -> None:
        """Wait until the services of Nova take messages.

        After a restart of the broker, a message to one that has not come back
        yet is lost.
        """
        queues = ['conductor', 'scheduler',
                  *(f'scheduler.{name}' for name in configuration.SCHEDULERS),
                  *(f'compute.{host}' for host in self.hosts)]
        for queue in queues:
            self.wait_until(
                lambda queue=queue: broker.consumed(
                    self.layout, queue) is None,
                seconds, f'somebody listens to {queue}')

    @staticmethod
    def wait_until(predicate: Callable[[], object], seconds: float,
                   what: str, pause: float = processes.PAUSE) -> ty.Any:
        """Wait until something holds, and return what the predicate returned.

        :param predicate: called until it returns something true
        :param pause: seconds between two calls
        :raises BedError: if it does not hold in time
        """
        result = processes.wait(predicate, seconds, pause)
        if not result:
            raise errors.BedError(
                f'{what}: not after {seconds:.0f} s (last: {result!r})')
        return result

    # Up and down.

    @classmethod
    def up(cls, directory: str | os.PathLike | None = None,
           progress: bed_progress.Progress | None = None,
           description: pathlib.Path | None = None) -> 'Bed':
        """Bring a bed up; go on with one that was stopped or has crashed.

        :param description: of the compute nodes of a new bed
        :raises BedError: if it does not come up; what was started is ended
        """
        path = directory_of(directory)
        progress = progress or bed_progress.Progress()
        with _lock(path):
            bed = cls._open(path, description)
            if bed.running:
                progress.say(f'The bed in {path} is running')
                return bed
            bed._end_all()
            progress.say(f'Bringing up {"" if bed.layout.complete else "new "}'
                         f'bed in {path}')
            try:
                bed._up(progress)
            except BaseException:
                bed._end_all()
                raise
            progress.say('The bed is up')
        return bed

    @classmethod
    def _open(cls, path: pathlib.Path,
              description: pathlib.Path | None) -> 'Bed':
        description = description or cloud.DEFAULT
        if not bed_layout.exists(path):
            cloud.load(description)
            layout = bed_layout.create(path)
            shutil.copy(description, layout.cloud)
            layout.agents.write_text('[]\n')
        else:
            layout = bed_layout.load(path)
            if not layout.cloud.exists():
                shutil.copy(description, layout.cloud)
        bed = cls.__new__(cls)
        bed._set(layout)
        return bed

    def _up(self, progress: bed_progress.Progress) -> None:
        self._check_ports()
        configuration.write(self.layout, self.hosts)
        broker.prepare(self.layout)
        # While the database is new, so that nothing old is believed.
        progress.run(self._steps(first=not self.layout.complete))
        self.layout.complete = True
        self.layout.save()

    def _check_ports(self) -> None:
        for name, port in self.layout.ports.items():
            if not ports.is_free(port):
                raise errors.BedError(
                    f'Port {port}, chosen for {name}, is used by another '
                    'program; end it, or make a new bed in another directory')

    def _steps(self, first: bool) -> dict[str, bed_progress.Step]:
        """Return what brings the bed up, the first time or again."""
        step = bed_progress.Step
        steps = {
            'mariadb': step(self._database_up),
            'rabbitmq': step(self._broker_up),
        }

        def service(name, *needs):
            steps[name] = step(lambda: self.services[name].run(_UP_SECONDS),
                               needs)

        def once(name, function, *needs):
            # What has been done once is in the state of the bed.
            if not first:
                return needs
            steps[name] = step(lambda: function(self.layout), needs)
            return (name,)

        schemas = {name: once(f'{name} schema', function, 'mariadb')
                   for name, function in (
                       ('keystone', schema.keystone),
                       ('nova', schema.nova),
                       ('neutron', schema.neutron),
                       ('placement', schema.placement),
                       ('glance', schema.glance))}
        service('keystone', *schemas['keystone'])
        users = once('users and catalogue', catalogue.identity, 'keystone')
        service('placement', *schemas['placement'], *users)
        service('glance', *schemas['glance'], *users)
        service('neutron', *schemas['neutron'], *users, 'rabbitmq')
        service('nova-api', *schemas['nova'], *users, 'rabbitmq')
        service('nova-conductor', *schemas['nova'], 'rabbitmq', 'placement')
        # While they start, the API makes what Neutron creates at first use.
        service('neutron-rpc-server', 'neutron')
        service('agents', 'neutron-rpc-server')
        for scheduler in self.schedulers:
            service(scheduler.name, 'nova-conductor')
        for host in self.hosts:
            steps[f'nova-{host}'] = step(
                lambda host=host: self._compute_up(host),
                ('nova-conductor',))
        mapped = once('cell of the compute nodes', schema.discover_hosts,
                      *(f'nova-{host}' for host in self.hosts))
        service('nfv-sched-ledger', *mapped, 'neutron', 'placement')
        once('image', catalogue.image, 'glance')
        once('networks', catalogue.networks, 'neutron')
        once('flavors', catalogue.flavors, 'nova-api')
        return steps

    def _database_up(self) -> None:
        database.prepare(self.layout)
        self.services['mariadb'].run()

    def _broker_up(self) -> None:
        self.services['epmd'].run()
        self.services['rabbitmq'].run()

    def _compute_up(self, host: str) -> None:
        self.computes[host].run(_UP_SECONDS)
        self.wait_until(
            lambda: services.inventories(self.layout, host) is None, 60,
            f'inventory of {host} in Placement')

    @classmethod
    def down(cls, directory: str | os.PathLike | None = None,
             purge: bool = False,
             progress: bed_progress.Progress | None = None) -> None:
        """End all processes of a bed.

        :param purge: remove its directory too
        :raises BedError: if there is no bed, or a process does not end
        """
        path = directory_of(directory)
        progress = progress or bed_progress.Progress()
        if not bed_layout.exists(path):
            if path.exists() and not purge:
                raise errors.BedError(f'There is no bed in {path}')
            progress.say(f'There is no bed in {path}')
            return
        with _lock(path):
            bed = cls(path)
            bed._end_all(progress)
            if purge:
                ports.release(path)
                shutil.rmtree(path)
        progress.say(f'The bed in {path} is down' +
                     (' and removed' if purge else ''))

    def _end_all(self, progress: bed_progress.Progress | None = None) -> None:
        """End what was started, then whatever else has the bed's mark."""
        last = [self.services[name] for name in _LAST]
        for service in self.services.values():
            if service not in last:
                service.kill()
        if progress:
            progress.say('Services of OpenStack ended')
        for service in reversed(last):
            service.stop()
        left = processes.marked(bed_layout.MARK, str(self.directory))
        processes.end(left)
        left = processes.marked(bed_layout.MARK, str(self.directory))
        if left:
            raise errors.BedError(
                f'Processes {left} of the bed in {self.directory} do not end')


@contextlib.contextmanager
def lock(path: pathlib.Path, refusal: str):
    """Keep others from doing the same to a bed meanwhile.

    :param refusal: what is said if somebody else has locked it
    :raises BedError: if it is locked, or cannot be
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        locked = open(path, 'w')
    except OSError as exc:
        raise errors.BedError(f'{path} cannot be used: {exc}')
    with locked:
        try:
            fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise errors.BedError(refusal)
        yield


def _lock(directory: pathlib.Path):
    return lock(directory / 'lock',
                f'The bed in {directory} is just being brought up or down by '
                'another process')
