# SPDX-License-Identifier: Apache-2.0
"""The map of hosts in a browser: nothing overlaps, all can be read.

What is measured is what Debian's Chromium shows, without a screen.
"""

import operator

import ddt
from selenium.webdriver.common import by
from selenium.webdriver.common import keys

from nfv_sched.ops.answers.hosts.map import page
from nfv_sched.ops.answers.hosts import view
from nfv_sched.tests.browser import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.hosts.map import maps

CLOUDS = {
    'one node': snapshots.generated(3, 1, 8, 1, 5),
    'two nodes': snapshots.generated(6, 2, 14, 2, 16),
    'four nodes': snapshots.generated(4, 4, 16, 2, 24),
    'eight nodes': snapshots.generated(3, 8, 8, 4, 40),
    'many cores': snapshots.generated(2, 2, 64, 2, 60),
    'many guests': snapshots.generated(2, 2, 100, 1, 150),
    'networks': maps.with_networks(snapshots.generated(8, 2, 14, 2, 16)),
    'odd': maps.odd(),
    'hostile': maps.hostile(),
    'empty': snapshots.cloud(),
    'facts': maps.with_platform(),
    'facts on four nodes': maps.with_platform(4, 16, 3),
}
#: Name of a cloud -> facts about its machines.
FACTS = {name: maps.facts(cloud) for name, cloud in CLOUDS.items()
         if name.startswith('facts')}


class _MapTest(base.BrowserTestCase):

    def show(self, cloud, render=page.render, suffix='html', facts=None):
        path = self.folder / f'map.{suffix}'
        path.write_text(''.join(render(
            cloud, view.views(cloud, facts=facts))), encoding='utf-8')
        self.browser.get(path.as_uri())


