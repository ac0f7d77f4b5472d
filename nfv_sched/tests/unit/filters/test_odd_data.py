# SPDX-License-Identifier: Apache-2.0
"""Bad flavors and odd hosts."""

from nova import objects

from nfv_sched.filters import nfv_topology
from nfv_sched.scheduler import notes
from nfv_sched.scheduler import refusals
from nfv_sched.tests.unit import clouds
from nfv_sched.tests.unit.filters import base


class TestOddData(base.FilterTestCase):
    """Bad flavors and odd hosts are refused; nothing raises."""

    def setUp(self):
        super().setUp()
        self.flags(expose_reasons='none')

    def test_hosts(self):
        bare = objects.NUMATopology(cells=[objects.NUMACell(id=0)])
        no_cores = clouds.host_topology()
        for cell in no_cores.cells:
            cell.siblings = []
        for changes in (
                {'numa_topology': None}, {'allocation_candidates': []},
                {'numa_topology': objects.NUMATopology(cells=[])},
                {'cpu_allocation_ratio': None, 'ram_allocation_ratio': None},
                {'numa_topology': bare}, {'numa_topology': no_cores}):
            for spec in clouds.spec(), clouds.spec('strict'):
                host = clouds.host()
                vars(host).update(changes)
                self.assertEqual([], self.passing([host], spec), changes)

    def test_topology_without_cells(self):
        """It is none; with PCI devices, too."""
        for spec in (clouds.spec(), clouds.spec('strict'),
                     clouds.spec(devices=[clouds.pci_request()])):
            host = clouds.host(devices={0: 1})
            host.numa_topology = objects.NUMATopology(cells=[])
            found = nfv_topology.NFVTopologyFilter().filter_all([host], spec)
            self.assertEqual([], list(found))
            (_host, why), = notes.note_of(spec).rejected
            self.assertIn('a host with a NUMA topology needed',
                          str(refusals.resolve(why)))

    def test_a_bad_host_does_not_harm_the_others(self):
        bad = clouds.host('bad')
        bad.numa_topology = 'nonsense'
        self.assertEqual(['good'], self.passing(
            [bad, clouds.host('good')], clouds.spec('strict')))

    def test_candidate_without_mappings(self):
        host = clouds.host()
        host.allocation_candidates = [{'allocations': {}}]
        self.assertEqual(['host1'], self.passing(
            [host], clouds.spec('strict')))

    def test_rebuild_passes(self):
        spec = clouds.spec('strict')
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.assertEqual(['host1'], self.passing(
            [clouds.host(switch=None)], spec))

    def test_limits_of_the_request_are_not_changed(self):
        network = clouds.network('foo')
        self.passing([clouds.host()], clouds.spec('strict', network=network))
        self.assertEqual({'foo'}, network.physnets)
