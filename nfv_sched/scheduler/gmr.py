# SPDX-License-Identifier: Apache-2.0
"""Add a section about nfv-sched to Nova's guru meditation report.

``nova-scheduler`` makes this report when it gets SIGUSR2, each worker its own.
A section that raises would lose the whole report, so each part of this one is
worked out by itself; a part that fails is replaced by a message.

The report may be made at any time, in the thread that was interrupted: nothing
here waits for a lock or for another process, and nothing is started.
"""

from collections.abc import Callable, Iterator
import importlib.metadata
import sys

from oslo_log import log as logging

from nfv_sched.base import strings
from nfv_sched.journal import writer
from nfv_sched.scheduler import process

LOG = logging.getLogger(__name__)

TITLE = 'nfv-sched'

_REPORTS = 'oslo_reports.guru_meditation_report'


def register() -> None:
    """Add the section to the reports of this process, once; never raises.

    To be called when a filter or weigher is made.  Nothing happens in
    processes that make no reports, such as tools: oslo.reports is already
    imported in those that do.
    """
    if (reports := sys.modules.get(_REPORTS)) is None:
        return
    try:
        report = reports.TextGuruMeditation
        # oslo.reports keeps sections in a list of the class and would print
        # one for each filter that is made.
        if not any(title == TITLE for title, _section in getattr(
                report, 'persistent_sections', ())):
            report.register_section(TITLE, section)
    except Exception:
        LOG.exception('Guru meditation reports will not include nfv-sched')


def section():
    """Return the section, a ``ModelWithDefaultViews``; never raises."""
    # Already imported: it is part of the library that calls this function.
    from oslo_reports.models import with_default_views
    parts = {title: _lines(part) for title, part in _PARTS}
    text = '\n'.join(
        line for title, lines in parts.items()
        for line in (f'{title}:', *(f'  {line}' for line in lines)))
    return with_default_views.ModelWithDefaultViews(
        data=parts, text_view=lambda _model: text)


def _lines(part: Callable[[], Iterator[str]]) -> list[str]:
    """Return the lines of a part; one with the error if the part fails."""
    lines: list[str] = []
    try:
        for line in part():
            lines.append(' '.join(str(line).split()))
    except Exception as exc:
        lines.append(f'not known: {_error_line(exc)}')
    return lines or ['none']


def _error_line(exc: Exception) -> str:
    try:
        return strings.mask_secrets(
            ' '.join(f'{type(exc).__name__}: {exc}'.split()))
    except Exception:
        return type(exc).__name__


def _versions() -> Iterator[str]:
    for name in ('nfv-sched', 'nova'):
        yield f'{name} {importlib.metadata.version(name)}'


def _lookups() -> Iterator[str]:
    if (lookups := process.STATE.lookups) is None:
        yield 'nothing was looked up in this process yet'
        return
    yield f'{lookups.failures} failures since the last answer'
    if lookups.last_error:
        yield f'last error: {lookups.last_error}'


def _refusals() -> Iterator[str]:
    for each in reversed(list(process.STATE.refusals)):
        yield (f'{writer.stamp(each.seconds)} {each.server} {each.filter}: '
               f'{each.text}')


def _shadow() -> Iterator[str]:
    for name, (count, changed) in process.STATE.in_shadow().items():
        yield (f'{name}: {count} servers, {changed.get("refused", 0)} would '
               f'have been refused, {changed.get("elsewhere", 0)} would have '
               'gone elsewhere')


def _times() -> Iterator[str]:
    for name, passes in sorted(dict(process.STATE.passes).items()):
        yield (f'{name}: {passes.count} passes, {passes.hosts} hosts, mean '
               f'{passes.seconds / passes.count * 1e3:.3f} ms, longest '
               f'{passes.longest * 1e3:.3f} ms, '
               f'{passes.seconds / passes.hosts * 1e6:.1f} us a host')


_PARTS: tuple[tuple[str, Callable[[], Iterator[str]]], ...] = (
    ('Versions', _versions),
    ('Look-ups in Neutron', _lookups),
    ('Last refusals', _refusals),
    ('In shadow', _shadow),
    ('Time of filters', _times),
)
