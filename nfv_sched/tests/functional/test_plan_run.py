# SPDX-License-Identifier: Apache-2.0
"""Plans carried out on a running Nova as ``plan run`` does it."""

import contextlib
import io
import os
from unittest import mock

import fixtures
from nova import exception
from nova import objects
from nova.virt.libvirt import driver
import requests

from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.plans import drain
from nfv_sched.ops.answers.plans import rolling
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import database
from nfv_sched.ops.commands import plan_file
from nfv_sched.ops.commands import source
from nfv_sched.ops.run import moves
from nfv_sched.ops.run import runner
from nfv_sched.ops.run import values
from nfv_sched.tests import functional
from nfv_sched.tests.functional import base
from nfv_sched.tests.functional import test_api
from nfv_sched.tests.functional import test_snapshot


class Killed(BaseException):
    """In place of the end of the process."""


def kill(response):
    raise Killed


def broken(response):
    response.status_code = 500


def cut_off(response):
    raise requests.exceptions.ConnectionError('cut off')


class Output(io.StringIO):
    """Standard output that is looked at while it is written."""

    def __init__(self, say):
        super().__init__()
        self.say = say

    def write(self, text):
        self.say(text)
        return super().write(text)


class PlanRunTestCase(test_snapshot.SnapshotTestCase):
    """A host with servers that migrate live and cold, and two others."""

    devices = {'host1': {'nics': [0, 1]}, 'host2': {'nics': [0]},
               'host3': {'nics': [0, 1]}}
    node_threads = 1
    huge_pages = 0

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(moves, 'GRACE', 2.0))
        self.useFixture(fixtures.MockPatchObject(runner, 'INTERVAL', 0.1))
        self.useFixture(fixtures.MockPatchObject(values, 'FREED_SECONDS', 0))
        self.connection = test_api.connect(self.admin_api)
        self.posts = []
        self.after = {}
        self.record_requests()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.said = []
        self.when_said = {}

    def record_requests(self):
        """Note the actions, and let what is in ``after`` happen then."""
        adapter = self.connection.session.session.get_adapter('http://')
        send = adapter.send

        def recording(request, **kwargs):
            response = send(request, **kwargs)
            if request.method == 'POST':
                self.posts.append(request.body)
                for word, happen in list(self.after.items()):
                    if word in self.posts[-1]:
                        del self.after[word]
                        happen(response)
            return response

        self.useFixture(fixtures.MockPatchObject(adapter, 'send', recording))

    def planned(self, host='host1', shelve=False):
        """Save the plan of ``host drain``, and read it again."""
        cloud = self.read()
        path = self.path = os.path.join(self.folder, 'plan.json')
        with open(path, 'w') as file:
            file.write(documents.Document(drain.plan(
                cloud, host, document.DrainOptions(
                    make_room=False, relax=False, shelve=shelve),
            )).text('json'))
        saved = plan_file.read(path)
        self.plan, self.digest = saved.plan, saved.digest
        return self.plan

    def say(self, text):
        self.said.append(text)
        for word, happen in list(self.when_said.items()):
            if word in text:
                del self.when_said[word]
                happen()

    @contextlib.contextmanager
    def begun(self, most=4, timeout=60.0):
        """The run of the plan, with its journal, in ``run_``."""
        with contextlib.closing(runner.MoveJournal(
                os.path.join(self.folder, 'journal'), self.digest)) as journal:
            self.run_ = runner.PlanRun(
                self.connection, self.plan, journal, most=most,
                timeout=timeout, say=self.say)
            yield

    def carry_out(self, **options):
        self.has_moved = True
        with self.begun(**options):
            self.wrong = list(self.run_.problems())
            if not self.wrong:
                self.run_.run()
        return [move.name for move in self.run_.left()]

    def enable(self):
        with self.begun():
            self.run_.enable()

    def assertMoved(self):
        for move in self.plan.moves:
            server = self.admin_api.get_server(move.id)
            self.assertEqual(
                (move.destination, 'ACTIVE', None), (
                    server['OS-EXT-SRV-ATTR:host'], server['status'],
                    server['OS-EXT-STS:task_state']))
        self.assertEqual({'completed', 'confirmed'}, {
            each['status'] for each in self.admin_api.get_migrations()})

    def boot_three(self):
        """Two that migrate live, one that migrates cold."""
        plain = self.flavor_with(base.pinned(), vcpus=1)
        return [self.boot(plain, host='host1', networks='none'),
                self.boot(self.pci_flavor('nic:1', 1), host='host1',
                          networks='none'),
                self.boot(plain, host='host1', networks='none')]


