# SPDX-License-Identifier: Apache-2.0
"""Plans of generated clouds, carried out by the API.

NFV_SCHED_PLAN_CLOUDS says how many there are of each kind of plan.
"""

from concurrent import futures
import contextlib
import functools
import os
import random
import threading
import time

import fixtures
from nova.compute import resource_tracker
from nova import context
from nova import exception
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client

from nfv_sched.ops.answers.plans import defrag
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import failover
from nfv_sched.ops.answers.plans import rearrange
from nfv_sched.ops.answers.plans import refusals
from nfv_sched.ops.answers.plans import rolling
from nfv_sched.ops.cloud import database
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.model import movable
from nfv_sched.ops.run import moves
from nfv_sched.ops.run import runner
from nfv_sched.ops.run import schedule
from nfv_sched.ops.run import values
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_api
from nfv_sched.tests.functional import test_ledger

CLOUDS = int(os.environ.get('NFV_SCHED_PLAN_CLOUDS', 1))
#: Where the kinds of servers begin; other numbers make other clouds.
SEED = int(os.environ.get('NFV_SCHED_PLAN_SEED', 0))
_GUESTS = 9
#: Lacks that are a plan's own: Nova would make such a move.
_OWN = frozenset({refusals.LackKind.POLICIES})
_LOCKED = movable.ObstacleKind.LOCKED


