# SPDX-License-Identifier: Apache-2.0
"""What a browser sees of a page."""

import html.parser

UNCLOSED = ('br', 'input', 'li', 'link', 'meta', 'path', 'rect', 'td')


class SeenPage(html.parser.HTMLParser):
    """The parts of a page.

    :ivar headings: element and text of each heading
    :ivar tables: rows of each table, with a text for each cell
    :ivar open: elements that are not closed
    """

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes = set(), []
        self.ids, self.links, self.headings = [], [], []
        self.tables, self.open = [], []
        self._texts = []
        self.feed(text)
        self.close()

    @property
    def text(self):
        return ''.join(self._texts)

    def table(self, *columns):
        """Rows of the table that begins with these columns, as a mapping."""
        titles, *rows = next(
            each for each in self.tables
            if each[0][:len(columns)] == list(columns))
        return [dict(zip(titles, row)) for row in rows]

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes += attrs
        values = dict(attrs)
        if 'id' in values:
            self.ids.append(values['id'])
        if 'href' in values:
            self.links.append(values['href'])
        if tag == 'table':
            self.tables.append([])
        elif tag == 'tr':
            self.tables[-1].append([])
        elif tag in ('td', 'th'):
            self.tables[-1][-1].append('')
        elif tag in ('h1', 'h2', 'h3'):
            self.headings.append((tag, ''))
        if tag not in UNCLOSED:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in UNCLOSED:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in UNCLOSED:
            assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self._texts.append(data)
        if 'tr' in self.open and self.tables[-1][-1]:
            self.tables[-1][-1][-1] += data
        if self.headings and self.headings[-1][0] in self.open:
            tag, text = self.headings[-1]
            self.headings[-1] = tag, text + data
