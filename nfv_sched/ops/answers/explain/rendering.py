# SPDX-License-Identifier: Apache-2.0
"""Render an explanation as text and as rows, and for the server's owner."""

from collections.abc import Iterable, Iterator, Sequence
import functools
import shlex
import typing as ty

import os_resource_classes as orc

from nfv_sched.base import cpu_spec
from nfv_sched.base import strings
from nfv_sched.ops.answers.explain import causes
from nfv_sched.ops.answers.explain import document
from nfv_sched.ops.answers.explain import relaxation
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.model.requests import subject as subjects
from nfv_sched.ops.model.verdicts import values

#: Default of the maximum number of hosts.
SHOWN = 20
_WEIGHED = 3
#: Seconds after which weights may have changed.
_OLD = 60
_CHANGES = 10
_CAUSES = 3
_TENANT_CHANGES = 5
_TENANT_NOUNS = {orc.PCPU: 'dedicated CPUs', orc.VCPU: 'vCPUs',
                 orc.MEMORY_MB: 'MiB of memory', orc.DISK_GB: 'GiB of disk'}
#: Columns of the hosts for programs.
COLUMNS = (
    tables.Column('Host', 'host'), tables.Column('Host ID', 'host_id'),
    tables.Column('Placement', 'placement_finds'),
    tables.Column('Refused by', lambda host: ' '.join(
        refusal.filter for refusal in host.refusals)),
    tables.Column('Passed', 'passes'),
    tables.Column('Rank', lambda host: '' if host.rank is None else host.rank),
    tables.Column('Lacks', lambda host: '; '.join(_lacks(host))))


def best_first(
    explanation: document.Explained, hosts: Iterable[document.HostVerdict],
) -> list[document.HostVerdict]:
    nearest = explanation.nearest
    return sorted(hosts, key=lambda host: (
        host.rank is None, host.rank or 0,
        nearest.index(host.host) if host.host in nearest else len(nearest),
        host.failures))


def text(explanation: document.Explained,
         hosts: Sequence[document.HostVerdict],
         **options: ty.Any) -> list[tables.Part]:
    """Return :func:`sections` as one text, with a blank line between them."""
    return [part for _title, section in sections(
        explanation, hosts, **options) for part in ('', *section)][1:]


def sections(explanation: document.Explained,
             hosts: Sequence[document.HostVerdict], most: int | None = SHOWN,
             details: bool = True, all_filters: bool = False,
             ) -> list[tuple[str, list[tables.Part]]]:
    """Return the sections that are not empty, each with its title.

    The answer and what helps are first.

    :param most: how many of them at most; None for all
    :param details: whether to show what Placement and filters did
    :param all_filters: whether to show filters that refuse no host
    """
    parts = [('Result', _head(explanation)),
             ('Changes', _changes(explanation)),
             ('Next steps', _steps(explanation))]
    # If the API refuses the request, no host was looked at.
    if explanation.placement.queries:
        parts.append(('Hosts', _hosts(hosts, most)))
        if details or all_filters or any(
                each.error for each in explanation.filters):
            parts += [
                ('Stages', _stages(explanation)),
                ('Requirements', _requirements(explanation.placement)),
                ('Filters', _filters(explanation, all_filters))]
        parts.append(('Weights', _weights(explanation)))
    return [(title, section) for title, section in parts if section]


def _head(explanation: document.Explained) -> list[tables.Part]:
    lines: list[tables.Part] = [
        explanation.subject, f'Asks for: {explanation.asks_for}',
        *(f'Assumed: {text}' for text in explanation.assumed)]
    if explanation.fits:
        lines.append(tables.Line('It fits.', tables.GOOD))
    else:
        # If all were refused at once, the reason says which was the first.
        placed = len(explanation.destinations)
        which = (f' (server {placed + 1} of {explanation.request.servers})'
                 if placed else '')
        why = '.' if explanation.causes else f': {explanation.reason or ""}'
        lines.append(tables.Line(f'It does not fit{which}{why}', tables.BAD))
        for cause in explanation.causes[:_CAUSES]:
            lines.append(cause.text)
            if cause.kind == 'deployment':
                lines.append(causes.deployment(cause))
        if more := sum(cause.hosts for cause in explanation.causes[_CAUSES:]):
            lines.append(f'{strings.count(more, "host")} more: other causes, '
                         'see below.')
    stage = explanation.placement
    if stage.hosts_cut_off:
        lines.append(
            '[scheduler] max_placement_results = '
            f'{stage.max_placement_results} has cut off '
            f'{strings.count(stage.hosts_cut_off, "host")} that Placement '
            'would find.')
    if stage.unsupported:
        lines.append('Not known how Placement answers: ' +
                     ', '.join(stage.unsupported))
    return lines + [f'It would go to {_place(place)}.'
                    for place in explanation.destinations]


