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
"""What the scheduler knows of the ledger in Placement.

Read in the background: which hosts have a ledger, and which of them have room
for the amounts that were asked for lately.  That spares Nova claims that
cannot succeed; it decides nothing that Placement would not.
"""

from collections.abc import Mapping
import threading
import time
import typing as ty

from oslo_log import log as logging

from nfv_sched import conf as nfv_conf
from nfv_sched.network import background
from nfv_sched.network import providers
from nfv_sched import nova_compat

LOG = logging.getLogger(__name__)

CONF = nova_compat.CONF
nfv_conf.register_opts(CONF)


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
    log = LOG
    again = 'The ledger in Placement can be read again'

    #: Amounts asked for within so many seconds are read, and how many.
    LATELY = 60.0
    MOST = 32

    #: Seconds that the first requests of a process wait; less than Nova waits
    #: for an answer of the scheduler.
    FIRST_SECONDS = 30.0

    def __init__(self, conf):
        super().__init__()
        self._conf = conf
        self._client: providers.Client | None = None
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
        """Longer than for Neutron.

        Nova has just asked Placement for candidates, so that it answers; and
        what is placed unread is in no ledger.
        """
        return self.FIRST_SECONDS

    def read(self) -> Reading:
        """Read the ledgers once."""
        now = time.monotonic()
        if self._client is None:
            self._client = providers.Client(self._conf)
        with self._wanted_lock:
            latest = sorted(self._amounts.items(), key=lambda item: -item[1])
            self._amounts = dict([
                item for item in latest[:self.MOST]
                if now - item[1] < self.LATELY])
            amounts = list(self._amounts)
        published = self._client.uuids()
        return Reading(published, {
            key: self._client.uuids(*key) if published else published
            for key in amounts})

    def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def failed(self, exc: Exception) -> None:
        """Tell of the first of several failures."""
        if self.failures == 1:
            LOG.warning(
                'The ledger in Placement cannot be read and is tried again in '
                'the background: %s', exc,
                exc_info=not isinstance(exc, providers.PlacementError))
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

        :param resource_class: ``ledger.PORTS`` or ``ledger.RULES``
        :param amount: more than 0
        """
        self._refresher().want(resource_class, amount)


#: The source that all filters of a process share.
SOURCE = LedgerSource()
