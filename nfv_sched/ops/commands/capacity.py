# SPDX-License-Identifier: Apache-2.0
"""The commands ``nfv-sched capacity list`` and ``nfv-sched capacity show``."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
import typing as ty

from nfv_sched.base import strings
from nfv_sched.ops.answers.capacity import document as capacity_document
from nfv_sched.ops.answers.capacity import rendering
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import documents
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cloud import blazar
from nfv_sched.ops.cloud import names as name_checks
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import source
from nfv_sched.ops.simulator import progress

if ty.TYPE_CHECKING:
    from nfv_sched.ops.model.counting import capacity
    from nfv_sched.ops.model.requests import assumed_ports

_MEANING = """\
"Fits" is the number of servers that can be booted, one after the other, until
one is refused: what Placement grants, the enabled filters pass and the claim
on the compute node takes. Each host and each flavor is counted alone, without
server groups, quotas and scheduler hints, but for --reservation. "Placement
capacity" is the number that Placement alone admits.
"""

_LIST_EPILOG = f"""\
{_MEANING}
"Lost capacity by cause" says why servers that Placement would admit do not
fit: "A or B" if they fit without either, "A and B" if only without both. In
-f csv or value it is JSON, and each cause has a column. With --mix, "Fits" is
that of the whole mix, filling host after host; more may fit in another order.

examples:
  nfv-sched capacity list
  nfv-sched capacity list --flavor 'vrouter*' --aggregate nfv --empty
  nfv-sched capacity list --mix vrouter.16=2,fw.8=1 --like router-7

{base.EXIT_CODES}"""

_SHOW_EPILOG = f"""\
{_MEANING}
"Limiting resource" has the resources that limit a host: with more of one of
them alone, one more server fits. "Next" uses what it says on the host; "cloud
defrag" finds out whether that fits on another host.

examples:
  nfv-sched capacity show vrouter.16 --host compute-3 --next
  nfv-sched capacity show vrouter.16 --network mgmt --network data

