# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses

from nfv_sched.fit import occupancy
from nfv_sched.limits import names
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import host_changes
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import small_clouds


def figures(position):
    """Return all that servers change of a host, in any order of pools."""
    return (position.room.host.state, sorted(
        repr(sorted(pool.items())) for pool in position.room.devices.pools),
        position.load, {
            provider.uuid: {name: amount for name, amount
                            in provider.used.items() if amount}
            for provider in position.used.providers.values()})


class TestPosition(base.TestCase):

    def setUp(self):
        super().setUp()
        host = small_clouds.host(
            'one',
            devices=(small_clouds.device(1, 0), small_clouds.device(2, 1)),
            network=snapshot.HostNetwork(vswitch_ports=1, security_rules=1))
        ledger = snapshot.Provider(
            uuid=names.provider_uuid(host.uuid), name='ledger',
            parent=host.uuid, inventories={
                names.PORTS: snapshot.Inventory(total=8, used=1)})
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        state = stack.enter_context(start.started(small_clouds.cloud(
            dataclasses.replace(host, providers=(*host.providers, ledger)),
            nfv_sched={'ledger': 'placement', 'vswitch_ports_per_node': 8})))
        counting = capacity.Counting(state, 1)
        host, = counting.hosts()
        self.position = host_changes.of_host(host, counting.placement)
        self.guest = host_changes.MovableGuest(
            counting.guest(small_clouds.flavor(
                hw__mem_page_size='1GB', memory=2048,
                pci_passthrough__alias='nic:1')))

    def test_put(self):
        after = self.position.put(self.guest, 'a')
        footprint = after.came['a']
        self.assertEqual(occupancy.Amounts(1, 2048, 0, 4), after.load)
        self.assertEqual(1, len(footprint.devices))
        share, = footprint.shares
        self.assertEqual((4, 2), (len(share.cpus), share.pages))
        self.assertEqual(2, after.used.providers[
            names.provider_uuid(self.position.host.root)].used[names.PORTS])

    def test_without_undoes_put(self):
        after = self.position.put(self.guest, 'a')
        self.assertNotEqual(figures(self.position), figures(after))
        both = after.put(self.guest, 'b')
        self.assertIsNone(both.put(self.guest, 'c'))
        self.assertEqual(figures(after), figures(both.without('b')))
        self.assertEqual(
            figures(self.position),
            figures(both.without('a').without('b')))

    def test_a_server_that_was_there(self):
        after = self.position.put(self.guest, 'a')
        without = dataclasses.replace(after, came={}).without(
            'a', after.came['a'])
        self.assertEqual(figures(self.position), figures(without))
        self.assertEqual({'a'}, without.left)
