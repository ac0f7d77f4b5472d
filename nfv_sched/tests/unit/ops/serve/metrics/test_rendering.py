# SPDX-License-Identifier: Apache-2.0
"""A cloud as metrics, and what dashboards and alarms make of them."""

import dataclasses
import json
import pathlib
import re
import shutil
import subprocess

import prometheus_client
from prometheus_client import parser
import promql_parser
import testtools
import yaml

from nfv_sched.ops.answers.audit import hosts
from nfv_sched.ops.answers.audit import values
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.journal import reading
from nfv_sched.ops.answers.plans import document
from nfv_sched.ops.answers.rebalance import levelling
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.counting import document as counting
from nfv_sched.ops.serve.metrics import rendering
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.rebalance import test_levelling

ETC = pathlib.Path(base.__file__).parents[2] / 'etc' / 'nfv_sched'
ALARMS = ETC / 'prometheus' / 'nfv-sched-alerts.yaml'
ALARMS_TEST = pathlib.Path(__file__).with_name('alerts_test.yaml')
HOSTILE = 'a"b\\c\nd{}'


def exposed(cloud, capacities=(), **more):
    """What Prometheus reads: name, labels -> figure."""
    collector = rendering.Collector(lambda: 1300.0)
    collector.collected = rendering.Collected(
        rendering.families(cloud, view.views(cloud), capacities, **more),
        1000.0, 2.5, 1)
    collector.tally = reading.Tally(
        {'nfv:a': 3}, '1970-01-01T00:15:00.500Z', {'refused': 2},
        {('Some', 'refused'): 2}, '1970-01-01T00:15:01.500Z')
    registry = prometheus_client.CollectorRegistry()
    registry.register(collector)
    text = prometheus_client.generate_latest(registry).decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples}


def named(found, name, **labels):
    return {key[1:]: value for key, value in found.items()
            if key[0] == name and labels.items() <= dict(key[1:]).items()}


def counted(name='fw', **hosts):
    """Return a count of a flavor: how many fit, and Placement grants."""
    return capacity.FlavorCapacity(snapshots.flavor(name=name), {
        host: counting.HostFit(
            host=host, host_id='', fits=fits, placement_grants=placement,
            numa_nodes=(), limits=(), used_pcpus={}, lost={})
        for host, (fits, placement) in hosts.items()})


