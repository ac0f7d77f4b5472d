# SPDX-License-Identifier: Apache-2.0
"""``nfv-sched limits show``."""

import dataclasses
import json
import os

import fixtures

from nfv_sched.ledger import names
from nfv_sched.ops.snapshot import file
from nfv_sched.ops.snapshot import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops import small_clouds

CLOUD = snapshots.with_uuids(small_clouds.cloud(
    small_clouds.host('one', small_clouds.node(0), aggregates=('few',),
                      network=snapshot.HostNetwork(
                          vswitch_ports=6, security_rules=7, dhcp_servers=3,
                          routers=1)),
    small_clouds.host('two', small_clouds.node(0)),
    aggregates=(snapshot.Aggregate(
        name='few', hosts=('one',),
        metadata={'vswitch_ports_per_node': '20'}),)))


class LimitsTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'cloud')

    def rows(self, cloud, *args):
        file.save(cloud, self.path)
        code, out, err = self.run_command(
            'limits', 'show', '--from', self.path, '-f', 'json', *args)
        self.assertEqual((0, ''), (code, err))
        return json.loads(out)

    def with_ledger(self, used):
        """Add a ledger of host one, for 14 ports of servers."""
        one, two = CLOUD.hosts
        ledger = snapshot.Provider(
            uuid=names.provider_uuid(one.uuid), name='ledger',
            parent=one.uuid, inventories={names.PORTS: snapshot.Inventory(
                total=16, reserved=2, used=used)})
        return dataclasses.replace(
            CLOUD, options={**CLOUD.options, 'nfv_sched': {
                'ledger': 'placement'}},
            hosts=(dataclasses.replace(
                one, providers=(*one.providers, ledger)), two))

    def test_snapshot(self):
        one, two = self.rows(CLOUD)
        self.assertLess(0, one.pop('Age (s)'))
        self.assertEqual({
            'Host': 'one', 'Ports': 10, 'Port limit': 20, 'Ports free': 10,
            'Rules': 7, 'Rule limit': 16384, 'Rules free': 16377,
            'DHCP servers': 3, 'Routers': 1, 'Services limit': 250,
            'Source': 'neutron', 'Note': None}, one)
        self.assertEqual(
            ('two', None, 254, None, None, None),
            tuple(two[name] for name in (
                'Host', 'Ports', 'Port limit', 'Ports free', 'Source',
                'Age (s)')))

    def test_full(self):
        for percent, hosts in (('50', ['one']), ('51', [])):
            self.assertEqual(hosts, [
                row['Host'] for row in self.rows(CLOUD, '--full', percent)])

    def test_hosts(self):
        self.assertEqual(['two'], [
            row['Host'] for row in self.rows(CLOUD, '--host', 't*')])
        self.assertEqual(['one'], [
            row['Host'] for row in self.rows(CLOUD, '--aggregate', 'few')])

    def test_ledger(self):
        for used, free, note in ((4, 10, None),
                                 (17, -3, '17 ports allocated of 16')):
            row, _two = self.rows(self.with_ledger(used))
            self.assertEqual(
                (10, free, 'neutron, ledger', note),
                tuple(row[name] for name in (
                    'Ports', 'Ports free', 'Source', 'Note')))
