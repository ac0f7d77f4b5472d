# SPDX-License-Identifier: Apache-2.0
"""What the tests of the live test bed have in common.

The bed runs already, NFV_SCHED_LIVE says where.  Guests are booted through the
public API; on which host NUMA nodes they are comes from Nova's API for server
topologies, and which devices they have from its database.  A test starts when
no CPU of the bed is pinned, and deletes what it has made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import functools
import itertools
import json
import os
import typing as ty
import uuid

from openstack import exceptions
import testtools

from nfv_sched.tests.live.bed import bed
from nfv_sched.tests.live.bed import errors

#: Microversion of requests that the tests make without openstacksdk's
#: resources.
MICROVERSION = '2.90'
PLACEMENT_MICROVERSION = '1.38'

PORTS = 'CUSTOM_NFV_VSWITCH_PORT'
RULES = 'CUSTOM_NFV_SECURITY_RULE'

VSWITCH = 'nfv:vswitch_numa_affinity'
PCI = 'nfv:pci_numa_affinity'

#: Hosts of the bed: see bed/cloud.yaml.
LEFT = 'compute-left'
RIGHT = 'compute-right'
BOTH = 'compute-both'
QUAD = 'compute-quad'

#: [nfv_sched] vswitch_physical_ports of the bed.
PHYSICAL_PORTS = 4

NO_VALID_HOST = 'No valid host was found. '

# Seconds.
_BOOT = 120
_PUBLISHED = 60
_MOVE = 90
_IDLE = 60
_PAUSE = 0.25


@functools.cache
def the_bed() -> bed.Bed:
    directory = os.environ.get(bed.VARIABLE)
    if not directory:
        raise RuntimeError(
            f'{bed.VARIABLE} does not say where the live test bed runs: use '
            '"tox -e live", or start one with tools/nfv-sched-live up')
    return bed.Bed(directory)


@functools.cache
def connection(tenant: bool):
    return the_bed().connect(tenant=tenant)


def pinned(**extra_specs: str) -> dict[str, str]:
    return {'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1', **extra_specs}


STRICT = pinned(**{VSWITCH: 'strict'})


class LiveTestCase(testtools.TestCase):
    """A test of the cloud as tenants and administrators see it."""

    def setUp(self):
        super().setUp()
        self.bed = the_bed()
        self.admin = connection(tenant=False)
        self.tenant = connection(tenant=True)
        self._names = itertools.count()
        self._prefix = f'nfv-{uuid.uuid4().hex[:8]}'
        self._servers: list[str] = []
        self.wait_until(self._idle, _IDLE, 'the hosts are empty')
        self.addCleanup(self._delete_servers)

    # The bed

    def wait_until(self, predicate: Callable[[], ty.Any], seconds: float,
                   what: str) -> ty.Any:
        try:
            return self.bed.wait_until(predicate, seconds, what, _PAUSE)
        except errors.BedError as exc:
            self.fail(str(exc))

    @property
    def hosts(self) -> list[str]:
        return sorted(self.bed.hosts)

    def switch_nodes(self, host: str) -> set[int]:
        return set(self.bed.hosts[host].physnets['nfv_vswitch'])

    def pinned_cpus(self, host: str) -> int:
        """How many CPUs of a host are pinned, as its last report has it."""
        row, = self.bed.database(
            'nova', 'SELECT numa_topology FROM compute_nodes '
            'WHERE host = %s AND deleted = 0', (host,))
        cells = json.loads(row['numa_topology'])['nova_object.data']['cells']
        return sum(len(cell['nova_object.data']['pinned_cpus'])
                   for cell in cells)

    def _idle(self) -> bool:
        return not any(self.pinned_cpus(host) for host in self.hosts)

    # Guests

    def name(self) -> str:
        """A name that nothing else has."""
        return f'{self._prefix}-{next(self._names)}'

    def flavor(self, vcpus: int = 2, ram: int = 512, **extra_specs: str):
        """Return a flavor, with RAM in MiB, that goes away with the test."""
        flavor = self.admin.compute.create_flavor(
            name=self.name(), vcpus=vcpus, ram=ram, disk=1)
        self.addCleanup(self.admin.compute.delete_flavor, flavor)
        if extra_specs:
            answer = self.admin.compute.post(
                f'/flavors/{flavor.id}/os-extra_specs',
                json={'extra_specs': extra_specs}, microversion=MICROVERSION)
            self.assertEqual(200, answer.status_code, answer.text)
        return flavor

    def request(self, flavor, networks: ty.Any = 'none', host: str = '',
                cloud=None, **more):
        """Ask for a guest, and wait for nothing.

        :param host: where the filters are asked about no other; makes the
            administrator ask
        :param cloud: a connection; that of the tenant if none is given
        """
        cloud = cloud or (self.admin if host else self.tenant)
        if host:
            more['host'] = host
        server = cloud.compute.create_server(
            name=self.name(), image_id=self._image(), flavor_id=flavor.id,
            networks=networks, **more)
        self._servers.append(server.id)
        return server

    def _image(self) -> str:
        return _image_id()

    def networks(self, ports: int = 1) -> list[dict]:
        return [{'uuid': _network_id()}] * ports

    def show(self, server):
        return self.admin.compute.get_server(server.id)

    def settled(self, server):
        def done():
            shown = self.show(server)
            return shown if shown.status in ('ACTIVE', 'ERROR') else None
        return self.wait_until(done, _BOOT, f'{server.id} is there')

    def boot(self, flavor, **kwargs):
        server = self.settled(self.request(flavor, **kwargs))
        self.assertEqual('ACTIVE', server.status, server.fault)
        return server

    def boot_refused(self, flavor, **kwargs) -> str:
        """Boot a guest that finds none, and return what its owner reads."""
        server = self.settled(self.request(flavor, **kwargs))
        self.assertEqual('ERROR', server.status, server.compute_host)
        owner = self.admin if kwargs.get('host') else self.tenant
        message = owner.compute.get_server(server.id).fault['message']
        self.assertTrue(message.startswith(NO_VALID_HOST), message)
        for host in self.hosts:
            self.assertNotIn(host, message)
        return message

    def delete(self, *servers) -> None:
        self._delete([server.id for server in servers])

    def _delete_servers(self) -> None:
        self._delete(self._servers)

    def _delete(self, ids: Iterable[str]) -> None:
        left = set(ids)
        for server_id in left:
            self.admin.compute.delete_server(server_id)
        self.wait_until(lambda: self._are_gone(left), _BOOT,
                        f'{len(left)} servers are gone')

    def _are_gone(self, ids: set[str]) -> bool:
        return not ids & set(self.servers_of_all())

    def servers_of_all(self) -> list[str]:
        return [server.id for server in self.admin.compute.servers(
            details=False, all_projects=True)]

    # Moves

    def live_migrate(self, server, host: str) -> None:
        """Move a running guest to a host, and wait until it is there.

        And until its old host has given back in Placement what it had there:
        that is the last that Nova does for a move.
        """
        self.admin.compute.live_migrate_server(
            server, host=host, block_migration='auto')
        self.wait_until(
            lambda: self.show(server).compute_host == host, 60,
            f'{server.id} has moved')
        self.wait_for(server, 'ACTIVE')
        self.wait_until(
            lambda: not any(
                self._placement(f'/allocations/{uuid}')['allocations']
                for uuid in self._migrations(server)), _MOVE,
            f'{server.id} has nothing on its old host any more')

    def _migrations(self, server) -> list[str]:
        """The UUIDs of the moves of a guest, those that are over included."""
        answer = self.admin.compute.get(
            '/os-migrations', params={'instance_uuid': server.id},
            microversion=MICROVERSION)
        exceptions.raise_from_response(answer)
        return [each['uuid'] for each in answer.json()['migrations']]

    def wait_for(self, server, status: str):
        """Wait until a guest is in a state and at rest."""
        def done():
            shown = self.show(server)
            if shown.status == 'ERROR' != status:
                self.fail(f'{server.id} is in error: {shown.fault}')
            at_rest = shown.status == status and shown.task_state is None
            return shown if at_rest else None
        return self.wait_until(done, _MOVE, f'{server.id} is {status}')

    # Where they are

    def nodes(self, server) -> list[dict]:
        """Guest NUMA nodes with their host NUMA node and pinned CPUs."""
        answer = self.admin.compute.get(f'/servers/{server.id}/topology',
                                        microversion=MICROVERSION)
        exceptions.raise_from_response(answer)
        return answer.json()['nodes']

    def host_nodes(self, server) -> list[int]:
        return [node['host_node'] for node in self.nodes(server)]

    def assert_strict(self, server) -> None:
        """Every NUMA node of the guest is with the virtual switch."""
        host = self.show(server).compute_host
        nodes = self.host_nodes(server)
        self.assertTrue(nodes)
        self.assertLessEqual(set(nodes), self.switch_nodes(host),
                             f'on NUMA nodes {nodes} of {host}')

    # What the schedulers say

    def workers_that_said(self, text: str,
                          since: Mapping[str, int]) -> set[str]:
        """Return process ids of scheduler workers that have logged a text."""
        return {line.split()[2] for line in self.bed.scheduler_lines(since)
                if text in line}

    # The ledger

    def ledgers(self) -> dict[str, str]:
        answer = self._placement(
            '/resource_providers?required=CUSTOM_NFV_LEDGER')
        return {provider['name'].removesuffix('_nfv_ledger'): provider['uuid']
                for provider in answer['resource_providers']}

    def room(self, resource_class: str) -> dict[str, int]:
        """What guests may allocate on each host: total less reserved."""
        room = {}
        for host, provider in self.ledgers().items():
            inventory = self._placement(
                f'/resource_providers/{provider}/inventories')['inventories']
            entry = inventory[resource_class]
            room[host] = entry['total'] - entry['reserved']
        return room

    def used(self, resource_class: str) -> dict[str, int]:
        return {host: self._placement(f'/resource_providers/{provider}/usages')
                ['usages'].get(resource_class, 0)
                for host, provider in self.ledgers().items()}

    def allocated(self, consumer: str, resource_class: str,
                  host: str | None = None) -> int:
        """Return what a consumer has allocated; with a host, in its ledger."""
        allocations = self._placement(
            f'/allocations/{consumer}')['allocations']
        ledger = self.ledgers()[host] if host else None
        return sum(entry['resources'].get(resource_class, 0)
                   for provider, entry in allocations.items()
                   if ledger in (None, provider))

    def wait_for_room(self, resource_class: str,
                      room: Mapping[str, int]) -> None:
        """Wait until nfv-sched-ledger has published this room, by host."""
        self.wait_until(lambda: self.room(resource_class) == room,
                        _PUBLISHED, f'{resource_class}: room for {room}')

    def limit_ports(self, room: Mapping[str, int]) -> None:
        """Let all hosts take so many ports of guests, and wait for that."""
        for host, count in room.items():
            self.aggregate(
                [host], vswitch_ports_per_node=PHYSICAL_PORTS + count)
        self.wait_for_room(PORTS, room)

    def _placement(self, path: str) -> dict:
        answer = self.admin.placement.get(
            path, microversion=PLACEMENT_MICROVERSION)
        exceptions.raise_from_response(answer)
        return answer.json()

    # Agents of Neutron

    def report_agents(self, agents: Sequence[Mapping]) -> None:
        """Let these agents, and no others, report until the test ends."""
        self.addCleanup(self._forget_agents)
        self.bed.report_agents(agents)
        wanted = {(agent['host'], agent['agent_type']) for agent in agents}
        self.wait_until(
            lambda: {(agent.host, agent.agent_type)
                     for agent in self._agents_alive()} == wanted,
            60, f'{len(wanted)} agents have reported, and no others')

    def _agents_alive(self) -> list:
        return [agent for agent in self.admin.network.agents()
                if agent.is_alive]

    def _forget_agents(self) -> None:
        self.bed.report_agents([])
        self.wait_until(lambda: not self._agents_alive(), 60,
                        'agents are silent')
        for agent in self.admin.network.agents():
            self.admin.network.delete_agent(agent)

    # Aggregates

    def aggregate(self, hosts: Iterable[str], **metadata: ty.Any) -> None:
        compute = self.admin.compute
        aggregate = compute.create_aggregate(name=self.name())
        self.addCleanup(self._delete_aggregate, aggregate)
        for host in hosts:
            compute.add_host_to_aggregate(aggregate, host)
        compute.set_aggregate_metadata(aggregate, {
            key: str(value) for key, value in metadata.items()})

    def _delete_aggregate(self, aggregate) -> None:
        """Delete it; a host that was removed has left it already."""
        compute = self.admin.compute
        for host in compute.get_aggregate(aggregate).hosts or ():
            compute.remove_host_from_aggregate(aggregate, host)
        compute.delete_aggregate(aggregate)


@functools.cache
def _network_id() -> str:
    return connection(tenant=True).network.find_network('tenant').id


@functools.cache
def _image_id() -> str:
    return next(connection(tenant=False).image.images()).id
