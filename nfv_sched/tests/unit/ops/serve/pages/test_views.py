# SPDX-License-Identifier: Apache-2.0
"""Pages show what the commands say, and names do no harm."""

import dataclasses
import functools
import json
import operator
import re

import ddt
import fixtures

from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.ops.serve.pages import html
from nfv_sched.ops.serve.pages import views
from nfv_sched.ops.serve.pages import worker
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.hosts.map import maps
from nfv_sched.tests.unit.ops.commands import base
from nfv_sched.tests.unit.ops.serve.pages import seen

#: All elements that pages have.
KNOWN = set(
    'a b bdi body br button code defs details div em footer form g h1 h2 head '
    'header html input label li link main meta nav p path pattern rect '
    'section small span strong summary svg table tbody td text th thead title '
    'tr ul use'.split())
PATHS = tuple(html.TITLES)


@functools.cache
def example(name):
    return source.load(name)


class _PagesTest(base.CommandTestCase):

    def page_of(self, cloud, path, status=200, age=60, **query):
        page = views.SnapshotPages(cloud).respond(path, query, age)
        return self.seen(page, status)

    def seen(self, page, status=200):
        self.assertEqual((status, html.TYPE), (page.status, page.content_type))
        found = seen.SeenPage(page.body.decode())
        self.assertEqual([], found.open)
        self.assertLessEqual(found.elements, KNOWN)
        self.assertEqual(len(found.ids), len(set(found.ids)))
        self.assertEqual([], [
            name for name, _value in found.attributes
            if name.startswith('on') or name == 'src'])
        self.assertEqual([], [
            link for link in found.links
            if not re.match(r'(/(?!/)|#)', link)])
        self.assertEqual(
            sum(len(table[0]) for table in found.tables),
            found.attributes.count(('scope', 'col')))
        self.assertEqual('h1', found.headings[0][0])
        self.assertNotIn('h1', [tag for tag, _ in found.headings[1:]])
        return found

    def document(self, cloud, *command):
        _code, out, _err = self.run_command(
            *command, '--from', self.save_cloud(cloud), '-f', 'json')
        return json.loads(out)


class MapTest(_PagesTest):

    def test_order(self):
        cloud = snapshots.generated(7)
        found = self.page_of(cloud, '/')
        expected = [host.host for host in sorted(
            view.views(cloud), key=operator.attrgetter('order'))]
        self.assertEqual(expected, [
            row['Host'] for row in found.table('Host')])
        self.assertEqual([('h1', 'Host map: 7 hosts'),
                          ('h2', 'Hosts, worst first'),
                          *(('h2', name) for name in expected)],
                         found.headings)

    def test_search(self):
        cloud = maps.with_networks(snapshots.generated(8, 2, 14, 2, 16))
        for query, matches in (
                ({'q': ' COMPUTE-3 '}, lambda host: host.name == 'compute-3'),
                ({'q': 'az-2 sriov'}, lambda host: host.zone == 'az-2' and
                 'sriov' in host.aggregates),
                ({'q': 'no such'}, lambda host: False),
                ({'host': 'compute-3'},
                 lambda host: host.name == 'compute-3')):
            found = self.page_of(cloud, '/', **query)
            self.assertEqual(
                {host.name for host in cloud.hosts if matches(host)},
                {row['Host'] for row in found.table('Host')}, query)

    def test_parts(self):
        cloud = snapshots.generated(120, 1, 4, 1, 1)
        site = views.SnapshotPages(cloud)
        names, number = [], 0
        query = {}
        while query is not None:
            found = self.seen(site.respond('/', query, 0))
            rows = found.table('Host')
            self.assertLessEqual(len(rows), 50)
            names += [row['Host'] for row in rows]
            number += 1
            self.assertIn('of 120', found.text)
            links = [link for link in found.links
                     if link == f'/?page={number + 1}']
            query = {'page': str(number + 1)} if links else None
        self.assertEqual(3, number)
        self.assertEqual(sorted(host.name for host in cloud.hosts),
                         sorted(names))


