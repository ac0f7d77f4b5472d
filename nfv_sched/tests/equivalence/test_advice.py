# SPDX-License-Identifier: Apache-2.0
"""Steps that are offered after a refusal, each carried out in the simulator.

Afterwards the server must fit; and where no host is to be added, neither one
more like those of the cloud nor a larger one would take it.  The number of
cases comes from the environment, ``NFV_SCHED_EQUIVALENCE_CASES``.
"""

import collections
import dataclasses
import random

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.answers.capacity import smallest_move
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.answers.explain import next_steps
from nfv_sched.ops.answers.explain import scheduling
from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import changed_hosts
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import start
from nfv_sched.tests.equivalence import inhabited
from nfv_sched.tests.equivalence import test_stock
from nfv_sched.tests import filled

_TIMES = 64
_DEVICES = 16
#: Ways to make a request that does not fit: changes of a flavor.
SIZES = ((1, 1), (2, 1), (1, 4), (2, 2), (3, 2), (8, 1))
PAGES = (None, None, None, '1GB', '16MB', 'large')
DIRECT = 'data,physnet=data,vnic-type=direct'


def grown_node(node: snapshot.Node, first: int) -> snapshot.Node:
    """A NUMA node with several times the CPUs, memory and pages.

    :param first: lowest number of the new CPUs
    """
    numbers = {cpu: [cpu, *range(first + (_TIMES - 1) * at,
                                 first + (_TIMES - 1) * (at + 1))]
               for at, cpu in enumerate(sorted(node.dedicated | node.shared))}

    def all_of(cpus):
        return frozenset(each for cpu in cpus for each in numbers[cpu])

    return dataclasses.replace(
        node, dedicated=all_of(node.dedicated), shared=all_of(node.shared),
        siblings=tuple([frozenset(same) for core in node.siblings
                        for same in zip(*[numbers[cpu] for cpu in core])]),
        memory=node.memory * _TIMES, pages=tuple([
            dataclasses.replace(pages, total=pages.total * _TIMES)
            for pages in node.pages]))


def grown(cloud: snapshot.Cloud, name: str) -> snapshot.Cloud:
    """The cloud with one more host like another one, but larger."""
    cloud, (name,) = changed_hosts.added(cloud, name, 1)
    *others, host = cloud.hosts
    nodes = tuple([grown_node(node, 1000 * (1 + number))
                   for number, node in enumerate(host.nodes)])
    devices = tuple([
        dataclasses.replace(
            device, address=device.address.replace('0000:', f'{time:04x}:'),
            parent=device.parent and device.parent.replace(
                '0000:', f'{time:04x}:'),
            tags={**device.tags, **({'address': device.tags[
                'address'].replace('0000:', f'{time:04x}:')}
                if 'address' in device.tags else {})})
        for time in range(_DEVICES) for device in host.devices])
    root, *nested = host.providers
    return dataclasses.replace(cloud, hosts=(*others, dataclasses.replace(
        host, nodes=nodes, devices=devices, vcpus=host.vcpus * _TIMES,
        memory=host.memory * _TIMES, disk=host.disk * _TIMES, providers=(
            dataclasses.replace(root, inventories={
                name: dataclasses.replace(
                    each, total=each.total * _TIMES,
                    max_unit=each.max_unit * _TIMES)
                for name, each in root.inventories.items()}), *nested))))


def fragmented(rng):
    """A cloud whose free CPUs lie apart, and its largest flavor."""
    flavors = [filled.flavor(vcpus) for vcpus in (1, 2, 3, 4)]
    hosts = [filled.host(f'host-{number}', rng.choice((3, 4, 5)),
                         rng.choice((1, 2)), rng.choice((1, 2)))
             for number in range(rng.choice((2, 3)))]
    return filled.filled(
        filled.cloud(hosts, flavors), rng.choice((.5, .6, .7)),
        rng.getrandbits(32), flavors[:3], 9), flavors[-1]


def on_data(rng, cloud):
    """The cloud with the cards of most hosts on a physical network."""
    return dataclasses.replace(cloud, hosts=tuple([
        dataclasses.replace(host, devices=tuple([
            dataclasses.replace(
                device, tags={**device.tags, 'physical_network': 'data'})
            for device in host.devices])) if rng.random() < .7 else host
        for host in cloud.hosts]))


