# SPDX-License-Identifier: Apache-2.0
"""Answer as if a cloud had other hosts or limits, as options say."""

import argparse
from collections.abc import Sequence
import math
import os

from nfv_sched.base import strings
from nfv_sched.nova import concurrency
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import names
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments

# Maximum number of hosts to add.
_MOST_NEW = 1000
#: Options of :func:`add_changes`, for people.
CHANGES = '--add-hosts, --remove-host and --limit'


def add_changes(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        '--add-hosts', action='append', default=[], type=_copies,
        metavar='N:HOST|FILE',
        help='as if there were N more hosts like this one, but empty and '
             'enabled, in the same aggregates; or as a file of "host profile '
             '-f json" sets one up; ./NAME is a file; can be repeated')
    parser.add_argument(
        '--remove-host', action='append', default=[], metavar='PATTERN',
        help='as if these hosts were not there; can be repeated')
    parser.add_argument(
        '--limit', action='append', default=[], type=_limit,
        metavar='NAME=VALUE',
        help='as if this option of [nfv_sched], a limit such as '
             'vswitch_ports_per_node, had this value; 0 for no limit; '
             'aggregates that set the limit keep theirs; can be repeated')


def _limit(text: str) -> tuple[str, float]:
    name, _equals, value = text.partition('=')
    try:
        amount = float(value)
    except ValueError:
        amount = math.nan
    if not math.isfinite(amount):
        raise argparse.ArgumentTypeError(
            f'NAME=VALUE needed, with a number, not {text!r}')
    return name, amount


def _copies(text: str) -> tuple[int, str]:
    count, _colon, name = text.partition(':')
    if not name or not count.isdecimal() or not 1 <= int(count) <= _MOST_NEW:
        raise argparse.ArgumentTypeError(
            f'N:HOST or N:FILE needed, with 1 to {_MOST_NEW} hosts, not '
            f'{text!r}')
    return int(count), name


def is_changed(parsed_args: argparse.Namespace) -> bool:
    return bool(parsed_args.add_hosts or parsed_args.remove_host or
                parsed_args.limit)


def changed(
    cloud: snapshot.Cloud, parsed_args: argparse.Namespace,
) -> tuple[snapshot.Cloud, list[str]]:
    """Return the changed cloud, and sentences about the changes."""
    notes: list[str] = []
    if not is_changed(parsed_args):
        return cloud, notes
    # Imports of the services' code take time that most commands do not need.
    from nfv_sched.ops.cloud import changed_hosts
    hosts = list(dict.fromkeys(host.name for host in cloud.hosts))
    gone = (arguments.chosen(hosts, parsed_args.remove_host, arguments.HOST)
            if parsed_args.remove_host else [])
    if sum(count for count, _name in parsed_args.add_hosts) > _MOST_NEW:
        raise errors.UsageError(f'--add-hosts: {_MOST_NEW} hosts at most')
    for count, text in parsed_args.add_hosts:
        # A host comes first, and "./" before a file.
        try:
            name = None if os.sep in text else arguments.host_name(hosts, text)
        except errors.NotInCloudError:
            if not os.path.exists(text):
                raise
            name = None
        if name is None:
            cloud, note = _with_profiled(cloud, text, count)
            notes.append(note)
            continue
        if any(host.providers for host in cloud.hosts) and not all(
                host.providers for host in cloud.hosts if host.name == name):
            raise errors.UsageError(
                f'--add-hosts: no resource provider of host {name} was read')
        cloud, new = changed_hosts.added(cloud, name, count)
        notes.append(f'{_as_if(new)}, like {name}')
    if gone:
        servers = sum(server.host in gone for server in cloud.servers)
        cloud = changed_hosts.removed(cloud, frozenset(gone))
        notes.append(f'as if there were no {strings.some(gone)}, without '
                     f'{strings.count(servers, "server")} there')
    if parsed_args.limit:
        cloud = _with_limits(cloud, parsed_args, notes)
    return cloud, notes


def _as_if(new: Sequence[str]) -> str:
    return f'as if there were {new[0]}' + (
        f' to {new[-1]}' if len(new) > 1 else '')


def _with_profiled(cloud: snapshot.Cloud, path: str,
                   count: int) -> tuple[snapshot.Cloud, str]:
    from nfv_sched.ops.answers.profile import reported
    from nfv_sched.ops.cloud import changed_hosts
    like = reported.model(cloud)
    cloud, new = changed_hosts.added_new(
        cloud, reported.added_to(cloud, path), count)
    note = f'{_as_if(new)}, by the profile {path}'
    if like is not None:
        note += f', with the hypervisor and disk of {like.name}'
    return cloud, note


def _with_limits(cloud: snapshot.Cloud, parsed_args: argparse.Namespace,
                 notes: list[str]) -> snapshot.Cloud:
    concurrency.native_threads()
    from nfv_sched.ops.cloud import changed_limits
    values = dict(parsed_args.limit)
    for name, value in values.items():
        if name not in changed_limits.NAMES:
            raise errors.UsageError('--limit: ' + names.unknown(
                'limit', name, changed_limits.NAMES))
        notes.append(f'as if [nfv_sched] {name} were {value:g}')
        if aggregates := changed_limits.overriding(cloud, name):
            notes.append(
                f'{name} is that of the metadata in '
                f'{strings.some(aggregates)}, where --limit changes nothing')
    return changed_limits.changed(cloud, values)
