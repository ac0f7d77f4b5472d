# SPDX-License-Identifier: Apache-2.0
"""Read snapshots of the network from Neutron's API.

:func:`read_snapshot` reads one, for the service of the ledger and the tools.
nova-scheduler reads none: it looks up the ports and security groups of single
requests (:class:`Lookups`).

A snapshot consists of complete answers; if one is missing, there is none.
Neutron has no transactions over pages, so its parts can be as far apart in
time as reading takes: a port that is created or moved meanwhile may be missing
until the next snapshot; none is counted twice.
"""

from collections.abc import Collection, Iterator, Sequence
import contextlib
import dataclasses
import json
import math
import threading
import time
import typing as ty

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading
from openstack import connection as sdk_connection
from openstack import exceptions as sdk_exceptions
from openstack import proxy as sdk_proxy
from oslo_log import log as logging

from nfv_sched.base import http_limits
from nfv_sched.base import strings
from nfv_sched.limits import demand
from nfv_sched.limits import usage
from nfv_sched.nova import scheduler

LOG = logging.getLogger(__name__)

CONF = scheduler.CONF

_GROUP = 'neutron'  # section of nova.conf
#: Maximum number of pages of one resource; more are an error.
PAGES = 10000
# How many of the last items of a page are tried as the marker of the next one:
# Neutron refuses a marker that has been deleted meanwhile.
_MARKERS = 5
_PORT_FIELDS = ('id', 'device_owner', 'device_id', 'binding:host_id',
                'binding:vnic_type', 'security_groups', 'project_id')
# Type of an agent -> what it reports the number of.
_LOADS = {usage.DHCP_AGENT: 'networks', usage.L3_AGENT: 'routers'}
# Rules that Neutron creates with the group "default" of a project: all egress,
# and ingress from the group itself, for IPv4 and IPv6.
_DEFAULT_GROUP_RULES = 4
# Maximum number of ports, networks and so on to read for one request.
_LOOKED_UP = 50

# Errors of connections, Keystone and Neutron, and of malformed URLs and
# version documents. The exceptions of requests are OSErrors.
_ERRORS = (ks_exceptions.ClientException, sdk_exceptions.SDKException,
           OSError, *http_limits.MALFORMED)

_HIDDEN_GROUPS = (
    'Neutron does not show the security groups of other projects to the user '
    'of the [neutron] section, who needs the role admin')

# Number of ports, or of their security groups, that are read to see whether
# Neutron shows the groups.
_PROBED = 100


class Stopped(Exception):
    """A reading that is interrupted because its reader was stopped."""


class NeutronError(strings.MaskedError):
    """Neutron cannot be read, or not completely."""


class ImplausibleError(NeutronError):
    """Neutron shows much less than in the reading before."""


class _StatusError(NeutronError):
    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


class _Doubt(ty.NamedTuple):
    project: str  #: UUID of the project concerned; empty for all
    resource: str  #: ``'ports'`` or ``'rules'``
    reason: str  #: the sign that figures are incomplete
    #: whether Nova has ports of servers for which the reading has none.  Only
    #: used for the whole cloud: a project could cause this by the
    #: ``device_id`` of its ports.
    contradicted: bool = False


class _Open(ty.NamedTuple):
    readings: int  #: number of readings in a row that raise it
    #: when the first of them was taken, seconds of ``time.monotonic()``
    since: float
    #: the snapshot before that; None if there was none
    before: usage.Snapshot | None


