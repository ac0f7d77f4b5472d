# SPDX-License-Identifier: Apache-2.0
"""Every format of every command, with names that are not harmless."""

import configparser
import csv
import dataclasses
import html.parser
import importlib.metadata
import io
import itertools
import json
import os
import shlex
import shutil
import subprocess
from unittest import mock
from xml.etree import ElementTree

import fixtures
from openstackclient import shell
from osc_lib import logs
from oslo_config import cfg
import yaml

from nfv_sched.journal import entry
from nfv_sched.ledger import neutron
from nfv_sched.nova import database
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.tests import filled
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.limits import snapshots as neutron_snapshots
from nfv_sched.tests.unit.ops.answers.plans import test_defrag
from nfv_sched.tests.unit.ops.answers.rebalance import test_levelling
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.run import migrating_nova

#: Names that Nova's API takes, and those of servers in an edited file.
PRINTABLE = (
    '$(touch made)', '`touch made`', "'; touch made #", '"; touch made; "',
    '--os-auth-url=http://127.0.0.1:1', '=cmd|touch made', '@SUM(1)',
    '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>',
    '{{7*7}}', 'n' * 255, '\U0001f600', '[red]x[/red]', '\\')
NAMES = (*PRINTABLE, 'a\ntouch made', '\x1b]0;made\x07', '\u202eedam',
         '\u200b\ufeff\xad\u061c', 'a\u2028b', '\r\ntouch made', '\x7f', '')
HARMFUL = set('\x1b\x07\x7f\r\u202e\u200b\ufeff\xad\u061c\u2028')

# Hosts are named as nova-compute can be.
HOSTS = ('$(touch${IFS}made)', "';touch<made;'", '<s>"&{{7*7}}')
LARGE = f'{PRINTABLE[3]}6'
# Of a server whose name has a line break.
UUID = snapshots.uuid_of('server', 'hostile')

SETUP = os.path.join(os.path.dirname(__file__), *[os.pardir] * 5, 'setup.cfg')

#: Stands in for a program. A client finds each server where it was moved to,
#: and all as it is in the cloud before that.
STAND_IN = """#!/bin/bash
printf '%s\\0' "${{0##*/}}" "$@" >> {log}
echo >> {log}
case "${{0##*/}} $*" in
    date*) printf '%(%s)T\\n' -1;;
    *' migrate '*)
        while [ "$1" != --host ]; do shift; done
        printf %s "$2" > {log}.host;;
    *' migration list '*) echo completed;;
    *' service list '*) echo "$(<{log}.services)";;
    *' agent list '*) echo "$(<{log}.agents)";;
    *' list --agent '*) echo "$(<{log}.served)";;
    *vm_state*) echo "$(<"{log}.${{!#}}")";;
    *task_state*) echo None;;
    *OS-EXT-SRV-ATTR:host*) echo "$(<{log}.host)";;
    *' status '*) echo ACTIVE;;
esac
"""
#: Those that scripts may use as they are.
FILTERS = ('grep', 'tr')
PROGRAMS = ('date', 'nova-manage', 'openstack', 'ovs-vsctl', 'sleep', 'touch')


