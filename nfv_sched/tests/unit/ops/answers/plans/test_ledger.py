# SPDX-License-Identifier: Apache-2.0
"""Plans of clouds in which Placement keeps the ledger of ports and rules."""

import dataclasses

from nfv_sched.ledger import reader
from nfv_sched.limits import names
from nfv_sched.ops.answers.explain import explanation
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import failover
from nfv_sched.ops.model.requests import subject
from nfv_sched.ops.simulator import start
from nfv_sched.tests.unit.ops.answers.plans import running

_HEAD = """\
options:
  nfv_sched: {ledger: placement, vswitch_ports_per_node: 6}
hosts:
  - {name: one, cores: 8, memory: 16 GiB}
  - {name: two, cores: 8, memory: 16 GiB}
  - {name: three, cores: 8, memory: 16 GiB}
networks:
  lan: {tunneled: true}
flavors:
  small:
    vcpus: 1
    memory: 256 MiB
    extra_specs: {hw:cpu_policy: dedicated}
"""


class LedgerTest(running.RunningTestCase):
    """Each host has two ports for servers, and each server has one."""

    def setUp(self):
        super().setUp()
        reader.MISSING_LOGGED.clear()
        self.addCleanup(reader.MISSING_LOGGED.clear)

    def cloud_with(self, servers, full=()):
        """A cloud with servers.

        :param servers: ``name host``, each
        :param full: names of hosts with a port in the ledger for nobody
        """
        cloud = self.running(head=_HEAD, steps='\n'.join(
            f'- {{boot: {name}, flavor: small, networks: [lan], '
            f'host: {host}, expect: {{placed: 1}}}}'
            for name, host in map(str.split, servers)))
        return dataclasses.replace(cloud, hosts=tuple([
            self.filled(host) if host.name in full else host
            for host in cloud.hosts]))

    def filled(self, host):
        providers = []
        for provider in host.providers:
            ports = provider.inventories.get(names.PORTS)
            if ports is not None:
                provider = dataclasses.replace(provider, inventories={
                    **provider.inventories,
                    names.PORTS: dataclasses.replace(
                        ports, used=ports.total - ports.reserved)})
            providers.append(provider)
        return dataclasses.replace(host, providers=tuple(providers))

    def assertLedgerIsRead(self):
        self.assertFalse(reader.MISSING_LOGGED.is_set())

    def destinations(self, cloud):
        plan = drain.plan(cloud, 'one')
        self.assertLedgerIsRead()
        return sorted(guest.destination or '' for guest in plan.servers)

    def test_drain(self):
        """A move takes from the ledger of its destination."""
        cloud = self.cloud_with(['a one', 'b one', 'c two'])
        self.assertEqual(['three', 'two'], self.destinations(cloud))

    def test_drain_to_full_ledger(self):
        cloud = self.cloud_with(['a one', 'b one'], full=['two'])
        self.assertEqual(['three', 'three'], self.destinations(cloud))
        cloud = self.cloud_with(['a one', 'b one', 'c three'], full=['two'])
        self.assertEqual(['', 'three'], self.destinations(cloud))

    def test_failover(self):
        cloud = self.cloud_with(['a one', 'b one', 'c three'], full=['two'])
        loss, = failover.check(cloud, ['one']).hosts
        self.assertLedgerIsRead()
        self.assertEqual(1, len(loss.stranded))

    def test_explain(self):
        cloud = self.cloud_with(['a one', 'b one'], full=['two'])
        with start.started(cloud) as state:
            server = subject.server(cloud, state, 'a')
            found = explanation.explain(
                state, server, relax_seconds=0)
        self.assertLedgerIsRead()
        refused = {host.host: [each.filter for each in host.refusals]
                   for host in found.hosts}
        self.assertEqual({'one': [], 'two': ['VSwitchPortLimitFilter'],
                          'three': []}, refused)
