# SPDX-License-Identifier: Apache-2.0
"""The command ``nfv-sched-ledger`` as a process of its own.

With a nova.conf, databases of Nova in files, a Placement and a Neutron that it
reaches over HTTP: nothing that Nova's fixtures put in place is in there.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import fixtures
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_utils.fixture import uuidsentinel as uuids
from placement.tests.functional.fixtures import placement as placement_fixtures
import sqlalchemy as sa

from nfv_sched.limits import names
from nfv_sched.tests import base
from nfv_sched.tests import placement_api
from nfv_sched.tests.unit.limits import neutron_api

_CONF = """\
[DEFAULT]
graceful_shutdown_timeout = 20
[api_database]
connection = sqlite:///{directory}/api.sqlite
[database]
connection = sqlite:///{directory}/cell0.sqlite
[placement]
auth_type = none
endpoint_override = {placement}
[neutron]
auth_type = none
endpoint_override = {neutron}
[nfv_sched]
ledger_publish_interval = 0.2
vswitch_ports_per_node = {limit}
vswitch_physical_ports = 2
"""

_START = """\
import multiprocessing
import sys
multiprocessing.set_start_method('{method}')
from nfv_sched.cmd import ledger
sys.exit(ledger.main())
"""


def without_progress(text):
    """Return a command's standard error without its lines of progress."""
    return ''.join(line for line in text.splitlines(keepends=True)
                   if not line.endswith(' done\n'))


