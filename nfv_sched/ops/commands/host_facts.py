# SPDX-License-Identifier: Apache-2.0
"""Read facts about the machines of hosts from files named after the hosts.

Nova reports only CPUs for servers; see
:mod:`nfv_sched.ops.answers.hosts.nodes`.
"""

import argparse
import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import os
import typing as ty

from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import read
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.commands import source

if ty.TYPE_CHECKING:
    from nfv_sched.ops.cloud import snapshot

#: Shown by --help of the commands with --facts.
EPILOG = """\
Nova does not know CPUs in none of its sets, such as those of the platform or
the virtual switch. With --facts, a file of DIR named HOST.json or HOST tells
all CPUs of that host: what lscpu, virsh or Ironic say of it, as host profile
reads it. Of several compute nodes of a service, as Ironic has them, HOST is
the name of the compute node. A host whose file contradicts Nova is shown
without it, with a warning."""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--facts', metavar='DIR',
        help='a folder with a file for each host, HOST.json or HOST, that '
             "tells its CPUs, also those in none of Nova's sets; hosts "
             'without a file are shown without them')


def listed(folder: str | None) -> dict[str, str] | None:
    """Return the files of a folder, by name; None without a folder."""
    if folder is None:
        return None
    try:
        return {name: os.path.join(folder, name)
                for name in os.listdir(folder)}
    except OSError as exc:
        raise source.CloudUnreadError(
            f'{folder}: {exc.strerror or exc}') from exc


def machines(
    files: Mapping[str, str] | None, cloud: 'snapshot.Cloud',
    hosts: Iterable['snapshot.Host'], warn: Callable[[str], ty.Any],
) -> dict[str, values.Machine]:
    """Return the machines of hosts, by UUID of the host.

    Hosts without facts, and with facts that contradict Nova, are left out.

    :param files: result of :func:`listed`
    :param warn: called with a line for each host whose facts contradict Nova,
        and if no file belongs to a host
    :raises CloudUnreadError: if a file cannot be read
    """
    if files is None:
        return {}
    # Imported here so that --help does not wait for Nova.
    from nfv_sched.ops.answers.hosts import nodes
    from nfv_sched.ops.answers.hosts import view
    counts = collections.Counter(host.name for host in cloud.hosts)
    titles = view.titles(cloud.hosts)
    machines, has_file = {}, False
    for host in hosts:
        path = _path(files, host.name if counts[host.name] == 1
                     else host.hypervisor)
        if path is None:
            continue
        has_file = True
        machine = _machine(path)
        wrong = list(nodes.contradictions(host, machine))
        if wrong:
            warn(f'{titles[host.uuid]} is shown without {path}, which '
                 f'contradicts Nova: {"; ".join(wrong)}')
        else:
            machines[host.uuid] = machine
    if not has_file:
        warn('no file of --facts is named after a host that is shown')
    return machines


def _path(files: Mapping[str, str], name: str) -> str | None:
    paths = [files[each] for each in (f'{name}.json', name) if each in files]
    if len(paths) > 1:
        raise source.CloudUnreadError(
            f'{paths[0]} and {paths[1]} are both of host {name}')
    return paths[0] if paths else None


def _machine(path: str) -> values.Machine:
    """Read a machine from a file; its memory need not be known."""
    if os.path.isdir(path):
        raise source.CloudUnreadError(f'{path}: is a folder; a file is needed')
    try:
        raw_facts = read.load(path)
        if not raw_facts.cpus:
            raise values.MachineError(
                f'{path}: NUMA nodes and sibling threads of the CPUs are not '
                'known'
                + (f', as {raw_facts.unusable}' if raw_facts.unusable else '')
                + f'; "{facts.LSCPU}" prints them there')
    except values.MachineError as exc:
        raise source.CloudUnreadError(str(exc)) from exc
    try:
        return facts.machine(dataclasses.replace(
            raw_facts, memory=None, total_memory=0))
    except values.MachineError as exc:
        raise source.CloudUnreadError(f'{path}: {exc}') from exc