class ReadingCheck:
    """An acceptance check for readings that lack most ports or rules.

    A defect of Neutron, or a user who lost a role, looks like an empty cloud;
    accepted, it would make used capacity look free.  But a cloud can really
    lose most of its ports: if Nova has deleted the servers that have none any
    more, or if it is so in ``READINGS`` of them in a row, over half of
    ``max_snapshot_age``, and Nova has no ports of these servers.  The first
    reading of a process is not accepted if it shows no bound port of a server
    although Nova's database has some.

    If only a few projects have lost so much, only their figures stay as they
    were, so that no project can keep those of others out of date.

    For use by one thread at a time.  The object is kept when a :class:`Reader`
    is replaced.
    """

    #: Number of such readings in a row after which one is accepted.
    READINGS = 3

    #: Maximum number of servers without ports to ask Nova about.
    SERVERS = 100

    def __init__(self, conf=CONF):
        self._conf = conf
        # By project, empty for all, and resource.
        self._open: dict[tuple[str, str], _Open] = {}

    def check(self, previous: usage.Snapshot | None,
              snapshot: usage.Snapshot) -> list[
                  tuple[str, str, usage.Snapshot]]:
        """Check whether a reading can be accepted.

        :returns: (UUID of a project, ``'ports'`` or ``'rules'``, snapshot) of
            the figures that are not accepted yet; use those of that snapshot
            instead
        :raises ImplausibleError: if none of the figures is accepted yet
        """
        doubts = self._doubts(previous, snapshot)
        opened, self._open = self._open, {}
        replaced = []
        for doubt in doubts:
            # All figures are doubted for one reason at a time.
            key = doubt.project, doubt.resource if doubt.project else ''
            state = opened.get(key, _Open(0, snapshot.taken, previous))
            state = state._replace(readings=state.readings + 1)
            seconds = snapshot.taken - state.since
            pause = self._conf.nfv_sched.max_snapshot_age / 2
            whose = f'Project {doubt.project}: ' if doubt.project else ''
            if not (doubt.contradicted or seconds <= pause
                    or state.readings < self.READINGS):
                LOG.warning('Neutron has shown the same for %.0f s, and is '
                            'believed: %s%s', seconds, whose, doubt.reason)
                continue
            self._open[key] = state
            text = whose + doubt.reason + (
                ', but Nova has servers with ports' if doubt.contradicted else
                '. That is believed if it is still so after '
                f'{max(pause - seconds, 0):.0f} s')
            if not doubt.project:
                raise ImplausibleError(text)
            LOG.log(
                logging.DEBUG if key in opened else logging.WARNING,
                'What Neutron shows of a project is not believed, and what it '
                'had before stays in use: %s', text)
            replaced.append((doubt.project, doubt.resource, state.before))
        return replaced

    def _doubts(self, previous: usage.Snapshot | None,
                snapshot: usage.Snapshot) -> list[_Doubt]:
        if previous is None:
            return [] if snapshot.bound_ports() or not self._has_ports(
                None) else [_Doubt('', 'ports', usage.NO_PORT, True)]
        signs = usage.doubts(previous, snapshot)
        if signs.ports and not signs.ports_of:
            # Fewer rules need no other explanation.
            return [] if self._are_deleted(signs.servers) else [_Doubt(
                '', 'ports', signs.ports,
                bool(signs.servers)
                and self._has_ports(signs.servers[:self.SERVERS]))]
        if signs.rules and not signs.rules_of:
            return [_Doubt('', 'rules', signs.rules)]
        return [
            _Doubt(project, 'ports', signs.ports)
            for project in signs.ports_of if not self._are_deleted([
                server for server in signs.servers
                if any(port.project == project
                       for port in previous.instances[server])])
        ] + [_Doubt(project, 'rules', signs.rules)
             for project in signs.rules_of]

    def _are_deleted(self, servers: Sequence[str]) -> bool:
        servers = servers[:self.SERVERS]
        try:
            return bool(servers) and scheduler.deleted_servers(
                servers).issuperset(servers)
        except Exception as exc:
            LOG.debug('Nova does not say which servers are deleted: %s', exc)
            return False

    def _has_ports(self, servers: Sequence[str] | None) -> bool:
        try:
            return scheduler.has_connected_servers(servers)
        except Exception as exc:
            LOG.debug('Nova does not say whether servers have ports: %s', exc)
            return False