def hostile():
    """A cloud with a server of each name.

    Of the six CPUs for pinned servers of each NUMA node, a server has two: a
    move is needed for one more server of six vCPUs.
    """
    hosts = tuple(filled.host(
        name, 4, 2, aggregates=PRINTABLE, zone=PRINTABLE[number],
        disabled_reason=NAMES[-3]) for number, name in enumerate(HOSTS))
    flavors = tuple(filled.flavor(2, name=name, hw__wrs__min_vcpus=name)
                    for name in PRINTABLE)
    servers = []
    for number, name in enumerate(NAMES):
        host = hosts[number % len(hosts)]
        fields = {'flavor': flavors[number % len(flavors)], 'project': name,
                  'uuid': UUID if number == len(NAMES) - 3 else
                  snapshots.uuid_of('server', str(number))}
        if number < 2 * len(hosts):
            node = host.nodes[number // len(hosts)]
            servers.append(test_defrag.running(
                name, host, node.number, sorted(node.siblings[1]),
                state='stopped' if number == 3 else 'active', **fields))
        else:
            servers.append(snapshots.server(
                name, host=host.name, cell='cell1', ports=(),
                state='rescued' if number in (6, 10) else 'active',
                **{**fields, 'flavor': snapshots.flavor(
                    name=PRINTABLE[number % len(PRINTABLE)])}))
    routers = tuple(dataclasses.replace(
        test_levelling.service(f'r{number}'), name=name)
        for number, name in enumerate(NAMES))
    agents = (
        test_levelling.agent('one', *test_levelling.names(routers)),
        test_levelling.agent('two'))
    agents = tuple(dataclasses.replace(agent, host=host)
                   for agent, host in zip(agents, HOSTS))
    return snapshots.with_uuids(dataclasses.replace(
        filled.cloud(
            [_labelled(test_defrag.occupied(host, [
                server for server in servers
                if server.host == host.name and server.nodes]))
             for host in hosts],
            [*flavors, filled.flavor(6, name=LARGE)],
            servers=tuple(servers),
            aggregates=tuple(snapshot.Aggregate(name=name, hosts=HOSTS)
                             for name in PRINTABLE),
            groups=(snapshot.Group(
                uuid=UUID, name=NAMES[-3], policy='soft-anti-affinity',
                members=tuple(server.uuid for server in servers[:4])),)),
        network_agents=agents, network_services=routers))


def _labelled(host):
    """A host with physical networks of the names, and a CPU of nobody."""
    return dataclasses.replace(host, nodes=tuple(
        dataclasses.replace(
            node, physnets=node.physnets | set(PRINTABLE),
            pinned=node.pinned if host.name != HOSTS[2] or node.number else
            node.pinned | {max(node.dedicated)})
        for node in host.nodes))


STEPS = {
    'flavors': {name: {'vcpus': 1, 'memory': '1 GiB', 'extra_specs': {
        'hw:cpu_policy': 'dedicated'}} for name in PRINTABLE},
    'steps': [{'boot': f'new{name}'[:255],
               'flavor': PRINTABLE[number % len(PRINTABLE)]}
              for number, name in enumerate(NAMES)
              if not set('*?[') & set(name)]}
CLOUD = {'hosts': [{'name': name, 'cores': 4, 'memory': '16 GiB'}
                   for name in HOSTS], **STEPS}

# Facts of Ironic.
MACHINE = {'plugin_data': {'numa_topology': {
    'ram': [{'numa_node': 0, 'size_kb': 128 * 2 ** 20}],
    'cpus': [{'cpu': number, 'numa_node': 0, 'thread_siblings': [number]}
             for number in range(8)],
    'nics': [{'name': name, 'numa_node': 0} for name in NAMES]}},
    'inventory': {'hostname': NAMES[-3],
                  'cpu': {'model_name': NAMES[-3], 'flags': list(NAMES)}}}


def refusals():
    for name in NAMES:
        for server in (name, UUID):
            yield entry.Refusal(
                time=name or '2026-01-02T03:04:05.678Z', server=server,
                before=(name,), request=name, project=name,
                flavor=snapshot.Flavor(name=name, vcpus=1, memory=1,
                                       extra_specs={name: name}),
                filter=name,
                passes=(entry.Pass(filter=name, hosts=2, left=0),),
                reasons=(entry.RefusalReason(filter=name, policy=name,
                                             need=name,
                                             have=name, hosts=(name, 'x')),))


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()
        self.scripts = 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == 'script'
        self.seen |= {tag, *(name for name, _value in attrs)}


def commands(group='nfv_sched.cli'):
    setup = configparser.ConfigParser()
    with open(SETUP) as stream:
        setup.read_file(stream)
    places = dict(line.split(' = ') for line in setup['entry_points'][
        group].splitlines() if ' = ' in line)
    return {name: importlib.metadata.EntryPoint(name, place, group).load()
            for name, place in places.items()}


def format_option(command):
    for action in command(None, None).get_parser('test')._actions:
        if '--format' in action.option_strings:
            return '--format', tuple(action.choices)
    return None, (None,)


class HostileNamesTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        file.save(hostile(), self.in_folder('cloud'))
        os.mkdir(self.in_folder('journal'))
        self.write_file(
            'journal/refusals-20260102T030405Z-1-0123abcd.jsonl', b''.join(
                map(test_entry.line, (*refusals(), entry.Lost(
                    time=NAMES[-3], count=3)))))
        for name, content in (('steps', STEPS), ('simulated', CLOUD)):
            self.write_file(name, yaml.safe_dump(content))
        self.write_file('facts', MACHINE)
        plan = migrating_nova.document(*[
            f'server-{number} live {HOSTS[1]}'
            for number, _name in enumerate(NAMES)])
        plan['host'] = NAMES[-2]
        for server, name in zip(plan['servers'], NAMES):
            server['server'] = name
        self.write_file('plan', plan)
        self.programs = self.in_folder('bin')
        os.mkdir(self.programs)
        for name in PROGRAMS:
            os.chmod(self.write_file(f'bin/{name}', STAND_IN.format(
                log=self.in_folder('log'))), 0o700)
        for name in FILTERS:
            os.symlink(shutil.which(name), os.path.join(self.programs, name))
        cloud = hostile()
        for name, lines in {
            'services': [f'{host} enabled up' for host in HOSTS],
            'agents': [f'{agent.id} {agent.host} True True'
                       for agent in cloud.network_agents],
            'served': [service.id for service in cloud.network_services],
            **{server.uuid: [server.host, None, server.state, False]
               for server in cloud.servers},
        }.items():
            self.write_file(f'log.{name}', ''.join(
                f'{line}\n' for line in lines))
        self._live()

    def _live(self):
        """Have a cloud where commands read a live one."""
        cloud = dataclasses.replace(
            hostile(), missing=tuple([
                snapshot.Missing(kind=snapshot.MissingKind.HOST,
                                 hosts=(name,), text=name)
                for name in NAMES if name.strip()]))
        self.useFixture(base.live(lambda: cloud))
        self.useFixture(fixtures.MockPatchObject(source, 'configure'))
        self.useFixture(fixtures.MockPatchObject(
            database, 'compute_nodes', lambda: ([
                database.ComputeNode('', name, name, '', None, [], None)
                for name in NAMES], list(NAMES))))
        self.useFixture(fixtures.MockPatchObject(
            neutron, 'read_snapshot', lambda _conf:
            neutron_snapshots.snapshot([{'host': name} for name in NAMES])))

    def calls(self):
        """Subcommand -> arguments of each of its calls, without a format."""
        cloud = ('--from', self.in_folder('cloud'))
        journal = self.in_folder('journal')
        return {
            'cloud_audit': [cloud],
            'capacity_list': [cloud, ('--by', 'aggregate', *cloud)],
            'capacity_show': [(LARGE, '--next', *cloud)],
            'cloud_defrag': [('--flavor', LARGE, *cloud)],
            'cloud_consolidate': [cloud],
            'cloud_spread': [cloud],
            'host_drain': [(HOSTS[0], *cloud)],
            'host_evacuate': [(HOSTS[0], *cloud)],
            'flavor_explain': [(PRINTABLE[0], '--group', UUID, *cloud),
                               (LARGE, '--try-seconds', '0', *cloud)],
            'server_explain': [
                (UUID, *cloud), (UUID, '--then', '--journal', journal),
                ('--then', '--journal', journal),
                ('--then', '--journal', journal, '--full')],
            'cloud_failover': [cloud],
            'flavor_lint': [('--all', '--used', *cloud)],
            'flavor_translate': [('--all', *cloud)],
            'host_list': [cloud],
            'host_map': [cloud],
            'host_profile': [('--facts', self.in_folder('facts'))],
            'host_show': [(HOSTS[0], *cloud)],
            # Without an account it goes no further than the list of moves.
            'plan_run': [(self.in_folder('plan'), '--dry-run')],
            'metrics': [('--textfile', self.in_folder('metrics'), *cloud)],
            'agent_rebalance': [cloud],
            'simulation_run': [
                ('--show', 'steps', self.in_folder('steps'), *cloud),
                ('--show', 'servers', self.in_folder('simulated')),
                (self.in_folder('simulated'), self.in_folder('simulated'))],
            # Prints where it listens, and no names; test_pages has its pages.
            'snapshot_serve': [],
            'snapshot_save': [(self.in_folder('saved'),),
                              ('--anonymize', self.in_folder('anonymous'))],
        }

    def output(self, *args, codes=(0, 1, 3)):
        code, out, err = self.run_command(*args)
        self.assertIn(code, codes, (args, err))
        self.assertNotIn('internal error', err, args)
        for text in (out, err):
            self.assertFalse(HARMFUL & set(text), (args, text))
            # These two quote line breaks.
            self.assertFalse(args[-1] not in ('shell', 'csv') and any(
                line.startswith('touch made') for line in text.splitlines()),
                (args, text))
        return out

    def run_script(self, script):
        """Run a script where only stand-ins can be found.

        :returns: the arguments that each of them was given, its name first
        """
        place = self.useFixture(fixtures.TempDir()).path
        self.write_file('log', '')
        done = subprocess.run(
            ['/bin/bash', '-c', script], cwd=place,
            env={'PATH': self.programs},
            capture_output=True, text=True, timeout=60)
        self.assertEqual([], os.listdir(place), script)
        # A plan that leaves something says so, and ends with 3.
        self.assertEqual(3 if done.stderr else 0, done.returncode, script)
        # The command that checks policies.
        for line in done.stdout.splitlines():
            words = shlex.split(line.partition(': ')[2])
            self.assertEqual(['nfv-sched', 'cloud', 'audit'], words[:3], line)
            self.assertLessEqual(
                set(words[5:]), {f'--host={host}' for host in HOSTS})
        with open(self.in_folder('log')) as lines:
            calls = [line.rstrip('\0\n').split('\0')
                     for line in lines.read().split('\0\n') if line]
        self.assertFalse([call for call in calls if call[0] == 'touch'])
        return calls

    def check_table(self, out):
        """Every text will do."""

    def check_json(self, out):
        self.assertTrue(out.isascii())
        json.loads(out)

    def check_yaml(self, out):
        self.assertTrue(out.isascii())
        yaml.safe_load(out)

    def check_csv(self, out):
        for cell in itertools.chain(*csv.reader(
                io.StringIO(out), escapechar='\\')):
            self.assertNotRegex(cell, '^[=@]|^[+-].*[^0-9.]')

    def check_shell(self, out):
        self.assertEqual([], self.run_script(out))

    def check_commands(self, out):
        for call in self.run_script(out):
            self.assertIn('--', call)
            words = call[:call.index('--')]
            self.assertFalse([
                word for word in words if '127.0.0.1' in word and
                not word.startswith('hw:')], call)
            self.programs_called.add(tuple(
                word for word in words[:5] if word.isalpha()))

    def check_ovs(self, out):
        self.assertEqual({'ovs-vsctl'}, {
            call[0] for call in self.run_script(out)})

    def check_svg(self, out):
        for element in ElementTree.fromstring(out).iter():
            self.assertNotRegex(element.tag, 'script|foreignObject')
            self.assertFalse([name for name in element.attrib
                              if name.startswith('on')])

    def check_html(self, out):
        page = Page()
        page.feed(out)
        # Its own script, without any attribute.
        self.assertEqual(1, page.scripts)
        self.assertFalse({'img', 's', 'src'} & page.seen)
        self.assertFalse([name for name in page.seen
                          if name.startswith('on')])

    #: Format -> method that checks what is printed in it.
    CHECKS = {
        None: check_table, 'ansible': check_yaml, 'commands': check_commands,
        'csv': check_csv, 'html': check_html, 'json': check_json,
        'kernel': check_table, 'nova.conf': check_table, 'ovs': check_ovs,
        'shell': check_shell, 'svg': check_svg, 'table': check_table,
        'text': check_table, 'tuned': check_table, 'value': check_table,
        'yaml': check_yaml}

    def check_keys(self, displaying):
        """Have the columns of a command checked: each has a key of its own."""
        produce_output = displaying.produce_output

        def checked(command, parsed_args, column_names, data):
            keys = list(map(documents.key_of, column_names))
            self.assertEqual(len(keys), len(set(keys)), column_names)
            self.assertNotIn('', keys, column_names)
            return produce_output(command, parsed_args, column_names, data)

        self.useFixture(fixtures.MockPatchObject(
            displaying, 'produce_output', checked))

    def test_every_format(self):
        self.programs_called = set()
        self.check_keys(cli_base.Lister)
        self.check_keys(cli_base.ShowOne)
        calls = self.calls()
        of_name = commands()
        self.assertEqual(set(), of_name.keys() - calls.keys())
        for name, arguments in calls.items():
            option, formats = format_option(of_name[name])
            for args, each in itertools.product(arguments, formats):
                self.CHECKS[each](self, self.output(
                    *name.split('_'), *args, *filter(None, (option, each))))
        self.assertLessEqual({
            ('openstack', 'server', 'migrate'),
            ('openstack', 'network', 'agent', 'add', 'router'),
            ('openstack', 'compute', 'service', 'set')},
            self.programs_called)

    def test_openstack(self):
        # It would set up logging for the whole process.
        self.useFixture(fixtures.MockPatchObject(logs, 'LogConfigurator'))
        of_name = commands('openstack.extension')
        self.assertEqual({f'nfv_{name}' for name in commands()},
                         set(of_name))
        for name in ('host_show', 'host_list', 'host_map',
                     'agent_rebalance', 'host_profile'):
            option, formats = format_option(of_name[f'nfv_{name}'])
            for each in formats:
                args = (*name.split('_'), *self.calls()[name][0], option,
                        each)
                self.assertEqual(self.run_command(*args),
                                 self.run_openstack('nfv', *args))

    def run_openstack(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with mock.patch('sys.stdout', out), mock.patch('sys.stderr', err):
            code = shell.main(args)
        return code, out.getvalue(), err.getvalue()

    def test_physical_networks(self):
        """They are in nova.conf as they are, or refused."""
        usable = set()
        for name in NAMES:
            args = ('host', 'profile', '--facts', self.in_folder('facts'),
                    '--vswitch-nic', f'{name}={PRINTABLE[0]}')
            out = self.output(*args, '-f', 'nova.conf', codes=(0, 2))
            for each in ('kernel', 'tuned', 'ovs', 'ansible', 'table'):
                self.CHECKS[each](self, self.output(
                    *args, '-f', each, codes=(0, 2)) or 'ovs-vsctl')
            if out:
                usable.add(name)
                conf = cfg.ConfigOpts()
                conf.register_opt(cfg.ListOpt('physnets'), 'neutron')
                conf.register_opt(cfg.ListOpt('numa_nodes'),
                                  f'neutron_physnet_{name}')
                conf([], default_config_files=[
                    self.write_file('nova.conf', out)])
                self.assertIn(name, conf.neutron.physnets)
                self.assertEqual(
                    ['0'], conf[f'neutron_physnet_{name}'].numa_nodes)
        self.assertEqual(
            {'@SUM(1)', '<script>alert(1)</script>', '{{7*7}}', 'n' * 255,
             '\U0001f600', '\\'}, usable)

    def test_unknown_names(self):
        cloud = ('--from', self.in_folder('cloud'))
        for name in NAMES[len(PRINTABLE):]:
            for args in (('server', 'explain', name, *cloud),
                         ('flavor', 'explain', f'x{name}', *cloud),
                         ('capacity', 'show', f'x{name}', *cloud),
                         ('host', 'show', f'x{name}', *cloud),
                         ('host', 'profile', '--vswitch-nic', f'x{name}',
                          '--facts', self.in_folder('facts'))):
                self.output(*args, codes=(0, 1, 2, 3))
