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
"""The ledger in Placement: what guests take of the network of a node.

Each compute node has a nested resource provider with an inventory of vSwitch
ports and one of security-group rules.  The filters add what a guest takes to
the allocation candidates of a host, and Nova claims it in Placement together
with everything else, or not at all.

The scheduler also reads which hosts have a ledger and which have room, in the
background.  That spares Nova claims that cannot succeed; it decides nothing
that Placement would not.
"""

from collections.abc import Mapping
import functools
import threading
import time
import typing as ty
import uuid

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading
from oslo_log import log as logging

from nfv_sched import conf as nfv_conf
from nfv_sched.network import background
from nfv_sched import nova_compat

LOG = logging.getLogger(__name__)

CONF = nova_compat.CONF
nfv_conf.register_opts(CONF)

_GROUP = 'placement'  # section of nova.conf
_MICROVERSION = '1.38'
_TIMEOUT = 30.0  # seconds, unless [placement] timeout says otherwise

#: Resource classes.
PORTS = 'CUSTOM_NFV_VSWITCH_PORT'
RULES = 'CUSTOM_NFV_SECURITY_RULE'

#: Trait of the nested providers, by which they are found.
TRAIT = 'CUSTOM_NFV_LEDGER'

#: What an inventory without limit has.
UNLIMITED = 2 ** 31 - 1

_NAMESPACE = uuid.UUID('5b0c7f0e-6a55-4d0b-9a3b-6f7d2e5c8a41')


@functools.lru_cache(maxsize=65536)
def provider_uuid(compute_node: str) -> str:
    """UUID of the nested provider of a compute node.

    :param compute_node: UUID of the compute node's own provider, which is
        that of the compute node in Nova
    """
    return str(uuid.uuid5(_NAMESPACE, compute_node))


class PlacementError(Exception):
    """Placement did not answer as it should."""


def placement_client(conf=CONF):
    """A client of Placement, by the section ``[placement]`` of nova.conf.

    :param conf: configuration object
    :returns: ``keystoneauth1.adapter.Adapter``; it does not raise for the
        status of an answer
    :raises PlacementError: if the section cannot be used
    """
    try:
        auth = ks_loading.load_auth_from_conf_options(conf, _GROUP)
        if auth is None:
            raise PlacementError(
                'no connection to Placement: [placement] auth_type is not set')
        session = ks_loading.load_session_from_conf_options(
            conf, _GROUP, auth=auth)
        if session.timeout is None:
            session.timeout = _TIMEOUT
        return ks_loading.load_adapter_from_conf_options(
            conf, _GROUP, session=session, auth=auth,
            default_microversion=_MICROVERSION, raise_exc=False)
    except (ks_exceptions.ClientException, OSError) as exc:
        raise PlacementError(f'no connection to Placement: {exc}') from exc


def claim(host_state, resource_class: str, amount: int) -> None:
    """Let Nova claim an amount in the ledger of a host with all else.

    The allocation candidates are this request's own.  Claiming an amount
    again changes nothing.

    :param host_state: ``nova.scheduler.host_manager.HostState``
    :param resource_class: ``PORTS`` or ``RULES``
    :param amount: more than 0
    """
    provider = provider_uuid(host_state.uuid)
    for candidate in host_state.allocation_candidates:
        allocations = candidate['allocations']
        entry = allocations.get(provider)
        if entry is None:
            allocations[provider] = {'resources': {resource_class: amount}}
        else:
            entry['resources'][resource_class] = amount


class Reading(ty.NamedTuple):
    """What Placement said of the ledgers at one moment.

    :ivar published: UUIDs of the nested providers
    :ivar room: (resource class, amount) -> those of them that had so much
        left; only for amounts that were asked for lately
    """

    published: frozenset[str]
    room: Mapping[tuple[str, int], frozenset[str]]


class _Refresher(background.Refresher[Reading]):
    """The thread that reads the ledgers in one process."""

    name = 'nfv-sched-ledger'

    #: Amounts asked for within so many seconds are read, and how many.
    LATELY = 60.0
    MOST = 32

    def __init__(self, conf):
        super().__init__()
        self._conf = conf
        self._client = None
        self._wanted_lock = threading.Lock()
        self._amounts: dict[tuple[str, int], float] = {}

    def want(self, resource_class: str, amount: int) -> None:
        """Read from now on who has room for an amount."""
        with self._wanted_lock:
            self._amounts[resource_class, amount] = time.monotonic()

    def interval(self) -> float:
        """``ledger_refresh_interval``."""
        return self._conf.nfv_sched.ledger_refresh_interval

    def first_timeout(self) -> float:
        """As for the first reading of Neutron."""
        return self._conf.nfv_sched.neutron_first_fetch_timeout

    def read(self) -> Reading:
        """Read the ledgers once."""
        now = time.monotonic()
        if self._client is None:
            self._client = placement_client(self._conf)
        with self._wanted_lock:
            latest = sorted(self._amounts.items(), key=lambda item: -item[1])
            self._amounts = dict([
                item for item in latest[:self.MOST]
                if now - item[1] < self.LATELY])
            amounts = list(self._amounts)
        published = self._providers('')
        return Reading(published, {
            (resource_class, amount): self._providers(
                f'&resources={resource_class}:{amount}') if published
            else published for resource_class, amount in amounts})

    def _providers(self, query: str) -> frozenset[str]:
        url = f'/resource_providers?required={TRAIT}{query}'
        try:
            answer = self._client.get(url)
            if answer.status_code == 400:
                # The trait, or the resource class, does not exist yet.
                return frozenset()
            if answer.status_code != 200:
                raise PlacementError(
                    f'GET {url}: {answer.status_code} {answer.reason}')
            return frozenset(
                [item['uuid'] for item in answer.json()['resource_providers']])
        except (ks_exceptions.ClientException, OSError) as exc:
            raise PlacementError(f'GET {url}: {exc}') from exc
        except (KeyError, TypeError, ValueError) as exc:
            raise PlacementError(f'GET {url}: the answer is malformed') from (
                exc)

    def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.session.session.close()

    def succeeded(self, took: float) -> None:
        """Tell of the end of an outage."""
        if self.failures:
            LOG.info('The ledger in Placement can be read again, after %d '
                     'failed attempts in %.0f s', self.failures,
                     time.monotonic() - self.failing_since)

    def failed(self, exc: Exception) -> None:
        """Tell of the first of several failures."""
        if self.failures == 1:
            LOG.warning(
                'The ledger in Placement cannot be read and is tried again in '
                'the background: %s', exc,
                exc_info=not isinstance(exc, PlacementError))
        else:
            LOG.debug('Attempt %d to read the ledger failed: %s',
                      self.failures, exc)


class LedgerSource(background.Source[Reading]):
    """Has the latest reading of the ledgers at hand, in every process.

    :param conf: configuration object with ``[placement]`` and ``[nfv_sched]``
    """

    def __init__(self, conf=CONF):
        super().__init__()
        self._conf = conf

    def _make_refresher(self) -> _Refresher:
        return _Refresher(self._conf)

    def want(self, resource_class: str, amount: int) -> None:
        """Let readings from now on say who has room for an amount.

        :param resource_class: ``PORTS`` or ``RULES``
        :param amount: more than 0
        """
        self._refresher().want(resource_class, amount)


#: The source that all filters of a process share.
SOURCE = LedgerSource()
