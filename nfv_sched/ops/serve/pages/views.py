# SPDX-License-Identifier: Apache-2.0
"""Answer requests for pages of a snapshot.

What takes long is calculated once for a snapshot.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import functools
import http
import shlex
import time
import types
import typing as ty
import urllib.parse

from nfv_sched.base import strings
from nfv_sched.ops.answers.audit import all_checks
from nfv_sched.ops.answers.audit import hosts as audit_hosts
from nfv_sched.ops.answers.audit import values as audit_values
from nfv_sched.ops.answers.capacity import document as capacity_document
from nfv_sched.ops.answers.capacity import rendering as capacity_rendering
from nfv_sched.ops.answers.explain import document as explain_document
from nfv_sched.ops.answers.explain import explanation as nfv_explanation
from nfv_sched.ops.answers.explain import next_steps
from nfv_sched.ops.answers.explain import rendering as explain_rendering
from nfv_sched.ops.answers.hosts import document as host_document
from nfv_sched.ops.answers.hosts.map import page as host_map
from nfv_sched.ops.answers.hosts import rendering as host_rendering
from nfv_sched.ops.answers.hosts import view
from nfv_sched.ops.answers.rebalance import document as rebalance_document
from nfv_sched.ops.answers.rebalance import freed_capacity
from nfv_sched.ops.answers.rebalance import levelling
from nfv_sched.ops.answers.rebalance import rendering as rebalance_rendering
from nfv_sched.ops.cli import base
from nfv_sched.ops.cli import errors
from nfv_sched.ops.cli import tables
from nfv_sched.ops.cloud import problems
from nfv_sched.ops.cloud import snapshot
from nfv_sched.ops.commands import arguments
from nfv_sched.ops.commands import source
from nfv_sched.ops.model.counting import capacity
from nfv_sched.ops.model.requests import subject as subjects
from nfv_sched.ops.serve.metrics import server
from nfv_sched.ops.serve.pages import html
from nfv_sched.ops.simulator import start

#: Seconds after which a page shows what was calculated so far.
CALCULATION_SECONDS = 10.0
#: Seconds for which changes of a request that does not fit are tried.
TRY_SECONDS = 5.0

_HOSTS, _SERVERS, _FINDINGS = 50, 200, 200  # on one page
_MOST_EXPLAINED = 32
_LONGEST = 200  # characters of what is searched for
_OLD = 3600  # seconds

#: Path -> the command whose text for people it shows.
_COMMANDS = {
    '/failover': ('cloud', 'failover'),
    '/flavors': ('flavor', 'lint', '--all', '--hosts')}
_DRAIN = ('host', 'drain', f'--seconds={TRY_SECONDS:.0f}', '--')

_CAPACITY_COLUMNS = ('Flavor', 'Fits', 'Placement capacity',
                     'Hosts with capacity', 'Lost capacity by cause', 'Ports',
                     'Not known')
_SERVER_COLUMNS = ('Server', 'Host', 'State', 'Flavor', 'UUID')
_FINDING_COLUMNS = ('Host', 'Server', 'Kind', 'Finding', 'Since', 'What to do')
_AGENT_COLUMNS = ('Host', 'Kind', 'In use', 'Services', 'Services after',
                  'Ports', 'Ports after')

_T = ty.TypeVar('_T')
_Query = Mapping[str, str]
_Content = tuple[str, dict[str, ty.Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class ListPart(ty.Generic[_T]):
    items: Sequence[_T]
    first: int  #: number of the first item, from 1
    count: int
    pages: int
    previous: str | None  #: link to the page before; None if there is none
    next: str | None


class SnapshotPages:
    """The pages of a snapshot, with what was calculated for them.

    Not for several threads at once: calculations set options of Nova in the
    whole process.

    :param name: of the cloud, for the title of pages
    """

    def __init__(self, cloud: snapshot.Cloud, name: str = ''):
        self._cloud = cloud
        self._name = name
        self._capacities: dict[str, capacity.FlavorCapacity] = {}
        # Not a method's own cache, which would keep old snapshots.
        self._explained = functools.lru_cache(_MOST_EXPLAINED)(self._explain)
        self._told = functools.lru_cache(_MOST_EXPLAINED)(self._tell)

    def respond(self, path: str, query: _Query,
                age_seconds: float) -> server.Answer:
        """Return the page for a path of :func:`worker.is_page`.

        :param query: first value of each key
        """
        query = {key: value[:_LONGEST] for key, value in query.items()}
        try:
            template, content = self._page(path)(query)
        except errors.NotInCloudError as exc:
            return html.message(http.HTTPStatus.NOT_FOUND, str(exc))
        except errors.UsageError as exc:
            return html.message(http.HTTPStatus.BAD_REQUEST, str(exc))
        except problems.InputError as exc:
            return html.message(
                http.HTTPStatus.INTERNAL_SERVER_ERROR, str(exc))
        except errors.CloudUnreadError as exc:
            template, content = 'unread.html', {'text': str(exc)}
        current = '/' + path.split('/')[1]
        return html.page(template, **{
            'title': html.TITLES[current], 'current': current, 'notes': [],
            'command': '', **self._frame(age_seconds), **content})

    def _page(self, path: str) -> Callable[[_Query], _Content]:
        if path.startswith('/servers/'):
            return functools.partial(
                self._server, urllib.parse.unquote(path.split('/', 2)[2]))
        if path in _COMMANDS:
            return lambda _query: self._answer(_COMMANDS[path])
        return {'/': self._map, '/capacity': self._capacity,
                '/servers': self._servers, '/audit': self._audit,
                '/agents': self._agents, '/drain': self._drain}[path]

    def _frame(self, age_seconds: float) -> dict[str, ty.Any]:
        return {
            'cloud': self._name, 'about': host_map.about(self._cloud),
            'age': explain_rendering.duration(max(int(age_seconds), 0)),
            'is_old': age_seconds >= _OLD,
            'missing': list(map(str, self._cloud.missing))}

    @functools.cached_property
    def _views(self) -> list[host_document.HostDetails]:
        return sorted(view.views(self._cloud), key=lambda host: host.order)

    def _map(self, query: _Query) -> _Content:
        chosen = {host.uuid for host in arguments.hosts(
            self._cloud, [query['host']] if query.get('host') else [])}
        words = query.get('q', '').lower().split()
        shown = _part([
            host for host in self._views if host.host_id in chosen
            and all(word in _names(host) for word in words)],
            _HOSTS, '/', query)
        drawn = host_map.hosts(shown.items)
        return 'map.html', {
            'title': host_rendering.headline(shown.count), 'shown': shown,
            'query': query.get('q', ''),
            'command': 'nfv-sched host map --format html', **drawn}

    def _capacity(self, query: _Query) -> _Content:
        enabled = {flavor.name: flavor for flavor in self._cloud.flavors
                   if not flavor.disabled}
        if 'show' in query:
            return self._flavor(arguments.flavor(self._cloud, query['show']))
        pattern = query.get('flavor', '').strip()
        names = arguments.chosen(
            enabled, [pattern] if pattern else [], 'flavor')
        self._count([enabled[name] for name in names])
        counted = [self._capacities[name] for name in names
                   if name in self._capacities]
        fits = [capacity_document.fit(
            each, capacity_document.CloudPart(each.hosts)) for each in counted]
        columns = {column.title: column
                   for column in capacity_rendering.fit_columns(fits)}
        shown = [columns[title] for title in _CAPACITY_COLUMNS[1:]]
        return 'capacity.html', {
            'query': pattern, 'capacities': tables.Table(_CAPACITY_COLUMNS, [
                [html.PageLink(fit.flavor, _link(
                    '/capacity', {'show': fit.flavor})), *(
                        column.for_people(fit) for column in shown)]
                for fit in fits]),
            'uncounted': [name for name in names
                          if name not in self._capacities],
            'again': _link('/capacity', query),
            'notes': [*source.not_simulated(self._cloud)],
            'command': 'nfv-sched capacity list'}

    def _flavor(self, flavor: snapshot.Flavor) -> _Content:
        self._count([flavor])
        counted = self._capacities[flavor.name]
        fits = capacity_document.host_fits(self._cloud, counted)
        columns = [column for column in capacity_rendering.host_columns(fits)
                   if not column.is_detail]
        return 'flavor.html', {
            'title': f'Capacity for {flavor.name}',
            'ports': f'{counted.ports.description} ({counted.ports.reason})',
            'unknown': capacity_rendering.not_known(fits),
            'error': counted.error,
            'hosts': tables.Table([column.title for column in columns], [
                [_host(host.host), *(column.for_people(host)
                                     for column in columns[1:])]
                for host in fits.hosts]),
            'notes': [*source.not_simulated(self._cloud),
                      *counted.ports.notes],
            'command': shlex.join(
                ('nfv-sched', 'capacity', 'show', '--', flavor.name))}

    def _count(self, flavors: Iterable[snapshot.Flavor]) -> None:
        """Count flavors until the time is over, and one at least."""
        uncounted = [flavor for flavor in flavors
                     if flavor.name not in self._capacities]
        if not uncounted:
            return
        end = time.monotonic() + CALCULATION_SECONDS
        with capacity.counting_on(self._cloud) as counting:
            for flavor in uncounted:
                self._capacities[flavor.name] = counting.capacity(flavor)
                if time.monotonic() > end:
                    return

    def _servers(self, query: _Query) -> _Content:
        words = query.get('q', '').lower().split()
        shown = _part(sorted(
            (server for server in self._cloud.servers
             if all(word in _texts(server) for word in words)),
            key=lambda server: (server.host is not None, server.name,
                                server.uuid)),
            _SERVERS, '/servers', query)
        return 'servers.html', {
            'title': strings.count(shown.count, 'server'),
            'query': query.get('q', ''), 'shown': shown,
            'servers': tables.Table(_SERVER_COLUMNS, [
                (_server(server.uuid, server.name), _host(server.host),
                 server.state, server.flavor.name, server.uuid)
                for server in shown.items])}

    def _server(self, name: str, _query: _Query) -> _Content:
        uuid = subjects.find(self._cloud, name).uuid
        explanation = self._explained(uuid)
        return 'server.html', {
            'title': explanation.subject,
            'sections': explain_rendering.sections(
                explanation, explain_rendering.best_first(
                    explanation, explanation.hosts), most=None),
            'map': _host(explanation.host),
            'notes': [*source.not_simulated(self._cloud)],
            'command': shlex.join(('nfv-sched', 'server', 'explain', uuid))}

    def _explain(self, uuid: str) -> explain_document.Explained:
        with start.started(self._cloud) as state:
            subject = subjects.server(self._cloud, state, uuid)
            explanation = nfv_explanation.explain(
                state, subject, relax_seconds=TRY_SECONDS)
        steps = next_steps.find(
            self._cloud, subject, explanation, next_steps.own_ports(subject),
            TRY_SECONDS)
        return dataclasses.replace(explanation, next_steps=tuple(steps))

    @functools.cached_property
    def _audited(self) -> audit_values.Audit:
        if not audit_hosts.names_unread(self._cloud):
            raise errors.CloudUnreadError(
                'no host can be checked: the snapshot does not say which of '
                'them were read completely')
        return audit_values.Audit(
            hosts_checked=len(audit_hosts.readable(self._cloud)),
            findings=tuple(all_checks.findings(self._cloud)))

    def _audit(self, query: _Query) -> _Content:
        audited = self._audited
        kind = query.get('kind', '')
        chosen = arguments.chosen(
            audit_values.KINDS, [kind] if kind else [], 'kind')
        counts = {name: sum(each.kind == name for each in audited.findings)
                  for name in audit_values.KINDS}
        findings = [each for each in audited.findings if each.kind in chosen]
        shown = _part(findings, _FINDINGS, '/audit', query)
        return 'audit.html', {
            'summary': f'{strings.count(audited.hosts_checked, "host")} '
                       f'checked: {strings.count(len(findings), "finding")}'
                       + (f' of kind {kind}.' if kind else '.'),
            'kinds': tables.Table(('Kind', 'Findings'), [
                (html.PageLink(name, _link('/audit', {'kind': name})), count)
                for name, count in counts.items() if count]),
            'findings': tables.Table(_FINDING_COLUMNS, [
                (_host(each.host),
                 each.server_id and _server(each.server_id, each.server),
                 each.kind, each.finding, each.since, each.what_to_do)
                for each in shown.items]),
            'shown': shown, 'command': 'nfv-sched cloud audit'}

    @functools.cached_property
    def _rebalance(self) -> tuple[rebalance_document.Rebalance, bool]:
        """The plans for agents, and whether it is counted what they free."""
        if self._cloud.network_agents is None:
            raise errors.CloudUnreadError(
                'the agents of Neutron are not known')
        plan = levelling.plans(self._cloud, room=view.free_ports(self._cloud))
        try:
            return freed_capacity.with_gain(
                self._cloud, plan, next_steps.limit(CALCULATION_SECONDS)), True
        except TimeoutError:
            return plan, False

    def _agents(self, _query: _Query) -> _Content:
        plan, is_counted = self._rebalance
        return 'agents.html', {
            'summary': rebalance_rendering.summary(plan, self._cloud) or [
                'Neutron shows no agents for DHCP or routers.'],
            'uncounted': not is_counted,
            'moves': tables.of_rows(rebalance_rendering.COLUMNS, plan.moves),
            'agents': tables.Table(_AGENT_COLUMNS, [
                (agent.host, each.kind, 'yes' if agent.in_use else 'no',
                 agent.services, agent.services_after, agent.ports,
                 agent.ports_after)
                for each in plan.plans for agent in each.agents]),
            'command': 'nfv-sched agent rebalance'}

    def _drain(self, query: _Query) -> _Content:
        if not (host := query.get('show', '')):
            return 'drain.html', {'hosts': self._views}
        host = arguments.host_name([each.host for each in self._views], host)
        return self._answer((*_DRAIN, host), title=f'To empty {host}')

    def _answer(self, words: tuple[str, ...], **content: str) -> _Content:
        return 'answer.html', {
            'parts': self._told(words),
            'notes': [*source.not_simulated(self._cloud)],
            'command': shlex.join(('nfv-sched', *words)), **content}

    def _tell(self, words: Sequence[str]) -> Sequence[tables.Part]:
        """Return what a command says of this cloud."""
        factory, _name, options = (
            base.NFVSched().command_manager.find_command(list(words)))
        command = factory(None, None)
        parsed_args = command.get_parser('').parse_args(options)
        command.cloud = types.SimpleNamespace(read=lambda *_args: self._cloud)
        return command.report(parsed_args).text


def _names(host: host_document.HostDetails) -> str:
    return '\n'.join([
        host.host, *(name for _label, names in host_rendering.groups(host)
                     for name in names),
        *(server.label for server in host.servers),
        *(name for node in host.numa_nodes for name in node.networks)]).lower()


def _texts(server: snapshot.Server) -> str:
    return '\n'.join([server.name, server.uuid, server.host or '',
                      server.state, server.flavor.name]).lower()


def _link(path: str, query: _Query) -> str:
    words = urllib.parse.urlencode(query, errors='replace')
    return f'{path}?{words}' if words else path


def _host(name: str | None) -> html.PageLink | None:
    if name is None:
        return None
    # As a pattern, a name with brackets does not match itself.
    return html.PageLink(name, _link('/', {'host': name}))


def _server(uuid: str, name: str | None) -> html.PageLink:
    return html.PageLink((name or '').strip() or uuid,
                         '/servers/' + urllib.parse.quote(
                             uuid, '', errors='replace'))


def _part(items: Sequence[_T], size: int, path: str,
          query: _Query) -> ListPart[_T]:
    pages = max(-(-len(items) // size), 1)
    text = query.get('page', '')
    number = min(max(int(text), 1), pages) if (
        text.isascii() and text.isdecimal() and len(text) < 9) else 1

    def link(other: int) -> str | None:
        if not 1 <= other <= pages:
            return None
        return _link(path, {**query, 'page': str(other)})

    begin = (number - 1) * size
    return ListPart(items[begin:begin + size], begin + 1, len(items), pages,
                    link(number - 1), link(number + 1))