class Reader:
    """A connection to Neutron.

    For use by one thread at a time, in the process that made it.  What reads
    raises NeutronError if any answer is missing, late or malformed, and
    Stopped if the reader was stopped.

    :param stopped: once this is set, the next request raises ``Stopped``
    :param doubts: checks each reading; None for a new :class:`ReadingCheck`
    :param network: proxy used to reach Neutron instead of ``[neutron]``; the
        caller keeps and closes it
    :raises NeutronError: if ``[neutron]`` cannot be used
    """

    def __init__(self, conf=CONF, stopped: threading.Event | None = None,
                 doubts: ReadingCheck | None = None,
                 network: sdk_proxy.Proxy | None = None):
        self._conf = conf
        self._stopped = stopped
        self._doubts = doubts or ReadingCheck(conf)
        self._deadline = math.inf
        self._hidden_told = False
        self._session = None
        if network is not None:
            self._network = network
            return
        try:
            session = ks_loading.load_session_from_conf_options(
                conf, _GROUP,
                auth=ks_loading.load_auth_from_conf_options(conf, _GROUP))
            if session.timeout is None:
                session.timeout = conf.nfv_sched.neutron_request_timeout
            http_limits.limit(session)
            self._session = session
            connection = sdk_connection.Connection(
                session=session, oslo_conf=conf, service_types={'network'})
            self._network = connection.network
        except _ERRORS as exc:
            raise NeutronError('no connection to Neutron: '
                               f'{http_limits.reason(exc)}') from exc

    def close(self) -> None:
        if self._session is not None:
            self._session.session.close()

    def probe(self) -> tuple[str, str]:
        """Read a few items of each resource, for ``nfv-sched-status``.

        :returns: (text about the items that Neutron shows, text about those
            that it hides; empty if none)
        """
        self._deadline = math.inf
        builder = usage.SnapshotBuilder(None)
        ports = self._first_page(
            'ports', _PORT_FIELDS, [('limit', str(_PROBED))])
        for port in ports:
            self._add_port(builder, port)
        for resource in (
                'security-group-rules', 'security-groups', 'networks'):
            self._first_page(resource, ('id',), [('limit', '1')])
        hidden = _HIDDEN_GROUPS if self._hides_groups(builder) else ''
        agents = self._first_page('agents', ('id', 'agent_type'), [])
        shown = f'Neutron shows {len(agents)} agents, and '
        if ports:
            return shown + 'where ports are bound.', hidden
        return shown + (
            'no ports yet. Run the check again when there are some, to see '
            'whether it shows where they are bound.'), hidden

    def _first_page(self, resource: str, fields: tuple[str, ...],
                    query: list[tuple[str, str]]) -> list[dict]:
        """Return the first page of a resource; empty if Neutron lacks it."""
        try:
            body = self._get(
                resource, [('fields', field) for field in fields] + query)
        except _StatusError as exc:
            if exc.status == 404 and resource != 'ports':
                return []
            raise
        return _parse(body, resource)[0]

    def read(self, previous: usage.Snapshot | None = None) -> usage.Snapshot:
        """Read a complete snapshot.

        :param previous: to compare with, and to share unchanged ports with
        :raises ImplausibleError: see :class:`ReadingCheck`
        """
        seconds = self._conf.nfv_sched.max_snapshot_age
        self._deadline = time.monotonic() + seconds
        builder = usage.SnapshotBuilder(previous)
        for port in self.items('ports', _PORT_FIELDS):
            self._add_port(builder, port)
        # After the ports, so that the groups of all ports exist by then.
        for rule in self.items(
            'security-group-rules', ('id', 'security_group_id'),
            optional=True,
        ):
            builder.add_rule(text_of(rule, 'security_group_id'))
        self._add_agents(builder)
        hidden = builder.hides_groups = self._hides_groups(builder)
        if hidden and not self._hidden_told:
            LOG.warning('Limits of security-group rules are not kept: %s.',
                        _HIDDEN_GROUPS)
        self._hidden_told = hidden
        snapshot = builder.build()
        if replaced := self._doubts.check(previous, snapshot):
            for project, resource, before in replaced:
                if resource == 'ports':
                    builder.keep_ports(before, project)
                builder.keep_rules(before, project)
            snapshot = builder.build()
        return snapshot

    def look_up(self, lacking: demand.Lacking,
                deadline: float) -> usage.Supplement:
        """Read single items that a request needs.

        :param lacking: the items; at most ``_LOOKED_UP`` of each kind are read
        :param deadline: when to give up, seconds of ``time.monotonic()``
        """
        self._deadline = deadline
        ports: dict[str, usage.NeutronPort | None] = dict.fromkeys(
            lacking.ports[:_LOOKED_UP])
        groups = dict.fromkeys(lacking.groups)
        for name, values in (('id', tuple(ports)), (
                'device_id', (lacking.server,) if lacking.server else ())):
            for port in self._items_with('ports', _PORT_FIELDS, name, values):
                read = usage.NeutronPort(*_port(port))
                ports[read.id] = dataclasses.replace(
                    read, guest=bool(read.host) and text_of(
                        port, 'device_owner').startswith('compute:'))
                groups.update(dict.fromkeys(read.security_groups))
        networks = dict.fromkeys(lacking.networks[:_LOOKED_UP], True)
        for network in self._items_with(
                'networks', ('id', 'port_security_enabled'), 'id', networks):
            networks[network['id']] = (
                network.get('port_security_enabled') is not False)
        default_groups: dict[str, str] = {}
        for group in self._items_with(
            'security-groups', ('id', 'project_id'), 'project_id',
            lacking.projects[:_LOOKED_UP], ('name', 'default'),
        ):
            default_groups[text_of(group, 'project_id')] = group['id']
            groups[group['id']] = None
        # 0 for hidden groups.
        rules = dict.fromkeys(list(groups)[:_LOOKED_UP], 0)
        for rule in self._items_with(
                'security-group-rules', ('id', 'security_group_id'),
                'security_group_id', list(rules)):
            rules[text_of(rule, 'security_group_id')] += 1
        for project in lacking.projects[:_LOOKED_UP]:
            if project not in default_groups:
                # Neutron creates the group together with the first port.
                default_groups[project] = project
                rules[project] = self._rules_of_default_groups()
        return usage.Supplement(ports, rules, default_groups, networks)

    def hosts_of(self, ports: Sequence[str]) -> dict[str, str]:
        """Read the hosts to which some ports are bound now.

        :returns: port UUID -> name of its host, empty if it is not bound;
            without ports that do not exist
        """
        self._deadline = (
            time.monotonic() + self._conf.nfv_sched.max_snapshot_age)
        return {
            port['id']: text_of(port, 'binding:host_id')
            for start in range(0, len(ports), _LOOKED_UP)
            for port in self._items_with(
                'ports', ('id', 'binding:host_id'), 'id',
                ports[start:start + _LOOKED_UP])}

    def _rules_of_default_groups(self) -> int:
        try:
            return sum(
                rule.get('used_in_default_sg') is not False
                for rule in self.items(
                    'default-security-group-rules',
                    ('id', 'used_in_default_sg')))
        except _StatusError as exc:
            if exc.status != 404:
                raise
            return _DEFAULT_GROUP_RULES  # before 2023.2

    def _items_with(self, resource: str, fields: tuple[str, ...], name: str,
                    values: Collection[str],
                    *filters: tuple[str, str]) -> Iterator[dict]:
        if not values:
            return
        for item in self.items(
            resource, fields, optional=resource != 'ports',
            # Repeated query parameters: Neutron returns the items with any of
            # the values.
            filters=[(name, value) for value in values] + list(filters),
        ):
            # Neutron ignores filters that it does not support.
            if item.get(name) in values:
                yield item

    def _hides_groups(self, builder: usage.SnapshotBuilder) -> bool:
        """Return whether Neutron hides security groups from this user.

        Neutron reports no error then: the list is empty, or has only groups of
        the user's own project.
        """
        groups = builder.groups_without_rules(_PROBED)
        shown = {group['id'] for group in self._items_with(
            'security-groups', ('id',), 'id', groups)}
        hidden = groups.keys() - shown
        # A group may have been deleted since, but not if a port still has it.
        return any(
            not hidden.isdisjoint(_port(port)[4]) for port in self._items_with(
                'ports', _PORT_FIELDS, 'id',
                {groups[group] for group in hidden}))

    @staticmethod
    def _add_port(builder: usage.SnapshotBuilder, port: dict) -> None:
        port_id, host, device, vnic_type, groups, project = _port(port)
        builder.add_port(
            port_id, text_of(port, 'device_owner'), device, host, vnic_type,
            groups, project)

    def _add_agents(self, builder: usage.SnapshotBuilder) -> None:
        kinds = {text_of(agent, 'agent_type') for agent in self.items(
            'agents', ('id', 'agent_type'), paged=False, optional=True)}
        for kind in kinds:
            builder.add_agent_type(kind)
        listed_kinds = sorted(kinds & {
            usage.DHCP_AGENT, usage.L3_AGENT, usage.OVN_GATEWAY_AGENT})
        if not listed_kinds:
            return
        for agent in self.items(
            'agents', ('id', 'agent_type', 'host', 'alive', 'configurations'),
            filters=[('agent_type', kind) for kind in listed_kinds],
            paged=False,
        ):
            host, kind = text_of(agent, 'host'), text_of(agent, 'agent_type')
            builder.add_agent_host(kind, host)
            # The report of a dead agent is out of date; ports count instead.
            if not agent.get('alive'):
                continue
            figures = agent.get('configurations')
            if not host or not isinstance(figures, dict):
                raise NeutronError('malformed agent')
            field = _LOADS.get(kind)
            count = figures.get(field) if field else None
            if count is None:
                continue
            if not isinstance(count, int) or count < 0:
                raise NeutronError(f'malformed {field} of an agent')
            builder.add_load(kind, host, count)

    def items(self, resource: str, fields: tuple[str, ...], filters=(),
              paged: bool = True, optional: bool = False,
              key: str | None = None) -> Iterator[dict]:
        """Yield all items of a resource, each once.

        :param fields: read with ``id``; empty for all
        :param optional: yield nothing if this Neutron lacks the resource
        :param key: of the list in the answer; None for ``resource``
        """
        limit = self._conf.nfv_sched.neutron_page_size
        query = [('fields', field) for field in fields]
        query += filters
        if paged:
            query += [('limit', str(limit)), ('sort_key', 'id'),
                      ('sort_dir', 'asc')]
        seen: set[str] = set()
        markers: list[str] = []
        for _number in range(PAGES):
            try:
                body = self._page(resource, query, markers)
            except _StatusError as exc:
                if optional and not markers and exc.status == 404:
                    return
                raise
            items, more = _parse(body, key or resource)
            del body
            ids = [item['id'] for item in items]
            # A Neutron, or a proxy before it, that ignores the marker would
            # never end.
            if seen and ids and seen.issuperset(ids):
                raise NeutronError(f'{resource}: the same page came twice')
            # After a marker that was not the last item, items come twice.
            for item in items:
                if item['id'] not in seen:
                    yield item
            # An answer that is longer than the limit is complete.
            if not more and (not paged or len(items) != limit):
                return
            if not items:
                if more:
                    raise NeutronError(
                        f'{resource}: an empty page that is not the last')
                return
            seen = set(ids)
            markers = ids[:-_MARKERS - 1:-1]
        raise NeutronError(f'{resource}: more than {PAGES} pages')

    def _page(self, resource: str, query: list[tuple[str, str]],
              markers: list[str]) -> bytes:
        if not markers:
            return self._get(resource, query)
        for marker in markers[:-1]:
            try:
                return self._get(resource, query + [('marker', marker)])
            except _StatusError as exc:
                if exc.status not in (400, 404):
                    raise
        return self._get(resource, query + [('marker', markers[-1])])

    def _get(self, resource: str, query: list[tuple[str, str]]) -> bytes:
        if self._stopped is not None and self._stopped.is_set():
            raise Stopped()
        timeout = min(self._conf.nfv_sched.neutron_request_timeout,
                      self._deadline - time.monotonic())
        if timeout <= 0:
            raise NeutronError(f'GET {resource}: there is no time left for it')
        try:
            # Not logged: debug logs would hold every port, every minute.
            # Without redirects, which could take the token to another service.
            response = self._network.get(
                f'/{resource}', params=query, timeout=timeout, log=False,
                redirect=False, headers={'Accept': 'application/json'})
        except _ERRORS as exc:
            raise NeutronError(
                f'GET {resource}: {http_limits.reason(exc)}') from exc
        if response.status_code != 200:
            raise _StatusError(
                f'GET {resource}: {response.status_code} {response.reason}',
                response.status_code)
        return response.content