@ddt.ddt
class PageTest(_MapTest):

    @ddt.data(*CLOUDS)
    def test_looks(self, name):
        self.look()
        self.show(CLOUDS[name], facts=FACTS.get(name))
        for width in (base.WIDE, base.NARROW):
            for scheme in ('light', 'dark'):
                what = f'{name} {width} {scheme}'
                self.look(width, scheme)
                self.shot(what)
                # Without hosts there are no pictures.
                self.assert_well(what, base.CHECKS if CLOUDS[name].hosts
                                 else base.CHECKS[:2])

    def test_schemes(self):
        self.show(CLOUDS['two nodes'])
        for scheme, media, bright in (
                ('light', 'screen', True), ('dark', 'screen', False),
                ('dark', 'print', True)):
            self.look(scheme=scheme, media=media)
            colour = self.run_script(
                'getComputedStyle(document.querySelector(".box")).fill')
            channels = [int(part) for part in
                        colour.removeprefix('rgb(')[:-1].split(',')]
            self.assertEqual(bright, min(channels) > 128, scheme)

    def test_print(self):
        for name in ('two nodes', 'eight nodes', 'odd', 'facts'):
            self.show(CLOUDS[name], facts=FACTS.get(name))
            self.look(800, 'dark', 'print')
            self.shot(f'{name} print')
            self.assert_well(f'{name} print')
            self.assertEqual('none', self.run_script(
                'getComputedStyle(document.querySelector(".up")).display'))
        self.assertGreater(len(self.browser.print_page()), 10_000)

    def test_facts(self):
        """CPUs that are not Nova's have a colour of their own."""
        for scheme, media in (('light', 'screen'), ('dark', 'screen'),
                              ('dark', 'print')):
            self.show(CLOUDS['facts'], facts=FACTS['facts'])
            self.look(scheme=scheme, media=media)
            colours = self.run_script(
                '["kn", "ks", "kf", "k0", "k1", "k2", "k3", "k4", "k5"].map('
                'name => getComputedStyle(document.querySelector('
                'name === "kf" ? ".box" : `defs .${name}`)).fill)')
            self.assertTrue(all(
                colour.startswith('rgb(') for colour in colours), colours)
            self.assertNotIn(colours[0], colours[1:])

    def test_alone(self):
        """The page asks for nothing, and has no script but its own."""
        self.show(CLOUDS['hostile'])
        self.assertEqual([1, 0], self.run_script(
            '[document.scripts.length, '
            'performance.getEntriesByType("resource").length]'))
        self.assertEqual([], self.browser.get_log('browser'))
        self.assertEqual(
            [], self.browser.find_elements(by.By.TAG_NAME, 'img'))

    def test_keyboard(self):
        self.look()
        self.show(CLOUDS['one node'])
        expected = self.run_script(
            '[...document.querySelectorAll("a, input")]'
            '.map(element => element.getAttribute("href") || element.id)')
        self.assertEqual(['#hosts', 'filter'], expected[:2])
        body = self.browser.find_element(by.By.TAG_NAME, 'body')
        body.send_keys(keys.Keys.TAB)
        found = []
        while len(found) < len(expected):
            link = self.browser.switch_to.active_element
            found.append(link.get_dom_attribute('href') or
                         link.get_dom_attribute('id'))
            self.assertFocused(link)
            link.send_keys(keys.Keys.TAB)
        self.assertEqual(expected, found)

    def test_links(self):
        self.look()
        self.show(CLOUDS['four nodes'])
        last = self.browser.find_elements(by.By.CSS_SELECTOR, 'nav a')[-1]
        name = last.text
        last.send_keys(keys.Keys.ENTER)
        top = self.run_script(
            'document.querySelector(":target").getBoundingClientRect().top')
        self.assertTrue(-1 <= top <= 900, top)
        target = self.browser.find_element(by.By.CSS_SELECTOR, ':target')
        self.assertEqual(
            name, target.find_element(by.By.TAG_NAME, 'h2').text)
        target.find_element(by.By.CSS_SELECTOR, '.up').send_keys(
            keys.Keys.ENTER)
        self.assertEqual('index', self.run_script(
            'document.querySelector(":target").id'))

    def hosts(self):
        """Names of the hosts that are seen: in the index, as sections."""
        return self.run_script(
            '["tbody a", "section h2"].map(selector => [...document'
            '.querySelectorAll(selector)].filter(element => element'
            '.checkVisibility()).map(element => element.textContent))')

    def filter(self, text):
        box = self.browser.find_element(by.By.ID, 'filter')
        box.send_keys(keys.Keys.CONTROL, 'a')
        box.send_keys(text or keys.Keys.DELETE)
        return self.run_script('document.querySelector("output").textContent')

    def test_filter(self):
        """By all names of a host, each word of what is typed."""
        cloud = CLOUDS['networks']
        self.look()
        self.show(cloud)
        everything, _sections = self.hosts()
        views = view.views(cloud)
        server = views[0].servers[0].label
        for text, matches in (
                ('compute-3', lambda host: host.host == 'compute-3'),
                (' COMPUTE-3 ', lambda host: host.host == 'compute-3'),
                ('az-1', lambda host: host.availability_zone == 'az-1'),
                ('sriov', lambda host: 'sriov' in host.aggregates),
                (server, lambda host: any(
                    server in guest.label for guest in host.servers)),
                ('provider-3', lambda host: any(
                    name == 'provider-3' for name, _physnet in host.networks)),
                ('physnet0', lambda host: True),
                ('az-2 sriov', lambda host: 'sriov' in host.aggregates and
                 host.availability_zone == 'az-2'),
                # Words of the page are not names.
                ('vCPU', lambda host: False), ('aggregates', lambda host:
                                               False)):
            status = self.filter(text)
            expected = [host.host for host in sorted(
                views, key=operator.attrgetter('order')) if matches(host)]
            self.assertEqual([expected, expected], self.hosts(), text)
            self.assertEqual(
                f'{len(expected)} of {len(views)} hosts match '
                f'"{text.strip()}"', status)
        self.assertEqual('', self.filter(''))
        self.assertEqual([everything, everything], self.hosts())

    def test_filter_looks(self):
        for width, scheme in ((base.WIDE, 'light'), (base.NARROW, 'dark')):
            self.look(width, scheme)
            self.show(CLOUDS['networks'])
            self.filter('az-1')
            self.shot(f'filter {width} {scheme}')
            self.assert_well(f'filter {width} {scheme}')
        self.look(800, 'light', 'print')
        self.assert_well('filter print')
        self.assertEqual([False, True], self.run_script(
            '["#filter", "output"].map(selector => document.querySelector('
            'selector).checkVisibility())'))

    def test_filter_hostile(self):
        """What is typed, and what names say, is text."""
        self.show(CLOUDS['hostile'])
        for name in maps.HOSTILE:
            if name.isascii() and name.isprintable() and name.strip():
                self.assertIn(f'"{name}"', self.filter(name))
                self.assertNotIn([], self.hosts())
        self.assertEqual([1, 0, []], self.run_script(
            '[document.scripts.length, document.images.length, '
            '[...document.querySelector("output").children]]'))
        self.assertEqual([], self.browser.get_log('browser'))

    def test_policy(self):
        """A script that got into the page would not be run."""
        self.show(CLOUDS['one node'])
        self.browser.execute_script("""
            const script = document.createElement('script');
            script.textContent = 'document.title = "run"';
            document.body.append(script);
            const image = document.createElement('div');
            image.setAttribute('onclick', 'document.title = "run"');
            document.body.append(image);
            image.click();""")
        self.assertEqual('Host map: 3 hosts', self.browser.title)

    def test_no_script(self):
        command = self.browser.execute_cdp_cmd
        command('Emulation.setScriptExecutionDisabled', dict(value=True))
        try:
            self.show(CLOUDS['networks'])
        finally:
            command('Emulation.setScriptExecutionDisabled',
                    dict(value=False))
        self.assertFalse(self.run_script(
            'document.querySelector(".filter").checkVisibility()'))
        self.assertEqual([8, 8], list(map(len, self.hosts())))

    def test_wide(self):
        """NUMA nodes and servers of a host share the width of the window."""
        for name, width in (
                ('two nodes', base.WIDE), ('four nodes', base.WIDE),
                ('two nodes', 1920)):
            self.look(width)
            self.show(CLOUDS[name])
            rows, right = self.run_script("""(() => {
                const nodes = [...document.querySelector('.nodes').children];
                const lists = document.querySelector('.body').children;
                return [new Set(nodes.map(node => node
                    .getBoundingClientRect().top)).size,
                    Math.max(...[...lists].map(list => list
                    .getBoundingClientRect().right))];})()""")
            self.assertEqual(1, rows, name)
            self.assertGreater(right, .95 * width, name)

    def test_many_hosts(self):
        cloud = snapshots.generated(200, 2, 14, 2, 16)
        self.look()
        self.show(cloud)
        self.assertEqual([200, 200], self.run_script(
            '[document.querySelectorAll("section").length, '
            'document.querySelectorAll("tbody tr").length]'))
        self.shot('200 hosts')
        self.assert_well('200 hosts', ('overflow',))


