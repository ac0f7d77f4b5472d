# SPDX-License-Identifier: Apache-2.0
"""The map as a page and as a picture: names do no harm, all is there."""

import html.parser
import re
import xml.etree.ElementTree as ElementTree

from nfv_sched.ops.hosts.map import page
from nfv_sched.ops.hosts.map import picture
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.hosts.map import maps

#: All elements that a page has.
_KNOWN = set(
    'a b bdi body defs div em g h1 h2 head html li main meta nav p path '
    'pattern rect section small strong style svg table tbody td text th '
    'thead title tr ul use'.split())
_UNCLOSED = ('li', 'td', 'meta', 'path', 'rect')
_SVG = '{http://www.w3.org/2000/svg}'


class _Page(html.parser.HTMLParser):
    """What a browser sees of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes = set(), []
        self.ids, self.links, self.text = [], [], []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes += attrs
        found = dict(attrs)
        if 'id' in found:
            self.ids.append(found['id'])
        if 'href' in found:
            self.links.append(found['href'])
        if tag not in _UNCLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _UNCLOSED:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in _UNCLOSED:
            assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


def drawn(cloud):
    return ''.join(page.render(cloud, maps.views(cloud)))


def picture_of(cloud):
    return ElementTree.fromstring(
        ''.join(picture.render(cloud, maps.views(cloud))))


class PageTest(base.TestCase):

    def seen(self, cloud):
        found = _Page(drawn(cloud))
        self.assertEqual([], found.open)
        self.assertLessEqual(found.elements, _KNOWN)
        return found

    def test_complete(self):
        """Links lead somewhere, and a name is used once."""
        found = self.seen(snapshots.generated(5, 2))
        self.assertEqual(len(found.ids), len(set(found.ids)))
        self.assertLessEqual({link[1:] for link in found.links},
                             set(found.ids))
        for number in range(1, 6):
            self.assertIn(f'#host-compute-{number}', found.links)

    def test_hostile_names(self):
        """They are text wherever they stand."""
        found = self.seen(maps.hostile())
        self.assertFalse([name for name, _value in found.attributes
                          if name.startswith('on') or name == 'src'])
        self.assertTrue(all(link.startswith('#') for link in found.links))
        self.assertEqual(len(found.ids), len(set(found.ids)))
        text = ''.join(found.text)
        self.assertEqual([], [
            name for name in (
                '<script>alert(1)</script>', '&amp;&lt;',
                '{{ 7 * 7 }}{% raw %}', 'x' * 300, ']]><!--')
            if name not in text])
        self.assertEqual(set(), set('\x1b\x00\u202e') & set(text))

    def test_nothing_from_elsewhere(self):
        """The page needs no network, and asks nobody."""
        text = drawn(snapshots.generated())
        self.assertIsNone(
            re.search(r'https?:|//|@import|url\((?!#)', text))

    def test_same_again(self):
        cloud = snapshots.generated(4)
        self.assertEqual(hash(drawn(cloud)), hash(drawn(cloud)))

    def test_worst_first(self):
        """The index is by need, the sections by name."""
        cloud = snapshots.generated(20, seed=5)
        found = self.seen(cloud)
        links = [link for link in found.links
                 if link.startswith('#host-compute')]
        self.assertEqual(
            [f'#host-{view.title}' for view in sorted(
                maps.views(cloud), key=lambda view: view.order)], links[:20])
        self.assertEqual([f'#host-{host.name}' for host in cloud.hosts],
                         links[20:])

    def test_odd(self):
        text = drawn(maps.odd())
        self.assertEqual([], [
            part for part in (
                '#bi"', '#bu"', '#bx"', 'node 0: CPU 3 taken by several',
                'CPU 18: emulated emulator', 'CPU 17: idle',
                'device 0000:01:00.0 is near node 1', 'class="odd">down')
            if part not in text])

    def test_facts(self):
        """CPUs that are not Nova's are in the map, the key and the style."""
        text = ''.join(page.render(*maps.with_facts()))
        self.assertEqual([], [
            part for part in (
                'href="#bn"', 'id="bn" class="kn"', '.kn{', '--kn:',
                '<title>CPU 4: not Nova&#39;s</title>',
                'not Nova&#39;s: in none of its sets of CPUs')
            if part not in text])
        found = _Page(text)
        self.assertEqual([], found.open)
        self.assertLessEqual(
            {link[1:] for link in found.links}, set(found.ids))

    def test_no_facts(self):
        text = drawn(maps.odd())
        self.assertEqual([], [part for part in ('kn{', 'bn"', 'not Nova')
                              if part in text])

    def test_shapes(self):
        """Each is defined once, and no other is used."""
        for cloud in (maps.odd(), snapshots.generated(threads=4)):
            found = self.seen(cloud)
            shapes = {link[1:] for link in found.links
                      if re.fullmatch(r'#[abcd].r?', link)}
            self.assertEqual(shapes, {
                name for name in found.ids
                if re.fullmatch(r'[abcd].r?', name)})

    def test_no_hosts(self):
        self.seen(snapshots.cloud())

    def test_size(self):
        """At most 10 kB for a host with 2 x 28 CPUs and 10 guests."""
        for seed in range(3):
            cloud = snapshots.generated(100, 2, 14, 2, 16, seed)
            self.assertGreater(len(cloud.servers), 9.5 * len(cloud.hosts))
            self.assertLess(len(drawn(cloud).encode()) / len(cloud.hosts),
                            10_000)

    def test_size_of_larger_hosts(self):
        """At most 2 kB for a NUMA node, and 125 bytes for a CPU."""
        for nodes, cores, threads, guests in (
                (2, 64, 2, 60), (4, 16, 2, 24), (8, 16, 2, 30), (8, 4, 1, 8)):
            cloud = snapshots.generated(5, nodes, cores, threads, guests, 0)
            self.assertLess(
                len(drawn(cloud).encode()) / len(cloud.hosts),
                nodes * (2000 + 125 * cores * threads))


