#    Licensed under the Apache License, Version 2.0 (the "License"); you may
#    not use this file except in compliance with the License. You may obtain
#    a copy of the License at
#
#         http://www.apache.org/licenses/LICENSE-2.0
#
#    Unless required by applicable law or agreed to in writing, software
#    distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#    WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#    License for the specific language governing permissions and limitations
#    under the License.
"""The snapshot of the network, from Neutron's API.

:func:`read_snapshot` reads it once.  :class:`SnapshotSource` has one at hand
that a thread in the background keeps young, so that those who ask for it never
wait for Neutron, but for a bounded time at the very first.

A snapshot is made of complete answers or not at all.  Neutron has no
transactions over pages, so it can mix moments that lie as far apart as reading
takes: a port that is created or moved meanwhile may be missing until the next
one, and none is counted twice.
"""

from collections.abc import Iterator
import contextlib
import json
import threading
import time

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading
from openstack import connection as sdk_connection
from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging
import urllib3

from nfv_sched import conf as nfv_conf
from nfv_sched.network import background
from nfv_sched.network import usage
from nfv_sched import nova_compat

LOG = logging.getLogger(__name__)

CONF = nova_compat.CONF
nfv_conf.register_opts(CONF)

_GROUP = 'neutron'  # section of nova.conf
_CHUNK_BYTES = 65536
# How many of the last items of a page are tried as the marker of the next one:
# Neutron refuses a marker that has been deleted meanwhile.
_MARKERS = 5
_PORT_FIELDS = ('id', 'device_owner', 'device_id', 'binding:host_id',
                'binding:vnic_type', 'security_groups')
_DHCP_AGENT = 'DHCP agent'
_L3_AGENT = 'L3 agent'

# What can go wrong on the way to Neutron, by no fault of this module. The
# exceptions of requests are OSErrors.
_ERRORS = (ks_exceptions.ClientException, sdk_exceptions.SDKException,
           urllib3.exceptions.HTTPError, OSError)

_HIDDEN_GROUPS = (
    'Neutron does not show the security groups of other projects to the user '
    'of the [neutron] section, who needs the role admin')

# So many ports are looked at to see whether their security groups are shown.
_PROBED = 100


class NeutronError(Exception):
    """Neutron did not give what a snapshot is made of."""


