# SPDX-License-Identifier: Apache-2.0

"""Random clouds, with servers on them, and random flavors."""

import dataclasses
import random

import yaml

from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.cloud import scenario
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.verdicts import values
from nfv_sched.ops.simulator import request

NOT_ASKED = values.PlacementAnswer(
    queries=(), hosts=0, hosts_left=0, requirements=(), removed=(),
    asks_again=False, max_placement_results=None, hosts_cut_off=0,
    unsupported=(), refused=None, unknown=(), unverified=())
NETWORKS = {
    'flat': {'physical_network': 'physnet0'},
    'tun': {'tunneled': True},
    'vf': {'physical_network': 'physnet1', 'vnic_type': 'direct'},
}


def cloud(rng: random.Random) -> dict:
    """A cloud file with one to five hosts, and boots that fill some."""
    hosts = []
    names = []
    for number in range(rng.randrange(1, 6)):
        name = f'h{number}'
        names.append(name)
        nodes = rng.choice((1, 2, 2, 4))
        hosts.append({
            'name': name, 'numa_nodes': nodes,
            'cores': rng.choice((4, 8, 12)), 'threads': rng.choice((1, 2)),
            'memory': rng.choice(('16 GiB', '32 GiB')),
            'pages': rng.choice(({}, {'2M': 1024}, {'1G': 4},
                                 {'2M': 512, '1G': 2})),
            'switch_nodes': rng.choice(([0], [nodes - 1])),
            'vswitch_cores': 1, 'shared_cores_per_node': rng.choice((0, 1)),
            'node_labels': rng.random() < .9,
            'physical_networks': {
                'physnet0': [rng.randrange(nodes)], 'physnet1': [0]},
            'tunnel_nodes': [rng.randrange(nodes)],
            'traits': rng.choice(([], ['CUSTOM_FAST'])),
            'disabled': rng.random() < .1,
            'pci_devices': [
                {'type': 'VF', 'node': rng.randrange(nodes), 'count': 2,
                 'physical_network': 'physnet1'}
            ] if rng.random() < .4 else []})
    flavors = {f'f{n}': flavor(rng) for n in range(3)}
    found = {
        'hosts': hosts, 'flavors': flavors, 'networks': NETWORKS,
        'aggregates': [{
            'name': 'some', 'hosts': rng.sample(
                names, rng.randrange(1, len(names) + 1)),
            'metadata': {'ssd': 'true'}}],
        'server_groups': {'apart': {'policy': 'anti-affinity'},
                          'together': {'policy': 'affinity'}},
        'options': {'DEFAULT': {}, 'filter_scheduler': {
            'shuffle_best_same_weighed_hosts': False}},
        'steps': [
            {'boot': f's{n}', 'flavor': f'f{rng.randrange(3)}',
             'count': rng.randrange(1, 5),
             'networks': rng.choice(([], ['flat'], ['tun'], ['vf']))}
            for n in range(rng.randrange(1, 4))]}
    del found['options']['DEFAULT']
    if rng.random() < .3:
        found['steps'].append({'boot': 'g', 'flavor': 'f0',
                               'group': rng.choice(('apart', 'together'))})
    if rng.random() < .3:
        found['filters'] = [
            'ComputeFilter', 'AggregateInstanceExtraSpecsFilter',
            'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter',
            'PciPassthroughFilter', 'NUMATopologyFilter']
    return found


def flavor(rng: random.Random) -> dict:
    """A flavor as in a cloud file; Nova may refuse it."""
    specs = {}
    if rng.random() < .7:
        specs['hw:cpu_policy'] = 'dedicated'
        if rng.random() < .3:
            specs['hw:cpu_thread_policy'] = rng.choice(
                ('require', 'isolate', 'prefer'))
    if rng.random() < .4:
        specs['hw:mem_page_size'] = rng.choice(
            ('small', 'large', '2MB', '1GB'))
    if rng.random() < .3:
        specs['hw:numa_nodes'] = str(rng.choice((1, 2)))
    if specs and rng.random() < .5:
        specs['nfv:vswitch_numa_affinity'] = rng.choice(
            ('strict', 'strict', 'prefer'))
    if specs and rng.random() < .15:
        specs['nfv:numa_node.0'] = str(rng.randrange(2))
    if rng.random() < .15:
        specs['trait:CUSTOM_FAST'] = rng.choice(('required', 'forbidden'))
    if rng.random() < .15:
        specs['aggregate_instance_extra_specs:ssd'] = 'true'
    return {'vcpus': rng.choice((1, 2, 2, 4, 6)),
            'memory': f'{rng.choice((1, 1, 2, 4))} GiB',
            'extra_specs': specs, 'validate': False}


def asked(rng: random.Random,
          found: scenario.Scenario) -> request.BootRequest:
    flavors = {each.name: each for each in found.cloud.flavors}
    name = rng.choice(sorted(flavors))
    count = rng.choice((1, 1, 1, 2))
    return request.BootRequest(
        flavor=flavors[name],
        ports=tuple((found.networks[name], ()) for name in rng.choice(
            ((), ('flat',), ('tun',), ('vf',), ('flat', 'vf'))
            if count == 1 else ((), ('flat',), ('tun',)))),
        group=rng.choice((None, None, None, 'apart', 'together')),
        count=count)


def explained(count: int = 1, **fields) -> document.Explained:
    """An explanation of which the other fields say nothing."""
    empty = dict.fromkeys([
        'assumed', 'causes', 'destinations', 'filters', 'hosts', 'nearest',
        'changes', 'next_steps'], ())
    return document.Explained(**{
        **dict.fromkeys([each.name for each in dataclasses.fields(
            document.Explained)]), **empty, 'fits': False, 'subject': 's',
        'asks_for': '', 'placement': NOT_ASKED, 'changes_tried': 0,
        'changes_untried': 0, 'request': document.requested(
            request.BootRequest(count=count, flavor=snapshot.Flavor(
                name='f', vcpus=1, memory=1))), **fields})


def verdict(name: str, *failures, **fields) -> document.HostVerdict:
    """A host with what it lacks of Placement, and refusals by filters."""
    lacks = tuple([each for each in failures
                   if isinstance(each, values.PlacementLack)])
    return document.HostVerdict(**{
        'host': name, 'host_id': f'id of {name}', 'runs_there': False,
        'placement_finds': not lacks, 'placement_lacks': lacks,
        'refusals': tuple([each for each in failures if each not in lacks]),
        'refusals_in_shadow': (), 'passes': False, 'removed_by': None,
        'rank': None, **fields})


def lack(text: str, need: values.PlacementNeed | None = None,
         free: int | None = None) -> values.PlacementLack:
    """What a host lacks of Placement."""
    return values.PlacementLack(text=text, need=need, free=free, reserved=0)


def change(text: str, hosts: int = 1, requested=None,
           enabled=()) -> document.HelpfulChange:
    """A change with which a request fits."""
    return document.HelpfulChange(
        text=text, request=None, hosts_enabled=enabled, hosts=hosts, host='h',
        requested=requested, size=0)


def text(found: dict) -> str:
    return yaml.safe_dump(found, sort_keys=False)
