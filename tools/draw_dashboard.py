# SPDX-License-Identifier: Apache-2.0
"""Draw the dashboard as Grafana arranges it, from its JSON and metrics.

The part without rows, and one row opened.  Grafana's own pictures would need
Grafana and Prometheus; this one needs only metrics of the present, to which
:data:`PAST` adds an invented past.
"""

from collections.abc import Callable, Iterator, Mapping
import html
import json
import math
import pathlib
import typing as ty

from prometheus_client import parser

DASHBOARD = (pathlib.Path(__file__).resolve().parents[1] / 'etc' / 'nfv_sched'
             / 'grafana' / 'nfv-sched.json')
#: The row that is opened.
OPEN = 'Free by flavor'
#: Flavor -> how many more fitted: two weeks ago, and every 3 hours of a day.
PAST = {
    'dns.2': (3, 1, 1, 1, 1, 0, 0, 0, 0, 0),
    'pgw.6': (2, 1, 1, 1, 1, 1, 1, 0, 0, 0),
    'vfw.4': (3, 2, 2, 2, 2, 1, 1, 1, 0, 0),
    'vrouter.8': (1, 0, 0, 0, 0, 0, 0, 0, 0, 0)}
#: Figures of a cloud that is in use, which an example does not have.
IN_USE = {'Refusals in an hour': 2, 'Late failures in an hour': 0,
          'Age of the figures': 140, 'Age of the ledger': 20}

#: Pixels: of the page, a cell of Grafana's grid of 24 columns, and a gap.
WIDTH, CELL, GAP = 1264, 38, 8
STYLE = """\
:root{color-scheme:light dark;--page:#f4f5f5;--panel:#fff;--ink:#24292e;
--soft:#585d62;--line:#d5d9de;--red:#c4162a;--yellow:#8a6100;--green:#22702d;
--p0:#22702d;--p1:#8a6100;--p2:#1f60c4;--p3:#c4162a}
@media screen and (prefers-color-scheme:dark){:root{--page:#111217;
--panel:#181b1f;--ink:#ccccdc;--soft:#a0a1ab;--line:#34373c;--red:#f2495c;
--yellow:#fade2a;--green:#73bf69;--p0:#73bf69;--p1:#fade2a;--p2:#8ab8ff;
--p3:#ff7383}}
text{fill:var(--ink);font:12px system-ui,"DejaVu Sans",sans-serif}
.page{fill:var(--page)}.panel{fill:var(--panel);stroke:var(--line)}
.h{font-weight:500}.s{font-size:11px}.r{font-weight:500;font-size:15px}
.soft{fill:var(--soft)}.end{text-anchor:end}.grid{stroke:var(--line)}
.v{font-size:25px;font-weight:500;text-anchor:middle}
.track{fill:var(--page)}.line{fill:none;stroke-width:1.5}
.red{fill:var(--red)}.yellow{fill:var(--yellow)}.green{fill:var(--green)}
"""

#: Legend -> values, the latest last.
Series = Mapping[str, list[float]]


def figures(metrics: str) -> Callable[[str, str], Series]:
    """Return a function of a panel's title and type, by metrics as text."""
    samples = [sample for family in parser.text_string_to_metric_families(
        metrics) for sample in family.samples]

    def by(name: str, label: str, **labels: str) -> dict[str, float]:
        return {each.labels[label]: each.value for each in samples
                if each.name == f'nfv_sched_{name}'
                and labels.items() <= each.labels.items()}

    servers = by('flavor_servers', 'flavor')
    fits = {flavor: fit for flavor, fit
            in by('flavor_fits', 'flavor', aggregate='').items()
            if fit or servers[flavor]}
    weeks = {flavor: 2 * fit / PAST[flavor][0] for flavor, fit in fits.items()}
    numbers = {
        'Fits': min(fits.values()), 'Full in': min(weeks.values()),
        'Stranded after a loss': max(by(
            'failover_stranded_servers', 'host').values()),
        'Findings': sum(by('audit_findings', 'kind').values()), **IN_USE}
    series = {
        ('Servers that fit', 'bargauge'): {
            flavor: [fits[flavor]] for flavor
            in sorted(fits, key=fits.__getitem__, reverse=True)},
        ('Servers that fit', 'timeseries'): {
            flavor: [fit + more for more in PAST[flavor][1:]]
            for flavor, fit in fits.items()},
        ('Full in N weeks', 'bargauge'): {
            flavor: [weeks[flavor]]
            for flavor in sorted(weeks, key=weeks.__getitem__)},
        ('Servers of each flavor', 'timeseries'): {
            flavor: [servers[flavor] - more for more in PAST[flavor][1:]]
            for flavor in fits},
        **{(title, 'stat'): {'': [number]}
           for title, number in numbers.items()}}
    return lambda title, kind: series[title, kind]


