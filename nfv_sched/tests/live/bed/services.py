# SPDX-License-Identifier: Apache-2.0
"""The services of OpenStack in a bed: how each is started, and when it works.

In the order in which they are shown; what needs what is said in
:mod:`nfv_sched.tests.live.bed.bed`.
"""

from collections.abc import Iterable
from importlib import metadata
import pathlib
import sys

import requests

from nfv_sched.tests.live.bed import broker
from nfv_sched.tests.live.bed import catalogue
from nfv_sched.tests.live.bed import configuration
from nfv_sched.tests.live.bed import database
from nfv_sched.tests.live.bed import layout as bed_layout
from nfv_sched.tests.live.bed import ports
from nfv_sched.tests.live.bed import processes

_PACKAGE = 'nfv_sched.tests.live.bed'

# NOTE: Before Nova 33 its API uses eventlet, which does not suit threads of
# uWSGI: after some requests it answers none.
_NOVA = int(metadata.version('nova').partition('.')[0])
_API = (4, 1) if _NOVA < 33 else (1, 8)

# Web service: module with the WSGI application, path that answers, processes,
# and threads of each.
_WEB = {
    'keystone': ('keystone.wsgi.api', '/v3', 1, 4),
    'placement': ('placement.wsgi.api', '/', 1, 8),
    'glance': ('glance.wsgi.api', '/healthcheck', 1, 4),
    'neutron': ('neutron.wsgi.api', '/', 1, 8),
    'nova-api': ('nova.wsgi.osapi_compute', '/', *_API),
}

# The queue to which agents report.
_REPORTS = 'q-reports-plugin'


def program(name: str) -> str:
    return str(pathlib.Path(sys.executable).parent / name)


def web(layout: bed_layout.Layout) -> Iterable[processes.Service]:
    for name, (module, path, workers, threads) in _WEB.items():
        url = layout.url(name)
        yield processes.Service(
            name,
            [program('uwsgi'),
             '--http-socket', f'{ports.ADDRESS}:{layout.ports[name]}',
             '--module', f'{module}:application',
             '--master', '--processes', str(workers),
             '--threads', str(threads),
             '--enable-threads', '--lazy-apps', '--need-app',
             '--die-on-term', '--listen', '128',
             '--buffer-size', '65535', '--add-header', 'Connection: close',
             '--disable-logging'],
            layout.environment(), layout.directory, url=url,
            ready=lambda name=name, answering=url + path: (
                _answers(answering)
                or _READY.get(name, lambda _: None)(layout)))


def neutron_rpc(layout: bed_layout.Layout) -> Iterable[processes.Service]:
    """What of Neutron listens to agents, and the agents."""
    etc = layout.etc / 'neutron'
    conf = ['--config-file', str(etc / 'neutron.conf')]
    yield processes.Service(
        'neutron-rpc-server',
        [program('neutron-rpc-server'), *conf,
         '--config-file', str(etc / 'ml2_conf.ini')],
        layout.environment(), layout.directory,
        ready=lambda: broker.consumed(layout, _REPORTS))
    yield processes.Service(
        'agents',
        [sys.executable, '-m', f'{_PACKAGE}.agents',
         '--agents', str(layout.agents), *conf],
        layout.environment(), layout.directory)


def nova(layout: bed_layout.Layout,
         hosts: Iterable[str]) -> Iterable[processes.Service]:
    yield _nova_service(layout, 'nova-conductor', [program('nova-conductor')],
                        'nova-conductor', 'conductor')
    for name in configuration.SCHEDULERS:
        yield scheduler(layout, name)
    for host in hosts:
        yield _nova_service(
            layout, f'nova-{host}',
            [sys.executable, '-m', f'{_PACKAGE}.compute'],
            'nova-compute', host)


def scheduler(layout: bed_layout.Layout, name: str,
              stock: bool = False) -> processes.Service:
    """Return one scheduler; a stock one is without nfv-sched."""
    return _nova_service(
        layout, f'nova-{name}', [program('nova-scheduler')],
        'nova-scheduler', name, f'{name}-stock.conf' if stock else None)


def _nova_service(layout: bed_layout.Layout, name: str, command: list[str],
                  binary: str, host: str,
                  conf: str | None = None) -> processes.Service:
    """Return a service of Nova.

    :param conf: name of its configuration file; by default after its host
    """
    path = layout.etc / 'nova' / (conf or f'{host}.conf')
    return processes.Service(
        name, [*command, f'--config-file={path}'],
        layout.environment(), layout.directory,
        ready=lambda: _reports(layout, binary, host))


def ledger(layout: bed_layout.Layout, hosts: Iterable[str],
           more: str = '') -> processes.Service:
    """nfv-sched-ledger, ready when all hosts are published."""
    names = [f'{host}_nfv_ledger' for host in hosts]
    return processes.Service(
        f'nfv-sched-ledger{more}',
        [sys.executable, '-m', 'nfv_sched.cmd.ledger', '--config-file',
         str(layout.etc / 'nova' / f'{configuration.SCHEDULERS[0]}.conf')],
        layout.environment(), layout.directory,
        ready=lambda: _published(layout, names))


def _answers(url: str) -> str | None:
    status = requests.get(
        url, timeout=5, proxies={'http': None}).status_code
    return f'{url} answers {status}' if status >= 500 else None


def _neutron_works(layout: bed_layout.Layout) -> str | None:
    """Return why Neutron does no more than to answer; None if it does.

    What it tells those who ask first may be less than there is.
    """
    with catalogue.connect(layout) as connection:
        status = connection.network.get('/networks').status_code
    return None if status == 200 else f'/networks answers {status}'


_READY = {'neutron': _neutron_works}


def _reports(layout: bed_layout.Layout, binary: str,
             host: str) -> str | None:
    """Return None if a service of Nova has said lately that it is there."""
    rows = database.query(
        layout, 'nova',
        'SELECT id FROM services WHERE deleted = 0 AND `binary` = %s '
        'AND host = %s '
        'AND last_seen_up > utc_timestamp() - INTERVAL %s SECOND',
        (binary, host, 2 * configuration.REPORT_INTERVAL))
    return None if rows else f'{binary} on {host} does not report to Nova'


def inventories(layout: bed_layout.Layout, host: str) -> str | None:
    """Return None if a compute node has told Placement what it has."""
    rows = database.query(
        layout, 'placement',
        'SELECT i.id FROM inventories i JOIN resource_providers p '
        'ON p.id = i.resource_provider_id WHERE p.name = %s', (host,))
    return None if rows else f'{host} has no inventory in Placement'


def _published(layout: bed_layout.Layout, names: list[str]) -> str | None:
    rows = database.query(
        layout, 'placement',
        'SELECT DISTINCT p.name FROM resource_providers p JOIN inventories i '
        'ON p.id = i.resource_provider_id WHERE p.name IN %s', (names,))
    missing = set(names) - {row['name'] for row in rows}
    return f'no {", ".join(sorted(missing))}' if missing else None
