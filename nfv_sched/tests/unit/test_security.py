# SPDX-License-Identifier: Apache-2.0
"""SECURITY.md says what the code does."""

import argparse
import ast
import pathlib
import re

import fixtures
import nova

import nfv_sched
from nfv_sched.base import conf
from nfv_sched.base import files
from nfv_sched.base import http_limits
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.serve import command as serve_command
from nfv_sched.ops.serve.metrics import command
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve import publication
from nfv_sched.tests import base

_PACKAGE = pathlib.Path(nfv_sched.__file__).parent
_ROOT = _PACKAGE.parent
_TEXT = (_ROOT / 'SECURITY.md').read_text(encoding='utf-8')

#: Modules that execute code or programs, or load objects.
_EXECUTING = {'code', 'dill', 'marshal', 'pickle', 'pty', 'runpy', 'shelve',
              'subprocess'}
_EXECUTING_CALLS = {'eval', 'exec', 'execv', 'execve', 'execvp', 'popen',
                    'spawnv', 'system'}
#: Modules of servers.
_LISTENING = {'http.server', 'socketserver', 'wsgiref', 'xmlrpc.server'}


def trees():
    for path in sorted(_PACKAGE.rglob('*.py')):
        name = path.relative_to(_PACKAGE)
        if name.parts[0] != 'tests':
            yield name.as_posix(), ast.parse(path.read_text(encoding='utf-8'))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def called(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr, node
            elif isinstance(node.func, ast.Name):
                yield node.func.id, node


class SecurityTest(base.TimedTestCase):

    #: What is said of the actions of servers that plans ask for.
    SERVER_ACTIONS = {
        'confirmResize': 'confirms cold migrations',
        'evacuate': 'evacuates servers',
        'migrate': 'migrates servers',
        'os-migrateLive': 'migrates servers',
        'shelve': 'shelves servers',
        'shelveOffload': 'takes them off their host'}
    #: What is said of services, and of what agents serve.
    OTHER_CHANGES = (
        'disables a compute service', 'enables it with `--enable-after`',
        'moves routers and networks between agents')

    def test_nothing_is_executed(self):
        for name, tree in trees():
            self.assertEqual(
                set(), set(imported(tree)) & _EXECUTING, name)
            self.assertEqual(
                set(), {call for call, _ in called(tree)} & _EXECUTING_CALLS,
                name)
        # multiprocessing would load what another process has sent.
        for name, tree in trees():
            if 'multiprocessing' in set(imported(tree)):
                self.assertEqual(
                    set(), {call for call, _ in called(tree)} &
                    {'recv', 'send', 'Queue', 'Manager', 'Pool'}, name)
        # Of nfv-sched itself, without a shell.
        self.assertEqual(['ops/serve/watcher/base.py'], [
            name for name, tree in trees()
            if 'processutils' in ast.dump(tree)])

    def test_yaml_without_objects(self):
        for name, tree in trees():
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute):
                    self.assertNotIn(node.attr, (
                        'FullLoader', 'Loader', 'UnsafeLoader',
                        'full_load', 'unsafe_load'), name)

    def test_listening(self):
        self.assertEqual(['ops/serve/metrics/server.py'], [
            name for name, tree in trees()
            if set(imported(tree)) & _LISTENING])
        app = cli_base.NFVSched()
        parser = command.ServeMetrics(app, None).get_parser('nfv-sched')
        address = parser.parse_args(['--listen', ':9180']).listen
        self.assertIn('127.0.0.1', address)
        for name in ('--tls-cert', '--auth-file'):
            self.assertIn(name, parser.format_help())
        parser = serve_command.ServeSnapshot(app, None).get_parser('x')
        self.assertIn('127.0.0.1', parser.parse_args(
            ['--listen', ':9181', '--auth-file', 'x']).listen)
        self.assertIn(f'has {publication.SECONDS:.0f} seconds', _TEXT)
        self.assertIn(f'closed after {server.SECONDS:.0f} seconds', _TEXT)
        self.assertIn(f'there are {server.CONNECTIONS} at most', _TEXT)
        self.assertIn(f'may have {server.REQUEST_BYTES} bytes', _TEXT)

    def test_changes(self):
        """Only the ledger, its probe and plan run change anything."""
        self.assertEqual([
            'ledger/client.py', 'ledger/probe.py', 'ops/run/moves.py'], [
            name for name, tree in trees()
            if any(isinstance(node, ast.Constant) and node.value in (
                'DELETE', 'PATCH', 'POST', 'PUT')
                for node in ast.walk(tree))])
        self.assertIn('`*_nfv_ledger`', _TEXT)
        self.assertIn("'_nfv_ledger'\n",
                      (_PACKAGE / 'ledger' / 'client.py').read_text())

    def test_plan_run(self):
        """Its row has all that is asked of Nova and Neutron."""
        row, = re.findall(r'(?m)^\| `nfv-sched plan run`.*', _TEXT)
        tree = dict(trees())['ops/run/moves.py']
        texts = {node.value for node in ast.walk(tree)
                 if isinstance(node, ast.Constant)}
        api = pathlib.Path(nova.__file__).parent / 'api/openstack/compute'
        self.assertEqual(self.SERVER_ACTIONS.keys(), texts & {
            name for path in api.glob('*.py')
            for name in re.findall(
                r"@wsgi\.action\(\s*['\"]([\w-]+)", path.read_text())})
        # One function asks, with the method written where it is called.
        calls = [name for name, _ in called(tree)]
        self.assertEqual((1, 1), (
            calls.count('request'), calls.count('getattr')))
        self.assertFalse({'delete', 'patch', 'post', 'put'} & set(calls))
        requests = {
            tuple(map(ast.unparse, parts[place + 2:place + 4]))
            for _, node in called(tree)
            for parts in [[node.func, *node.args]]
            for place, part in enumerate(parts)
            if isinstance(part, ast.Name) and part.id == '_call'}
        self.assertEqual({
            ('service', "'GET'"),
            ("'compute'", "'POST'"), ("'compute'", "'PUT'"),
            ("'network'", "'DELETE'"), ("'network'", "'POST'")}, requests)
        for words in {*self.SERVER_ACTIONS.values(), *self.OTHER_CHANGES}:
            self.assertIn(words, row)

    def test_limits(self):
        self.assertEqual(
            (64 * 2 ** 20, 60.0, 128, 64),
            (http_limits.ANSWER_BYTES, http_limits.ANSWER_SECONDS,
             files.DEFAULT, files.MAX_DEPTH))
        for words in ('64 MiB', '60 seconds', '128 MiB', '64 levels'):
            self.assertIn(words, _TEXT)
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path) / 'cloud.json'
        atomic_file.write(str(path), lambda file: file.write(b'{}'))
        self.assertEqual(0o100600, path.stat().st_mode)

    def test_options(self):
        """They exist, and the default is the one that is named."""
        options = {option.name: option for _, group in conf.list_opts()
                   for option in group}
        named = re.findall(r'\[nfv_sched\] (\w+)', _TEXT)
        self.assertEqual(
            {'cell_database_user', 'decision_journal', 'expose_reasons'},
            set(named))
        self.assertLessEqual(set(named), set(options))
        reasons = options['expose_reasons']
        self.assertIn(f'The default, `{reasons.default}`,', _TEXT)
        self.assertLessEqual(
            {'summary', 'hosts'}, set(reasons.type.choices))
        self.assertTrue(options['cell_database_password'].secret)

    def test_command_lines(self):
        app = cli_base.NFVSched()
        known = set()
        for _, entry_point in app.command_manager:
            parser = entry_point.load()(app, None).get_parser('nfv-sched')
            for action in parser._actions:
                if action.help != argparse.SUPPRESS:
                    known |= set(action.option_strings)
        named = set(re.findall(r'(?<![\w-])--[a-z][a-z-]+', _TEXT))
        named -= {'--version'}
        self.assertLess(5, len(named))
        self.assertEqual(set(), named - known)

    def test_files(self):
        for name in re.findall(r'`(etc/[\w/.-]+|[A-Z]\w+file)`', _TEXT):
            self.assertTrue((_ROOT / name).exists(), name)
        setup = (_ROOT / 'setup.cfg').read_text()
        for group in re.findall(r'`(nfv_sched\.\w+)`', _TEXT):
            self.assertIn(f'\n{group} =', setup)
