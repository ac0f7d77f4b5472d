# SPDX-License-Identifier: Apache-2.0
"""What it costs that the scheduler knows how full the ledgers are.

It is in the answer to ``GET /allocation_candidates``, which Nova asks for with
each request.  A process for each kind of cloud has a real Placement on SQLite
and asks it, within the process, as Nova does.  Printed are

* CPU time of Placement and bytes of the answer for clouds without any nested
  providers, with the ledger, with a PCI device in Placement on each host, and
  with both, all in one run: what the ledger adds to each of Nova's requests;
* the same of one reading of all ledgers as nfv-sched did it before, every ten
  seconds in each worker of nova-scheduler, for 32 amounts;
* CPU time of the scheduler to decode the answer, and to look up two amounts
  for each host in it.

Placement looks at all hosts and then cuts its answer to ``--limit`` candidates
([scheduler] max_placement_results), so the bytes have a bound and the CPU time
has none.  It takes another way through its code as soon as there is any nested
provider, be it of the ledger or not.

The database is in the directory for temporary files; have that in memory.

Usage: python benchmarks/ledger_read.py [--hosts 1000,10000] [--guests 10]
                                        [--limit 1000] [--rounds 3] [--quick]
"""

import argparse
import json
import logging
import multiprocessing
import sys
import tempfile
import time
import uuid
import warnings

warnings.simplefilter('ignore')

from nfv_sched.ledger import reader as ledger_reader  # noqa: E402
from nfv_sched.limits import names as ledger_names  # noqa: E402

DEVICE = 'CUSTOM_PCI_8086_1572'

#: Amount that a guest takes of each resource class, and what a host has.
OF_HOST = {'VCPU': (1, 128), 'MEMORY_MB': (1024, 262144), 'DISK_GB': (1, 900)}
OF_LEDGER = {ledger_names.PORTS: (2, 254), ledger_names.RULES: (20, 16384)}
OF_DEVICE = {DEVICE: (0, 8)}

#: Kinds of clouds: name -> nested providers of each host.
CLOUDS = {'stock': (), 'ledger': ('ledger',), 'PCI': ('device',),
          'PCI, ledger': ('device', 'ledger')}

#: Amounts that were asked for, as many as nfv-sched took at most.
AMOUNTS = [(name, number) for name in (ledger_names.PORTS, ledger_names.RULES)
           for number in range(1, 17)]

QUERY = ('resources=DISK_GB:10,MEMORY_MB:2048,VCPU:2'
         '&root_required=!COMPUTE_STATUS_DISABLED&limit=%d')


def identifier(kind, number):
    """A UUID by its number."""
    return str(uuid.UUID(int=(kind << 64) + number + (0x5eed << 80)))


class Cloud:
    """A Placement with many hosts.

    :param directory: for the database
    :param nested: nested providers of each host
    """

    def __init__(self, directory, nested):
        from oslo_config import cfg
        from placement import conf as placement_conf
        from placement.db.sqlalchemy import migration
        from placement import db_api

        from nfv_sched.tests import placement_api

        conf = cfg.ConfigOpts()
        placement_conf.register_opts(conf)
        conf.set_override('connection', f'sqlite:///{directory}/p.sqlite',
                          'placement_database')
        conf.set_override('auth_strategy', 'noauth2', 'api')
        conf([], default_config_files=[])
        db_api.configure(conf)
        self._engine = db_api.get_placement_engine()
        migration.create_schema(self._engine)
        self._api = placement_api.PlacementAPI(conf)
        self._nested = nested

    def get(self, path, version):
        """CPU seconds and body of the answer to a GET."""
        begun = time.process_time()
        status, _headers, body = self._api.answer(
            'GET', path, {'OpenStack-API-Version': f'placement {version}',
                          'Accept': 'application/json'}, b'')
        took = time.process_time() - begun
        if not status.startswith('200'):
            raise RuntimeError(body)
        return took, body

    def define(self):
        """Make classes and trait known, by name."""
        for path in (f'/resource_classes/{ledger_names.PORTS}',
                     f'/resource_classes/{ledger_names.RULES}',
                     f'/resource_classes/{DEVICE}',
                     f'/traits/{ledger_names.TRAIT}'):
            status, _headers, body = self._api.answer('PUT', path, {
                'OpenStack-API-Version': 'placement 1.36'}, b'')
            if not status.startswith('201'):
                raise RuntimeError(body)

    def fill(self, hosts, guests):
        """Write hosts and their guests into the database, past the API."""
        import sqlalchemy as sa

        from placement.db.sqlalchemy import models

        rows = {model: [] for model in (
            models.ResourceProvider, models.Inventory, models.Allocation,
            models.ResourceProviderTrait)}
        with self._engine.connect() as connection:
            classes, traits = [
                dict(connection.execute(
                    sa.select(model.name, model.id)).all())
                for model in (models.ResourceClass, models.Trait)]

        def add(name, identity, parent, root, amounts):
            number = len(rows[models.ResourceProvider]) + 1
            rows[models.ResourceProvider].append({
                'id': number, 'uuid': identity, 'name': name,
                'generation': 1, 'parent_provider_id': parent,
                'root_provider_id': root or number})
            for resource_class, (used, total) in amounts.items():
                rows[models.Inventory].append({
                    'resource_provider_id': number,
                    'resource_class_id': classes[resource_class],
                    'total': total, 'reserved': 4, 'min_unit': 1,
                    'max_unit': total, 'step_size': 1,
                    'allocation_ratio': 1.0})
                if used:
                    rows[models.Allocation] += [{
                        'resource_provider_id': number,
                        'consumer_id': f'{name[:9]}-{guest}',
                        'resource_class_id': classes[resource_class],
                        'used': used} for guest in range(guests)]
            return number

        for number in range(hosts):
            name, node = f'n{number:06d}', identifier(1, number)
            root = add(name, node, None, None, OF_HOST)
            if 'device' in self._nested:
                add(name + '_pci', identifier(2, number), root, root,
                    OF_DEVICE)
            if 'ledger' in self._nested:
                rows[models.ResourceProviderTrait].append({
                    'trait_id': traits[ledger_names.TRAIT],
                    'resource_provider_id': add(
                        name + '_nfv_ledger', ledger_names.provider_uuid(node),
                        root, root, OF_LEDGER)})
        with self._engine.begin() as connection:
            for model, values in rows.items():
                if values:
                    connection.execute(sa.insert(model.__table__), values)


