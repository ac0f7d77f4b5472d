# SPDX-License-Identifier: Apache-2.0
"""Time per host of the filters and weighers of network load.

Both limit filters and all three weighers of nfv-sched against stock Nova's
filters of limits that aggregates can set (``AggregateNumInstancesFilter`` and
``AggregateIoOpsFilter``) and its weighers of CPU, RAM and I/O, on the same
hosts for the same guest in one run.  What is printed is CPU time, the best of
several rounds; the ratio is what counts.

The ledger of each host has 24 ports with 16 rules each, two DHCP servers and a
router, and the host is in one of four aggregates with limits of its own.  The
guest wants two ports.  Neutron answers at once.

Usage: python benchmarks/network.py [--hosts 1000,10000] [--rounds 5]
                                    [--profile] [--quick]
"""

import argparse
import cProfile
import gc
import logging
import math
import pstats
import sys
import time
import uuid
import warnings

warnings.simplefilter('ignore')

import nova.conf  # noqa: E402
from nova import objects  # noqa: E402
from nova.scheduler.filters import io_ops_filter  # noqa: E402
from nova.scheduler.filters import num_instances_filter  # noqa: E402
from nova.scheduler import host_manager  # noqa: E402
from nova.scheduler import weights as nova_weights  # noqa: E402
from nova.scheduler.weights import cpu as cpu_weigher  # noqa: E402
from nova.scheduler.weights import io_ops as io_ops_weigher  # noqa: E402
from nova.scheduler.weights import ram as ram_weigher  # noqa: E402

from nfv_sched.filters import security_rule_limit  # noqa: E402
from nfv_sched.filters import vswitch_port_limit  # noqa: E402
from nfv_sched.limits import names as ledger_names  # noqa: E402
from nfv_sched.limits import usage  # noqa: E402
from nfv_sched.scheduler import notes  # noqa: E402
from nfv_sched.weights import dhcp_server  # noqa: E402
from nfv_sched.weights import router  # noqa: E402
from nfv_sched.weights import vswitch_port  # noqa: E402

STOCK = (
    (num_instances_filter.AggregateNumInstancesFilter,
     io_ops_filter.AggregateIoOpsFilter),
    (cpu_weigher.CPUWeigher, ram_weigher.RAMWeigher,
     io_ops_weigher.IoOpsWeigher))
OURS = (
    (vswitch_port_limit.VSwitchPortLimitFilter,
     security_rule_limit.SecurityRuleLimitFilter),
    (dhcp_server.DHCPServerWeigher, router.RouterWeigher,
     vswitch_port.VSwitchPortWeigher))
GROUP = 'group'


class Lookups:
    """Answers of Neutron, at hand."""

    def look_up(self, lacking):
        """See ``neutron.Lookups``."""
        return usage.Supplement(rules={GROUP: 16})


def summaries(states):
    """What Placement says of the ledgers of all hosts."""
    return {
        ledger_names.provider_uuid(state.uuid): {
            'resources': {
                ledger_names.PORTS: {'capacity': 196, 'used': 24},
                ledger_names.RULES: {'capacity': 16384, 'used': 768},
                ledger_names.DHCP_SERVERS: {
                    'capacity': ledger_names.UNLIMITED - 2, 'used': 0},
                ledger_names.ROUTERS: {
                    'capacity': ledger_names.UNLIMITED - 1, 'used': 0}},
            'traits': [ledger_names.TRAIT], 'parent_provider_uuid': state.uuid,
            'root_provider_uuid': state.uuid}
        for state in states}


def host_states(names, aggregates):
    """Fresh HostStates, as Nova makes them for every request."""
    states = []
    for number, name in enumerate(names):
        state = host_manager.HostState(name, 'node', 'cell')
        state.uuid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        state.allocation_candidates = [{
            'allocations': {state.uuid: {'resources': {'VCPU': 2}}},
            'mappings': {'': [state.uuid]}}]
        state.aggregates = [aggregates[number % len(aggregates)]]
        state.stats = {}
        state.cpu_allocation_ratio = 4.0
        states.append(state)
    return states


def request():
    """A request as the scheduler gets it."""
    groups = objects.SecurityGroupList()
    groups.objects = [objects.SecurityGroup(uuid=GROUP)]
    return objects.RequestSpec(
        flavor=objects.Flavor(name='guest', extra_specs={}),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        numa_topology=None, scheduler_hints={}, requested_resources=[],
        pci_requests=objects.InstancePCIRequests(requests=[]),
        requested_networks=objects.NetworkRequestList(objects=[
            objects.NetworkRequest(network_id=f'net{number}')
            for number in range(2)]),
        security_groups=groups, project_id='project',
        instance_uuid='5f0c6e0e-6b2f-4a4b-8d7e-0f9c1a2b3c4d')


def seconds(names, aggregates, classes, answer, rounds):
    """Best CPU time of one pass over the hosts, and how many passed."""
    handler = nova_weights.HostWeightHandler()
    filters, weighers = [[cls() for cls in kind] for kind in classes]
    best, passed = math.inf, 0
    for _ in range(rounds):
        left, spec = host_states(names, aggregates), request()
        gc.collect()  # see chain.py
        begun = time.process_time()
        if answer is not None:
            notes.note_of(spec).use(Lookups())
            notes.placement_answered(spec, answer)
        for host_filter in filters:
            left = list(host_filter.filter_all(left, spec))
        handler.get_weighed_objects(weighers, left, spec)
        best = min(best, time.process_time() - begun)
        passed = len(left)
    return best, passed


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--hosts', default='1000,10000',
                        help='numbers of hosts (default: %(default)s)')
    parser.add_argument('--rounds', type=int, default=5,
                        help='the best of so many counts')
    parser.add_argument('--profile', action='store_true',
                        help='show where the time goes')
    parser.add_argument(
        '--quick', action='store_true',
        help='only see that this works: few hosts, one round')
    args = parser.parse_args()
    if args.quick:
        args.hosts, args.rounds = '20', 1
    logging.disable(logging.CRITICAL)
    objects.register_all()
    conf = nova.conf.CONF
    conf([], project='nova', default_config_files=[])
    aggregates = [objects.Aggregate(id=number, metadata={
        'vswitch_ports_per_node': str(200 + number),
        'max_instances_per_host': str(200 + number)})
        for number in range(4)]
    print(f'{"hosts":>8s}{"passed":>8s}{"stock us":>10s}'
          f'{"ours us":>10s}{"ratio":>8s}')
    for number in map(int, args.hosts.split(',')):
        names = [f'host{index}' for index in range(number)]
        answer = summaries(host_states(names, aggregates))
        stock, _passed = seconds(
            names, aggregates, STOCK, None, args.rounds)
        profile = cProfile.Profile() if args.profile else None
        if profile:
            profile.enable()
        ours, passed = seconds(names, aggregates, OURS, answer, args.rounds)
        if profile:
            profile.disable()
        print(f'{number:8d}{passed:8d}{stock / number * 1e6:10.2f}'
              f'{ours / number * 1e6:10.2f}{stock / ours:6.1f} x')
        if passed != number:
            sys.exit(f'{number - passed} hosts are refused')
        if profile:
            pstats.Stats(profile, stream=sys.stdout).sort_stats(
                'tottime').print_stats(25)


if __name__ == '__main__':
    main()
