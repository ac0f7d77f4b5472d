# SPDX-License-Identifier: Apache-2.0
"""How long ``nfv-sched snapshot save`` takes, of a cloud in a MariaDB.

A private MariaDB has Nova's databases, with hosts of two NUMA nodes and 16
VFs, and pinned guests of a VF and two ports each, and that of a real Placement
with providers for each host, nested ones among them as there are of PCI
devices.  Placement's processes, and one of an API that answers as Neutron,
do one request at a time each.  Then the real command runs in a process of its
own.

What is printed: seconds of each part, CPU seconds of the command, the size of
the file, and the most memory that the process had.  The first part has the
imports.  At full size it ends with an error if an aim is missed.

Usage: python benchmarks/snapshot.py [--hosts 1000] [--guests 10] [--quick]
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
import warnings

warnings.simplefilter('ignore')

from oslo_config import cfg  # noqa: E402
import sqlalchemy as sa  # noqa: E402

from nfv_sched.fit import rules  # noqa: E402
from nfv_sched.ops.cloud import file  # noqa: E402
from nfv_sched.tests import mariadb  # noqa: E402
from nfv_sched.tests import nova_database  # noqa: E402

SECONDS = 60
MB = 20
MEMORY = 1000  # MB
PROJECTS = 100
TRAITS = 60
NESTED_TRAIT = 'COMPUTE_MANAGED_PCI_DEVICE'
_DATABASES = ('api', 'cell0', 'cell1', 'placement')
_CONF = """\
[api_database]
connection = {api}
[database]
connection = {cell}
[placement]
auth_type = none
endpoint_override = {placement}
[neutron]
auth_type = none
endpoint_override = {neutron}
[pci]
alias = {alias}
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nfv_sched.filters.all_filters
enabled_filters = {filters}
weight_classes = {weighers}
"""
_WEIGHERS = ('nova.scheduler.weights.all_weighers',
             'nfv_sched.weights.all_weighers')
_ALIAS = {'name': 'nic', 'vendor_id': '8086', 'product_id': '154c',
          'device_type': 'type-VF'}
_FILTERS = (
    'ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter',
    'PciPassthroughFilter', *rules.filters())


def fill_placement(url, hosts, guests, nested):
    """Write providers for each host, and what the guests have of them.

    :param url: of a database that has the schema
    :param nested: providers of a host below its own; each guest has one unit
        of one of them, as of a PCI device
    """
    engine = sa.create_engine(url)
    meta = sa.MetaData()
    meta.reflect(engine)
    tables = meta.tables
    with engine.begin() as connection:
        def add(table, rows):
            connection.execute(tables[table].insert(), rows)

        def ids(table):
            found = tables[table].c
            return {row.name: row.id for row in connection.execute(
                sa.select(found.id, found.name).order_by(found.id))}

        classes = ids('resource_classes')
        traits = ids('traits')
        # With this one Nova takes the hosts for disabled.
        own_traits = [trait for name, trait in traits.items()
                      if name != 'COMPUTE_STATUS_DISABLED'][:TRAITS]
        for table in ('projects', 'users'):
            add(table, [{'id': number + 1, 'external_id': f'{table}-{number}'}
                        for number in range(PROJECTS)])
        add('placement_aggregates', [
            {'id': 1, 'uuid': nova_database.identifier('aggregate', 0)}])
        numbers = range(hosts)
        add('resource_providers', [{
            'id': number + 1, 'uuid': nova_database.identifier(
                'compute', number), 'generation': 1,
            'name': nova_database.host_name(number),
            'root_provider_id': number + 1} for number in numbers])
        add('resource_provider_traits', [
            {'resource_provider_id': number + 1, 'trait_id': trait}
            for number in numbers for trait in own_traits])
        add('resource_provider_aggregates', [
            {'resource_provider_id': number + 1, 'aggregate_id': 1}
            for number in numbers[::2]])
        below = [(number, place, hosts + number * nested + place + 1)
                 for number in numbers for place in range(nested)]
        if below:
            add('resource_providers', [{
                'id': row, 'uuid': nova_database.identifier(
                    'provider', number, place), 'generation': 1,
                'name': f'{nova_database.host_name(number)}_{place}',
                'parent_provider_id': number + 1,
                'root_provider_id': number + 1}
                for number, place, row in below])
            add('resource_provider_traits', [
                {'resource_provider_id': row, 'trait_id': traits[NESTED_TRAIT]}
                for *_, row in below])
            add('inventories', [{
                'resource_provider_id': row,
                'resource_class_id': classes['PCI_DEVICE'],
                'total': nova_database.VFS, 'reserved': 0, 'min_unit': 1,
                'max_unit': nova_database.VFS, 'step_size': 1,
                'allocation_ratio': 1.0} for *_, row in below])
        own = {'PCPU': 56, 'MEMORY_MB': 262144, 'DISK_GB': 2000}
        add('inventories', [{
            'resource_provider_id': number + 1,
            'resource_class_id': classes[name], 'total': total,
            'reserved': 0, 'min_unit': 1, 'max_unit': total,
            'step_size': 1, 'allocation_ratio': 1.0}
            for number in numbers for name, total in own.items()])
        servers = [(number, nova_database.identifier(
            'server', number, guest)) for number in numbers
            for guest in range(guests)]
        add('consumers', [{
            'uuid': server, 'generation': 1,
            'project_id': number % PROJECTS + 1,
            'user_id': number % PROJECTS + 1} for number, server in servers])
        taken = {'PCPU': nova_database.VCPUS, 'DISK_GB': 20,
                 'MEMORY_MB': nova_database.MIB}
        add('allocations', [{
            'resource_provider_id': number + 1, 'consumer_id': server,
            'resource_class_id': classes[name], 'used': used}
            for number, server in servers for name, used in taken.items()])
        if below:
            add('allocations', [{
                'resource_provider_id':
                hosts + number * nested + guest % nested + 1,
                'consumer_id': nova_database.identifier(
                    'server', number, guest),
                'resource_class_id': classes['PCI_DEVICE'], 'used': 1}
                for number in numbers for guest in range(guests)])
        # Without it MariaDB may go through all consumers for each request.
        connection.execute(sa.text('ANALYZE TABLE ' + ', '.join(tables)))
    engine.dispose()


def several(count, start):
    """Start something in several processes that end with this one."""
    end, held = os.pipe()
    for _ in range(count - 1):
        if not os.fork():
            os.close(held)
            start()
            os.read(end, 1)
            os._exit(0)
    start()


def serve_placement(url, hosts, guests, nested, workers, pipe):
    """Serve Placement; its address is told when the database is full."""
    from placement import conf as placement_conf
    from placement import db_api

    from nfv_sched.tests import placement_api
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf.set_override('auth_strategy', 'noauth2', 'api')
    conf.set_override('connection', url, 'placement_database')
    conf.set_override('sync_on_startup', True, 'placement_database')
    conf([], default_config_files=[])
    api = placement_api.PlacementAPI(conf)
    fill_placement(url, hosts, guests, nested)
    db_api.placement_context_manager.dispose_pool()  # no connection of two
    several(workers, api.start)
    pipe.send(api.url)
    pipe.recv()


def serve_neutron(hosts, guests, pipe):
    """Serve the ports of the guests."""
    from nfv_sched.tests.unit.limits import neutron_api
    api = neutron_api.NeutronAPI()
    api.ports.extend(neutron_api.port(**port)
                     for port in nova_database.ports(hosts, guests))
    api.start()
    pipe.send(api.url)
    pipe.recv()


@contextlib.contextmanager
def process(target, *args):
    """Run a server; gives its address."""
    near, far = multiprocessing.Pipe()
    child = multiprocessing.get_context('spawn').Process(
        target=target, args=(*args, far), daemon=True)
    child.start()
    far.close()  # an end of the process is seen
    try:
        yield near.recv()
    finally:
        child.terminate()
        child.join()


def run_command(path, conf, began):
    """Run the command in this process, and print figures as JSON.

    :param began: when the process was started
    """
    from nfv_sched.ops.cli import base
    from nfv_sched.ops.simulator import progress
    ends = {}

    @contextlib.contextmanager
    def shown():
        yield lambda done, total, what: ends.update({what: time.time()})

    progress.shown = shown
    out = sys.stdout
    sys.stdout = sys.stderr
    code = base.main(['snapshot', 'save', path, '--config-file', conf])
    ends['file'] = time.time()
    parts = {}
    for what, end in ends.items():
        parts[what], began = end - began, end
    used = resource.getrusage(resource.RUSAGE_SELF)
    json.dump({'code': code, 'parts': parts, 'memory': used.ru_maxrss * 1024,
               'cpu': used.ru_utime + used.ru_stime}, out)
    # Python flushes what sys.stdout is now.
    out.flush()


@contextlib.contextmanager
def cloud(hosts, guests, nested, workers):
    """Make a cloud; gives its nova.conf and a folder for files.

    :param nested: providers of a host below its own
    :param workers: processes of Placement
    """
    with mariadb.MariaDB() as server:
        server.execute(*(f'CREATE DATABASE {name}' for name in _DATABASES))
        conf = f'{server.directory}/nova.conf'
        with process(serve_placement, server.url('placement'), hosts, guests,
                     nested, workers) as placement, process(
                         serve_neutron, hosts, guests) as neutron:
            with open(conf, 'w') as out:
                out.write(_CONF.format(
                    api=server.url('api'), cell=server.url('cell1'),
                    placement=placement, neutron=neutron,
                    alias=json.dumps(_ALIAS), filters=','.join(_FILTERS),
                    weighers=','.join(_WEIGHERS)))
            subprocess.run(
                [sys.executable, '-W', 'ignore', '-m',
                 'nfv_sched.tests.nova_database', '--config-file', conf,
                 '--hosts', str(hosts), '--guests', str(guests),
                 *(f'{name}={server.url(name)}' for name in _DATABASES[1:3])],
                check=True)
            yield conf, server.directory


def measure(hosts, guests, nested, workers):
    """Make a cloud, and take a snapshot; see :func:`cloud`.

    :returns: figures of the command, with the size of the file
    """
    with cloud(hosts, guests, nested, workers) as (conf, folder):
        path = f'{folder}/cloud.json.gz'
        figures = json.loads(subprocess.run(
            [sys.executable, __file__, '--command', path, conf,
             str(time.time())], check=True,
            stdout=subprocess.PIPE).stdout)
        check(file.load(path), hosts, guests, nested)
        return {**figures, 'size': os.path.getsize(path)}


def check(cloud, hosts, guests, nested):
    """See that all is there."""
    seen = (len(cloud.hosts), len(cloud.servers), cloud.missing)
    if seen != (hosts, hosts * guests, ()):
        sys.exit(f'hosts, servers, missing: {seen}')
    for host in cloud.hosts:
        if len(host.devices) != nova_database.VFS or [TRAITS] + [
                1] * nested != [len(found.traits) for found in host.providers]:
            sys.exit(f'{host.name} is not whole')
    for server in cloud.servers:
        if len(server.allocations) != 1 + bool(nested) or (
                len(server.ports) != 2):
            sys.exit(f'{server.name} is not whole')


def main():
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition('\n\n')[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--guests', type=int, default=10,
                        help='of each host')
    parser.add_argument('--nested', type=int, default=4,
                        help='resource providers below that of each host')
    parser.add_argument('--workers', type=int, default=2,
                        help='processes of Placement')
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--command', nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.command:
        path, conf, began = args.command
        run_command(path, conf, float(began))
        return
    if not mariadb.is_installed():
        print('MariaDB is not installed')
        return
    hosts = 20 if args.quick else args.hosts
    figures = measure(hosts, args.guests, args.nested, args.workers)
    print(f'{hosts} hosts, {hosts * args.guests} guests')
    for what, seconds in figures['parts'].items():
        print(f'{what:20} {seconds:8.1f} s')
    total = sum(figures['parts'].values())
    print(f'{"all":20} {total:8.1f} s')
    print(f'{"CPU of the command":20} {figures["cpu"]:8.1f} s')
    print(f'{"file":20} {figures["size"] / 1e6:8.1f} MB')
    print(f'{"memory":20} {figures["memory"] / 1e6:8.0f} MB')
    if figures['code']:
        sys.exit(f'exit code {figures["code"]}')
    if not args.quick and (total > SECONDS or figures['size'] > MB * 1e6
                           or figures['memory'] > MEMORY * 1e6):
        sys.exit(f'more than {SECONDS} s, {MB} MB, or {MEMORY} MB of memory')


if __name__ == '__main__':
    main()