class FamiliesTest(base.TestCase):

    def test_stranded_servers(self):
        one, two = (document.LostHost(
            host=host, host_id='', servers=3, evacuable=3 - count,
            stranded=(None,) * count, unread=())
            for host, count in (('one', 2), ('two', 0)))
        self.assertEqual(
            {(('host', 'one'),): 2, (('host', 'two'),): 0},
            named(exposed(snapshots.cloud([]), losses=[one, two]),
                  'nfv_sched_failover_stranded_servers'))

    def test_host(self):
        host = snapshots.host(
            zone='east', enabled=False, providers=(snapshot.Provider(
                uuid='1', name='compute-1', inventories={
                    'PCPU': snapshot.Inventory(total=26, used=20),
                    'MEMORY_MB': snapshot.Inventory(
                        total=1000, reserved=100, ratio=1.5, used=5),
                    'CUSTOM_X': snapshot.Inventory(total=1)}),),
            network=snapshot.HostNetwork(
                vswitch_ports=250, security_rules=17000, dhcp_servers=3))
        found = exposed(snapshots.cloud([host]))
        self.assertEqual(
            {(('host', 'compute-1'), ('state', 'disabled'),
              ('zone', 'east')): 1},
            named(found, 'nfv_sched_host_info'))
        self.assertEqual(
            {('PCPU', 'used'): 20, ('PCPU', 'free'): 6,
             ('MEMORY_MB', 'used'): 5, ('MEMORY_MB', 'free'): 1345},
            {(dict(key)['resource'], dict(key)['state']): value for key, value
             in named(found, 'nfv_sched_host_resources').items()})
        # 254 and 16384 are the limits; four ports are physical ones.
        for name, used, free in (('nfv_sched_vswitch_ports', 254, 0),
                                 ('nfv_sched_security_rules', 17000, 0)):
            self.assertEqual(
                [used, free],
                [*named(found, name, state='used').values(),
                 *named(found, name, state='free').values()])
        self.assertEqual(
            {(('host', 'compute-1'), ('kind', 'dhcp')): 3},
            named(found, 'nfv_sched_network_services'))

    def test_nodes(self):
        """What no example has: pages of the host, and devices of no node."""
        host = snapshots.host(nodes=(snapshot.Node(
            number=3, memory=4096,
            pages=(snapshot.Pages(size=4, total=0),
                   snapshot.Pages(size=2048, total=100, used=30, reserved=5))),
        ), devices=tuple(snapshot.Device(
            address=f'0000:00:00.{n}', vendor='8086', product='1515',
            kind='type-VF', node=node, status=status)
            for n, (node, status) in enumerate((
                (3, 'available'), (3, 'allocated'), (3, 'available'),
                (None, 'available'), (3, 'removed')))))
        found = exposed(snapshots.cloud([host]))
        labels = {'host': 'compute-1', 'node': '3'}
        for name, more, figure in (
                ('nfv_sched_node_pages', {'size': '2048', 'state': 'used'},
                 30),
                ('nfv_sched_node_pages', {'size': '2048', 'state': 'free'},
                 65),
                ('nfv_sched_node_pci_devices',
                 {'type': 'VF', 'state': 'free'}, 2),
                ('nfv_sched_node_pci_devices',
                 {'type': 'VF', 'state': 'used'}, 1)):
            self.assertEqual(
                [figure], list(named(found, name, **labels, **more).values()))
        self.assertEqual({}, named(found, 'nfv_sched_node_pages', size='4'))
        self.assertEqual([1], list(named(
            found, 'nfv_sched_node_pci_devices', node='unknown',
            state='free').values()))

    def test_not_too_many(self):
        """However many NUMA nodes a host has; sums stay right."""
        for count in (1, 2, 4, 8, 16, 32):
            host = snapshots.host(nodes=tuple(
                snapshot.Node(
                    number=n, dedicated=frozenset({4 * n, 4 * n + 1}),
                    memory=4096, pages=tuple(
                        snapshot.Pages(size=size, total=10)
                        for size in (4, 2048, 1048576)))
                for n in range(count)), network=snapshot.HostNetwork(
                    vswitch_ports=1, security_rules=1, dhcp_servers=1,
                    routers=1), devices=tuple(
                        snapshot.Device(
                            address=f'{n}.{kind}', vendor='1', product='2',
                            kind=kind, node=n)
                        for n in range(count)
                        for kind in ('type-PF', 'type-PCI')))
            found = exposed(snapshots.cloud([host]))
            of_host = {key: value for key, value in found.items()
                       if ('host', 'compute-1') in key}
            self.assertLessEqual(len(of_host), rendering.HOST_SERIES)
            for name, total in (('pcpus', 2), ('pages', 30),
                                ('pci_devices', 2)):
                self.assertEqual(total * count, sum(named(
                    found, f'nfv_sched_node_{name}', state='free').values()))
            self.assertEqual({2.0}, set(named(
                found, 'nfv_sched_node_largest_fit_pcpus').values()))
            if count <= 4:
                self.assertEqual({str(n) for n in range(count)}, {
                    dict(key)['node'] for key in named(
                        found, 'nfv_sched_node_pcpus')})

    def test_audit(self):
        site, = hosts.sites(snapshots.cloud([snapshots.host()]))
        found = exposed(snapshots.cloud(), findings=2 * [
            site.finding(values.PINNED_TWICE, 'a')])
        self.assertEqual(
            {(('kind', kind),): 2 if kind == values.PINNED_TWICE else 0
             for kind in values.KINDS},
            named(found, 'nfv_sched_audit_findings'))

    def test_stuck(self):
        """The agent is down, and there is no other."""
        cloud = snapshots.cloud(
            network_agents=(
                test_levelling.agent('a', *'rst', alive=False),),
            network_services=tuple(map(test_levelling.service, 'rst')))
        found = exposed(cloud, rebalance=levelling.plans(cloud))
        self.assertEqual({(('kind', 'router'),): 3},
                         named(found, 'nfv_sched_rebalance_stuck'))

    def test_cloud(self):
        found = exposed(snapshots.cloud())
        for name, figure in (
                ('nfv_sched_snapshot_age_seconds', 300),
                ('nfv_sched_snapshot_timestamp_seconds', 1000),
                ('nfv_sched_snapshot_missing', 1),
                ('nfv_sched_collection_seconds', 2.5),
                ('nfv_sched_collection_errors_total', 0),
                ('nfv_sched_latest_refusal_timestamp_seconds', 900.5)):
            self.assertEqual(figure, found[name,])
        self.assertEqual(
            3, found['nfv_sched_refusals_total', ('policy', 'nfv:a')])

    def test_hostile_names(self):
        found = exposed(
            snapshots.cloud([snapshots.host(HOSTILE, zone=HOSTILE)],
                            aggregates=(snapshot.Aggregate(name=HOSTILE),)),
            [counted(HOSTILE)])
        self.assertEqual(1, len(named(
            found, 'nfv_sched_host_info', zone=HOSTILE)))
        self.assertEqual(1, len(named(
            found, 'nfv_sched_flavor_fits', flavor=HOSTILE,
            aggregate=HOSTILE)))

    def test_no_uuids(self):
        cloud = snapshots.generated()
        uuids = {host.uuid for host in cloud.hosts} | {
            server.uuid for server in cloud.servers}
        self.assertTrue(uuids)
        text = repr(exposed(cloud))
        self.assertEqual([], [uuid for uuid in uuids if uuid in text])