class PictureTest(base.TestCase):

    def test_hostile_names(self):
        """It is XML, and has but the elements that are meant."""
        root = picture_of(maps.hostile())
        self.assertLessEqual(
            {element.tag.removeprefix(_SVG) for element in root.iter()},
            _KNOWN)
        self.assertIn('x' * 300 + ' ', ' '.join(
            element.text or '' for element in root.iter(f'{_SVG}title')))

    def test_all_hosts(self):
        """They stand one below the other, each in its card."""
        root = picture_of(snapshots.generated(5, 5))
        cards = [element for element in root if element.tag == f'{_SVG}svg']
        self.assertEqual(5, len(cards))
        end = 0.0
        for card in cards:
            self.assertGreater(float(card.get('y')), end)
            end = float(card.get('y')) + float(card.get('height'))
            for part in card.iter(f'{_SVG}svg'):
                if part is not card:
                    self.assertLess(
                        float(part.get('y')) + float(part.get('height')),
                        float(card.get('height')))
                    self.assertLess(
                        float(part.get('x')) + float(part.get('width')),
                        float(card.get('width')))
        self.assertGreater(float(root.get('height')), end)

    def test_odd(self):
        root = picture_of(maps.odd())
        text = ' '.join(root.itertext())
        for part in ('plain', 'down', 'floats', 'CPU 17: idle'):
            self.assertIn(part, text)

    def test_facts(self):
        root = ElementTree.fromstring(
            ''.join(picture.render(*maps.with_facts())))
        text = ' '.join(root.itertext())
        for part in ("CPU 4: not Nova's", '.kn{',
                     "not Nova's: in none of its sets of CPUs"):
            self.assertIn(part, text)
        self.assertNotIn(
            '.kn{', ''.join(picture_of(maps.odd()).itertext()))

    def test_no_hosts(self):
        picture_of(snapshots.cloud())