class PlanRunTest(PlanRunTestCase):

    def test_drain(self):
        self.boot_three()
        plan = self.planned()
        self.assertEqual(['cold', 'live', 'live'], sorted(
            move.kind for move in plan.moves))
        self.assertEqual([], self.carry_out())
        self.assertMoved()
        service, = self.admin_api.get_services(
            host='host1', binary='nova-compute')
        self.assertEqual(('disabled', values.REASON), (
            service['status'], service['disabled_reason']))
        self.enable()
        service, = self.admin_api.get_services(
            host='host1', binary='nova-compute')
        self.assertEqual('enabled', service['status'])
        # The same command again has nothing to do.
        number = len(self.posts)
        self.assertEqual([], self.carry_out())
        self.assertEqual(number, len(self.posts))

    def test_changed(self):
        """A server that is not as planned keeps all from being moved."""
        first, _second, third = self.boot_three()
        self.planned()
        self.admin_api.post_server_action(first['id'], {'lock': None})
        self.carry_out()
        self.assertEqual(1, len(self.wrong))
        self.assertIn(f'{first["name"]} is locked', self.wrong[0])
        self.admin_api.post_server_action(first['id'], {'unlock': None})
        self.live_migrate(third)
        self.admin_api.delete_server(first['id'])
        self._wait_until_deleted(first)
        self.carry_out()
        self.assertEqual([], self.posts)
        self.assertIn('has been deleted', ''.join(self.wrong))

    def test_unanswered(self):
        """Nova does as told, and its API fails nevertheless."""
        self.boot_three()
        self.planned()
        self.after = {'os-migrateLive': broken, '"migrate"': cut_off,
                      'confirmResize': cut_off}
        self.assertEqual([], self.carry_out())
        self.assertEqual({}, self.after)
        self.assertMoved()
        for word, number in (('os-migrateLive', 2), ('"migrate"', 1)):
            self.assertEqual(number, sum(word in body for body in self.posts))


class ShelveTest(PlanRunTestCase):
    """A server that is moved, and one that no move takes off the host."""

    def setUp(self):
        super().setUp()
        self.moved = self.boot(self.flavor_with(base.pinned(), vcpus=1),
                               host='host1', networks='none')
        # All NICs of the other hosts are taken.
        self.server, *_others = [
            self.boot(self.pci_flavor('nic:1', 1), host=host, networks='none')
            for host in ('host1', 'host2', 'host3', 'host3')]

    def shelve(self):
        plan = self.planned(shelve=True)
        self.assertEqual(['live', 'shelve'],
                         [move.kind for move in plan.moves])
        return plan.moves[-1]

    def assertShelved(self):
        """It is on no host, and holds nothing; then it starts again."""
        server = self.admin_api.get_server(self.server['id'])
        self.assertEqual(
            ('SHELVED_OFFLOADED', None, None), (
                server['status'], server['OS-EXT-SRV-ATTR:host'],
                server['OS-EXT-STS:task_state']))
        self.assertEqual({}, self._get_allocations_by_server_uuid(
            server['id']))
        self.assertEqual([], self.admin_api.api_get(
            '/servers/detail?host=host1').body['servers'])
        self.assertEqual([(server['id'], server['name'])],
                         list(self.run_.shelved()))
        self.assertEqual({self.moved['id']}, self.run_.moved())
        self.enable()
        self.admin_api.post_server_action(server['id'], {'unshelve': None})
        self.wait_for(server, ('ACTIVE',))
        self.assertEqual('host1', self.host(server))
        self.assertEqual([], list(self.run_.shelved()))

    def actions(self):
        return [word for body in self.posts for word in (
            'shelveOffload', '"shelve"', 'os-migrateLive') if word in body]

    def test_shelve(self):
        self.shelve()
        self.assertEqual([], self.carry_out())
        self.assertEqual(['os-migrateLive', '"shelve"'], self.actions())
        self.assertShelved()

    def test_not_offloaded(self):
        """Nova would leave it on its host."""
        self.flags(shelved_offload_time=-1)
        self.shelve()
        self.assertEqual([], self.carry_out())
        self.assertEqual(['os-migrateLive', '"shelve"', 'shelveOffload'],
                         self.actions())
        self.assertShelved()

    def test_shelved_before(self):
        self.flags(shelved_offload_time=-1)
        self.admin_api.post_server_action(self.server['id'], {'shelve': None})
        self.wait_for(self.server, ('SHELVED',))
        self.shelve()
        self.assertEqual([], self.carry_out())
        self.assertEqual(['os-migrateLive', 'shelveOffload'], self.actions())
        self.assertShelved()

    def test_image_fails(self):
        move = self.shelve()
        # A mock of Nova's fixtures.
        snapshot = driver.LibvirtDriver.snapshot
        snapshot.side_effect = exception.MigrationError(reason='no image')
        self.assertEqual([move.name], self.carry_out())
        snapshot.side_effect = None
        self.assertIn('no image', self.run_.failed[move.number])
        self.assertIn('it is ACTIVE on host1, and may have been stopped',
                      self.run_.failed[move.number])
        self.assertEqual([], self.carry_out())
        self.assertShelved()

    def test_offloading_fails(self):
        move = self.shelve()
        with mock.patch.object(
                driver.LibvirtDriver, 'destroy',
                side_effect=exception.MigrationError(reason='no way')):
            self.assertEqual([move.name], self.carry_out())
        self.assertIn('no way', self.run_.failed[move.number])
        self.assertIn('it is SHELVED on host1', self.run_.failed[move.number])
        self.assertEqual([], self.carry_out())
        self.assertShelved()

    def test_locked(self):
        move = self.shelve()
        self.when_said[f'1/2 {self.plan.moves[0]}: done'] = lambda: (
            self.admin_api.post_server_action(move.id, {'lock': None}))
        self.assertEqual([move.name], self.carry_out())
        self.assertEqual({move.number: 'is locked'}, self.run_.failed)
        self.assertEqual(['os-migrateLive'], self.actions())
        # Now it is known when the plan is made.
        self.assertEqual([], list(self.planned(shelve=True).moves))

    def test_unanswered(self):
        self.flags(shelved_offload_time=-1)
        self.shelve()
        self.after = {'"shelve"': cut_off, 'shelveOffload': broken}
        self.assertEqual([], self.carry_out())
        self.assertEqual({}, self.after)
        self.assertEqual(['os-migrateLive', '"shelve"', 'shelveOffload'],
                         self.actions())
        self.assertShelved()

    def test_killed(self):
        """After each request, whose answer is not seen."""
        self.flags(shelved_offload_time=-1)
        self.shelve()
        self.after = dict.fromkeys(('"shelve"', 'shelveOffload'), kill)
        for _ in range(2):
            self.assertRaises(Killed, self.carry_out)
        self.assertEqual([], self.carry_out())
        self.assertEqual(['os-migrateLive', '"shelve"', 'shelveOffload'],
                         self.actions())
        self.assertShelved()


