# SPDX-License-Identifier: Apache-2.0
"""Every command, on terminals of several widths, in a pipe and in a file."""

import csv
import dataclasses
import io
import itertools
import os
import re
import shlex
from unittest import mock

import fixtures
import yaml

from nfv_sched.journal import entry
from nfv_sched.ops.cli import base as cli_base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import file
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.tests import base as nfv_base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.journal import test_entry
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.commands import test_hostile_names
from nfv_sched.tests.unit.ops.commands import test_rebalance


WIDTHS = (80, 120, 200)
#: Subcommands that print no table and no report, or the map of hosts.
OTHERS = {'host_map', 'metrics', 'plan_run', 'snapshot_save',
          'snapshot_serve'}

DOMAIN = 'region-one.example.net'
HOSTS = tuple(f'compute-rack-1234-{number}.{DOMAIN}' for number in (1, 2, 3))
LARGE = 'packet-core-user-plane.48-vcpus.v2'
SMALL = 'virtual-firewall-with-long-name.2'
KEYS = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '1GB',
        'nfv:vswitch_numa_affinity': 'strict'}
CLOUD = {
    'hosts': [{'name': f'compute-rack-1234-{{n}}.{DOMAIN}', 'count': 3,
               'numa_nodes': 2, 'cores': 64, 'threads': 2,
               'memory': '4096 GiB', 'pages': {'1G': 4000},
               'shared_cores_per_node': 1, 'platform_cores': 0,
               'vswitch_cores': 0}],
    'flavors': {
        SMALL: {'vcpus': 40, 'memory': '1000 GiB', 'extra_specs': KEYS},
        LARGE: {'vcpus': 126, 'memory': '300 GiB', 'extra_specs': {
            **KEYS, 'hw:numa_nodes': '1'}}},
    'steps': [
        *({'boot': f'firewall-of-customer-{number}-in-{DOMAIN}',
           'flavor': SMALL, 'count': 3, 'force': host}
          for number, host in enumerate(HOSTS, 1)),
        {'boot': 'refused-server-with-a-long-name', 'flavor': LARGE}]}
#: With keys that Nova does not know.
OLD = snapshot.Flavor(name='old', vcpus=2, memory=2048, extra_specs={
    **KEYS, 'hw:wrs:live_migration_max_downtime': '1000',
    'hw:wrs:vcpu:scheduler': 'fifo:99:0', 'hw:cpu_polcy': 'x'})
JOURNAL = 'refusals-20260102T030405Z-1-0123abcd.jsonl'
#: Columns of sentences and names, beside those of tables, and of lists.
TEXTS = tables.SENTENCES | {'Description', 'Limit notes', 'Not known', 'What'}
NUMBER_LISTS = {'NUMA nodes', 'Pinned CPUs', 'Lost capacity by cause'}
#: A number that is neither alone nor part of a name or an address.
FIGURE = re.compile(r'(?<![\w.:=@-])\d+(\.\d+)?(?![\w.:=@-])')
#: Columns of names, of which csv has the IDs, too.
NAMED = ('Aggregate', 'Flavor', 'Host', 'Next', 'Server')
#: Names of which csv has no IDs: those of hosts and flavors are unique.
WITHOUT_ID = {
    ('cloud_audit', 'Host'), ('cloud_consolidate', 'Flavor'),
    ('cloud_defrag', 'Flavor'), ('cloud_spread', 'Flavor'),
    ('cloud_failover', 'Flavor'), ('cloud_failover', 'Host'),
    ('flavor_lint', 'Flavor'), ('flavor_translate', 'Flavor'),
    ('host_drain', 'Flavor'), ('host_drain', 'Host'),
    ('host_evacuate', 'Flavor'),
    ('server_explain', 'Flavor'), ('server_explain', 'Server'),
    ('simulation_run', 'Flavor')}
PIECES = re.compile(r'[^\s,]+')
ESCAPES = re.compile(r'\x1b\[[0-9;]*m')
LEFT_OUT = re.compile(
    r'Left out for lack of space: ([^;]*); see (?:-c, )?--max-width 0'
    '(?: or -f csv)?')
#: What a simulation took.
SECONDS = re.compile(r'\d+\.\d').fullmatch
#: That, in a document, and how old the weights are.
TIMES = re.compile(r'\d+\.\d+|\d+e-\d+|age(?:_seconds)?"?: \d+')


class Terminal(io.StringIO):

    def isatty(self):
        return True


def pieces(*texts):
    return {piece for text in texts for piece in PIECES.findall(text)}


def shown(cell):
    if hasattr(cell, 'human_readable'):
        return cell.human_readable()
    return '-' if cell in (None, '') else str(cell)


