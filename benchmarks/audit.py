# SPDX-License-Identifier: Apache-2.0
"""Time to audit a cloud.

A few hosts are filled by the simulator, with guests of all policies, ports,
devices, ledgers and moves that are not confirmed; the cloud has them many
times over.  The aim is 60 seconds for 1000 hosts with 10,000 guests.  Nothing
may be found.  What is printed is CPU time.

Usage: python benchmarks/audit.py [--hosts 1000] [--guests 10000] [--quick]
"""

import argparse
import dataclasses
import logging
import resource
import sys
import time
import uuid
import warnings

warnings.simplefilter('ignore')

from nfv_sched.limits import names  # noqa: E402
from nfv_sched.ops.answers.audit import all_checks  # noqa: E402
from nfv_sched.ops.cloud import snapshot  # noqa: E402
from nfv_sched.tests.unit.ops.answers.audit import clouds  # noqa: E402

_BOOTS = ('strict', 'huge', 'vf_strict', 'vf_required', 'require', 'mixed',
          'off_osd', 'mapped', 'pinned', 'emulator')


def sample() -> snapshot.Cloud:
    """Three hosts with ten guests each."""
    steps = [{'boot': f'{flavor}{host}', 'flavor': flavor,
              'host': f'host{host}', 'networks': ['tenant'],
              'security_groups': ['web']}
             for host in (1, 2, 3) for flavor in _BOOTS]
    cloud, _simulation = clouds.after(steps)
    return dataclasses.replace(cloud, hosts=tuple(
        host for host in cloud.hosts if host.name.startswith('host')))


def copied(cloud: snapshot.Cloud, number: int) -> snapshot.Cloud:
    """The hosts and servers of a cloud under other names and UUIDs."""
    def new(old):
        return old and str(uuid.uuid5(uuid.NAMESPACE_OID, f'{old}{number}'))

    def name(old):
        return old and f'{old}-{number}'

    providers = {}
    for host in cloud.hosts:
        for provider in host.providers:
            providers[provider.uuid] = new(provider.uuid)
        providers[names.provider_uuid(host.uuid)] = names.provider_uuid(
            new(host.uuid))

    def held(found):
        return {providers.get(each, each): amounts
                for each, amounts in found.items()}

    return dataclasses.replace(cloud, hosts=tuple(
        dataclasses.replace(
            host, name=name(host.name), hypervisor=name(host.hypervisor),
            uuid=new(host.uuid), devices=tuple(
                dataclasses.replace(device, server=new(device.server))
                for device in host.devices),
            providers=tuple(dataclasses.replace(
                provider, uuid=providers[provider.uuid],
                parent=providers.get(provider.parent))
                for provider in host.providers)) for host in cloud.hosts
    ), servers=tuple(dataclasses.replace(
        server, uuid=new(server.uuid), name=name(server.name),
        host=name(server.host), allocations=held(server.allocations))
        for server in cloud.servers))


def main() -> int:
    """Print what it takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--guests', type=int, default=10000)
    parser.add_argument('--quick', action='store_true',
                        help='few hosts, to see that it works')
    args = parser.parse_args()
    if args.quick:
        args.hosts, args.guests = 30, 300
    logging.disable(logging.CRITICAL)
    made = sample()
    copies = [copied(made, number) for number in range(
        -(-args.hosts // len(made.hosts)))]
    cloud = dataclasses.replace(
        made, hosts=tuple(host for each in copies
                          for host in each.hosts)[:args.hosts],
        servers=tuple(server for each in copies
                      for server in each.servers)[:args.guests])
    began = time.process_time()
    found = all_checks.findings(cloud)
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f'{len(cloud.hosts)} hosts with {len(cloud.servers)} guests: '
          f'{len(found)} findings in {seconds:.1f} s, {memory} MiB')
    return 0


if __name__ == '__main__':
    sys.exit(main())
