# SPDX-License-Identifier: Apache-2.0
"""The commands ``nfv-sched host list``, ``host show`` and ``host map``."""

import argparse
import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import os
import typing as ty

from nfv_sched.base import files
from nfv_sched.base import strings
from nfv_sched.ops.answers.hosts import document as host_document
from nfv_sched.ops.answers.hosts import rendering
from nfv_sched.ops.answers.machine import facts
from nfv_sched.ops.answers.machine import read
from nfv_sched.ops.answers.machine import values
from nfv_sched.ops.cli import atomic_file
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import formats
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import source

_LIST_EPILOG = f"""\
Columns of a NUMA node:

- Switch: whether the virtual switch is there; nothing if no node has the label
- pCPUs used: CPUs for pinned servers: used and total
- Largest fit: most vCPUs of a pinned server there, whatever its memory
- Shared used: shared vCPUs, and how many there can be at the allocation ratio
- 2M used, 1G used: pages used, and all but reserved ones; small pages in MiB
- VFs used: used ones near it, and all

A row without a node is for a host that reports no NUMA nodes, and for servers
without NUMA topology. Each row of a host has all its Ports used, those of the
virtual switch, and Rules used, of the security groups of these ports.

With -f csv or value, and with -c, aggregates, totals, limits with their
sources, what is free, and UUIDs are columns, too. Limit notes name
over-allocations.

examples:
  nfv-sched host list --sort worst
  nfv-sched host list --host 'compute-1*' --from cloud.json.gz

{base.EXIT_CODES}"""

_FACTS_EPILOG = """\
A file of --facts is what lscpu, virsh or Ironic say of the host, as "host
profile" reads it. One that contradicts Nova is left out."""

_SHOW_EPILOG = f"""\
For each core, the CPUs and what uses them: a vCPU of a server, the emulator
threads of a server, idle (a server has the core to itself), shared, or free.
"unknown server": in use in Nova's record of the host, but by no server on it.
Names of -f shell, value and -c have the keys of JSON, and the number of each
item in its list, from 0: numa_nodes_0_pcpus_used.

{_FACTS_EPILOG}

examples:
  nfv-sched host show compute-3 --facts machines
  nfv-sched host show compute-3 --from cloud.json.gz -f json

{base.EXIT_CODES}"""

_MAP_EPILOG = f"""\
Letters stand for the servers with pinned CPUs of a host, the oldest is A.

html is one file that needs nothing else, with a section for each host, and a
filter. Hosts whose free CPUs are most scattered over NUMA nodes come first,
then the fullest. svg is a picture, text is for terminals; both sort the hosts
by name, so that two maps can be compared.

{_FACTS_EPILOG}

examples:
  nfv-sched host map --from cloud.json.gz --aggregate dpdk
  nfv-sched host map --format html -o map.html --facts machines
  nfv-sched host map --host compute-3 --format svg -o compute-3.svg

{base.EXIT_CODES}"""

#: Value of --sort -> sort key of a host.
_ORDERS: dict[str, Callable[[host_document.HostDetails], tuple]] = {
    'name': lambda host: (host.host,),
    'free': lambda host: (-host.pcpus_free, host.host),
    'fit': lambda host: (-host.largest_fit, host.host),
    'worst': lambda host: host.order,
}


class ListHost(base.Lister):
    """List the NUMA nodes of hosts with used and free resources."""

    cloud = source.Source(needs_nova=False)
    epilog = _LIST_EPILOG
    schemas = {'host-list': host_document.NodeRows}
    least_important = ('Availability zone', 'VFs used', 'Ports used',
                       'Rules used', '4K MiB used', 'Shared used', 'Switch',
                       'State')

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_hosts(parser)
        parser.add_argument(
            '--sort', choices=tuple(_ORDERS), default='name',
            help='order of the hosts: by name, most free pinned CPUs, largest '
                 'fit, or most scattered free CPUs (default: name)')
        parser.add_argument(
            '--full', metavar='PERCENT',
            type=lambda text: arguments.amount(text, 0, 100, 'a percentage'),
            help='only hosts whose ports or security group rules are used to '
                 'at least this percentage of their limit, 0 to 100')

    def take_action(self, parsed_args):
        cloud = self.cloud.read(self, parsed_args)
        from nfv_sched.ops.answers.hosts import view
        hosts = sorted((
            host for host in view.views(cloud, arguments.hosts(
                cloud, parsed_args.host, parsed_args.az,
                parsed_args.aggregate))
            if parsed_args.full is None
            or host.network.percent_used >= parsed_args.full),
            key=_ORDERS[parsed_args.sort])
        if parsed_args.full is not None and not hosts:
            self.app.stderr.write(
                f'no host uses {parsed_args.full:g} % or more of its ports or '
                'rules\n')
        listed = host_document.listed(hosts)
        self._document = documents.Document(listed, ('numa_nodes',))
        rows = listed.numa_nodes
        return self.cells(parsed_args, rendering.columns(rows), rows)