def best(measure, rounds):
    """The shortest of several: (seconds, whatever else)."""
    return min((measure() for _ in range(rounds)), key=lambda one: one[0])


def look_up(body):
    """CPU seconds to look up what the ledgers have left, and how many."""
    summaries = json.loads(body)['provider_summaries']
    nodes = [node for node, summary in summaries.items()
             if summary['parent_provider_uuid'] is None]
    ledger_names.provider_uuid.cache_clear()
    for node in nodes:  # they are the same for every request
        ledger_names.provider_uuid(node)
    begun = time.process_time()
    reading = ledger_reader.Reading(summaries)
    left = [(reading.left(node, ledger_names.PORTS), reading.left(
        node, ledger_names.RULES)) for node in nodes]
    return time.process_time() - begun, left


def decode(body):
    """CPU seconds to decode an answer."""
    begun = time.process_time()
    json.loads(body)
    return (time.process_time() - begun,)


def measure(nested, hosts, guests, limit, rounds, pipe):
    """Figures of one kind of cloud."""
    logging.disable(logging.WARNING)
    figures = {}
    with tempfile.TemporaryDirectory() as directory:
        cloud = Cloud(directory, nested)
        cloud.define()
        cloud.fill(hosts, guests)
        query = QUERY % limit
        took, body = best(lambda: cloud.get(
            '/allocation_candidates?' + query, '1.36'), rounds)
        figures['candidates'] = took, len(body)
        figures['decode'] = best(lambda: decode(body), rounds)[0]
        if 'ledger' in nested:
            took, left = best(lambda: look_up(body), rounds)
            figures['look up'] = took
            expected = tuple(total - 4 - guests * used
                             for used, total in OF_LEDGER.values())
            if left != [expected] * min(hosts, limit):
                raise RuntimeError('the summaries do not have the ledgers')
            find = f'/resource_providers?required={ledger_names.TRAIT}'
            took = size = 0
            for path in [find] + [f'{find}&resources={name}:{amount}'
                                  for name, amount in AMOUNTS]:
                seconds, body = cloud.get(path, '1.38')
                took += seconds
                size += len(body)
            figures['reading'] = took, size
    pipe.send(figures)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--hosts', default='1000,10000',
                        help='numbers of hosts (default: %(default)s)')
    parser.add_argument('--guests', type=int, default=10,
                        help='guests on each host (default: %(default)s)')
    parser.add_argument('--limit', type=int, default=1000,
                        help='candidates of an answer (default: %(default)s)')
    parser.add_argument('--rounds', type=int, default=3,
                        help='the best of so many counts')
    parser.add_argument(
        '--quick', action='store_true',
        help='only see that this works: few hosts, one round')
    args = parser.parse_args()
    if args.quick:
        args.hosts, args.guests, args.limit, args.rounds = '30', 2, 20, 1
    context = multiprocessing.get_context('spawn')
    for hosts in map(int, args.hosts.split(',')):
        found = {}
        for name, nested in CLOUDS.items():
            ours, theirs = context.Pipe()
            process = context.Process(target=measure, args=(
                nested, hosts, args.guests, args.limit, args.rounds, theirs))
            process.start()
            theirs.close()
            try:
                found[name] = ours.recv()
            except EOFError:
                sys.exit(f'{name}: failed')
            process.join()
        print(f'{hosts} hosts, {args.guests} guests on each, at most '
              f'{args.limit} candidates')
        print(f'  {"Nova asks for candidates":42s}{"placement":>12s}'
              f'{"answer":>12s}{"decoded in":>12s}')
        for name, figures in found.items():
            seconds, size = figures['candidates']
            print(f'    {name:40s}{seconds:10.3f} s{size / 1e6:9.2f} MB'
                  f'{figures["decode"] * 1e3:9.1f} ms')
        for base, name in (('stock', 'ledger'), ('PCI', 'PCI, ledger')):
            seconds, size = [
                with_it - without for with_it, without in zip(
                    found[name]['candidates'], found[base]['candidates'])]
            decoded = found[name]['decode'] - found[base]['decode']
            print(f'    the ledger adds to {base:21s}{seconds:10.3f} s'
                  f'{size / 1e6:9.2f} MB{decoded * 1e3:9.1f} ms')
        seconds, size = found['ledger']['reading']
        print('  for the scheduler, in 10 s and each worker, beside that')
        print(f'    {f"before: {len(AMOUNTS) + 1} requests":40s}'
              f'{seconds:10.3f} s{size / 1e6:9.2f} MB')
        print(f'    {"now: no request":40s}{0:10.3f} s{0:9.2f} MB')
        looked = found['ledger']['look up']
        print(f'  the scheduler looks two amounts up in '
              f'{looked / min(hosts, args.limit) * 1e6:.2f} us a host')


if __name__ == '__main__':
    main()