def _parse(body: bytes, resource: str) -> tuple[list[dict], bool]:
    """Return the items of a page, and whether a next page follows."""
    key = resource.replace('-', '_')
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise NeutronError(f'{resource}: the answer is not JSON: {exc}') from (
            exc)
    items = document.get(key) if isinstance(document, dict) else None
    if not isinstance(items, list) or not all(
            isinstance(item, dict) and isinstance(item.get('id'), str)
            for item in items):
        raise NeutronError(f'{resource}: the answer is malformed')
    links = document.get(f'{key}_links') or ()
    try:
        return items, any(link.get('rel') == 'next' for link in links)
    except (AttributeError, TypeError):
        raise NeutronError(f'{resource}: the links are malformed')


def _port(port: dict) -> tuple[str, str, str, str, tuple[str, ...], str]:
    """Return ID, host, device, vNIC type, security groups and project."""
    if 'binding:host_id' not in port:
        raise NeutronError(
            'ports come without binding:host_id: the user of the '
            '[neutron] section needs the role admin or service')
    groups = port.get('security_groups') or ()
    if not isinstance(groups, (list, tuple)) or not all(
            isinstance(group, str) for group in groups):
        raise NeutronError('malformed security_groups of a port')
    return (port['id'], text_of(port, 'binding:host_id'),
            text_of(port, 'device_id'),
            text_of(port, 'binding:vnic_type') or 'normal', tuple(groups),
            text_of(port, 'project_id'))


