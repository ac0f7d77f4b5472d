# SPDX-License-Identifier: Apache-2.0
"""A host that is set up by its profile takes as many guests as that says.

The host is as nova-compute would report it with the nova.conf of the profile;
Nova's own scheduler and claims fill it in the simulator.
"""

import hypothesis
from hypothesis import strategies as st

from nfv_sched.ops.answers.profile import choices
from nfv_sched.ops.answers.profile import configuration
from nfv_sched.ops.answers.profile import cpus
from nfv_sched.ops.answers.profile import derivation as profiles
from nfv_sched.ops.answers.profile import reported
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import servers
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests import filled
from nfv_sched.tests.unit.ops.answers.profile import machines


def fits(found, flavor):
    """Guests of a flavor that the simulator boots until one is refused."""
    cloud = filled.cloud([reported.host(found, 'compute-1')], [flavor])
    with start.started(cloud) as state:
        simulation = engine.Simulation(state)
        for number in range(1000):
            name = f'vm-{number}'
            simulation.step(actions.Boot(
                action='boot', number=number, boot=name, flavor=flavor.name,
                targets=(name,)))
            if state.servers[name].status != servers.ACTIVE:
                return number
    raise AssertionError('there is no end of guests')


def pinned(vcpus, memory, size, **specs):
    return snapshot.Flavor(name='f', vcpus=vcpus, memory=memory, extra_specs={
        'hw:cpu_policy': 'dedicated',
        'hw:mem_page_size': configuration.page_size(size),
        **{key.replace('__', ':'): value for key, value in specs.items()}})


def promised(found, vcpus, memory, size, strict=False):
    """Guests that a profile has CPUs and pages for."""
    return sum(min(
        len(node.cpus[cpus.GUESTS]) // vcpus,
        machines.pages(node, 'servers').get(size, 0)
        // (memory * 1024 // size))
        for node in found.numa_nodes
        if not strict or node.cpus[cpus.SWITCH])


class CapacityTest(base.TestCase):

    def test_pages_bind(self):
        """All pages but the switch's: 119 and 125 of 1 GiB."""
        machine = machines.machine()
        found = machines.derive(machine, shared=True)
        for gib, count in ((119, 2), (120, 1), (125, 1), (126, 0)):
            self.assertEqual(count, fits(found, pinned(
                2, gib * machines.GIB, 1048576)), gib)

    def test_shared_guests(self):
        """4 shared CPUs at the ratio of the profile."""
        machine = machines.machine()
        found = machines.derive(machine, shared=True, guest_gb=2.0,
                                utilisation=0.5, pages=((1048576, 0.5),))
        self.assertEqual((8, 2.0), (
            found.server_vcpus, found.nova.cpu_allocation_ratio))
        self.assertEqual(8, fits(found, snapshot.Flavor(
            name='f', vcpus=1, memory=1024)))

    def test_reserved_memory(self):
        """Placement keeps what the OSDs and the host need."""
        machine = machines.machine(cores=4, memory=16 * machines.GIB)
        found = machines.derive(
            machine, layout=choices.FLOATING, guest_gb=2.0, utilisation=0.1,
            osds={'hdd': 2})
        self.assertEqual((8, 14336), (
            found.servers_by_memory, found.nova.reserved_host_memory_mib))
        # The guide keeps half a GB for each; what it rounds off is left.
        self.assertEqual((32768 - 14336) // 2048, fits(
            found, snapshot.Flavor(name='f', vcpus=1, memory=2048)))

    def test_floating(self):
        """As many vCPUs as the ratio makes of all CPUs."""
        for nodes, threads in ((1, 2), (4, 1), (8, 2)):
            machine = machines.machine(
                2, nodes, threads, 32 * machines.GIB, nics=())
            found = machines.derive(
                machine, layout=choices.FLOATING, guest_gb=2.0,
                utilisation=0.5, osds={'hdd': 1})
            vcpus = int(2 * nodes * threads * found.nova.cpu_allocation_ratio)
            memory = machine.memory - found.nova.reserved_host_memory_mib
            flavor = snapshot.Flavor(name='f', vcpus=1, memory=1024)
            self.assertEqual(min(vcpus, memory // 1024),
                             fits(found, flavor), (nodes, threads))

    @hypothesis.settings(max_examples=6, suppress_health_check=list(
        hypothesis.HealthCheck))
    @hypothesis.given(st.data())
    def test_generated(self, data):
        machine = data.draw(machines.machines(
            most_nodes=8, most_cores=4, memories=(
                13 * machines.GIB + 5, 16 * machines.GIB)))
        chosen = data.draw(machines.chosen(machine, (
            choices.HCG, choices.EVERY_NODE)))
        try:
            found = profiles.derive(machine, chosen)
        except choices.ProfileError:
            hypothesis.reject()
        size = next((size for size in found.page_sizes if any(
            size in machines.pages(node, 'servers')
            for node in found.numa_nodes)), None)
        if size is None:
            hypothesis.reject()
        vcpus = data.draw(st.sampled_from((1, 2, 3)))
        strict = data.draw(st.booleans())
        specs = {'nfv__vswitch_numa_affinity': 'strict'} if strict else {}
        self.assertEqual(
            promised(found, vcpus, 2048, size, strict),
            fits(found, pinned(vcpus, 2048, size, **specs)))