class CapacityTest(_PagesTest):

    def test_flavors(self):
        cloud = example('two-hosts')
        found = self.page_of(cloud, '/capacity')
        document = self.document(cloud, 'capacity', 'list')
        self.assertEqual(
            [(each['flavor'], str(each['fits']),
              str(each['placement_grants']), str(each['hosts_with_capacity']))
             for each in document['capacities']],
            [(row['Flavor'], row['Fits'], row['Placement capacity'],
              row['Hosts with capacity']) for row in found.table('Flavor')])
        self.assertIn('/capacity?show=strict', found.links)
        self.assertFalse([row for row in found.table('Flavor') if '{' in row[
            'Lost capacity by cause']])

    def test_hosts(self):
        cloud = example('two-hosts')
        found = self.page_of(cloud, '/capacity', show='strict')
        document = self.document(cloud, 'capacity', 'show', 'strict')
        self.assertEqual(
            [(each['host'], str(each['fits'])) for each in document['hosts']],
            [(row['Host'], row['Fits']) for row in found.table('Host')])

    def test_lack_of_time(self):
        """Flavors that were not counted are named, and counted later."""
        self.useFixture(fixtures.MockPatchObject(
            views, 'CALCULATION_SECONDS', -1.0))
        site = views.SnapshotPages(example('two-hosts'))
        for number in (1, 2, 3, 4):
            found = self.seen(site.respond('/capacity', {}, 0))
            self.assertEqual(number, len(found.table('Flavor')))
            self.assertEqual(number < 4, 'Not counted yet' in found.text)
        self.assertNotIn('prefer.three.', found.text)

    def test_counted_once(self):
        site = views.SnapshotPages(example('two-hosts'))
        first = site.respond('/capacity', {}, 60)
        self.useFixture(fixtures.MockPatchObject(
            views.capacity, 'counting_on', None))
        self.assertEqual(first, site.respond('/capacity', {}, 60))


class ServersTest(_PagesTest):

    def test_list(self):
        cloud = example('two-hosts')
        for text, matches in (('', lambda server: True),
                              ('error', lambda server: server.host is None),
                              ('STRICT west', lambda server:
                               server.host == 'west')):
            found = self.page_of(cloud, '/servers', q=text)
            rows = found.table('Server')
            self.assertEqual(
                {server.uuid for server in cloud.servers if matches(server)},
                {row['UUID'] for row in rows}, text)
            self.assertEqual(
                [row['Host'] != '-' for row in rows],
                sorted(row['Host'] != '-' for row in rows))

    def test_explanation(self):
        cloud = example('two-hosts')
        for server in cloud.servers:
            found = self.page_of(cloud, f'/servers/{server.uuid}')
            document = self.document(cloud, 'server', 'explain', server.uuid)
            self.assertEqual(
                document['fits'], 'It fits.' in found.text, server.name)
            rows = {row['Host'].removesuffix(' *'): row['Verdict']
                    for row in found.table('Host', 'Verdict')}
            self.assertEqual(
                {each['host']: each['passes'] for each in document['hosts']},
                {name: verdict.startswith('passes')
                 for name, verdict in rows.items()})
            self.assertEqual(
                [each['text'] for each in document['changes']][:10],
                [row['It would fit if'] for row in found.table(
                    'It would fit if')] if document['changes'] else [])

    def test_explained_once(self):
        cloud = example('two-hosts')
        site = views.SnapshotPages(cloud)
        path = f'/servers/{cloud.servers[0].uuid}'
        first = site.respond(path, {}, 60)
        self.useFixture(fixtures.MockPatchObject(views.start, 'started', None))
        self.assertEqual(first, site.respond(path, {}, 60))

    def test_by_name(self):
        """The command has the UUID, as a name is the tenant's."""
        cloud = example('two-hosts')
        server = cloud.servers[0]
        found = self.page_of(cloud, f'/servers/{server.name}')
        self.assertIn(f'nfv-sched server explain {server.uuid}', found.text)

    def test_unknown(self):
        for name in ('nobody', '', '%00', '%3Cscript%3E', 'a/b'):
            found = self.page_of(example('two-hosts'), f'/servers/{name}', 404)
            self.assertIn('no server named', found.text)