class WordsTest(nfv_base.TestCase):

    def test_number_stays_with_its_label(self):
        table = tables.Table(
            ('Lost',), [[tables.Lines(['memory of the host: 11', 'x: 2'])]],
            is_whole=True)
        self.assertEqual(
            ['memory of the', 'host: 11', 'x: 2'],
            tables.render([table], 10).splitlines()[2:])


class WidthTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        cloud = source.load(self.write_file(
            'cloud.yaml', yaml.safe_dump(CLOUD)))
        self.server = cloud.servers[0]
        # As many pairs are tried as there is time for.
        self.useFixture(fixtures.MockPatch(
            'nfv_sched.ops.answers.explain.relaxation.pairs', return_value=[]))
        # A difference between Nova's records, for the audit.
        host = cloud.hosts[0]
        node = host.nodes[1]
        host = dataclasses.replace(host, nodes=(
            host.nodes[0], dataclasses.replace(
                node, pinned=node.pinned | {max(node.dedicated)})))
        file.save(dataclasses.replace(
            cloud, hosts=(host, *cloud.hosts[1:]),
            flavors=(*cloud.flavors, OLD)), self.in_folder('cloud'))
        file.save(snapshots.with_uuids(dataclasses.replace(
            test_rebalance.CLOUD, network_agents=tuple(
                dataclasses.replace(agent, host=f'{agent.host}.{DOMAIN}')
                for agent in test_rebalance.CLOUD.network_agents))),
            self.in_folder('agents'))
        self.write_file(JOURNAL, test_entry.line(entry.Refusal(
            time='2026-01-02T03:04:05.678Z', server=self.server.uuid,
            request='req-8b1d5e0a-53f6-4a4e-9a2f-6d3a7c1e9f20',
            project='6a3c1e0f52d94b7d9f8e7a1b2c3d4e5f',
            flavor=snapshot.Flavor(name=LARGE, vcpus=126, memory=307200,
                                   extra_specs=KEYS),
            filter='VSwitchNUMAAffinityFilter',
            passes=(entry.Pass(filter='VSwitchNUMAAffinityFilter',
                               hosts=3, left=0),),
            reasons=(entry.RefusalReason(
                filter='VSwitchNUMAAffinityFilter',
                policy='nfv:vswitch_numa_affinity=strict',
                need='126 dedicated CPUs', have='46 free',
                hosts=HOSTS),))))
        self.write_file('facts', test_hostile_names.MACHINE)

    def calls(self):
        cloud = ('--from', self.in_folder('cloud'))
        return {
            'agent_rebalance': ('--from', self.in_folder('agents')),
            'capacity_list': ('--by', 'host', '--empty', *cloud),
            'capacity_show': (LARGE, '--next', *cloud),
            'cloud_audit': cloud,
            'cloud_consolidate': cloud,
            'cloud_defrag': ('--flavor', LARGE, *cloud),
            'cloud_failover': cloud,
            'cloud_spread': cloud,
            'flavor_explain': (LARGE, '--try-seconds', '5', *cloud),
            'flavor_lint': ('--all', *cloud),
            'flavor_translate': ('--all', *cloud),
            'host_drain': (HOSTS[0], *cloud),
            'host_evacuate': (HOSTS[0], *cloud),
            'host_list': cloud,
            'host_profile': ('--facts', self.in_folder('facts'), '--shared'),
            'host_show': (HOSTS[0], *cloud),
            'server_explain': (self.server.uuid, *cloud),
            'simulation_run': ('--show', 'all', self.in_folder('cloud.yaml'))}

    def run_at(self, width, *args, stdout=None, **environment):
        """Run a command; return its output, and the parts it was made of."""
        parts = []
        render = tables.render

        def recorded(given, *args):
            given = list(given)
            parts.extend(given)
            return render(given, *args)

        out = stdout or io.StringIO()
        with (mock.patch('sys.stdout', out),
              mock.patch('sys.stderr', io.StringIO()) as err,
              mock.patch.object(tables, 'render', recorded),
              mock.patch.dict(os.environ, environment)):
            if width:
                os.environ['COLUMNS'] = str(width)
            self.assertIn(cli_base.main(args), (0, 3), (args, err.getvalue()))
        return out.getvalue(), parts

    def faults(self, width, out, parts):
        """Yield what is cut, not there, or longer than the line."""
        whole = ' '.join(out.split())
        left_out = [name for names in LEFT_OUT.findall(whole)
                    for name in names.split(', ')]
        expected, optional = set(), pieces(*left_out)
        titles = pieces(*tables.SENTENCES)
        for part in parts:
            if not isinstance(part, tables.Table):
                expected |= pieces(getattr(part, 'text', part))
                continue
            for column, *cells in zip(part.columns, *part.rows):
                (optional if column in left_out else expected).update(
                    pieces(column, *map(shown, cells)))
        optional |= {'-', *titles}  # nothing is below a row if all are blank
        there = {piece for piece in pieces(LEFT_OUT.sub('', whole))
                 if set(piece) != {'─'}}
        # The titles of what is below a row.
        there = {title if title in titles and piece not in expected else piece
                 for piece in there for title in [piece.removesuffix(':')]}
        yield from (f'left out: {title}' for title in
                    tables.SENTENCES.intersection(left_out))
        yield from (f'cut or lost: {piece}' for piece in
                    expected - there - optional if not SECONDS(piece))
        yield from (f'part of something: {piece}' for piece in
                    there - expected - optional if not SECONDS(piece))
        if width:
            commands = {part.text for part in parts
                        if isinstance(part, tables.Line) and part.is_command}
            yield from (f'too long: {line}' for line in out.splitlines()
                        if len(line) > width and line not in commands)
        elif left_out:
            yield f'left out: {left_out}'

    def test_tables(self):
        calls = self.calls()
        self.assertEqual(
            OTHERS, test_hostile_names.commands().keys() - calls.keys())
        faults, titles = [], set()
        cloud = ('--from', self.in_folder('cloud'))
        for name, args in (
                *calls.items(),
                ('server_explain', (
                    '--then', '--full', '--journal', self.folder)),
                ('flavor_lint', ('--all', '--hosts', '--used', *cloud)),
                ('host_drain', (*HOSTS[:2], *cloud))):
            for width in (None, *WIDTHS):
                out, parts = self.run_at(width, *name.split('_'), *args)
                faults += [(name, width, fault)
                           for fault in self.faults(width, out, parts)]
                if not out or '\x1b' in out:
                    faults.append((name, width, out))
                titles.update(
                    title for part in parts if isinstance(part, tables.Table)
                    for title in part.columns)
        self.assertEqual([], faults)
        self.assertLessEqual(tables.SENTENCES, titles)

    def test_map(self):
        """Lines of the map are broken between words, not at a file's."""
        words = ('host', 'map', '--from', self.in_folder('cloud'))
        wide, _parts = self.run_at(None, *words)
        path = self.in_folder('map')
        for width in WIDTHS:
            out, _parts = self.run_at(width, *words)
            self.assertEqual(wide.split(), out.split())
            self.assertGreaterEqual(width, max(map(len, out.splitlines())))
            self.assertEqual(out, self.run_at(
                None, *words, '--max-width', str(width))[0])
            self.run_at(width, *words, '-o', path)
            with open(path) as stream:
                self.assertEqual(wide, stream.read())
        self.assertLess(WIDTHS[0], max(map(len, wide.splitlines())))
        self.assertEqual(wide, self.run_at(80, *words, '--max-width', '0')[0])

    def test_below(self):
        """Sentences without space are lines below their rows, in order."""
        text = tables.render([tables.Table(
            ('Key', 'Finding', 'Number', 'Do'), [
                ('a' * 30, 'wrong', 1, ''),
                ('b', tables.Lines(['bad', 'evil']), 22, 'change it all')],
            least_important=('Number',))], 38)
        self.assertEqual(
            ('Key                             Number',
             '──────────────────────────────────────',
             f'{"a" * 30}       1',
             '    Finding: wrong',
             'b                                   22',
             '    Finding:',
             '        bad',
             '        evil',
             '    Do: change it all'), tuple(text.splitlines()))
        self.assertEqual(
            ['Host  Verdict  Why', '──────────────────'],
            tables.render([tables.Table(
                ('Host', 'Verdict', 'Why', 'Finding', 'What to do'), [])],
                20).splitlines())

    def test_terminal(self):
        calls = self.calls()
        for name in ('flavor_lint', 'flavor_explain', 'host_list'):
            words = (*name.split('_'), *calls[name])
            plain, _parts = self.run_at(120, *words)
            out, _parts = self.run_at(120, *words, stdout=Terminal(),
                                      TERM='xterm')
            self.assertIn('\x1b[3', out)
            self.assertEqual(plain, ESCAPES.sub('', out))
            for environment in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}):
                self.assertEqual(plain, self.run_at(
                    120, *words, stdout=Terminal(), **environment)[0])
            for form in ('csv', 'json', 'yaml', 'value'):
                self.assertNotIn('\x1b', self.run_at(
                    120, *words, '-f', form, stdout=Terminal())[0])

    def test_formats_for_programs(self):
        for name, args in self.calls().items():
            _option, formats = test_hostile_names.format_option(
                test_hostile_names.commands()[name])
            if name == 'simulation_run':
                args = ('--show', 'servers', *args[2:])
            for form in {'csv', 'json', 'yaml', 'value'} & set(formats):
                words = (*name.split('_'), *args, '-f', form)
                narrow, wide = (self.run_at(width, *words)[0]
                                for width in (40, 200))
                self.assertEqual(TIMES.sub('', narrow), TIMES.sub('', wide),
                                 words)
                if form == 'csv':
                    first, *_rows = csv.reader(io.StringIO(wide))
                    self.assertEqual(len(first), len(set(first)))

    def program_calls(self):
        for name, args in self.calls().items():
            if name == 'simulation_run':
                for section in ('servers', 'hosts', 'network', 'steps'):
                    yield name, ('--show', section, *args[2:])
            elif name == 'host_show':
                continue  # has no table
            else:
                yield name, args
        cloud = ('--from', self.in_folder('cloud'))
        example = ('--from', 'telco')
        for by in ('cloud', 'aggregate', 'host'):
            yield 'capacity_list', ('--by', by, '--survive', '1', *example)
        yield 'capacity_list', ('--mix', f'{SMALL}=2,{LARGE}=1', *cloud)
        yield 'capacity_show', ('vfw.4', '--next', *example)
        yield 'cloud_defrag', ('--flavor', 'vrouter.6', '--from', 'fragmented')
        yield 'host_drain', ('compute-[13]', *example)
        yield 'host_list', ('--from', 'ports-fill-up')
        yield 'server_explain', ('fw-1', *example)
        yield 'server_explain', ('--then', '--full', '--journal', self.folder)
        yield 'simulation_run', ('--show', 'hosts', '--example', 'telco')

    def test_figures_and_ids(self):
        """A cell for programs has one number, or none: nothing is parsed.

        Next to a name is an ID, where the name is not one.
        """
        faults, without_id = set(), set()
        for name, args in self.program_calls():
            out, _parts = self.run_at(None, *name.split('_'), *args,
                                      '-f', 'csv')
            rows = csv.DictReader(io.StringIO(out))
            without_id.update(
                (name, title) for title in NAMED if title in rows.fieldnames
                and f'{title} ID' not in rows.fieldnames)
            for row in rows:
                faults.update(
                    (name, title, cell) for title, cell in row.items()
                    if title not in TEXTS | NUMBER_LISTS and FIGURE.search(
                        cell) and not FIGURE.fullmatch(cell))
        self.assertEqual((set(), WITHOUT_ID), (faults, without_id))

    def test_figures_of_a_host(self):
        for name in (HOSTS[0], 'compute-1'):
            cloud = self.in_folder('cloud') if name == HOSTS[0] else 'telco'
            words = ('host', 'show', name, '--from', cloud)
            out, _parts = self.run_at(None, *words, '-f', 'shell')
            cells = dict(word.split('=', 1) for word in shlex.split(out))
            self.assertEqual([], [
                (key, cell) for key, cell in cells.items()
                if not key.startswith('notes_')  # in sentences
                and FIGURE.search(cell) and not FIGURE.fullmatch(cell)])

    def test_columns_on_screen(self):
        """Those of the table without ``-c`` can be chosen, too."""
        for name, own, shared in (('cloud_failover', 'Stranded', 'Why'),
                                  ('server_explain', 'Verdict', 'Passed')):
            words = (*name.split('_'), *self.calls()[name], '--print-empty')
            for column in (own, own.lower(), shared):
                out, _parts = self.run_at(80, *words, '-c', column,
                                          '--sort-column', column)
                self.assertEqual(column.capitalize(), out.split()[0])

    def test_columns(self):
        for name, args in self.calls().items():
            if name == 'host_show':
                continue
            words = (*name.split('_'), *args)
            form = ('-f', 'csv')
            if name == 'simulation_run':
                words = (*words[:3], 'servers', *words[4:])
            titles = next(csv.reader(io.StringIO(
                self.run_at(None, *words, *form)[0])))
            for column, style in itertools.product(
                    (titles[0], titles[-1]),
                    (str, documents.key_of)):
                # Where live migrations lose limits, a plan has no moves.
                out, _parts = self.run_at(
                    80, *words, '--print-empty', '-c', style(column),
                    '--sort-column', style(column))
                self.assertIn(column, ' '.join(out.split()), words)
            for option in ('-c', '--sort-column'):
                self.refused('no column Colour; there are: ', *words, option,
                             titles[0], option, 'Colour')
