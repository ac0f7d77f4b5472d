# SPDX-License-Identifier: Apache-2.0

"""What the tests of the simulator share."""

import contextlib
import copy
import logging
import textwrap

import fixtures

from nfv_sched.ops.cloud.cloud_file import loader
from nfv_sched.ops.simulator import configuration
from nfv_sched.ops.simulator import engine
from nfv_sched.ops.simulator import record
from nfv_sched.ops.simulator import state
from nfv_sched.tests import base

# Two hosts with the switch on different nodes; node 0 has five dedicated
# CPUs on east and seven on west, node 1 eight and six.
CLOUD = """\
hosts:
  - name: east
    cores: 8
    memory: 32 GiB
    pages: {2M: 4096, 1G: 8}
    switch_nodes: [0]
    physical_networks: {physnet0: [0]}
    tunnel_nodes: [0]
  - name: west
    cores: 8
    memory: 32 GiB
    pages: {2M: 4096, 1G: 8}
    switch_nodes: [1]
    physical_networks: {physnet0: [1]}
    tunnel_nodes: [1]
networks:
  flat: {physical_network: physnet0}
  tun: {tunneled: true}
flavors:
  plain:
    vcpus: 2
    memory: 1 GiB
    disk: 10
  pinned:
    vcpus: 2
    memory: 1 GiB
    disk: 10
    extra_specs: {hw:cpu_policy: dedicated}
  huge:
    vcpus: 3
    memory: 2 GiB
    extra_specs: {hw:cpu_policy: dedicated, hw:mem_page_size: 2MB}
  two:
    vcpus: 4
    memory: 2 GiB
    extra_specs: {hw:cpu_policy: dedicated, hw:numa_nodes: 2}
  strict:
    vcpus: 2
    memory: 1 GiB
    extra_specs:
      hw:cpu_policy: dedicated
      nfv:vswitch_numa_affinity: strict
  prefer:
    vcpus: 2
    memory: 1 GiB
    extra_specs:
      hw:cpu_policy: dedicated
      nfv:vswitch_numa_affinity: prefer
"""


def facts(topology):
    """The values of a NUMA topology; its JSON has sets in any order."""
    return [
        (cell.id, cell.socket, sorted(cell.cpuset), sorted(cell.pcpuset),
         cell.memory, cell.cpu_usage, cell.memory_usage,
         sorted(cell.pinned_cpus), sorted(map(sorted, cell.siblings)),
         [(page.size_kb, page.total, page.used, page.reserved)
          for page in cell.mempages],
         sorted(cell.network_metadata.physnets),
         cell.network_metadata.tunneled)
        for cell in topology.cells]


@contextlib.contextmanager
def simulation(text: str, seed: int = 0, progress=None):
    """A simulation, with Nova's configuration set up for it."""
    with configuration.defaults() as defaults:
        scenario = loader.loads(text, 'cloud.yaml', defaults)
        with configuration.overrides(scenario, seed=seed):
            yield engine.Simulation(state.State(scenario), progress)


class SimulatorTestCase(base.TestCase):
    """Runs clouds given as text, or steps of the cloud ``HEAD``."""

    HEAD = CLOUD

    simulation = staticmethod(simulation)

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger('nova', level=None))

    def cloud(self, steps: str, head: str = CLOUD) -> str:
        steps = textwrap.dedent(steps)
        return head + 'steps:\n' + textwrap.indent(steps, '  ')

    def recorded(self, text: str):
        """A snapshot of the cloud after its steps."""
        with self.simulation(text) as simulated:
            simulated.run()
            return record.cloud(simulated.state)

    def run_cloud(self, text: str, seed: int = 0) -> engine.SimulationResult:
        with self.simulation(text, seed) as simulated:
            return simulated.run()

    def met(self, steps: str, head: str = '') -> engine.SimulationResult:
        """Run steps that do what they are expected to."""
        result = self.run_cloud(self.cloud(steps, head or self.HEAD))
        self.assertEqual([], list(result.failures))
        return result

    def given_back(self, steps: str,
                   head: str = '') -> engine.SimulationResult:
        """Run steps after which all that is counted is as before."""
        with self.simulation(
                self.cloud(steps, head or self.HEAD)) as simulation:
            before = self.books(simulation), self.devices(simulation)
            result = simulation.run()
            self.assertEqual([], list(result.failures))
            self.assertEqual(
                before, (self.books(simulation), self.devices(simulation)))
            return result

    @staticmethod
    def devices(simulation: engine.Simulation):
        """The free PCI devices, and the number of them by NUMA node."""
        return {host.name: (host.free_devices(), sorted(
            (str(pool.numa_node), pool.count)
            for pool in host.node.pci_device_pools or () if pool.count))
            for host in simulation.state.hosts.values()}

    @staticmethod
    def shown(table) -> tuple[list[str], list[tuple]]:
        """The columns and cells of a ``report.ReportTable`` for people."""
        columns = [each for each in table.columns if not each.is_detail]
        return [column.title for column in columns], [
            tuple([column.for_people(row) for column in columns])
            for row in table.rows]

    @staticmethod
    def books(simulation: engine.Simulation):
        """All that is counted anywhere: compute nodes and Placement."""
        return {
            host.name: (
                facts(host.topology()),
                [getattr(host.node, name) for name in (
                    'memory_mb_used', 'local_gb_used', 'vcpus_used',
                    'free_ram_mb', 'free_disk_gb', 'running_vms')],
                dict(host.node.stats), sorted(host.instances),
                dict(simulation.state.placement.providers[host.uuid].used))
            for host in simulation.state.hosts.values()
        }, copy.deepcopy(
            dict(simulation.state.placement.allocations))


class QuietTestCase(SimulatorTestCase):
    """Runs them without log messages, of which some are very long."""

    def setUp(self):
        super().setUp()
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
