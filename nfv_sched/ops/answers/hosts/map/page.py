# SPDX-License-Identifier: Apache-2.0
"""Draw a map of hosts as an HTML page: one file with one script.

Names come from tenants: the templates escape everything that they insert.
The script only shows and hides hosts; the page's Content Security Policy has
its hash, so the browser runs nothing else.
"""

import base64
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import functools
import hashlib
import re
import typing as ty

import jinja2
import markupsafe

from nfv_sched.ops.answers.hosts import document
from nfv_sched.ops.answers.hosts.map import captions
from nfv_sched.ops.answers.hosts.map import drawing
from nfv_sched.ops.answers.hosts.map import marks as map_marks
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.cli import templates as cli_templates
from nfv_sched.ops.cloud import snapshot

_UNSAFE = re.compile(r'[^A-Za-z0-9_.-]+')

#: Sign in the key -> the shape that shows it.
_KEY_SHAPES = {'A': 'b0', 'e': 'b0', '-': 'bi', '?': 'bu', '!': 'bx',
               's': 'bs', '.': 'bf', 'n': 'bn'}
_REMOTE = ('b1r', 'B', 'outlined: a device or network of the server is near '
                       'another node')
_BLANK = '-.'  # the shape alone shows what they mean


@dataclasses.dataclass(frozen=True, slots=True)
class GuestRow:
    """A server in the list below a host."""

    label: str
    letters: str
    colour: str
    text: str
    remote: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class HostSection:
    """A host on the page."""

    id: str
    title: str
    state: str
    fit: str  #: largest fit of what is possible, as text
    used: str  #: used and all CPUs for pinned servers, as text
    part: str  #: the part of these CPUs that is used, 0 to 1, as text
    remote: int
    facts: list[str]
    #: labels, and names of what it belongs to
    groups: list[tuple[str, list[str]]]
    near: list[str]
    notes: tuple[str, ...]
    nodes: list[drawing.NodePicture]
    devices: list[str]
    guests: list[GuestRow]


@functools.cache
def templates() -> jinja2.Environment:
    """Return the environment of the templates, which escapes all text."""
    return cli_templates.environment('nfv_sched.ops.answers.hosts.map')


def render(cloud: snapshot.Cloud,
           details: Sequence[document.HostDetails]) -> Iterator[str]:
    """Yield the page, piece by piece; the hosts in the order of need."""
    return templates().get_template('page.html').generate(
        headline=captions.headline(len(details)), cloud=about(cloud),
        missing=map(str, cloud.missing), script=_script(), policy=_policy(),
        **hosts(details))


def hosts(details: Sequence[document.HostDetails]) -> dict[str, ty.Any]:
    """Return what ``hosts.html`` needs to draw hosts, in the order of need."""
    sections = [host(each, identifier) for each, identifier in sorted(
        zip(details, _ids(details)), key=lambda pair: pair[0].order)]
    nodes = [node for each in sections for node in each.nodes]
    has_others = map_marks.has_others(details)
    marks = key(has_others)
    return {
        'hosts': sections, 'key': marks, 'shapes': shapes(nodes, marks),
        'tab': tab(), 'others': has_others, 'width': drawing.WIDTH,
        'bars': drawing.BAR_WIDTH, 'odd': markupsafe.Markup(' class="odd"')}


@functools.cache
def _script() -> markupsafe.Markup:
    source, _name, _uptodate = templates().loader.get_source(
        templates(), 'filter.js')
    return markupsafe.Markup(source)


@functools.cache
def _policy() -> str:
    """Return the Content Security Policy: this script and inline styles."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest())
    return ("default-src 'none'; style-src 'unsafe-inline'; "
            f"script-src 'sha256-{digest.decode()}'; base-uri 'none'; "
            "form-action 'none'")


def about(cloud: snapshot.Cloud) -> str:
    return f'As of {cloud.taken}, from {cloud.source or "a file"}'


def key(has_others: bool) -> list[tuple[str, str, str]]:
    return [(_KEY_SHAPES[sign], '' if sign in _BLANK else sign, meaning)
            for sign, meaning in map_marks.key(has_others)] + [_REMOTE]


def shapes(nodes: Sequence[drawing.NodePicture],
           marks: Sequence[tuple[str, str, str]]) -> list:
    return drawing.shapes(nodes, [shape for shape, *_others in marks])


def tab() -> markupsafe.Markup:
    return markupsafe.Markup(
        f'<path id="tab" d="M.5 .5h{drawing.TAB_WIDTH - 1}v'
        f'{drawing.TAB_HEIGHT - 5}a4 4 0 01-4 4H4.5a4 4 0 01-4-4z"/>')


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


def host(details: document.HostDetails, identifier: str) -> HostSection:
    marks = map_marks.of_host(details)
    used, total = details.pcpus_used, details.pcpus
    return HostSection(
        id=identifier, title=details.host, state=details.state,
        fit=captions.fit(details), used=f'{used}/{total}',
        part=f'{min(used / max(total, 1), 1):.2f}',
        remote=len(details.remote), facts=list(captions.of_host(details)),
        groups=captions.groups(details), near=sorted({
            name for node in details.numa_nodes for name in node.networks}),
        notes=details.notes,
        nodes=[drawing.node(node, marks) for node in details.numa_nodes],
        devices=list(map(rendering.devices, details.devices_without_node)),
        guests=[GuestRow(each.label, marks.letters.get(each.server_id, ''),
                         marks.colours.get(each.server_id, ''),
                         captions.of_server(each), each.remote)
                for each in details.servers])
