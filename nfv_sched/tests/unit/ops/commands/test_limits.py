# SPDX-License-Identifier: Apache-2.0
"""Limits of hosts in ``nfv-sched host list``."""

import dataclasses

from nfv_sched.limits import names
from nfv_sched.ops.cloud import snapshot
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

_COLUMNS = (
    'Host', 'Ports used', 'Ports limit', 'Ports free', 'Rules used',
    'Rules limit', 'Rules free', 'DHCP servers', 'Routers', 'Services limit',
    'Limit sources', 'Limit notes')


class LimitsTest(base.CommandTestCase):

    def rows(self, cloud, *args, told=''):
        code, out, err = self.run_command(
            'host', 'list', *args, '--from', self.save_cloud(cloud), '-f',
            'csv')
        self.assertEqual((0, told), (code, err))
        return self.csv_rows(out)

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
        self.assertEqual({
            'Host': 'one', 'Ports used': 10, 'Ports limit': 20,
            'Ports free': 10, 'Rules used': 7, 'Rules limit': 16384,
            'Rules free': 16377,
            'DHCP servers': 3, 'Routers': 1, 'Services limit': 250,
            'Limit sources': 'neutron', 'Limit notes': ''},
            {name: one[name] for name in _COLUMNS})
        self.assertEqual(
            ['two', '', 254, '', '', 16384, '', '', '', 250, '', ''],
            [two[name] for name in _COLUMNS])

    def test_no_limit(self):
        row, _two = self.rows(dataclasses.replace(CLOUD, options={
            **CLOUD.options, 'nfv_sched': {'security_rules_per_node': 0}}))
        self.assertEqual((7, '', ''), tuple(
            row[name] for name in (
                'Rules used', 'Rules limit', 'Rules free')))

    def test_full(self):
        for percent, hosts, told in (
                ('50', ['one'], ''),
                ('51', [],
                 'no host uses 51 % or more of its ports or rules\n')):
            self.assertEqual(hosts, [row['Host'] for row in self.rows(
                CLOUD, '--full', percent, told=told)])

    def test_ledger(self):
        for used, free, notes in ((4, 10, ''),
                                  (17, '-3', '17 ports allocated of 16')):
            row, _two = self.rows(self.with_ledger(used))
            self.assertEqual(
                (10, free, 'neutron, ledger', notes),
                tuple(row[name] for name in (
                    'Ports used', 'Ports free', 'Limit sources',
                    'Limit notes')))
