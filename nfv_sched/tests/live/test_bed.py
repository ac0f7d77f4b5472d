# SPDX-License-Identifier: Apache-2.0
"""The bed itself: what it must never do."""

import ipaddress

import psutil
import testtools

from nfv_sched.tests.live import base


class CommandTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.bed = base.the_bed()

    def test_listens_on_loopback_only(self):
        addresses = {
            (connection.laddr.ip, connection.laddr.port)
            for service in self.bed.services.values() for pid in service.pids
            for connection in psutil.Process(pid).net_connections()
            if connection.status == psutil.CONN_LISTEN}
        self.assertLessEqual(set(self.bed.layout.ports.values()),
                             {port for _, port in addresses})
        for address, port in addresses:
            self.assertTrue(
                ipaddress.ip_address(
                    address.removeprefix('::ffff:')).is_loopback,
                f'{address} {port}')
