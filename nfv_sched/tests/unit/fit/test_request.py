# SPDX-License-Identifier: Apache-2.0
"""A RequestSpec, read once."""

import dataclasses
import typing as ty

from nova import objects

from nfv_sched.base import extra_specs
from nfv_sched.fit.numa import topology
from nfv_sched.limits import demand
from nfv_sched.scheduler import notes
from nfv_sched.tests import base
from nfv_sched.tests import strategies
from nfv_sched.tests.unit import clouds


def read(spec):
    return notes.note_of(spec).read(spec)


class TestRead(base.TestCase):

    def test_plain(self):
        """Nothing is asked that stock Nova does not do."""
        for plain, spec in (
                (True, clouds.spec()),
                (True, clouds.spec(network=clouds.network('foo'))),
                (False, clouds.spec(numa=False)),
                (False, clouds.spec('strict')),
                (False, clouds.spec('nonsense')),
                (False, clouds.spec(move=True, network=clouds.network(
                    tunneled=True)))):
            self.assertEqual(plain, read(spec).plain)

    def test_what_is_asked(self):
        found = read(clouds.spec(
            'strict', cells=2, network=clouds.network('foo', tunneled=True),
            devices=[clouds.pci_request(3)]))
        self.assertIsNone(found.error)
        self.assertEqual('strict', found.policy.vswitch)
        self.assertEqual(['vswitch'], [rule.name for rule in found.rules])
        self.assertEqual(2, len(found.guest.cells))
        self.assertEqual(found.guest, found.pristine)
        self.assertEqual([3], [each.count for each in found.demands])
        self.assertEqual(({'foo'}, True, False, False), (
            found.physnets, found.tunneled, found.tunnel_uncertain,
            found.is_move))

    def test_nothing_is_asked(self):
        found = read(clouds.spec(numa=False))
        self.assertIs(extra_specs.NO_POLICY, found.policy)
        self.assertEqual((None, (), (), set(), False), (
            found.guest, found.rules, found.demands, found.physnets,
            found.tunneled))

    def test_errors(self):
        """No host can take such a request, and none of its rules counts."""
        odd = clouds.spec()
        odd.numa_topology = objects.InstanceNUMATopology(
            cells=[objects.InstanceNUMACell(id=0)])
        devices = clouds.spec('strict')
        devices.pci_requests.requests = [objects.InstancePCIRequest()]
        for spec, text in (
                (clouds.spec('x'), "flavor: nfv:vswitch_numa_affinity='x' is "
                 'not one of strict, prefer'),
                (clouds.spec(extra_specs={'nfv:shared_vcpu': '0'}),
                 'nfv:shared_vcpu=0: needs a server with both kinds of CPUs; '
                 'set hw:cpu_policy=mixed and hw:cpu_dedicated_mask=^0'),
                (odd, 'NUMA topology: unreadable: a guest NUMA node without '
                 'memory'),
                (devices, 'PCI devices: a request without its fields')):
            found = read(spec)
            self.assertEqual(text, str(found.error))
            self.assertEqual(((), False), (found.rules, found.plain))

    def test_image(self):
        found = read(strategies.request_spec(
            clouds.guest(), properties={
                'hw_pci_numa_affinity_policy': 'preferred'},
            pci=[clouds.pci_request(policy='preferred')]))
        self.assertEqual([('pci', False, False)], [
            (rule.name, rule.strict, rule.ours) for rule in found.rules])

    def test_interfaces(self):
        spec = clouds.spec(networks=['a', 'b'])
        self.assertEqual(['a', 'b'], [
            nic.network for nic in read(spec).nics])
        self.assertEqual(demand.AUTO_NETWORK,
                         read(clouds.spec()).nics[0].network)
        self.assertEqual((), read(clouds.spec(move=True)).nics)

    def test_security_groups(self):
        spec = clouds.spec()
        spec.security_groups = objects.SecurityGroupList()
        spec.security_groups.objects = [
            objects.SecurityGroup(name='default'),
            objects.SecurityGroup(
                uuid='5f4dcc3b-aa76-4f62-a1d8-3276debb88a1')]
        spec.project_id = 'p'
        found = read(spec)
        self.assertEqual(
            ('default', '5f4dcc3b-aa76-4f62-a1d8-3276debb88a1'),
            found.security_groups)
        self.assertEqual('p', found.project)


class TestTunnel(base.TestCase):
    """Nova says of every move that a tunnel is used."""

    def test_moves(self):
        for networks, physnets, expected in (
                # Each network is on a physical network: it is not true.
                (['a'], ['foo'], (False, False, True)),
                (['a', 'b'], ['foo'], (True, True, False)),
                (['a'], [], (True, True, False))):
            found = read(clouds.spec(
                move=True, networks=networks,
                network=clouds.network(*physnets, tunneled=True)))
            self.assertTrue(found.is_move)
            self.assertEqual(expected, (
                found.tunneled, found.tunnel_uncertain, found.tunnel_untrue))


class TestNote(base.TestCase):
    def setUp(self):
        super().setUp()
        self.spec = clouds.spec('strict')
        self.note = notes.note_of(self.spec)

    def test_one_note(self):
        self.assertIs(self.note, notes.note_of(self.spec))
        self.assertIsNot(self.note, notes.note_of(clouds.spec()))

    def test_read_once(self):
        found = self.note.read(self.spec)
        self.assertIs(found, self.note.read(self.spec))
        self.assertIs(found, self.note.request)

    def test_read_again(self):
        """What has changed is seen, also within the flavor."""
        found = self.note.read(self.spec)
        self.note.limits['x'] = self.note.terms['x'] = 1
        self.spec.flavor.extra_specs['nfv:vswitch_numa_affinity'] = 'prefer'
        other = self.note.read(self.spec)
        self.assertIsNot(found, other)
        self.assertEqual('prefer', other.policy.vswitch)
        self.assertEqual(({}, {}), (self.note.limits, self.note.terms))

    def test_types(self):
        """Only what is of Nova has no type of ours."""
        self.assertEqual([('flavor', ty.Any)], [
            (field.name, field.type)
            for field in dataclasses.fields(notes.RequestNote)
            if 'Any' in str(field.type)])

    def test_pristine(self):
        """The guest as it was, though Nova narrows its pages meanwhile."""
        self.spec.numa_topology.cells[0].pagesize = topology.PAGES_LARGE
        self.note.read(self.spec)
        narrowed = self.spec.numa_topology.obj_clone()
        narrowed.cells[0].pagesize = 2048
        self.spec.numa_topology = narrowed
        found = self.note.read(self.spec)
        self.assertEqual((2048, topology.PAGES_LARGE), (
            found.guest.cells[0].pagesize, found.pristine.cells[0].pagesize))

    def test_pristine_of_another_flavor(self):
        """What was read for the flavor before is forgotten."""
        self.note.read(self.spec)
        self.spec.flavor.extra_specs['hw:numa_nodes'] = '2'
        self.spec.numa_topology = clouds.guest(cells=2)
        self.assertEqual(2, len(self.note.read(self.spec).pristine.cells))

    def test_begin(self):
        """Refusals are those of one server; its index tells it."""
        self.note.begin(0, self.spec)
        self.assertEqual(self.spec.instance_uuid, self.note.instance)
        self.note.rejected.append(('host1', None))
        self.note.begin(0, self.spec)
        self.assertEqual(1, len(self.note.rejected))
        for index in (1, None, None):
            self.note.rejected.append(('host1', None))
            self.note.begin(index, self.spec)
            self.assertEqual([], self.note.rejected)
            self.assertEqual(index, self.note.index)
