# SPDX-License-Identifier: Apache-2.0
"""Read a sequence of servers that come and go, as steps for a cloud.

A sequence is csv: a line with names of columns, which are the fields of
:class:`SequenceServer` in any order, and a line for each server.
"""

from collections.abc import Iterable, Mapping
import csv
import dataclasses
import io
import itertools
import re
import typing as ty

from nfv_sched.base import cpu_spec
from nfv_sched.base import files
from nfv_sched.ops.cloud import actions
from nfv_sched.ops.cloud.cloud_file import model
from nfv_sched.ops.cloud.cloud_file import text as cloud_text
from nfv_sched.ops.cloud import codec
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import scenario as scenarios
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.cloud import values

#: Policy of a group without one: it lets no server be refused.
POLICY = 'soft-anti-affinity'
# int() and float() would take more: signs, other digits, NaN, any length.
_NUMBER = re.compile(r'[0-9]{1,15}(\.[0-9]{1,15})?')
# Items of files.max_items() that a line counts for.
_ITEMS_PER_LINE = 8
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

    @property
    def flavor(self) -> snapshot.Flavor:
        name = f'pinned-{self.vcpus}-{self.memory}-{self.numa_nodes}'
        return snapshot.Flavor(
            name=name, id=name, vcpus=self.vcpus, memory=self.memory,
            extra_specs={'hw:cpu_policy': 'dedicated',
                         'hw:numa_nodes': str(self.numa_nodes)})


def read(path: str) -> dict[int, SequenceServer]:
    """Return the servers of a file, by their lines.

    :raises InputError: if anything is wrong with it
    """
    # All problems are those of the present line.
    marks: dict[problems.Path, int] = {}
    errors = problems.Problems(path, marks)
    text = cloud_text.read(path)
    lines = csv.reader(io.StringIO(text, newline=''), strict=True)
    titles: list[str] = []
    servers: dict[int, SequenceServer] = {}
    try:
        if text.count(',') > files.max_items():
            raise files.beyond(f'{files.max_items()} cells')
        for line in lines:
            marks[()] = lines.line_num
            if lines.line_num > (most := files.max_items() // _ITEMS_PER_LINE):
                raise files.beyond(f'{most} lines')
            cells = [cell.strip() for cell in line]
            if not cells:
                continue
            if not titles:
                titles = cells
                _check_titles(titles, errors)
                errors.stop_if_wrong()
            elif len(cells) != len(titles):
                errors.add((), f'{len(cells)} cells for {len(titles)} columns')
            elif server := _server(zip(titles, cells), errors):
                servers[lines.line_num] = server
            if errors.are_many:
                break
    except csv.Error as exc:
        marks[()] = lines.line_num
        errors.add((), f'not csv: {exc}')
    except files.FileLimitError as exc:
        errors.add((), str(exc))
    if not servers and not errors:
        errors.add((), 'no servers')
    errors.stop_if_wrong()
    return servers


def _check_titles(titles: list[str], errors: problems.Problems) -> None:
    fields = {each.name: each for each in dataclasses.fields(SequenceServer)}
    for title in titles:
        if title not in fields:
            errors.known((), 'column', title[:60], fields)
            return
    for name, field in fields.items():
        count = titles.count(name)
        if count > 1 or not count and field.default is dataclasses.MISSING:
            errors.add((), f'{count or "no"} columns named {name!r}')


def _server(cells: Iterable[tuple[str, str]],
            errors: problems.Problems) -> SequenceServer | None:
    server = codec.decode_file(SequenceServer, {
        title: cell if title in ('group', 'policy')
        or not _NUMBER.fullmatch(cell) else float(cell) if '.' in cell
        else int(cell) for title, cell in cells if cell}, errors)
    if server and server.departure is not None and (
            server.departure < server.arrival):
        errors.add(('departure',), 'is before the arrival')
    if server and server.policy is not None and server.group is None:
        errors.add(('policy',), 'needs a group')
    return server


def in_order(servers: Mapping[int, SequenceServer]) -> list[tuple[int, bool]]:
    """Return the line, and whether it comes, of what comes or leaves.

    What leaves at a time makes room for what comes then.
    """
    events = [(each.arrival, 1, line) for line, each in servers.items()]
    events += [(each.departure, 2 if each.departure == each.arrival else 0,
                line) for line, each in servers.items()
               if each.departure is not None]
    return [(line, order == 1) for _time, order, line in sorted(events)]


def play(start: scenarios.Scenario, path: str) -> scenarios.Scenario:
    """Add the steps of a file; ``sequence1-17`` is that on line 17."""
    servers = read(path)
    used = {name.partition('-')[0] for name in (
        *scenarios.server_names(start.cloud),
        *(name for step in start.steps for name in step.targets))}
    prefix = next(name for number in itertools.count(1)
                  if (name := f'sequence{number}') not in used)
    flavors = {each.name: each for each in (
        *start.cloud.flavors, *(each.flavor for each in servers.values()))}
    groups = dict(start.server_groups)
    for line, server in servers.items():
        if server.group is not None:
            group = groups.setdefault(server.group, snapshot.Group(
                uuid=scenarios.stable_uuid('group', server.group),
                name=server.group, policy=server.policy or POLICY))
            if server.policy not in (None, group.policy):
                raise problems.InputError([
                    f'{path}:{line}: policy: the group {server.group!r} has '
                    f'the policy {group.policy}'])
    steps = list(start.steps)
    for line, comes in in_order(servers):
        name, server = f'{prefix}-{line}', servers[line]
        common: dict[str, ty.Any] = {
            'number': len(steps) + 1, 'line': line, 'targets': (name,)}
        steps.append(actions.Boot(
            action='boot', boot=name, flavor=server.flavor.name,
            group=server.group, **common) if comes else
            actions.ServerStep(action='delete', **common))
    return dataclasses.replace(
        start, server_groups=groups, steps=tuple(steps),
        own_steps=len(start.steps), cloud=dataclasses.replace(
            start.cloud, flavors=tuple(flavors.values())))
