# SPDX-License-Identifier: Apache-2.0
"""Write an HTML page with its headers.

The templates escape everything that they insert: names come from tenants. The
Content Security Policy allows no script at all, and styles only from here.
"""

from collections.abc import Mapping
import dataclasses
import functools
import http
import typing as ty

import jinja2

from nfv_sched.ops.answers.hosts.map import page as host_map
from nfv_sched.ops.cli import tables
from nfv_sched.ops.serve.metrics import server

TYPE = 'text/html; charset=utf-8'
STYLESHEET = '/pages.css'

# Longest word that has a column's width; a UUID has 36.
_LONG = 40

#: Path -> title of each page that all others link to.
TITLES: Mapping[str, str] = {
    '/': 'Hosts', '/capacity': 'Capacity', '/servers': 'Servers',
    '/flavors': 'Flavors', '/failover': 'Failover', '/drain': 'Drain',
    '/audit': 'Audit', '/agents': 'Agents'}

#: Headers of pages that differ from those of other answers.  The bars in the
#: table of hosts need a style attribute each.
HEADERS: Mapping[str, str] = {
    'Content-Security-Policy': (
        "default-src 'none'; style-src 'self'; "
        "style-src-attr 'unsafe-inline'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'")}


@dataclasses.dataclass(frozen=True, slots=True)
class PageLink:
    text: str
    href: str

    def __str__(self) -> str:
        return self.text


@functools.cache
def templates() -> jinja2.Environment:
    environment = host_map.environment(
        'nfv_sched.ops.serve.pages', 'nfv_sched.ops.answers.hosts.map')
    environment.filters.update(lines=tables.cell_lines, numeric=numeric)
    environment.tests.update(
        link=lambda cell: isinstance(cell, PageLink), long=lambda lines: any(
            len(word) > _LONG for line in lines for word in line.split()),
        short=lambda lines: all(len(line) <= _LONG for line in lines),
        table=lambda part: isinstance(part, tables.Table),
        line=lambda part: isinstance(part, tables.Line))
    return environment


def numeric(table: tables.Table) -> list[bool]:
    return [tables.are_numeric([tables.cell_lines(row[number])
                                for row in table.rows])
            for number in range(len(table.columns))]


def page(template: str, status: int = http.HTTPStatus.OK,
         headers: Mapping[str, str] = HEADERS,
         **content: ty.Any) -> server.Answer:
    text = templates().get_template(template).render(
        titles=TITLES, stylesheet=STYLESHEET, **content)
    return server.Answer(
        status, TYPE, text.encode(errors='backslashreplace'), headers)


def message(status: http.HTTPStatus, text: str,
            again: int | None = None) -> server.Answer:
    """Return a page that only says something.

    :param again: seconds after which the browser is to ask again
    """
    headers = dict(HEADERS)
    if again is not None:
        headers |= {'Retry-After': str(again), 'Refresh': str(again)}
    return page(
        'message.html', status, headers, current='', text=text,
        title=status.phrase if again is None else 'Please wait')


@functools.cache
def stylesheet() -> server.Answer:
    text = '\n'.join(
        templates().get_template(name).render(others=True)
        for name in ('colours.css', 'page.css', 'pages.css'))
    return server.Answer(
        http.HTTPStatus.OK, 'text/css; charset=utf-8', text.encode(),
        {**HEADERS, 'Cache-Control': 'private, max-age=300'})
