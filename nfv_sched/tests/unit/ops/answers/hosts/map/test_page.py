# SPDX-License-Identifier: Apache-2.0
"""The map as a page and as a picture: names do no harm, all is there."""

import base64
import hashlib
import html
import re
import xml.etree.ElementTree as ElementTree

from nfv_sched.ops.answers.hosts.map import page
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.tests import base
from nfv_sched.tests import snapshots
from nfv_sched.tests.unit.ops.answers.hosts.map import maps
from nfv_sched.tests.unit.ops.serve.pages import seen

#: All elements that a page has.
_KNOWN = set(
    'a b bdi body defs div em g h1 h2 head html input label li main meta nav '
    'output p path pattern rect script section small strong style svg table '
    'tbody td text th thead title tr ul use'.split())
_SVG = '{http://www.w3.org/2000/svg}'


def drawn(cloud):
    return ''.join(page.render(cloud, maps.views(cloud)))


def picture_of(cloud):
    return ElementTree.fromstring(
        ''.join(page.render_picture(cloud, maps.views(cloud))))


class PageTest(base.TestCase):

    def seen(self, text):
        found = seen.SeenPage(text)
        self.assertEqual([], found.open)
        self.assertLessEqual(found.elements, _KNOWN)
        self.assertEqual(len(found.ids), len(set(found.ids)))
        self.assertLessEqual({link[1:] for link in found.links},
                             set(found.ids))
        return found

    def test_complete(self):
        found = self.seen(drawn(snapshots.generated(5, 2)))
        for number in range(1, 6):
            self.assertIn(f'#host-compute-{number}', found.links)

    def test_hostile_names(self):
        found = self.seen(drawn(maps.hostile()))
        self.assertFalse([name for name, _value in found.attributes
                          if name.startswith('on') or name == 'src'])
        self.assertTrue(all(link.startswith('#') for link in found.links))
        text = found.text
        self.assertEqual([], [
            name for name in (
                '<script>alert(1)</script>', '&amp;&lt;',
                '{{ 7 * 7 }}{% raw %}', 'x' * 300, ']]><!--')
            if name not in text])
        self.assertEqual(set(), set('\x1b\x00\u202e') & set(text))

    def test_nothing_from_elsewhere(self):
        text = drawn(snapshots.generated())
        self.assertIsNone(
            re.search(r'https?:|//|@import|url\((?!#)', text))

    def test_order(self):
        """The most scattered first, then the fullest, full ones last."""
        hosts = [snapshots.host(name, [
            snapshots.node(number, 8, 1, pinned=frozenset(range(
                number * 8 + 1, number * 8 + 1 + count)))
            for number, count in enumerate(counts)])
            for name, counts in (
                ('b-empty', (0, 0)), ('full', (7, 7)), ('less', (5, 5)),
                ('halves', (4, 4)), ('part', (6, 3)), ('one-left', (7, 6)),
                ('a-empty', (0, 0)))]
        hosts.append(snapshots.host('bare', [
            snapshots.node(0, 8, 1, shared=8)]))
        views = sorted(maps.views(snapshots.cloud(hosts[::-1])),
                       key=lambda view: view.order)
        self.assertEqual(
            ['halves', 'less', 'part', 'one-left', 'a-empty', 'b-empty',
             'full', 'bare'],
            [view.host for view in views])
        self.assertEqual(
            ['3 of 6', '2 of 4', '4 of 5', '1 of 1', '7 of 7', '7 of 7',
             'full', ''],
            [rendering.fit(view) for view in views])

    def test_policy(self):
        """The browser runs the script of the page, and no other."""
        for cloud in (maps.hostile(), snapshots.cloud()):
            text = drawn(cloud)
            (script,) = re.findall('<script>(.*?)</script>', text, re.DOTALL)
            digest = base64.b64encode(
                hashlib.sha256(script.encode()).digest()).decode()
            policy = html.unescape(re.search(
                'Content-Security-Policy" content="([^"]*)"', text)[1])
            self.assertIn(f"script-src 'sha256-{digest}';", policy)
            self.assertIn("default-src 'none';", policy)
            self.assertEqual([], [
                name for name in ('innerHTML', 'outerHTML', 'document.write',
                                  'insertAdjacentHTML', 'eval', 'Function')
                if name in script])

    def test_facts(self):
        text = ''.join(page.render(*maps.with_facts()))
        self.assertEqual([], [
            part for part in (
                'href="#bn"', 'id="bn" class="kn"', '.kn{', '--kn:',
                '<title>CPU 4: not Nova&#39;s</title>',
                'not Nova&#39;s: in none of its sets of CPUs')
            if part not in text])
        self.seen(text)

    def test_shapes(self):
        for cloud in (maps.odd(), snapshots.generated(threads=4),
                      snapshots.cloud()):
            found = self.seen(drawn(cloud))
            shapes = {link[1:] for link in found.links
                      if re.fullmatch(r'#[abcd].r?', link)}
            self.assertEqual(shapes, {
                name for name in found.ids
                if re.fullmatch(r'[abcd].r?', name)})

    def test_size(self):
        """At most 10 kB for a host with 2 x 28 CPUs and 10 guests."""
        for seed in range(3):
            plain = snapshots.generated(100, 2, 14, 2, 16, seed)
            self.assertGreater(len(plain.servers), 9.5 * len(plain.hosts))
            for cloud in (plain, maps.with_networks(plain, 6)):
                size = len(drawn(cloud).encode()) / len(cloud.hosts)
                self.assertLess(size, 10_000)


class PictureTest(base.TestCase):

    def test_hostile_names(self):
        root = picture_of(maps.hostile())
        self.assertLessEqual(
            {element.tag.removeprefix(_SVG) for element in root.iter()},
            _KNOWN)
        self.assertIn('x' * 300 + ' ', ' '.join(
            element.text or '' for element in root.iter(f'{_SVG}title')))

    def test_all_hosts(self):
        picture_of(snapshots.cloud())
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

    def test_facts(self):
        root = ElementTree.fromstring(
            ''.join(page.render_picture(*maps.with_facts())))
        text = ' '.join(root.itertext())
        for part in ("CPU 4: not Nova's", '.kn{',
                     "not Nova's: in none of its sets of CPUs"):
            self.assertIn(part, text)
        self.assertNotIn(
            '.kn{', ''.join(picture_of(maps.odd()).itertext()))