def _place(place: document.Destination) -> str:
    parts = [place.host]
    if place.numa_nodes is not None:
        parts.append(f'NUMA node{"s" if len(place.numa_nodes) > 1 else ""} ' +
                     ', '.join(map(str, place.numa_nodes)))
    if place.cpus:
        parts.append(f'CPUs {cpu_spec.to_text(place.cpus)}')
    if place.pci_devices:
        parts.append(f'devices {", ".join(place.pci_devices)}')
    return ', '.join([
        *parts, *(f'after a {note}' for note in place.failed_claims)])


# ``--column`` does not choose the columns of these tables.
_side_table = functools.partial(tables.Table, is_main=False)


def _stages(explanation: document.Explained) -> list[tables.Part]:
    stage = explanation.placement
    rows = [('Placement', stage.hosts, stage.hosts_left, '; '.join(
        f'{each.need.text}: {strings.count(each.hosts, "host")}'
        for each in stage.removed))]
    ran = [each for each in explanation.filters if each.hosts_in is not None]
    if ran:
        rows.append(('Filters', ran[0].hosts_in, ran[-1].hosts_out, ', '.join(
            f'{each.filter} {each.hosts_in - each.hosts_out}' for each in ran
            if each.hosts_in != each.hosts_out)))
    return [_side_table(('Stage', 'Hosts', 'Left', 'What removed them'), rows)]


def _requirements(stage: values.PlacementAnswer) -> list[tables.Part]:
    if stage.hosts_left == stage.hosts:
        return []
    return [_side_table(
        ('Asked of Placement first' if stage.asks_again
         else 'Asked of Placement', 'Hosts that miss it',
         'Hosts left if it is dropped'),
        [(each.need.text, each.hosts_missing_it, each.hosts_without_it)
         for each in stage.requirements])]


def _filters(explanation: document.Explained,
             all_filters: bool) -> list[tables.Part]:
    # Without errors, there is no column for them.
    width = 5 if any(each.error for each in explanation.filters) else 4
    rows = [
        (each.filter, each.hosts_in, each.hosts_out, each.refuses_alone,
         each.error)[:width] for each in explanation.filters
        if all_filters or each.refuses_alone or each.error]
    return [_side_table(
        ('Filter', 'Hosts in', 'Out',
         f'Refuses alone, of {len(explanation.hosts)}', 'Error')[:width],
        rows)] if rows else []


def host_table(hosts: Sequence[document.HostVerdict]) -> tables.Table:
    return tables.Table(('Host', 'Verdict', 'Lacks'), [
        (f'{host.host} *' if host.runs_there else host.host, _verdict(host),
         tables.Lines(_lacks(host) or ['-'])) for host in hosts])


def _hosts(hosts: Sequence[document.HostVerdict],
           most: int | None) -> list[tables.Part]:
    shown = hosts[:most]
    parts: list[tables.Part] = [host_table(shown)]
    if any(host.runs_there for host in shown):
        parts.append('* It runs there now; the host is checked as if the '
                     'server had left it.')
    if len(hosts) > len(shown):
        more = strings.count(len(hosts) - len(shown), 'host')
        parts.append(f'{more} more, see --all or --host')
    return parts


def _verdict(host: document.HostVerdict) -> str:
    if host.passes:
        rank = host.rank or 1
        return 'passes, ' + {1: 'first', 2: 'second', 3: 'third'}.get(
            rank, f'{rank}th')
    if host.failures == 0:
        return f'removed by {host.removed_by}' if host.removed_by else (
            'not considered')
    return ' + '.join([
        *(['Placement'] if host.placement_lacks else ()),
        *([strings.count(len(host.refusals), 'filter')] if host.refusals
          else ())])