class _StatusError(NeutronError):
    """Neutron answered with a status other than 200."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


class Reader:
    """One connection to Neutron.

    To be used by one thread at a time, in the process that made it.

    :param conf: configuration object with ``[neutron]`` and ``[nfv_sched]``
    :param stopped: reading ends between two requests once this is set
    :raises NeutronError: if there is no way to Neutron
    """

    def __init__(self, conf=CONF, stopped: threading.Event | None = None):
        self._conf = conf
        self._stopped = stopped
        self._hidden_told = False
        try:
            session = ks_loading.load_session_from_conf_options(
                conf, _GROUP,
                auth=ks_loading.load_auth_from_conf_options(conf, _GROUP))
            if session.timeout is None:
                session.timeout = conf.nfv_sched.neutron_request_timeout
            self._session = session
            connection = sdk_connection.Connection(
                session=session, oslo_conf=conf, service_types={'network'})
            self._network = connection.network
        except _ERRORS as exc:
            raise NeutronError(f'no connection to Neutron: {exc}') from exc

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._session.session.close()

    def probe(self) -> tuple[str, str]:
        """Ask for a little of everything that :meth:`read` asks for.

        :returns: what Neutron shows, and what it does not, for people; the
            latter is empty if it shows everything
        :raises NeutronError: if any answer is missing, late or malformed
        """
        builder = usage.SnapshotBuilder(None)
        ports = self._few('ports', _PORT_FIELDS, [('limit', str(_PROBED))])
        for port in ports:
            self._add_port(builder, port)
        for resource in ('security-group-rules', 'security-groups'):
            self._few(resource, ('id',), [('limit', '1')])
        hidden = _HIDDEN_GROUPS if self._hides_groups(builder) else ''
        agents = self._few('agents', ('id', 'agent_type'), [])
        shown = f'Neutron shows {len(agents)} agents, and '
        if ports:
            return shown + 'where ports are bound.', hidden
        return shown + (
            'no ports yet. Run the check again when there are some, to see '
            'whether it shows where they are bound.'), hidden

    def _few(self, resource: str, fields: tuple[str, ...],
             query: list[tuple[str, str]]) -> list[dict]:
        """The first page of a kind; none if Neutron does not know it."""
        try:
            body = self._get(
                resource, [('fields', field) for field in fields] + query)
        except _StatusError as exc:
            if exc.status == 404 and resource != 'ports':
                return []
            raise
        return _parse(body, resource)[0]

    def read(
        self, previous: usage.Snapshot | None = None,
    ) -> usage.Snapshot:
        """Read everything.

        :param previous: the snapshot before, with which the new one shares
            what has not changed
        :raises NeutronError: if any answer is missing, late or malformed
        """
        builder = usage.SnapshotBuilder(previous)
        for port in self._items('ports', _PORT_FIELDS):
            self._add_port(builder, port)
        # After the ports: the groups of a port were there before it.
        for rule in self._items(
            'security-group-rules', ('id', 'security_group_id'),
            optional=True,
        ):
            builder.add_rule(_text(rule, 'security_group_id'))
        for group in self._items(
            'security-groups', ('id', 'project_id'),
            filters=[('name', 'default')], optional=True,
        ):
            builder.add_default_group(
                _text(group, 'project_id'), group['id'])
        self._add_agents(builder)
        hidden = self._hides_groups(builder)
        if hidden and not self._hidden_told:
            LOG.warning('Limits of security-group rules are not kept: %s.',
                        _HIDDEN_GROUPS)
        self._hidden_told = hidden
        return builder.build()

    def _hides_groups(self, builder: usage.SnapshotBuilder) -> bool:
        """Whether security groups of ports, and so their rules, are not shown.

        A list that the user may not see is no error to Neutron, but empty.
        """
        group = builder.group_without_rules()
        return group is not None and not self._few(
            'security-groups', ('id',), [('id', group)])

    @staticmethod
    def _add_port(builder: usage.SnapshotBuilder, port: dict) -> None:
        if 'binding:host_id' not in port:
            raise NeutronError(
                'ports come without binding:host_id: the user of the '
                '[neutron] section needs the role admin or service')
        groups = port.get('security_groups') or ()
        if not isinstance(groups, (list, tuple)) or not all(
                isinstance(group, str) for group in groups):
            raise NeutronError('malformed security_groups of a port')
        builder.add_port(
            port['id'], _text(port, 'device_owner'),
            _text(port, 'device_id'), _text(port, 'binding:host_id'),
            _text(port, 'binding:vnic_type') or 'normal', tuple(groups))

    def _add_agents(self, builder: usage.SnapshotBuilder) -> None:
        """Learn what runs Neutron, and what its DHCP and L3 agents serve."""
        kinds = {_text(agent, 'agent_type') for agent in self._items(
            'agents', ('id', 'agent_type'), paged=False, optional=True)}
        for kind in kinds:
            builder.add_agent_type(kind)
        wanted = sorted(kinds & {_DHCP_AGENT, _L3_AGENT})
        if not wanted:
            return
        for agent in self._items(
            'agents', ('id', 'agent_type', 'host', 'alive', 'configurations'),
            filters=[('agent_type', kind) for kind in wanted], paged=False,
        ):
            # What a dead agent had is stale; its ports are counted instead.
            if not agent.get('alive'):
                continue
            host = _text(agent, 'host')
            figures = agent.get('configurations')
            if not host or not isinstance(figures, dict):
                raise NeutronError('malformed agent')
            kind = _text(agent, 'agent_type')
            if kind == _DHCP_AGENT:
                networks = _count(figures, 'networks')
                if networks is not None:
                    builder.add_dhcp_agent(host, networks)
            elif kind == _L3_AGENT:
                routers = _count(figures, 'routers')
                if routers is not None:
                    builder.add_l3_agent(host, routers)

    def _items(
        self, resource: str, fields: tuple[str, ...],
        filters=(), paged: bool = True, optional: bool = False,
    ) -> Iterator[dict]:
        """All items of a kind, each once.

        :param resource: as in the URL
        :param fields: those needed; the first must be ``id``
        :param filters: query parameters
        :param paged: whether Neutron pages through this resource
        :param optional: whether a Neutron that does not know the resource has
            none of it
        """
        limit = self._conf.nfv_sched.neutron_page_size
        query = [('fields', field) for field in fields]
        query += filters
        if paged:
            query += [('limit', str(limit)), ('sort_key', 'id'),
                      ('sort_dir', 'asc')]
        seen: set[str] = set()
        markers: list[str] = []
        while True:
            try:
                body = self._page(resource, query, markers)
            except _StatusError as exc:
                if optional and not markers and exc.status == 404:
                    return
                raise
            items, more = _parse(body, resource)
            del body
            ids = [item['id'] for item in items]
            if seen and ids and seen.issuperset(ids):
                raise NeutronError(
                    f'{resource}: the same page came twice')
            for item in items:
                if item['id'] not in seen:
                    yield item
            # An answer longer than the limit is all there is.
            if not more and (not paged or len(items) != limit):
                return
            if not items:
                if more:
                    raise NeutronError(
                        f'{resource}: an empty page that is not the last')
                return
            seen = set(ids)
            markers = ids[:-_MARKERS - 1:-1]

    def _page(
        self, resource: str, query: list[tuple[str, str]],
        markers: list[str],
    ) -> bytes:
        """One page, after the first marker that still exists."""
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
        """The body of one answer, complete and in time."""
        if self._stopped is not None and self._stopped.is_set():
            raise background.Stopped()
        timeout = self._conf.nfv_sched.neutron_request_timeout
        deadline = time.monotonic() + timeout
        try:
            # Not logged: debug logs would hold every port, every minute.
            with contextlib.closing(self._network.get(
                f'/{resource}', params=query, timeout=timeout, stream=True,
                log=False, headers={'Accept': 'application/json',
                                    'Accept-Encoding': 'identity'},
            )) as response:
                if response.status_code != 200:
                    raise _StatusError(
                        f'GET {resource}: {response.status_code} '
                        f'{response.reason}', response.status_code)
                chunks = []
                # read1 returns what has come; read would wait for a whole
                # chunk, for ever if the bytes only trickle.
                while chunk := response.raw.read1(
                        _CHUNK_BYTES, decode_content=True):
                    chunks.append(chunk)
                    if time.monotonic() > deadline:
                        raise NeutronError(
                            f'GET {resource}: the answer was not complete '
                            f'after {timeout:g} s')
        except _ERRORS as exc:
            raise NeutronError(f'GET {resource}: {exc}') from exc
        return b''.join(chunks)


def _parse(body: bytes, resource: str) -> tuple[list[dict], bool]:
    """The items of a page, and whether there are more pages."""
    key = resource.replace('-', '_')
    try:
        document = json.loads(body)
    except ValueError as exc:
        raise NeutronError(f'{resource}: the answer is no JSON: {exc}') from (
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


def _text(item: dict, field: str) -> str:
    value = item.get(field)
    if value is None:
        return ''
    if not isinstance(value, str):
        raise NeutronError(f'malformed {field}')
    return value


def _count(figures: dict, field: str) -> int | None:
    value = figures.get(field)
    if value is not None and (not isinstance(value, int) or value < 0):
        raise NeutronError(f'malformed {field} of an agent')
    return value


def read_snapshot(conf=CONF) -> usage.Snapshot:
    """Read Neutron once, in this thread.

    :param conf: configuration object with ``[neutron]`` and ``[nfv_sched]``
    :raises NeutronError: if it cannot be read completely
    """
    with contextlib.closing(Reader(conf)) as reader:
        return reader.read()


class _Refresher(background.Refresher[usage.Snapshot]):
    """The thread that reads Neutron in one process."""

    name = 'nfv-sched-neutron'
    log = LOG
    again = 'Neutron can be read again'

    def __init__(self, conf):
        super().__init__()
        self._conf = conf
        self._reader: Reader | None = None
        self._stale_told = False
        self._slow_told = False

    def interval(self) -> float:
        """``neutron_refresh_interval``."""
        return self._conf.nfv_sched.neutron_refresh_interval

    def first_timeout(self) -> float:
        """``neutron_first_fetch_timeout``."""
        return self._conf.nfv_sched.neutron_first_fetch_timeout

    def read(self) -> usage.Snapshot:
        """A new snapshot."""
        if self._reader is None:
            self._reader = Reader(self._conf, self.stopped)
        return self._reader.read(self.value)

    def close(self) -> None:
        """Close the connection; a new one also learns new endpoints."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def succeeded(self, took: float) -> None:
        """Tell of readings that take long."""
        options = self._conf.nfv_sched
        snapshot = self.value
        LOG.debug('Neutron was read in %.1f s: %d hosts, %d ports, %s', took,
                  len(snapshot.hosts), len(snapshot.ports), snapshot.source)
        # The next snapshot comes after a pause and as long a reading.
        oldest = max(options.neutron_refresh_interval, 2 * took) + took
        if oldest <= options.max_snapshot_age:
            self._slow_told = False
        elif not self._slow_told:
            self._slow_told = True
            LOG.warning(
                'Neutron is read every %.0f s and that takes %.0f s: figures '
                'become older than max_snapshot_age (%.0f s), and '
                'stale_snapshot_policy=%s applies to them',
                max(options.neutron_refresh_interval, 2 * took), took,
                options.max_snapshot_age, options.stale_snapshot_policy)

    def failed(self, exc: Exception) -> None:
        """Tell of the first of several failures, and when it matters."""
        options = self._conf.nfv_sched
        snapshot = self.value
        if self.failures > 1:
            LOG.debug('Attempt %d to read Neutron failed: %s',
                      self.failures, exc)
        else:
            self._stale_told = snapshot is None
            LOG.warning(
                'Neutron cannot be read and is tried again in the background: '
                '%s. %s', str(exc).rstrip('.'),
                'There are no figures yet: stale_snapshot_policy='
                f'{options.stale_snapshot_policy} applies'
                if snapshot is None else
                f'Figures that are {snapshot.age():.0f} s old are used until '
                f'they are {options.max_snapshot_age:.0f} s old',
                exc_info=not isinstance(exc, NeutronError))
        if not self._stale_told and (
                snapshot.age() > options.max_snapshot_age):
            self._stale_told = True
            LOG.warning(
                'The figures from Neutron are older than max_snapshot_age '
                '(%.0f s): stale_snapshot_policy=%s applies',
                options.max_snapshot_age, options.stale_snapshot_policy)


class SnapshotSource(background.Source[usage.Snapshot]):
    """Has the latest snapshot at hand, in every process that asks for it.

    :param conf: configuration object with ``[neutron]`` and ``[nfv_sched]``
    """

    def __init__(self, conf=CONF):
        super().__init__()
        self._conf = conf

    def _make_refresher(self) -> _Refresher:
        return _Refresher(self._conf)

    def is_fresh(self, snapshot: usage.Snapshot | None) -> bool:
        """Whether a snapshot is young enough to be believed.

        :param snapshot: what :meth:`get` returned
        """
        return (snapshot is not None
                and snapshot.age() <= self._conf.nfv_sched.max_snapshot_age)


#: The source that all filters and weighers of a process share.
SOURCE = SnapshotSource()
