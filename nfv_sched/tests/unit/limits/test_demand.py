# SPDX-License-Identifier: Apache-2.0
"""What a request takes of the network of a node."""

from nfv_sched.limits import demand
from nfv_sched.tests import base
from nfv_sched.tests.unit.limits import snapshots

NIC = demand.RequestedNIC


class DemandTest(base.TestCase):
    """Demands of requests, with an answer of Neutron and without."""

    def of(self, *nics, snapshot=None, vfs=0, pci_nics=0, port_devices=0,
           groups=(), project='p', instance=None, unasked=()):
        interfaces = demand.Interfaces(nics, groups, project, instance)
        interfaces.use(snapshots.Lookups(snapshot, unasked).look_up(
            interfaces.lacking()))
        return demand.of_request(interfaces, vfs, pci_nics, port_devices, 50)

    def test_networks(self):
        """Each network becomes a port with the rules of the request."""
        snapshot = snapshots.snapshot(rules={'web': 3, 'ssh': 2, 'def': 9})
        got = self.of(NIC('a'), NIC('b'), snapshot=snapshot,
                      groups=('web', 'ssh'))
        self.assertEqual(demand.NetworkDemand(
            vswitch_ports=2, rules=10, port_rules=5), got)

    def test_default_group(self):
        """Nova leaves it to Neutron which group ``default`` is."""
        snapshot = snapshots.snapshot(
            rules={'d1': 4, 'd2': 7}, default_groups={'p': 'd1', 'q': 'd2'})
        self.assertEqual(4, self.of(NIC('a'), snapshot=snapshot).rules)
        self.assertEqual(4, self.of(
            NIC('a'), snapshot=snapshot, groups=('default',)).rules)
        self.assertEqual(7, self.of(
            NIC('a'), snapshot=snapshot, groups=('default',),
            project='q').rules)

    def test_no_network(self):
        self.assertEqual(demand.NetworkDemand(), self.of(NIC('none')))

    def test_ports(self):
        """A port has its own groups, whatever the request says."""
        snapshot = snapshots.snapshot(
            [{'id': 'mine', 'host': '', 'groups': ['a', 'b']}],
            rules={'a': 1, 'b': 20, 'c': 300})
        got = self.of(NIC(port='mine'), NIC('n'), snapshot=snapshot,
                      groups=('c',))
        self.assertEqual((2, 321, 300), (
            got.vswitch_ports, got.rules, got.port_rules))

    def test_not_answered(self):
        """Each port has as many rules as a port may have."""
        self.assertEqual(
            demand.NetworkDemand(vswitch_ports=2, rules=100, port_rules=50),
            self.of(NIC('a'), NIC(port='x'),
                    NIC(port='y', pci_request='r'), port_devices=1))

    def test_partly_known(self):
        """What is known counts, however little is assumed of the rest."""
        snapshot = snapshots.snapshot(rules={'few': 3, 'many': 5000})
        for groups, rules in ((('few', 'unasked'), 50),
                              (('many', 'unasked'), 5000)):
            self.assertEqual(rules, self.of(
                NIC('a'), snapshot=snapshot, groups=groups,
                unasked=('unasked',)).rules)

    def test_no_port_security(self):
        """Ports of such networks get no groups, hence no rules."""
        snapshot = snapshots.snapshot(
            rules={'d': 4}, default_groups={'p': 'd'},
            networks={'open': False, 'safe': True})
        self.assertEqual((3, 4), self.of(
            NIC('open'), NIC('safe'), NIC('open'), snapshot=snapshot)[::3])

    def test_accelerators(self):
        """They take no port of the switch, and no PCI device of Nova's."""
        snapshot = snapshots.snapshot([
            {'id': 'cyborg', 'vnic_type': 'accelerator-direct',
             'instance': 'vm'}])
        self.assertEqual(0, self.of(
            NIC(port='young', device_profile='fpga'),
            snapshot=snapshot).vswitch_ports)
        # On a move it is not taken for the port that has the VF.
        self.assertEqual(0, self.of(
            NIC('n', 'cyborg'), NIC('n', 'vf'), snapshot=snapshot, vfs=1,
            port_devices=1, instance='vm').vswitch_ports)

    def test_lacking(self):
        """Only what the request needs is asked for."""
        def lacking(*nics, groups=(), server=None):
            return demand.Interfaces(nics, groups, 'p', server).lacking()

        self.assertFalse(any(lacking(
            NIC('none'), NIC(port='new', pci_request='r'), groups=('a',))))
        self.assertEqual(
            demand.Lacking(('q',), 'vm', ('new',), ('p',), ('n',)),
            lacking(NIC('n'), NIC(port='q'), NIC('n'), NIC('auto'),
                    groups=('new', 'default'), server='vm'))

    def test_beside_the_switch(self):
        """SR-IOV ports take neither ports nor rules of the switch."""
        snapshot = snapshots.snapshot(
            [{'id': 'vf', 'vnic_type': 'direct', 'groups': ['a']},
             {'id': 'cyborg', 'vnic_type': 'accelerator-direct'}],
            rules={'a': 5})
        got = self.of(
            NIC(port='vf', pci_request='r'), NIC(port='cyborg'),
            NIC(port='unknown', pci_request='s'), NIC('n'),
            snapshot=snapshot, vfs=2, port_devices=2, groups=('a',))
        self.assertEqual((1, 2, 5), (got.vswitch_ports, got.vfs, got.rules))

    def test_move_without_snapshot(self):
        """A move does not say which of its ports is beside the switch."""
        got = self.of(NIC('a', 'x'), NIC('a', 'y'), NIC('a', 'z'),
                      port_devices=2, vfs=2)
        self.assertEqual(1, got.vswitch_ports)

    def test_move(self):
        """What Nova's cache names counts, and what Neutron has bound."""
        snapshot = snapshots.snapshot(
            [{'id': 'x', 'instance': 'vm', 'groups': ['a']},
             {'id': 'attached', 'instance': 'vm', 'groups': ['a', 'a2']},
             {'id': 'vf', 'instance': 'vm', 'vnic_type': 'direct'},
             {'id': 'renamed', 'instance': 'other', 'groups': ['a']},
             {'id': 'foreign', 'instance': 'vm', 'project': 'q'},
             {'id': 'unbound', 'instance': 'vm', 'host': ''},
             {'id': 'no guest', 'instance': 'vm', 'owner': 'network:x'}],
            rules={'a': 1, 'a2': 10, 'd': 100}, default_groups={'p': 'd'})
        got = self.of(
            NIC('n', 'x'), NIC('n', 'vf'), NIC('n', 'renamed'),
            NIC('n', 'newest'), snapshot=snapshot, port_devices=1, vfs=1,
            instance='vm')
        self.assertEqual((4, 1 + 11 + 1 + 50), (got.vswitch_ports, got.rules))

    def test_rules_of_a_move_beside_the_switch(self):
        """Ports that only their devices tell of take no rules either."""
        snapshot = snapshots.snapshot(rules={'a': 10})
        got = self.of(NIC('n'), NIC('n'), snapshot=snapshot, vfs=1,
                      port_devices=1, groups=('a',))
        self.assertEqual((1, 10), (got.vswitch_ports, got.rules))