class AuditTest(_PagesTest):

    def cloud(self):
        """A CPU has two guests, and a server is gone."""
        return snapshots.cloud([snapshots.host(nodes=[snapshots.node(
            0, 8, pinned=frozenset([3, 4]))])], [
            snapshots.server('one', {0: [3]}),
            snapshots.server('two', {0: [3]})])

    def test_findings(self):
        cloud = self.cloud()
        found = self.page_of(cloud, '/audit')
        document = self.document(cloud, 'cloud', 'audit')
        self.assertGreater(len(document['findings']), 1)
        self.assertEqual(
            [(each['host'], each['kind'], each['finding'],
              each['what_to_do']) for each in document['findings']],
            [(row['Host'], row['Kind'], row['Finding'], row['What to do'])
             for row in found.table('Host', 'Server', 'Kind')])
        self.assertIn(
            f'/servers/{document["findings"][0]["server_id"]}', found.links)

    def test_kind(self):
        document = self.document(self.cloud(), 'cloud', 'audit')
        kind = document['findings'][0]['kind']
        found = self.page_of(self.cloud(), '/audit', kind=kind)
        self.assertEqual({kind}, {
            row['Kind'] for row in found.table('Host', 'Server', 'Kind')})
        self.page_of(self.cloud(), '/audit', 404, kind='unknown')

    def test_unread(self):
        """An old snapshot does not say what it lacks."""
        cloud = dataclasses.replace(
            self.cloud(), missing=snapshots.missing('something'))
        found = self.page_of(cloud, '/audit')
        self.assertIn('no host can be checked', found.text)


class AgentsTest(_PagesTest):

    def test_moves(self):
        cloud = example('network-nodes')
        found = self.page_of(cloud, '/agents')
        document = self.document(cloud, 'agent', 'rebalance')
        self.assertGreater(len(document['moves']), 0)
        self.assertEqual(
            [(str(each['move']), each['source'], each['destination'])
             for each in document['moves']],
            [(row['Move'], row['From'], row['To'])
             for row in found.table('Move')])
        self.assertEqual(
            [(each['host'], plan['kind'], str(each['services']),
              str(each['services_after'])) for plan in document['plans']
             for each in plan['agents']],
            [(row['Host'], row['Kind'], row['Services'],
              row['Services after']) for row in found.table('Host', 'Kind')])

    def test_lack_of_time(self):
        self.useFixture(fixtures.MockPatchObject(
            views, 'CALCULATION_SECONDS', -1.0))
        found = self.page_of(example('network-nodes'), '/agents')
        self.assertGreater(len(found.table('Move')), 0)

    def test_unread(self):
        found = self.page_of(snapshots.cloud(), '/agents')
        self.assertIn('the agents of Neutron are not known', found.text)