def case(seed):
    """A cloud with servers, and a request for more or larger ones.

    :returns: the cloud, flavor, server group, number of servers, and networks
        of the ports
    """
    rng = random.Random(seed)
    if rng.random() < .3:
        cloud, flavor = fragmented(rng)
        return cloud, flavor, None, rng.choice((1, 1, 2)), ()
    cloud = on_data(rng, inhabited.made(seed, 3, 12))
    flavor = rng.choice(cloud.flavors)
    cpus, memory = rng.choice(SIZES)
    specs = dict(flavor.extra_specs)
    pages = rng.choice(PAGES)
    if pages is not None:
        specs['hw:mem_page_size'] = pages
    if 'pci_passthrough:alias' in specs:
        specs['pci_passthrough:alias'] = f'nic:{rng.choice((1, 2, 5))}'
    flavor = dataclasses.replace(
        flavor, name='wanted', id='wanted', vcpus=flavor.vcpus * cpus,
        memory=flavor.memory * memory, extra_specs=specs)
    group = rng.choice((None, None, *cloud.groups))
    count = rng.choice((1, 1, 1, 2))
    # Nova refuses ports of SR-IOV for several servers at once.
    direct = rng.choice((0, 0, 1, 2, 4)) if count == 1 else 0
    return (dataclasses.replace(cloud, flavors=(*cloud.flavors, flavor)),
            flavor, group and group.uuid, count, direct * (DIRECT,))


class TestAdvice(test_stock.EquivalenceTestCase):

    @staticmethod
    def fits(cloud, requested, *steps):
        with start.started(cloud) as state:
            simulation = engine.Simulation(state)
            for step in steps:
                simulation.step(step)
                if not simulation.outcomes[-1].ok:
                    return False
            return scheduling.run(
                state, requested).reason is None

    def carry_out(self, cloud, requested, step):
        ports = assumed_ports.assume(
            assumed_ports.Basis.NETWORKS,
            requested.ports) if requested.ports else None
        if step.kind in ('add-host', 'larger-host'):
            for name in step.like:
                cloud = (grown(cloud, name)
                         if step.kind == 'larger-host'
                         else changed_hosts.added(cloud, name, 1)[0])
            return self.fits(cloud, requested)
        if step.kind == 'defrag':
            plan = defrag.plan(
                cloud, requested.flavor, requested.count, ports=ports)
            return self.fits(cloud, requested, *[actions.MoveStep(
                action='live_migrate', number=number, host=move.destination,
                targets=(move.server,))
                for number, move in enumerate(plan.moves)])
        self.assertEqual('servers', step.kind)
        return any(self.fits(cloud, requested, actions.ServerStep(
            action='delete', number=1, targets=(server.name,)))
            for _host, server in list(smallest_move.find(
                cloud, requested.flavor, capacity.NewServers(ports=ports))))

    def test_each_step_helps(self):
        seen = collections.Counter()

        @hypothesis.settings(
            test_stock.SETTINGS, max_examples=max(10, test_stock.CASES // 2),
            phases=[hypothesis.Phase.generate])
        @hypothesis.given(st.integers(0, 2 ** 32))
        def check(seed):
            cloud, flavor, group, count, networks = case(seed)
            seen['run'] += 1
            seen['direct'] += bool(networks)
            with start.started(cloud) as state:
                asked = subject.flavor(
                    cloud, state, flavor.name, count=count, group=group,
                    networks=networks)
                found = explanation.explain(
                    state, asked,
                    relax_seconds=5 if seen['run'] % 4 == 0 else 0)
            steps = list(next_steps.find(cloud, asked, found))
            for step in steps:
                seen[step.kind] += 1
                self.assertTrue(
                    self.carry_out(cloud, asked.requested, step), step)
            for change in found.changes:
                seen['change'] += 1
                self.assertTrue(self.fits(cloud, change.requested), change)
            if found.fits or steps:
                return
            seen['nothing helps'] += 1
            for host in cloud.hosts:
                self.assertFalse(self.fits(changed_hosts.added(
                    cloud, host.name, 1)[0], asked.requested))
                self.assertFalse(self.fits(
                    grown(cloud, host.name), asked.requested))

        check()
        print('advice: %s' % dict(seen))
        for kind in ('add-host', 'larger-host', 'servers'):
            self.assert_seen(seen[kind], seen['run'] // 50)
        for kind in ('direct', 'defrag'):
            self.assert_seen(seen[kind], seen['run'] // 20)