#: All that is exported: name -> labels.
EXPORTED = {
    metric.name: set(metric.labels) for metric in (
        *rendering.GAUGES, rendering.SNAPSHOT_TIME, rendering.AGE,
        rendering.MISSING,
        rendering.LATEST_REFUSAL, rendering.LATEST_SHADOW, rendering.SECONDS)
} | {f'{metric.name}_total': set(metric.labels)
     for metric in (rendering.REFUSALS, rendering.SHADOW,
                    rendering.DECISIONS, rendering.ERRORS)}
EXPORTED['nfv_sched_ledger_timestamp_seconds'] = set()
EXPORTED['nfv_sched_ledger_refused_total'] = {'status'}

#: What Prometheus adds.
TARGET = {'instance', 'job'}
DOCUMENTATION = 'https://nfv-sched.example.org/'


def assert_page(test, url):
    page = url.removeprefix(DOCUMENTATION).partition('.html')[0]
    test.assertTrue((ETC.parents[1] / f'doc/source/{page}.rst').exists(), url)


def parts(expression):
    yield expression
    for name in ('expr', 'lhs', 'rhs', 'vector_selector', 'param'):
        part = getattr(expression, name, None)
        if part is not None and not isinstance(part, (str, float)):
            yield from parts(part)
    for part in getattr(expression, 'args', None) or ():
        yield from parts(part)


def unknown(text):
    """Metrics and labels of an expression that are not exported."""
    found, selected, known = [], set(), False
    nodes = list(parts(promql_parser.parse(text)))
    for node in nodes:
        if isinstance(node, promql_parser.VectorSelector):
            labels = EXPORTED.get(node.name)
            if labels is None:
                found.append(node.name)
                continue
            selected, known = selected | labels, True
            found += [f'{node.name}: {matcher.name}'
                      for matcher in node.matchers.matchers
                      if matcher.name not in labels | {'instance'}]
    for names in re.findall(
            r'\b(?:by|without|on|ignoring|group_left|group_right)\s*'
            r'\(([^)]*)\)', text):
        found += [name for name in re.split(r'[\s,]+', names)
                  if name and name not in selected | TARGET]
    if not known:
        found.append(f'no metric in {text}')
    return found


