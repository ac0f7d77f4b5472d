# SPDX-License-Identifier: Apache-2.0
"""The pages of a snapshot in a browser: they can be read and used.

With keys alone, in dark colours, on a narrow screen and without scripts.
"""

import dataclasses
import functools
import threading
import urllib.parse

import ddt
from selenium.webdriver.common import by
from selenium.webdriver.common import keys
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support import wait

from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import source
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve.pages import html
from nfv_sched.ops.serve.pages import views
from nfv_sched.tests.browser import base
from nfv_sched.tests import http_server
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.hosts.map import maps

_MIDDLE = 500  # pixels
_CHECKS = ('overlaps', 'overflow', 'contrast')
_LONG = 'x' * 255


def _hostile():
    """A cloud that can be simulated, whose names want to do harm."""
    two, network = map(source.load, ('two-hosts', 'network-nodes'))
    names = [*maps.HOSTILE, _LONG]
    return dataclasses.replace(
        two, missing=snapshots.missing(*names), servers=tuple(
            dataclasses.replace(
                server, name=names[index % len(names)])
            for index, server in enumerate(two.servers * 4)),
        network_agents=network.network_agents, network_services=tuple(
            dataclasses.replace(service, name=names[index % len(names)])
            for index, service in enumerate(network.network_services)))


def _missing():
    return dataclasses.replace(
        source.load('two-hosts'), missing=tuple([snapshot.Missing(
            kind=snapshot.MissingKind.NEUTRON, text=f'{number} {_LONG}')
            for number in range(30)]))


#: Name -> function that returns the cloud.
CLOUDS = {
    'two hosts': lambda: source.load('two-hosts'),
    'network nodes': lambda: source.load('network-nodes'),
    'many': lambda: maps.with_networks(snapshots.generated(120)),
    'odd': maps.odd,
    'hostile': _hostile,
    'missing': _missing,
    'empty': snapshots.cloud,
}


@functools.cache
def site(name):
    return views.SnapshotPages(CLOUDS[name]())