{base.EXIT_CODES}"""

_CLOUD, _AGGREGATE, _HOST = 'cloud', 'aggregate', 'host'


class _Capacity(base.Lister):
    cloud = source.Source(simulates=True)

    #: The reservation of the command line.
    _reservation: blazar.BlazarReservation | None = None

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        arguments.add_hosts(parser)
        arguments.add_ports(parser)
        arguments.add_image(parser)
        parser.add_argument(
            '--project', metavar='NAME|ID',
            help='count for this project, by its quota, without hosts that '
                 'aggregates reserve for others')
        parser.add_argument(
            '--reservation', metavar='ID',
            help='count in this reservation of OpenStack Blazar, for its '
                 'project unless --project names another')

    def _read_cloud(self, parsed_args: argparse.Namespace) -> snapshot.Cloud:
        cloud = self.cloud.read(self, parsed_args)
        project = parsed_args.project
        if parsed_args.reservation is not None:
            reservations = {each.id: each for each in map(
                blazar.reservation, cloud.aggregates) if each is not None}
            self._reservation = reservations.get(parsed_args.reservation)
            if self._reservation is None:
                raise errors.NotInCloudError(name_checks.unknown(
                    'reservation of Blazar', parsed_args.reservation,
                    reservations))
        if project is None:
            if self._reservation is not None:
                parsed_args.project = self._reservation.project_id
            return cloud
        if parsed_args.source is None:
            # Any metadata of an aggregate may be equal to a name.
            if not (name_checks.is_uuid(project)
                    and _is_known(cloud, project)):
                parsed_args.project = self._project_id(parsed_args)
        elif not _is_known(cloud, project):
            text = f'no server and no aggregate is of project {project}'
            if not name_checks.is_uuid(project):
                raise errors.NotInCloudError(
                    f'{text}; with --from, --project needs the ID of the '
                    'project')
            self.app.stderr.write(f'note: {text}\n')
        return cloud

    def _project_id(self, parsed_args: argparse.Namespace) -> str:
        from nfv_sched.ops.answers.capacity import quota
        name = parsed_args.project
        try:
            return quota.project_id(name)
        except quota.QuotaError as exc:
            if not name_checks.is_uuid(name):
                raise errors.CloudUnreadError(
                    f'--project {name}: {exc}; the ID of the project is '
                    'enough') from exc
            # Few accounts may list projects; an ID needs no look-up.
            return name

    def _new(self, parsed_args: argparse.Namespace,
             cloud: snapshot.Cloud) -> 'capacity.NewServers':
        from nfv_sched.ops.model.counting import capacity
        from nfv_sched.ops.model.requests import subject
        image = arguments.glance_properties(parsed_args)
        subject.check_image(image, errors.UsageError)
        reserved = self._reservation
        hints = {blazar.HINT: [reserved.id]} if (
            reserved is not None and reserved.kind == 'host') else {}
        return capacity.NewServers(
            ports=arguments.ports(cloud, parsed_args), image=image,
            project=parsed_args.project, hints=hints)

    def _tell(self, parsed_args: argparse.Namespace, cloud: snapshot.Cloud,
              hosts: Sequence[str],
              ports: 'Mapping[str, assumed_ports.NewPorts]',
              counted: 'Iterable[capacity.FlavorCapacity]' = ()) -> None:
        """Print what is not certain; ``ports`` are those of each flavor."""
        notes = list(dict.fromkeys(
            note for each in ports.values() for note in each.notes))
        if parsed_args.formatter == base.TABLE:  # there are columns for it
            for basis, why in (
                    ('unread', 'the ports of servers were not read'),
                    ('no_servers', 'no server shows what ports servers have')):
                names = [name for name, each in ports.items()
                         if each.basis == basis]
                if names:
                    notes.append(
                        f'{why}, for {strings.some(names)}: one port on the '
                        'virtual switch is assumed; --network or --like says '
                        'otherwise')
            for each in counted:
                notes += [f'{each.flavor.name}: accelerators are not counted, '
                          f'as Cyborg is not read: {key}'
                          for key in each.uncounted]
                notes += [f'{each.flavor.name}: whether Placement knows the '
                          f'{name} was not read; if not, Nova takes no server'
                          for name in each.unverified]
        if parsed_args.reservation is not None:
            if not hosts:
                notes.append('none of these hosts is in the reservation; '
                             'hosts are added when the lease starts')
        elif parsed_args.formatter == base.TABLE and (
                reserved := capacity_document.blazar_hosts(cloud, hosts)):
            notes.append(
                f'Blazar keeps {len(reserved.hosts)} of '
                f'{strings.count(len(hosts), "host")} for reservations' + (
                    ': other servers go elsewhere; see --reservation'
                    if reserved.filter_enabled else
                    ', but BlazarFilter is not enabled, so other servers go '
                    'there, too'))
        self.app.stderr.writelines(f'note: {note}\n' for note in notes)


class ListCapacity(_Capacity):
    """Show how many more servers of each flavor fit, and what limits them."""

    epilog = _LIST_EPILOG
    schemas = {'capacity-list': capacity_document.FlavorFits,
               'capacity-list-mix': capacity_document.MixFit}
    least_important = ('Ports', 'Hosts with capacity', 'Placement capacity',
                       'Lost capacity by cause')

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            '--flavor', action='append', default=[], metavar='PATTERN',
            help='only flavors with such names; can be repeated')
        parser.add_argument(
            '--by', choices=(_CLOUD, _AGGREGATE, _HOST), default=_CLOUD,
            help='a row for all hosts, for each aggregate or for each host '
                 '(default: cloud)')
        parser.add_argument(
            '--empty', action='store_true',
            help='add how many would fit if there were no servers')
        parser.add_argument(
            '--survive', type=arguments.number, metavar='N',
            help='add how many can be booted that still have a host if any '
                 'N are lost; servers that are there stay')
        parser.add_argument(
            '--mix', metavar='FLAVOR=N,...', type=_mix,
            help='show instead how many times these servers fit together')

    def take_action(self, parsed_args):
        cloud = self._read_cloud(parsed_args)
        hosts = _chosen(cloud, parsed_args)
        if parsed_args.mix:
            return self._mix(parsed_args, cloud, hosts)
        flavors = arguments.flavors(
            [each for each in cloud.flavors if not each.disabled],
            parsed_args.flavor)
        new = self._new(parsed_args, cloud)
        counted = _count(cloud, flavors, new, hosts)
        has_quota = (
            parsed_args.project is not None and parsed_args.source is None)
        allowances = self._allowances(parsed_args.project, [
            each.flavor for each in counted if each.error is None],
        ) if has_quota else {}
        empty = (_count(cloud, flavors, new, hosts, empty=True)
                 if parsed_args.empty else [None] * len(counted))
        self._tell(parsed_args, cloud, hosts, {
            each.flavor.name: each.ports for each in counted}, counted)
        fits = [
            capacity_document.fit(
                flavor_capacity, part, survive=parsed_args.survive,
                if_empty=if_empty,
                allowance=allowances.get(flavor_capacity.flavor.name))
            for flavor_capacity, if_empty in zip(counted, empty)
            for part in _parts(parsed_args.by, cloud, hosts)]
        self._document = documents.Document(capacity_document.FlavorFits(
            by=parsed_args.by, hosts_lost=parsed_args.survive,
            blazar=capacity_document.blazar_hosts(cloud, hosts),
            capacities=tuple(fits)), ('capacities',))
        return self.cells(parsed_args, rendering.fit_columns(
            fits, by=parsed_args.by, has_quota=has_quota,
            survive=parsed_args.survive, empty=parsed_args.empty), fits)

    def _allowances(self, project: str, flavors: Iterable[snapshot.Flavor],
                    ) -> dict[str, capacity_document.QuotaAllowance]:
        """Return what a quota allows of each flavor that can be read."""
        from nfv_sched.ops.answers.capacity import quota
        allowances = {}
        try:
            of_flavor = quota.from_nova(project)
            for flavor in flavors:
                allowances[flavor.name] = of_flavor(flavor)
        except quota.QuotaError as exc:
            self.unread.append(str(exc))
        return allowances

    def _mix(self, parsed_args: argparse.Namespace, cloud: snapshot.Cloud,
             hosts: Sequence[str]) -> tuple:
        from nfv_sched.ops.answers.capacity import mix
        from nfv_sched.ops.model.requests import assumed_ports
        from nfv_sched.ops.simulator import servers
        if parsed_args.by != _CLOUD or parsed_args.survive is not None:
            raise errors.UsageError('--mix goes with neither --by nor '
                                    '--survive')
        flavor_counts = [(arguments.flavor(cloud, name), count)
                         for name, count in parsed_args.mix.items()]
        new = self._new(parsed_args, cloud)
        try:
            fits = [mix.times(cloud, flavor_counts, new, hosts=set(hosts),
                              empty=empty)
                    for empty in (False, True)[:1 + parsed_args.empty]]
        except servers.Refused as exc:
            raise errors.UsageError(f'--mix: {exc}') from exc
        of_flavor = assumed_ports.per_flavor(cloud, new.ports)
        ports = {flavor.name: of_flavor(flavor)
                 for flavor, _number in flavor_counts}
        self._tell(parsed_args, cloud, hosts, ports)
        self._document = documents.Document(capacity_document.MixFit(
            mix=tuple([capacity_document.MixPart(
                flavor=flavor.name, flavor_id=flavor.id or None, count=count,
                ports=ports[flavor.name])
                for flavor, count in flavor_counts]),
            fits=fits[0], fits_if_empty=fits[1] if parsed_args.empty else None,
            blazar=capacity_document.blazar_hosts(cloud, hosts)))
        titles = (*('Fits', 'If empty')[:len(fits)], 'Ports')
        if parsed_args.formatter == base.TABLE:
            return ('Mix', *titles), [(
                ', '.join(f'{count} x {name}'
                          for name, count in parsed_args.mix.items()),
                *fits, '; '.join(f'{name}: {each.label}'
                                 for name, each in ports.items()))]
        return ('Flavor', 'Flavor ID', 'Count', *titles), [
            (flavor.name, flavor.id or None, count, *fits,
             ports[flavor.name].listed)
            for flavor, count in flavor_counts]


class ShowCapacity(_Capacity):
    """Show how many more servers of a flavor fit on each host, and why.

    "pCPUs used" are the used and all CPUs for pinned servers of each NUMA
    node.
    """

    epilog = _SHOW_EPILOG
    schemas = {'capacity-show': capacity_document.HostFits}
    least_important = ('Placement capacity', 'Limiting resource',
                       'pCPUs used', 'Next')

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            'flavor', metavar='FLAVOR', help='name of the flavor')
        parser.add_argument(
            '--next', action='store_true',
            help='add the smallest server of each host that would have to '
                 'leave for one more; slow on many hosts')

    def take_action(self, parsed_args):
        cloud = self._read_cloud(parsed_args)
        flavor = arguments.flavor(cloud, parsed_args.flavor)
        hosts = _chosen(cloud, parsed_args)
        new = self._new(parsed_args, cloud)
        counted, = _count(cloud, [flavor], new, hosts)
        leaving: Mapping[str, snapshot.Server] = {}
        if parsed_args.next and counted.error is None:
            from nfv_sched.ops.answers.capacity import smallest_move
            with progress.shown() as update:
                leaving = dict(smallest_move.find(
                    cloud, flavor, new, hosts=counted.hosts,
                    update=lambda done, total: update(done, total, 'hosts')))
        self._fits = fits = capacity_document.host_fits(
            cloud, counted, leaving)
        self._document = documents.Document(fits, ('hosts',))
        self._shared = rendering.shared_limits(
            fits.hosts) if _is_text(parsed_args) else ()
        self._tell(parsed_args, cloud, hosts, {flavor.name: counted.ports},
                   [counted])
        return self.cells(parsed_args, rendering.host_columns(
            fits, leaving=parsed_args.next, shared=self._shared), fits.hosts)

    def produce_output(self, parsed_args: argparse.Namespace,
                       column_names: Sequence[str],
                       data: Iterable[Sequence[ty.Any]]) -> int:
        if _is_text(parsed_args):
            self.check_columns(parsed_args, column_names)
            ports, hosts = self._fits.ports, self._fits.hosts
            self.print_text(parsed_args, [
                f'Assumed ports: {ports.description} ({ports.reason}).',
                *([rendering.shared_sentence(hosts, self._shared)]
                  if self._shared else []), ''])
        return super().produce_output(parsed_args, column_names, data)


def _count(cloud: snapshot.Cloud, flavors: Sequence[snapshot.Flavor],
           new: 'capacity.NewServers', hosts: Sequence[str],
           empty: bool = False) -> 'list[capacity.FlavorCapacity]':
    from nfv_sched.ops.model.counting import capacity
    with progress.shown() as update:
        return capacity.capacities(
            cloud, flavors, new, hosts=set(hosts), empty=empty,
            update=lambda done, total: update(done, total, 'flavors'))


def _is_text(parsed_args: argparse.Namespace) -> bool:
    return parsed_args.formatter == base.TABLE and not parsed_args.columns


def _is_known(cloud: snapshot.Cloud, project: str) -> bool:
    return any(server.project == project for server in cloud.servers) or any(
        project in map(str.strip, value.split(','))
        for each in cloud.aggregates for value in each.metadata.values())


def _chosen(cloud: snapshot.Cloud,
            parsed_args: argparse.Namespace) -> list[str]:
    """Return names of hosts; an aggregate may be without hosts here."""
    chosen = list(dict.fromkeys(host.name for host in arguments.hosts(
        cloud, parsed_args.host, parsed_args.az)))
    if parsed_args.aggregate:
        names = arguments.chosen([each.name for each in cloud.aggregates],
                                 parsed_args.aggregate, 'aggregate')
        members = {name for each in cloud.aggregates
                   if each.name in names for name in each.hosts}
        chosen = [name for name in chosen if name in members]
    if parsed_args.reservation is not None:
        of_host = blazar.hosts(cloud)
        chosen = [name for name in chosen if parsed_args.reservation in [
            each.id for each in of_host.get(name, ())]]
    return chosen


def _parts(by: str, cloud: snapshot.Cloud,
           hosts: Sequence[str]) -> list[capacity_document.CloudPart]:
    if by == _CLOUD:
        return [capacity_document.CloudPart(hosts)]
    if by == _HOST:
        of_name = {each.name: each for each in cloud.hosts}
        return [capacity_document.CloudPart([name], of_name[name])
                for name in hosts]
    chosen = set(hosts)
    parts = [capacity_document.CloudPart(
        [name for name in each.hosts if name in chosen], aggregate=each)
        for each in cloud.aggregates]
    grouped = {name for each in cloud.aggregates for name in each.hosts}
    parts.append(capacity_document.CloudPart(
        [name for name in hosts if name not in grouped]))
    return [part for part in parts if part.hosts]


def _mix(argument: str) -> dict[str, int]:
    counts = {}
    for part in argument.split(','):
        name, equals, count = part.rpartition('=')
        if not equals or not count.isdigit() or not int(count):
            raise argparse.ArgumentTypeError(f'FLAVOR=N needed, not {part!r}')
        name = name.strip()
        counts[name] = counts.get(name, 0) + int(count)
    return counts