@ddt.ddt
class AllPagesTest(_PagesTest):

    def test_answers(self):
        site = views.SnapshotPages(example('telco'), 'east')
        for path, query, *words in (
                ('/failover', {}, 'cloud', 'failover'),
                ('/flavors', {}, 'flavor', 'lint', '--all', '--hosts'),
                ('/drain', {'show': 'compute-1'}, 'host', 'drain',
                 '--seconds=5', '--', 'compute-1')):
            found = self.seen(site.respond(path, query, 0))
            _code, out, _err = self.run_command(
                *words[:2], '--from', 'telco', *words[2:])
            for text in ('east: ', out.partition('\n')[0],
                         f'nfv-sched {" ".join(words)}'):
                self.assertIn(text, found.text)
        self.assertIn('/drain?show=compute-1', self.seen(
            site.respond('/drain', {}, 0)).links)
        # Emptying all hosts takes long.
        self.assertEqual(404, site.respond('/drain', {'show': '*'}, 0).status)

    @ddt.data(*PATHS)
    def test_frame(self, path):
        cloud = dataclasses.replace(
            example('two-hosts'), source='the cloud', missing=tuple([
                snapshot.Missing(kind=snapshot.MissingKind.NEUTRON,
                                 text=f'part {number}')
                for number in range(15)]))
        found = self.page_of(cloud, path, age=125)
        self.assertIn('from the cloud (2 minutes ago)', found.text)
        for each in cloud.missing:
            self.assertIn(str(each), found.text)
        self.assertLessEqual({*PATHS, html.STYLESHEET}, {*found.links})
        self.assertIn(('aria-current', 'page'), found.attributes)
        self.assertNotIn(('class', 'old'), found.attributes)
        found = self.page_of(cloud, path, age=7201)
        self.assertIn(('class', 'old'), found.attributes)

    @ddt.data(*PATHS)
    def test_hostile_names(self, path):
        cloud = maps.hostile()
        page = views.SnapshotPages(cloud).respond(path, {}, 0)
        found = self.seen(page, page.status)
        self.assertEqual(set(), set('\x1b\x00\u202e') & set(found.text))
        self.assertIn('<script>alert(1)</script>', found.text)

    @ddt.data(*maps.HOSTILE)
    def test_hostile_server(self, name):
        two = example('two-hosts')
        cloud = dataclasses.replace(two, servers=tuple(
            dataclasses.replace(server, name=name)
            for server in two.servers))
        for path in ('/servers', f'/servers/{cloud.servers[0].uuid}'):
            found = self.page_of(cloud, path)
            if name.isascii() and name.isprintable():
                self.assertIn(name, found.text)
            self.assertEqual(set(), set('\x1b\x00\u202e') & set(found.text))
        network = example('network-nodes')
        cloud = dataclasses.replace(network, network_services=tuple(
            dataclasses.replace(each, name=name)
            for each in network.network_services))
        found = self.page_of(cloud, '/agents')
        self.assertEqual(set(), set('\x1b\x00\u202e') & set(found.text))

    def test_command_of_a_flavor(self):
        two = example('two-hosts')
        flavor = dataclasses.replace(two.flavors[0], name='-x; `id` large')
        cloud = dataclasses.replace(two, flavors=(flavor,))
        found = self.page_of(cloud, '/capacity', show=flavor.name)
        self.assertIn("nfv-sched capacity show -- '-x; `id` large'",
                      found.text)

    @ddt.data(*maps.HOSTILE, '9' * 500, '-1', '\u0663', '[', '\udcff')
    def test_hostile_queries(self, text):
        site = views.SnapshotPages(example('two-hosts'))
        for path in PATHS:
            for key in ('q', 'page', 'host', 'flavor', 'show', 'kind'):
                page = site.respond(path, {key: text}, 0)
                self.assertIn(page.status, (200, 404))
                found = self.seen(page, page.status)
                self.assertEqual(
                    set(), set('\x1b\x00\u202e') & set(found.text))

    def test_headers(self):
        for path in (*PATHS, '/servers/x'):
            page = views.SnapshotPages(example('two-hosts')).respond(
                path, {}, 0)
            policy = page.headers['Content-Security-Policy']
            self.assertIn("default-src 'none'", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertNotIn('script', policy)

    def test_no_page(self):
        for path in ('', '/x', '/pages', '/audit/', '//', '/../etc/passwd'):
            self.assertFalse(worker.is_page(path))

    def test_unusable(self):
        two = example('two-hosts')
        options = {**two.options, 'filter_scheduler': {
            **two.options['filter_scheduler'],
            'enabled_filters': ['NoSuchFilter']}}
        cloud = dataclasses.replace(two, options=options)
        found = self.page_of(cloud, '/capacity', 500)
        self.assertIn('NoSuchFilter', found.text)
        self.page_of(cloud, '/')

    def test_several_nodes(self):
        """Only one compute node of a service is simulated."""
        hosts = [snapshots.host('ironic', uuid=snapshots.uuid_of(
            'host', str(number)), hypervisor=f'node-{number}')
            for number in range(2)]
        found = self.page_of(snapshots.cloud(hosts), '/capacity')
        self.assertIn('only the first is looked at', found.text)

    def test_stylesheet(self):
        page = html.stylesheet()
        self.assertEqual('text/css; charset=utf-8', page.content_type)
        text = page.body.decode()
        self.assertIn('prefers-color-scheme:dark', text)
        self.assertNotIn('{{', text)
        self.assertIsNone(re.search(r'https?:|@import|url\((?!#)', text))