def draw(metrics: str) -> str:
    """Return the picture, an SVG that follows the reader's color scheme."""
    find = figures(metrics)
    drawn, y = [], 0
    for panel in json.loads(DASHBOARD.read_text())['panels']:
        if panel['type'] != 'row':
            drawn += _panel(panel, y, find)
            continue
        # Grafana moves what is below a row when it is opened.
        y = y or panel['gridPos']['y'] * CELL
        is_open = panel['title'] == OPEN
        drawn.append(f'<text class="r" x="{GAP + 4}" y="{y + 24}">'
                     f'{"&#9662;" if is_open else "&#9656;"} '
                     f'{html.escape(panel["title"])}</text>')
        y += CELL
        if is_open:
            top = panel['gridPos']['y'] + 1
            for each in panel['panels']:
                drawn += _panel(each, y - top * CELL, find)
            y += CELL * max(each['gridPos']['y'] + each['gridPos']['h'] - top
                            for each in panel['panels'])
    return '\n'.join((
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
        f'height="{y + GAP}" viewBox="0 0 {WIDTH} {y + GAP}" role="img">',
        '<title>The dashboard of nfv-sched</title>',
        f'<style>\n{STYLE}</style>',
        f'<rect class="page" width="{WIDTH}" height="{y + GAP}"/>',
        *drawn, '</svg>', ''))


def _panel(panel: Mapping[str, ty.Any], down: int,
           find: Callable[[str, str], Series]) -> Iterator[str]:
    at, kind = panel['gridPos'], panel['type']
    step = (WIDTH - GAP) / 24
    width, height = round(at['w'] * step - GAP), at['h'] * CELL - GAP
    size = 's' if kind == 'stat' else ''
    yield (f'<g transform="translate({round(GAP + at["x"] * step)} '
           f'{GAP + down + at["y"] * CELL})"><rect class="panel" '
           f'width="{width}" height="{height}" rx="2"/><text '
           f'class="h {size}" x="9" y="22">{html.escape(panel["title"])}'
           '</text>')
    yield from {'stat': _stat, 'bargauge': _bars, 'timeseries': _lines}[kind](
        panel['fieldConfig']['defaults'], find(panel['title'], kind), width,
        height)
    yield '</g>'


def _text(value: float, defaults: Mapping[str, ty.Any]) -> str:
    if defaults['unit'] == 's' and value >= 60:
        return f'{value / 60:.2f}'.rstrip('0').rstrip('.') + ' mins'
    number = f'{value:.{defaults.get("decimals", 0)}f}'
    unit = defaults['unit'].removeprefix('suffix:')
    return number + {'short': '', 's': ' s'}.get(unit, unit)


def _stat(defaults: Mapping[str, ty.Any], series: Series, width: int,
          height: int) -> Iterator[str]:
    (value,), = series.values()
    color, = [each['color'] for each in defaults['thresholds']['steps']
              if each['value'] is None or value >= each['value']][-1:]
    yield (f'<text class="v {color}" x="{width / 2:g}" y="{height / 2 + 24:g}"'
           f'>{_text(value, defaults)}</text>')


def _bars(defaults: Mapping[str, ty.Any], series: Series, width: int,
          height: int) -> Iterator[str]:
    step, room = (height - 40) / len(series), width - 200
    most = max(value for value, in series.values())
    for number, (name, (value,)) in enumerate(series.items()):
        y = 36 + number * step
        yield (f'<text class="end" x="100" y="{y + step / 2:g}">'
               f'{html.escape(name)}</text><rect class="track" x="110" '
               f'y="{y:g}" width="{room}" height="{step - 12:g}"/>'
               f'<rect class="green" x="110" y="{y:g}" width="'
               f'{room * value / most:.0f}" height="{step - 12:g}"/>'
               f'<text class="h" x="{room + 120}" y="{y + step / 2:g}">'
               f'{_text(value, defaults)}</text>')


def _lines(defaults: Mapping[str, ty.Any], series: Series, width: int,
           height: int) -> Iterator[str]:
    """Draw 24 hours, with the names and last values at the right."""
    right, bottom = width - 150, height - 28
    most = 4 * math.ceil(max(map(max, series.values())) / 4)
    scale = (bottom - 40) / most
    for share in range(5):
        y = bottom - share * most / 4 * scale
        yield (f'<path class="grid" d="M40 {y:g}H{right}"/><text '
               f'class="soft end" x="34" y="{y + 4:g}">'
               f'{most * share / 4:g}</text>')
    for hour in range(0, 25, 6):
        yield (f'<text class="soft" x="{40 + hour * (right - 75) / 24:g}" '
               f'y="{height - 9}">{hour:02}:00</text>')
    for number, (name, values) in enumerate(series.items()):
        step = (right - 40) / (len(values) - 1)
        points = ''.join(f'H{40 + index * step:g}V{bottom - each * scale:g}'
                         for index, each in enumerate(values))
        y = 52 + 22 * number
        yield (f'<path class="line" style="stroke:var(--p{number})" '
               f'd="M40 {bottom - values[0] * scale:g}{points}"/>'
               f'<path style="stroke:var(--p{number});stroke-width:3" '
               f'd="M{right + 14} {y - 4}h14"/><text x="{right + 34}" '
               f'y="{y}">{html.escape(name)}</text><text class="end" '
               f'x="{width - 12}" y="{y}">{_text(values[-1], defaults)}'
               '</text>')