class DashboardTest(base.TestCase):

    def setUp(self):
        super().setUp()
        path, = (ETC / 'grafana').glob('*.json')
        self.dashboard = json.loads(path.read_text())
        self.panels = [
            panel for each in self.dashboard['panels']
            for panel in (each, *each.get('panels', ()))]

    def test_expressions(self):
        count = 0
        for panel in self.panels:
            for target in panel.get('targets', ()):
                count += 1
                text = target['expr']
                self.assertEqual(
                    len(re.findall(r'(nfv_sched|openstack)_\w+', text)),
                    text.count('{instance=~"$instance"'), text)
                # Grafana puts in what was chosen.
                for name in ('flavor', 'host', 'instance'):
                    text = text.replace(f'${name}', '.*')
                self.assertNotIn('$', text)
                self.assertEqual([], unknown(text), panel['title'])
                labels = set().union(*(
                    EXPORTED[node.name]
                    for node in parts(promql_parser.parse(text))
                    if isinstance(node, promql_parser.VectorSelector)))
                for label in re.findall(r'{{(\w+)}}', target['legendFormat']):
                    self.assertIn(label, labels)
        self.assertGreater(count, 20)

    def test_several_exporters(self):
        """Hosts of two may have one name, and a file may be old."""
        joins = 0
        for panel in self.panels:
            for target in panel.get('targets', ()):
                self.assertNotIn('nfv_sched_snapshot_age_seconds',
                                 target['expr'])
                for labels in re.findall(r'\bon ?\((.*?)\)', target['expr']):
                    joins += 1
                    self.assertIn('instance', labels)
        self.assertGreater(joins, 0)

    def test_variables(self):
        names = []
        for variable in self.dashboard['templating']['list']:
            names.append(variable['name'])
            if variable['type'] == 'query':
                metric, label = re.fullmatch(
                    r'label_values\((\w+)(?:{.*})?, (\w+)\)',
                    variable['query']['query']).groups()
                self.assertIn(label, EXPORTED[metric] | {'instance'})
        self.assertEqual(
            ['datasource', 'instance', 'flavor', 'host', 'docs'], names)

    def test_top_row(self):
        """What needs attention is always shown, and the rest on request."""
        shown = [panel for panel in self.dashboard['panels']
                 if panel['type'] != 'row']
        self.assertEqual(
            ['Fits', 'Full in', 'Stranded after a loss',
             'Refusals in an hour', 'Late failures in an hour', 'Findings',
             'Age of the figures', 'Age of the ledger'],
            [panel['title'] for panel in shown])
        for panel in self.panels:
            if panel in shown:
                self.assertGreater(len(panel['fieldConfig']['defaults'][
                    'thresholds']['steps']), 1)
            elif panel['type'] == 'row':
                self.assertTrue(panel['collapsed'] and panel['panels'])
            for link in panel.get('links', ()):
                assert_page(self, link['url'].replace(
                    '${docs}/', DOCUMENTATION))

    def test_forecast(self):
        """The panel shows what the alarm is about."""
        alarm, = [rule['expr'] for rule in
                  yaml.safe_load(ALARMS.read_text())['groups'][0]['rules']
                  if rule['alert'] == 'NfvSchedFlavorFullSoon']
        panel, = [panel['targets'][0]['expr'] for panel in self.panels
                  if panel['title'] == 'Full in N weeks']
        weeks = re.sub('instance=.*?,flavor=.*?,|^sort.', '', panel)
        self.assertTrue(alarm.startswith(weeks.partition(' and ')[0] + ' < 4'))
        self.assertTrue(alarm.endswith(
            ' and ' + weeks.partition(' and ')[2].removesuffix(')')))
        # This is what promtool evaluates.
        content = yaml.safe_load(ALARMS_TEST.read_text())
        self.assertTrue(ALARMS.samefile(
            ALARMS_TEST.parent / content['rule_files'][0]))
        test = content['tests'][0]
        self.assertEqual(
            {re.sub(r'\$\w+', '.*', f'round({panel}, 0.1)')},
            {each['expr'] for each in test['promql_expr_test']})


class AlarmsTest(base.TestCase):

    def test_expressions(self):
        group, = yaml.safe_load(ALARMS.read_text())['groups']
        names = [rule['alert'] for rule in group['rules']]
        self.assertEqual(len(set(names)), len(names))
        self.assertGreaterEqual(len(names), 6)
        for rule in group['rules']:
            self.assertEqual([], unknown(rule['expr']), rule['alert'])
            assert_page(self, rule['annotations']['runbook_url'])
            labels = TARGET | set().union(*(
                EXPORTED[node.name]
                for node in parts(promql_parser.parse(rule['expr']))
                if isinstance(node, promql_parser.VectorSelector)))
            text = ' '.join(rule['annotations'].values())
            for label in re.findall(r'\$labels\.(\w+)', text):
                self.assertIn(label, labels)

    @testtools.skipUnless(shutil.which('promtool'),
                          'promtool is not installed')
    def test_evaluated(self):
        process = subprocess.run(
            ['promtool', 'test', 'rules', ALARMS_TEST],
            capture_output=True, text=True)
        self.assertEqual(0, process.returncode,
                         process.stdout + process.stderr)


class MetricsTest(base.TestCase):

    def test_nothing_else_is_exported(self):
        """Of metrics and labels, so that the checks above mean something."""
        cloud = dataclasses.replace(snapshots.generated(hosts=1), aggregates=(
            snapshot.Aggregate(name='a'),))
        cloud = dataclasses.replace(cloud, network_agents=(
            test_levelling.agent('a'),))
        found = exposed(cloud, [counted(a=(1, 2))],
                        rebalance=levelling.plans(cloud))
        self.assertGreater(len(found), 30)
        for name, *labels in found:
            self.assertLessEqual(
                {key for key, _value in labels}, EXPORTED[name], name)
