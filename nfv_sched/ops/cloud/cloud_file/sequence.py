# SPDX-License-Identifier: Apache-2.0
"""Read a sequence of servers that come and go, as steps for a cloud.

A sequence is csv: a line with names of columns, which are the fields of
:class:`SequenceServer` in any order, and a line for each server.
"""

import csv
import dataclasses
import io
import itertools
import re
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.base import files
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud.cloud_file import text as cloud_text
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import values

#: Policy of a group that has none: no server is refused because of it.
POLICY = 'soft-anti-affinity'
# Longer digits would take quadratic time; float() and int() take others, too.
_NUMBER = re.compile(r'[0-9]{1,15}(\.[0-9]{1,15})?')
_TEXTS = ('group', 'policy')
# Items of files.max_items() that a server counts for.
_ITEMS_PER_SERVER = 8
_SHOWN = 60

_Time = ty.Annotated[float, values.within(0, 10**15)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SequenceServer:
    """A server whose vCPUs are pinned, and when it is there."""

    arrival: _Time
    departure: _Time | None = None  #: None if it stays
    vcpus: ty.Annotated[int, values.within(1, cpu_spec.MOST_CPUS - 1)]
    memory: ty.Annotated[int, values.within(1, (1 << 31) - 1)]  #: MiB
    numa_nodes: ty.Annotated[int, values.within(1, 64)] = 1
    group: values.Name | None = None  #: name of its server group
    policy: model.GroupPolicy | None = None  #: policy of this group

    line: int = documents.internal(default=0)

    @property
    def flavor(self) -> snapshot.Flavor:
        name = f'pinned-{self.vcpus}-{self.memory}-{self.numa_nodes}'
        return snapshot.Flavor(
            name=name, id=name, vcpus=self.vcpus, memory=self.memory,
            extra_specs={'hw:cpu_policy': 'dedicated',
                         'hw:numa_nodes': str(self.numa_nodes)})


def read(path: str) -> list[SequenceServer]:
    """Read the servers of a file, in its order.

    :raises InputError: if anything is wrong with it
    """
    # All problems are those of the present line.
    marks: dict[problems.Path, int] = {}
    errors = problems.Problems(path, marks)
    text = cloud_text.read(path)
    lines = csv.reader(io.StringIO(text, newline=''), strict=True)
    titles: list[str] = []
    servers: list[SequenceServer] = []
    try:
        if text.count(',') > files.max_items():
            raise files.beyond(f'{files.max_items()} cells')
        for cells in lines:
            marks[()] = lines.line_num
            cells = [cell.strip() for cell in cells]
            if not any(cells):
                continue
            if not titles:
                titles = cells
                _check_titles(titles, errors)
                errors.stop_if_wrong()
            elif len(cells) != len(titles):
                errors.add((), f'{len(cells)} cells for {len(titles)} columns')
            elif (server := _server(dict(zip(titles, cells)), errors)):
                servers.append(dataclasses.replace(
                    server, line=lines.line_num))
            if len(servers) > files.max_items() // _ITEMS_PER_SERVER:
                raise files.beyond(f'{len(servers) - 1} servers')
            if errors.are_many:
                break
        if not servers and not errors:
            errors.add((), 'no line with a server')
    except (csv.Error, files.FileLimitError) as exc:
        marks[()] = max(lines.line_num, 1)
        errors.add((), f'not csv: {exc}' if isinstance(exc, csv.Error)
                   else str(exc))
    errors.stop_if_wrong()
    return servers


def _check_titles(titles: list[str], errors: problems.Problems) -> None:
    known = documents.keys_of(SequenceServer)
    for title in titles:
        if title not in known:
            errors.known((), 'column', title[:_SHOWN], known)
            return
    for field in dataclasses.fields(SequenceServer):
        count = titles.count(field.name)
        if count > 1:
            errors.add((), f'{count} columns {field.name!r}')
        if not count and field.default is dataclasses.MISSING:
            errors.add((), f'no column {field.name!r}')


def _server(cells: dict[str, str],
            errors: problems.Problems) -> SequenceServer | None:
    server = codec.decode_file(SequenceServer, {
        title: cell if title in _TEXTS else _number(cell)
        for title, cell in cells.items() if cell}, errors)
    if server is not None:
        if server.departure is not None and server.departure < server.arrival:
            errors.add(('departure',), 'is before the arrival')
        if server.policy is not None and server.group is None:
            errors.add(('policy',), 'needs a group')
    return server


def _number(cell: str) -> str | int | float:
    if not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if '.' in cell else int(cell)


def play(start: scenarios.Scenario, path: str) -> scenarios.Scenario:
    """Add the servers of a file to a cloud, after its steps.

    A server is named by its line, as in ``line-17``.  What leaves at a time
    makes room for what comes then.

    :raises InputError: if anything is wrong with the file
    """
    used = {name.partition('-')[0] for name in (
        *scenarios.server_names(start.cloud),
        *itertools.chain.from_iterable(
            step.targets for step in start.steps))}
    prefix = next(each for each in itertools.chain(
        ['line'], map('line{}'.format, itertools.count(2)))
        if each not in used)
    flavors = {each.name: each for each in start.cloud.flavors}
    groups = dict(start.server_groups)
    events: list[tuple[tuple[float, int, int], actions.Step]] = []
    for server in read(path):
        flavor = flavors[server.flavor.name] = server.flavor
        if server.group is not None:
            group = groups.setdefault(server.group, snapshot.Group(
                uuid=scenarios.stable_uuid('group', server.group),
                name=server.group, policy=server.policy or POLICY))
            if server.policy not in (None, group.policy):
                raise problems.InputError([
                    f'{path}:{server.line}: policy: group {server.group!r} '
                    f'has the policy {group.policy}'])
        name = f'{prefix}-{server.line}'
        events.append(((server.arrival, 1, server.line), actions.Boot(
            action='boot', line=server.line, targets=(name,), boot=name,
            flavor=flavor.name, group=server.group)))
        if server.departure is not None:
            order = 0 if server.departure > server.arrival else 2
            events.append((
                (server.departure, order, server.line), actions.ServerStep(
                    action='delete', line=server.line, targets=(name,))))
    events.sort(key=lambda event: event[0])
    return dataclasses.replace(
        start, server_groups=groups, own_steps=len(start.steps),
        cloud=dataclasses.replace(
            start.cloud, flavors=tuple(flavors.values())),
        steps=(*start.steps, *(
            dataclasses.replace(step, number=number)
            for number, (_order, step) in enumerate(
                events, len(start.steps) + 1))))