class ReplanTestCase(PlanRunTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(
            cli_base.NFVSched, 'configure_logging'))
        self.useFixture(fixtures.MockPatch(
            'openstack.connect', lambda cloud: self.connection))
        self.useFixture(fixtures.MockPatchObject(
            source, 'reader',
            lambda arguments: lambda: database.read(base.CONF)))

    def command(self, *args, replan=2):
        self.has_moved = True
        err = io.StringIO()
        with contextlib.redirect_stdout(Output(self.say)) as out, (
                contextlib.redirect_stderr(err)):
            code = cli_base.main([
                'plan', 'run', self.path, '--yes', '--parallel', '1',
                '--replan', str(replan), *args])
        return code, out.getvalue(), err.getvalue()

    def failing_once(self):
        """Have the next destination fail to prepare for a live migration."""
        prepare = driver.LibvirtDriver.pre_live_migration
        failures = [exception.MigrationError(reason='no disk')]

        def once(*args, **kwargs):
            if failures:
                raise failures.pop()
            return prepare(*args, **kwargs)

        return mock.patch.object(
            driver.LibvirtDriver, 'pre_live_migration', once)


class ReplanTest(ReplanTestCase):
    def setUp(self):
        super().setUp()
        self.boot_three()
        self.planned()

    def goes_on(self, code=0):
        found, out, err = self.command()
        self.addDetail('output', base.content.text_content(out + err))
        self.assertEqual(code, found)
        self.assertEqual(1, out.count('The rest is planned anew.'))
        if not code:
            self.assertIn('Checked: the strict policies', out)
        self.assertSound()
        return out, err

    def test_policy(self):
        """A strict policy that is not kept on the destination."""
        server = self.boot(self.flavor(1, nfv__vswitch_numa_affinity='strict'),
                           host='host1')
        self.planned()
        code, out, err = self.command(replan=1)
        self.assertEqual((0, ''), (code, err), out)
        instance = objects.Instance.get_by_uuid(
            self.cell_context(), server['id'], expected_attrs=[
                'numa_topology'])
        topology = instance.numa_topology
        cell, = topology.cells
        cell.id = 1 - cell.id
        cell.cpu_pinning = {0: base.PINNED_CPUS_PER_NODE + 1}
        instance.numa_topology = topology
        instance.save()
        code, out, err = self.command(replan=1)
        self.assertEqual(3, code, out)
        self.assertIn(f'error: {server["name"]} ({server["id"]}) on ', err)
        self.assertIn('nfv:vswitch_numa_affinity=strict', err)

    def kind(self, kind):
        return next(move for move in self.plan.moves if move.kind == kind)

    def assertSound(self, staying=()):
        """Assert that servers are on one host, and only there in Placement."""
        servers = self.admin_api.get_servers()
        for server in servers:
            host = server['OS-EXT-SRV-ATTR:host']
            self.assertEqual(server['id'] in staying, host == 'host1')
            self.assertIsNone(server['OS-EXT-STS:task_state'])
            allocations = self._get_allocations_by_server_uuid(server['id'])
            root = self._get_provider_uuid_by_host(host)
            self.assertEqual({root}, {
                self.placement.get(
                    f'/resource_providers/{uuid}', version='1.14').body[
                        'root_provider_uuid'] for uuid in allocations})
        self.assertEqual(set(), {
            each['status'] for each in self.admin_api.get_migrations()} - {
            'completed', 'confirmed', 'error', 'failed'})

    def test_no_valid_host(self):
        """Somebody else takes the room."""
        last = self.plan.moves[-1]
        one = self.flavor_with(base.pinned(), vcpus=1)

        def fill():
            for _ in range(base.PINNED_CPUS_PER_NODE * 2):
                server = self.boot(one, host=last.destination,
                                   expect=('ACTIVE', 'ERROR'))
                if server['status'] == 'ERROR':
                    self.delete_all([server['id']])
                    return

        self.when_said[f'{last.number}/3 {last}: '] = fill
        out, err = self.goes_on()
        self.assertIn('No valid host', out)

    def test_driver_fails_before(self):
        """The destination cannot prepare for a live migration."""
        with self.failing_once():
            out, _err = self.goes_on()
        self.assertIn('no disk', out)

    def test_driver_fails_live(self):
        """A server that Nova leaves in error is not moved again."""
        live = self.kind('live')
        migrate = driver.LibvirtDriver._live_migration_operation

        def fail(driver_, context, instance, *args):
            if instance.uuid != live.id:
                return migrate(driver_, context, instance, *args)
            # What up to Nova 33 is all that the driver sees.
            self.fail_job('host1', instance.uuid)
            raise exception.MigrationError(reason='no route')

        with mock.patch.object(
                driver.LibvirtDriver, '_live_migration_operation', fail):
            code, out, err = self.command()
        self.assertEqual(3, code, out + err)
        if functional.NOVA > 31:
            self.assertIn(f'{live} ({live.id}) stays on host1', err)
        self.assertSound([live.id])

    def test_driver_fails_before_cold(self):
        """The source cannot send a disk: Nova leaves the server in error."""
        cold = self.kind('cold')

        def fail(*args, **kwargs):
            raise exception.MigrationError(reason='no space')

        with mock.patch.object(
                driver.LibvirtDriver, 'migrate_disk_and_power_off', fail):
            code, out, err = self.command()
        self.assertEqual(3, code, out + err)
        self.assertIn('no space', out)
        self.assertIn(f'error: {cold} ({cold.id}) is ERROR on host1', err)
        self.assertSound([cold.id])

    def test_driver_fails_after_live(self):
        """The destination cannot end a live migration."""
        live = self.kind('live')
        end = driver.LibvirtDriver.post_live_migration_at_destination

        def fail(driver_, context, instance, *args, **kwargs):
            if instance.uuid == live.id:
                raise exception.MigrationError(reason='no plug')
            return end(driver_, context, instance, *args, **kwargs)

        with mock.patch.object(
                driver.LibvirtDriver, 'post_live_migration_at_destination',
                fail):
            _out, err = self.goes_on(code=3)
        self.assertIn(f'error: {live} ({live.id}) is ERROR on host2', err)

    def test_driver_fails_after(self):
        """A server that is in error on its destination is named."""
        cold = self.kind('cold')
        with mock.patch.object(
                driver.LibvirtDriver, 'finish_migration',
                side_effect=exception.MigrationError(reason='no image')):
            out, err = self.goes_on(code=3)
        self.assertIn(f'error: {cold} ({cold.id}) is ERROR on ', err)

    def test_api_fails(self):
        adapter = self.connection.session.session.get_adapter('http://')
        send = adapter.send
        broken = [503, None]

        def failing(request, **kwargs):
            if request.method == 'POST' and broken:
                status = broken.pop()
                if status is None:
                    raise requests.exceptions.Timeout('too late')
                response = requests.Response()
                response.url, response.status_code = request.url, status
                response.raw = io.BytesIO()
                return response
            return send(request, **kwargs)

        with mock.patch.object(adapter, 'send', failing):
            code, out, err = self.command()
        self.assertEqual(0, code, out + err)
        self.assertEqual(2, out.count('The rest is planned anew.'))
        self.assertSound()

    def meanwhile(self, change):
        """Change the second server when the first has been moved."""
        first, second, _third = self.plan.moves
        self.when_said[f'1/3 {first}: done'] = lambda: change(second.id)

    def test_deleted(self):
        def delete(uuid):
            self.delete_all([uuid])

        self.meanwhile(delete)
        out, _err = self.goes_on()
        self.assertIn('has been deleted', out)

    def test_locked(self):
        self.meanwhile(lambda uuid: self.admin_api.post_server_action(
            uuid, {'lock': None}))
        code, out, err = self.command()
        second = self.plan.moves[1]
        self.assertEqual(3, code, out + err)
        self.assertEqual(
            f'error: {second} ({second.id}) stays on host1\n', err)
        self.assertSound([second.id])
        # Now it is known when the plan is made.
        self.assertNotIn(second.id, [
            move.id for move in self.planned().moves])

    def test_moved(self):
        def move(uuid):
            hosts = {'host2', 'host3'} - {self.plan.moves[1].destination}
            self.cold_migrate({'id': uuid}, hosts.pop())
            self.admin_api.post_server_action(uuid, {'confirmResize': None})
            self._wait_for_state_change({'id': uuid}, 'ACTIVE')

        self.meanwhile(move)
        out, _err = self.goes_on()
        self.assertRegex(out, 'is .* on host[23], not on host1')

    def test_killed(self):
        """After each request, whose answer is not seen."""
        self.after = dict.fromkeys(
            ('os-migrateLive', '"migrate"', 'confirmResize'), kill)
        for _ in range(3):
            self.assertRaises(Killed, self.command)
        code, out, err = self.command()
        self.assertEqual(0, code, out + err)
        self.assertSound()