class _WithFacts:
    cloud = source.Source(needs_nova=False)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--facts', metavar='DIR',
            help='a folder with a file for each host, HOST.json or HOST, that '
                 "tells its CPUs, also those in none of Nova's sets; hosts "
                 'without a file are shown without them')

    def views(self, parsed_args: argparse.Namespace,
              chosen: Callable[[snapshot.Cloud], list[snapshot.Host]],
              ) -> tuple[snapshot.Cloud, Sequence[host_document.HostDetails]]:
        paths = fact_files(parsed_args.facts)
        cloud = self.cloud.read(self, parsed_args)
        hosts = chosen(cloud)
        facts_of_hosts = machines(
            paths, cloud, hosts, lambda text: self.app.stderr.write(
                f'warning: {" ".join(text.split())}\n'))
        from nfv_sched.ops.answers.hosts import view
        return cloud, view.views(cloud, hosts, facts_of_hosts)


def fact_files(folder: str | None) -> dict[str, str] | None:
    if folder is None:
        return None
    with files.naming(folder, errors.CloudUnreadError):
        return {name: os.path.join(folder, name)
                for name in os.listdir(folder)}


def machines(paths: Mapping[str, str] | None, cloud: snapshot.Cloud,
             hosts: Iterable[snapshot.Host],
             warn: Callable[[str], ty.Any]) -> dict[str, values.Machine]:
    """Return the machines of hosts, by UUID of the host.

    Hosts without facts, and with facts that contradict Nova, are left out.

    :param paths: result of :func:`fact_files`
    :param warn: called with a line for each host whose facts contradict Nova,
        and if no file belongs to a host
    :raises CloudUnreadError: if a file cannot be read
    """
    if paths is None:
        return {}
    from nfv_sched.ops.answers.hosts import nodes
    from nfv_sched.ops.answers.hosts import view
    counts = collections.Counter(host.name for host in cloud.hosts)
    titles = view.titles(cloud.hosts)
    machines, has_file = {}, False
    for host in hosts:
        path = _path(paths, host.name if counts[host.name] == 1
                     else host.hypervisor)
        if path is None:
            continue
        has_file = True
        machine = _machine(path)
        if wrong := list(nodes.contradictions(host, machine)):
            warn(f'{titles[host.uuid]} is shown without {path}, which '
                 f'contradicts Nova: {"; ".join(wrong)}')
        else:
            machines[host.uuid] = machine
    if not has_file:
        warn('no file of --facts is named after a host that is shown')
    return machines


def _path(paths: Mapping[str, str], name: str) -> str | None:
    of_host = [paths[each] for each in (f'{name}.json', name) if each in paths]
    if len(of_host) > 1:
        raise errors.CloudUnreadError(
            f'{of_host[0]} and {of_host[1]} are both of host {name}')
    return of_host[0] if of_host else None


def _machine(path: str) -> values.Machine:
    """Read a machine from a file; its memory need not be known."""
    raw_facts = read.load(path)
    with files.naming(path, values.MachineError):
        return facts.machine(dataclasses.replace(
            raw_facts, memory=None, total_memory=0))


class ShowHost(_WithFacts, base.ShowOne):
    """Show a host: each core with its owner, memory, devices, servers."""

    epilog = _SHOW_EPILOG
    schemas = {'host-show': host_document.HostDetails}

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument('host', metavar='HOST', help='name of the host')

    def take_action(self, parsed_args):
        _cloud, (host,) = self.views(
            parsed_args, lambda cloud: _named(cloud, parsed_args.host))
        self._document = documents.Document(host)
        if parsed_args.formatter == base.TABLE:
            return tuple(zip(*_facts(host)))
        flat = documents.flat(host)
        return tuple(flat), tuple(flat.values())


def _named(cloud: snapshot.Cloud, name: str) -> list[snapshot.Host]:
    """Return the host of a name or UUID, in a list."""
    from nfv_sched.ops.answers.hosts import view
    titles = view.titles(cloud.hosts)
    hosts = [host for host in cloud.hosts if name in (
        titles[host.uuid], host.uuid)] or [
        host for host in cloud.hosts if host.name == name]
    if not hosts:
        name = arguments.host_name([host.name for host in cloud.hosts], name)
        hosts = [host for host in cloud.hosts if host.name == name]
    if len(hosts) > 1:
        raise errors.UsageError(
            f'several compute nodes of host {name!r}: ' +
            ', '.join(titles[host.uuid] for host in hosts))
    return hosts


