# SPDX-License-Identifier: Apache-2.0
"""Draw a map of hosts as an HTML page: one file with one script.

Names come from tenants: the templates escape everything that they insert.
The script only shows and hides hosts; the page's Content Security Policy has
its hash, so the browser runs nothing else.
"""

import base64
from collections.abc import Iterator
from collections.abc import Sequence
import functools
import hashlib
import itertools
import re
import typing as ty

import jinja2
import markupsafe

from nfv_sched.base import strings
from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts.map import captions
from nfv_sched.ops.answers.hosts.map import drawing
from nfv_sched.ops.answers.hosts.map import marks as map_marks
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.cloud import snapshot

_UNSAFE = re.compile(r'[^A-Za-z0-9_.-]+')

_REMOTE = ('b1r', 'B', 'outlined: a device or network of the server is near '
                       'another node')
_BLANK = '-.'  # the shape alone shows what they mean
_TAB = markupsafe.Markup(
    f'<path id="tab" d="M.5 .5h{drawing.TAB_WIDTH - 1}v'
    f'{drawing.TAB_HEIGHT - 5}a4 4 0 01-4 4H4.5a4 4 0 01-4-4z"/>')


def environment(*packages: str) -> jinja2.Environment:
    """Return an environment of templates that escape all that they insert.

    :param packages: earlier ones go first
    """
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(list(map(jinja2.PackageLoader, packages))),
        autoescape=True, finalize=_visible, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True)


def _visible(value: ty.Any) -> ty.Any:
    """Escape control characters of a text: XML cannot have them."""
    return strings.line(value) if type(value) is str else value


@functools.cache
def templates() -> jinja2.Environment:
    return environment('nfv_sched.ops.answers.hosts.map')


def render(cloud: snapshot.Cloud,
           details: Sequence[document.HostDetails]) -> Iterator[str]:
    """Yield the page, piece by piece; the hosts in the order of need."""
    return templates().get_template('page.html').generate(
        headline=captions.headline(len(details)), cloud=about(cloud),
        missing=map(str, cloud.missing), script=_script(), policy=_policy(),
        **hosts(details))


def hosts(details: Sequence[document.HostDetails]) -> dict[str, ty.Any]:
    """Return what ``hosts.html`` needs to draw hosts, in the order of need."""
    ordered = sorted(zip(_ids(details), details),
                     key=lambda pair: pair[1].order)
    return {**pictures(details), 'hosts': ordered, 'captions': captions,
            'rendering': rendering, 'odd': markupsafe.Markup(' class="odd"')}


def pictures(details: Sequence[document.HostDetails]) -> dict[str, ty.Any]:
    """Return what the templates need to draw NUMA nodes, and the key of that.

    The key has a shape, a sign and a meaning for each state of a CPU.
    """
    marks = {host.host_id: map_marks.of_host(host) for host in details}
    nodes = {host.host_id: [drawing.node(node, marks[host.host_id])
                            for node in host.numa_nodes] for host in details}
    has_others = map_marks.has_others(details)
    key = [*((f'b{kind}', '' if sign in _BLANK else sign, meaning)
             for sign, kind, meaning in map_marks.key(has_others)), _REMOTE]
    return {
        'marks': marks, 'nodes': nodes, 'key': key, 'shapes': drawing.shapes(
            itertools.chain(*nodes.values()),
            [shape for shape, _sign, _meaning in key]),
        'tab': _TAB, 'others': has_others, 'width': drawing.WIDTH,
        'bars': drawing.BAR_WIDTH}


@functools.cache
def _script() -> markupsafe.Markup:
    return markupsafe.Markup(templates().loader.get_source(
        templates(), 'filter.js')[0])


@functools.cache
def _policy() -> str:
    """Return the Content Security Policy: this script and inline styles."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest())
    return ("default-src 'none'; style-src 'unsafe-inline'; "
            f"script-src 'sha256-{digest.decode()}'; base-uri 'none'; "
            "form-action 'none'")


def about(cloud: snapshot.Cloud) -> str:
    return f'As of {cloud.taken}, from {cloud.source or "a file"}'


def _ids(details: Sequence[document.HostDetails]) -> list[str]:
    """Return an HTML ID for each host, the same in every map."""
    ids: list[str] = []
    seen: dict[str, int] = {}
    for each in details:
        name = 'host-' + (_UNSAFE.sub('-', each.host).strip('-')[:60] or '-')
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1 or _UNSAFE.search(each.host):
            name += f'~{seen[name]}'
        ids.append(name)
    return ids