class ReplanRoundsTest(ReplanTestCase):
    """``host1`` and ``host2`` are emptied one after the other."""

    def setUp(self):
        super().setUp()
        self.boot_three()
        self.boot(self.flavor_with(base.pinned(), vcpus=1), host='host2',
                  networks='none')
        cloud = self.read()
        self.path = os.path.join(self.folder, 'plan.json')
        with open(self.path, 'w') as file:
            file.write(documents.Document(rolling.plan(
                cloud, ['host1', 'host2'])).text('json'))
        self.assertEqual({1: ['host2'], 2: ['host1']}, self.rounds())

    def rounds(self):
        plan = plan_file.read(self.path).document
        return {each.round: [host.host for host in each.hosts]
                for each in plan.rounds}

    def assertEmptied(self, out, number, host, next_text):
        """Assert that a host is empty and disabled, and no other is."""
        self.assertEqual(number, out.count('The rest is planned anew.'), out)
        self.assertEqual(next_text, out.partition('--round ')[2][:1])
        self.assertIn('Checked: the strict policies', out)
        self.assertEqual([], self.admin_api.api_get(
            f'/servers/detail?host={host}').body['servers'])
        self.assertEqual([host], [
            each['host'] for each in self.admin_api.get_services(
                binary='nova-compute') if each['status'] == 'disabled'])
        for server in self.admin_api.get_servers():
            self.assertEqual(('ACTIVE', None), (
                server['status'], server['OS-EXT-STS:task_state']))

    def enable(self, host):
        self.admin_api.put_service(
            self.computes[host].service_ref.uuid, {'status': 'enabled'})

    def test_failures(self):
        """One in each round; the same commands go on."""
        with self.failing_once():
            code, out, err = self.command()
        self.assertEqual((0, ''), (code, err), out)
        self.assertIn('no disk', out)
        self.assertEmptied(out, 1, 'host2', '2')
        self.assertEqual({1: ['host2'], 2: ['host1']}, self.rounds())
        # It has gone to the host of the next round, as it failed elsewhere.
        self.assertIn(' from host2 to host1: done', self.command()[1])
        # The host has not come back.
        number = len(self.posts)
        code, out, err = self.command('--round', '2')
        self.assertEqual((3, number), (code, len(self.posts)), out + err)
        self.assertIn('host2 is not an enabled compute host', err)
        self.enable('host2')
        with self.failing_once():
            code, out, err = self.command('--round', '2')
        self.assertEqual((0, ''), (code, err), out)
        self.assertEmptied(out, 1, 'host1', '')
        self.assertEqual({2: ['host1']}, self.rounds())