class CloudsTestCase(base.PCI, test_ledger.LedgerTestCase):
    """Three hosts with servers of all kinds, and what Nova does with them."""

    extra_filters = ['SameHostFilter', 'DifferentHostFilter',
                     *base.WholePluginTestCase.extra_filters,
                     'VSwitchPortLimitFilter', 'SecurityRuleLimitFilter']
    devices = {
        'host1': {'nics': [0, 1], 'port_vfs': [0, 1], 'port_pfs': [1],
                  'port_vdpas': [1, 1]},
        'host2': {'nics': [1], 'port_vfs': [1], 'port_pfs': [0],
                  'port_vdpas': [0], 'port_remotes': [0]},
        'host3': {'nics': [0], 'port_vfs': [0, 0], 'port_remotes': [0, 1]}}
    hosts = tuple(devices)
    #: Of the ports four are physical ones.
    limits = {'vswitch_ports_per_node': 8, 'security_rules_per_node': 0}
    node_cores = 3
    node_threads = 2
    huge_pages = 2

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(runner, 'INTERVAL', 0.1))
        # Each time is told by carry_out().
        for name in ('FREED_SECONDS', 'SYNCED_SECONDS'):
            self.useFixture(fixtures.MockPatchObject(values, name, 0))
        # It wants files of the server.
        self.useFixture(fixtures.MockPatch(
            'nova.virt.libvirt.driver.LibvirtDriver.rescue'))
        self.cinder = self.useFixture(nova_fixtures.CinderFixture(self))
        aggregate = self._create_aggregate('racks', 'west')
        for host in ('host1', 'host2'):
            self.admin_api.add_host_to_aggregate(aggregate, host)
        self.flavors = [
            self.flavor_with({}, vcpus=1, memory_mb=64),
            self.flavor_with(base.pinned(), vcpus=1),
            self.flavor_with(base.pinned(), vcpus=2),
            self.flavor_with(base.pinned(), vcpus=3),
            self.flavor_with(base.pinned(hw__numa_nodes='2'), vcpus=2),
            self.flavor_with({'hw:cpu_policy': 'mixed',
                              'hw:cpu_dedicated_mask': '^0'}, vcpus=3),
            self.flavor(2, nfv__vswitch_numa_affinity='strict'),
            self.flavor(2, nfv__vswitch_numa_affinity='prefer'),
            self.flavor(1, nfv__numa_node_0='1'),
            self.flavor(2, hw__cpu_thread_policy='require'),
            self.flavor(1, hw__cpu_thread_policy='isolate'),
            self.flavor(2, hw__cpu_policy='mixed', nfv__shared_vcpu='0',
                        hw__cpu_dedicated_mask='^0'),
            self.flavor_with(base.pinned(hw__mem_page_size='1GB'), vcpus=1,
                             memory_mb=1024),
            self.pci_flavor('nic:1', 1),
            self.pci_flavor('nic-required:1', 1)]
        self.groups = [self.api.post_server_groups(
            {'name': policy, 'policy': policy})['id'] for policy in (
                'affinity', 'anti-affinity', 'soft-anti-affinity')]
        self.servers = []
        self.volumes = []
        self.made = []

    # -- the cloud

    def start_host(self, name='host1', **kwargs):
        return super().start_host(
            name, physnets={'foo': (0,)}, tunnel=(1,),
            devices=self.devices[name], **kwargs)

    def fill(self, seed, guests=_GUESTS, changes=None):
        """Boot servers, and change some: by these methods, None for all."""
        choose = self.random = random.Random(seed)
        for _ in range(guests):
            self.add(choose)
        for server in self.servers:
            change = choose.choice([None] * 6 + list(
                _CHANGES if changes is None else changes))
            if change is None or self.show(server)['status'] != 'ACTIVE':
                continue
            try:
                change(self, server)
                self.made.append((server['name'], change.__name__))
            except client.OpenStackApiException as exc:
                # Such as a resize for which no host has room.
                self.made.append((server['name'], f'{exc}'))
        self._run_periodics()
        self.publish()
        cloud = database.read(base.CONF)
        self.assertEqual((), cloud.missing)
        return cloud

    def add(self, choose):
        networks = choose.choice((
            'none', 'none', [base.FOO], [base.TUNNELED], [base.FOO, base.BAR],
            [('direct', None)], [('direct', 'preferred')],
            [('direct-physical', None)], [('macvtap', None)],
            [('vdpa', None)], [('remote-managed', None)],
            [('virtio-forwarder', None)]))
        networks = networks if networks == 'none' else [
            self.port(*each) if isinstance(each, tuple) else {'uuid': each}
            for each in networks]
        body = self._build_server(
            image_uuid=base.IMAGE, flavor_id=choose.choice(self.flavors),
            networks=networks)
        zone = choose.choice((None, None, 'west'))
        if zone:
            body['availability_zone'] = zone
        # The fixture has one volume that a server can boot from.
        if choose.random() < 0.1 and not self.volumes:
            self.volumes.append(body['name'])
            body['imageRef'] = ''
            body['block_device_mapping_v2'] = [{
                'boot_index': 0, 'source_type': 'volume',
                'destination_type': 'volume',
                'uuid': self.cinder.IMAGE_BACKED_VOL}]
        hints = {}
        what = choose.random()
        if what < 0.3:
            hints['group'] = choose.choice(self.groups)
        elif what < 0.5 and self.servers:
            hints[choose.choice(('same_host', 'different_host'))] = [
                choose.choice(self.servers)['id']]
        api = self.api
        if 'same_host' not in hints and choose.random() < 0.6:
            body['host'] = choose.choice(
                self.hosts[:2] if zone else self.hosts)
            api = self.admin_api
        server = api.api_post('/servers', {
            'server': body, 'os:scheduler_hints': hints}).body['server']
        self.booted.append(server['id'])
        server = self.wait_for(server, ('ACTIVE', 'ERROR'))
        self.made.append((server['name'], body, hints, server['status'],
                          server['OS-EXT-SRV-ATTR:host']))
        if server['OS-EXT-SRV-ATTR:host']:
            self.servers.append(server)

    # -- states of servers

    def act(self, server, action, *status):
        api = self.admin_api
        api.post_server_action(server['id'], action)
        if status:
            self.wait_for(server, status)

    def paused(self, server):
        self.act(server, {'pause': None}, 'PAUSED')

    def locked(self, server):
        self.act(server, {'lock': None})

    def stopped(self, server):
        self.act(server, {'os-stop': None}, 'SHUTOFF')

    def suspended(self, server):
        self.act(server, {'suspend': None}, 'SUSPENDED')

    def rescued(self, server):
        self.act(server, {'rescue': {}}, 'RESCUE')

    def shelved(self, server):
        self.act(server, {'shelve': None}, 'SHELVED_OFFLOADED')

    def in_error(self, server):
        self.act(server, {'os-resetState': {'state': 'error'}})

    def resized(self, server):
        self.act(server, {'resize': {'flavorRef': self.random.choice(
            self.flavors[:4])}}, 'VERIFY_RESIZE')
        self.has_moved = True

    # -- what the API does

    def idle(self, uuid, seconds=30.0):
        deadline = time.monotonic() + seconds
        while True:
            server = self.admin_api.get_server(uuid)
            if server['OS-EXT-STS:task_state'] is None:
                return server
            if time.monotonic() > deadline:
                self.fail(f'{server["name"]} is busy')
            time.sleep(0.05)

    def make(self, uuid, kind, host=None):
        """Move a server; returns why the API refuses it, or None."""
        action = {
            movable.LIVE: {'os-migrateLive': {
                'host': host, 'block_migration': 'auto'}},
            movable.COLD: {'migrate': {'host': host} if host else None},
            movable.EVACUATE: {'evacuate': {}}}[kind]
        before = self.admin_api.get_server(uuid)['OS-EXT-SRV-ATTR:host']
        self.has_moved = True
        try:
            self.admin_api.post_server_action(uuid, action)
        except client.OpenStackApiException as exc:
            return str(exc)
        server = self.idle(uuid)
        after = server['OS-EXT-SRV-ATTR:host']
        if after == before:
            return f'it is {server["status"]} on {after}'
        if server['status'] == 'VERIFY_RESIZE':
            self.admin_api.post_server_action(uuid, {'confirmResize': None})
            self.wait_for(server, ('ACTIVE', 'SHUTOFF'))
        self._run_periodics()
        return None

    def synchronize(self):
        """Tell nova-scheduler which servers are on which host.

        Nova does, each ``scheduler_instance_sync_interval``.
        """
        for compute in self.computes.values():
            compute.manager._sync_scheduler_instance_info(
                context.get_admin_context())

    def carry_out(self, plan, fails=False):
        """Carry out a plan as ``plan run`` does.

        :param fails: whether the first claim of an evacuation fails
        """
        self.has_moved = True
        failures = [exception.ComputeResourcesUnavailable(
            reason='taken')] * fails
        claim = resource_tracker.ResourceTracker.rebuild_claim

        def claim_or_fail(*args, **kwargs):
            if failures:
                raise failures.pop()
            return claim(*args, **kwargs)

        self.useFixture(fixtures.MockPatchObject(
            resource_tracker.ResourceTracker, 'rebuild_claim', claim_or_fail))

        def say(text):
            self.made.append(text)
            if ': done' in text:
                # What hosts do each minute.
                self._run_periodics()
                self.synchronize()

        with contextlib.closing(runner.MoveJournal(os.path.join(
                self.useFixture(fixtures.TempDir()).path, 'journal'),
                'plan')) as journal:
            run_ = runner.PlanRun(test_api.connect(self.admin_api), plan,
                                  journal, most=4, timeout=60.0, say=say)
            self.assertEqual([], list(run_.problems()), self.made)
            run_.run()
            if fails:
                # The others went on, but for those that filters compare with
                # the one that failed.
                failed, = [move for move in run_.left()
                           if 'taken' in run_.failed[move.number]]
                for move in run_.left():
                    self.assertIn(failed.id, (move.id, *move.related))
                return
            self.assertEqual([], run_.left(), self.made)
        for move in plan.moves:
            server = self.admin_api.get_server(move.id)
            self.assertEqual(
                (move.destination or None, None), (
                    server['OS-EXT-SRV-ATTR:host'],
                    server['OS-EXT-STS:task_state']))
            self.assertNotIn(server['status'], ('ERROR', 'VERIFY_RESIZE'))

    def assertStays(self, guest):
        """The API refuses every move of a guest."""
        server = self.admin_api.get_server(guest.server_id)
        if {lack.kind for lack in guest.lacks} & _OWN or (
                guest.obstacle and guest.obstacle.kind == _LOCKED):
            return
        for kind in (movable.LIVE, movable.COLD):
            if guest.lacks and kind == movable.COLD and (
                    server['status'] == 'ACTIVE'):
                continue  # it would go to the same hosts
            why = self.make(guest.server_id, kind)
            self.assertIsNotNone(why, (guest, kind, self.made))

    def drain(self, seed):
        shelve = seed % 4 > 1
        # NOTE: Nova's fixture of libvirt cannot remove a suspended server.
        cloud = self.fill(seed, changes=[
            each for each in _CHANGES if not shelve
            or each is not CloudsTestCase.suspended])
        # The fullest one.
        host = max(self.hosts, key=lambda name: sum(
            server.host == name for server in cloud.servers))
        plan = drain.plan(cloud, host, document.DrainOptions(
            make_room=seed % 2 == 1, relax=False, shelve=shelve))
        self.addDetail('plan', base.content.text_content(repr(plan)))
        self.carry_out(plan_file.moves_of(plan))
        if plan.exact and not plan.failed:
            for guest in plan.staying:
                self.assertStays(guest)

    def rolling(self, seed):
        """Empty all hosts, each of which comes back after its round."""
        # With more servers, no host can be emptied.
        cloud = self.fill(seed, 4, (CloudsTestCase.paused,
                                    CloudsTestCase.stopped))
        plan = rolling.plan(cloud, self.hosts)
        self.addDetail('plan', base.content.text_content(repr(plan)))
        for number, of_round in enumerate(plan.rounds, 1):
            self.carry_out(plan_file.moves_of(plan, number))
            for each in of_round.hosts:
                self.assertEqual([], self.admin_api.api_get(
                    f'/servers/detail?host={each.host}').body['servers'])
                self.admin_api.put_service(
                    self.computes[each.host].service_ref.uuid,
                    {'status': 'enabled'})

    def failover(self, seed):
        cloud = self.fill(seed)
        host = max(self.hosts, key=lambda name: sum(
            server.host == name for server in cloud.servers))
        listed = [server['id'] for server in self.admin_api.api_get(
            f'/servers/detail?host={host}').body['servers']]
        self.assertEqual(listed, [
            server.uuid for server in failover.listed(cloud.servers)
            if server.host == host])
        loss, = failover.check(cloud, [host]).hosts
        self.addDetail('loss', base.content.text_content(repr(loss)))
        stranded = {guest.server_id: guest for guest in loss.stranded}
        self.fail_host(host)
        evacuated = 0
        for uuid in listed:
            why = self.make(uuid, movable.EVACUATE)
            evacuated += why is None
            self.assertEqual(uuid in stranded, why is not None,
                             (uuid, stranded.get(uuid), why, self.made))
        self.assertEqual(loss.evacuable, evacuated)

    def evacuation(self, seed):
        """The fullest host is lost, or two; a destination fails once."""
        cloud = self.fill(seed)
        hosts = sorted(self.hosts, key=lambda name: -sum(
            server.host == name for server in cloud.servers))[:1 + seed % 2]
        plan = drain.evacuate(cloud, hosts)
        self.addDetail('plan', base.content.text_content(repr(plan)))
        if plan.moves:
            self.assertIn(
                'is up: Nova evacuates only from hosts that are down',
                ''.join(moves.problems(
                    test_api.connect(self.admin_api), plan.moves)))
        for host in hosts:
            self.fail_host(host)
        if seed % 3 == 0 and plan.moves:
            self.carry_out(plan_file.moves_of(plan), fails=True)
            plan = drain.evacuate(database.read(base.CONF), hosts)
        self.carry_out(plan_file.moves_of(plan))
        for each in plan.servers:
            if each.how is None:
                # For want of a host, or by Nova's API.
                self.assertIsNotNone(
                    self.make(each.server_id, movable.EVACUATE),
                    (each, self.made))

    def defrag(self, seed):
        cloud = self.fill(seed)
        number = self.flavors[2 + seed % 2]
        flavor = next(each for each in cloud.flavors if each.id == number)
        now = defrag.plan(cloud, flavor, 1)
        plan = defrag.plan(cloud, flavor, now.fits_before + 1)
        self.addDetail('plan', base.content.text_content(repr(plan)))
        self.carry_out(plan_file.moves_of(plan))
        if plan.enough:
            for _ in range(plan.wanted):
                self.boot(number)

    def rearrange(self, spread, seed):
        """Once the plan is carried out, the cloud is as it has said."""
        cloud = self.fill(seed, _GUESTS if spread else 4)
        options = document.RearrangeOptions(
            spread=spread, max_moves=5, avoid=(), points=1 if spread else None)
        plan = rearrange.plan(cloud, options)
        self.addDetail('plan', base.content.text_content(repr(plan)))
        self.carry_out(plan_file.moves_of(plan))
        self.assertEqual(plan.after, rearrange.plan(
            database.read(base.CONF), options).before)

    spread = functools.partialmethod(rearrange, True)
    consolidate = functools.partialmethod(rearrange, False)


