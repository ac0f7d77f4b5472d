# SPDX-License-Identifier: Apache-2.0
"""A strict guest stays strict, and its ports are counted once."""

import contextlib

from nfv_sched.tests.live import base

_SERVICE = 60  # seconds until Nova notices that a compute node is down or up


class MovesTest(base.LiveTestCase):

    def boot_strict(self, host: str):
        server = self.boot(self.flavor(**base.STRICT), host=host,
                           networks=self.networks())
        self.assert_strict(server)
        return server

    def assert_moved(self, server, source: str) -> None:
        host = self.show(server).compute_host
        self.assertNotEqual(source, host)
        self.assert_strict(server)
        self.assertEqual(1, self.allocated(server.id, base.PORTS))
        self.wait_until(
            lambda: {name: amount for name, amount
                     in self.used(base.PORTS).items() if amount} == {host: 1},
            30, f'one port is allocated, on {host}')

    @contextlib.contextmanager
    def only(self, *hosts: str):
        services = [service for service in self.admin.compute.services(
            binary='nova-compute') if service.host not in hosts]
        try:
            for service in services:
                self.admin.compute.disable_service(service)
            yield
        finally:
            for service in services:
                self.admin.compute.enable_service(service)

    def test_evacuation(self):
        server = self.boot_strict(base.LEFT)
        compute = self.bed.computes[base.LEFT]
        self.addCleanup(self._back, base.LEFT)
        compute.kill()
        self._wait_for_service(base.LEFT, 'down')
        with self.only(base.LEFT, base.RIGHT):
            self.admin.compute.evacuate_server(server)
            # Since 2.95 an evacuated guest is not started.
            self.wait_for(server, 'SHUTOFF')
        self.assertEqual(base.RIGHT, self.show(server).compute_host)
        self.assertEqual([1], self.host_nodes(server))
        # What it has allocated on the dead host goes when that is back.
        self._back(base.LEFT)
        self.assert_moved(server, base.LEFT)

    def _back(self, host: str) -> None:
        compute = self.bed.computes[host]
        if not compute.alive:
            compute.run()
        self._wait_for_service(host, 'up')

    def _wait_for_service(self, host: str, state: str) -> None:
        def done():
            service, = self.admin.compute.services(
                binary='nova-compute', host=host)
            return service.state == state
        self.wait_until(done, _SERVICE, f'nova-compute of {host} is {state}')