class ProcessTestCase(base.TimedTestCase):
    """One compute node, with three ports of DHCP servers."""

    def setUp(self):
        super().setUp()
        # Beside tests of Nova the log would go to the standard output.
        self.useFixture(fixtures.FakeLogger())
        self.directory = self.useFixture(fixtures.TempDir()).path
        fixture = self.useFixture(placement_fixtures.PlacementFixture())
        self.placement = placement_api.PlacementAPI(
            fixture.conf_fixture.conf).start_for(self)
        self.neutron = neutron_api.NeutronAPI().start_for(self)
        self.neutron.ports.extend(
            neutron_api.port('network:dhcp', host='host1') for _ in range(3))
        self._make_databases()
        self.configure(20)
        self._placement('POST', '/resource_providers', (
            f'{{"uuid": "{uuids.compute}", "name": "node1"}}'))

    def _make_databases(self):
        connections = {name: f'sqlite:///{self.directory}/{name}.sqlite'
                       for name in ('api', 'cell0', 'cell1')}
        engines = {name: sa.create_engine(connection)
                   for name, connection in connections.items()}
        api_models.BASE.metadata.create_all(engines['api'])
        main_models.BASE.metadata.create_all(engines['cell0'])
        main_models.BASE.metadata.create_all(engines['cell1'])
        with engines['api'].begin() as connection:
            for name, uuid in (
                ('cell0', '00000000-0000-0000-0000-000000000000'),
                ('cell1', uuids.cell1),
            ):
                connection.execute(
                    api_models.CellMapping.__table__.insert().values(
                        uuid=uuid, name=name, transport_url='none:///',
                        database_connection=connections[name],
                        disabled=False))
        with engines['cell1'].begin() as connection:
            connection.execute(main_models.ComputeNode.__table__.insert(
            ).values(
                uuid=uuids.compute, host='host1', hypervisor_type='QEMU',
                hypervisor_hostname='node1', hypervisor_version=1, vcpus=1,
                memory_mb=1, local_gb=1, vcpus_used=0, memory_mb_used=0,
                local_gb_used=0, cpu_info='', deleted=0))
        for engine in engines.values():
            engine.dispose()

    def configure(self, limit):
        self.conf = os.path.join(self.directory, 'nova.conf')
        with open(self.conf, 'w') as conf:
            conf.write(_CONF.format(
                directory=self.directory, placement=self.placement.url,
                neutron=self.neutron.url, limit=limit))

    def _placement(self, method, path, body=''):
        return self.placement.answer(
            method, path, {'Content-Type': 'application/json',
                           'Accept': 'application/json',
                           'OpenStack-API-Version': 'placement 1.26'},
            body.encode())

    def inventory(self):
        _status, _headers, data = self._placement(
            'GET', '/resource_providers/'
            f'{names.provider_uuid(uuids.compute)}/inventories/'
            f'{names.PORTS}')
        return data.decode()

    def start(self, *args, module='nfv_sched.cmd.ledger'):
        return self.run_module(module, *args, '--config-file', self.conf)

    def run_module(self, module, *args):
        return self.run_python('-m', module, *args)

    def run_python(self, *args):
        environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith('OS_')}
        process = subprocess.Popen(
            [sys.executable, *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, start_new_session=True)
        self.addCleanup(self._kill, process)
        return process

    @staticmethod
    def _kill(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def wait_until(self, process, condition, seconds=60.0):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or process.poll() is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                self.fail('\n'.join(process.communicate()))
            time.sleep(0.05)


class ProcessTest(ProcessTestCase):

    def test_once(self):
        process = self.start('--once', '--dry-run')
        out, err = process.communicate(timeout=300)
        self.assertEqual(0, process.returncode, err)
        self.assertIn('host1 created 20 5 0 16384 0 0', ' '.join(out.split()))
        self.assertEqual([], self.placement.writes()[1:])
        process = self.start('--once')
        out, err = process.communicate(timeout=300)
        self.assertEqual(0, process.returncode, err)
        self.assertIn('host1 created 20 5 0 16384 0 0', ' '.join(out.split()))
        self.assertIn('"reserved": 5', self.inventory())
        self.neutron.stop()
        process = self.start('--once')
        out, err = process.communicate(timeout=300)
        self.assertEqual((1, ''), (process.returncode, out), err)
        self.assertIn('Neutron', err)

    def limits(self, *args):
        process = self.start('host', 'list', '-f', 'json', *args,
                             module='nfv_sched.ops.cli.base')
        out, err = process.communicate(timeout=300)
        return (process.returncode, json.loads(out)['numa_nodes'],
                without_progress(err))

    def test_limits(self):
        self.neutron.rules.extend(neutron_api.rule('sg') for _ in range(7))
        self.neutron.ports.append(neutron_api.port(
            host='host1', groups=['sg']))
        self.neutron.ports.append(neutron_api.port(
            'network:router_interface', 'r', host='host1'))
        code, rows, err = self.limits()
        self.assertEqual((0, ''), (code, err))
        row, = rows
        self.assertEqual('host1', row['host'])
        self.assertEqual({
            'vswitch_ports': {'used': 7, 'limit': 20, 'free': 13},
            'security_rules': {'used': 7, 'limit': 16384, 'free': 16377},
            'dhcp_servers': 3, 'routers': 1, 'services_limit': 250,
            'sources': ['neutron'], 'notes': []}, row['network'])
        self.assertEqual((0, []), self.limits('--full', '50')[:2])
        self.assertEqual(1, len(self.limits('--full', '35')[1]))
        self.assertEqual(1, len(self.limits('--host', 'host?')[1]))

    def test_limits_ledger(self):
        with open(self.conf, 'a') as conf:
            conf.write('ledger = placement\nsecurity_rules_per_node = 0\n')
        self.start('--once').communicate(timeout=300)
        answer = self._placement(
            'PUT', f'/allocations/{uuids.server}', json.dumps({
                'allocations': {names.provider_uuid(uuids.compute): {
                    'resources': {names.PORTS: 4}}},
                'project_id': uuids.project, 'user_id': uuids.user}))
        self.assertIn('204', str(answer[0]), answer)
        code, rows, err = self.limits()
        self.assertEqual((0, ''), (code, err))
        self.assertEqual(
            ({'used': 5, 'limit': 20, 'free': 11}, None, None,
             ['neutron', 'ledger'], []),
            (rows[0]['network']['vswitch_ports'],
             rows[0]['network']['security_rules']['limit'],
             rows[0]['network']['security_rules']['free'],
             rows[0]['network']['sources'], rows[0]['network']['notes']))
        # As Placement may have granted it if it is not configured well.
        with open(self.conf, 'a') as conf:
            conf.write('vswitch_ports_per_node = 3\n')
        self.start('--once').communicate(timeout=300)
        code, rows, err = self.limits()
        self.assertEqual(
            (0, -4, ['4 ports allocated of 3']),
            (code, rows[0]['network']['vswitch_ports']['free'],
             rows[0]['network']['notes']))

    def test_limits_without_neutron(self):
        self.neutron.stop()
        code, rows, err = self.limits()
        self.assertEqual(1, code)
        self.assertIn('error: Neutron cannot be read: ', err)
        self.assertNotIn('Traceback', err)
        self.assertEqual(
            ('host1', {'used': None, 'limit': 20, 'free': None}, []),
            (rows[0]['host'], rows[0]['network']['vswitch_ports'],
             rows[0]['network']['sources']))

    def test_dry_run_without_once(self):
        process = self.start('--dry-run')
        _out, err = process.communicate(timeout=300)
        self.assertEqual(2, process.returncode)
        self.assertIn('--dry-run needs --once', err)

    def test_unusable_configuration(self):
        wrong = (b'security_rules_per_node = many\n',
                 'Value for option security_rules_per_node')
        for text, what, *args in (
                (b'[nfv_sched\n', f'Failed to parse {self.conf}'),
                (b'\xff\xfe', f'Failed to parse {self.conf}: not UTF-8 text'),
                wrong, (*wrong, '--once')):
            self.configure(20)
            with open(self.conf, 'ab') as conf:
                conf.write(text)
            process = self.start(*args)
            _out, err = process.communicate(timeout=300)
            self.assertEqual(2, process.returncode, err)
            self.assertIn(f'nfv-sched-ledger: {what}', err)
            self.assertNotIn('Traceback', err)

    def test_wrong_value_while_it_runs(self):
        """What is published stays, and the correction is taken."""
        log = pathlib.Path(self.directory, 'log')
        process = self.start('--log-file', str(log))
        self.wait_until(process, lambda: '"reserved": 5' in self.inventory())
        for option, value, limit in (
                ('vswitch_ports_per_node', 'many', 30),
                ('ledger_publish_interval', 'often', 31)):
            with open(self.conf, 'a') as conf:
                conf.write(f'{option} = {value}\n')
            process.send_signal(signal.SIGHUP)
            self.wait_until(process, lambda option=option: (
                f'it is tried again: Value for option {option}'
                in log.read_text()))
            self.configure(limit)
            process.send_signal(signal.SIGHUP)
            self.wait_until(process, lambda limit=limit: (
                f'"total": {limit}' in self.inventory()))
        self.assertNotIn(' ERROR nfv_sched', log.read_text())

    def assert_follows(self, process):
        self.neutron.ports.pop()
        self.wait_until(process, lambda: '"reserved": 4' in self.inventory())
        self.configure(30)
        process.send_signal(signal.SIGHUP)
        self.wait_until(process, lambda: '"total": 30' in self.inventory())

    def test_no_text_while_it_runs(self):
        """It goes on as before, and the correction is taken."""
        log = pathlib.Path(self.directory, 'log')
        process = self.start('--log-file', str(log))
        self.wait_until(process, lambda: '"reserved": 5' in self.inventory())
        with open(self.conf, 'ab') as conf:
            conf.write(b'\xff\xfe')
        process.send_signal(signal.SIGHUP)
        self.wait_until(process, lambda: 'decode byte' in log.read_text())
        self.assert_follows(process)

    def test_service(self):
        process = self.start()
        self.wait_until(process, lambda: '"reserved": 5' in self.inventory())
        self.assert_follows(process)
        self.neutron.ports.pop()
        self.wait_until(process, lambda: '"reserved": 3' in self.inventory())
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        log = '\n'.join(process.communicate(timeout=300))
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(0, process.returncode, log)
        self.assertIn('The ledger was brought up to date', log)
        self.assertNotIn('Traceback', log)

    def test_other_start_methods(self):
        """Python 3.14 does not fork by default, and others may not either."""
        for method in ('forkserver', 'spawn'):
            self.neutron.ports.pop()
            reserved = f'"reserved": {len(self.neutron.ports) + 2}'
            process = self.run_python(
                '-c', _START.format(method=method), '--config-file', self.conf)
            self.wait_until(process, lambda text=reserved: (
                text in self.inventory()))
            process.send_signal(signal.SIGTERM)
            log = '\n'.join(process.communicate(timeout=300))
            self.assertEqual(0, process.returncode, log)


# A filter of nova-scheduler reads Neutron.
_PLUGIN = """\
from nfv_sched.ledger import neutron
from nova import config
from oslo_log import log as logging
import sys
config.parse_args(['nova-scheduler', '--config-file', sys.argv[1]])
try:
    neutron.read_snapshot()
except neutron.NeutronError:
    logging.getLogger('nova').exception('Neutron cannot be read')
"""

_CLOSED = '127.0.0.1:9'  # where nobody answers

_ACCOUNT = """
[{section}]
auth_type = password
auth_url = http://nova:{password}@{closed}/v3x
username = nova
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
"""


class SecretsTest(ProcessTestCase):
    """No process tells the password of a URL that cannot be reached."""

    PASSWORD = 'S3CRET'

    def log_in(self, section):
        """Let a service have an account, in a URL that nobody answers."""
        self.configure(20)
        with open(self.conf) as conf:
            text = conf.read()
        text = text.replace(
            f'[{section}]\nauth_type = none\nendpoint_override = '
            f'{getattr(self, section).url}', _ACCOUNT.format(
                section=section, password=self.PASSWORD,
                closed=_CLOSED)).replace(
            '[DEFAULT]', f'[DEFAULT]\nlog_file = {self.directory}/log\n'
            'default_log_levels = keystoneauth=DEBUG,urllib3=DEBUG\n')
        with open(self.conf, 'w') as conf:
            conf.write(text)

    def told(self, process, serves=False):
        log = pathlib.Path(self.directory, 'log')
        if serves:
            self.wait_until(
                process, lambda: log.exists() and _CLOSED in log.read_text())
            process.terminate()
        out, err = process.communicate(timeout=120)
        text = log.read_text() if log.exists() else ''
        log.unlink(missing_ok=True)
        return out + err + text

    def test_placement(self):
        self.log_in('placement')
        for start, serves in (
            (lambda: self.start('--once'), False),
            (self.start, True),
            (lambda: self.run_module(
                'nfv_sched.cmd.status', '--config-file', self.conf,
                'upgrade', 'check'), False),
            (lambda: self.run_module(
                'nfv_sched.cmd.status', '--config-file', self.conf,
                'ledger', 'probe'), False),
        ):
            told = self.told(start(), serves)
            self.assertIn(_CLOSED, told)
            self.assertNotIn(self.PASSWORD, told)

    def test_neutron(self):
        self.log_in('neutron')
        for start in (
            lambda: self.start('--once'),
            lambda: self.run_python('-c', _PLUGIN, self.conf),
            lambda: self.run_module(
                'nfv_sched.ops.cli.base', '--debug', '-vv', 'snapshot',
                'save', f'{self.directory}/cloud.json.gz', '--config-file',
                self.conf),
        ):
            told = self.told(start())
            self.assertIn(_CLOSED, told)
            self.assertNotIn(self.PASSWORD, told)
