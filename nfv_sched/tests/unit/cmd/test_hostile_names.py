# SPDX-License-Identifier: Apache-2.0
"""Every format of the commands, with names that are not harmless."""

import csv
import dataclasses
import html.parser
import io
import itertools
import json
import os
import subprocess
from xml.etree import ElementTree

import fixtures
from prometheus_client import parser
import yaml

from nfv_sched.cloud import file
from nfv_sched.cloud import snapshot
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.advice import clouds
from nfv_sched.tests.unit.advice import test_rebalance
from nfv_sched.tests.unit.cmd import base

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
HOSTS = ('$(touch${IFS}made)', "';touch<made;'", '<b>"&{{7*7}}')


def hostile():
    """A cloud with a server of each name, on hosts of two NUMA nodes."""
    flavors = tuple(
        dataclasses.replace(clouds.flavor(1, name=name), extra_specs={
            'hw:cpu_policy': 'dedicated', 'hw:wrs:min_vcpus': name})
        for name in PRINTABLE)
    servers = tuple(
        snapshots.server(name, host=HOSTS[number % 2],
                         cell=PRINTABLE[number % 2], project=name, ports=(),
                         flavor=flavors[number % len(flavors)])
        for number, name in enumerate(NAMES))
    routers = tuple(dataclasses.replace(
        test_rebalance.service(f'r{number}'), name=name)
        for number, name in enumerate(NAMES))
    agents = (
        test_rebalance.agent('one', *test_rebalance.names(routers)),
        test_rebalance.agent('two'))
    agents = tuple(dataclasses.replace(agent, host=host)
                   for agent, host in zip(agents, HOSTS))
    return snapshots.with_uuids(dataclasses.replace(
        clouds.cloud(*(dataclasses.replace(
            clouds.host(name), aggregates=PRINTABLE, zone=PRINTABLE[number],
            cell=PRINTABLE[number], uuid=snapshots.id_of(f'h{number}'),
            providers=(), disabled_reason=NAMES[-3])
            for number, name in enumerate(HOSTS)),
            servers=servers, flavors=flavors,
            aggregates=tuple(snapshot.Aggregate(name=name, hosts=HOSTS)
                             for name in PRINTABLE)),
        network_agents=agents, network_services=routers))


class Page(html.parser.HTMLParser):
    """The elements of a page, and their attributes."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen |= {tag, *(name for name, _value in attrs)}


class HostileNamesTest(base.CommandTestCase):

    COMMANDS = (
        ('host', 'list'), ('host', 'show', HOSTS[0]), ('audit',),
        ('capacity', 'list'), ('flavor', 'lint', '--all', '--used'),
        ('flavor', 'translate', '--all'), ('drain', 'plan', HOSTS[0]),
        ('failover', 'check'), ('rebalance', 'plan'))

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.file = os.path.join(self.folder, 'cloud')
        file.save(hostile(), self.file)

    def output(self, *args):
        code, out, err = self.run_command(*args, '--from', self.file)
        self.assertIn(code, (0, 1, 3), (args, err))
        self.assertNotIn('internal error', err, args)
        for text in (out, err):
            self.assertFalse(HARMFUL & set(text), args)
            # These two quote line breaks.
            self.assertFalse(args[-1] not in ('shell', 'csv') and any(
                line.startswith('touch made') for line in text.splitlines()),
                args)
        return out

    def run_lines(self, script):
        """Run a script where only stand-ins of the clients can be found.

        :returns: the arguments that they were given
        """
        place = self.useFixture(fixtures.TempDir()).path
        programs = os.path.join(self.folder, 'bin')
        log = os.path.join(self.folder, 'log')
        if not os.path.exists(programs):
            os.mkdir(programs)
            for name in ('openstack', 'nova-manage', 'touch', 'sleep'):
                path = os.path.join(programs, name)
                with open(path, 'w') as program:
                    program.write(
                        f'#!/bin/bash\nprintf "%s\\0" {name} "$@" >> {log}\n'
                        f'echo >> {log}\n')
                os.chmod(path, 0o700)
        with open(log, 'w'):
            pass
        done = subprocess.run(
            ['/bin/bash', '-c', script], cwd=place, env={'PATH': programs},
            capture_output=True, text=True, timeout=60)
        self.assertEqual([], os.listdir(place), script)
        with open(log) as lines:
            calls = [line.rstrip('\0\n').split('\0')
                     for line in lines.read().split('\0\n') if line]
        self.assertFalse([call for call in calls if call[0] == 'touch'])
        return done, calls

    def test_tables_and_values(self):
        for command in self.COMMANDS:
            show = command[1:2] == ('show',)
            for name in ('table', 'value', 'json', 'yaml',
                         'shell' if show else 'csv'):
                out = self.output(*command, '-f', name)
                if name in ('json', 'yaml'):
                    self.assertTrue(out.isascii(), command)
                    (json.loads if name == 'json' else yaml.safe_load)(out)
                elif name == 'csv':
                    for cell in itertools.chain(*csv.reader(
                            io.StringIO(out), escapechar='\\')):
                        self.assertNotRegex(cell, '^[=@]|^[+-].*[^0-9.]')
                elif name == 'shell':
                    done, calls = self.run_lines(out)
                    self.assertEqual((0, '', []), (
                        done.returncode, done.stderr, calls))

    def test_commands(self):
        programs = set()
        for command in self.COMMANDS:
            if command[1:2] in (('plan',), ('translate',)):
                _done, calls = self.run_lines(
                    self.output(*command, '-f', 'commands'))
                for call in calls:
                    programs.add(tuple(call[1:3]))
                    words = call[:call.index('--')] if '--' in call else call
                    self.assertFalse([
                        word for word in words if '127.0.0.1' in word and
                        not word.startswith('hw:')], call)
                    self.assertIn('--', call)
        self.assertLessEqual({('network', 'agent'), ('compute', 'service')},
                             programs)

    def test_names_are_exact(self):
        names = {guest for row in json.loads(
            self.output('host', 'list', '-f', 'json'))
            for guest in row['Guests']}
        self.assertTrue({name.strip() for name in NAMES if name.strip()
                         } <= names, names)

    def test_maps(self):
        picture = self.output('host', 'map', '--format', 'svg')
        for element in ElementTree.fromstring(picture).iter():
            self.assertNotRegex(element.tag, 'script|foreignObject')
            self.assertFalse([name for name in element.attrib
                              if name.startswith('on')])
        page = Page()
        page.feed(self.output('host', 'map', '--format', 'html'))
        self.assertFalse({'script', 'img', 'b'} & page.seen)
        self.assertFalse([name for name in page.seen
                          if name.startswith('on')])
        self.output('host', 'map')

    def test_metrics(self):
        path = os.path.join(self.folder, 'nfv.prom')
        self.output('metrics', '--textfile', path)
        with open(path, encoding='utf-8') as text:
            labels = {sample.labels.get('host') for family in
                      parser.text_fd_to_metric_families(text)
                      for sample in family.samples}
        self.assertTrue(set(HOSTS) <= labels, labels)