def text_of(item: dict, field: str) -> str:
    if (value := item.get(field)) is None:
        return ''
    if not isinstance(value, str):
        raise NeutronError(f'malformed {field}')
    return value


def read_snapshot(conf=CONF) -> usage.Snapshot:
    with contextlib.closing(Reader(conf)) as reader:
        return reader.read()


class Lookups:
    """Lookups in Neutron for single requests.

    Up to ``THREADS`` requests at a time; others wait within their time.  After
    a failure there is a pause, in which requests do not wait.  Servers created
    at once mostly need the same: one of them asks, and the answer counts for
    the others for ``KEPT`` seconds, unless it is about ports.

    For use by several threads.  Lookups run in threads of their own, so that a
    connection, or Keystone, cannot delay a request beyond
    ``neutron_lookup_timeout``.  Nothing is started, and no connection made,
    before the first.

    :ivar failures: number of failures since the last answer
    :ivar last_error: the last failure; empty if there was none
    """

    THREADS = 4
    #: Seconds of the first pause after a failure, which doubles with each
    #: further one, and of the longest.
    FIRST_PAUSE = 1.0
    LONGEST_PAUSE = 60.0
    KEPT = 10.0

    def __init__(self, conf=CONF):
        self._conf = conf
        self._lock = threading.Lock()
        self._kept: dict[demand.Lacking, tuple[float, usage.Supplement]] = {}
        # Requests that need the same have the same lock.
        self._turns = [threading.Lock() for _ in range(4 * self.THREADS)]
        self._threads = threading.BoundedSemaphore(self.THREADS)
        self.readers: list[Reader] = []
        self.failures = 0
        self.last_error = ''
        self._paused_until = 0.0

    def look_up(self, lacking: demand.Lacking) -> usage.Supplement | None:
        """Look up what a request needs, in ``neutron_lookup_timeout`` at most.

        :returns: None if Neutron does not answer in time
        """
        if not any(lacking):
            return usage.Supplement()
        timeout = self._conf.nfv_sched.neutron_lookup_timeout
        end = time.monotonic() + timeout
        if timeout <= 0:
            return None
        if lacking.ports or lacking.server:
            return self._ask(lacking, end)
        turn = self._turns[hash(lacking) % len(self._turns)]
        if not turn.acquire(timeout=timeout):
            return None  # the one whose turn it is says why
        try:
            now = time.monotonic()
            self._kept = {each: (until, answer) for each, (until, answer)
                          in self._kept.items() if until > now}
            if lacking in self._kept:
                return self._kept[lacking][1]
            if (answer := self._ask(lacking, end)) is not None:
                self._kept = {**self._kept, lacking: (now + self.KEPT, answer)}
            return answer
        finally:
            turn.release()

    def _ask(self, lacking: demand.Lacking,
             end: float) -> usage.Supplement | None:
        """Ask Neutron; see :meth:`look_up`.

        :param end: when to give up, seconds of ``time.monotonic()``
        """
        timeout = self._conf.nfv_sched.neutron_lookup_timeout
        if time.monotonic() < self._paused_until:
            return None
        if not self._threads.acquire(timeout=max(end - time.monotonic(), 0)):
            self._note_failure(f'no answer to others within {timeout:g} s')
            return None
        if time.monotonic() < self._paused_until:  # another one has failed
            self._threads.release()
            return None
        finished = threading.Event()
        answer: list[usage.Supplement] = []
        try:
            threading.Thread(
                target=self._run, name='nfv-sched-lookup', daemon=True,
                args=(lacking, end, answer, finished)).start()
        except RuntimeError as exc:  # there are too many threads
            self._threads.release()
            self._note_failure(str(exc))
            return None
        if not finished.wait(max(end - time.monotonic(), 0)):
            self._note_failure(f'no answer within {timeout:g} s')
            return None
        return answer[0] if answer else None

    def close(self) -> None:
        while self.readers:
            self.readers.pop().close()

    def _run(self, lacking: demand.Lacking, deadline: float,
             answer: list[usage.Supplement],
             finished: threading.Event) -> None:
        reader = None
        try:
            try:
                reader = self.readers.pop()
            except IndexError:
                reader = Reader(self._conf)
            answer.append(reader.look_up(lacking, deadline))
        except Exception as exc:
            if reader is not None:
                reader.close()
            self._note_failure(str(exc), not isinstance(exc, NeutronError))
        else:
            self.readers.append(reader)
            with self._lock:
                self.failures, self._paused_until = 0, 0.0
        finally:
            self._threads.release()
            finished.set()

    def _note_failure(self, text: str, defect: bool = False) -> None:
        with self._lock:
            now = time.monotonic()
            if now < self._paused_until:
                return  # counted already
            self.failures += 1
            self.last_error = text
            self._paused_until = now + min(
                self.FIRST_PAUSE * 2 ** min(self.failures - 1, 32),
                self.LONGEST_PAUSE)
            already_logged = self.failures > 1
        LOG.log(
            logging.DEBUG if already_logged else logging.WARNING,
            'Neutron cannot be asked for the ports and security groups of '
            'requests; until it can, each port is taken to have as many rules '
            'as a port may have: %s', text.rstrip('.'), exc_info=defect)