def _facts(host: host_document.HostDetails) -> Iterator[tuple[str, ty.Any]]:
    yield 'Host', host.host
    yield 'State', rendering.state(host)
    if host.cell:
        yield 'Cell', host.cell
    yield 'Availability zone', host.availability_zone
    yield 'Aggregates', ', '.join(host.aggregates)
    yield 'pCPUs', _pcpus(host)
    yield 'Memory MiB', f'{host.memory_used_mib} of {host.memory_mib} used'
    if host.small_pages is not None:
        yield 'Small pages MiB', rendering.small_pages(host.small_pages)
    yield 'Ports', rendering.limit(host.network.vswitch_ports)
    for title, number in (
            ('DHCP servers', host.network.dhcp_servers),
            ('Routers', host.network.routers),
            ('CPUs not for servers', host.cpus_not_for_servers)):
        yield title, 'not known' if number is None else number
    yield 'Notes', tables.Lines(host.notes)
    for node in host.numa_nodes:
        yield f'Node {node.node}', tables.Lines(list(_node_lines(node)))
    if host.devices_without_node:
        yield 'Devices without node', tables.Lines(
            list(map(rendering.devices, host.devices_without_node)))
    yield 'Servers', tables.Lines(list(map(rendering.server, host.servers)))


def _pcpus(of: host_document.HostDetails | host_document.NodeOfHost) -> str:
    return f'{of.pcpus_used} of {of.pcpus} used; largest fit {of.largest_fit}'


def _node_lines(node: host_document.NodeOfHost) -> Iterator[str]:
    here = '; '.join(filter(None, (
        'virtual switch' if node.switch else '',
        f'networks {", ".join(node.networks)}' if node.networks else '',
        f'places {", ".join(node.places)}' if node.places else '',
        'tunnel endpoint' if node.tunnel_endpoint else '')))
    if here:
        yield f'here: {here}'
    yield f'pCPUs: {_pcpus(node)}'
    if node.shared_cpus:
        yield (f'shared vCPUs: {node.shared_vcpus} of '
               f'{node.shared_vcpu_limit} on '
               f'{strings.count(len(node.shared_cpus), "CPU")}')
    for pages in node.pages:
        yield (f'{rendering.page_size(pages.size_kib)} pages: '
               f'{rendering.pages(pages)}')
    if not node.pages:
        yield f'memory: {node.memory_used_mib} of {node.memory_mib} MiB used'
    for group in node.devices:
        yield f'device: {rendering.devices(group)}'
    yield from rendering.core_lines(node.cores)


class MapHost(_WithFacts, base.Command):
    """Draw a map of hosts: each core with its owner, memory, devices."""

    epilog = _MAP_EPILOG

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        arguments.add_hosts(parser)
        parser.add_argument(
            '--format', choices=('text', 'svg', 'html'), default='text',
            help='of the map (default: text)')
        parser.add_argument(
            '--max-width', metavar='<integer>', type=int,
            help='maximum width of the lines of text, 0 for no limit '
                 '(default: that of the terminal; COLUMNS if it is set; no '
                 'limit in a pipe or a file)')
        parser.set_defaults(fit_width=False)
        parser.add_argument(
            '-o', '--output', metavar='FILE', default=atomic_file.STDOUT,
            help='where to write it; a file that is there is replaced '
                 '(default: -, standard output)')

    def take_action(self, parsed_args) -> None:
        cloud, hosts = self.views(parsed_args, lambda cloud: arguments.hosts(
            cloud, parsed_args.host, parsed_args.az, parsed_args.aggregate))
        from nfv_sched.ops.answers.hosts.map import page
        from nfv_sched.ops.answers.hosts.map import text
        hosts = sorted(hosts, key=lambda host: host.host)
        on_stdout = atomic_file.is_stdout(parsed_args.output)
        if parsed_args.format == 'text':
            pieces = text.render(cloud, hosts, formats.width(
                self.app.stdout, parsed_args) if on_stdout else None)
        else:
            pieces = {'svg': page.render_picture, 'html': page.render}[
                parsed_args.format](cloud, hosts)
        if on_stdout:
            self.app.stdout.writelines(pieces)
        else:
            atomic_file.write(parsed_args.output, lambda opened: (
                opened.writelines(piece.encode() for piece in pieces)))