def _lacks(host: document.HostVerdict) -> list[str]:
    same: dict[str | None, list[str]] = {}
    for refusal in host.refusals:
        same.setdefault(refusal.why, []).append(
            refusal.filter.removesuffix('Filter'))
    return [f'Placement: {text}' for text in host.misses] + [
        f'{", ".join(filters)}: {text or "does not say why"}'
        for text, filters in same.items()] + [
        f'{refusal.filter.removesuffix("Filter")}, which is in shadow: '
        f'{refusal.why or ""}' for refusal in host.refusals_in_shadow]


def _weights(explanation: document.Explained) -> list[tables.Part]:
    if (weighing := explanation.weighing) is None:
        return []
    # The hosts of a multi-create request are weighed again for each server.
    of_first = ('For the first server: '
                if explanation.request.servers > 1 else '')
    if not weighing.weighers:
        return [of_first + (
            'Only one host passes the filters, so Nova weighs none.'
            if len(weighing.hosts) == 1 else
            f'{len(weighing.hosts)} hosts pass the filters, and no weigher is '
            'enabled to compare them.')]
    present = {host.host for host in explanation.hosts if host.runs_there}
    indexes = [number for number, each in enumerate(weighing.hosts)
               if number < _WEIGHED or each.host in present]
    rows: list[tuple] = [
        ('total', weighing.hosts[index].host, None, None, None,
         _figure(weighing.hosts[index].weight), None) for index in indexes]
    for weigher in weighing.weighers:
        if not any(each.weight for each in weigher.weights):
            continue
        other = weigher.first_without_it
        decides = other and f'without it {other} first'
        for index in indexes:
            each = weigher.weights[index]
            rows.append((weigher.weigher, each.host, *map(_figure, (
                each.raw, each.normalized, each.multiplier, each.weight)),
                decides))
            decides = None
    parts: list[tables.Part] = [_side_table(
        ('Weigher', 'Host', 'Weight', 'Normalized', 'Multiplier', 'Score',
         'Decides'), rows,
        least_important=('Multiplier', 'Normalized', 'Weight')),
        f'{of_first}Score = normalized weight x multiplier.']
    if (weighing.age_seconds or 0) >= _OLD:
        parts.append(
            'The hosts are weighed as they were '
            f'{duration(weighing.age_seconds)} ago, at {weighing.read_at}: '
            'figures such as io_workload change meanwhile.')
    if weighing.equal_hosts > 1:
        parts.append(f'{weighing.equal_hosts} hosts are equal; which of them '
                     'Nova takes is not determined.')
    if weighing.host_subset_size > 1:
        parts.append(
            f'Nova takes one of the first {weighing.host_subset_size} at '
            'random ([filter_scheduler] host_subset_size).')
    return parts


