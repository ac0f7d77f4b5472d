# SPDX-License-Identifier: Apache-2.0
import dataclasses

from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import anonymize
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import assumed_ports
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.simulator import base

STEPS = """
- {boot: full, flavor: pinned, count: 20, networks: [flat]}
- {boot: last, flavor: strict, networks: [flat]}
"""


class SubjectTest(base.QuietTestCase):

    def setUp(self):
        super().setUp()
        self.found = self.recorded(self.cloud(STEPS))

    def explain(self, about, relax_seconds=0):
        with start.started(self.found) as state:
            what = about(self.found, state)
            return what, explanation.explain(
                state, what, relax_seconds=relax_seconds)

    def test_one_that_runs(self):
        """It fits where it is: what it has was given back."""
        server = self.found.servers[0]
        for name in (server.uuid, server.name):
            what, found = self.explain(
                lambda cloud, state, name=name: subject.server(
                    cloud, state, name))
            self.assertEqual(server.host, what.present)
            self.assertEqual(['flat'], [
                network.physnet and 'flat'
                for network, _groups in what.requested.ports])
            there = [host for host in found.hosts if host.runs_there]
            self.assertEqual([server.host], [host.host for host in there])
            self.assertTrue(there[0].passes)
        # While a new one like it finds no room.
        _what, found = self.explain(
            lambda cloud, state: subject.flavor(
                cloud, state, 'pinned', networks=['flat']))
        self.assertFalse(found.fits)

    def test_networks_replace_those_of_a_server(self):
        with start.started(self.found) as state:
            name = self.found.servers[0].name
            what = subject.server(self.found, state, name, ['far,physnet='])
        self.assertEqual(['far'], [
            network.name for network, _groups in what.requested.ports])
        self.assertIn('in place of its own: ', what.assumed[-1])

    def test_ports_that_others_of_the_flavor_have(self):
        """They are not asked for, but said."""
        with start.started(self.found) as state:
            for name, networks, basis, kinds in (
                    ('pinned', (), assumed_ports.Basis.SERVERS, 1),
                    ('plain', (), assumed_ports.Basis.NO_SERVERS, 0),
                    ('pinned', ['far,physnet='], None, None)):
                what = subject.flavor(self.found, state, name,
                                      networks=networks)
                self.assertEqual(len(networks), len(what.requested.ports))
                ports = what.usual_ports
                self.assertEqual((basis, kinds), (
                    ports and ports.basis, ports and len(ports.plugs)))
                self.assertEqual(basis is not None, any(
                    'no port' in text for text in what.assumed))

    def test_errors(self):
        with start.started(self.found) as state:
            for name, about in (
                    ("no server named 'x'", lambda: subject.server(
                        self.found, state, 'x')),
                    ("no flavor named 'x'", lambda: subject.flavor(
                        self.found, state, 'x')),
                    ("no server group named 'x'", lambda: subject.flavor(
                        self.found, state, 'plain', group='x')),
                    ('no network named .far', lambda: subject.flavor(
                        self.found, state, 'plain', networks=['far'])),
                    ("'kind=x' is not", lambda: subject.flavor(
                        self.found, state, 'plain', networks=['n,kind=x'])),
                    ('no image property', lambda: subject.flavor(
                        self.found, state, 'plain', image={'x': 'y'})),
                    ('not take the image', lambda: subject.flavor(
                        self.found, state, 'plain',
                        image={'hw_numa_nodes': 'x'}))):
                self.assertRaisesRegex(errors.NotInCloudError, name, about)


class StoredRequestsTest(base.SimulatorTestCase):
    """Servers ask for the devices that Nova has stored for them."""

    CLOUD = """
hosts:
  - {name: a, cores: 8, memory: 16 GiB, pci_devices: [
      {type: VF, node: 0, count: 1, physical_network: p, trusted: true},
      {type: PF, node: 0, physical_network: q}]}
  - {name: b, cores: 8, memory: 16 GiB, pci_devices: [
      {type: VF, node: 0, count: 4, physical_network: p, trusted: false}]}
pci_aliases: {nic: {type: PF}}
networks: {n: {physical_network: p, vnic_type: direct, trusted: true}}
flavors:
  plain: {vcpus: 2, memory: 1 GiB, extra_specs: {
    'hw:cpu_policy': dedicated}}
  card: {vcpus: 2, memory: 1 GiB, extra_specs: {
    'hw:cpu_policy': dedicated, 'pci_passthrough:alias': 'nic:1'}}
steps:
  - {boot: first, flavor: plain, networks: [n]}
  - {boot: late, flavor: plain, networks: [n]}
  - {boot: card, flavor: card}
"""

    def setUp(self):
        super().setUp()
        cloud = self.recorded(self.CLOUD)
        # Nova keeps no networks of a server that never had a host.
        self.found = dataclasses.replace(cloud, servers=tuple(
            server if server.host else dataclasses.replace(server, ports=())
            for server in cloud.servers))
        self.servers = {each.name: each for each in self.found.servers}
        self.assertEqual(['a', None, 'a'], [
            each.host for each in self.found.servers])

    def passing(self, name, cloud=None):
        """Names of the hosts that take a server, as if it were new."""
        cloud = cloud or self.found
        with start.started(cloud) as state:
            what = subject.server(cloud, state, name)
            found = explanation.explain(state, what, relax_seconds=0)
        return [host.host for host in found.hosts if host.passes]

    def test_trusted(self):
        """VFs that are not trusted are none for a port that is."""
        self.assertEqual(['a'], self.passing('first'))
        self.assertEqual([], self.passing('late'))
        for name in ('first', 'late'):
            counted, = capacity.capacities(
                self.found, [self.servers[name].flavor],
                capacity.NewServers(
                    ports=assumed_ports.of_server(self.servers[name])))
            self.assertEqual(0, counted.fits)
        self.assertEqual(
            [('direct', 'p', True)],
            [(network.vnic_type, network.physnet, network.trusted)
             for network, _groups
             in assumed_ports.plugs(self.servers['late'])])
        for text, fits in (('', 2), (',trusted=true', 0),
                           (',trusted=false', 2)):
            counted, = capacity.capacities(
                self.found, [self.servers['first'].flavor],
                capacity.NewServers(ports=assumed_ports.of_networks(
                    self.found, [f'x,physnet=p,vnic-type=direct{text}'])))
            self.assertEqual(fits, counted.fits, text)

    def test_alias_that_has_changed(self):
        """It means what it meant when Nova made the request."""
        self.assertEqual(['a'], self.passing('card'))
        self.assertEqual(['a'], self.passing('card', dataclasses.replace(
            self.found, options={**self.found.options, 'pci': {
                'alias': ['{"name": "nic", "device_type": "type-PF", '
                          '"vendor_id": "8086", "product_id": "ffff"}']}})))

    def test_anonymized(self):
        cloud = anonymize.replace(self.found).cloud
        self.assertEqual([0, 1, 1], sorted(
            len(self.passing(server.uuid, cloud))
            for server in cloud.servers))