class _Handler(http_server.Handler):
    name = ''
    lock = threading.Lock()

    def do_GET(self):
        path, _mark, query = self.path.partition('?')
        with self.lock:
            page = (html.stylesheet() if path == html.STYLESHEET
                    else site(self.name).respond(
                        path, dict(urllib.parse.parse_qsl(query)), 4000))
        if page is None:
            page = server.Answer(404)
        self.send_response(page.status)
        for key, value in {
                'Content-Type': page.content_type,
                'Content-Length': str(len(page.body)),
                **page.headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(page.body)


class _SiteTest(base.BrowserTestCase):

    def setUp(self):
        super().setUp()
        self.server = http_server.LocalServer(_Handler)
        self.server.start()
        self.addCleanup(self.server.stop)

    def open(self, name, path='/'):
        _Handler.name = name
        self.browser.get(self.server.url + path)

    def column(self, number=1):
        """Cells of a column of the last table."""
        return self.run_script(
            '[...[...document.querySelectorAll("table")].at(-1)'
            f'.querySelectorAll("tbody tr > :nth-child({number})")]'
            '.map(cell => cell.textContent)')

    def find(self, selector):
        return self.browser.find_element(by.By.CSS_SELECTOR, selector)

    def go(self, selector, text=''):
        """Type something into an element, and follow where it leads."""
        before = self.find('html')
        self.find(selector).send_keys(text, keys.Keys.ENTER)
        wait.WebDriverWait(self.browser, 60).until(
            expected_conditions.staleness_of(before))

    def tabbed(self, count):
        """Press the tab key, and return what gets the focus each time."""
        self.find('body').send_keys(keys.Keys.TAB)
        elements = []
        while len(elements) < count:
            element = self.browser.switch_to.active_element
            elements.append(element)
            self.assertFocused(element)
            element.send_keys(keys.Keys.TAB)
        return elements


@ddt.ddt
class SitePagesTest(_SiteTest):

    def paths(self, name):
        cloud = CLOUDS[name]()
        return (*html.TITLES, '/servers/nobody',
                *(f'/servers/{server.uuid}' for server in cloud.servers[:2]),
                *(f'/capacity?show={flavor.name}'
                  for flavor in cloud.flavors[:1]))

    @ddt.data(*CLOUDS)
    def test_looks(self, name):
        for path in self.paths(name):
            self.look()
            self.open(name, path)
            for width, scheme in ((base.WIDE, 'light'), (_MIDDLE, 'dark'),
                                  (base.NARROW, 'light'),
                                  (base.WIDE, 'dark')):
                what = f'{name} {path} {width} {scheme}'
                self.look(width, scheme)
                self.shot(f'page {what}'.replace('/', '_'))
                self.assert_well(what, _CHECKS)

    def test_print(self):
        """On paper there are no links to other pages, in light colours."""
        for path in html.TITLES:
            self.open('two hosts', path)
            self.look(800, 'dark', 'print')
            self.shot(f'page print {path}'.replace('/', '_'))
            self.assert_well(path, _CHECKS)
            self.assertFalse(self.find('.site').is_displayed())

    def test_narrow(self):
        """Each cell has a line of its own, with the title of its column."""
        self.look(_MIDDLE)
        for path in ('/servers', '/capacity?show=strict'):
            self.open('two hosts', path)
            self.shot(f'page narrow {path}'.replace('/', '_'))
            titles = self.run_script(
                '[...document.querySelectorAll("thead th")]'
                '.map(title => `"${title.textContent}"`)')
            cells = self.run_script(
                '[...document.querySelector("tbody tr").children].map('
                'cell => [getComputedStyle(cell, "::before").content, '
                'cell.getBoundingClientRect().height < 200, '
                'cell.getBoundingClientRect().width > 400])')
            self.assertEqual([[title, True, True] for title in titles], cells)

    @ddt.data(*html.TITLES, '/servers/nobody')
    def test_keyboard(self, path):
        self.look()
        self.open('two hosts', path)
        expected = self.run_script(
            '[...document.querySelectorAll("a, input, button, summary")]')
        self.assertEqual(expected, self.tabbed(len(expected)))

    def test_skip(self):
        """The first link leads past the others."""
        self.look()
        for path, target in (('/', 'hosts'), ('/servers', 'content')):
            self.open('two hosts', path)
            skip, = self.tabbed(1)
            skip.send_keys(keys.Keys.ENTER)
            self.assertEqual(target, self.run_script(
                'document.querySelector(":target").id'))
            self.browser.switch_to.active_element.send_keys(keys.Keys.TAB)
            self.assertTrue(self.run_script(
                f'document.getElementById("{target}")'
                '.contains(document.activeElement)'), path)

    def test_no_script(self):
        command = self.browser.execute_cdp_cmd
        command('Emulation.setScriptExecutionDisabled', dict(value=True))
        self.addCleanup(command, 'Emulation.setScriptExecutionDisabled',
                        dict(value=False))
        self.open('two hosts', '/servers')
        self.assertEqual(5, len(self.column()))
        self.go('#q', 'wide')
        self.assertEqual(['wide'], self.column())
        self.assertEqual('wide', self.find('#q').get_attribute('value'))
        self.go('tbody th a')
        self.assertIn('It does not fit.', self.find('main').text)
        self.go('.site li:nth-child(2) a')
        self.assertEqual(['strict', 'prefer', 'strict.two-nodes',
                          'prefer.three'], self.column())
        self.go('tbody th a')
        self.assertEqual({'east', 'west'}, set(self.column()))
        self.go('tbody th a')
        self.assertEqual(1, len(self.column()))
        self.assertTrue(self.find('svg.n').is_displayed())

    def test_hostile(self):
        """Names, and what is searched for, are text; nothing is asked for."""
        self.look()
        for path in self.paths('hostile'):
            self.open('hostile', path)
            self.assertEqual([0, 0, 1], self.run_script(
                '[document.scripts.length, document.images.length, '
                'performance.getEntriesByType("resource").length]'))
        self.open('two hosts', '/servers')
        for name in maps.HOSTILE:
            if name.isascii() and name.isprintable() and name.strip():
                self.find('#q').clear()
                self.go('#q', name)
                self.assertEqual(
                    name[:200], self.find('#q').get_attribute('value'))
                self.assertEqual(0, self.run_script(
                    'document.scripts.length'))
        self.assertEqual([], [
            each for each in self.browser.get_log('browser')
            if 'Security' in each['message']])

    def test_policy(self):
        """A script or a style that got into a page would not count."""
        self.open('two hosts', '/audit')
        self.browser.get_log('browser')  # of pages before
        self.browser.execute_script("""
            for (const kind of ['script', 'style']) {
                const part = document.createElement(kind);
                part.textContent = kind === 'script' ?
                    'document.title = "run"' : 'h1 { display: none }';
                document.body.append(part);
            }
            const part = document.createElement('div');
            part.setAttribute('onclick', 'document.title = "run"');
            document.body.append(part);
            part.click();""")
        self.assertEqual('Audit - nfv-sched', self.browser.title)
        self.assertTrue(self.find('h1').is_displayed())
        self.assertEqual(
            3, len(self.browser.get_log('browser')))