def duration(seconds: int) -> str:
    for unit, length in (('day', 86400), ('hour', 3600), ('minute', 60)):
        if seconds >= length:
            return strings.count(seconds // length, unit)
    return strings.count(seconds, 'second')


def _figure(value: float) -> str:
    """Format a weight with up to four decimals, never as a power of ten."""
    # Adding 0 makes -0.0 positive.
    return f'{round(value, 4) + 0:.4f}'.rstrip('0').rstrip('.')


def _changes(explanation: document.Explained) -> list[tables.Part]:
    if explanation.fits:
        return []
    lines: list[tables.Part] = []
    if explanation.nearest:
        lines.append(f'Nearest: {", ".join(explanation.nearest)}')
    if explanation.changes_tried and all(
            each.size == relaxation.FLAVOR for each in explanation.changes):
        lines.append('No change of the request makes it fit, nor do two '
                     f'together ({explanation.changes_tried} were tried).')
    if shown := explanation.changes[:_CHANGES]:
        lines.append(_side_table(
            ('It would fit if', 'Hosts', 'First'),
            [(each.text, each.hosts, each.host) for each in shown]))
    if more := len(explanation.changes) - len(shown):
        lines.append(f'{strings.count(more, "more change")}, see -f json')
    if explanation.changes_untried:
        untried = strings.count(explanation.changes_untried, 'change')
        lines.append(f'{untried} not tried to the end, see --try-seconds')
    return lines


def _steps(explanation: document.Explained) -> list[tables.Part]:
    lines: list[tables.Part] = []
    for step in explanation.next_steps:
        if not step.command:
            lines.append(f'{step.text}.')
            continue
        lines += [f'{step.text[:1].upper()}{step.text[1:]}:', tables.Line(
            f'  {shlex.join(step.command)}', is_command=True)]
    return lines


def tenant_text(explanation: document.Explained,
                subject: subjects.ExplainSubject) -> list[str]:
    """Return why a request does not fit, for the owner of the server.

    As with ``expose_reasons = policy``, nothing is said of hosts: no names, no
    numbers, and not which of the causes more hosts have.  Free amounts would
    tell what others run, more than flavors of the cloud that fit do.
    """
    requested = subject.requested
    who = (f'The server {subject.server.name or subject.server.uuid}'
           if subject.server is not None
           else f'A new server of the flavor {requested.flavor.name}')
    if explanation.fits:
        return [f'{who} can be placed now.' if subject.present is None
                else f'{who} runs.']
    lines = [f'{who} cannot be placed now.']
    if needs := sorted(set(_needed_texts(explanation))):
        lines.append('No host has what it needs:' if len(needs) == 1
                     else 'No host has all that it needs:')
    lines += [f'- {need}' for need in needs]
    names = [change.requested.flavor.name for change in explanation.changes
             if change.requested.flavor.name != requested.flavor.name]
    changes = [change.text for change in explanation.changes
               if _tells_nothing(change, requested.flavor)]
    if changes:
        lines += ['It could be placed with one of these changes:',
                  *[f'- {change}' for change in changes[:_TENANT_CHANGES]]]
    if names:
        lines.append(f'With the same ports it could be placed now if its '
                     f'flavor were {" or ".join(names)}.')
    elif any(not (change.hosts_enabled or change.text in changes)
             for change in explanation.changes):
        lines.append('It could be placed if it were smaller.')
    if subject.server is not None:
        lines.append('Otherwise ask those who run the cloud, and name the '
                     f'server: {subject.server.uuid}.')
    return lines


def _needed_texts(explanation: document.Explained) -> Iterator[str]:
    for cause in explanation.causes:
        refusal = cause.refusal
        if cause.kind in ('disabled', 'down', 'unmapped'):
            yield 'hosts that would do are not in service'
        elif cause.kind == 'request' and refusal is not None:
            yield refusal.why or ''
        elif refusal is not None and refusal.need and not refusal.raised:
            yield (f'{refusal.key}: {refusal.need}' if refusal.key
                   else refusal.need)
        elif cause.need is not None and cause.need.kind != 'unknown':
            yield _of_placement(cause.need)
        else:
            yield 'a host that the operator of the cloud must look at'


def _of_placement(need: values.PlacementNeed) -> str:
    """Return a requirement of Placement; aggregates are the operator's."""
    words = [f'{amount} {_TENANT_NOUNS.get(name, name)}'
             for name, amount in need.resources.items()]
    trait = 'not the trait' if need.kind == 'forbidden_trait' else 'the trait'
    words += [f'{trait} {name}' for name in need.traits]
    words += [f'not the trait {name}' for name in need.forbidden_traits]
    return f'{" and ".join(words)} needed' if words else (
        'a host in the zone, or for the project, of the server needed')


def _tells_nothing(change: document.HelpfulChange,
                   present: snapshot.Flavor) -> bool:
    """Return whether a change does not tell what is free on a host.

    A smaller size, or number of devices, that fits would.
    """
    flavor = change.requested.flavor
    alias = flavor.extra_specs.get(relaxation.ALIAS)
    return not change.hosts_enabled and (
        flavor.name, flavor.vcpus, flavor.memory) == (
        present.name, present.vcpus, present.memory) and alias in (
            None, present.extra_specs.get(relaxation.ALIAS))