@ddt.ddt
class PictureTest(_MapTest):

    @ddt.data(*(name for name, cloud in CLOUDS.items() if cloud.hosts))
    def test_looks(self, name):
        self.look()
        self.show(CLOUDS[name], page.render_picture, 'svg', FACTS.get(name))
        for scheme in ('light', 'dark'):
            self.look(scheme=scheme)
            self.shot(f'{name} picture {scheme}')
            self.assert_well(f'{name} {scheme}',
                             ('overlaps', 'texts', 'contrast'))


class MeasureTest(_MapTest):
    """What is measured is seen if it is wrong."""

    def assert_seen(self, check, script, name='two nodes'):
        self.look()
        self.show(CLOUDS[name], facts=FACTS.get(name))
        self.assert_well('before', (check,))
        self.browser.execute_script(script)
        self.assertNotEqual([], self.wrong(check))

    def test_overlaps(self):
        for script in (
                'document.querySelector(".nodes svg").style.marginRight='
                '"-40px"',
                'document.querySelector("section").style.marginBottom='
                '"-40px"',
                'document.querySelector("svg.n g use:nth-child(2)")'
                '.setAttribute("x", "2")'):
            self.assert_seen('overlaps', script)

    def test_overflow(self):
        self.assert_seen('overflow', 'document.querySelector("h1").style.'
                                     'width="2000px"')

    def test_texts(self):
        self.assert_seen('texts', 'document.querySelector(".n .e")'
                                  '.textContent="x".repeat(99)')

    def test_contrast(self):
        for name, colour in (('soft', '#999'), ('ink', '#999'),
                             ('k0', '#667'), ('kn', '#667'),
                             ('accent', '#999')):
            self.assert_seen(
                'contrast', 'document.documentElement.style.setProperty('
                            f'"--{name}", "{colour}")',
                'facts' if name == 'kn' else 'two nodes')
