# SPDX-License-Identifier: Apache-2.0
"""What is free on a host once some of its servers have left."""

import collections
import dataclasses

from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.simulator import start
from nfv_sched.tests import base
from nfv_sched.tests.unit.ops import small_clouds

GONE = 'd0000000-0000-4000-8000-000000000000'


class PoolsTest(base.TestCase):

    def free(self, host, *servers):
        """Return number of free devices by NUMA node, without servers."""
        with start.started(small_clouds.cloud(host)) as state:
            found, = capacity.Counting(state).hosts()
            devices = found.room.devices
            for server in servers:
                devices = devices.give_back(devices.of_server(server))
        counts = collections.Counter({0: 0, 1: 0})
        for pool in devices.pools:
            counts[pool['numa_node']] += pool['count']
        return counts

    def test_pf_of_a_vf_that_is_claimed(self):
        """Nova cannot claim the PF while the server is being built."""
        for vf, pf in (('claimed', 'unclaimable'),
                       ('allocated', 'unavailable')):
            parent = dataclasses.replace(
                small_clouds.device(1, 0, status=pf), kind='type-PF',
                address='0000:01:00.0', tags={})
            host = small_clouds.host('one', devices=(
                parent, small_clouds.device(
                    1, 0, status=vf, server=GONE, parent=parent.address)))
            host = dataclasses.replace(host, devices=tuple(
                dataclasses.replace(device, tags={'address': device.address})
                for device in host.devices))
            self.assertEqual({0: 0, 1: 0}, self.free(host))
            self.assertEqual({0: 2, 1: 0}, self.free(host, GONE))

    def test_capital_addresses(self):
        """Nova names the provider of a card with capitals, devices without."""
        for address in ('0000:af:00.1', '0000:AF:00.1'):
            host = small_clouds.host('one', devices=(dataclasses.replace(
                small_clouds.device(1, 0, parent=address[:-1] + '0'),
                address=address),))
            host = dataclasses.replace(host, providers=(
                *host.providers, dataclasses.replace(
                    host.providers[0], uuid=GONE, name='one_0000:AF:00.0',
                    inventories={}, parent=host.uuid)))
            with start.started(small_clouds.cloud(host)) as state:
                pool, = state.hosts['one'].pci_tracker.stats.pools
            self.assertEqual(GONE, pool['rp_uuid'])

    def test_lost_devices_stay_lost(self):
        host = small_clouds.host('one', devices=(
            small_clouds.device(1, 0, status='removed', server=GONE),
            small_clouds.device(2, 0, status='deleted', server=GONE)))
        self.assertEqual({0: 0, 1: 0}, self.free(host, GONE))