_CHANGES = (CloudsTestCase.paused, CloudsTestCase.locked,
            CloudsTestCase.stopped, CloudsTestCase.suspended,
            CloudsTestCase.rescued, CloudsTestCase.shelved,
            CloudsTestCase.in_error, CloudsTestCase.resized)

# stestr runs a class in one process; these fill two equally.
for _kind in ('drain', 'rolling', 'failover', 'evacuation', 'defrag', 'spread',
              'consolidate'):
    for _part in range(2):
        _name = f'{_kind.title()}{_part}Test'
        globals()[_name] = type(_name, (CloudsTestCase,), {
            f'test_{_kind}_{_number:03}': functools.partialmethod(
                getattr(CloudsTestCase, _kind), SEED + _number)
            for _number in range(_part, CLOUDS, 2)})


class NodesTest(CloudsTestCase):

    def test_at_once(self):
        """Both moves are scheduled before either is claimed."""
        for node in '01':
            self.boot(self.flavor(2, nfv__numa_node_0=node), host='host1',
                      networks='none')
        moves = drain.evacuate(
            database.read(base.CONF), ['host1', 'host3']).moves
        self.assertFalse(schedule.depends(*moves))
        self.fail_host('host1')
        self.fail_host('host3')
        claim = resource_tracker.ResourceTracker.rebuild_claim
        scheduled = threading.Barrier(2, timeout=60)

        def claim_together(*args, **kwargs):
            scheduled.wait()
            return claim(*args, **kwargs)

        self.useFixture(fixtures.MockPatchObject(
            resource_tracker.ResourceTracker, 'rebuild_claim', claim_together))
        with futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda move: self.admin_api.post_server_action(
                move.id, {'evacuate': {'host': 'host2'}}), moves))
        for move in moves:
            self.assertEqual('host2', self.host(self.idle(move.id)))
